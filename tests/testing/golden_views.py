"""All views of one real cluster at the stages of its migration to KRaft: 24 topics, 212 partitions, 527 replicas.

Captured at rest, ZooKeeper and the metadata log within a second of each other.  The metadata log of the last stage
holds the others as its prefixes; the log directories are the same in all of them.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from migrate.hosts.meta_properties import decode, decode_folder
from migrate.kraft.image import Image
from migrate.model.columns import ReplicaColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import BrokerDisks, Directory, KraftView, ZookeeperView
from migrate.zookeeper.read import view_of
from tests.testing.golden_trees import golden

DATA = Path(__file__).parent.parent / "data"
# the last offset of the metadata log when each stage was captured
LOG_ENDS = {"hybrid-after-copy": 654, "first-broker-kraft": 1218, "all-brokers-kraft": 2320, "finalized": 2393}


@dataclass(frozen=True, slots=True)
class Views:
    """The three views of a stage, secrets digested with one key."""

    zookeeper: ZookeeperView
    kraft: KraftView
    disks: dict[NodeId, BrokerDisks | Unknown]


def views_at(stage: str) -> Views:
    """The views at one of the stages of `LOG_ENDS`."""
    digester = Digester(b"golden")
    zookeeper = view_of(golden(stage), "127.0.0.1:2181", digester)
    image = Image(digester)
    end = LOG_ENDS[stage] + 1
    image.apply_batches(gzip.decompress((DATA / "metadata" / "finalized.log.gz").read_bytes()), below=end)
    return Views(zookeeper, image.view(zookeeper.cluster_id, end, stage), _disks())


def _disks() -> dict[NodeId, BrokerDisks | Unknown]:
    found = json.loads(gzip.decompress((DATA / "disks" / "log-dirs.json.gz").read_bytes()))
    return {
        NodeId(broker): BrokerDisks(
            NodeId(broker),
            tuple(_directory(f"/data/b{broker}/{name}", told) for name, told in sorted(directories.items())),
        )
        for broker, directories in found.items()
    }


def _directory(path: str, told: dict[str, object]) -> Directory:
    replicas = ReplicaColumns()
    folders = told["folders"]
    assert isinstance(folders, dict)
    for name, topic_id in sorted(folders.items()):
        replica = decode_folder(name)
        if name == "__cluster_metadata-0" or replica is None:
            continue
        replicas.topic.append(replica.topic)
        replicas.partition.append(replica.partition)
        replicas.topic_id.append(topic_id)
        replicas.kind.append(replica.kind)
        replicas.folder.append(name)
        replicas.size.append(-1)
    meta = decode(str(told["meta.properties"]).encode())
    return Directory(path, "", meta, replicas, "__cluster_metadata-0" in folders)
