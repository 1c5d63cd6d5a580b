"""Where a cluster stands, as far as the protocol of a migration decides by it: small, frozen, hashable.

A `Standing` is what can be seen of a cluster at one instant.  `tests.oracles.standing` makes one of a `World`, and the
explorer of the tests makes one of each of its states: both are held to the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Mode(IntEnum):
    """A broker's mode, of its file or of its process; DOWN is a process only."""

    DOWN = 0
    ZOOKEEPER = 1
    MIGRATION = 2
    KRAFT = 3


class Flag(IntEnum):
    """`zookeeper.metadata.migration.enable` of a controller; GONE: no file, or no process."""

    GONE = 0
    ON = 1
    OFF = 2


class Registered(IntEnum):
    """How the committed metadata knows a broker."""

    NOT = 0
    MIGRATING = 1
    KRAFT = 2


class Metadata(IntEnum):
    """`ZkMigrationState` of the committed metadata; UNKNOWN while no controller leads."""

    UNKNOWN = 0
    PRE_MIGRATION = 1
    MIGRATION = 2
    POST_MIGRATION = 3
    NONE = 4


class Znode(IntEnum):
    """`/migration`: COPIED is an offset above 0, whoever wrote it; NULL is null data."""

    ABSENT = 0
    WAITING = 1
    COPIED = 2
    NULL = 3


class Owner(IntEnum):
    """Who holds `/controller`."""

    NOBODY = 0
    ZOOKEEPER = 1
    KRAFT = 2


class Views(IntEnum):
    """ZooKeeper against the metadata: BEHIND is what dual write has not written yet, DIFFER what no rule excuses.

    UNSEEN: nobody compared them; after the controllers are gone, nobody may be able to.
    """

    EQUAL = 0
    BEHIND = 1
    DIFFER = 2
    UNSEEN = 3


@dataclass(frozen=True, slots=True, order=True)
class BrokerAt:
    """One broker.  `whole`: it answers and every replica of it is in its ISR; after a start, newly registered, too.

    `verified`: every ledger row of it is VERIFIED.  `ours`: its file is what the plan was made from, or wrote.
    `believes_kraft`: its Metadata answers do not name a ZooKeeper-mode controller.  `session_left`: its process is
    gone, its ZooKeeper session is not.
    """

    file: Mode
    process: Mode
    registered: Registered
    whole: bool
    verified: bool
    healthy: bool = True
    ours: bool = True
    believes_kraft: bool = False
    session_left: bool = False

    @property
    def half(self) -> bool:
        """Between a stop and a start, or with a file that its process was not started with."""
        return self.file is not self.process


@dataclass(frozen=True, slots=True, order=True)
class ControllerAt:
    """One controller: the flag of its file and of its process, its storage, and whether it is the active one.

    `returns`: its process is gone, and whoever owns it will start it again: a service that crashed and was not stopped.
    """

    file: Flag
    process: Flag
    formatted: bool
    leads: bool = False
    returns: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """The whole cluster.  `finalizing`: the journal says that finalize was begun by us.

    `epoch_low`: `/controller_epoch` is below KRaft's epoch in `/controller` (KAFKA-20488).  `versions_low`: a partition
    state's version is below the partition epoch that brokers know.  `old_log`: no controller
    runs, and their metadata tells of a copy or of brokers that `/migration` does not: a rollback is half done.
    """

    brokers: tuple[BrokerAt, ...]
    controllers: tuple[ControllerAt, ...]
    metadata: Metadata
    znode: Znode
    owner: Owner
    views: Views = Views.EQUAL
    epoch_low: bool = False
    versions_low: bool = False
    finalizing: bool = False
    old_log: bool = False

    @property
    def quorum_whole(self) -> bool:
        """Every controller runs, one of them leads."""
        return self.metadata is not Metadata.UNKNOWN and all(entry.process for entry in self.controllers)

    @property
    def any_controller_up(self) -> bool:
        """Does any controller's process live?"""
        return any(entry.process for entry in self.controllers)

    @property
    def flagless(self) -> bool:
        """Is there a controller whose file or process lacks the flag?"""
        return any(Flag.OFF in (entry.file, entry.process) for entry in self.controllers)
