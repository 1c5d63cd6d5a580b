"""A healthy cluster of three brokers with three log directories each, as a World at every stage of its migration.

Everything agrees with everything, files included (they are the ones that the steps write): a test bends one place of
it with `dataclasses.replace`, `with_values` or the helpers below, and says what must follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from migrate.hosts.properties import parse
from migrate.model.copied import CopyCheck
from migrate.model.ids import MIGRATING, DirectoryId, NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, Playbook
from migrate.model.launch import Launch, UnitNotes, ZookeeperClient
from migrate.model.listeners import Heard, Served
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import MIGRATION, DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    ControllerRegistration,
    ControllerZnode,
    Directory,
    KraftView,
    LiveView,
    LogDirAnswer,
    MetadataAnswer,
    MetaProperties,
    MigrationZnode,
    NodeAnswer,
    NoFile,
    NoZnode,
    Quorum,
    Running,
    ServiceState,
    Voter,
    ZookeeperView,
)
from migrate.model.world import World
from migrate.steps import configuration
from tests.testing.clusters import CLUSTER_ID, healthy_cluster, uuid

BROKERS = tuple(map(NodeId, (0, 1, 2)))
CONTROLLERS = tuple(map(NodeId, (3000, 3001, 3002)))
OFFSET = 500
LOG_BYTES = 100_000_000  # of each controller's metadata log
COPIED_AT = 400
BROKER_FILE = """\
broker.id={id}
inter.broker.protocol.version=3.9
zookeeper.connect=zk1:2181/kafka
listeners=INTERNAL://b{id}:9092,CLIENT://b{id}:9093
listener.security.protocol.map=INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT
inter.broker.listener.name=INTERNAL
log.dirs=/data/b{id}/d0,/data/b{id}/d1,/data/b{id}/d2
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:ANONYMOUS;User:admin
password.encoder.secret=a-secret-of-the-lab
min.insync.replicas=2
"""


COPY_RECORDS = {"TOPIC_RECORD": 3, "PARTITION_RECORD": 6}
COPY_HELD = CopyCheck(
    zxid=90,
    source="this run's last look before the copy, at zxid 90",
    offset=40,
    at_end=True,
    counts={"partition": (6, 6), "topic": (3, 3)},
    lost=(),
    known=(),
    records=COPY_RECORDS,
    driver=COPY_RECORDS,
)


def inventory() -> Inventory:
    """Three brokers, three controllers, each on a host of its own."""
    return Inventory(
        name="lab",
        path="/lab/inventory.yaml",
        zookeeper="zk1:2181/kafka",
        brokers=tuple(BrokerNode(node, f"b{node}", f"b{node}:9092", f"/conf/b{node}.properties") for node in BROKERS),
        controllers=tuple(
            ControllerNode(node, f"c{node}", f"c{node}:9090", f"/conf/c{node}.properties", f"/data/c{node}")
            for node in CONTROLLERS
        ),
        controller_listener="CTL",
        broker_access=Access(),
        controller_access=Access(),
        password_encoder_secret=None,
        executor="none",
        expect_cluster_id=CLUSTER_ID,
    )


def playbook() -> Playbook:
    """Every stage; broker 2 on `drive`."""
    return Playbook(
        name="lab",
        path="/lab/playbook.yaml",
        change="CHG1",
        sha256="0" * 64,
        stages=MIGRATION[1:],
        default_policy=DirectoryPolicy.OBSERVE,
        broker_policies={NodeId(2): DirectoryPolicy.DRIVE},
        accept_unavailable=("single-.*",),
        accepted_differences=(),
        no_progress_seconds=60,
        soak_seconds=1,
        lock_path="/kraft-migrate/lock",
        expect_cluster_id=None,
        expect_brokers=BROKERS,
        inventory="/lab/inventory.yaml",
    )


def config_file(node: NodeId, path: str, raw: bytes) -> ConfigFile:
    """A file as it is observed."""
    return ConfigFile(node, path, raw, hashlib.sha256(raw).hexdigest(), parse(raw))


def world_at(stage: Stage) -> World:
    """The world when that stage is complete; MIGRATION_MODE is shown with one broker left to roll."""
    known = inventory()
    return World(
        inventory=known,
        playbook=playbook(),
        zookeeper=_zookeeper(stage) if stage < Stage.CLEANUP else Unknown("ZooKeeper was stopped"),
        kraft=_kraft(stage) if stage >= Stage.CONTROLLERS else Unknown("no controller answers"),
        disks=_disks(stage),
        live=_live(stage),
        configs=_configs(stage, known),
        services=_services(stage, _configs(stage, known)),
        metadata_logs=MetadataLogs(),
        leftovers=dict.fromkeys((*BROKERS, *CONTROLLERS), ()),
        rehearsal="",
        launches=_launches(known),
        ports=dict.fromkeys(CONTROLLERS, ()),
        copy=COPY_HELD if stage >= Stage.COPY else Unknown("no copy was made yet"),
        stores=dict.fromkeys(BROKERS, ()),
        issuers=dict.fromkeys((*BROKERS, *CONTROLLERS), ()),
        listeners=dict.fromkeys(BROKERS, Heard({"PLAINTEXT": Served("PLAINTEXT", "broker:9092")})),
    )


def _rolled(stage: Stage) -> tuple[NodeId, ...]:
    """Brokers that have left plain ZooKeeper mode."""
    if stage < Stage.MIGRATION_MODE:
        return ()
    return BROKERS[:2] if stage is Stage.MIGRATION_MODE else BROKERS


def _zookeeper(stage: Stage) -> ZookeeperView:
    view = healthy_cluster().zookeeper
    copied = stage >= Stage.COPY
    migration: MigrationZnode | NoZnode = NoZnode()
    if stage >= Stage.CONTROLLERS:
        migration = MigrationZnode(OFFSET if copied else -1, 1 if copied else -1, 3000, 2, 7)
    return replace(
        view,
        connect="zk1:2181/kafka",
        brokers={} if stage >= Stage.KRAFT_MODE else view.brokers,
        controller=ControllerZnode(3000, 1, ephemeral=False, version=0)
        if copied
        else ControllerZnode(0, -1, ephemeral=True, version=0),
        controller_epoch=3,
        migration=migration,
    )


def _kraft(stage: Stage) -> KraftView:
    cluster = healthy_cluster()
    view = cluster.kraft
    in_kraft = stage >= Stage.KRAFT_MODE
    partitions = view.partitions
    if not in_kraft:
        partitions = replace(partitions, directories=[[str(MIGRATING)] * len(ids) for ids in partitions.replicas])
    states = {True: ZkMigrationState.POST_MIGRATION, False: ZkMigrationState.MIGRATION}
    state = states[stage >= Stage.FINALIZE] if stage >= Stage.COPY else ZkMigrationState.PRE_MIGRATION
    return replace(
        view,
        offset=OFFSET,
        high_watermark=OFFSET + 1,
        migration_state=state,
        features={"metadata.version": 21},
        brokers={node: replace(view.brokers[node], migrating=not in_kraft) for node in _rolled(stage)},
        controllers={
            node: ControllerRegistration(node, uuid(9000 + node), migration_ready=stage < Stage.FINALIZE)
            for node in CONTROLLERS
        },
        partitions=partitions if stage >= Stage.COPY else type(partitions)(),
        entities=view.entities if stage >= Stage.COPY else type(view.entities)(),
    )


def _disks(stage: Stage) -> dict[NodeId, BrokerDisks | Unknown]:
    found: dict[NodeId, BrokerDisks | Unknown] = {}
    for node, disks in healthy_cluster().disks.items():
        assert not isinstance(disks, Unknown)
        rolled = node in _rolled(stage)
        directories = []
        for index, entry in enumerate(disks.directories):
            meta = MetaProperties(0, CLUSTER_ID, int(node), entry.id if rolled else None)
            directories.append(replace(entry, meta=meta, filesystem="ext4", holds_metadata_log=rolled and index == 0))
        found[node] = BrokerDisks(node, tuple(directories))
    if stage >= Stage.CONTROLLERS:
        for node in CONTROLLERS:
            meta = MetaProperties(1, CLUSTER_ID, int(node), DirectoryId(uuid(8000 + node)))
            empty = replace(found_directory(found, BROKERS[0], 0), replicas=type(directories[0].replicas)())
            own = replace(
                empty, path=f"/data/c{node}", meta=meta, holds_metadata_log=True, metadata_log_bytes=LOG_BYTES
            )
            found[node] = BrokerDisks(node, (own,))
    return found


def meta_file(meta: object) -> bytes:
    """The file that a meta.properties is read from."""
    assert isinstance(meta, MetaProperties)
    lines = [f"version={meta.version}", f"cluster.id={meta.cluster_id}"]
    lines.append(f"{'node.id' if meta.version else 'broker.id'}={meta.node_id}")
    lines += [f"directory.id={meta.directory_id}"] if meta.directory_id is not None else []
    return "".join(f"{line}\n" for line in lines).encode()


def found_directory(disks: Mapping[NodeId, BrokerDisks | Unknown], node: NodeId, index: int) -> Directory:
    """One directory of one node."""
    entry = disks[node]
    assert isinstance(entry, BrokerDisks)
    return entry.directories[index]


def _configs(stage: Stage, known: Inventory) -> dict[NodeId, ConfigFile | NoFile | Unknown]:
    found: dict[NodeId, ConfigFile | NoFile | Unknown] = {}
    plain = {node.id: BROKER_FILE.format(id=node.id).encode() for node in known.brokers}
    for broker in known.brokers:
        raw = plain[broker.id]
        if broker.id in _rolled(stage):
            raw = configuration.migration_mode(raw, known)
        if stage >= Stage.KRAFT_MODE:
            raw = configuration.kraft_mode(raw, known, broker)
        found[broker.id] = config_file(broker.id, broker.config, raw)
    for controller in known.controllers:
        if stage < Stage.PREPARE:
            found[controller.id] = NoFile(controller.config)
            continue
        raw = configuration.controller(parse(plain[BROKERS[0]]), known, controller)
        if stage >= Stage.FINALIZE:
            raw = configuration.finalized_controller(raw)
        found[controller.id] = config_file(controller.id, controller.config, raw)
    return found


def _live(stage: Stage) -> LiveView:
    quorum: Quorum | Unknown = Unknown("no controller answers")
    controllers: dict[NodeId, NodeAnswer | Unknown] = {node: Unknown("connection refused") for node in CONTROLLERS}
    features = {"metadata.version": 21}
    if stage >= Stage.CONTROLLERS:
        quorum = Quorum(CONTROLLERS[0], 1, OFFSET + 1, tuple(Voter(node, OFFSET + 1) for node in CONTROLLERS))
        controllers = {node: NodeAnswer(stage < Stage.FINALIZE, features, {1: 17}) for node in CONTROLLERS}
    ids = tuple(map(int, BROKERS))
    return LiveView(
        quorum=quorum,
        controllers=controllers,
        brokers={node: NodeAnswer(migration_flag=False, finalized_features={}, apis={1: 17}) for node in BROKERS},
        metadata={node: MetadataAnswer((0,), ids, len(healthy_cluster().partitions), ()) for node in BROKERS},
        log_dirs={
            node: tuple(LogDirAnswer(f"/data/b{node}/d{index}", 0, 2, ()) for index in range(3)) for node in BROKERS
        },
    )


def _services(stage: Stage, configs: Mapping[NodeId, ConfigFile | NoFile | Unknown]) -> dict[NodeId, ServiceState]:
    """Each runs with the current file."""
    nodes = (*BROKERS, *CONTROLLERS) if stage >= Stage.CONTROLLERS else BROKERS
    files = {node: file for node, file in configs.items() if isinstance(file, ConfigFile)}
    return {node: Running(1000 + node, 1.0, files[node].sha256) for node in nodes}


# -- bending -----------------------------------------------------------------------------------------------------
def _launches(known: Inventory) -> dict[NodeId, Launch | Unknown]:
    """Each node as a unit without anything odd; controllers come to ZooKeeper as the brokers do."""
    unit = UnitNotes((), ())
    started = {
        node.id: Launch(node.config, main_class="kafka.Kafka", environment=(), unit=unit) for node in known.nodes
    }
    login = ZookeeperClient("kafka", accepted=True)
    later = {node.id: replace(started[node.id], zookeeper_client=login) for node in known.controllers}
    return {**started, **later}


def zk(world: World) -> ZookeeperView:
    """Its ZooKeeper view, known to be there."""
    assert not isinstance(world.zookeeper, Unknown)
    return world.zookeeper


def kraft(world: World) -> KraftView:
    """Its metadata view, known to be there."""
    assert not isinstance(world.kraft, Unknown)
    return world.kraft


def live(world: World) -> LiveView:
    """Its live view, known to be there."""
    assert not isinstance(world.live, Unknown)
    return world.live


def with_zk(world: World, **changes: object) -> World:
    """With fields of the ZooKeeper view replaced."""
    return replace(world, zookeeper=replace(zk(world), **changes))  # type: ignore[arg-type]


def with_kraft(world: World, **changes: object) -> World:
    """With fields of the metadata view replaced."""
    return replace(world, kraft=replace(kraft(world), **changes))  # type: ignore[arg-type]


def with_live(world: World, **changes: object) -> World:
    """With fields of the live view replaced."""
    return replace(world, live=replace(live(world), **changes))  # type: ignore[arg-type]


def with_values(world: World, node: int, **values: str | None) -> World:
    """With keys of a node's file set (dots as `__`), or taken out (None)."""
    assert not isinstance(world.configs, Unknown)
    file = world.configs[NodeId(node)]
    assert isinstance(file, ConfigFile)
    merged = dict(file.values)
    for name, value in values.items():
        key = name.replace("__", ".")
        merged.pop(key, None)
        if value is not None:
            merged[key] = value
    return replace(world, configs={**world.configs, NodeId(node): replace(file, values=merged)})


def with_directory(world: World, node: int, index: int, bend: Callable[[Directory], Directory]) -> World:
    """With one log directory of a broker bent."""
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(node)]
    assert isinstance(disks, BrokerDisks)
    directories = tuple(bend(entry) if number == index else entry for number, entry in enumerate(disks.directories))
    return replace(world, disks={**world.disks, NodeId(node): replace(disks, directories=directories)})


def with_folder(world: World, node: int, index: int, folder: tuple[str, int, str, str]) -> World:
    """With one more replica folder (topic, partition, topic id, kind) in a broker's directory."""

    def bend(entry: Directory) -> Directory:
        topic, partition, topic_id, kind = folder
        rows = entry.replicas
        return replace(
            entry,
            replicas=replace(
                rows,
                topic=[*rows.topic, topic],
                partition=[*rows.partition, partition],
                topic_id=[*rows.topic_id, topic_id],
                kind=[*rows.kind, kind],
                folder=[*rows.folder, f"{topic}-{partition}"],
                size=[*rows.size, 10],
            ),
        )

    return with_directory(world, node, index, bend)


def with_entity(world: World, kind: str, key: str, name: str, value: str) -> World:
    """With one more row of ZooKeeper's entities."""
    rows = zk(world).entities
    return with_zk(
        world,
        entities=replace(
            rows,
            kind=[*rows.kind, kind],
            key=[*rows.key, key],
            name=[*rows.name, name],
            value=[*rows.value, value],
            where=[*rows.where, ""],
        ),
    )
