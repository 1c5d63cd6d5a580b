"""What the protocol answers: moves that may be made now, something to wait for, or why it stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from tests.oracles.machine.standing import Mode


class Act(IntEnum):
    """One effect on the cluster.  The numbers are those that packed states keep."""

    RENDER = 1
    FORMAT = 2
    START_CONTROLLER = 3
    STOP_CONTROLLER = 4
    FLAG_OFF = 5  # write a controller's file without the flag
    FLAG_ON = 6
    STOP = 7
    TO_ZOOKEEPER = 8  # write a broker's file
    TO_MIGRATION = 9
    TO_KRAFT = 10
    START = 11
    ASSIGN = 12
    RAISE_EPOCH = 13
    DELETE_CONTROLLER = 14
    DELETE_MIGRATION = 15
    SET_ASIDE = 16
    RAISE_VERSIONS = 17  # of partition states

    @property
    def subject(self) -> str:
        """What it acts on: a broker, a controller or ZooKeeper."""
        if Act.STOP <= self <= Act.ASSIGN:
            return "broker"
        znodes = Act.RAISE_EPOCH <= self <= Act.DELETE_MIGRATION or self is Act.RAISE_VERSIONS
        return "zookeeper" if znodes else "controller"


WRITES = {Mode.ZOOKEEPER: Act.TO_ZOOKEEPER, Mode.MIGRATION: Act.TO_MIGRATION, Mode.KRAFT: Act.TO_KRAFT}


class Guard(Enum):
    """Each condition between a direction and an effect.  Tests switch one off and demand that it is missed."""

    STALE_MIGRATION = "a quorum is not started over a /migration that remembers a copy"
    UNKNOWN = "a metadata state that cannot be read is not read as a fresh one"
    LOCK = "the lock is asked again before each effect"
    FLAG = "every controller's file and process has the flag before anything is done"
    WHOLE = "no broker is stopped while another one is not whole"
    ZERO_DIFFERENCE = "the views are equal before the second roll and before finalize"
    LEDGER = "every replica is VERIFIED before the next broker is stopped and before finalize"
    ALL_KRAFT = "every broker is in KRaft mode before finalize"
    LEADER_LAST = "the active controller is restarted last"
    STALENESS = "a file that another hand changed makes the plan stale"
    DISKS = "a broker with a failed directory is not restarted"
    SESSION = "a broker is not started into the session that its last process left"
    CONTROLLERS_GONE = "/controller is not deleted while a KRaft controller runs"
    DUAL_WRITE = "a rollback stops the controllers when ZooKeeper was compared with the metadata, and is equal"
    VERSIONS = "partition states' versions are raised before /controller is deleted"
    EPOCH = "/controller_epoch is raised before /controller is deleted"
    MIGRATION_GONE = "the rollback deletes /migration before the controllers' metadata is set aside"
    BELIEF = "no broker is stopped while it believes in a controller that is gone"
    KRAFT_FIRST = "controllers are stopped only after every broker is back from KRaft mode"
    NO_RETURN = "there is no rollback once a controller has run without the flag"


EVERY = frozenset(Guard)
Guards = frozenset[Guard]


@dataclass(frozen=True, slots=True)
class Move:
    """An act on a node, by its index in the standing; -1 for ZooKeeper."""

    act: Act
    node: int = -1


@dataclass(frozen=True, slots=True)
class Moves:
    """Any one of these may be made now."""

    of: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done but to look again."""

    what: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A person is needed; `guard` is what stopped it, where one did."""

    why: str
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The goal of this direction is reached."""


Choice = Moves | Wait | Stop | Done


def on_each(act: Act, nodes: list[int]) -> Moves:
    """The same act on any of these nodes."""
    return Moves(tuple(Move(act, node) for node in nodes))
