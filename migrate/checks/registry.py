"""How a check is written, found and run: one function a code, each saying what it looks at and what it blocks.

A check is given the parts of the world that it asked for, never Unknown.  Where such a part is Unknown, the check is
a blind spot: it blocks the same stages that a hit would block (see `_blocks`), and is never counted as a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from migrate.checks import processes
from migrate.checks.phase import Phase, phase_of
from migrate.checks.sight import FILES, Configs, Sight
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.findings import CodeDoc, Finding, Severity, group_key
from migrate.model.launch import NOT_RUNNING
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from migrate.model.world import World

T = TypeVar("T")
NEVER: Final = 99  # blocks no stage
SHOWN: Final = 20  # kinds of findings of one code; more become one line
SHOWN_ALIKE: Final = 1000  # findings of one kind, which differ in their node alone
MESSAGE_LIMIT: Final = 400  # characters of a name or value in a message

BEFORE_COPY: Final = frozenset({Phase.BEFORE_COPY})
UNTIL_FINALIZED: Final = frozenset({Phase.BEFORE_COPY, Phase.DUAL_WRITE})
AFTER_COPY: Final = frozenset({Phase.DUAL_WRITE, Phase.FINALIZED})
ALWAYS: Final = frozenset(Phase)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check found; `fix` replaces the code's own where it can be more exact."""

    about: str
    message: str
    evidence: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Blind:
    """A part of what the check looks at that it cannot judge."""

    about: str
    reason: str


Result = Iterator[Hit | Blind]


def placed(kind: str, configs: Configs) -> Iterator[tuple[str, ConfigFile]]:
    """Each file with its place: `broker 1: /etc/kafka/server.properties`."""
    return ((f"{kind} {node}: {file.path}", file) for node, file in configs.items())


@dataclass(frozen=True, slots=True)
class Check:
    doc: CodeDoc
    look: Callable[[World], Sight[Any]]
    decide: Callable[[Any, World], Result]
    blocks_from: int
    when: frozenset[Phase]
    proof: bool  # steps ask for this part themselves: not seeing it here blocks nothing

    @property
    def severity(self) -> Severity:
        return Severity(self.doc.code[0])

    def applies(self, world: World) -> bool:
        """Is there anything for it to look at, seen or not?  A unit's check says nothing where nodes are no units."""
        sight = self.look(world)
        return sight.value is not None or bool(sight.missing)


CHECKS: Final[dict[str, Check]] = {}


@dataclass(frozen=True, slots=True)
class Draft:
    """The texts of a check that has no rule yet."""

    code: str
    title: str
    why: str
    fix: str
    source: str

    def sees(
        self,
        look: Callable[[World], Sight[T]],
        *,
        blocks_from: Stage | None = None,
        when: frozenset[Phase] = UNTIL_FINALIZED,
        proof: bool = False,
    ) -> Callable[[Callable[[T, World], Result]], Callable[[T, World], Result]]:
        """Register the rule: what it sees, the first stage that a hit blocks (None for W and I), its phases."""
        code = self.code
        stage, blocks = NEVER, "no stage"
        if blocks_from is not None:
            stage, blocks = int(blocks_from), f"{blocks_from.label} and later"
        doc = CodeDoc(code, self.title, self.why, self.fix, self.source, blocks)

        def register(decide: Callable[[T, World], Result]) -> Callable[[T, World], Result]:
            assert code not in CHECKS, code
            assert (code[0] == "B") is (blocks_from is not None), code
            CHECKS[code] = Check(doc, look, decide, stage, when, proof)
            return decide

        return register


def check(code: str, title: str, why: str, fix: str, source: str) -> Draft:
    """Begin a check with what `explain` says of its code; `.sees(...)` registers the function below it."""
    return Draft(code, title, why, fix, source)


def run_all(world: World) -> Iterator[Finding]:
    """Every check that is made for the world's phase, in the order of their codes."""
    phase = phase_of(world)
    yield from _run(world, lambda entry: phase in entry.when)


def run_on_files(world: World, phase: Phase) -> Iterator[Finding]:
    """The checks of that phase which look at configuration files alone, in the order of their codes."""
    yield from _run(world, lambda entry: phase in entry.when and entry.look in FILES)


def _run(world: World, wanted: Callable[[Check], bool]) -> Iterator[Finding]:
    for code in sorted(CHECKS):
        if wanted(CHECKS[code]):
            yield from _capped(CHECKS[code], list(_findings(CHECKS[code], world)))


def _findings(entry: Check, world: World) -> Iterator[Finding]:
    sight = entry.look(world)
    for about, reason in sight.missing:
        yield _blind(entry, Blind(about, reason), world)
    if sight.value is None:
        return
    for result in entry.decide(sight.value, world):
        if isinstance(result, Blind):
            yield _blind(entry, result, world)
        else:
            yield Finding(
                code=entry.doc.code,
                severity=entry.severity,
                about=shown(result.about),
                message=shown(result.message),
                evidence=shown(result.evidence),
                fix=escaped(result.fix or entry.doc.fix),
                blocks_from=entry.blocks_from,
            )


def _blocks(entry: Check, blind: Blind, world: World) -> int:
    """From which stage a blind spot blocks.

    How a controller is started is seen once it runs.  While every broker is in ZooKeeper mode none does what a
    controller says: so that is asked before the first broker is restarted, and not before a controller is started.
    """
    if entry.proof:
        return NEVER
    if not blind.reason.endswith(NOT_RUNNING.reason) or isinstance(world.configs, Unknown):
        return entry.blocks_from
    files = [world.configs.get(one.id) for one in world.inventory.brokers]
    nobody_obeys = bool(files) and all(
        isinstance(file, ConfigFile) and mode_of(file.values) is Mode.ZOOKEEPER for file in files
    )
    if nobody_obeys and phase_of(world) is Phase.BEFORE_COPY:
        return max(entry.blocks_from, int(Stage.MIGRATION_MODE))
    return entry.blocks_from


def _blind(entry: Check, blind: Blind, world: World) -> Finding:
    return Finding(
        code=entry.doc.code,
        severity=Severity.BLIND_SPOT,
        about=shown(blind.about),
        message=f"not checked: {entry.doc.title}",
        evidence=shown(processes.unseen_by_stop(world, blind.about, blind.reason)),
        fix=f"let the tool see {shown(blind.about)}, then run the same command again",
        blocks_from=_blocks(entry, blind, world),
    )


def _capped(entry: Check, found: list[Finding]) -> list[Finding]:
    """All blind spots, and the first kinds of hits, each on many nodes: more of them are one line with their number."""
    blind = [finding for finding in found if finding.severity is Severity.BLIND_SPOT]
    hits = [finding for finding in found if finding.severity is not Severity.BLIND_SPOT]
    if len(hits) <= SHOWN:
        return [*hits, *blind]
    kinds: dict[object, int] = {}
    kept = []
    for at, hit in enumerate(hits):
        key = group_key(hit) or at
        if key in kinds or len(kinds) < SHOWN:
            kinds[key] = kinds.get(key, 0) + 1
            if kinds[key] <= SHOWN_ALIKE:
                kept.append(hit)
    more, doc = len(hits) - len(kept), entry.doc
    rest = Finding(doc.code, entry.severity, f"{more} more", doc.title, "", doc.fix, entry.blocks_from)
    return [*kept, *([rest] if more else []), *blind]


def shown(text: str) -> str:
    """Text fit for a terminal and a log: control characters escaped, never endless."""
    text = escaped(text)
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "..."


def escaped(text: str) -> str:
    """The same, whole, however long: a remedy is carried out as printed."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
