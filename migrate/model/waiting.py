"""Why a migration waits: what it waits for, who owns that, the cause with its evidence, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import NodeAnswer


@dataclass(frozen=True, slots=True)
class WaitDoc:
    """What is said of a code of a wait, whatever the cluster: for `explain` and for docs/stuck.md.

    `driver` is the state of Kafka's migration driver in which it stands still; `line` what its log says then.
    """

    code: str
    title: str
    driver: str
    line: str
    why: str
    fix: str
    by_itself: str
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason why the migration does not go on.

    `nodes` are the brokers or controllers that it is about; a `cause` that is Unknown says why it cannot be told.
    """

    code: str
    waits_for: str
    owner: str
    cause: str | Unknown
    next_step: str
    by_itself: str
    evidence: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at beyond a World, to make an explanation firmer: addresses to ask, nodes whose logs to read."""

    addresses: tuple[str, ...] = ()
    logs: tuple[NodeId, ...] = ()
    reporters: tuple[NodeId, ...] = ()  # KRaft brokers that have directories to report


@dataclass(frozen=True, slots=True)
class Report:
    """What a KRaft broker shows of its AssignReplicasToDirs.

    `queued` is QueuedReplicaToDirAssignments, `later` how many replicas a second look still missed, `log` the lines of
    its log about such requests.
    """

    queued: int | Unknown
    later: int | Unknown
    log: tuple[str, ...] | Unknown


@dataclass(frozen=True, slots=True)
class Clues:
    """What was seen there.  Addresses without an entry were not asked; a log is the end of it, line by line."""

    addresses: Mapping[str, NodeAnswer | Unknown] = field(default_factory=dict)
    logs: Mapping[NodeId, tuple[str, ...] | Unknown] = field(default_factory=dict)
    reports: Mapping[NodeId, Report] = field(default_factory=dict)


NO_CLUES: Final = Clues()
