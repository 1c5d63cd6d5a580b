"""Kafka's own reading of a properties file: does a node of 3.9.2 take it, and what does it make of the values?

`KafkaConfig` validates most of a file without a start.  What a start reads beyond it is read here by the same classes:
ZooKeeper's connect string, the level of metrics, and the values of single listeners.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.testing.kafka_jvm import first_cause, kafka_jvm


@dataclass(frozen=True, slots=True)
class Reading:
    """`said` is the message of the exception that would end the start, "" for none; `values` is what is read of it."""

    said: str
    values: Mapping[str, Any] = field(default_factory=dict)  # every key of Kafka's, parsed, with its default
    given: Mapping[str, Any] = field(default_factory=dict)  # every key of the file, as it stands
    protocols: Mapping[str, str] = field(default_factory=dict)  # by Kafka's names of listeners
    mode: str = ""  # roles, flag, id
    listeners: str = ""
    advertised: str = ""
    between_brokers: str = ""
    log_dirs: tuple[str, ...] = ()
    version: str = ""
    zookeeper: str = ""

    @property
    def taken(self) -> bool:
        """Would a node of this file start, as far as its configuration decides?"""
        return not self.said

    def of(self, keys: Collection[str]) -> Reading:
        """The same with those keys alone."""
        return self._filtered(lambda key: key in keys)

    def besides(self, keys: Collection[str]) -> Reading:
        """The same without those keys."""
        return self._filtered(lambda key: key not in keys)

    def _filtered(self, wanted: Callable[[str], bool]) -> Reading:
        values, given = ({key: one[key] for key in one if wanted(key)} for one in (self.values, self.given))
        return replace(self, values=values, given=given)


class KafkaReads:
    """One JVM for as many files as one likes."""

    def __init__(self, gateway: Any) -> None:
        self.jvm = gateway.jvm
        self._mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        beans = self.jvm.com.fasterxml.jackson.databind.SerializationFeature.FAIL_ON_EMPTY_BEANS
        self._mapper.disable(beans)  # a password shows nothing

    def read(self, raw: bytes) -> Reading:
        """Read a file; each one once."""
        jvm = self.jvm
        properties = jvm.java.util.Properties()
        try:
            properties.load(jvm.java.io.ByteArrayInputStream(raw))
            config = jvm.kafka.server.KafkaConfig.fromProps(properties, False)
            for name in config.effectiveListenerSecurityProtocolMap().keys().mkString("\n").splitlines():
                listener = name.removeprefix("ListenerName(").removesuffix(")").lower()
                config.valuesWithPrefixOverride(f"listener.name.{listener}.")  # as its server does
            jvm.kafka.server.Server.buildMetricsConfig(config)
            text = properties.getProperty("zookeeper.connect")
            zookeeper = ""
            if text is not None:
                connect = jvm.org.apache.zookeeper.client.ConnectStringParser(text.strip())
                hosts = jvm.java.util.Arrays.toString(connect.getServerAddresses().toArray())
                zookeeper = f"{hosts} {connect.getChrootPath()}"
        except Py4JJavaError as error:
            return Reading(first_cause(error))
        protocols = config.effectiveListenerSecurityProtocolMap().mkString("\n").replace("ListenerName(", "")
        return Reading(
            said="",
            values=json.loads(self._mapper.writeValueAsString(config.values())),
            given=json.loads(self._mapper.writeValueAsString(config.originals())),
            mode=f"{config.processRoles()} {config.migrationEnabled()} {config.nodeId()}",
            listeners=config.listeners().toString(),
            advertised=config.effectiveAdvertisedBrokerListeners().toString(),
            protocols=dict(line.rsplit(") -> ", 1) for line in protocols.splitlines()),
            between_brokers=f"{config.interBrokerListenerName()} {config.interBrokerSecurityProtocol()}",
            log_dirs=tuple(config.logDirs().mkString("\n").split("\n")),
            version=config.interBrokerProtocolVersion().toString() if config.requiresZookeeper() else "",
            zookeeper=zookeeper,
        )


@contextlib.contextmanager
def kafka_reads() -> Iterator[KafkaReads]:
    """The JVM."""
    with kafka_jvm(release=False) as gateway:
        yield KafkaReads(gateway)
