"""Rows of brokers and features, which views have as values, for both views alike.

And which rows are left out on both sides, for one cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.views import KraftView, Registration, ZkBroker, ZookeeperView

BLIND_CONFIG: Final = re.compile(r"/config/brokers/(?P<key>[^\s:/]+):? (?P<name>[a-zA-Z0-9._-]+)")
EntityRow = tuple[str, str, str, str]  # kind, key, name, value


def of_zookeeper(view: ZookeeperView) -> tuple[EntityRow, ...]:
    return tuple(zookeeper_brokers(view.brokers))


def of_kraft(view: KraftView) -> tuple[EntityRow, ...]:
    return *kraft_brokers(view.brokers), *kraft_features(view.features)


def kraft_features(features: Mapping[str, int]) -> Iterator[EntityRow]:
    """Finalized features as rows of kind `feature`; level 0 is no feature (`FeatureLevelRecord`)."""
    for name, level in features.items():
        if level > 0:
            yield "feature", name, "level", str(level)


def zookeeper_brokers(brokers: Mapping[NodeId, ZkBroker]) -> Iterator[EntityRow]:
    """Live znodes of /brokers/ids as rows of kind `broker`."""
    for broker, znode in brokers.items():
        yield from _in_zookeeper_mode(broker, znode.endpoints, znode.rack)


def kraft_brokers(brokers: Mapping[NodeId, Registration]) -> Iterator[EntityRow]:
    """Registrations as rows of kind `broker`.

    One that is not migrating belongs to a broker in KRaft mode: ZooKeeper has nothing that its endpoints could be
    compared with, and its mode says so.
    """
    for broker, found in brokers.items():
        if found.migrating:
            yield from _in_zookeeper_mode(broker, found.endpoints, found.rack)
        else:
            yield "broker", str(int(broker)), "mode", "kraft"


def _in_zookeeper_mode(broker: NodeId, endpoints: Iterable[str], rack: str | None) -> Iterator[EntityRow]:
    yield "broker", str(int(broker)), "mode", "zookeeper"
    yield "broker", str(int(broker)), "endpoints", ",".join(sorted(endpoints))
    if rack is not None:
        yield "broker", str(int(broker)), "rack", rack


def blind_configs(blind_spots: Iterable[str]) -> frozenset[tuple[str, str]]:
    """(broker or <default>, name) of the password configurations that ZooKeeper's reader could not decode (pure).

    They are blind spots of the report: neither equal nor a difference.
    """
    matches = (BLIND_CONFIG.match(text) for text in blind_spots)
    return frozenset((match["key"], match["name"]) for match in matches if match)
