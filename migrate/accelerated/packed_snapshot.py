"""A snapshot whose plain topics stay numbers: what a kernel makes of the file, and a tree that opens them when asked.

Transactions are replayed on this tree by the same code as on any other: whatever that looks up is read from its place
in the file and becomes a znode like all the others.  `settled` then says which topics are still plain, with what the
log has changed in them.  A file in which anything is not as it must be is left to the reference, for its error.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from migrate.accelerated.choice import kernels, ready
from migrate.accelerated.packed_tree import PackedTree, Place
from migrate.accelerated.plain_topics import PlainTopics
from migrate.accelerated.znode_columns import (
    AT,
    BEGIN,
    BROKEN,
    COUNTERS,
    DONE,
    LONG_COLUMNS,
    MORE,
    MOST_MEMBERS,
    NAME,
    NEWEST,
    PASS_OVER,
    RANGE,
    ROW_COLUMNS,
    TOPIC_COLUMNS,
    TOPICS,
    Columns,
)
from migrate.errors import ZookeeperFileDamaged
from migrate.model.columns import unswept
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper import layout
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.offline.files import Loaded, OfflineTree, ZookeeperFiles, find_files, load
from migrate.zookeeper.offline.jute import JuteReader
from migrate.zookeeper.offline.snapshot import Nodes
from migrate.zookeeper.offline.tree import OWN, Acl, add_nodes
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import view_of

LOG: Final = logging.getLogger("migrate.zookeeper")
LEAST: Final = 32 << 20  # bytes of a snapshot; smaller ones are read before a kernel is loaded
WINDOW: Final = 8 << 20  # bytes read at once
CARRIED: Final = (
    16 << 20
)  # bytes that a topic, or a znode, may have: what does not lie whole in a window is taken along
SMALLEST_PARTITION: Final = 250  # bytes of its two znodes
SMALLEST_OTHERS: Final = 4096  # bytes a range of other znodes, on average
CHUNK: Final = 1 << 20
LAST_PATH: Final = 5  # bytes of the path that ends the znodes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _Found:
    """What the kernel saw."""

    names: list[str]
    columns: Columns
    end: int
    summed: int


def read_packed(path: Path, start: int, acls: dict[int, Acl], chroot: str) -> Nodes | None:
    """The znodes of a snapshot that is not compressed, from `start` on; None: they are to be read one by one."""
    try:
        if chroot.startswith(OWN) or not ready("znodes", path.stat().st_size, LEAST):
            return None
        place = Place(path, chroot.rstrip("/") + layout.TOPICS)
        found = _scanned(place, start)
    except OSError:
        return None
    if found is None or len(set(found.names)) != len(found.names):
        return None
    tree = PackedTree(place, acls, found.names, found.columns)
    newest = _newest(found.columns)
    try:
        for begin, end in _ranges(found.columns):
            reader = JuteReader(place.chunks(begin, end), str(path), begin)
            newest = max(newest, add_nodes(reader, acls, tree, end))
    except ZookeeperFileDamaged:
        return None  # the reference finds the first thing that is wrong
    if "" not in tree.nodes:
        return None
    LOG.info("snapshot: %d znodes, %d topics of them packed", len(tree.nodes), len(found.names))
    return Nodes(tree, newest, found.end, found.summed)


class PackedFiles(OfflineTree):
    """The tree of files in which topics are still packed."""

    def __init__(self, loaded: Loaded, files: ZookeeperFiles, tree: PackedTree) -> None:
        super().__init__(loaded, files)
        self.plain = tree.settled()
        self.nodes = tree.nodes

    def view(self, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        return self._view(digester, secrets, self.plain)

    def head(self, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        """The view without the partitions of plain topics (nor their count in `znodes`)."""
        return self._view(digester, secrets, self.plain.without_rows())

    def _view(self, digester: Digester, secrets: EncoderSecrets | None, plain: PlainTopics) -> ZookeeperView:
        with unswept():
            return self.described(plain.added_to(view_of(_Rest(self), self.files.name, digester, secrets)))


class _Rest(OfflineTree):
    """The same tree without the topics that are at hand as columns."""

    def __init__(self, tree: PackedFiles) -> None:
        super().__init__(tree.loaded, tree.files)
        below, names = self.absolute(layout.TOPICS) + "/", set(tree.plain.names)
        self._others = [
            path for path in tree.nodes.own() if path[: len(below)] != below or path[len(below) :] not in names
        ]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""
        return self.children_among(paths, self._others)


def open_files(files: ZookeeperFiles) -> OfflineTree:
    """As `migrate.zookeeper.offline.files.open_files`; large snapshots of plain topics are read in columns."""
    loaded = load(find_files(files.folders), partial(read_packed, chroot=files.chroot))
    tree = loaded.tree
    return PackedFiles(loaded, files, tree) if isinstance(tree, PackedTree) else OfflineTree(loaded, files)


def _newest(columns: Columns) -> int:
    return int(columns.counters[NEWEST])


def _ranges(columns: Columns) -> list[tuple[int, int]]:
    return [(begin, end) for begin, end in columns.others[: columns.counters[RANGE]].tolist()]


def _columns(size: int) -> Columns:
    """Room for whatever a file of that size can hold; memory is taken only where something is written."""
    rows = size // SMALLEST_PARTITION + 1
    return Columns(
        topics=np.empty((rows, TOPIC_COLUMNS), np.int64),
        lanes=np.empty((rows, 2), np.uint64),
        rows=np.empty((rows, ROW_COLUMNS), np.int32),
        longs=np.empty((rows, LONG_COLUMNS), np.int64),
        members=np.empty(size // 8 + 2 * MOST_MEMBERS, np.int32),
        others=np.empty((size // SMALLEST_OTHERS + 1000, 2), np.int64),
        counters=np.zeros(COUNTERS, np.int64),
    )


class _Windows:
    """Reads a file window by window in another thread, and sums it; each window stands behind room for what is carried.

    Two buffers: one is filled while the other is scanned.
    """

    def __init__(self, place: Place, start: int) -> None:
        self._place = place
        self.buffers = [np.empty(CARRIED + WINDOW, np.uint8) for _ in range(2)]
        self._summed = zlib.adler32(place.read(0, start))

    def fill(self, which: int, offset: int) -> tuple[int, int]:
        """How many bytes were read there, and the sum of all before them."""
        before = self._summed
        view = self.buffers[which].data[CARRIED:]
        count = 0
        while count < WINDOW and (some := os.preadv(self._place.descriptor, [view[count:]], offset + count)):
            count += some
        self._summed = zlib.adler32(view[:count], before)
        return count, before


def _scanned(place: Place, start: int) -> _Found | None:
    znodes = kernels("znodes")

    prefix = place.topics.encode()
    columns = _columns(os.fstat(place.descriptor).st_size)
    counters, topics_path = columns.counters, np.frombuffer(prefix, np.uint8)
    windows = _Windows(place, start)
    names: list[str] = []
    offset, which, carried = start, 0, 0
    with ThreadPoolExecutor(1, thread_name_prefix="snapshot") as pool:
        filling = pool.submit(windows.fill, 0, start)
        while True:
            count, summed = filling.result()
            filling = pool.submit(windows.fill, 1 - which, offset + count)
            raw, base, limit = windows.buffers[which], offset - CARRIED, CARRIED + count
            counters[AT] = CARRIED - carried
            outcome = znodes.scan(raw, limit, base, topics_path, columns)
            if outcome == MORE and limit - counters[AT] > CARRIED:
                counters[PASS_OVER] = 1  # it does not fit: the topic is read znode by znode
                outcome = znodes.scan(raw, limit, base, topics_path, columns)
                counters[PASS_OVER] = 0
            names += _names(raw, base, len(prefix) + 1, columns, len(names))
            at = int(counters[AT])
            carried = limit - at
            if outcome == DONE:
                summed = zlib.adler32(raw.data[CARRIED : at + LAST_PATH], summed)
                return _Found(names, columns, base + at + LAST_PATH, summed)
            if outcome == BROKEN or not count or carried > CARRIED:
                return None
            which = 1 - which
            windows.buffers[which][CARRIED - carried : CARRIED] = raw[at:limit]
            offset += count


def _names(raw: Array, base: int, prefix: int, columns: Columns, known: int) -> Iterator[str]:
    """The names of the topics that this window has brought."""
    fresh = columns.topics[known : columns.counters[TOPICS]]
    view = raw.data
    for begin, length in zip(fresh[:, BEGIN].tolist(), fresh[:, NAME].tolist(), strict=True):
        first = begin - base + 4 + prefix
        yield bytes(view[first : first + length]).decode()
