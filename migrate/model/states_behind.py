"""Partition states whose znode is older, by Kafka's own count, than what brokers have heard of the partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateBehind:
    """A `state` znode with a version below the partition epoch that the metadata has.

    ZooKeeper's controller takes the version for the partition epoch (`LeaderAndIsr.partitionEpoch`), and a broker
    ignores a LeaderAndIsr whose partition epoch is below the one that it knows (`Partition.makeLeader`,
    `makeFollower`).  KRaft counts one for each change, dual write writes several of them at once.
    """

    path: str
    version: int
    partition_epoch: int
