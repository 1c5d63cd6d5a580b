"""CFG: how a file is written: keys that stand twice, references to other places, values that stand over the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.config import Configs
from migrate.checks.principals import JAAS
from migrate.checks.registry import Hit, Result, check
from migrate.checks.sight import broker_configs, node_configs, readable_zookeeper
from migrate.hosts.collect_disks import HIDDEN
from migrate.hosts.properties import duplicates
from migrate.model.config_keys import Fate, Moment, fate, taken
from migrate.model.findings import CodeDoc
from migrate.model.secrets import redacted
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
)
LISTENERS: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")
LISTENER_CONFIG: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")  # DynamicBrokerConfig.ListenerConfigRegex


def edited_by_us(key: str) -> bool:
    """Does any stage set or remove it?"""
    return any(fate(key, moment) in (Fate.SET, Fate.REMOVED) for moment in EDITS)


@check(
    CodeDoc(
        "B-CFG-18",
        "a key that a stage changes stands twice in a file",
        "Kafka takes the last of them; which one was meant, and which one a person would edit, is not known. The tool "
        "changes no such line.",
        "A line was added where the key stood already.",
        "Leave one line of that key.",
        "java.util.Properties.load",
    ),
    sees=node_configs,
    blocks_from=Stage.PREPARE,
)
def key_stands_once(configs: Configs, world: World) -> Result:
    """Keys that some stage sets or removes; others may stand as often as their owner likes."""
    for node, file in configs.items():
        twice = [key for key in duplicates(file.raw, file.path) if edited_by_us(key)]
        if twice:
            yield Hit(f"node {node}: {file.path}", f"more than one line of {', '.join(twice)}")


@check(
    CodeDoc(
        "B-CFG-21",
        "a value that the tool decides by is a reference",
        "Only the node can resolve it (config.providers): the tool would judge and edit by a text that is not the "
        "value.",
        "A value is written as ${provider:...}.",
        "Write the value of that key into the file. Passwords and other keys may stay references.",
        "KIP-297; AbstractConfig.resolveConfigVariables",
    ),
    sees=node_configs,
    blocks_from=Stage.PREPARE,
)
def read_values_are_plain(configs: Configs, world: World) -> Result:
    """Keys that the tool reads or edits."""
    for node, file in configs.items():
        for key, value in file.values.items():
            if (key in READ_BY_US or edited_by_us(key)) and value != HIDDEN and REFERENCE.search(value):
                yield Hit(f"node {node}: {file.path}", f"{key} is a reference")


@check(
    CodeDoc(
        "W-CFG-22",
        "controllers take references from a broker's file",
        "Each controller must resolve them by itself: a provider's class, file or variable that its host lacks stops "
        "its start, and `kafka-storage format` before it.",
        "Values are written as ${provider:...}, and controllers take those keys.",
        "Provide on every controller's host what the references name; or set other values in controllers.overrides.",
        "KIP-297",
    ),
    sees=broker_configs,
)
def controllers_resolve(configs: Configs, world: World) -> Result:
    """One finding a broker's file, with the keys; values are never shown."""
    for node, file in configs.items():
        found = [key for key in taken(file.values) if file.values[key] != HIDDEN and REFERENCE.search(file.values[key])]
        if found:
            providers = file.values.get("config.providers", "").strip() or "none"
            yield Hit(
                f"broker {node}: {file.path}", f"references in {', '.join(found)}", f"config.providers={providers}"
            )


def in_kraft(name: str) -> str:
    """What becomes of a dynamic configuration of a broker, in words; "" where it goes on as it is."""
    if name.endswith(JAAS):
        return "lost: the file's value is used (W-SEC-09)"
    base = LISTENER_CONFIG.fullmatch(name)
    if (name if base is None else base[1]) in LISTENERS:
        return "refused: KRaft alters no listeners"
    return ""


def _dynamic(view: ZookeeperView) -> Iterator[tuple[str, str, str]]:
    """Broker (or `<default>`), key and value of each dynamic configuration of brokers."""
    rows = view.entities
    for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True):
        if kind == "broker-config":
            yield key, name, value


@check(
    CodeDoc(
        "I-CFG-19",
        "dynamic configurations stand over the brokers' files",
        "They are copied and go on in KRaft; what a file says of those keys holds on no broker.",
        "kafka-configs --entity-type brokers.",
        "Nothing before the migration. To see the file's value hold, delete the dynamic one.",
        "DynamicBrokerConfig; KRaftMigrationDriver",
    ),
    sees=readable_zookeeper,
)
def dynamic_over_file(view: ZookeeperView, world: World) -> Result:
    """Rows of kind broker-config that KRaft keeps, with the file's value beside them."""
    for key, name, value in _dynamic(view):
        if not in_kraft(name):
            shown = f"{name}={redacted(name, value)}"
            yield Hit(f"/config/brokers/{key}", f"{shown} {_over(world, key, name)}", "in KRaft: goes on as it is")


def _over(world: World, broker: str, name: str) -> str:
    """Over which value of the file."""
    if not isinstance(world.configs, Mapping):
        return "stands over the files, which cannot be seen"
    files = {node: getattr(found, "values", None) for node, found in world.configs.items()}
    own = [files[node.id] for node in world.inventory.brokers if broker in ("<default>", str(int(node.id)))]
    seen = [values.get(name) for values in own if values is not None]
    if len(seen) < len(own) or not own:
        return "stands over files that cannot be seen"
    if all(value is None for value in seen):
        return "stands alone: no file has the key"
    found = sorted({redacted(name, value) for value in seen if value is not None})
    return f"stands over the file's {' and '.join(found)}"


@check(
    CodeDoc(
        "W-CFG-20",
        "a dynamic configuration of listeners does not live on in KRaft",
        "A KRaft broker refuses to alter its listeners, and with that one every other dynamic configuration: after the "
        "second roll the file alone holds, and the log says 'Per-broker configs ... could not be applied'.",
        "kafka-configs set listeners, advertised.listeners or listener.security.protocol.map of a broker.",
        "Write the values into the broker's file, delete the dynamic ones, then restart the broker before the "
        "second roll.",
        "DynamicListenerConfig.verifyListenerRegistrationAlterationSupported",
    ),
    sees=readable_zookeeper,
)
def dynamic_listeners(view: ZookeeperView, world: World) -> Result:
    """Rows of kind broker-config; W-SEC-09 is about the JAAS texts among them."""
    for key, name, value in _dynamic(view):
        if in_kraft(name).startswith("refused"):
            yield Hit(f"/config/brokers/{key}", f"{name}={value}", f"in KRaft: {in_kraft(name)}")
