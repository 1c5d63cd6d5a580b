"""The eleven stages of a migration, in order (design: a plan before, a proof after, a rollback until the last).

Two more stand behind them, each in a plan of its own: a KRaft cluster gets more log directories; brokers get the
inter.broker.protocol.version that a migration begins with.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Stage(IntEnum):
    """Stages as operators name them; the number is their order."""

    DISCOVER = 0
    ASSESS = 1
    PREPARE = 2
    CONTROLLERS = 3
    MIGRATION_MODE = 4
    COPY = 5
    HYBRID = 6
    KRAFT_MODE = 7
    SOAK = 8
    FINALIZE = 9
    CLEANUP = 10
    DIRECTORIES = 11
    PROTOCOL = 12

    @property
    def label(self) -> str:
        """The name in playbooks and on the command line: `migration-mode`."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def from_label(cls, label: str) -> Stage:
        """The stage of that name; KeyError for any other."""
        return cls[label.upper().replace("-", "_")]

    @property
    def reversible(self) -> bool:
        """Is a rollback possible once the stage has begun?"""
        return self not in (Stage.FINALIZE, Stage.CLEANUP)


ACTING: Final = frozenset(  # stages that change something; the others look, watch and prove
    {
        Stage.PREPARE,
        Stage.CONTROLLERS,
        Stage.MIGRATION_MODE,
        Stage.KRAFT_MODE,
        Stage.FINALIZE,
        Stage.CLEANUP,
        Stage.DIRECTORIES,
        Stage.PROTOCOL,
    }
)
MIGRATION: Final = tuple(stage for stage in Stage if stage <= Stage.CLEANUP)


class ZkMigrationState(IntEnum):
    """`ZkMigrationState` of the metadata log (`MD/metadata/migration/ZkMigrationState.java`, since 3.5)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3


class DirectoryPolicy(IntEnum):
    """May we send AssignReplicasToDirs for a broker (`drive`), or do we only watch (`observe`)?"""

    OBSERVE = 0
    DRIVE = 1
