"""Findings of checks, the verdict that rests on them, and why a migration waits.

Readers are given findings that are the same for several nodes as one; a step's gates look at each node's own
(`migrate.checks.run`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import NodeAnswer
from migrate.model.words import counted, plural

NAMED: Final = 8  # codes of checks that were not made, in a sentence


class Severity(StrEnum):
    """B blocks, W warns, I informs; a blind spot is something that could not be checked, and never counts as a pass."""

    BLOCKER = "B"
    WARNING = "W"
    INFO = "I"
    BLIND_SPOT = "?"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.  `code` is severity-area-number (`B-ZKN-01`); `about` names znode, file, broker."""

    code: str
    severity: Severity
    about: str
    message: str
    evidence: str = ""
    fix: str = ""
    blocks_from: int = 0  # number of the first stage that this finding blocks (blockers and blind spots)
    objects: tuple[str, ...] = ()  # of one that is the same for several nodes (`one_per_kind`): each of them
    behind: tuple[str, ...] = ()  # `CODE object` of each finding that this one is the cause of (`one_per_kind`)


@dataclass(frozen=True, slots=True)
class CodeDoc:
    """What `explain CODE` and the generated page say of a code; `blocks` are the stages, in words."""

    code: str
    title: str
    why: str
    fix: str
    source: str
    blocks: str


class Word(StrEnum):
    """The verdicts on a cluster and on a plan, worst first.  JSON has these values."""

    BLOCKED = "BLOCKED"
    INCOMPLETE = "INCOMPLETE"
    WARNINGS = "READY WITH WARNINGS"
    READY = "READY"
    NO_CHANGES = "NO CHANGES"


@dataclass(frozen=True, slots=True)
class Share:
    """How many checks belong to the cluster's phase, and the codes of those that were not made in full."""

    asked: int
    not_made: tuple[str, ...]

    @property
    def made(self) -> int:
        return self.asked - len(self.not_made)

    def __str__(self) -> str:
        if not self.not_made:
            return f"{self.made} of {self.asked} checks made"
        more = f" and {len(self.not_made) - NAMED} more" if len(self.not_made) > NAMED else ""
        named = ", ".join(self.not_made[:NAMED])
        return f"{self.made} of {self.asked} checks made; {len(self.not_made)} could not: {named}{more}"


def blocks(entry: Finding, target: int) -> bool:
    """Return whether the finding blocks the stage `target`: a blocker of it, or a blind spot that may hide one."""
    return entry.severity in (Severity.BLOCKER, Severity.BLIND_SPOT) and entry.blocks_from <= target


def share(asked: int, findings: Iterable[Finding]) -> Share:
    """Return which of so many checks were made; those that can block come first among the others."""
    blind = {entry.code: entry.blocks_from for entry in findings if entry.severity is Severity.BLIND_SPOT}
    return Share(asked, tuple(sorted(blind, key=lambda code: (blind[code] > max(Stage), code))))


def decide(findings: Sequence[Finding], target: int = max(Stage)) -> Word:
    """Decide what may be said of a cluster on its way to the stage `target`, by default the last one.

    BLOCKED: a blocker of one of these stages was found.  INCOMPLETE: no blocker was found, and a check that could find
    one was not made in full.  So READY rests on every check that can block, made on every node.  What such a check
    leaves to the proof of a step (`blocks_from` is above every stage) is asked there.
    """
    blocking = {entry.severity for entry in findings if blocks(entry, target)}
    if Severity.BLOCKER in blocking:
        return Word.BLOCKED
    if Severity.BLIND_SPOT in blocking:
        return Word.INCOMPLETE
    return Word.READY if all(entry.severity is Severity.INFO for entry in findings) else Word.WARNINGS


FOLLOWS: Final[Mapping[str, Mapping[str, str]]] = {
    # cause -> what a broker also shows because of it: words in its message or evidence
    "B-DIR-01": {"B-DIR-17": "", "B-DIR-10": "registered and not", "B-DIR-08": "NOT ON DISK", "B-DIR-13": ""},
}
Key = tuple[str, str, int, str, str, str, str]
OWN_ID: Final = "<id>"  # stands in a text for the node's own id
LISTED: Final = 100  # characters of a list of places; a longer one is counted
_NODE: Final = re.compile(
    r"(?:^|(?<= ))(?P<kind>broker|controller|node) (?P<id>\d+)\b|(?<=^/config/brokers/)(?P<znode>\d+)$"
)
_NAMED: Final = re.compile(r"\b(?:broker|controller|node) \d+\b")
_NUMBER: Final = re.compile(r"(\d+)")
_OF_A_NAME: Final = re.compile(r"([^\s\d]|\b(?:broker|controller|node) )$")  # before a number that may be an id


@dataclass(frozen=True, slots=True)
class _Place:
    """What a finding is about: `before` and `after` are the text around the node."""

    before: str
    kind: str
    id: int
    after: str


def group_key(finding: Finding) -> Key | None:
    """Return what findings have in common that differ in their node alone; None where it names no node."""
    place = _place(finding.about)
    if place is None:
        return None
    texts = (_without_node(finding.message, place), _without_node(finding.fix, place))
    return (finding.code, finding.severity.value, finding.blocks_from, place.before, place.kind, *texts)


def one_per_kind(
    findings: Iterable[Finding], down: Callable[[Finding], int | None] = lambda _: None
) -> tuple[Finding, ...]:
    """Return one finding per cause: what follows from a cause is behind it, what differs in its node alone is one.

    Each stands at the place of the first.  `down` is the broker without whose stop a finding would not be there.
    """
    groups: dict[object, list[Finding]] = {}
    for at, finding in enumerate(_by_cause(list(findings), down)):
        groups.setdefault(group_key(finding) or at, []).append(finding)
    return tuple(_one(group) if len(group) > 1 else group[0] for group in groups.values())


def _by_cause(findings: Sequence[Finding], down: Callable[[Finding], int | None]) -> Iterator[Finding]:
    """The findings without those that follow from another one of the same broker, which has them behind it.

    The first of several causes on a broker has them: nothing tells which of two dead disks a replica was on.  What is
    found because a broker is down is behind its dead disk, or else behind the first of them.
    """
    causes: dict[int, int] = {}
    for at, finding in enumerate(findings):
        if finding.code in FOLLOWS and finding.severity is not Severity.BLIND_SPOT and (place := _place(finding.about)):
            causes.setdefault(place.id, at)
    stopped = {at: node for at, finding in enumerate(findings) if (node := down(finding)) is not None}
    itself = [
        at for at, node in stopped.items() if findings[at].about == f"broker {node}"
    ]  # it says more than others do
    first_of = {stopped[at]: at for at in reversed([*itself, *stopped])} | causes
    behind: dict[int, list[Finding]] = {at: [] for at in first_of.values()}
    dead = {finding.about for finding in findings if finding.code in FOLLOWS}
    rest: list[int] = []
    for at, finding in enumerate(findings):
        if at in stopped and (head := first_of[stopped[at]]) != at:
            behind[head].append(finding)
            continue
        place = _place(finding.about) if causes else None
        cause = None if place is None or place.before else causes.get(place.id)
        words = None if cause is None else FOLLOWS[findings[cause].code].get(finding.code)
        seen = f"{finding.message} {finding.evidence}"
        own = finding.code != "B-DIR-17" or finding.about in dead  # a directory that is whole may be offline as well
        if cause is None or words is None or words not in seen or not own or finding.severity is Severity.BLIND_SPOT:
            rest.append(at)
        else:
            behind[cause].append(finding)
    for at in rest:
        found = behind.get(at, [])
        first = min([findings[at].blocks_from, *(one.blocks_from for one in found)])
        told = tuple(f"{one.code} {one.about}" for one in found)
        yield replace(findings[at], blocks_from=first, behind=told) if found else findings[at]


def behind_words(finding: Finding) -> str:
    """`42 findings follow from it: 40 B-DIR-13, 2 B-DIR-17`; nothing where none does."""
    if not finding.behind:
        return ""
    codes = Counter(entry.partition(" ")[0] for entry in finding.behind)
    return f"{plural(len(finding.behind), 'finding')} behind it: {counted(codes)}"


def places(finding: Finding) -> str:
    """Return every place of a finding whose `about` only counts them; nothing where it names them all."""
    counted = finding.about.endswith(_counted(finding.objects))
    return "; ".join(finding.objects) if counted else ""


def ranges(numbers: Iterable[int]) -> str:
    """`0-2, 7`: numbers in order, neighbours as a range."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _one(group: Sequence[Finding]) -> Finding:
    where = [place for place in map(_place, (entry.about for entry in group)) if place is not None]
    first = group[0]
    ids = {place.id for place in where}
    nodes = f"{where[0].kind}{'s' if len(ids) > 1 else ''} {ranges(ids)}"  # `broker 1`, `brokers 0-2, 7`
    return replace(
        first,
        about=_about(group, where, nodes),
        message=_of_all(_without_node(first.message, where[0]), where[0].kind, nodes),
        fix=_of_all(_without_node(first.fix, where[0]), where[0].kind, nodes),
        evidence=_evidence(group, where, nodes),
        objects=tuple(entry.about for entry in group),
        behind=tuple(entry for one in group for entry in one.behind),
    )


def _about(group: Sequence[Finding], where: Sequence[_Place], nodes: str) -> str:
    """All nodes, where what follows is the same for each; else each place, or how many there are."""
    before = where[0].before
    if before.endswith("/config/brokers/"):
        return f"{before}{OWN_ID} of {nodes}"
    after = _same([place.after for place in where], where)
    if after is not None:
        # `what each of brokers 0-2 says of itself`
        each = "each of " if before and after.startswith((" ", "'")) else ""
        return f"{before}{each}{nodes}{after}"
    listed = "; ".join(entry.about for entry in group)
    return listed if len(listed) <= LISTED else f"{before}{nodes}{_counted(group)}"


def _counted(group: Sequence[object]) -> str:
    return f" ({len(group)} places)"


def _evidence(group: Sequence[Finding], where: Sequence[_Place], nodes: str) -> str:
    """What was seen, where it is the same for each; else what was seen of each."""
    same = _same([entry.evidence for entry in group], where)
    if same is not None:
        return _of_all(same, where[0].kind, nodes)
    told = [(f"{place.kind} {place.id}", entry.evidence) for place, entry in zip(where, group, strict=True)]
    return "; ".join(f"{node}: {evidence}" for node, evidence in told if evidence)


def _same(texts: Sequence[str], where: Sequence[_Place]) -> str | None:
    """The text that all of them are, perhaps but for each node's own id in a name or a path."""
    split = [_NUMBER.split(text) for text in texts]
    if len(set(map(len, split))) > 1:
        return None
    ids = tuple(str(place.id) for place in where)
    told = ""
    for pieces in zip(*split, strict=True):
        if len(set(pieces)) == 1:
            told += pieces[0]
        elif pieces == ids and _OF_A_NAME.search(told):
            told += OWN_ID
        else:
            return None
    return told


def _place(about: str) -> _Place | None:
    found = _NODE.search(about)
    if found is None:
        return None
    return _Place(
        about[: found.start()], found["kind"] or "broker", int(found["id"] or found["znode"]), about[found.end() :]
    )


def _without_node(text: str, place: _Place) -> str:
    named = f"{place.kind} {place.id}"  # one pattern for all: compiling one for each of 100,000 nodes takes minutes
    return _NAMED.sub(lambda found: f"{place.kind} {OWN_ID}" if found[0] == named else found[0], text)


def _of_all(text: str, kind: str, nodes: str) -> str:
    return text.replace(f"{kind} {OWN_ID}", nodes)


@dataclass(frozen=True, slots=True)
class WaitDoc:
    """What is said of a code of a wait, whatever the cluster: for `explain` and for docs/stuck.md."""

    code: str
    title: str
    driver: str  # the state in which Kafka's migration driver stands still
    line: str  # what its log says then
    why: str
    fix: str
    by_itself: str
    source: str
    blocks: str = ""  # as every code answers: no stage


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason why the migration does not go on."""

    code: str
    waits_for: str
    owner: str
    cause: str | Unknown  # Unknown: why it cannot be determined
    next_step: str
    by_itself: str
    evidence: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()  # brokers or controllers that it is about
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at beyond a World, to make an explanation firmer: addresses to ask, nodes whose logs to read."""

    addresses: tuple[str, ...] = ()
    logs: tuple[NodeId, ...] = ()
    reporters: tuple[NodeId, ...] = ()  # KRaft brokers that have directories to report


@dataclass(frozen=True, slots=True)
class Report:
    """What a KRaft broker shows of its AssignReplicasToDirs."""

    queued: int | Unknown  # QueuedReplicaToDirAssignments
    later: int | Unknown  # replicas that a second look still missed
    log: tuple[str, ...] | Unknown  # the lines of its log about such requests


@dataclass(frozen=True, slots=True)
class Clues:
    """What was seen there.  Addresses without an entry were not asked; a log is the end of it, line by line."""

    addresses: Mapping[str, NodeAnswer | Unknown] = field(default_factory=dict)
    logs: Mapping[NodeId, tuple[str, ...] | Unknown] = field(default_factory=dict)
    reports: Mapping[NodeId, Report] = field(default_factory=dict)


NO_CLUES: Final = Clues()
