"""From the files of a dataDir to the tree and its view: the newest whole snapshot, and every transaction after it.

Transactions are numbered without a gap: each zxid is one more than the last, or the first of a later epoch.  So a log
that is missing, or that ends too early, is seen; what an epoch's own last log lost shows in the digest (3.6 and later).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from migrate.errors import (
    ChrootMissing,
    TransactionsMissing,
    TreeDigestDiffers,
    ZookeeperFileDamaged,
    ZookeeperFilesMissing,
)
from migrate.model.columns import unswept
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.offline.snapshot import NodesReader, Snapshot, read_snapshot
from migrate.zookeeper.offline.tree import DIGEST_VERSION, WRAP, Acl, Tree, new_tree
from migrate.zookeeper.offline.txnlog import LogEnd, TxnLog, decode
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import read_acls, view_of

LOG: Final = logging.getLogger("migrate.zookeeper")
VERSIONED: Final = "version-2"  # ZooKeeper's own folder below dataDir and dataLogDir
NAME: Final = re.compile(r"(snapshot|log)\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
COUNTER: Final = 0xFFFFFFFF  # the lower half of a zxid; the upper half is the epoch
FIRST_EVER: Final = frozenset({1, (1 << 32) + 1})  # of a server alone, of an ensemble

Named = tuple[int, Path]


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a dataDir with the zxid in their names, oldest first."""

    folders: tuple[Path, ...]
    snapshots: tuple[Named, ...]
    logs: tuple[Named, ...]

    @property
    def where(self) -> str:
        """The folders, for errors."""
        return ", ".join(map(str, self.folders))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The tree after transaction `zxid`, and what was read for it.

    `snapshot` None: there was none, and the logs begin with the ensemble's first transaction.  `digests` counts the
    digests of ZooKeeper's that the tree was compared with.  `notes` say what a reader must know: a damaged snapshot
    that was passed over, an entry that was not finished.
    """

    tree: Tree
    zxid: int
    snapshot: Path | None
    logs: tuple[Path, ...]
    transactions: int
    digests: int
    notes: tuple[str, ...]


def find_files(folders: Iterable[str | Path]) -> Files:
    """The snapshots and logs of a dataDir, and of its dataLogDir if there is one.

    Raises ZookeeperFilesMissing: a folder cannot be read, or there is nothing of ZooKeeper's in any.
    """
    found: dict[str, dict[int, Path]] = {"snapshot": {}, "log": {}}
    places = []
    for folder in map(Path, folders):
        place = folder
        try:
            if (folder / VERSIONED).is_dir():
                place = folder / VERSIONED
            paths = sorted(place.iterdir())
            odd = [path for path in paths if NAME.fullmatch(path.name) and path.exists() and not path.is_file()]
        except OSError as error:
            raise ZookeeperFilesMissing(f"the folder cannot be read ({error.strerror})", where=str(place)) from error
        if odd:  # a FIFO would be waited for without end
            raise ZookeeperFilesMissing("it is no regular file", where=str(odd[0]))
        places.append(place)
        for path in paths:
            match = NAME.fullmatch(path.name)
            if match is None or (match[1] == "log" and match[3]):
                continue
            zxid = int(match[2], 16)
            before = found[match[1]].setdefault(zxid, path)
            if before.resolve() != path.resolve():
                raise ZookeeperFilesMissing(f"two files are of the same zxid: {before} too", where=str(path))
    files = Files(tuple(places), *(tuple(sorted(found[kind].items())) for kind in ("snapshot", "log")))
    if not files.snapshots and not files.logs:
        raise ZookeeperFilesMissing("there is no snapshot and no transaction log", where=files.where)
    return files


def load(files: Files, reader_of_nodes: NodesReader | None = None) -> Loaded:
    """The tree that ZooKeeper would have after loading these files.

    Raises:
        ZookeeperFileDamaged: a log was changed or cut, or no snapshot is whole.
        TransactionsMissing: the logs do not reach from the snapshot to the newest transaction that is known of.
        TreeDigestDiffers: the tree is not the one whose digest ZooKeeper wrote.
    """
    snapshot, notes = _newest_whole(files, reader_of_nodes)
    replay = _Replay(snapshot, notes)
    logs = files.logs
    if snapshot is not None:  # the log that was open at its zxid, and all later ones
        before = [entry for entry in logs if entry[0] <= snapshot.zxid]
        logs = (*before[-1:], *logs[len(before) :])
    for number, (zxid, path) in enumerate(logs):
        replay.log(TxnLog(path, zxid), last=number == len(logs) - 1)
    replay.finish(files)
    LOG.info("files: %d transactions after %s", replay.count, "nothing" if snapshot is None else snapshot.path.name)
    return Loaded(
        tree=replay.tree,
        zxid=replay.highest,
        snapshot=None if snapshot is None else snapshot.path,
        logs=tuple(path for _, path in logs),
        transactions=replay.count,
        digests=replay.digests,
        notes=tuple(replay.notes),
    )


def _newest_whole(files: Files, reader_of_nodes: NodesReader | None) -> tuple[Snapshot | None, list[str]]:
    """As ZooKeeper does: a damaged snapshot (a server stopped while it wrote it) gives way to the one before."""
    notes: list[str] = []
    first: ZookeeperFileDamaged | None = None
    for zxid, path in reversed(files.snapshots):
        try:
            return read_snapshot(path, zxid, reader_of_nodes), notes
        except ZookeeperFileDamaged as error:
            first = first or error
            notes.append(f"{error.where}: {error.what}; an older snapshot and its logs were read instead")
    if first is not None:
        raise first
    return None, notes


@dataclass(slots=True)
class _Replay:
    """A tree on its way from a snapshot to the end of the logs."""

    snapshot: Snapshot | None
    notes: list[str]
    tree: Tree = field(init=False)
    highest: int = field(init=False)
    last_cut: ZookeeperFileDamaged | None = None
    saw_snapshots_own: bool = False
    count: int = 0
    digests: int = 0
    differs: str = ""  # where the digests parted; "" while the last one compared was equal

    def __post_init__(self) -> None:
        self.tree = new_tree() if self.snapshot is None else self.snapshot.tree
        self.highest = 0 if self.snapshot is None else self.snapshot.zxid
        self._compare_snapshots_own()

    def log(self, log: TxnLog, *, last: bool) -> None:
        """Make the changes of one log."""
        for entry in log:
            if self.snapshot is not None and entry.zxid <= self.snapshot.zxid and self.count == 0:
                self.saw_snapshots_own |= entry.zxid == self.snapshot.zxid
                continue
            self._follows(entry.zxid, log, entry.offset)
            transaction = decode(entry, str(log.path))
            self.tree.apply(transaction.changes, transaction.zxid, transaction.time)
            self.highest = entry.zxid
            self.count += 1
            if transaction.digest is not None and transaction.digest[0] == DIGEST_VERSION:
                self._compare_with(transaction.digest[1], f"{log.path}, transaction 0x{transaction.zxid:x}")
            self._compare_snapshots_own()
        cut = log.end is LogEnd.CUT or (last and log.end is LogEnd.BARE)
        self.last_cut = log.damage(f"the log is cut short: {log.end.value}", log.end_offset) if cut else None
        if last and self.last_cut is not None:
            raise self.last_cut
        if last and log.end is LogEnd.UNFINISHED:
            self.notes.append(
                f"{log.path}, byte {log.end_offset}: {log.end.value}; what comes after zxid 0x{self.highest:x} "
                "is not in these files"
            )

    def _follows(self, zxid: int, log: TxnLog, offset: int) -> None:
        where = f"{log.path}, byte {offset}"
        if self.snapshot is None and self.count == 0:
            if zxid not in FIRST_EVER:
                raise TransactionsMissing(f"there is no snapshot, and the logs begin with 0x{zxid:x}", where=where)
            return
        if zxid == self.highest + 1:
            return
        later_epoch = zxid >> 32 > self.highest >> 32 and zxid & COUNTER == 1
        if later_epoch and self.last_cut is not None:
            raise self.last_cut
        if not later_epoch:
            raise TransactionsMissing(f"0x{zxid:x} follows 0x{self.highest:x}", where=where)

    def _compare_snapshots_own(self) -> None:
        """The digest in the snapshot is that of the end of its writing."""
        own = self.snapshot and self.snapshot.digest
        if self.snapshot and own and own.zxid == self.highest and own.version == DIGEST_VERSION:
            self._compare_with(own.value, f"{self.snapshot.path}, digest of 0x{own.zxid:x}")

    def _compare_with(self, value: int, where: str) -> None:
        """While the snapshot's fuzzy part is replayed the digests may differ: the last one decides."""
        self.digests += 1
        self.differs = (self.differs or where) if value & WRAP != self.tree.digest else ""

    def finish(self, files: Files) -> None:
        """Whether all that is known to have happened was replayed."""
        named = [zxid for zxid, _ in files.snapshots if zxid & COUNTER]
        known = max([*named, self.snapshot.reached if self.snapshot else 0])
        if self.highest < known:
            raise TransactionsMissing(
                f"the logs end at 0x{self.highest:x}, but 0x{known:x} had happened when a snapshot was written",
                where=files.where,
            )
        own = self.snapshot
        if own and not (self.count or self.saw_snapshots_own or own.settled or own.zxid & COUNTER == 0):
            raise TransactionsMissing(
                f"no log holds 0x{own.zxid:x} or later: what came while the snapshot was written is unknown",
                where=str(own.path),
            )
        if self.differs:
            raise TreeDigestDiffers(
                f"the tree's digest at 0x{self.highest:x} is not the one that ZooKeeper wrote; they part at the place "
                "named",
                where=self.differs,
            )


@dataclass(frozen=True, slots=True)
class ZookeeperFiles:
    """Where ZooKeeper's files lie: its dataDir, and its dataLogDir if it has one; and Kafka's chroot in the tree."""

    folders: tuple[str, ...]
    chroot: str = ""

    @property
    def name(self) -> str:
        return f"files of {', '.join(self.folders)}" + (f", chroot {self.chroot}" if self.chroot else "")


class OfflineTree:
    """The tree of files below a chroot (a TreeReader).  Nothing is ever denied: files know no identities."""

    def __init__(self, loaded: Loaded, files: ZookeeperFiles) -> None:
        self.loaded = loaded
        self.files = files
        self.chroot = files.chroot.rstrip("/")
        if self.chroot not in loaded.tree.nodes:
            raise ChrootMissing(f"{self.chroot} is not in the files", where=", ".join(files.folders))

    def absolute(self, path: str) -> str:
        return self.chroot + path.rstrip("/")

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """Data and stat of each path, in order; `children` is not counted."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self.absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else node.znode() for node in found]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order: one pass over the tree a call, and no index kept."""
        return self.children_among(paths, self.loaded.tree.nodes)

    def children_among(self, paths: Sequence[str], among: Iterable[str]) -> list[tuple[str, ...] | Absent]:
        nodes = self.loaded.tree.nodes
        wanted: dict[str, list[str]] = {path: [] for path in map(self.absolute, paths) if path in nodes}
        for path in among:
            above, slash, name = path.rpartition("/")
            if slash and above in wanted:
                wanted[above].append(name)
        answers = {path: tuple(sorted(names)) for path, names in wanted.items()}
        return [answers.get(self.absolute(path), Absent.MISSING) for path in paths]

    def acls(self, paths: Sequence[str]) -> list[Acl | Absent]:
        """(permissions, scheme, id) of each path, in order; DENIED where the files do not hold it."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self.absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else Absent.DENIED if node.acl is None else node.acl for node in found]

    def paths(self) -> list[str]:
        start = len(self.chroot)
        below = f"{self.chroot}/"
        return ["/", *sorted(path[start:] for path in self.loaded.tree.nodes if path.startswith(below))]

    def zxid(self) -> int:
        return self.loaded.zxid

    def view(self, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        """The whole ZooKeeper view; what a reader must know of the files is among the blind spots.

        Raises what `view_of` raises.
        """
        with unswept():
            return self.described(view_of(self, self.files.name, digester, secrets))

    def described(self, view: ZookeeperView) -> ZookeeperView:
        """The view with the ACLs in the files, and how old they are."""
        age = (
            f"{self.files.name}: as it was after zxid 0x{self.zxid():x}, not as it is now; one server's log may end "
            "with transactions that the ensemble did not agree on"
        )
        return replace(view, acls=read_acls(self), blind_spots=(*view.blind_spots, *self.loaded.notes, age))


def open_files(files: ZookeeperFiles) -> OfflineTree:
    """The tree in the files, all transactions replayed.

    Raises ZookeeperFilesMissing, ZookeeperFileDamaged, TransactionsMissing, TreeDigestDiffers, ChrootMissing.
    """
    return OfflineTree(load(find_files(files.folders)), files)
