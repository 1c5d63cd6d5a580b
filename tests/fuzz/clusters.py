"""Backups, metadata, and documents that people write."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import google_crc32c

from migrate.model.secrets import Digester
from migrate.zookeeper import backup
from migrate.zookeeper.backup import compare
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.read import view_of
from tests.cli.commands import playbook_in
from tests.fuzz.damage import Parts
from tests.fuzz.trial import command
from tests.testing.golden_trees import golden

DIGESTER: Final = Digester(b"k" * 32)
PLAYBOOKS: Final = Path(__file__).parents[2] / "playbooks"


BACKED_UP: Final = ("/", "/cluster", "/brokers", "/config", "/controller", "/kafka-acl", "/admin", "/migration")


@functools.cache
def small_tree() -> backup.BackupTree:
    """A real cluster's tree with one topic."""
    tree = golden("hybrid-after-copy")
    topics = sorted(path for path in tree.znodes if path.startswith("/brokers/topics/") and path.count("/") == 3)
    left = [
        path
        for path in tree.znodes
        if not path.startswith(tuple(f"{topic}/" for topic in topics[1:])) and path not in topics[1:]
    ]
    kept = left[::2] if len(left) > 300 else left
    kept = sorted({above for path in kept for above in _above(path)} | {*kept})
    return backup.BackupTree("zk:2181", {path: tree.znodes[path] for path in kept}, tree.acls)


def _above(path: str) -> list[str]:
    return ["/", *(path[:at] for at, letter in enumerate(path) if letter == "/" and at)]


def backup_parts(_: Path) -> Parts:
    """Line by line as `backup create` writes it."""
    tree = small_tree()
    lines = [backup._line({"format": backup.FORMAT, "connect": tree.connect})]
    for path, znode in tree.znodes.items():
        acl = tree.acls.get(path, ((31, "world", "anyone"),))
        values = {"path": path, "denied": True} if isinstance(znode, Absent) else backup._znode_line(path, znode, acl)
        lines.append(backup._line(values))
    return {"tree.jsonl": b"".join([*lines, backup._line({"end": True, "znodes": len(lines) - 1})])}


class Live(backup.BackupTree):
    """A tree that answers as a client does: with the number of children, none of which lacks a name."""

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """As a session's."""
        counts = [0 if isinstance(names, Absent) else len(names) for names in self.children(paths)]
        found = zip(super().data(paths), counts, strict=True)
        return [znode if isinstance(znode, Absent) else znode._replace(children=count) for znode, count in found]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """As a session's."""
        found = super().children(paths)
        return [names if isinstance(names, Absent) else tuple(filter(None, names)) for names in found]

    def sync(self) -> None:
        """It is up to date."""

    def compared_with(self, other: backup.BackupTree) -> None:
        """What a restore would write."""
        compare(other, self)  # type: ignore[arg-type] # all that is asked of a client is here


def _with_acls(tree: backup.BackupTree) -> Live:
    live = Live(tree.connect, tree.znodes, tree.acls)
    live.acls = lambda paths: [tree.acls.get(path, ()) for path in paths]  # type: ignore[assignment]
    return live


def read_backup(_: Path, path: Path) -> None:
    """Read as a cluster's tree, and held against the tree that it is of, from both sides."""
    tree = backup.load_backup(str(path))
    view_of(tree, "backup", DIGESTER)
    _with_acls(small_tree()).compared_with(tree)
    _with_acls(tree).compared_with(small_tree())


METADATA: Final = "d/__cluster_metadata-0"
FIRST: Final = f"{METADATA}/00000000000000000000.log"
CHECKPOINT: Final = f"{METADATA}/00000000000000000000-0000000000.checkpoint"
DATA: Final = Path(__file__).parents[1] / "data" / "metadata"


def sealed_batch(raw: bytes) -> bytes:
    """The CRC of the first batch anew, as far as its length says."""
    end = min(len(raw), 12 + int.from_bytes(raw[8:12], "big"))
    return raw if end < 61 else raw[:17] + google_crc32c.value(raw[21:end]).to_bytes(4, "big") + raw[21:]


def read_metadata(place: Path, path: Path) -> None:
    """Each record, and the image, as a bundle keeps it."""
    from migrate.kraft.dump import dump_lines
    from migrate.model.codec import encode
    from migrate.observe.metadata_logs import read_metadata as read

    for _ in dump_lines([path], show_secrets=False):
        pass
    json.dumps(encode(read([place / "d"], DIGESTER).view))


def document(name: str) -> Callable[[Path], Parts]:
    """A playbook of the shipped ones, or a small one, beside an inventory."""

    def parts(folder: Path) -> Parts:
        small = playbook_in(folder)
        inventory = (folder / "inventory.yaml").read_bytes()
        return {name: inventory if name == "inventory.yaml" else small.read_bytes()}

    return parts


def shipped(name: str) -> Callable[[Path], Parts]:
    """A shipped playbook, under the name that its kind is read by."""
    return lambda folder: (playbook_in(folder), {"playbook.yaml": (PLAYBOOKS / name).read_bytes()})[1]


def read_document(_: Path, path: Path) -> None:
    """Linted and shown."""
    command("playbook", "lint", path)
    command("playbook", "show", path)
    command("playbook", "show", path, "-o", "json")


FLEET: Final = b"""apiVersion: kraft-migrate/v1
kind: Fleet
metadata: {name: all}
spec:
  clusters:
    - {name: a, inventory: a/inventory.yaml}
    - {name: b, playbook: ../b.yaml}
    - {name: c, zookeeper: "zk:2181/kafka"}
    - {name: d, bundle: d.bundle}
    - {name: e, files: {zookeeper: zk, zookeeperLog: log, chroot: /kafka, metadata: m}}
"""
ACCEPTED: Final = b"""apiVersion: kraft-migrate/v1
kind: AcceptedDifferences
metadata: {name: a}
spec:
  accept:
    - rule: DIFFERS
      selector: {kind: topic-config, name: t, field: retention.ms}
      reason: known
      ticket: CHG1
      expires: 2026-12-01
"""
