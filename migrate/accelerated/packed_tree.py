"""The tree of a snapshot whose plain topics are still in the file: each znode is read from there when it is asked for.

It answers whatever a tree of znodes answers; whoever asks for all of them gets them all, and pays for it.
"""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from migrate.accelerated.choice import kernels
from migrate.accelerated.plain_topics import PlainTopics
from migrate.accelerated.znode_columns import (
    BEGIN,
    COUNT,
    END,
    FIRST,
    HIGH,
    ISR,
    ISR_COUNT,
    LEADER,
    LEADER_EPOCH,
    LOW,
    MEMBER,
    MOST_MEMBERS,
    MZXID,
    NODES,
    REPLICA_COUNT,
    REPLICAS,
    STATE_MZXID,
    WHERE,
    WRITER,
    Columns,
)
from migrate.zookeeper import decode
from migrate.zookeeper.offline.jute import JuteReader, damaged
from migrate.zookeeper.offline.tree import STAT, WRAP, Acl, Node, Tree, content_of, node_of

GLANCE: Final = 4096  # bytes in which a partition's two znodes lie, as a rule
AT_ONCE: Final = 4 << 20  # bytes of topics whose digests are summed by one call
CHUNK: Final = 1 << 20
STATE_LENGTH: Final = 1000  # more than that many brokers are in no ISR


class Place:
    """The snapshot's file, held open; `topics` is the path of /brokers/topics in it."""

    def __init__(self, path: Path, topics: str) -> None:
        self.path = path
        self.topics = topics
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)

    def read(self, begin: int, end: int) -> bytes:
        """These bytes, or those of them that are there."""
        found = bytearray()
        while begin < end and (some := os.pread(self.descriptor, end - begin, begin)):
            found += some
            begin += len(some)
        return bytes(found)

    def chunks(self, begin: int, end: int) -> Iterator[bytes]:
        while begin < end and (some := self.read(begin, min(end, begin + CHUNK))):
            yield some
            begin += len(some)


class PackedNodes(dict[str, Node]):
    """All znodes by path: those that were opened or never packed stand in the dictionary itself."""

    def __init__(self, place: Place, acls: dict[int, Acl], names: list[str], columns: Columns) -> None:
        super().__init__()
        count = len(names)
        self.place = place
        self.names = names
        self.table = columns.topics[:count]
        self.columns = columns
        self.where = columns.longs[:, WHERE]
        self._acls = acls
        self._below = place.topics + "/"
        self.index = dict(zip(names, range(count), strict=True))
        self.opened: set[str] = set()  # packed paths that stand in the dictionary now, or were deleted
        self.changed: set[int] = set()  # topics in which znodes came or went
        self.taken_out = 0  # of the digest of all that is packed: the part of what was opened
        self.packed = int(columns.counters[NODES])

    # -- places ------------------------------------------------------------------------------------------------------
    def _found(self, path: str) -> tuple[int, int, int] | None:
        """(topic, where its znode begins, how many znodes to step over there) of a packed path; None for others."""
        if not path.startswith(self._below):
            return None
        name, slash, rest = path[len(self._below) :].partition("/")
        topic = self.index.get(name)
        if topic is None:
            return None
        if not slash:
            return topic, int(self.table[topic, BEGIN]), 0
        if rest == "partitions":
            return topic, int(self.table[topic, BEGIN]), 1
        kind, _, rest = rest.partition("/")
        number, slash, last = rest.partition("/")
        if kind != "partitions" or not number.isascii() or not number.isdigit() or len(number) > 9:
            return None
        partition = int(number)
        if str(partition) != number or partition >= self.table[topic, COUNT] or (slash and last != "state"):
            return None
        return topic, int(self.where[self.table[topic, FIRST] + partition]), 1 if slash else 0

    def _open(self, path: str) -> Node | None:
        """Read a packed znode, and keep it from now on."""
        node = None if path in self.opened else self._original(path)
        if node is not None:
            self.keep(path, node)
        return node

    def _original(self, path: str) -> Node | None:
        place = self._found(path)
        if place is None:
            return None
        topic, begin, skipped = place
        end = self._end(topic)
        node = self._read(path, begin, min(end, begin + GLANCE), skipped) or self._read(path, begin, end, skipped)
        if node is None:
            raise damaged("the file was changed while it was read", str(self.place.path), begin)
        return node

    def as_it_was(self, path: str, node: Node) -> bool:
        """Has a znode the data that it has in the file, from the same transaction?"""
        before = self._original(path)
        return before is not None and (before.data, before.stat[8:16]) == (node.data, node.stat[8:16])

    def _end(self, topic: int) -> int:
        return int(self.table[topic, END])

    def keep(self, path: str, node: Node) -> None:
        """A packed znode becomes one of the dictionary's."""
        self.opened.add(path)
        self.packed -= 1
        self.taken_out += zlib.crc32(content_of(path, node))
        super().__setitem__(path, node)

    def _read(self, path: str, begin: int, end: int, skipped: int) -> Node | None:
        found = _znode_behind(self.place.read(begin, end), skipped)
        return node_of(*found[1:], self._acls) if found is not None and found[0] == path.encode() else None

    def open_topic(self, topic: int) -> None:
        """Read what is still packed of a topic: from now on it is one like all the others."""
        begin = int(self.table[topic, BEGIN])
        reader = JuteReader.of(self.place.read(begin, self._end(topic)), str(self.place.path), begin)
        for path, node in _nodes(reader, 2 + 2 * int(self.table[topic, COUNT]), self._acls):
            if path not in self.opened:
                self.keep(path, node)
        del self.index[self.names[topic]]

    def open_all(self) -> None:
        for topic in list(self.index.values()):
            self.open_topic(topic)

    # -- a dictionary ------------------------------------------------------------------------------------------------
    def get(self, path: str, default: Any = None) -> Any:
        node = super().get(path)
        if node is None:
            node = self._open(path)
        return default if node is None else node

    def __getitem__(self, path: str) -> Node:
        node: Node | None = self.get(path)
        if node is None:
            raise KeyError(path)
        return node

    def __contains__(self, path: object) -> bool:
        if super().__contains__(path):
            return True
        return isinstance(path, str) and path not in self.opened and self._found(path) is not None

    def __setitem__(self, path: str, node: Node) -> None:
        self._touch(path)
        super().__setitem__(path, node)

    def pop(self, path: str, default: Any = None) -> Any:
        node = self.get(path)
        if node is None:
            return default
        self._touch(path)
        return super().pop(path)

    def _touch(self, path: str) -> None:
        """A znode comes or goes: its topic is not what the columns say."""
        if path.startswith(self._below):
            topic = self.index.get(path[len(self._below) :].partition("/")[0])
            if topic is not None:
                self.changed.add(topic)

    def own(self) -> Iterator[str]:
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__() + self.packed

    def __iter__(self) -> Iterator[str]:
        return iter([*super().__iter__(), *(path for path in self._packed_paths() if path not in self.opened)])

    def _packed_paths(self) -> Iterator[str]:
        for name, topic in self.index.items():
            path = self._below + name
            yield from (path, f"{path}/partitions")
            for partition in range(int(self.table[topic, COUNT])):
                yield from (f"{path}/partitions/{partition}", f"{path}/partitions/{partition}/state")

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        self.open_all()
        return super().values()

    def items(self) -> Any:
        self.open_all()
        return super().items()

    def own_items(self) -> Iterable[tuple[str, Node]]:
        return super().items()


def _znode_behind(raw: bytes, skipped: int) -> tuple[bytes, bytes | None, int, bytes] | None:
    """Path, data, number of the ACL and stat of the znode behind so many others; None where it is not here whole."""
    end = 0
    for _ in range(skipped + 1):
        begin = end + 4
        if begin > len(raw):
            return None
        size_at = begin + int.from_bytes(raw[end:begin], "big")
        data_at = size_at + 4
        size = int.from_bytes(raw[size_at:data_at], "big", signed=True)
        end = data_at + max(size, 0) + 8 + STAT.size
        if end > len(raw):
            return None
    stat_at = end - STAT.size
    data = None if size < 0 else raw[data_at : data_at + size]
    return raw[begin:size_at], data, int.from_bytes(raw[stat_at - 8 : stat_at], "big", signed=True), raw[stat_at:end]


def _nodes(reader: JuteReader, count: int, acls: dict[int, Acl]) -> Iterator[tuple[str, Node]]:
    """So many znodes, fewer where the bytes end."""
    for _ in range(count):
        if reader.left < 4:
            return
        start = reader.offset
        path, data = _path_and_data(reader)
        if path is None:
            return
        assert reader.offset > start
        yield path, node_of(data, reader.int64(), reader.take(STAT.size), acls)


def _path_and_data(reader: JuteReader) -> tuple[str | None, bytes | None]:
    """Of the next znode; None where it does not lie here as a whole."""
    raw, at = reader.window()
    length = int.from_bytes(raw[at : at + 4], "big")
    size_at = at + 4 + length
    size = int.from_bytes(raw[size_at : size_at + 4], "big", signed=True)
    if size_at + 4 + max(size, 0) + 8 + STAT.size > len(raw):
        return None, None
    return reader.path(), reader.buffer()


class PackedTree(Tree):
    """A tree over `PackedNodes`."""

    nodes: PackedNodes

    def __init__(self, place: Place, acls: dict[int, Acl], names: list[str], columns: Columns) -> None:
        super().__init__()
        self.nodes = PackedNodes(place, acls, names, columns)

    @property
    def digest(self) -> int:
        """ZooKeeper's own digest of the tree."""
        if self._digest is None:
            packed = (self._packed_digest() - self.nodes.taken_out) & WRAP
            self._digest = packed
            for path, node in self.nodes.own_items():
                self._count(path, node, 1)
        return self._digest

    def _packed_digest(self) -> int:
        """Of all that was packed in the beginning, opened since then or not."""
        znodes = kernels("znodes")
        table = self.nodes.table
        runs: list[tuple[int, int]] = []
        for begin, end in zip(table[:, BEGIN].tolist(), table[:, END].tolist(), strict=True):
            if runs and runs[-1][1] == begin and end - runs[-1][0] <= AT_ONCE:
                runs[-1] = runs[-1][0], end
            else:
                runs.append((begin, end))

        def summed(run: tuple[int, int]) -> int:
            raw = self.nodes.place.read(*run)
            return int(znodes.digest(np.frombuffer(raw, np.uint8), 0, len(raw)))

        with ThreadPoolExecutor(2, thread_name_prefix="digest") as pool:
            return sum(pool.map(summed, runs)) & WRAP

    def settled(self) -> PlainTopics:
        """The topics that are plain after all that was replayed; all others are in `nodes` from now on."""
        nodes = self.nodes
        changes: dict[int, list[tuple[int, Node]]] = {}
        for path in nodes.opened:
            self._look_at(path, changes)
        for topic in nodes.changed & set(nodes.index.values()):
            nodes.open_topic(topic)
        still = [entry for entry in changes.items() if entry[0] not in nodes.changed]
        return _plain(nodes, [topic for topic, states in still if self._patch(topic, states)])

    def _look_at(self, path: str, changes: dict[int, list[tuple[int, Node]]]) -> None:
        """What a znode that was opened means for its topic."""
        nodes = self.nodes
        name, *rest = path[len(nodes.place.topics) + 1 :].split("/")
        topic = nodes.index.get(name)
        if topic is None or topic in nodes.changed:
            return
        node = dict.__getitem__(nodes, path)
        if not rest and not nodes.as_it_was(path, node):
            nodes.changed.add(topic)
        if len(rest) == 3:
            changes.setdefault(topic, []).append((int(nodes.table[topic, FIRST]) + int(rest[1]), node))

    def _patch(self, topic: int, states: list[tuple[int, Node]]) -> bool:
        """Put the states into the columns; where one is not plain any more, the topic is opened: False."""
        columns, nodes = self.nodes.columns, self.nodes
        found = decode.written_states([node.znode() for _, node in states])
        for (row, _), state in zip(states, found, strict=True):
            used = int(columns.counters[MEMBER])
            if state is None or used + len(state.isr) + MOST_MEMBERS > len(columns.members):
                nodes.open_topic(topic)
                return False
            columns.members[used : used + len(state.isr)] = state.isr
            columns.counters[MEMBER] += len(state.isr)
            columns.rows[row, LEADER : WRITER + 1] = state.leader, state.leader_epoch, state.controller_epoch
            columns.rows[row, ISR : ISR_COUNT + 1] = used, len(state.isr)
            columns.longs[row, STATE_MZXID] = state.mzxid
        return True


def _plain(nodes: PackedNodes, patched: list[int]) -> PlainTopics:
    columns = nodes.columns
    if patched:
        kernels("znodes").fingerprint_again(np.asarray(patched, np.int64), columns)
    left = np.asarray(list(nodes.index.values()), np.int64)
    table, rows = nodes.table[left], columns.rows
    return PlainTopics(
        names=list(nodes.index),
        ids=np.ascontiguousarray(table[:, HIGH : LOW + 1].astype(">i8")).view(np.uint8).reshape(-1, 16),
        mzxid=table[:, MZXID],
        first=table[:, FIRST],
        count=table[:, COUNT],
        lanes=columns.lanes[left],
        leader=rows[:, LEADER],
        leader_epoch=rows[:, LEADER_EPOCH],
        writer=rows[:, WRITER],
        state_mzxid=columns.longs[:, STATE_MZXID],
        replicas=rows[:, REPLICAS : REPLICA_COUNT + 1],
        isr=rows[:, ISR : ISR_COUNT + 1],
        members=columns.members,
    )
