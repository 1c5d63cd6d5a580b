"""What a rolled-back lab must look like, read apart from the run's own proofs: znodes, files, folders, clients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from migrate.errors import LabProofFailed, SeedRefused
from migrate.hosts.aside import FOLDER
from migrate.hosts.properties import parse
from migrate.lab import made
from migrate.lab.cluster import Lab
from migrate.lab.proofs import strays
from migrate.zookeeper import layout
from migrate.zookeeper.backup import load_backup, write_backup
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.compare_backup import Standing, compare
from migrate.zookeeper.znode import Absent, Znode

AFTER: Final = "after-rollback.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Proof:
    """One sentence, what speaks against it ("" for nothing), and by what it is known."""

    text: str
    against: str
    evidence: str


def files_of(lab: Lab) -> dict[str, str]:
    """SHA-256 of each broker's file, by id: taken before the migration, and held against after the rollback."""
    names = {str(broker.id): lab.topology.config(broker.name) for broker in lab.topology.brokers}
    return {node: hashlib.sha256(path.read_bytes()).hexdigest() for node, path in names.items()}


def proofs(
    lab: Lab, client: ZookeeperClient, stage: str, before: Mapping[str, str], folder: Path, kraft_epoch: int
) -> Iterator[Proof]:
    """All of them.  `folder` is the rollback's run folder, `before` is `files_of` from the beginning.

    `kraft_epoch` is the epoch that the KRaft controllers had reached, -1 where they never took over.
    """
    yield _end_state(lab, client, kraft_epoch)
    yield _files(lab, before)
    yield _versions(lab)
    yield _tree(client, folder)
    yield _made(lab, client, stage, folder)
    found = strays(lab.topology)
    yield Proof("After the rollback no folder was set aside as stray.", ", ".join(found[:3]), "all folders read")
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
    changed = [node for node, digest in files_of(lab).items() if before.get(node) != digest]
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
    """The live tree against the one that was kept just before the controllers were stopped."""
    text = "Everything that ZooKeeper held before the controllers stopped is there, unchanged."
    kept = folder / "backup" / "zookeeper.jsonl.gz"
    if not kept.exists():
        return Proof(text, "no tree was kept", "")
    found = compare(load_backup(str(kept)), client)
    wrong = [
        f"{entry.path} {entry.standing}"
        for entry in found
        if entry.restorable or entry.standing is Standing.DENIED or "made anew" in entry.why
    ]
    same = sum(entry.standing is Standing.SAME for entry in found)
    return Proof(text, ", ".join(wrong[:5]), f"{same} of {len(found)} znodes the same, the others states and sessions")


def _made(lab: Lab, client: ZookeeperClient, stage: str, folder: Path) -> Proof:
    broker = lab.topology.brokers[-1].id
    write_backup(client, str(folder / AFTER))
    missing = list(made.left_out(load_backup(str(folder / AFTER)), stage, broker))
    try:
        said = made.require_records(lab, stage)
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
        found = list(folder.glob(f"{FOLDER}-*/meta.properties"))
        kept += len(found)
        if not found:
            lost.append(controller.name)
    return Proof("The controllers' metadata is set aside, not deleted.", ", ".join(lost), f"{kept} folders")
