"""CFG: what decides beside a plain file: double keys, references, dynamic values, command lines, environment."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.forms import fault, misfits
from migrate.checks.principals import controllers_user, joining, successor
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check, placed
from migrate.checks.sight import (
    Configs,
    both,
    broker_configs,
    broker_launches,
    controller_launches,
    entities,
    node_configs,
    readable_zookeeper,
)
from migrate.checks.stored_values import ignored
from migrate.checks.zookeeper import JUTE_DEFAULT
from migrate.hosts.collect_disks import HIDDEN
from migrate.hosts.properties import duplicates, for_people
from migrate.model import kafka_values
from migrate.model.broker_modes import SUPER_USERS, roles_of
from migrate.model.config_keys import Fate, Moment, base_name, fate, is_at_start, taken
from migrate.model.ids import NodeId
from migrate.model.kafka_values import entries, listener_prefix, trim
from migrate.model.launch import JAAS_FILE, Launch
from migrate.model.listeners import JAAS, inter_broker_listener, listeners, mechanisms, protocols
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ZookeeperView
from migrate.model.world import World

EDITS: Final = (Moment.FIRST_ROLL, Moment.SECOND_ROLL, Moment.FINALIZE)
REFERENCE: Final = re.compile(r"\$\{[^:{}]+:(?:[^:{}]*:)?[^{}]+\}")  # ConfigTransformer.DEFAULT_PATTERN (KIP-297)
READ_BY_US: Final = (  # what the tool decides by; a text that only the node can resolve is unknown to it
    "advertised.listeners",
    "authorizer.class.name",
    "broker.id",
    "control.plane.listener.name",
    "inter.broker.listener.name",
    "inter.broker.protocol.version",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "node.id",
    "principal.builder.class",
    "process.roles",
    "security.inter.broker.protocol",
    "super.users",
    "zookeeper.connect",
    "zookeeper.ssl.client.enable",
)
STORES_OF_ZOOKEEPER: Final = "zookeeper.ssl."  # removed by a roll, and judged by none
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - nothing binds to it here
LISTENERS: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")


def edited_by_us(key: str) -> bool:
    """Does any stage set or remove it?"""
    return any(fate(key, moment) in (Fate.SET, Fate.REMOVED) for moment in EDITS)


@check(
    "B-CFG-18",
    "a key that a stage changes is set twice in a file",
    "Kafka takes the last of them; which one was meant, and which one a person would edit, is not known. The tool "
    "changes no such line.",
    "Leave one line of that key.",
    "java.util.Properties.load",
).sees(node_configs, blocks_from=Stage.PREPARE)
def key_stands_once(configs: Configs, world: World) -> Result:
    """Keys that some stage sets or removes; others may stand as often as their owner likes.

    A roll sets what the inventory and the playbook add to a broker, and adds the controllers to its super users.
    """
    added, kraft = world.inventory.broker_properties, successor(world)
    ours = {*(() if added is None else added.values), *(() if kraft is None else kraft.properties)}
    brokers = {node.id for node in world.inventory.brokers}
    for node, file in configs.items():
        joins = joining(file.values, [controllers_user(file.values, world.inventory)])
        rolls = {*ours, *([SUPER_USERS] if joins else [])} if node in brokers else set[str]()
        twice = [key for key in duplicates(file.raw, file.path) if edited_by_us(key) or key in rolls]
        if twice:
            yield Hit(f"node {node}: {file.path}", f"more than one line of {', '.join(twice)}")


def refusals(values: Mapping[str, str]) -> Iterator[str]:
    """Why Kafka would not start with these values: each by itself, then those that must fit together (pure)."""
    own = {listener_prefix(entry.listener) for entry in listeners(values)}
    for key, value in values.items():
        base = base_name(key)
        if REFERENCE.search(value) or (base != key and key.removesuffix(base) not in own):
            continue
        if reason := fault("file", base, value):
            yield f"{key}: {reason}"
    ids = {kafka_values.number(values[key]) for key in ("broker.id", "node.id") if key in values}
    if len(ids) > 1:
        yield "broker.id and node.id differ"
    yield from misfits(values)
    if {"inter.broker.listener.name", "security.inter.broker.protocol"} <= values.keys():
        yield "inter.broker.listener.name and security.inter.broker.protocol are both set, and one at most may be"
    if not roles_of(values) and "zookeeper.connect" not in values:
        yield "zookeeper.connect is missing"
    if "controller" in roles_of(values):
        return
    here, told = listeners(values), listeners(values, "advertised.listeners")
    known, between = {entry.listener for entry in here}, inter_broker_listener(values)
    plane = "" if roles_of(values) else trim(values.get("control.plane.listener.name", "")).upper()
    missing = {*known, *filter(None, [plane])} - {*protocols(values)}
    yield from (f"listener.security.protocol.map has no protocol for {name}" for name in sorted(missing))
    early = {name.upper() for name in entries(values.get("early.start.listeners", ""))}
    for name in sorted(early - known - {one.upper() for one in entries(values.get("controller.listener.names", ""))}):
        yield f"early.start.listeners has {name}, and listeners has not"
    for name, host in ((entry.listener, entry.host) for entry in told or here):
        if name not in known:
            yield f"advertised.listeners has {name}, and listeners has not"
        elif host == ANYWHERE:
            yield f"{'advertised.listeners' if told else 'listeners'} has {host} for {name}: no address to advertise"
    spoken, key = protocols(values).get(between, ""), "sasl.mechanism.inter.broker.protocol"
    mechanism, given = trim(values.get(key, "GSSAPI")), mechanisms(values, between)
    if spoken.startswith("SASL") and mechanism not in given and not REFERENCE.search(" ".join([mechanism, *given])):
        yield f"{key} is {mechanism}, and listener {between} has {', '.join(given) or 'none'}"
    advertised = {entry.listener for entry in told or here}
    if here and between not in advertised:
        yield f"no listener that is advertised is {between}, the inter-broker listener"
    if plane and plane in known and (plane == between or plane not in advertised):
        yield f"control.plane.listener.name is {plane}: it must be advertised, and no inter-broker listener"
    for port in {entry.port for entry in here} - {0}:
        hosts = [entry.host for entry in here if entry.port == port]
        if len(hosts) > 1 and sorted(map(_family, hosts)) != [4, 6]:
            yield f"listeners has port {port} {len(hosts)} times: only an IPv4 and an IPv6 address may share one"


def _family(host: str) -> int:
    """4 or 6 of an address, 0 of a name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


@check(
    "B-CFG-21",
    "a value is a reference that the tool would decide by, or one that Kafka refuses",
    "Only the node can resolve a reference (${provider:...}): the tool would judge and edit by a text that is not the "
    "value. With a value that Kafka refuses the node does not start again, whatever a stage changes.",
    "Write the value of that key into the file, as Kafka takes it. Passwords and other keys may stay references.",
    "KIP-297; AbstractConfig.resolveConfigVariables; ConfigDef.parseType; KafkaConfig.validateValues",
).sees(node_configs, blocks_from=Stage.PREPARE)
def read_values_are_plain(configs: Configs, world: World) -> Result:
    for about, file in placed("node", configs):
        for reason in refusals(file.values):
            yield Hit(about, f"Kafka refuses this file: {reason}")
        for key, value in file.values.items():
            ours = key in READ_BY_US or (edited_by_us(key) and not key.startswith(STORES_OF_ZOOKEEPER))
            if ours and value != HIDDEN and REFERENCE.search(value):
                yield Hit(about, f"{key} is a reference")


@check(
    "W-CFG-22",
    "controllers take references from a broker's file",
    "Each controller must resolve them by itself: a provider's class, file or variable that its host lacks stops its "
    "start, and `kafka-storage format` before it.",
    "Provide on every controller's host what the references name; or set other values in controllers.overrides.",
    "KIP-297",
).sees(broker_configs)
def controllers_resolve(configs: Configs, world: World) -> Result:
    """One finding a broker's file, with the keys; values are never shown."""
    for about, file in placed("broker", configs):
        found = [key for key in taken(file.values) if file.values[key] != HIDDEN and REFERENCE.search(file.values[key])]
        if found:
            providers = file.values.get("config.providers", "").strip() or "none"
            yield Hit(about, f"references in {', '.join(found)}", f"config.providers={providers}")


def in_kraft(entity: str, name: str) -> str:
    """What becomes of a dynamic configuration of a broker, in words; "" where it stays as it is."""
    if name.endswith(JAAS):
        return "lost: the file's value is used (W-SEC-09)"
    if base_name(name) in LISTENERS:
        return "refused: KRaft alters no listeners"
    return "by the file: a broker starts with its value (B-SEC-20)" if is_at_start(entity, name) else ""


@check(
    "I-CFG-19",
    "dynamic configurations override the brokers' files",
    "They are copied and remain effective in KRaft; the values of those keys in files are used by no broker.",
    "Nothing before the migration. To see the file's value hold, delete the dynamic one.",
    "DynamicBrokerConfig; KRaftMigrationDriver",
).sees(readable_zookeeper)
def dynamic_over_file(view: ZookeeperView, world: World) -> Result:
    for key, name, value, _ in entities(view, "broker-config"):
        refused = ignored(key, name, value)
        if refused or not (name.endswith(JAAS) or base_name(name) in LISTENERS):  # told by W-SEC-09 and W-CFG-20
            over = "overrides nothing" if refused else _over(world, key, name)
            shown = f"{name}={for_people(name, value)} {over}"
            then = f"left out, as brokers do now: {refused}" if refused else in_kraft(key, name) or "stays as it is"
            yield Hit(f"/config/brokers/{key}", shown, f"in KRaft: {then}")


def _over(world: World, broker: str, name: str) -> str:
    if not isinstance(world.configs, Mapping):
        return "overrides the files, which cannot be seen"
    files = {node: getattr(found, "values", None) for node, found in world.configs.items()}
    own = [files[node.id] for node in world.inventory.brokers if broker in ("<default>", str(int(node.id)))]
    seen = [values.get(name) for values in own if values is not None]
    if len(seen) < len(own) or not own:
        return "overrides files that cannot be seen"
    if all(value is None for value in seen):
        return "is the only value: no file has the key"
    found = sorted({for_people(name, value) for value in seen if value is not None})
    return f"overrides the file's {' and '.join(found)}"


@check(
    "W-CFG-20",
    "a dynamic configuration of listeners has no effect in KRaft",
    "A KRaft broker refuses to alter listeners, advertised.listeners or listener.security.protocol.map, and with that "
    "one every other dynamic configuration: after the second roll the file alone holds, and the log says 'Per-broker "
    "configs ... could not be applied'.",
    "Write the values into the broker's file, restart the broker, then delete the dynamic ones before the second roll.",
    "DynamicListenerConfig.verifyListenerRegistrationAlterationSupported",
).sees(readable_zookeeper)
def dynamic_listeners(view: ZookeeperView, world: World) -> Result:
    """Rows of kind broker-config; W-SEC-09 is about the JAAS texts among them."""
    for key, name, value, _ in entities(view, "broker-config"):
        if not ignored(key, name, value) and in_kraft(key, name).startswith("refused"):
            yield Hit(f"/config/brokers/{key}", f"{name}={value}", f"in KRaft: {in_kraft(key, name)}")


Launches = dict[NodeId, Launch]
NAMED: Final = 6  # variables in one message


def _ours(key: str) -> bool:
    return key in READ_BY_US or edited_by_us(key)


@check(
    "B-CFG-23",
    "a broker's command line overrides a key that the migration changes or reads",
    "--override, in ExecStart, a drop-in or a start script, takes precedence over the file: the tool would check and "
    "edit a value that is not the broker's, and the broker would come back from a roll as it was.",
    "Move those keys into the broker's file, take the words out, and restart the broker.",
    "kafka.Kafka.getPropsFromArgs",
).sees(broker_launches, blocks_from=Stage.PREPARE, proof=True)
def no_override_of_ours(seen: Launches, world: World) -> Result:
    for node, launch in seen.items():
        keys = sorted(key for key in launch.overrides if _ours(key))
        if keys:
            yield Hit(f"broker {node}", f"its command line overrides {', '.join(keys)}")


@check(
    "W-CFG-24",
    "a broker's command line overrides other keys of its file",
    "Words of --override, in ExecStart, a drop-in or a start script, remain effective on that broker in every stage; "
    "the controllers' files are rendered from the file and do not have them.",
    "Move those keys into the broker's file; where controllers need them, also into controllers.overrides.",
    "kafka.Kafka.getPropsFromArgs",
).sees(broker_launches)
def other_overrides(seen: Launches, world: World) -> Result:
    for node, launch in seen.items():
        found = sorted(f"{key}={value}" for key, value in launch.overrides.items() if not _ours(key))
        if found:
            yield Hit(f"broker {node}", f"its command line overrides {', '.join(found)}")


@check(
    "W-CFG-25",
    "a broker's command line sets up the client of ZooKeeper",
    "Kafka takes ZooKeeper's TLS and SASL settings from -Dzookeeper.* (KAFKA_OPTS, the unit, a start script) and a "
    "JAAS file too. Controllers that lack them cannot call ZooKeeper: they wait indefinitely, and no log line says for "
    "what.",
    "Give the controllers' processes the same words (a JAAS file with the section Client of the brokers' identity), "
    "until finalize.",
    "KafkaConfig.zkClientConfigViaSystemProperties; seen on 3.9.2",
).sees(broker_launches)
def zookeeper_on_command_line(seen: Launches, world: World) -> Result:
    """-Dzookeeper.* and -Djava.security.auth.login.config; values are not shown."""
    for node, launch in seen.items():
        words = [f"-D{name}" for name in launch.zookeeper_properties]
        words += [JAAS_FILE] if launch.jaas_file is not None else []
        if words:
            yield Hit(f"broker {node}", f"its command line has {', '.join(words)}", launch.jaas_file or "")


@check(
    "B-CFG-26",
    "a broker's file is made from environment variables at each start",
    "Images of containers write server.properties again: what the tool edits is gone with the restart that should read "
    "it. Their variables in the process's environment, or a unit that starts Docker or Podman, are the sign.",
    "Change those variables in place of the file, by the platform that sets them; or start Kafka with a file of its "
    "own. Over SSH the environment is not read (it may hold secrets), and says so as a blind spot: look at the unit's "
    "Environment= and EnvironmentFile= lines for KAFKA_CFG_* and the like.",
    "docker images of Apache, Bitnami and Confluent",
).sees(broker_launches, blocks_from=Stage.PREPARE, proof=True)
def file_is_no_product(seen: Launches, world: World) -> Result:
    """Names of variables, whose values are never read; and a unit that runs a container, wherever its host is."""
    for node, launch in seen.items():
        if launch.container:
            message = f"its process is {launch.container}: Kafka runs in a container, and the image writes its file"
            yield Hit(f"broker {node}", message, launch.container)
        elif isinstance(launch.environment, Unknown):
            yield Blind(f"the environment of broker {node}", launch.environment.reason)
        elif launch.environment:
            more = "" if len(launch.environment) <= NAMED else f" and {len(launch.environment) - NAMED} more"
            yield Hit(f"broker {node}", f"its environment has {', '.join(launch.environment[:NAMED])}{more}")


@check(
    "B-CFG-27",
    "a broker runs with another file than the inventory names",
    "The tool would edit a file that the process does not read: the broker comes back from a roll as it was. A link "
    "and its target count as two files.",
    "Write the path into the inventory as the process's command line spells it, a link too; then make and run the "
    "setup script of its host again.",
    "kafka.Kafka.getPropsFromArgs",
).sees(broker_launches, blocks_from=Stage.PREPARE, proof=True)
def runs_with_its_file(seen: Launches, world: World) -> Result:
    for node, launch in seen.items():
        wanted, about = world.inventory.node(node).config, f"broker {node}"
        if launch.main_class is None:
            yield Blind(f"the command line of {about}", "it names no class of Kafka's")
        elif launch.config is None:
            yield Hit(about, "its command line names no properties file", wanted)
        elif not launch.config.startswith("/"):
            yield Blind(f"the command line of {about}", f"it names its file by a relative path: {launch.config}")
        elif os.path.normpath(launch.config) != os.path.normpath(wanted):
            yield Hit(about, f"it runs with {launch.config}, the inventory says {wanted}")


@check(
    "I-CFG-28",
    "a broker's unit reads environment files or has drop-ins",
    "They may set KAFKA_OPTS, heap or words of the command line. What they made of the running process was looked at; "
    "they stay as they are.",
    "Nothing, unless another finding names what they set; the controllers' units need their like.",
    "systemd.exec(5); systemd.unit(5)",
).sees(broker_launches)
def unit_has_more(seen: Launches, world: World) -> Result:
    for node, launch in seen.items():
        if launch.unit is not None and (found := (*launch.unit.environment_files, *launch.unit.drop_ins)):
            yield Hit(f"broker {node}", f"its unit is made of {', '.join(found)}, too")


@check(
    "I-CFG-35",
    "a node's file is a link",
    "The link stays. What it leads to is replaced, and copies of the file are beside that. It was one when root ran "
    "the setup script of its host, in folders that root alone can write.",
    "Nothing. Where the link is to lead elsewhere, change it, and run the setup script again, before or after a run: "
    "until then the file is not read.",
    "docs/hosts.md",
).sees(node_configs, when=ALWAYS)
def is_a_link(configs: Configs, world: World) -> Result:
    for about, file in placed("node", configs):
        if file.target:
            yield Hit(about, f"it is followed: {file.shown}")


RAISE: Final = (
    "Give every controller's unit the brokers' value before it starts, until finalize: `systemctl edit UNIT`, "
    '`[Service]` and `Environment="KAFKA_OPTS=-Djute.maxbuffer=BYTES"` (with what KAFKA_OPTS has there already), then '
    "`systemctl daemon-reload`."
)


@check(
    "W-CFG-31",
    "the brokers' ZooKeeper client takes larger answers than the default",
    "The controllers read and list the same znodes for the copy and in dual write. Without the same value their client "
    "closes the connection at the first answer that is too long, and retries indefinitely: ConnectionLoss, and the "
    "copy never ends. A list of 20,000 topics with names of 50 characters is above the default of 1,048,575 bytes.",
    RAISE,
    "ZooKeeper 3.8: ClientCnxnSocket 'Packet len ... is out of range!'; ZKClientConfig.JUTE_MAXBUFFER",
).sees(broker_launches)
def large_answers(seen: Launches, world: World) -> Result:
    for node, launch in seen.items():
        if launch.jute_maxbuffer is not None and launch.jute_maxbuffer > JUTE_DEFAULT:
            yield Hit(f"broker {node}", f"its command line has -Djute.maxbuffer={launch.jute_maxbuffer}")


@check(
    "B-CFG-32",
    "a controller's ZooKeeper client takes smaller answers than the brokers'",
    "The first answer that is too long for it closes its connection, again and again: the copy begins and never ends, "
    "with every broker in migration mode.",
    RAISE + " Restart the controllers one by one, before the first roll.",
    "ZooKeeper 3.8: ClientCnxnSocket 'Packet len ... is out of range!'; ZKClientConfig.JUTE_MAXBUFFER",
).sees(both(broker_launches, controller_launches), blocks_from=Stage.MIGRATION_MODE, proof=True)
def controllers_take_as_much(seen: tuple[Launches, Launches], world: World) -> Result:
    brokers, controllers = seen
    wanted = max((launch.jute_maxbuffer or JUTE_DEFAULT for launch in brokers.values()), default=JUTE_DEFAULT)
    for node, launch in controllers.items():
        if (own := launch.jute_maxbuffer or JUTE_DEFAULT) < wanted:
            yield Hit(f"controller {node}", f"its client takes {own} bytes, the brokers' {wanted}")
