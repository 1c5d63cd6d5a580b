"""The sources of the four views, opened when first asked and kept: one session, one reader, one Spark a run."""

from __future__ import annotations

import logging
import pathlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from migrate.errors import MetadataAwaited, MigrateError, ZookeeperDenied
from migrate.hosts import disks
from migrate.hosts.about import rights_of
from migrate.hosts.collected import Collected
from migrate.hosts.disks import CollectorDisks, Told, not_storing
from migrate.hosts.executors import HOSTS_AT_ONCE, executor_of
from migrate.hosts.launches import launch_of, listening
from migrate.hosts.leftovers import kept_files, leftovers
from migrate.hosts.own_commands import HostServices, own_unit_of
from migrate.hosts.properties import log_dirs, metadata_log_dir, read_config
from migrate.hosts.runner import unseen
from migrate.hosts.systemd import unit_of
from migrate.kafka import live
from migrate.kafka.connection import KeptConnections
from migrate.kafka.listeners import meet
from migrate.kafka.secrets import read_secret
from migrate.kraft.fetch import MetadataReader
from migrate.model.copied import CopyCheck, KeptTree, NoLook
from migrate.model.difference import SparkWhere
from migrate.model.ensemble import Ensemble
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory, Playbook
from migrate.model.kafka_values import REFERENCE
from migrate.model.launch import Launch, Listening, Unit
from migrate.model.listeners import Heard, StoreFile, not_applied
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Awaited, Unknown, unknown
from migrate.model.ports import LOG_LINES_DEEP
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import Growing, MetadataLogs, StateBehind
from migrate.model.secrets import Digester, is_password_config
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    KeptFiles,
    KraftView,
    LiveView,
    MigrationZnode,
    NoFile,
    PartlyRead,
    Running,
    ServiceState,
    ZookeeperView,
    whole_or_unknown,
)
from migrate.model.work import Work
from migrate.model.world import NOT_ASKED, Need
from migrate.observe.copy_check import BeforeCopy, CopyQuestion, check_copy
from migrate.observe.identities import (
    Issuers,
    started_with,
    stores_of,
    with_logins,
    with_subjects,
    with_zookeeper_clients,
)
from migrate.observe.metadata_logs import metadata_logs, states_behind
from migrate.observe.views import VIEWS, Node, View, node_view, view
from migrate.zookeeper.client import ZookeeperClient, access_of, connect, parse_connect_string
from migrate.zookeeper.ensemble import look_at_ensemble
from migrate.zookeeper.layout import TreeReader
from migrate.zookeeper.lock import LOCK_PATH, sessions
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.rate_limit import Pace
from migrate.zookeeper.read import Rereader, read_migration
from migrate.zookeeper.rights import require_rollback_rights

if TYPE_CHECKING:
    from migrate.diff.session import SparkHandle

LOG: Final = logging.getLogger("migrate.observe")
Seen = TypeVar("Seen")
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]
NO_ZOOKEEPER: Final = "the cluster is KRaft alone: no ZooKeeper is asked"


class Sources:
    """Where a cluster is looked at.  Nothing is opened before it is asked for; `close` closes what is open.

    `spark_folder` None means: no Spark in this process, diff and Spark's ledger are Unknown.
    """

    moves: ClassVar[bool] = True  # may another look see something else?

    def __init__(self, inventory: Inventory, playbook: Playbook | Unknown, spark_folder: pathlib.Path | None) -> None:
        # a DirectoryPlaybook is for clusters without ZooKeeper: what the inventory of a migrated one names is not asked
        without = not isinstance(playbook, Unknown) and playbook.of_directories
        self.inventory = replace(inventory, zookeeper="") if without else inventory
        self.playbook = playbook
        self.digester = Digester()
        self._executor = executor_of(inventory)
        self.files = self._executor.files
        self._disks = self._executor.disks
        self.services = self._executor.services
        if self._executor.witness is not None:
            self._executor.witness.fenced = self._is_fenced
        self.lock_on_host = None if self._executor.locks is None else self._executor.locks.take
        self._spark_folder = spark_folder
        self._spark: SparkHandle | None = None
        self._spark_is_lent = False
        self.spark_where = SparkWhere()
        self._zookeeper: ZookeeperClient | None = None
        self.pace = Pace(inventory.zookeeper_rate)
        self.work = Work()
        self._tree_again = Rereader(self.digester)
        self._reader: MetadataReader | None = None
        self._connections = KeptConnections()
        self._logs: tuple[object, MetadataLogs] | None = None
        self._collected: Mapping[NodeId, Collected] | None = None
        self.kept_look: Callable[[], KeptTree | None] | None = (
            None  # of a run: how it finds what was kept before the copy
        )
        self._issuers: set[str] = set()  # endpoints of tokens that have answered this process
        self._before_copy = BeforeCopy()
        self._copy_checked: CopyCheck | None = None
        self._lock = threading.Lock()

    def use_collected(self, collected: Mapping[NodeId, Collected]) -> None:
        """Take disks from the collector's files and look at none; the configuration in them stands for the nodes'."""
        self._collected = collected

    # -- opening and closing -----------------------------------------------------------------------------------------
    def zookeeper_client(self) -> ZookeeperClient:
        """The session with ZooKeeper; raises what `connect` raises."""
        with self._lock:
            if self._zookeeper is None:
                self._zookeeper = connect(
                    self.inventory.zookeeper, access=access_of(self.inventory.zookeeper_login), pace=self.pace
                )
            return self._zookeeper

    def forget_zookeeper(self) -> None:
        """Close the session; the next look opens another."""
        with self._lock:
            client, self._zookeeper = self._zookeeper, None
        if client is not None:
            client.close()

    def use_spark(self, handle: SparkHandle) -> None:
        """Take a session that another owns: `close` leaves it running."""
        self._spark, self._spark_is_lent = handle, True

    def start_spark(self) -> None:
        if self._spark is None and self._spark_folder is not None:
            from migrate.diff.session import SparkHandle

            self._spark_folder.mkdir(parents=True, exist_ok=True)
            self._spark = SparkHandle.start(self._spark_folder, self.spark_where)

    def spark(self) -> SparkHandle | None:
        """The session's handle, started if it was not; None where this process has no Spark."""
        self.start_spark()
        return self._spark

    def close(self) -> None:
        if self._spark is not None and not self._spark_is_lent:
            self._spark.stop()
        if self._reader is not None:
            self._reader.close()
        self._connections.close()
        self.forget_zookeeper()
        self._executor.close()

    def resume(self) -> None:
        """Go on with what a killed run left a person to do, before anything is looked at."""
        self._executor.resume()

    # -- looking -----------------------------------------------------------------------------------------------------
    def answer(self, view: View, look: Callable[[], Any]) -> Any:  # noqa: ARG002 - what stands in for sources asks it
        """What that look says; Unknown where it fails."""
        try:
            return look()
        except MigrateError as error:
            return unknown(error)

    @property
    def hosts_at_once(self) -> int:
        """How many are worked side by side: a person does one thing after the other."""
        return HOSTS_AT_ONCE if self._executor.parallel else 1

    def each(self, work: str, look: Callable[[Node], Seen]) -> dict[NodeId, Seen]:
        """Every node's answer; hosts that are reached over the network are asked at once."""
        nodes = self.inventory.nodes

        def counted(node: Node) -> Seen:
            found = look(node)
            self.work.count(work)
            return found

        with self.work.part(work, len(nodes)):
            if self.hosts_at_once == 1:
                return {node.id: counted(node) for node in nodes}
            with ThreadPoolExecutor(self.hosts_at_once, thread_name_prefix="host") as pool:
                return dict(zip((node.id for node in nodes), pool.map(counted, nodes), strict=True))

    @view(Need.ZOOKEEPER, work="reading ZooKeeper")
    def zookeeper(self) -> ZookeeperView | Unknown:
        """The whole ZooKeeper view; PartlyRead, which is Unknown, where znodes are malformed."""
        if not self.inventory.zookeeper:
            return Unknown(NO_ZOOKEEPER)
        view = whole_or_unknown(self._tree_again.read(self.zookeeper_client(), self._encoder_secrets()))
        if self.kept_look is not None and not isinstance(view, Unknown):
            self._before_copy.seen(view)
        return view

    def _encoder_secrets(self) -> EncoderSecrets | None:
        current, old = self.inventory.password_encoder_secret, self.inventory.password_encoder_old_secret
        if current is None:
            return None
        return EncoderSecrets(read_secret(current), None if old is None else read_secret(old))

    def with_sessions(self, view: ZookeeperView | Unknown) -> ZookeeperView | Unknown:
        """The tree with the sessions of its servers, which are asked without a session."""
        if isinstance(view, PartlyRead):
            return replace(view, view=replace(view.view, clients=sessions(view.view.connect)))
        return view if isinstance(view, Unknown) else replace(view, clients=sessions(view.connect))

    @view(Need.ENSEMBLE, absent="a bundle does not say what each server of ZooKeeper says")
    def ensemble(self) -> Ensemble | Unknown:
        """Each server of ZooKeeper by itself; the session of this process is ended first, so that it is no client."""
        if not self.inventory.zookeeper:
            return Unknown(NO_ZOOKEEPER)
        self.forget_zookeeper()
        addresses = parse_connect_string(self.inventory.zookeeper).servers
        lock = LOCK_PATH if isinstance(self.playbook, Unknown) else self.playbook.lock_path or LOCK_PATH
        access = access_of(self.inventory.zookeeper_login)
        return look_at_ensemble(self.inventory.zookeeper, addresses, access, lock)

    def dual_write_offset(self) -> int:
        """/migration's offset, -1 where it has none."""
        znode = read_migration(self.zookeeper_client()).migration
        return znode.offset if isinstance(znode, MigrationZnode) else -1

    @node_view(Need.CONFIGS, "reading configuration files", lost=unseen)
    def configs(self, node: Node) -> ConfigFile | NoFile | Unknown:
        """Every node's configuration file."""
        collected = None if self._collected is None else self._collected.get(node.id)
        if collected is not None and collected.config is not None:
            return collected.config
        found = read_config(self.files, node.id, node.config)
        if isinstance(found, NoFile):
            return found
        added = self.inventory.broker_properties if isinstance(node, BrokerNode) else None
        ours = {self.inventory.access_of(controller).keystore for controller in self.inventory.controllers}
        passwords = {
            key: self.digester.digest(value)
            for key, value in found.values.items()
            if is_password_config(key) and value and REFERENCE not in value
        }
        found = replace(found, passwords=passwords)
        named = self.inventory.controller_listener, self.inventory.controller_access.protocol
        return with_subjects(found, added, self.files, [store for store in ours if store is not None], named)

    @view(Need.KRAFT, beside=(Need.CONFIGS,), work="reading the metadata")
    def kraft(self, configs: Configs | Unknown = NOT_ASKED) -> KraftView | Unknown:
        """The metadata image at the committed end.

        Controllers without a file were never started: no connection is tried then.
        """
        if not isinstance(configs, Unknown):
            files = [configs.get(node.id) for node in self.inventory.controllers]
            if files and all(isinstance(file, NoFile) for file in files):
                return Unknown("no controller has a configuration file yet")
        if self._reader is None:
            self._reader = MetadataReader(self.inventory, self.digester, keep_copy=self.kept_look is not None)
        return self._reader.view()

    @view(
        Need.COPY,
        after=(Need.KRAFT, Need.ZOOKEEPER),
        derived=True,
    )
    def copy_check(
        self, kraft: KraftView | Unknown, zookeeper: ZookeeperView | Unknown
    ) -> CopyCheck | NoLook | Unknown:
        """The last look at ZooKeeper before the copy, held against the metadata; once nothing is lost, it stays so."""
        if self._copy_checked is not None:
            return self._copy_checked
        if self.kept_look is None:
            return Unknown("only a run holds the copy against what was there before")
        accepted = () if isinstance(self.playbook, Unknown) else self.playbook.accepted_differences
        question = CopyQuestion(
            self.kept_look,
            self._before_copy.view,
            None if self._reader is None else self._reader.copy_end,
            self._tree_reader,
            self.digester,
            self._encoder_secrets,
            self.services,
            accepted,
        )
        found = check_copy(question, zookeeper, kraft)
        if isinstance(found, CopyCheck) and not (found.lost or found.miscounted):
            self._copy_checked, self._before_copy = found, BeforeCopy()
        return found

    def _is_fenced(self, node: NodeId) -> bool | Unknown:
        """Is that broker's registration fenced, by the committed metadata of now?"""
        view = self.kraft()
        if isinstance(view, Unknown):
            return view
        found = view.brokers.get(node)
        return Unknown(f"broker {int(node)} is not registered in the metadata") if found is None else found.fenced

    @view(Need.LIVE, work="asking brokers and controllers")
    def live(self, *, controller_samples: int = 1) -> LiveView | Unknown:
        """Who answers where."""
        return live.look(self.inventory, controller_samples=controller_samples, kept=self._connections)

    @view(Need.PROTOCOLS, absent="a bundle does not say which protocol version each broker runs with")
    def protocols(self) -> Mapping[NodeId, str | Unknown] | Unknown:
        """The inter.broker.protocol.version that each broker runs with, as it says itself."""
        return live.protocol_versions(self.inventory, self._connections)

    @view(Need.APPLIED, absent="a bundle does not say which configuration each broker runs with")
    def applied(self) -> Mapping[NodeId, Mapping[str, str] | Unknown] | Unknown:
        """The configuration that each broker runs with, as it says itself."""
        return live.applied_configs(self.inventory, self._connections)

    @view(Need.LISTENERS, after=(Need.CONFIGS,), absent="a bundle does not say what each broker's listeners serve")
    def listeners(self, configs: Configs, *, broker: str | None) -> Mapping[NodeId, Heard | Unknown] | Unknown:
        """What the listeners of that broker serve, or of each, and what its log says that could not be applied."""
        return {
            node.id: self._heard(node, configs.get(node.id))
            for node in self.inventory.brokers
            if broker in (None, str(int(node.id)))
        }

    def _resolve(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Where paths lead to for the node's user; Unknown where nobody can look as that user."""
        disks = self._disks
        return disks.told(node, paths) if isinstance(disks, CollectorDisks) else Unknown("no one looked as that user")

    def _heard(self, node: BrokerNode, file: ConfigFile | NoFile | Unknown | None) -> Heard | Unknown:
        if not isinstance(file, ConfigFile):
            why = file.reason if isinstance(file, Unknown) else "there is none"
            return Unknown(f"the file of broker {int(node.id)} names its listeners: {why}")
        try:
            said = not_applied(self.services.last_words(node.id, LOG_LINES_DEEP))
        except (MigrateError, OSError) as error:
            said = Unknown(str(error))
        return Heard(meet(node, file.values), said)

    @node_view(Need.SERVICES, "asking for processes", lost=unseen)
    def service_states(self, node: Node) -> ServiceState:
        return self.services.state(node.id)

    @view(Need.LAUNCHES, after=(Need.SERVICES,), by_node=True)
    def launches(self, states: Mapping[NodeId, ServiceState]) -> Mapping[NodeId, Launch | Unknown]:
        """How each node's process was started, or will be; controllers' with their login for ZooKeeper."""
        found = self.each(
            "asking how processes were started",
            lambda node: with_logins(launch_of(self._executor, node.id, states[node.id]), node.id, self.files),
        )
        return with_zookeeper_clients(found, self.inventory, self.files) if self.inventory.zookeeper else found

    @node_view(
        Need.STORES, "reading stores", after=(Need.CONFIGS, Need.LAUNCHES), absent="a bundle holds no store of a broker"
    )
    def stores(
        self, node: Node, configs: Configs, launches: Mapping[NodeId, Launch | Unknown]
    ) -> tuple[StoreFile, ...] | Unknown:
        """The stores and files of logins that each node starts from, read on its host as its user."""
        values = started_with(node, configs, self.inventory, self.playbook)
        if isinstance(values, Unknown):
            return values
        return stores_of(node.id, values, launches[node.id], self.inventory, self.files, self._resolve)

    @view(Need.ISSUERS, after=(Need.CONFIGS,), absent="a bundle asks nobody")
    def issuers(self, configs: Configs) -> Mapping[NodeId, tuple[str, ...] | Unknown]:
        """Who issues the logins of each node's next start and does not answer this host."""
        asked, found = Issuers(self.inventory, self._issuers), {}
        for node in self.inventory.nodes:
            values = started_with(node, configs, self.inventory, self.playbook)
            found[node.id] = values if isinstance(values, Unknown) else asked.away(values)
        return found

    @view(Need.PORTS, by_node=True)
    def ports(self) -> Mapping[NodeId, tuple[Listening, ...] | Unknown]:
        """What listens on each controller's host."""
        return listening(self._executor, [node.id for node in self.inventory.controllers])

    @view(Need.HOST_RIGHTS, by_node=True, absent="a bundle does not say what is allowed on the hosts")
    def host_rights(self) -> Mapping[NodeId, HostRights | Unknown]:
        """Which commands of a run are allowed on each node's host; none where the executor works no hosts."""
        return rights_of(self.inventory, self._executor.runners)

    @view(Need.UNITS, absent="a bundle does not say what systemd knows of the units")
    def units(self) -> Mapping[NodeId, Unit | Unknown] | Unknown:
        """What systemd says of each node's unit, or its commands; Unknown where the executor sees no units."""
        services = self.services
        if not isinstance(services, HostServices):
            return Unknown(f"executor {self.inventory.executor} sees no systemd units")

        def look(node: Node) -> Unit | Unknown:
            if node.service is not None:
                return own_unit_of(services, self.inventory, node, node.service)
            return unit_of(services, self.inventory, node)

        return self.each("reading systemd units", look)

    @node_view(Need.LEFTOVERS, "looking for what runs left", absent="a bundle does not say what is on the nodes' hosts")
    def leftovers(self, node: Node) -> tuple[str, ...] | Unknown:
        """What runs left on the nodes' hosts."""
        try:
            return leftovers(self.files, node)
        except OSError as error:
            return Unknown(f"the folder of {node.config} cannot be listed: {error.strerror or error}")

    @node_view(Need.DISKS, "looking at log directories", after=(Need.CONFIGS,))
    def disks(self, node: Node, configs: Configs) -> BrokerDisks | Unknown:
        """Brokers' log directories, and controllers' metadata directories as their only one."""
        if self._collected is not None:
            entry = self._collected.get(node.id)
            return Unknown(f"no file of the collector is of node {int(node.id)}") if entry is None else entry.disks
        if isinstance(node, ControllerNode):
            return self._disks.look(node.id, [node.metadata_directory], None)
        file = configs.get(node.id)
        if not isinstance(file, ConfigFile):
            unread = file if isinstance(file, Unknown) else Unknown("there is none")
            return replace(unread, reason=f"the file of broker {int(node.id)} names its directories: {unread.reason}")
        return self._disks.look(node.id, log_dirs(file.values), metadata_log_dir(file.values))

    def not_storing(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, str]:
        """Which log directories of a stopped node do not store a block now, and why."""
        return not_storing(self._disks, node, paths)

    @view(
        Need.NEW_DIRECTORIES,
        after=(Need.CONFIGS,),
        absent="a bundle holds only the directories that are log.dirs already",
    )
    def new_directories(self, configs: Configs) -> Mapping[NodeId, tuple[NewDirectory, ...] | Unknown] | Unknown:
        """The directories that a DirectoryPlaybook names; no other playbook names any."""
        if isinstance(self.playbook, Unknown):
            return self.playbook
        if self._collected is not None:
            return Unknown("the collector's files hold only the directories that are log.dirs already")
        if not isinstance(self._disks, CollectorDisks):
            return Unknown("this executor cannot look at directories that are no log directories yet")
        return disks.inspect_new_directories(self._disks, self.inventory, configs, self.playbook.new_directories)

    @node_view(Need.BACKUPS, "reading copies of files", after=(Need.CONFIGS,), absent="a bundle has no copies of files")
    def backups(self, node: Node, configs: Configs) -> KeptFiles | Unknown:
        """Copies beside each node's configuration, and each meta.properties as it is."""
        return kept_files(self.files, node.id, configs.get(node.id))

    @view(Need.REHEARSAL, absent="a bundle has no session with ZooKeeper")
    def rehearsal(self) -> str | Unknown:
        """What ZooKeeper refuses of what a rollback changes in it, asked by requests that cannot change anything."""
        try:
            require_rollback_rights(self.zookeeper_client())
        except ZookeeperDenied as error:
            return f"{error}: {error.next_step}"
        return ""

    @view(Need.METADATA_LOGS, after=(Need.SERVICES,), derived=True)
    def metadata_logs(
        self, services: Mapping[NodeId, ServiceState] | Unknown, *, rehearse: bool
    ) -> MetadataLogs | Unknown:
        """What the controllers' metadata directories say; a log that is still written says nothing of its end.

        With `rehearse` it is read all the same, by what will read it later, to see that this can be done.
        """
        running = self._running_controllers(services)
        if running == ():
            return self.logs_on_disk()
        self._logs = None
        if isinstance(running, Unknown):
            return running
        growing = f"controllers {list(map(int, running))} run: their logs still grow"
        if not rehearse:
            return Growing(growing)
        read = self.logs_on_disk(growing=running)
        return read if isinstance(read, Unknown) else Growing(growing, rehearsed=True)

    def _running_controllers(self, services: Mapping[NodeId, ServiceState] | Unknown) -> tuple[NodeId, ...] | Unknown:
        if isinstance(services, Unknown):
            return services
        states = {node.id: services.get(node.id, Unknown("not looked at")) for node in self.inventory.controllers}
        for node, state in states.items():
            if isinstance(state, Unknown):
                return Unknown(f"the process of controller {int(node)} cannot be seen ({state.reason})")
        return tuple(node for node, state in states.items() if isinstance(state, Running))

    def logs_on_disk(self, *, growing: Collection[NodeId] = ()) -> MetadataLogs | Unknown:
        """The controllers' metadata directories, read through: what they say counts while no controller runs.

        They are read once after each stop: what is kept holds as long as no controller has written there.  `growing`
        are controllers that run: each of them has a log, what counts is that it can be read, and nothing is kept.
        """
        if self._collected is not None:
            return Unknown("the collector's files hold no metadata logs")
        places = {node.id: node.metadata_directory for node in self.inventory.controllers}
        try:
            if growing:
                with self._executor.metadata.folders(places, growing=True) as directories:
                    found = metadata_logs(directories, self.digester)
                return found if isinstance(found, Unknown) else _held(found, self.inventory, growing)
            state = self._executor.metadata.state(places)
            if self._logs is None or self._logs[0] != state:
                self._logs = None
                with self._executor.metadata.folders(places) as directories:
                    found = metadata_logs(directories, self.digester)
                if isinstance(found, Unknown):
                    return found
                self._logs = state, found
            return self._logs[1]
        except MetadataAwaited as error:
            return Awaited(f"{error.what} ({error.where})", "whoever works those hosts", error.next_step)
        except (MigrateError, OSError) as error:
            return Unknown(f"the controllers' metadata directories cannot be read: {error}")

    @view(
        Need.STATES_BEHIND, after=(Need.METADATA_LOGS, Need.ZOOKEEPER), absent="a bundle has no session with ZooKeeper"
    )
    def states_behind(self, logs: MetadataLogs, zookeeper: ZookeeperView) -> tuple[StateBehind, ...] | Unknown:
        """Partition states in ZooKeeper whose versions are below the partition epochs of those logs."""
        try:
            return states_behind(self._tree_reader, logs, zookeeper)
        except MigrateError as error:
            return Unknown(f"the versions of partition states cannot be read: {error.id} {error}")

    def _tree_reader(self) -> TreeReader:
        """A session that has seen all writes completed before."""
        client = self.zookeeper_client()
        client.sync()
        return client


def _held(logs: MetadataLogs, inventory: Inventory, running: Collection[NodeId]) -> MetadataLogs | Unknown:
    """A directory that cannot be listed looks like an empty one: a controller that runs has a log."""
    without = [node for node in inventory.controllers if node.id in running and int(node.id) not in logs.holders]
    if not without:
        return logs
    places = ", ".join(f"{node.host}:{node.metadata_directory}" for node in without)
    return Unknown(f"no metadata log is seen in {places}: the directory is another one, or may not be read")


KEPT: Final = tuple(need for need in Need if need in VIEWS and VIEWS[need].kept)  # in a bundle
