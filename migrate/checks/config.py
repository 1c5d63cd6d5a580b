"""CFG: ids, roles and listeners in the configuration files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks import processes
from migrate.checks.phase import no_quorum_yet
from migrate.checks.principals import AUTHORIZER, successor
from migrate.checks.registry import ALWAYS, BEFORE_COPY, Blind, Hit, Result, check, placed
from migrate.checks.sight import (
    Configs,
    both_configs,
    broker_configs,
    broker_configs_now,
    entities,
    inventory,
    node_configs,
    readable_zookeeper,
    zookeeper,
)
from migrate.hosts.collect_disks import PASSWORDS, in_table, is_public
from migrate.model.broker_modes import FLAG, Mode, mode_of, never_with_flag, roles_of
from migrate.model.config_keys import BOOTSTRAP, VOTERS, Fate, Moment, fate, row_of, taken
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.kafka_values import (
    connect_string,
    elements,
    entries,
    listener_prefix,
    number,
    truth,
)
from migrate.model.listeners import inter_broker_listener, listeners, protocols
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import NoZnode, ZookeeperView
from migrate.model.world import World

RESERVED_MAX: Final = "reserved.broker.max.id"
DEFAULT_RESERVED_MAX: Final = 1000
OF_KRAFT: Final = re.compile(  # what Kafka reads in migration mode or KRaft mode alone
    r"process\.roles|node\.id|controller\.(quorum|listener)\..*|metadata\..*|early\.start\.listeners|"
    r"zookeeper\.metadata\.migration\..*|sasl\.mechanism\.controller\.protocol|server\.max\.startup\.time\.ms|"
    r"broker\.(heartbeat\.interval|session\.timeout)\.ms|initial\.broker\.registration\.timeout\.ms|"
    r"group\.coordinator\.new\.enable|log\.dir\.failure\.timeout\.ms"
)
CLASS_KEY: Final = re.compile(r"\b(class|class\.name|reporters|assignors|providers)$")  # of those that Kafka defines
NOT_OWN: Final = ("org.apache.kafka.", "kafka.", "java.", "javax.", "sun.", "com.sun.", "io.confluent.")
POLICIES: Final = ("alter.config.policy.class.name", "create.topic.policy.class.name")


@check(
    "B-CFG-01",
    "a broker and a controller have one id",
    "Brokers and controllers share one space of node ids; a collision keeps one of them from starting.",
    "Give the controllers ids of their own (3000 and up is usual) before they are formatted; never renumber brokers.",
    "KRaft: node.id is unique over all roles; KafkaConfig.validateValues",
).sees(inventory, blocks_from=Stage.PREPARE)
def ids_are_disjoint(seen: Inventory, world: World) -> Result:
    brokers = {int(node.id) for node in seen.brokers}
    if isinstance(world.zookeeper, Unknown):
        yield Blind("ZooKeeper", world.zookeeper.reason)
    else:
        brokers |= {int(node) for node in world.zookeeper.brokers}
    for node in seen.controllers:
        if int(node.id) in brokers:
            yield Hit(f"controller {node.id}", f"a broker has the id {node.id} too", seen.path)


@check(
    "B-CFG-02",
    "a node has both roles, broker and controller",
    "A combined node cannot be migrated: its broker half would have to run on ZooKeeper and on KRaft at once.",
    "Run the controllers as processes of their own.",
    "KIP-866: combined mode is not supported for migration",
).sees(node_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def roles_are_apart(configs: Configs, world: World) -> Result:
    for about, file in placed("node", configs):
        if len(roles_of(file.values)) > 1:
            yield Hit(about, f"process.roles is {file.values['process.roles']}")


@check(
    "B-CFG-03",
    "a broker's id is not written down",
    "A broker in migration mode refuses an id that ZooKeeper generated (broker.id.generation.enable), and its disks "
    "would belong to nobody.",
    "Write broker.id=N into the file, N being the broker.id of its meta.properties.",
    "KAFKA-17543; KafkaConfig.validateValues: broker.id >= 0 with the migration flag",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def broker_id_is_explicit(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        text = file.values.get("broker.id") or file.values.get("node.id") or ""
        value = number(text)
        if value is None or value < 0:
            yield Hit(about, f"broker.id is {text or 'missing'}")


@check(
    "B-CFG-04",
    "a broker's id is in the range of generated ids",
    "While ids may be generated (broker.id.generation.enable, which is on unless set), a broker whose own id is above "
    "reserved.broker.max.id (1000 unless set) refuses to start.",
    "Set broker.id.generation.enable=false, or reserved.broker.max.id above the largest id, in every broker's file.",
    "KAFKA-17042, KAFKA-17543; KafkaConfig.validateValues",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def broker_id_is_reserved(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        value = number(file.values.get("broker.id", ""))
        limit = number(file.values.get(RESERVED_MAX, "")) or DEFAULT_RESERVED_MAX
        generated = truth(file.values, "broker.id.generation.enable", default=True)
        if mode_of(file.values) is not Mode.KRAFT and generated and value is not None and value > limit:
            yield Hit(about, f"broker.id {value} is above {RESERVED_MAX} {limit}")


@check(
    "B-CFG-05",
    "a KRaft broker's file names a control plane listener",
    "control.plane.listener.name is fatal in KRaft mode: the broker does not start.",
    "Take control.plane.listener.name out of that file.",
    "KAFKA-17788; KafkaConfig.validateValues",
).sees(broker_configs, blocks_from=Stage.KRAFT_MODE, when=ALWAYS)
def control_plane_in_kraft(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        if mode_of(file.values) is Mode.KRAFT and file.values.get("control.plane.listener.name"):
            yield Hit(about, "control.plane.listener.name is set in KRaft mode")


@check(
    "W-CFG-15",
    "the brokers have a listener of their own for the control plane",
    "KRaft knows no such listener: the second roll removes the key, and no client can use that listener afterwards.",
    "Nothing before the migration; close that port after it.",
    "KAFKA-17788; KafkaConfig.validateValues",
).sees(broker_configs)
def control_plane_goes(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        name = file.values.get("control.plane.listener.name")
        if name and mode_of(file.values) is not Mode.KRAFT:
            yield Hit(about, f"the control plane listener {name} ends with the second roll", name)


@check(
    "B-CFG-06",
    "the controllers do not know the brokers' listener",
    "After the copy the controllers call every broker on its inter-broker listener. Without its name they cannot; "
    "without its entry in the protocol map they do not even start.",
    "Copy inter.broker.listener.name (or security.inter.broker.protocol) and the listener's entry of "
    "listener.security.protocol.map from the brokers' files.",
    "KAFKA-15670, KAFKA-16468; 'Listener with name ... defined in inter.broker.listener.name not found'",
).sees(both_configs, blocks_from=Stage.CONTROLLERS)
def listener_is_known(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    wanted = {(inter_broker_listener(file.values), protocol_of(file.values)) for file in brokers.values()}
    if len(wanted) > 1:
        yield Hit("the brokers' files", f"they differ in the inter-broker listener: {sorted(map(str, wanted))}")
        return
    for name, protocol in wanted:
        for about, file in placed("controller", controllers):
            own = inter_broker_listener(file.values)
            if own != name:
                yield Hit(about, f"the inter-broker listener is {own}, the brokers' is {name}")
            elif protocols(file.values).get(name) != protocol:
                yield Hit(about, f"listener.security.protocol.map does not map {name} to {protocol}, as the brokers do")


@check(
    "B-CFG-30",
    "the controllers' listener has a name that a broker uses already",
    "From the first roll on the brokers no longer advertise a listener of that name, so its clients lose each broker "
    "as it rolls; in the second roll the broker does not start. A protocol map that has the name with another protocol "
    "makes brokers call the controllers in the wrong way. Kafka's documentation uses CONTROLLER for the control plane "
    "listener and for the KRaft controllers alike.",
    "Give controller_listener in the inventory a name that no broker's file has, such as KRAFT_CONTROLLER, before the "
    "controllers' files are written; renaming the brokers' listener would move its clients instead. An entry of "
    "listener.security.protocol.map that no listener uses is no fault before the first roll, which replaces it; in a "
    "later file give it the protocol of controllers.access.",
    "KafkaConfig.effectiveAdvertisedBrokerListeners; KafkaConfig.validateValues: 'controller.listener.names must not "
    "contain a value appearing in the 'listeners' configuration when running KRaft with just the broker role'",
).sees(broker_configs, blocks_from=Stage.PREPARE)
def controller_listener_is_new(configs: Configs, world: World) -> Result:
    """Names are compared in upper case, as Kafka's protocol map does."""
    name, protocol = world.inventory.controller_listener, world.inventory.controller_access.protocol
    for about, file in placed("broker", configs):
        places = [
            key
            for key in ("listeners", "advertised.listeners")
            if name.upper() in {entry.listener for entry in listeners(file.values, key)}
        ]
        if file.values.get("control.plane.listener.name", "").upper() == name.upper():
            places.append("control.plane.listener.name")
        if places:
            yield Hit(about, f"{' and '.join(places)} has the controllers' listener {name}", name)
        elif mode_of(file.values) is Mode.ZOOKEEPER:
            continue  # an entry that no listener uses: the first roll replaces it
        elif (mapped := protocols(file.values).get(name.upper(), protocol)) != protocol:
            message = f"listener.security.protocol.map has {name}:{mapped}, the controllers have {protocol}"
            yield Hit(about, message, name)


def protocol_of(values: Mapping[str, str]) -> str:
    """The security protocol of a broker's inter-broker listener."""
    name = inter_broker_listener(values)
    return protocols(values).get(name, name)


@check(
    "B-CFG-07",
    "a node's file is of another node",
    "The tool would edit and restart one process while it means another.",
    "Correct the path in the inventory, or the id in the file.",
    "broker.id, node.id",
).sees(node_configs, blocks_from=Stage.PREPARE, when=ALWAYS)
def file_is_the_nodes(configs: Configs, world: World) -> Result:
    for node, file in configs.items():
        for key in ("broker.id", "node.id"):
            value = number(file.values.get(key, ""))
            if value is not None and value >= 0 and value != int(node):
                yield Hit(f"node {node}: {file.path}", f"{key} is {value}, the inventory says {node}")


@check(
    "B-CFG-08",
    "the inventory's brokers are not the cluster's",
    "A broker that is left out is never rolled, and the copy waits for it indefinitely.",
    "Start the missing broker, or bring the inventory up to date: a broker leaves it when others have its replicas.",
    "KRaftMigrationDriver: every broker in /brokers/ids must register",
).sees(zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def inventory_is_the_cluster(view: ZookeeperView, world: World) -> Result:
    alive = {int(node) for node in view.brokers}
    listed = {int(node.id) for node in world.inventory.brokers}
    if listed:
        for node in sorted(listed - alive):
            message = "it is in the inventory and not alive in ZooKeeper"
            fix = processes.start_those(
                world, [node], "move its replicas to living brokers, then take it out of the inventory"
            )
            yield Hit(f"broker {node}", message, f"/brokers/ids has {sorted(alive)}", fix)
        for node in sorted(alive - listed):
            yield Hit(f"broker {node}", "it is alive in ZooKeeper and not in the inventory", f"/brokers/ids/{node}")
    if not isinstance(world.playbook, Unknown) and world.playbook.expect_brokers is not None:
        expected = {int(node) for node in world.playbook.expect_brokers}
        if expected != alive:
            message = f"it expects brokers {sorted(expected)}, ZooKeeper knows {sorted(alive)}"
            yield Hit("the playbook", message, fix=processes.start_those(world, expected ^ alive))


@check(
    "W-CFG-09",
    "a policy class judges topics or configurations",
    "In KRaft the controllers run the policy, and an alter-config policy is shown another map of configurations.",
    "Put the class on the controllers' class path and its key into their files; from 3.9.2 on see "
    "alter.config.policy.kraft.compatibility.enable.",
    "KIP-1252, KAFKA-19026",
).sees(broker_configs)
def policies(configs: Configs, world: World) -> Result:
    for key in POLICIES:
        nodes = [int(node) for node, file in configs.items() if file.values.get(key, "").strip()]
        if nodes:
            yield Hit(f"brokers {nodes}", f"{key} is set: the controllers will run that class")


@check(
    "B-CFG-10",
    "a broker with the flag lacks the way to the controllers",
    "It does not start: the flag asks for controller.listener.names, and for controller.quorum.voters or "
    "controller.quorum.bootstrap.servers.",
    "Put controller.listener.names, the quorum's key and the listener's protocol back, or take the flag out.",
    "KafkaConfig.validateValues",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def flag_has_its_company(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        if mode_of(file.values) is not Mode.MIGRATION:
            continue
        listener = file.values.get("controller.listener.names", "").strip()
        if not listener:
            yield Hit(about, f"{FLAG}=true, and controller.listener.names is missing")
        elif entries(listener)[:1] and entries(listener)[0].upper() not in protocols(file.values):
            yield Hit(about, f"listener.security.protocol.map has no protocol for {listener}")
        if not any(file.values.get(key, "").strip() for key in (VOTERS, BOOTSTRAP)):
            yield Hit(about, f"{FLAG}=true, and {world.inventory.quorum_key[0]} is missing")


@check(
    "B-CFG-11",
    "a broker's file has a key of the migration too early",
    "With controller.listener.names and without the flag a broker of ZooKeeper mode does not start again. With the "
    "flag it registers with the controllers as soon as there are some, and the copy begins when all brokers have it: "
    "before the checks and the backup of the first roll. With process.roles its next start is one of KRaft mode. It "
    "may be left over from an earlier attempt.",
    "Take the keys out that the finding names; each roll puts in what it needs, when its time has come.",
    "KafkaConfig.validateValues: controller.listener.names must be empty when not running in KRaft mode; "
    "KRaftMigrationDriver: WAIT_FOR_BROKERS",
).sees(broker_configs_now, blocks_from=Stage.CONTROLLERS)
def no_key_too_early(configs: Configs, world: World) -> Result:
    """The flag is early until controllers run, process.roles until the copy is made; what Kafka ignores never is."""
    for node, file in configs.items():
        about, mode = f"broker {node}: {file.path}", mode_of(file.values)
        if mode is Mode.ZOOKEEPER:
            if file.values.get("controller.listener.names", "").strip():
                yield Hit(about, "controller.listener.names is set, the migration flag is not")
            continue
        early = _too_early(mode, world, node)
        if isinstance(early, Unknown):
            yield Blind(f"whether the mode of {file.path} is too early", early.reason)
        elif early:
            key = FLAG if mode is Mode.MIGRATION else "process.roles"
            yield Hit(about, f"{key} is {file.values[key]}, and {early}")


def _too_early(mode: Mode, world: World, node: NodeId) -> str | Unknown:
    """What has not happened yet that a file of that mode needs; "" where nothing is missing.

    A broker that was started with the flag once may wait for controllers that are made anew (a rollback's copy again).
    """
    view = world.zookeeper
    if not isinstance(world.kraft, Unknown):
        uncopied = mode is Mode.KRAFT and world.kraft.migration_state is ZkMigrationState.PRE_MIGRATION
        entry = world.kraft.brokers.get(node)
        return "the copy was not made yet" if uncopied and (entry is None or entry.migrating) else ""
    if isinstance(view, Unknown):
        return view
    if not (no_quorum_yet(world) and isinstance(view.migration, NoZnode)):
        return world.kraft if mode is Mode.KRAFT and not view.kraft_owns else ""
    disks = world.disks if isinstance(world.disks, Unknown) else world.disks.get(node)
    if mode is Mode.MIGRATION and isinstance(disks, Unknown):
        return disks
    return "no controller was started yet" if mode is Mode.KRAFT or never_with_flag(world, node) else ""


@check(
    "I-CFG-36",
    "a file of ZooKeeper mode has keys of KRaft already",
    "Nothing reads them in ZooKeeper mode. What a roll sets or removes is replaced when its time has come, and comes "
    "back with a rollback; what no stage owns stays, and has an effect from the first roll on. A template serves both "
    "modes, or an earlier attempt left them.",
    "Nothing for what is replaced. Of what stays, see that it is meant: such as metadata.log.dir.",
    "KafkaConfig.validateValues; docs/configuration.md",
).sees(broker_configs)
def early_keys(configs: Configs, world: World) -> Result:
    """Those of the controllers' listener, too, by which a broker calls them: what the inventory adds is meant."""
    ours, properties = listener_prefix(world.inventory.controller_listener), world.inventory.broker_properties
    added = () if properties is None else properties.values
    for about, file in placed("broker", configs):
        if mode_of(file.values) is not Mode.ZOOKEEPER:
            continue
        found = sorted(key for key in file.values if OF_KRAFT.fullmatch(key))
        found += sorted(key for key in file.values if key.startswith(ours) and key not in added)
        rolls = {key: [fate(key, moment) for moment in (Moment.FIRST_ROLL, Moment.SECOND_ROLL)] for key in found}
        replaced = [key for key in found if {Fate.SET, Fate.REMOVED} & {*rolls[key]}]
        if replaced:
            yield Hit(about, f"a roll sets or removes {', '.join(replaced)}")
        if kept := [key for key in found if key not in replaced]:
            yield Hit(about, f"{', '.join(kept)}: stays, and has an effect from the first roll on")


@check(
    "B-CFG-12",
    "a KRaft broker's file still has keys of ZooKeeper mode",
    "With the flag left, a failing disk stops the whole broker; with zookeeper.connect left, an authorizer of "
    "ZooKeeper could keep using ACLs that are no longer updated.",
    "Take every zookeeper.* key out of that file and restart the broker.",
    "KAFKA-16431; KafkaServer.scala; BrokerServer.scala",
).sees(broker_configs, blocks_from=Stage.FINALIZE, when=ALWAYS)
def kraft_file_is_clean(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        left = sorted(key for key in file.values if key.startswith("zookeeper."))
        if mode_of(file.values) is Mode.KRAFT and left:
            yield Hit(about, f"a KRaft broker's file has {', '.join(left)}")


@check(
    "B-CFG-13",
    "a node's zookeeper.connect leads to another chroot",
    "Another chroot (what follows the servers) is another cluster: the controllers would copy that one, or nothing.",
    "Use one connect string, chroot and all, on every node and in the inventory.",
    "ZooKeeper connect string: host:port,host:port/chroot",
).sees(node_configs, blocks_from=Stage.CONTROLLERS)
def chroot_is_one(configs: Configs, world: World) -> Result:
    wanted = chroot_of(world.inventory.zookeeper)
    for about, file in placed("node", configs):
        connect = file.values.get("zookeeper.connect", "")
        if (here := chroot_of(connect)) is not None and here != wanted:
            yield Hit(about, f"its chroot is {here}, the inventory's is {wanted}", f"zookeeper.connect={connect}")


def chroot_of(connect: str) -> str | None:
    """`/` where there is none; None for no connect string."""
    try:
        return connect_string(connect).chroot or "/"
    except ValueError:
        return None


def own_classes(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Class and key of each value that names a class which is neither Kafka's nor Java's.

    Confluent's are W-OPS-14's and B-OPS-02's.
    """
    for key, value in sorted(values.items()):
        if CLASS_KEY.search(key) and is_public(key):
            yield from ((name, key) for name in elements(value) if "." in name and not name.startswith(NOT_OWN))


def own_keys(values: Mapping[str, str]) -> tuple[str, ...]:
    """Keys that Kafka does not define, and of which only a class of somebody else's can know.

    Confluent's are W-OPS-14's and B-OPS-02's.
    """
    return tuple(
        key
        for key in values
        if row_of(key) is None and not (is_public(key) or in_table(key, PASSWORDS) or key.startswith("confluent."))
    )


def brought_along(values: Mapping[str, str]) -> tuple[str, ...]:
    """Of a broker's own keys, those that its controllers get: all, where they load a class that may read them."""
    loaded = {key: values[key] for key in (*taken(values), AUTHORIZER) if key in values}
    return own_keys(values) if any(own_classes(loaded)) else ()


@check(
    "B-CFG-37",
    "nobody said whether a class that is not Kafka's works in KRaft mode",
    "Each broker loads it again in the second roll, and controllers load those that decide about rights, principals, "
    "logins and policies. One that asks ZooKeeper, or needs keys that a controller's file lacks, fails then, or "
    "answers otherwise than before. Asked about are authorizers, principal builders, callback handlers, reporters, "
    "quota callbacks, policies, and providers of configuration, security and tiers.",
    "Ask its owners whether it works in KRaft mode and without ZooKeeper. If it does, name the class in the playbook's "
    "policy.own_classes, and put its jars on the controllers' class path; an authorizer must let brokers and "
    "controllers act on the cluster, by super.users or by its policies. An authorizer that does not gets its "
    "successor in policy.authorizer.kraft, whose jars every node needs. Otherwise take it out first.",
    "KafkaConfig: keys of type CLASS; with such a class controllers get the keys that Kafka does not define",
).sees(broker_configs, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def own_classes_are_answered_for(configs: Configs, world: World) -> Result:
    """One hit per class, with the places that name it, and the keys that only it can know."""
    known = {*(() if isinstance(world.playbook, Unknown) else world.playbook.own_classes)}
    replaced = successor(world) is not None
    found: dict[str, dict[str, list[str]]] = {}  # class -> key -> places
    unknown: dict[str, None] = {}
    for node, file in configs.items():
        for name, key in own_classes(file.values):
            if not (replaced and key == AUTHORIZER):
                found.setdefault(name, {}).setdefault(key, []).append(str(node))
        unknown |= dict.fromkeys(own_keys(file.values))
    stored = readable_zookeeper(world)
    yield from (Blind(*unseen) for unseen in stored.missing)
    if stored.value is not None:
        for entity, key, value, _ in entities(stored.value, "broker-config"):
            for name, _ in own_classes({key: value}):
                found.setdefault(name, {}).setdefault(key, []).append(f"{entity} (in ZooKeeper)")
    lacks = f"keys that Kafka does not define: {', '.join(sorted(unknown))}" if unknown else ""
    for name in sorted(set(found) - known):
        places = "; ".join(f"{key} of broker {', '.join(where)}" for key, where in sorted(found[name].items()))
        yield Hit(f"class {name}", f"it is in {places}: does it work in KRaft mode, without ZooKeeper?", lacks)


@check(
    "W-CFG-33",
    "a class of its own decides the clients' quotas",
    "KRaft in 3.9 never calls updateClusterMetadata of client.quota.callback.class: a class that divides quotas by "
    "each broker's leaders keeps using the last answer it had, or with none, from that broker's second roll on. One "
    "that does not look at partitions is not affected; which it is, only its source says. It is no blocker for that "
    "reason.",
    "Ask the class's owners whether it uses updateClusterMetadata. If it does, stay in ZooKeeper mode until it has "
    "another source (an admin client, for example), or set static quotas for the time of 3.9; Kafka 4.0 calls it "
    "again.",
    "KAFKA-18225, fixed in 4.0.0; KAFKA-19566 deprecates the method; only KafkaApis.handleUpdateMetadataRequest calls "
    "it in 3.9.2",
).sees(broker_configs)
def quota_callback(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        if name := file.values.get("client.quota.callback.class", ""):
            yield Hit(about, f"client.quota.callback.class is {name}", name)


@check(
    "W-CFG-34",
    "a broker does not hand its leaders over when it stops",
    "Each of its partitions has no leader from its stop until the controller notices, in both rolls and on every "
    "broker; with unclean elections allowed, records can be lost.",
    "Set controlled.shutdown.enable=true, or take the line out, and restart the brokers one by one before the "
    'migration: the value of the running process counts at its stop. As `controlled.shutdown.enable: "true"` in the '
    "inventory's broker_properties it would count from the second roll on.",
    "KafkaServer.controlledShutdown; BrokerServer.shutdown",
).sees(broker_configs, when=ALWAYS)
def leaders_are_handed_over(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        if not truth(file.values, "controlled.shutdown.enable", default=True):
            yield Hit(about, "controlled.shutdown.enable is false")
