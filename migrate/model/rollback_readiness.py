"""Rollback readiness: is a rollback possible now, what bars it, what does it cost, what must be proven of the metadata.

`Readiness` in `migrate.model.outcome` answers for one step; this answers for the whole rollback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Final

from migrate.model.columns import PartitionColumns
from migrate.model.difference import DifferenceName
from migrate.model.durations import Durations
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode, Pace
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, NoZnode, ZookeeperView, majority
from migrate.model.words import span


@dataclass(frozen=True, slots=True)
class MetadataLogs:
    """The controllers' metadata directories, read while no controller runs.

    `holders` are the controllers with a log or a snapshot; empty: nothing of a quorum lies there, and the rest says so.
    `end` is the committed end (exclusive), Unknown where the directories prove none.  `epoch` is the highest epoch
    that any of them knows.  `registered` are the brokers that the log knows, dead or alive.  `partitions` are those of
    the committed metadata, with their partition epochs.  `view` is the image at `end`; None where nothing of a quorum
    is there.  `formatted` are the voters with which each controller's directory was formatted for a dynamic quorum:
    ID@HOST:PORT:DIRECTORY of each, by id.  `voters` are the quorum's, empty where no log names them; of `counted` a
    log counts for a majority.
    """

    holders: tuple[int, ...] = ()
    end: int | Unknown = 0
    state: ZkMigrationState = ZkMigrationState.NONE
    epoch: int = -1
    registered: tuple[int, ...] = ()
    partitions: PartitionColumns = field(default_factory=PartitionColumns, repr=False)
    view: KraftView | None = field(default=None, repr=False)
    formatted: Mapping[NodeId, str] = field(default_factory=dict)
    voters: tuple[int, ...] = ()
    counted: tuple[int, ...] = ()

    @property
    def founding(self) -> Mapping[NodeId, str]:
        """Those of directories on which no controller ran."""
        return {node: voters for node, voters in self.formatted.items() if node not in self.holders}

    def lost(self, controllers: Sequence[ControllerNode]) -> tuple[int, ...]:
        """Voters without a log that counts, where too few have one: what a majority had committed is proven by nobody.

        A replaced controller has a log and no vote.  Where no log names the voters, they are the controllers.  () too
        where nothing of a quorum is left.
        """
        voters = self.voters or tuple(int(node.id) for node in controllers)
        without = tuple(node for node in voters if node not in (self.counted if self.voters else self.holders))
        few = bool(self.holders) and len(voters) - len(without) < majority(len(voters))
        return without if few and isinstance(self.end, Unknown) else ()


@dataclass(frozen=True, slots=True)
class Growing(Unknown):
    """Unknown, for a controller still writes its log.

    `rehearsed`: all the same they were read, by what will read them once no controller leads.
    """

    rehearsed: bool = False


def old_log(view: ZookeeperView, logs: MetadataLogs) -> str | None:
    """What a half-done rollback, or a copy that is stuck, has left of a quorum; None where /migration goes with it."""
    znode = view.migration
    if view.copy_note is not None:
        return None  # whether the log has made that copy is another rule's
    word = "absent" if isinstance(znode, NoZnode) else "without an offset"
    if logs.state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION):
        return f"the metadata of controllers {list(logs.holders)} says {logs.state.name}, /migration is {word}"
    if isinstance(znode, NoZnode) and logs.registered:
        known = f"knows brokers {list(logs.registered)}"
        return f"the metadata of controllers {list(logs.holders)} {known}, /migration is absent"
    return None


@dataclass(frozen=True, slots=True)
class StateBehind:
    """A `state` znode with a version below the partition epoch that the metadata has.

    ZooKeeper's controller takes the version for the partition epoch (`LeaderAndIsr.partitionEpoch`), and a broker
    ignores a LeaderAndIsr whose partition epoch is below the one that it knows (`Partition.makeLeader`,
    `makeFollower`).  KRaft counts one for each change, dual write writes several of them at once.
    """

    path: str
    version: int
    partition_epoch: int


GAP_SECONDS: Final = 30.0  # from the order to stop the last controller to the deletion of /controller, without the logs
READ_RATE: Final = 1e8  # bytes of stopped controllers' logs read in a second, all together: NoOps (docs/performance.md)
NOT_LOOKED_AT: Final = Unknown("backups were not looked at")


class RollbackWord(StrEnum):
    """The three answers.  READY: a rollback could begin now as planned.

    READY WITH WORK: it could begin, and something beside its ordinary steps has to be done.
    NOT READY: it cannot begin now, or it is not known that it can.
    """

    READY = "READY"
    READY_WITH_WORK = "READY WITH WORK"
    NOT_READY = "NOT READY"


class Weight(StrEnum):
    """What a reason does to the answer: a bar forbids, work has to be done, a note is only told."""

    BAR = "bar"
    WORK = "work"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: `name` is stable (`backup-differs`), `about` the object, `next_step` what an operator does."""

    weight: Weight
    name: str
    about: str
    what: str
    next_step: str = ""


SAID: Final[Mapping[Weight, str]] = {Weight.BAR: "blocked by", Weight.WORK: "needs", Weight.NOTE: "note"}


def reason_lines(reasons: Iterable[Reason]) -> Iterator[str]:
    """Each reason, and below it what to do, as `status` and plans print them; of several nodes at once if it is one."""
    for (weight, what, next_step), alike in groupby(reasons, lambda one: (one.weight, one.what, one.next_step)):
        about = _of_all([entry.about for entry in alike])
        yield f"{SAID[weight]}: {'' if what.startswith(f'{about}: ') else f'{about}: '}{what}"
        if next_step:
            yield f"  fix: {next_step}"


def _of_all(abouts: Sequence[str]) -> str:
    """`broker 0` and `broker 1` as `brokers 0, 1`; others side by side."""
    nodes = [about.split() for about in abouts]
    if len(abouts) > 1 and all(len(words) == 2 and words[0] == nodes[0][0] and words[1].isdecimal() for words in nodes):
        return f"{nodes[0][0]}s {', '.join(words[1] for words in nodes)}"
    return ", ".join(abouts)


@dataclass(frozen=True, slots=True)
class Measured:
    """A duration in seconds from the journals of runs on this cluster, and of how many it is the middle."""

    seconds: float
    samples: int


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A backup as it was looked at just now."""

    path: str
    problem: str = ""  # "" where it is whole and the one that was kept
    note: str = ""  # what the broker's file has besides that stays, where it was edited since


@dataclass(frozen=True, slots=True)
class RollbackFacts:
    """What journals and backups say, beside the world."""

    configs: Mapping[NodeId, KeptFile | Unknown] = field(
        default_factory=dict
    )  # ZooKeeper-mode files, of changed brokers
    zookeeper: KeptFile | Unknown = NOT_LOOKED_AT
    durations: Durations = field(default_factory=lambda: Durations(Pace().node_estimate))
    gap: Measured | None = None
    unflagged: tuple[int, ...] = ()  # controllers that a run started without the flag
    discarded: tuple[DifferenceName, ...] = ()  # differences that the rollback gives up by name


def gap_seconds(log_bytes: int) -> float:
    """Estimate the time without a controller, by the bytes of all controllers' logs, which are read once in it.

    The time to copy the logs from other hosts is not in it: it depends on the network.
    """
    return GAP_SECONDS + log_bytes / READ_RATE


@dataclass(frozen=True, slots=True)
class Cost:
    """What the rollback would take: `rolls` over the brokers, `restarts` of brokers in all, seconds, and the gap.

    `gap_seconds` is the time in which nobody is controller (no leader is elected then; leaders that live go on);
    it is in `p50` and `p90` where it is known.  `basis` says what each was taken from.
    """

    rolls: int
    restarts: int
    p50: float
    p90: float
    gap_seconds: float | Unknown
    basis: str

    @property
    def time(self) -> str:
        return f"about {span(self.p50, self.p90)}"

    @property
    def gap(self) -> str:
        """The time without a controller in words."""
        if isinstance(self.gap_seconds, Unknown):
            return f"unknown: {self.gap_seconds.reason}"
        return f"about {self.gap_seconds:.0f} s" if self.gap_seconds else "none"


@dataclass(frozen=True, slots=True)
class RollbackReadiness:
    """The answer."""

    word: RollbackWord
    origin: str  # where the rollback would start
    procedure: str
    reasons: tuple[Reason, ...]
    cost: Cost
    gone: bool = False  # no waiting and no work opens it again

    def of(self, weight: Weight) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if reason.weight is weight)

    @property
    def line(self) -> str:
        """The answer in one line, as journals and tables keep it: the word, the first reason, the cost."""
        first = [f"{entry.about}: {entry.what}" for entry in self.reasons if entry.weight is not Weight.NOTE][:1]
        cost = f"{self.cost.rolls} rolls, {self.cost.restarts} restarts, {self.cost.time}, "
        gap = self.cost.gap_seconds
        cost += f"{'an unknown time' if isinstance(gap, Unknown) else f'{gap:.0f} s'} without a controller"
        return "; ".join([f"{self.word} from {self.origin}", *first, *([] if self.gone else [cost])])
