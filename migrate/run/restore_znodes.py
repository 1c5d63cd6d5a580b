"""Puts parts of a ZooKeeper backup back: both locks held, each write under the version that the difference showed.

Refused while a KRaft controller may run: it would overwrite what is put back, or copy it half done.
"""

from __future__ import annotations

import pathlib
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from migrate import __version__
from migrate.errors import PlanIsStale, ZnodesNotRestored
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import Clock, Lock
from migrate.model.views import ConfigFile, LiveView, NodeAnswer, NoFile, Running, ServiceState, Stopped
from migrate.run.journal import Journal
from migrate.zookeeper.backup import BackupTree, ZnodeDifference, compare, fingerprint, write_backup
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Znode
from migrate.zookeeper.lock import Fence
from migrate.zookeeper.write import ZookeeperWriter


class Looks(Protocol):
    """What is asked before anything is written."""

    def service_states(self) -> Mapping[NodeId, ServiceState]: ...

    def configs(self) -> Mapping[NodeId, ConfigFile | NoFile | Unknown]: ...

    def live(self) -> LiveView | Unknown: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """What was written, in order, and the folder with the journal and the backup made just before."""

    paths: tuple[str, ...]
    folder: pathlib.Path


@dataclass(frozen=True, slots=True)
class Restore:
    """What is to be put back: everything restorable at or under `below`, if its fingerprint is the one confirmed."""

    tree: BackupTree
    below: str
    confirm: str
    file_sha256: str


def require_no_controller(inventory: Inventory, looks: Looks) -> None:
    """ZnodesNotRestored where a KRaft controller runs, answers, or cannot be excluded."""
    states, files, found = looks.service_states(), looks.configs(), looks.live()
    answers = {} if isinstance(found, Unknown) else found.controllers
    for node in inventory.controllers:
        state = states.get(node.id, Unknown("its process was not looked at"))
        if isinstance(files.get(node.id), NoFile) and not isinstance(state, Running):
            state = Stopped()  # planned, and never rendered: it cannot have been started
        if runs := _runs(state, answers.get(node.id)):
            raise ZnodesNotRestored(
                f"controller {int(node.id)}: {runs}",
                where=node.address,
                why="a KRaft controller overwrites what is put back, or copies it while it is half done",
                next_step="go back with `kraft-migrate rollback`, or stop every controller; then run this again",
            )


def _runs(state: ServiceState, answer: NodeAnswer | Unknown | None) -> str:
    """Why a controller is not known to be stopped; "" if it is."""
    match state:
        case Running():
            return "it runs"
        case Stopped():
            return "it answers" if isinstance(answer, NodeAnswer) else ""
        case unknown:
            return f"it may run: {unknown.reason}"


def put_back(
    what: Restore, client: ZookeeperClient, lock: Lock, lock_path: str, inventory: Inventory, clock: Clock
) -> Restored:
    """Write what the confirmed difference showed.  The caller holds the lock and has excluded controllers.

    Raises:
        PlanIsStale: the difference is not the confirmed one any more; nothing was written.
        ZnodeChanged: a znode changed at the last moment; the journal says what was written before it.
    """
    fence = client.data([f"{lock_path}-fence"])[0]
    lock.still_ours()  # the fence's version was read while the lock is ours: whoever takes the lock later raises it
    if not isinstance(fence, Znode):
        raise ZnodesNotRestored("the fence next to the lock cannot be read", where=f"{lock_path}-fence")
    differences = compare(what.tree, client, what.below)
    now = fingerprint(differences)
    if now != what.confirm:
        raise PlanIsStale(
            f"the difference is another than the one that was confirmed: its fingerprint is {now}",
            where=what.below,
            why="the tree changed since it was shown, or another part of it was confirmed",
            next_step="look at it again, by the same command without --confirm; nothing was written",
        )
    folder = pathlib.Path(inventory.runs) / f"restore-{now[:8]}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    header = {
        "plan": what.confirm,
        "tool": __version__,
        "cluster": inventory.name,
        "cluster_id": "",
        "change": f"backup restore {what.below} of {what.file_sha256}",
        "host": socket.gethostname(),
    }
    journal = Journal.opened(folder / "journal.jsonl", clock.now(), header)
    writer = ZookeeperWriter(client, Fence(f"{lock_path}-fence", fence.version))
    try:
        facts = write_backup(client, str(folder / "before.jsonl.gz"))
        said = ", ".join(f"{key} {value}" for key, value in sorted(facts.items()) if key != "path")
        journal.append(clock.now(), "note", {"key": "backup:before-restore", "value": f"before.jsonl.gz: {said}"})
        todo = [entry for entry in differences if entry.restorable]
        for entry in todo:
            lock.still_ours()
            _journalled(entry, writer, lambda name, data: journal.append(clock.now(), name, data))
        journal.append(clock.now(), "end", {"target": f"{len(todo)} znodes"})
    finally:
        journal.close()
    return Restored(tuple(entry.path for entry in todo), folder)


def _journalled(entry: ZnodeDifference, writer: ZookeeperWriter, append: Callable[[str, dict[str, str]], Any]) -> None:
    """One write, with its intent on disk before it."""
    assert entry.kept is not None
    data = entry.kept.data or b""
    detail = entry.path if entry.live is None else f"{entry.path} at version {entry.live.version}"
    effect = "create-znode" if entry.live is None else "set-znode"
    said = {"step": "backup/restore", "effect": effect, "node": "zookeeper", "detail": detail}
    append("effect", said)
    if entry.live is None:
        writer.create(entry.path, data, entry.acl)
    else:
        writer.set(entry.path, data, entry.live.version)
    append("effected", said)
