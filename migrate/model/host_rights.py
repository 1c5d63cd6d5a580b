"""What a run may do on a node's host, as tried there: how many commands it needs, and those that are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown

# purposes of `migrate.hosts.host_needs` that only some kinds of steps have; every other one is any step's
ASIDE: Final = frozenset({"set-controller-aside", "set-metadata-aside"})
ONLY_FOR: Final[Mapping[str, frozenset[str]]] = {
    "format its storage": frozenset({"format-controller"}),
    "make the metadata directory": frozenset({"format-controller", "render-controller"}),
    "set its file aside": ASIDE,
    "set its metadata aside": ASIDE,
    "format its new directories": frozenset({"add-directories"}),
    "enable the unit": frozenset({"enable-at-boot"}),
    "disable the unit": frozenset({"disable-at-boot"}),
}


@dataclass(frozen=True, slots=True)
class Refused:
    """One reason, whatever number of commands it holds for: what is wrong, what to do, and what they are needed for."""

    what: str
    advice: str
    purposes: tuple[str, ...] = ()
    denied: bool = False  # by sudo: a right, and no unit or file that is not there yet


@dataclass(frozen=True, slots=True)
class HostRights:
    """Of one node: `tried` commands on `host`; nothing is refused where all of them are allowed."""

    host: str
    tried: int
    refused: tuple[Refused, ...] = ()


def denied(rights: Mapping[NodeId, HostRights | Unknown], kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """(what, advice) of every command that steps of these kinds need and sudo refuses, by node.

    A host that does not answer is no refusal.
    """
    for node, found in sorted(rights.items()):
        if isinstance(found, Unknown):
            continue
        for entry in found.refused:
            needed = (purpose not in ONLY_FOR or ONLY_FOR[purpose] & {*kinds} for purpose in entry.purposes)
            if entry.denied and any(needed):
                yield f"node {int(node)} on {found.host}: {entry.what}", entry.advice
