"""What the rollback demo plants in a lab halfway through a migration, and proofs of the rolled-back lab.

The proofs are independent of the run's own: znodes, files, folders, clients.

The copy is held open by a dead broker id in one assignment, which keeps the controllers waiting for a broker that never
comes: the copy begins with the last broker's registration and takes an instant.  The KRaft driver reads every
assignment in ZooKeeper and waits for each id in it ("Still waiting for ZK brokers [999] found in metadata to register
with KRaft").  The ZooKeeper controller ignores a replica list that is changed in the znode, so nothing else moves - as
long as it stays: its successor reads every assignment when it starts, and the partition never gets healthy (seen).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient

from migrate.errors import LabProofFailed, SeedRefused
from migrate.hosts.leftovers import ASIDE_FOLDER
from migrate.hosts.properties import parse
from migrate.lab import ready, seed
from migrate.lab.cluster import Lab
from migrate.lab.proofs import RECORDS, SECONDS, quiet_clients, read_records, steady_producer, strays, write_records
from migrate.lab.seed_data import DURABLE, SeedAcl, SeedQuota, SeedTopic
from migrate.zookeeper import layout
from migrate.zookeeper.backup import BackupTree, Standing, compare, load_backup, write_backup
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.write import ZookeeperWriter

TOPIC: Final = "events-07"
DEAD: Final = 999


def hold_copy(client: ZookeeperClient) -> None:
    """Put the dead id into the topic's first partition; a second call does nothing."""
    _edit(client, lambda replicas: [*replicas, DEAD] if DEAD not in replicas else replicas)


def release_copy(client: ZookeeperClient) -> None:
    """Remove the dead id; a second call does nothing."""
    _edit(client, lambda replicas: [one for one in replicas if one != DEAD])


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


PREFIX: Final = "made-"
BROKER_CONFIG: Final = ("background.threads", "3")  # at most double what it is
TOPIC_CONFIG: Final = ("retention.ms", "7200001")
PARTITIONS: Final = 24  # enough for some whose first changes KRaft makes at once, so that dual write writes them once


def name_of(stage: str) -> str:
    """The name of the topic, user and client id that are created at that stage."""
    return f"{PREFIX}{stage}"


def make_objects(lab: Lab, stage: str) -> str:
    """Create a topic with records and a dynamic configuration, a broker's configuration, quotas, a SCRAM user, ACLs.

    A second call creates only records again, of which the first RECORDS count.  Returns what was created.

    Raises:
        SeedRefused, LabProofFailed: the cluster refused something.
    """
    name, topology = name_of(stage), lab.topology
    admin = AdminClient(quiet_clients(lab.clients_inventory))
    factor = min(3, len(topology.brokers))
    seed.create_topics(admin, (SeedTopic(name, PARTITIONS, factor, DURABLE if factor == 3 else {}),))
    names = [broker.name for broker in topology.brokers]
    ready.wait_until("waiting for the new topic", lambda: ready.brokers_agree(topology), lab.supervisor, names)
    broker, port = str(topology.brokers[-1].id), _controller_port(lab, admin)
    wanted = {("topic", name): dict([TOPIC_CONFIG]), ("broker", broker): dict([BROKER_CONFIG])}
    seed.alter_configs(topology, wanted, port)
    seed.alter_quotas(
        topology,
        (
            SeedQuota((("user", name),), {"producer_byte_rate": 1048577.0}),
            SeedQuota((("client-id", name),), {"consumer_byte_rate": 1048579.0}),
        ),
        port,
    )
    seed.create_users(admin, ((name, "SCRAM-SHA-256", 4096),))
    seed.create_acls(
        admin,
        (
            SeedAcl("topic", name, "literal", f"User:{name}", "*", "read", "allow"),
            SeedAcl("topic", f"{name}-", "prefixed", f"User:{name}", "*", "write", "allow"),
        ),
    )
    write_records(steady_producer(quiet_clients(lab.clients_inventory)), name)
    return f"topic {name} with {RECORDS} records, 2 configurations, 2 quotas, a SCRAM user, 2 ACLs"


def _controller_port(lab: Lab, admin: AdminClient) -> int:
    """The INTERNAL port of the broker that the cluster names as controller.

    Half of the first roll is a trap: a broker in migration mode forwards such requests, and a controller in plain
    ZooKeeper mode closes the connection on them ("sent an `Envelope` request even though forwarding has not been
    enabled", seen), until the client's time is over.
    """
    named = admin.list_topics(timeout=SECONDS).controller_id
    found = [broker.internal_port for broker in lab.topology.brokers if broker.id == named]
    return found[0] if found else lab.topology.brokers[0].internal_port


def missing_objects(tree: BackupTree, stage: str, broker: int) -> Iterator[str]:
    """Yield those objects that a tree of ZooKeeper lacks: a backup, or the live one."""
    name = name_of(stage)
    wanted = {
        f"topic {name}": (f"{layout.TOPICS}/{name}", b'"topic_id"'),
        f"configuration of topic {name}": (f"{layout.TOPIC_CONFIGS}/{name}", TOPIC_CONFIG[1].encode()),
        f"configuration of broker {broker}": (f"{layout.BROKER_CONFIGS}/{broker}", BROKER_CONFIG[0].encode()),
        f"quota of user {name}": (f"{layout.USER_CONFIGS}/{name}", b"producer_byte_rate"),
        f"SCRAM user {name}": (f"{layout.USER_CONFIGS}/{name}", b"SCRAM-SHA-256"),
        f"quota of client id {name}": (f"{layout.CLIENT_CONFIGS}/{name}", b"consumer_byte_rate"),
        f"ACL of topic {name}": (f"{layout.LITERAL_ACLS}/Topic/{name}", name.encode()),
        f"ACL of topics {name}-*": (f"{layout.PREFIXED_ACLS}/Topic/{name}-", name.encode()),
    }
    for what, (path, part) in wanted.items():
        data = getattr(tree.znodes.get(path), "data", None)
        if not data or part not in data:
            yield what


def require_records(lab: Lab, stage: str) -> str:
    """Read the topic's records; LabProofFailed where one is missing."""
    name = name_of(stage)
    read = read_records(quiet_clients(lab.clients_inventory), name)
    if read < RECORDS:
        raise LabProofFailed(f"{read} of {RECORDS} records came back from {name}", where=str(lab.topology.directory))
    return f"{read} records of {name} read"


AFTER: Final = "after-rollback.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Proof:
    """One claim, what contradicts it ("" for nothing), and its evidence."""

    text: str
    against: str
    evidence: str


def hash_broker_files(lab: Lab) -> dict[str, str]:
    """SHA-256 of each broker's file, by id: taken before the migration, and compared after the rollback."""
    names = {str(broker.id): lab.topology.config(broker.name) for broker in lab.topology.brokers}
    return {node: hashlib.sha256(path.read_bytes()).hexdigest() for node, path in names.items()}


def prove_rollback(
    lab: Lab, client: ZookeeperClient, stage: str, before: Mapping[str, str], folder: Path, kraft_epoch: int
) -> Iterator[Proof]:
    """Yield all proofs.  `folder` is the rollback's run folder, `before` is `hash_broker_files` from the beginning.

    `kraft_epoch` is the epoch that the KRaft controllers had reached, -1 where they never took over.
    """
    yield _end_state(lab, client, kraft_epoch)
    yield _files(lab, before)
    yield _versions(lab)
    yield _tree(client, folder)
    yield _made(lab, client, stage, folder)
    topics = client.children([layout.TOPICS])[0]
    found = strays(lab.topology, () if isinstance(topics, Absent) else topics)
    yield Proof(
        "After the rollback no folder of an existing topic was set aside as stray.",
        ", ".join(found[:3]),
        "all folders read",
    )
    yield _aside(lab)


def _end_state(lab: Lab, client: ZookeeperClient, kraft_epoch: int) -> Proof:
    paths = [layout.MIGRATION, layout.CONTROLLER, layout.CONTROLLER_EPOCH]
    migration, controller, epoch = client.data(paths)
    ids = client.children([layout.BROKER_IDS])[0]
    against = []
    if migration is not Absent.MISSING:
        against.append("/migration is there")
    owner = _json(controller)
    if not isinstance(controller, Znode) or not controller.ephemeral_owner or owner.get("kraftControllerEpoch") != -1:
        against.append(f"/controller is {owner or controller}")
    number = int(epoch.data or b"-1") if isinstance(epoch, Znode) else -1
    if number <= kraft_epoch:
        against.append(f"/controller_epoch is {number}, the KRaft controllers were at {kraft_epoch}")
    wanted = tuple(sorted(str(broker.id) for broker in lab.topology.brokers))
    if ids != wanted:
        against.append(f"/brokers/ids has {ids}")
    return Proof(
        "ZooKeeper is as in a cluster that never migrated.",
        "; ".join(against),
        f"/migration absent, /controller ephemeral of broker {owner.get('brokerid')}, /controller_epoch {number} above "
        f"{kraft_epoch}, brokers {', '.join(wanted)} registered",
    )


def _json(znode: Znode | Absent) -> dict[str, Any]:
    try:
        found = json.loads(znode.data or b"") if isinstance(znode, Znode) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _files(lab: Lab, before: Mapping[str, str]) -> Proof:
    changed = [node for node, digest in hash_broker_files(lab).items() if before.get(node) != digest]
    said = f"brokers {', '.join(changed)}" if changed else ""
    return Proof("Each broker's file is, byte for byte, the one from before the migration.", said, "SHA-256 compared")


def _versions(lab: Lab) -> Proof:
    """Read here, by the properties alone."""
    odd, read = [], 0
    for broker in lab.topology.brokers:
        for directory in broker.log_dirs:
            path = Path(directory, "meta.properties")
            read += 1
            if parse(path.read_bytes(), str(path)).get("version", "0").strip() != "0":
                odd.append(str(path))
    return Proof("Every meta.properties has version 0.", ", ".join(odd), f"{read} files read")


def _tree(client: ZookeeperClient, folder: Path) -> Proof:
    """Compare the live tree with the one that was kept just before the controllers were stopped."""
    text = "Everything that ZooKeeper held before the controllers stopped is there, unchanged."
    kept = folder / "backup" / "zookeeper.jsonl.gz"
    if not kept.exists():
        return Proof(text, "no tree was kept", "")
    found = compare(load_backup(str(kept)), client)
    wrong = [
        f"{entry.path} {entry.standing}"
        for entry in found
        if entry.restorable or entry.standing is Standing.DENIED or "created again" in entry.why
    ]
    same = sum(entry.standing is Standing.SAME for entry in found)
    return Proof(text, ", ".join(wrong[:5]), f"{same} of {len(found)} znodes the same, the others states and sessions")


def _made(lab: Lab, client: ZookeeperClient, stage: str, folder: Path) -> Proof:
    broker = lab.topology.brokers[-1].id
    write_backup(client, str(folder / AFTER))
    missing = list(missing_objects(load_backup(str(folder / AFTER)), stage, broker))
    try:
        said = require_records(lab, stage)
    except (LabProofFailed, SeedRefused) as error:
        missing.append(str(error))
        said = ""
    text = f"What was made at {stage} survives: topic, configurations, quotas, SCRAM user, ACLs, records."
    return Proof(text, "; ".join(missing), f"each znode read, {said}")


def _aside(lab: Lab) -> Proof:
    """Moved, never deleted."""
    lost, kept = [], 0
    for controller in lab.topology.controllers:
        folder = Path(controller.metadata_directory)
        found = list(folder.glob(f"{ASIDE_FOLDER}-*/meta.properties"))
        kept += len(found)
        if not found:
            lost.append(controller.name)
    return Proof("The controllers' metadata is set aside, not deleted.", ", ".join(lost), f"{kept} folders")
