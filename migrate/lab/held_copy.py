"""Holds the copy open: a dead broker id in one assignment keeps the controllers waiting for a broker that never comes.

The copy begins with the last broker's registration and takes an instant.  The KRaft driver reads every assignment in
ZooKeeper and waits for each id in it ("Still waiting for ZK brokers [999] found in metadata to register with KRaft");
the ZooKeeper controller takes no notice of a replica list that is changed in the znode, so that nothing else moves - as
long as it stays: its successor reads every assignment when it begins, and then the partition is never whole (seen).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from migrate.errors import LabProofFailed
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.write import ZookeeperWriter
from migrate.zookeeper.znode import Znode

TOPIC: Final = "events-07"
DEAD: Final = 999


def hold(client: ZookeeperClient) -> None:
    """Put the dead id into the topic's first partition; nothing to do where it stands there."""
    _edit(client, lambda replicas: [*replicas, DEAD] if DEAD not in replicas else replicas)


def release(client: ZookeeperClient) -> None:
    """Take it out again; nothing to do where it is not there."""
    _edit(client, lambda replicas: [one for one in replicas if one != DEAD])


def held(client: ZookeeperClient) -> bool:
    """Does it stand there?"""
    _, replicas = _look(client)
    return DEAD in replicas["partitions"]["0"]


def _look(client: ZookeeperClient) -> tuple[Znode, dict[str, dict[str, list[int]]]]:
    path = f"{layout.TOPICS}/{TOPIC}"
    (znode,) = client.data([path])
    if not isinstance(znode, Znode) or not znode.data:
        raise LabProofFailed("the topic whose assignment holds the copy open is not there", where=path)
    return znode, json.loads(znode.data)


def _edit(client: ZookeeperClient, edit: Callable[[list[int]], list[int]]) -> None:
    znode, found = _look(client)
    before = found["partitions"]["0"]
    after = edit(before)
    if after != before:
        found["partitions"]["0"] = after
        data = json.dumps(found, separators=(",", ":")).encode()
        ZookeeperWriter(client).set(f"{layout.TOPICS}/{TOPIC}", data, znode.version)
