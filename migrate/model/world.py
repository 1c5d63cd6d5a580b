"""The world as one step needs it: every part typed, or Unknown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from migrate.model.copied import CopyCheck, NoLook
from migrate.model.difference import DiffReport
from migrate.model.ensemble import Ensemble
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.launch import Launch, Listening, Unit
from migrate.model.ledger import Ledger
from migrate.model.listeners import Heard, StoreFile
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    KeptFiles,
    KraftView,
    LiveView,
    NoFile,
    ServiceState,
    ZookeeperView,
)


class Need(StrEnum):
    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"
    DISKS = "disks"
    LIVE = "live"
    CONFIGS = "configs"
    SERVICES = "services"
    LEDGER = "ledger"  # the pure rule
    SPARK_LEDGER = "spark-ledger"  # the same table from Spark, checked equal
    DIFF = "diff"  # Spark
    BACKUPS = "backups"  # copies of files that lie beside them on their hosts
    SESSIONS = "sessions"  # who else uses ZooKeeper: its servers are asked, as part of that view
    METADATA_LOGS = "metadata-logs"  # stopped controllers' logs on disk
    STATES_BEHIND = "states-behind"  # partition states in ZooKeeper, held to those logs
    NEW_DIRECTORIES = "new-directories"  # those that a DirectoryPlaybook names, before and after they are log.dirs
    LAUNCHES = "launches"  # command lines and environments of running nodes
    PORTS = "ports"  # what listens on the controllers' hosts
    HOST_RIGHTS = "host-rights"  # what each host's program says that it refuses
    LEFTOVERS = "leftovers"  # copies and what was set aside, on the nodes' hosts
    UNITS = "units"  # how long systemd lets each node's unit stop, and whether it starts at boot
    REHEARSAL = "rehearsal"  # what a rollback does while no controller leads, tried while one does; nothing is changed
    COPY = "copy"  # the last look at ZooKeeper before Kafka's copy, held against the metadata at the copy's end
    PROTOCOLS = "protocols"  # inter.broker.protocol.version, as each running broker itself says it
    APPLIED = "applied"  # the configuration that each running broker has, its dynamic one included, as it itself says
    STORES = "stores"  # the key stores and truststores that nodes start from, read as each node's user
    ISSUERS = "issuers"  # whether whoever issues the logins of nodes answers: KDC, and endpoints of tokens
    LISTENERS = "listeners"  # what each listener of the step's broker serves (of all, where no step asks)
    ENSEMBLE = "ensemble"  # ZooKeeper's servers, each by itself: who is connected, what else is stored
    CONTROLLER_NAMES = "controller-names"  # live, with each broker asked for its controller often enough for a proof


# Of the whole cluster, for a proof; the others are for plans, for rollbacks, or for what comes after
FOR_PROOFS: Final = frozenset(Need) - {
    *(Need.LEDGER, Need.REHEARSAL, Need.ENSEMBLE, Need.APPLIED, Need.LISTENERS, Need.STORES, Need.ISSUERS),
}


NOT_ASKED = Unknown("not asked for")
BROKER: Final = "broker"  # the fact: the broker that the step at hand is about


@dataclass(frozen=True, slots=True)
class World:
    """One observation.  What was not asked for, or could not be seen, is Unknown(reason)."""

    inventory: Inventory
    playbook: Playbook | Unknown = NOT_ASKED
    zookeeper: ZookeeperView | Unknown = NOT_ASKED
    kraft: KraftView | Unknown = NOT_ASKED
    disks: Mapping[NodeId, BrokerDisks | Unknown] | Unknown = NOT_ASKED
    live: LiveView | Unknown = NOT_ASKED
    configs: Mapping[NodeId, ConfigFile | NoFile | Unknown] | Unknown = NOT_ASKED
    services: Mapping[NodeId, ServiceState] | Unknown = NOT_ASKED
    ledger: Ledger | Unknown = NOT_ASKED
    diff: DiffReport | Unknown = NOT_ASKED
    backups: Mapping[NodeId, KeptFiles | Unknown] | Unknown = NOT_ASKED
    metadata_logs: MetadataLogs | Unknown = NOT_ASKED  # Unknown while a controller runs: it writes on
    states_behind: tuple[StateBehind, ...] | Unknown = NOT_ASKED
    new_directories: Mapping[NodeId, tuple[NewDirectory, ...] | Unknown] | Unknown = NOT_ASKED
    launches: Mapping[NodeId, Launch | Unknown] | Unknown = NOT_ASKED
    ports: Mapping[NodeId, tuple[Listening, ...] | Unknown] | Unknown = NOT_ASKED  # on controllers' hosts
    host_rights: Mapping[NodeId, HostRights | Unknown] | Unknown = NOT_ASKED  # none where the executor works no hosts
    units: Mapping[NodeId, Unit | Unknown] | Unknown = NOT_ASKED  # Unknown where nodes are no units that we can see
    leftovers: Mapping[NodeId, tuple[str, ...] | Unknown] | Unknown = NOT_ASKED  # paths: see `hosts.leftovers`
    rehearsal: str | Unknown = NOT_ASKED  # what ZooKeeper refuses of what a rollback changes in it; "" for nothing
    copy: CopyCheck | NoLook | Unknown = NOT_ASKED
    protocols: Mapping[NodeId, str | Unknown] | Unknown = NOT_ASKED  # of brokers, by DescribeConfigs
    applied: Mapping[NodeId, Mapping[str, str] | Unknown] | Unknown = NOT_ASKED  # by DescribeConfigs; no secrets
    ensemble: Ensemble | Unknown = NOT_ASKED
    issuers: Mapping[NodeId, tuple[str, ...] | Unknown] | Unknown = NOT_ASKED  # those that a node's start needs, away
    stores: Mapping[NodeId, tuple[StoreFile, ...] | Unknown] | Unknown = NOT_ASKED
    listeners: Mapping[NodeId, Heard | Unknown] | Unknown = NOT_ASKED  # of the broker in `facts[BROKER]`, else of all
    today: str = ""  # ISO date of the observation, by our clock; "" where nobody said: no acceptance holds then
    facts: Mapping[str, str] = field(default_factory=dict)  # what the run itself knows: paths of backups and the like

    @property
    def finalized(self) -> bool:
        """Is the metadata seen to say POST_MIGRATION?  Metadata that cannot be read is not: `kraft` says so."""
        return not isinstance(self.kraft, Unknown) and self.kraft.migration_state is ZkMigrationState.POST_MIGRATION

    @property
    def lost_logs(self) -> tuple[int, ...]:
        """Voters whose logs are lost, where too few are left to prove what was committed.

        Where nothing of a quorum is left that made a copy and still owns /controller, these are all controllers.
        """
        logs, view = self.metadata_logs, self.zookeeper
        if isinstance(logs, Unknown):
            return ()
        if logs.holders:
            return logs.lost(self.inventory.controllers)
        owned = not isinstance(view, Unknown) and view.kraft_owns and view.copy_note is not None
        return tuple(int(node.id) for node in self.inventory.controllers) if owned else ()

    @property
    def give_up(self) -> str:
        """The command that plans a rollback which discards, by name, each difference of now."""
        playbook = "PLAYBOOK" if isinstance(self.playbook, Unknown) else shlex.quote(self.playbook.path)
        return f"`kraft-migrate rollback plan {playbook} --discard-differences`"
