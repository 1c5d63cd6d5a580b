"""What a run may do on a node's host, as tried there: how many commands it needs, and those that are refused."""

from __future__ import annotations

from dataclasses import dataclass


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
