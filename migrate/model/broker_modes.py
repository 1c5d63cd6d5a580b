"""Which mode a broker is in, and which controllers lack the migration flag (pure).

The one rule for the plan forward, the rollback, its readiness and `status`.  A file decides the next start alone; what
runs now is what the process was started with, and where that is not known, what the cluster sees of it: KRaft metadata
has an unfenced registration of a broker that sends heartbeats (`BrokerLifecycleManager`), and `/brokers/ids` has each
broker in ZooKeeper mode and in migration mode (`KafkaServer`), and none in KRaft mode.

A controller without the flag finalizes the migration as soon as it is elected, whatever mode the brokers are in
(KAFKA-20960).  The tag `ZkMigrationReady` in ApiVersions is what the process was started with, and
`RegisterControllerRecord.zkMigrationReady` what the metadata last heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties
from migrate.model.kafka_values import entries, truth
from migrate.model.outcome import Unknown
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    ControllerRegistration,
    MetaProperties,
    NodeAnswer,
    NoFile,
    NoZnode,
    Registration,
    Running,
    Stopped,
)
from migrate.model.world import World


class Mode(StrEnum):
    """The three modes of a broker, in the order of the migration; plans and journals hold the values."""

    ZOOKEEPER = "zookeeper"
    MIGRATION = "migration"
    KRAFT = "kraft"

    @property
    def words(self) -> str:
        return {"zookeeper": "ZooKeeper mode", "migration": "migration mode", "kraft": "KRaft mode"}[self.value]


class ControllerMode(StrEnum):
    """What a node's file makes of it that is no broker of a migration."""

    FLAGGED = "controller"  # with the migration flag, as every controller before finalize
    FINALIZED = "finalized"  # a controller without the flag
    COMBINED = "combined"  # broker and controller in one process: no migration has it


ORDER: Final = tuple(Mode)
SUPER_USERS: Final = "super.users"


def roles_of(values: Mapping[str, str]) -> frozenset[str]:
    """process.roles; empty in ZooKeeper mode."""
    return frozenset(entries(values.get("process.roles", "")))


def mode_of(values: Mapping[str, str]) -> Mode:
    if roles_of(values):
        return Mode.KRAFT
    return Mode.MIGRATION if has_flag(values) else Mode.ZOOKEEPER


def restarted(values: Mapping[str, str], added: AddedProperties | None) -> Mapping[str, str]:
    """A broker's values once it was restarted: what the inventory adds is in them."""
    return values if added is None or mode_of(values) is not Mode.ZOOKEEPER else with_added(values, added.values)


def with_added(values: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """A node's values with those that are added to them; super users join the ones that are there."""
    merged = {**values, **added}
    if SUPER_USERS in values and SUPER_USERS in added:
        users = dict.fromkeys(user.strip() for each in (values, added) for user in each[SUPER_USERS].split(";"))
        merged[SUPER_USERS] = ";".join(user for user in users if user)
    return merged


def node_mode(values: Mapping[str, str]) -> Mode | ControllerMode:
    roles = roles_of(values)
    if roles == {"controller"}:
        return ControllerMode.FLAGGED if has_flag(values) else ControllerMode.FINALIZED
    return mode_of(values) if roles <= {"broker"} else ControllerMode.COMBINED


@dataclass(frozen=True, slots=True)
class BrokerPosition:
    """One broker.  `process` is what runs, or Stopped, or Unknown where nothing proves it.

    `may_run` has every mode that the evidence leaves open for a process that runs; `registered` is its registration in
    the KRaft metadata, which outlives the process; `same_file`: the process is known to have been started with the
    file as it is now.
    """

    broker: NodeId
    file: Mode | Unknown
    process: Mode | Stopped | Unknown
    may_run: frozenset[Mode]
    registered: Mode | None
    same_file: bool

    @property
    def running(self) -> bool:
        return bool(self.may_run) and not isinstance(self.process, Stopped)

    @property
    def now(self) -> Mode | Unknown:
        """The mode that it is in: its process's; of a stopped broker the one in which it would start."""
        return self.file if isinstance(self.process, Stopped) else self.process

    @property
    def furthest(self) -> Mode | Unknown:
        """How far a rollback has to bring it back: by file, process and registration, whichever is further.

        Unknown where it may run in KRaft mode and nothing else says so: its rollback differs from the others'.
        """
        if self.file is Mode.KRAFT:
            return Mode.KRAFT
        if isinstance(self.process, Unknown) and Mode.KRAFT in self.may_run:
            return self.process
        known = [mode for mode in (self.file, *self.may_run) if isinstance(mode, Mode)]
        if self.registered is Mode.KRAFT and self.running:  # the controllers must see it leave KRaft mode
            known.append(Mode.KRAFT)
        if not known and self.registered is not None:
            known.append(self.registered)
        return max(known, key=ORDER.index) if known else Unknown(f"broker {int(self.broker)}: nothing says its mode")

    @property
    def changed(self) -> bool:
        """Does a process run that is not known to have been started with the file as it is?"""
        return self.running and not self.same_file

    def settled(self, mode: Mode) -> bool:
        """Is its file of that mode, and its process too, if one lives?"""
        return self.file is mode and (isinstance(self.process, Stopped) or self.process is mode)

    @property
    def contradiction(self) -> str:
        """The sentence for a broker whose file is of another mode than its process; "" for any other."""
        if not isinstance(self.file, Mode) or not self.running or self.process is self.file:
            return ""
        who, then = f"broker {int(self.broker)}", f"its file says {self.file.words}"
        if isinstance(self.process, Mode):
            return f"{who} runs in {self.process.words}; {then}: it needs a restart"
        if self.same_file or self.file in self.may_run:
            return ""
        modes = " or ".join(mode.words for mode in ORDER if mode in self.may_run)
        return f"{who} runs in {modes}; {then}: it needs a restart"


def positions(world: World) -> tuple[BrokerPosition, ...]:
    return tuple(position_of(world, node.id) for node in world.inventory.brokers)


def position_of(world: World, broker: int) -> BrokerPosition:
    node = NodeId(broker)
    file = world.configs if isinstance(world.configs, Unknown) else world.configs.get(node)
    state = Unknown("not looked at") if isinstance(world.services, Unknown) else world.services.get(node)
    mode = _mode_of_file(file, broker)
    entry = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node)
    registered = None if entry is None else Mode.MIGRATION if entry.migrating else Mode.KRAFT
    if isinstance(state, Stopped):
        return BrokerPosition(node, mode, state, frozenset(), registered, same_file=False)
    if not isinstance(state, Running):
        reason = state.reason if isinstance(state, Unknown) else "not looked at"
        live = _live(entry)
        process = live or Unknown(f"whether broker {broker} runs is not known: {reason}")
        return BrokerPosition(node, mode, process, frozenset({live} if live else ()), registered, same_file=False)
    same = isinstance(file, ConfigFile) and state.config_sha256 == file.sha256
    may_run = _may_run(world, node, mode, entry, same=same)
    if len(may_run) == 1:
        return BrokerPosition(node, mode, next(iter(may_run)), may_run, registered, same_file=same)
    modes = " or ".join(one.words for one in ORDER if one in may_run)
    unsure = Unknown(f"broker {broker} may run in {modes}: nothing proves which file its process was started with")
    return BrokerPosition(node, mode, unsure, may_run, registered, same_file=same)


def _mode_of_file(file: object, broker: int) -> Mode | Unknown:
    if isinstance(file, Unknown):
        return Unknown(f"the file of broker {broker} cannot be read: {file.reason}")
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {broker} was not found")
    if roles_of(file.values) - {"broker"}:
        return Unknown(f"{file.path} has process.roles={file.values['process.roles']}: no broker of a migration")
    return mode_of(file.values)


def _may_run(
    world: World, node: NodeId, file: Mode | Unknown, entry: Registration | None, *, same: bool
) -> frozenset[Mode]:
    if same and isinstance(file, Mode):
        return frozenset({file})
    live = _live(entry)
    if live is not None:
        return frozenset({live})
    session = None if isinstance(world.zookeeper, Unknown) else node in world.zookeeper.brokers
    if session is None:
        return frozenset(Mode)
    if not session:  # KRaft mode, or a process that is only just starting
        return frozenset({Mode.KRAFT} | ({file} if isinstance(file, Mode) else set()))
    if never_with_flag(world, node):
        return frozenset({Mode.ZOOKEEPER})
    if isinstance(world.kraft, Unknown):
        sure = file is Mode.ZOOKEEPER and _no_quorum(world)
    else:
        sure = entry is None and file is not Mode.MIGRATION  # one whose file has the flag may be starting
    return frozenset({Mode.ZOOKEEPER} if sure else {Mode.ZOOKEEPER, Mode.MIGRATION})


def _live(entry: Registration | None) -> Mode | None:
    """The mode of a broker that sends heartbeats to the controllers."""
    if entry is None or entry.fenced:
        return None
    return Mode.MIGRATION if entry.migrating else Mode.KRAFT


def _no_quorum(world: World) -> bool:
    """Is it known that there are no controllers to register with?  A rollback sets their files aside last of all."""
    if isinstance(world.configs, Unknown) or isinstance(world.zookeeper, Unknown):
        return False
    files = [world.configs.get(node.id) for node in world.inventory.controllers]
    return isinstance(world.zookeeper.migration, NoZnode) and all(isinstance(file, NoFile) for file in files)


def never_with_flag(world: World, node: NodeId) -> bool:
    """Is it known that no process of it ever started with the flag?  A start with it writes directory.id everywhere."""
    disks = None if isinstance(world.disks, Unknown) else world.disks.get(node)
    if not isinstance(disks, BrokerDisks) or not disks.directories:
        return False
    return all(
        isinstance(entry.meta, MetaProperties) and entry.meta.directory_id is None for entry in disks.directories
    )


FLAG: Final = "zookeeper.metadata.migration.enable"


def has_flag(values: Mapping[str, str]) -> bool:
    return truth(values, FLAG)


@dataclass(frozen=True, slots=True)
class ControllerFlag:
    """Whether one controller has the flag, by each source: True, False, or why it is not known."""

    node: int
    file: bool | NoFile | Unknown
    path: str
    answer: bool | Unknown
    registered: bool | Unknown | None  # None: the metadata does not know it


def flag_of(world: World, node: int) -> ControllerFlag:
    node_id = NodeId(node)
    unread = Unknown(f"the file of controller {node} was not read")
    file = world.configs if isinstance(world.configs, Unknown) else world.configs.get(node_id, unread)
    unasked = Unknown(f"controller {node} was not asked")
    answer = world.live if isinstance(world.live, Unknown) else world.live.controllers.get(node_id, unasked)
    entry = world.kraft if isinstance(world.kraft, Unknown) else world.kraft.controllers.get(node_id)
    return ControllerFlag(
        node=node,
        file=has_flag(file.values) if isinstance(file, ConfigFile) else file,
        path="" if isinstance(file, Unknown) else file.path,
        answer=answer.migration_flag if isinstance(answer, NodeAnswer) else answer,
        registered=entry.migration_ready if isinstance(entry, ControllerRegistration) else entry,
    )


def controller_flags(world: World) -> tuple[ControllerFlag, ...]:
    return tuple(flag_of(world, int(node.id)) for node in world.inventory.controllers)
