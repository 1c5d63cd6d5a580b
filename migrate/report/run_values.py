"""The values of a run's report: what was claimed, what happened when, what was changed, what was seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from migrate.model.history import LoadSummary
from migrate.model.stage import Stage

_NO_WAY_BACK: Final = frozenset(stage.label for stage in Stage if not stage.reversible)


class Holds(StrEnum):
    """Does a claim hold?  Only YES is a pass; NOT_DUE and NOT_CLAIMED are no fault either."""

    YES = "holds"
    NO = "does not hold"
    NOT_SEEN = "could not be checked"
    NOT_DUE = "not due yet"
    NOT_CLAIMED = "not claimed"


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that the report's verdict rests on, and by what it is known."""

    text: str
    holds: Holds
    evidence: str


class RunWord(StrEnum):
    """The verdicts of a run.  PROVEN: it ended, and every claim that is due holds."""

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

    def __str__(self) -> str:
        return f"{self.word} ({self.number})" if self.number else str(self.word)

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
        return self.stage not in _NO_WAY_BACK


@dataclass(frozen=True, slots=True)
class Restart:
    """A node's stop and start.  Times are None where it did not happen (a first start has no stop)."""

    node: str
    stage: str
    step: str
    stopped: float | None
    started: float | None
    proven: float | None


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
    versions: Mapping[str, str] = field(default_factory=dict)
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

    def name(self, node: str) -> str:
        """`broker 1`, `controller 3001`, `zookeeper`."""
        if not node.isdecimal():
            return node or "the cluster"
        return f"{self.roles.get(node, 'node')} {node}"


SCHEMA: Final = "kraft-migrate/run-report/v1"


def run_json(report: RunReport) -> str:
    """Schema and report; times are seconds since the epoch, durations seconds."""
    body = {"schema": SCHEMA, **asdict(report)}
    return json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
