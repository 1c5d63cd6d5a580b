"""What a run may do on a node's host, as asked there: how many commands it needs, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown


@dataclass(frozen=True, slots=True)
class Refused:
    """One reason, for any number of commands: what is wrong, and what to do."""

    what: str
    advice: str
    denied: bool = False  # by the host program or sudo: installed otherwise, no run could go to its end


@dataclass(frozen=True, slots=True)
class HostRights:
    """Of one node: `tried` commands on `host`; nothing is refused where all of them are allowed."""

    host: str
    tried: int
    refused: tuple[Refused, ...] = ()


def denied(rights: Mapping[NodeId, HostRights | Unknown]) -> Iterator[tuple[str, str]]:
    """(what, advice) of every command that the host program or sudo refuses, by node.

    A host that does not answer is no refusal.
    """
    for node, found in sorted(rights.items()):
        if isinstance(found, Unknown):
            continue
        for entry in found.refused:
            if entry.denied:
                yield f"node {int(node)} on {found.host}: {entry.what}", entry.advice
