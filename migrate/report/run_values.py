"""The values of a run's report: what was claimed, what happened when, what was changed, what was seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from migrate.model.afterwards import Afterwards
from migrate.model.history import LoadSummary
from migrate.model.stage import Stage
from migrate.report.wording import clock, duration, plural

NOT_OBSERVED: Final = "not observed"
MOST_NAMED: Final = 6  # brokers in one figure
_IRREVERSIBLE: Final = frozenset(stage.label for stage in Stage if not stage.reversible)


class Holds(StrEnum):
    """Does a claim hold?  Only YES is a pass; NOT_DUE and NOT_CLAIMED are no fault either.

    The values are those of the JSON; `words` is what people read.
    """

    YES = "holds"
    NO = "does not hold"
    NOT_SEEN = "could not be checked"
    NOT_DUE = "not due yet"
    NOT_CLAIMED = "not claimed"

    @property
    def words(self) -> str:
        return {Holds.YES: "passed", Holds.NO: "FAILED"}.get(self, self.value)


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that the report's verdict rests on, and by what it is known."""

    text: str
    holds: Holds
    evidence: str


class RunWord(StrEnum):
    """The verdicts of a run.  PROVEN: it ended, and all required checks passed."""

    PROVEN = "PROVEN"
    NOT_PROVEN = "NOT PROVEN"
    STOPPED = "STOPPED"
    UNFINISHED = "UNFINISHED"


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The word, the number of claims that do not hold or were not seen, and one sentence."""

    word: RunWord
    number: int
    sentence: str
    up_to: str = ""  # the stage at which a migration ended that goes on later

    def __str__(self) -> str:
        word = f"{self.word} up to {self.up_to}" if self.up_to else str(self.word)
        return f"{word} ({self.number})" if self.number else word

    @property
    def tone(self) -> str:
        """good, warn or bad."""
        return {RunWord.PROVEN: "good", RunWord.UNFINISHED: "warn"}.get(self.word, "bad")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One planned step as the journal has it; `begin` None: never begun, `outcome` "": not concluded."""

    id: str
    stage: str
    title: str
    begin: float | None = None
    end: float | None = None
    outcome: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    attempts: int = 0

    @property
    def passed(self) -> bool:
        """Concluded as done or already done."""
        return self.outcome in ("Verified", "AlreadyDone")


@dataclass(frozen=True, slots=True)
class StageSpan:
    """One stage: from its first step's beginning to its last step's conclusion (None: still open)."""

    stage: str
    begin: float
    end: float | None
    steps: int
    passed: int

    @property
    def reversible(self) -> bool:
        """Can it be rolled back?"""
        return self.stage not in _IRREVERSIBLE


@dataclass(frozen=True, slots=True)
class Restart:
    """A node's stop and start.  Times are None where it did not happen (a first start has no stop).

    `unseen_from` is the last event of a session that ended before the node's start: until `unseen_to` (None: to the
    end) nobody observed the node, so its downtime is not known.
    """

    node: str
    stage: str
    step: str
    stopped: float | None
    started: float | None
    proven: float | None
    unseen_from: float | None = None
    unseen_to: float | None = None

    @property
    def down(self) -> float | None:
        """Seconds between stop and start; None where one of them did not happen, or not all was observed."""
        if self.stopped is None or self.started is None or self.unseen_from is not None:
            return None
        return self.started - self.stopped

    @property
    def observed(self) -> bool:
        """Did one session see all of it, or prove that the node was stopped to stay so?"""
        return self.unseen_from is None or (
            self.started is None and self.proven is not None and self.proven <= self.unseen_from
        )


@dataclass(frozen=True, slots=True)
class Wait:
    """What a step waited for, who owns it, and how long."""

    step: str
    what: str
    owner: str
    next_step: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Session:
    """One life of the engine on this journal: `last` is the last event that it wrote."""

    begin: float
    last: float
    host: str
    pid: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One broker's directory in one ledger: replicas by state.

    Before a broker's first start in migration mode its directories have no id: they share one cell, without path.
    """

    broker: str
    directory: str
    path: str
    states: Mapping[str, int]

    @property
    def replicas(self) -> int:
        """All its replicas."""
        return sum(self.states.values())

    @property
    def verified(self) -> int:
        """Its replicas that are VERIFIED."""
        return self.states.get("VERIFIED", 0)


@dataclass(frozen=True, slots=True)
class LedgerMoment:
    """The ledger as one step saw it; `offset` -1 is before the copy."""

    time: float
    step: str
    offset: int
    engine: str
    cells: tuple[Cell, ...]

    @property
    def place(self) -> str:
        """Its metadata offset in words."""
        return f"{self.offset:,}" if self.offset >= 0 else "before the copy"

    @property
    def replicas(self) -> int:
        """All rows."""
        return sum(cell.replicas for cell in self.cells)

    @property
    def verified(self) -> int:
        """Rows that are VERIFIED."""
        return sum(cell.verified for cell in self.cells)


@dataclass(frozen=True, slots=True)
class DiffMoment:
    """One comparison of ZooKeeper with KRaft: counts is kind -> class -> compared fields.

    `samples` are the first differences that nothing excuses: about, zookeeper, kraft, cause, what_to_do.
    """

    time: float
    step: str
    offset: int
    lag: int
    counts: Mapping[str, Mapping[str, int]]
    unexcused: int
    expected: Mapping[str, int]
    blind_spots: tuple[str, ...]
    samples: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """One configuration file as a step changed it (unified diff, redacted)."""

    time: float
    step: str
    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectDone:
    """One effect on a host; `done` None: begun, and no word of its end."""

    time: float
    step: str
    effect: str
    detail: str
    done: float | None


@dataclass(frozen=True, slots=True)
class HostChanges:
    """Everything that was done to one node; the node `zookeeper` stands for its whole ensemble."""

    node: str
    files: tuple[FileChange, ...]
    effects: tuple[EffectDone, ...]


@dataclass(frozen=True, slots=True)
class Extra:
    """What the caller knows beyond plan, journal and load.

    `journal` says whether the chain of hashes holds (None: the caller did not look); `roles` gives `broker` or
    `controller` by node id; `claims` are further sentences to be judged (no stray folder, state POST_MIGRATION).
    """

    journal_intact: bool | None = None
    journal: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    blind_spots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything a reader of the report sees, in the order of the report."""

    verdict: RunVerdict
    claims: tuple[Claim, ...]
    cluster: str
    cluster_id: str
    change: str
    fingerprint: str
    target: str
    host: str
    begin: float
    end: float
    sessions: tuple[Session, ...]
    stages: tuple[StageSpan, ...]
    restarts: tuple[Restart, ...]
    waits: tuple[Wait, ...]
    steps: tuple[StepRecord, ...]
    ledgers: tuple[LedgerMoment, ...]
    diffs: tuple[DiffMoment, ...]
    load: LoadSummary | None
    hosts: tuple[HostChanges, ...]
    left: tuple[str, ...]
    blind_spots: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
    journal: str
    versions: Mapping[str, str]
    roles: Mapping[str, str]
    title: str = ""  # what the run was, without markup
    back: bool = False
    afterwards: Afterwards | None = None  # where nothing of the migration is left to do

    def name(self, node: str) -> str:
        """`broker 1`, `controller 3001`, `zookeeper`."""
        if not node.isdecimal():
            return node or "the cluster"
        return f"{self.roles.get(node, 'node')} {node}"


def restart_words(entry: Restart, nothing: str) -> tuple[str, str, str]:
    """When it started, how long it was down, and after how long it was proven."""
    unseen = nothing if entry.observed else NOT_OBSERVED
    started = clock(entry.started) if entry.started is not None else unseen if unseen != nothing else "not started"
    down = duration(entry.down) if entry.down is not None else unseen
    if entry.proven is None:
        return started, down, "not proven"
    return started, down, duration(entry.proven - entry.started) if entry.started is not None else unseen


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the numbers that a reader asks first; what was not measured or observed says so."""

    name: str
    value: str
    detail: str


NO_LOAD: Final = "this report judges no load"  # only a lab has one


def figures(report: RunReport) -> tuple[Figure, ...]:
    """Records, the longest client gap, restarts, downtime per broker, replicas VERIFIED."""
    load = report.load
    stopped = [entry for entry in report.restarts if entry.stopped is not None]
    again = [entry for entry in stopped if entry.started is not None or not entry.observed]
    others = {"first start": len(report.restarts) - len(stopped), "stop": len(stopped) - len(again)}
    more = " and ".join(plural(number, name) for name, number in others.items() if number)
    if load is None:
        records, gap = ("not measured", NO_LOAD), ("not measured", "")
    else:
        lost = plural(load.missing, "record") + " lost" if load.missing else "0 lost"
        read = f"{load.sent:,} sent, {load.read:,} read at the end" if load.read else "not read at the end of this run"
        records = f"{load.acknowledged:,} acknowledged, {lost if load.read else 'losses not known'}", read
        longest = max(load.gaps, key=lambda one: one[1], default=None)
        gap = (
            (duration(longest[1]), f"{longest[2]} at {clock(longest[0])}, the longest of {len(load.gaps)}")
            if longest
            else ("none", "no acknowledgement took longer than usual")
        )
    last = report.ledgers[-1] if report.ledgers else None
    replicas = (f"{last.verified:,} of {last.replicas:,}", f"at offset {last.place}") if last else ("not computed", "")
    return (
        Figure("Records", *records),
        Figure("Longest client gap", *gap),
        Figure("Restarts", str(len(again)), f"and {more}" if more else ""),
        _downtime(report, stopped),
        *(
            () if report.back and not last else (Figure("Replicas VERIFIED", *replicas),)
        ),  # ZooKeeper mode has no ledger
    )


def _downtime(report: RunReport, stopped: Sequence[Restart]) -> Figure:
    """Of brokers, each in all; what was not observed is no zero."""
    brokers = [entry for entry in stopped if report.name(entry.node).startswith("broker ")]
    unseen = sum(not entry.observed for entry in brokers)
    missing = [f"{plural(unseen, 'downtime')} not observed"] if unseen else []
    in_all: dict[str, float] = {}
    for entry in brokers:
        if entry.down is not None:
            in_all[entry.node] = in_all.get(entry.node, 0.0) + entry.down
    if not in_all:
        return Figure("Downtime per broker", NOT_OBSERVED if unseen else "none", "; ".join(missing))
    longest = max((entry for entry in brokers if entry.down is not None), key=lambda entry: entry.down or 0.0)
    most = [f"{report.name(node)} {duration(seconds)}" for node, seconds in in_all.items()][:MOST_NAMED]
    more = [f"{len(in_all) - len(most)} more in the table"] if len(in_all) > len(most) else []
    detail = f"the longest of {report.name(longest.node)}; in all: {', '.join([*most, *more])}"
    return Figure("Downtime per broker", f"at most {duration(longest.down or 0.0)}", "; ".join([detail, *missing]))


SCHEMA: Final = "kraft-migrate/run-report/v1"


def run_answer(report: RunReport) -> dict[str, Any]:
    """Schema and report; times are seconds since the epoch, durations seconds."""
    restarts = [{**asdict(one), "down": one.down, "observed": one.observed} for one in report.restarts]
    first = [asdict(one) for one in figures(report)]
    return {"schema": SCHEMA, "figures": first, **asdict(report), "restarts": restarts}


def run_json(report: RunReport) -> str:
    """What `run_answer` gives, as JSON text."""
    return json.dumps(run_answer(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
