"""Preferred leaders: which partitions are led by another replica than the first of their list, and may be given back.

Kafka's own rule (`PartitionChangeBuilder`, `PartitionStateMachine`): an election PREFERRED gives a partition to its
first replica where that one is in the ISR and its broker takes leadership.  What cannot be given back is named with its
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migrate.model.columns import PartitionColumns
from migrate.model.views import KraftView, ZookeeperView


@dataclass(frozen=True, slots=True)
class Away:
    """A partition whose leader (-1: none) is not its first replica; `why` it cannot be: "" where an election helps."""

    topic: str
    partition: int
    preferred: int
    leader: int
    why: str = ""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Leaders:
    """All partitions of one view: how many there are, which are away and can be elected, which cannot."""

    partitions: int
    electable: tuple[Away, ...]
    left: tuple[Away, ...]

    @property
    def told(self) -> str:
        """One line: `359 of 361 partitions are led by their first replica; not: a-1 (...)`."""
        at_home = self.partitions - len(self.electable) - len(self.left)
        line = f"{at_home} of {self.partitions} partitions are led by their first replica"
        if not self.left:
            return line
        named = ", ".join(f"{entry.name} ({entry.why})" for entry in self.left[:3])
        more = f" and {len(self.left) - 3} more" if len(self.left) > 3 else ""
        return f"{line}; no election gives back {named}{more}"


def of_kraft(view: KraftView) -> Leaders:
    """By the metadata: a broker takes leadership that is registered, unfenced and in no controlled shutdown."""
    closed = {
        int(node): "is fenced" if entry.fenced else "is in controlled shutdown" if entry.in_controlled_shutdown else ""
        for node, entry in view.brokers.items()
    }
    return _leaders(view.partitions, closed)


def of_zookeeper(view: ZookeeperView) -> Leaders:
    """By ZooKeeper: a broker takes leadership that has its znode in /brokers/ids."""
    return _leaders(view.partitions, {int(node): "" for node in view.brokers})


def _leaders(table: PartitionColumns, closed: Mapping[int, str]) -> Leaders:
    electable: list[Away] = []
    left: list[Away] = []
    for index, leader in enumerate(table.leader):
        preferred = table.replicas[index][0] if table.replicas[index] else -1
        if preferred == leader and preferred >= 0:
            continue
        broker = closed.get(preferred, "is not registered")
        why = "it has no replica" if preferred < 0 else f"broker {preferred} {broker}" if broker else ""
        if not why and preferred not in table.isr[index]:
            why = f"broker {preferred} is not in its ISR"
        found = Away(table.topic[index], table.partition[index], preferred, leader, why)
        (left if why else electable).append(found)
    return Leaders(len(table), tuple(electable), tuple(left))


def by_topic(wanted: Iterable[Away]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for entry in wanted:
        found.setdefault(entry.topic, []).append(entry.partition)
    return found
