"""What each key of Kafka takes: by `kafka_forms.json`, and by readers of its own where a form has a grammar (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from migrate.model import kafka_values, strict_json
from migrate.model.config_keys import base_name

REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")  # ThrottledReplicaListValidator
DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
WHOLE: Final = {"INT": kafka_values.whole, "LONG": kafka_values.long, "SHORT": kafka_values.short}
READERS: Final[Mapping[str, Callable[[str], object]]] = {  # of a file's keys that are more than a type and bounds
    "advertised.listeners": kafka_values.endpoints,
    "control.plane.listener.name": kafka_values.listener_name,
    "controller.quorum.bootstrap.servers": kafka_values.addresses,
    "controller.quorum.voters": kafka_values.voters,
    "inter.broker.listener.name": kafka_values.listener_name,
    "inter.broker.protocol.version": kafka_values.protocol_version,
    "listener.security.protocol.map": kafka_values.protocol_map,
    "listeners": kafka_values.endpoints,
    "log.dirs": kafka_values.directories,
    "max.connections.per.ip.overrides": kafka_values.limits_of_addresses,
    "metadata.log.dir": kafka_values.directories,
    "metrics.recording.level": kafka_values.recording_level,
    "process.roles": kafka_values.roles,
    "security.inter.broker.protocol": kafka_values.security_protocol,
    "zookeeper.connect": kafka_values.connect_string,
}
LIMITS: Final = (  # a number, its default, the one that it may be no larger than, and that one's default
    ("replica.fetch.wait.max.ms", 500, "replica.socket.timeout.ms", 30_000),
    ("replica.fetch.wait.max.ms", 500, "replica.lag.time.max.ms", 30_000),
    *(
        pair
        for groups in ("group.consumer", "group.share")
        for what, least, most in (("heartbeat.interval.ms", 5_000, 15_000), ("session.timeout.ms", 45_000, 60_000))
        for pair in (
            (f"{groups}.min.{what}", least, f"{groups}.{what}", least),
            (f"{groups}.{what}", least, f"{groups}.max.{what}", most),
        )
    ),
)
RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")  # the first of them holds


@cache
def definitions() -> Mapping[str, Mapping[str, str]]:
    """`topic`, `broker` (its dynamic keys) and `file`: key to type and what its validator takes.

    That is bounds and a third number, or words.
    """
    found = strict_json.loads((files("migrate.checks") / "data" / "kafka_forms.json").read_text(encoding="utf-8"))
    dynamic = {key: found["file"][key] for key in found["dynamic"].split()}
    return {"topic": found["topic"], "file": found["file"], "broker": dynamic | found["dynamic_only"]}


def fault(kind: str, key: str, text: str) -> str:
    """Why Kafka refuses that value of a `topic`, a `broker` or a `file`; "" for what it takes (`ConfigDef.parse`)."""
    reader = READERS.get(key) if kind == "file" else None
    definition = definitions()[kind].get(key, "")
    try:
        if reader is not None:
            reader(text)
        return _fault(definition, kafka_values.trim(text)) if definition else ""  # what is not defined is ignored
    except ValueError as error:
        return str(error)


def _fault(definition: str, text: str) -> str:
    form, *wanted = definition.split()
    match form:
        case "BOOLEAN":
            kafka_values.boolean(text)
        case "INT" | "LONG" | "SHORT":
            return _outside(WHOLE[form](text), wanted)
        case "DOUBLE":
            return _outside(_double(text), wanted)
        case "REPLICAS":
            listed = kafka_values.elements(text)
            if not all(map(REPLICA.fullmatch, listed)) and "".join(listed) != "*":
                return "it is neither * nor a list of PARTITION:BROKER"
        case "VERSION":
            version = kafka_values.protocol_version(text)
            if version not in {name for one in wanted for name in (one, one.partition("-IV")[0])}:
                return f"{text!r} is no version that Kafka knows"
        case "SOME" | "CLASS":
            return "" if text else "it is empty"
        case _:
            given = kafka_values.elements(text) if form == "LIST" else [text.upper() if form == "ANYCASE" else text]
            strange = [one for one in given if wanted and one not in wanted]
            return f"{strange[0]!r} is none of {', '.join(wanted)}" if strange else ""
    return ""


def _double(text: str) -> float:
    """`Double.parseDouble`: Python's own reader takes other forms."""
    if not DOUBLE.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return float(text.rstrip("fFdD"))


def _outside(number: float, bounds: list[str]) -> str:
    low, high, also = (float(bounds[place]) if place < len(bounds) else math.nan for place in range(3))
    if number == also or not (number < low or number > high):
        return ""
    return f"it is {'below ' + bounds[0] if number < low else 'above ' + bounds[1]}"


def meaning(key: str, text: str) -> object:
    """What a value is to Kafka: equal for true and TRUE, 8 and 008; the text where it has no form, or is refused."""
    key, text = base_name(key), kafka_values.trim(text)
    tables = definitions()
    form = (tables["file"].get(key) or tables["broker"].get(key, "TEXT")).split()[0]
    try:
        if key in READERS:
            return READERS[key](text)
        if form == "BOOLEAN":
            return kafka_values.boolean(text)
        if form in WHOLE:
            return WHOLE[form](text)
        if form == "DOUBLE":
            return _double(text)
        return kafka_values.elements(text) if form == "LIST" else text
    except ValueError:
        return text


def misfits(values: Mapping[str, str]) -> Iterator[str]:
    """What Kafka refuses of numbers that must fit together (`KafkaConfig.validateValues`, and the coordinators')."""

    def number(key: str, default: int) -> int:
        found = meaning(key, values.get(key, ""))
        return found if isinstance(found, int) else default

    def at_most(low: str, here: int, high: str, there: int) -> Iterator[str]:
        here, there = number(low, here), number(high, there)
        if here > there:
            yield f"{low} is {here}, and {high} is {there}: it may be no larger"

    for limit in LIMITS:
        yield from at_most(*limit)
    if number("queued.max.request.bytes", -1) > 0:
        yield from at_most("socket.request.max.bytes", 104_857_600, "queued.max.request.bytes", -1)
    idle, delay = "connections.max.idle.ms", "connection.failed.authentication.delay.ms"
    if 0 <= number(idle, 600_000) <= number(delay, 100):
        yield f"{idle} is {number(idle, 600_000)}: it must be larger than {delay}, {number(delay, 100)}"
    threads, buffer = number("log.cleaner.threads", 1), number("log.cleaner.dedupe.buffer.size", 128 * 2**20)
    if not threads or buffer // threads <= 2**20:
        yield f"log.cleaner.threads is {threads}: each needs over 1 MiB of log.cleaner.dedupe.buffer.size, {buffer}"
    kept = next((key for key in RETENTION if key in values), "")
    if number(kept, -1) == 0:
        yield f"{kept} is 0: -1 is no limit, and a limit is 1 or more"
    for key, least, default in (("log.roll.ms", 1, 1), ("log.roll.jitter.ms", 0, 0)):
        if number(key, default) < least:
            yield f"{key} is below {least}"
    acks, factor = number("offsets.commit.required.acks", -1), number("offsets.topic.replication.factor", 3)
    if not -1 <= acks <= factor:
        yield f"offsets.commit.required.acks is {acks}: it is -1 to offsets.topic.replication.factor, {factor}"
    if not 0 <= number("offsets.topic.compression.codec", 0) <= 4:
        yield "offsets.topic.compression.codec is 0 to 4"
    if not number("max.connections.per.ip", 1) and not values.get("max.connections.per.ip.overrides", "").strip():
        yield "max.connections.per.ip is 0 without max.connections.per.ip.overrides"
    protocols = "group.coordinator.rebalance.protocols"
    if "classic" not in kafka_values.elements(values.get(protocols, "classic")):
        yield f"{protocols} lacks classic"
