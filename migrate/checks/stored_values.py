"""ZKN: configurations and quotas that ZooKeeper holds unchecked, judged as Kafka judges them when it applies them.

`kafka-configs --zookeeper`, of releases before 3.0, and hands wrote them past every check.  What cannot even be read
stands in `migrate.checks.zookeeper`.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import unquote

from migrate.checks.registry import BEFORE_COPY, Hit, Result, check
from migrate.checks.sight import entities, readable_zookeeper
from migrate.hosts.properties import for_people
from migrate.model import kafka_values, strict_json
from migrate.model.config_keys import base_name
from migrate.model.stage import Stage
from migrate.model.views import ZookeeperView
from migrate.model.world import World

REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")  # ThrottledReplicaListValidator
DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
WHOLE: Final = {"INT": kafka_values.whole, "LONG": kafka_values.long, "SHORT": kafka_values.short}
DEFAULT_ENTITY: Final = "<default>"
QUOTAS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
QUOTAS_OF_IPS: Final = frozenset({"connection_creation_rate"})


@cache
def definitions() -> Mapping[str, Mapping[str, str]]:
    """`topic` and `broker`: key to type and what its validator takes (bounds, a third number, or words)."""
    found = strict_json.loads((files("migrate.checks") / "data" / "stored_values.json").read_text(encoding="utf-8"))
    return {kind: found[kind] for kind in ("topic", "broker")}


def fault(kind: str, key: str, text: str) -> str:
    """Why Kafka refuses that value of a topic or a broker (`ConfigDef.parse`); "" for what it takes."""
    definition = definitions()[kind].get(key)
    if definition is None:  # Kafka takes what it does not define, and applies nothing of it
        return ""
    form, *wanted = definition.split()
    text = kafka_values.trim(text)
    try:
        match form:
            case "BOOLEAN":
                kafka_values.boolean(text)
            case "INT" | "LONG" | "SHORT":
                return _outside(WHOLE[form](text), wanted)
            case "DOUBLE":
                number = float(text.rstrip("fFdD")) if DOUBLE.fullmatch(text) else None
                return f"{text!r} is no number" if number is None else _outside(number, wanted)
            case "REPLICAS":
                listed = kafka_values.elements(text)
                if not all(map(REPLICA.fullmatch, listed)) and "".join(listed) != "*":
                    return "it is neither * nor a list of PARTITION:BROKER"
            case "VERSION":
                version = kafka_values.protocol_version(text)
                if version not in {name for one in wanted for name in (one, one.partition("-IV")[0])}:
                    return f"{text!r} is no version that Kafka knows"
            case _:
                given = kafka_values.elements(text) if form == "LIST" else [text]
                strange = [one for one in given if one not in wanted]
                return f"{strange[0]!r} is none of {', '.join(wanted)}" if strange else ""
    except ValueError as error:
        return str(error)
    return ""


def _outside(number: float, bounds: list[str]) -> str:
    low, high, also = (float(bounds[place]) if place < len(bounds) else math.nan for place in range(3))
    if number == also or not (number < low or number > high):
        return ""
    return f"it is {'below ' + bounds[0] if number < low else 'above ' + bounds[1]}"


def ignored(name: str, value: str) -> str:
    """Why a broker leaves out that dynamic configuration, in every mode alike; "" where it does not."""
    return fault("broker", base_name(name), value)


@check(
    "B-ZKN-26",
    "a topic's configuration has a value that Kafka refuses",
    "A broker reads the configurations of all topics when it starts, and ends where it cannot take one: in ZooKeeper "
    "mode and in KRaft mode alike. A broker that runs has not been started since, so the first roll would stop at its "
    "first broker, which is down then. KRaft copies the value as it is.",
    "It was written past Kafka's checks: into ZooKeeper by hand, or by kafka-configs --zookeeper of a release before "
    "3.0.",
    "Delete the key, or set it again: kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic TOPIC "
    "--delete-config KEY. Where Kafka refuses that as well, correct the znode with zookeeper-shell, after a backup.",
    "LogManager.fetchTopicConfigOverrides; LogConfig.fromProps; seen on 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE)
def refused_topic_value(view: ZookeeperView, world: World) -> Result:
    """Of topics that do not exist, too: a broker of ZooKeeper mode reads all that stand there."""
    for topic, name, value, _ in entities(view, "topic-config"):
        if why := fault("topic", name, value):
            yield Hit(f"/config/topics/{topic}", f"{name}={for_people(name, value)}: {why}", "no broker starts with it")


@check(
    "B-ZKN-27",
    "a quota is of a key or of an ip that Kafka cannot apply",
    "A broker of ZooKeeper mode resolves the name of each ip when it starts, and ends where it cannot: the first roll "
    "would stop at its first broker, which is down then. One of KRaft mode leaves that quota out, and all that are "
    "applied with it, and says so in its log alone. A quota that Kafka does not define is copied, and its controllers "
    "cannot write that entity's quotas to ZooKeeper.",
    "The ip is a host name; or an IPv6 address, which kafka-configs encodes (%3A for a colon) and a broker does not "
    "decode; or the quota was written past Kafka's checks.",
    "Set the quota for addresses, and delete it from the name. Delete one that Kafka does not define, or that is of an "
    "IPv6 address, with zookeeper-shell, after a backup; IPv6 addresses can have quotas again when no broker of "
    "ZooKeeper mode is left.",
    "IpConfigHandler; ClientQuotaMetadataManager.handleIpQuota; ZkConfigMigrationClient.writeClientQuotas",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def quota_nobody_applies(view: ZookeeperView, world: World) -> Result:
    """Whether a name resolves on each broker, and at each of its starts, nobody knows: it is refused."""
    for entity, key, value, where in entities(view, "client-quota"):
        of_ip = entity.startswith("ip=")
        name = where.rpartition("/")[2] if where else unquote(entity.removeprefix("ip="))
        if key not in (QUOTAS_OF_IPS if of_ip else QUOTAS):
            yield Hit(where or entity, f"{key}={value}: Kafka defines no such quota of {entity}", entity)
        elif of_ip and name != DEFAULT_ENTITY and not _is_address(name):
            yield Hit(where or entity, f"{name} is no address: a broker has to resolve it", entity)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
