"""Findings that are the same for several nodes, as one finding with the list of them (pure).

Only readers are given them so: a step's gates look at each node's own finding (`migrate.checks.run`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from migrate.model.findings import Finding

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


def one_per_kind(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with those that differ in their node alone as one, at the place of the first."""
    groups: dict[object, list[Finding]] = {}
    for at, finding in enumerate(findings):
        groups.setdefault(group_key(finding) or at, []).append(finding)
    return tuple(_one(group) if len(group) > 1 else group[0] for group in groups.values())


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
    nodes = _nodes(where)
    return replace(
        first,
        about=_about(group, where, nodes),
        message=_of_all(_without_node(first.message, where[0]), where[0].kind, nodes),
        fix=_of_all(_without_node(first.fix, where[0]), where[0].kind, nodes),
        evidence=_evidence(group, where, nodes),
        objects=tuple(entry.about for entry in group),
    )


def _nodes(where: Sequence[_Place]) -> str:
    """`broker 1`, `brokers 0-2, 7`."""
    ids = {place.id for place in where}
    return f"{where[0].kind}{'s' if len(ids) > 1 else ''} {ranges(ids)}"


def _about(group: Sequence[Finding], where: Sequence[_Place], nodes: str) -> str:
    """All nodes, where what follows is the same for each; else each place, or how many there are."""
    before = where[0].before
    if before.endswith("/config/brokers/"):
        return f"{before}{OWN_ID} of {nodes}"
    after = _same([place.after for place in where], where)
    if after is not None:
        each = (
            "each of " if before and after.startswith((" ", "'")) else ""
        )  # `what each of brokers 0-2 says of itself`
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
        about[: found.start()],
        found["kind"] or "broker",
        int(found["id"] or found["znode"]),
        about[found.end() :],
    )


def _without_node(text: str, place: _Place) -> str:
    named = f"{place.kind} {place.id}"  # one pattern for all: compiling one for each of 100,000 nodes takes minutes
    return _NAMED.sub(lambda found: f"{place.kind} {OWN_ID}" if found[0] == named else found[0], text)


def _of_all(text: str, kind: str, nodes: str) -> str:
    return text.replace(f"{kind} {OWN_ID}", nodes)
