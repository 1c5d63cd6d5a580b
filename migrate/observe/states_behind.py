"""Which `state` znodes have versions below the partition epochs of the stopped controllers' metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from migrate.model.outcome import Unknown
from migrate.model.rollback_evidence import MetadataLogs, StateBehind
from migrate.model.views import ZookeeperView
from migrate.zookeeper.layout import partition_states
from migrate.zookeeper.znode import Absent, TreeReader

AT_ONCE: Final = 20_000  # states whose answers are held at once


def states_behind(
    reader: Callable[[], TreeReader], logs: MetadataLogs | Unknown, view: ZookeeperView | Unknown
) -> tuple[StateBehind, ...] | Unknown:
    """All of them, by path; Unknown where the metadata, the tree or one of the states cannot be read.

    A topic that ZooKeeper no longer has, or has made anew under another id, is none of the metadata's.
    """
    if isinstance(logs, Unknown):
        return logs
    if isinstance(view, Unknown):
        return view
    found: list[StateBehind] = []
    wanted, tree = _known_to_both(logs, view), reader()
    while some := dict(islice(wanted, AT_ONCE)):
        for path, answer in zip(some, tree.data([*some]), strict=True):
            if isinstance(answer, Absent):
                return Unknown(f"{path} is {answer.value}: it cannot be held to the metadata's partition epoch")
            if answer.version < some[path]:
                found.append(StateBehind(path, answer.version, some[path]))
    return tuple(sorted(found, key=lambda entry: entry.path))


def _known_to_both(logs: MetadataLogs, view: ZookeeperView) -> Iterator[tuple[str, int]]:
    """(state znode, partition epoch) of each partition of the metadata whose topic ZooKeeper has."""
    ids = dict(zip(view.partitions.topic, view.partitions.topic_id, strict=True))
    of = logs.partitions
    for topic, topic_id, number, epoch in zip(of.topic, of.topic_id, of.partition, of.revision, strict=True):
        if ids.get(topic) in (topic_id, ""):
            yield partition_states(topic, (number,))[0], epoch
