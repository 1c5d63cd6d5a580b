"""Reads all of Kafka's znodes below a chroot, and reads again what moved meanwhile.

ZooKeeper has no snapshot read.  So everything is read twice unless no transaction happened in between; what differs
(by mzxid, or by being there or not) is read again until it stops changing, a bounded number of times.  What still moves
then is named, never silently taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from migrate.errors import MalformedZnode
from migrate.model.views import Malformed, ZnodePart
from migrate.zookeeper import decode, layout
from migrate.zookeeper.layout import Absent, TreeReader, Znode, child

LOG: Final = logging.getLogger("migrate.zookeeper")
ROUNDS: Final = 6  # whole reads are the first two; the others read only what moved
STATES_AT_ONCE: Final = 20_000  # bounds the memory for raw answers
# written all the time while a KRaft controller is in dual write: their last value is as good as any
ALWAYS_MOVING: Final = frozenset({layout.MIGRATION})

State = decode.PartitionState | Absent
Wanted = tuple[dict[int, State], int, str]  # where a partition's state belongs, the partition, its znode


@dataclass(slots=True)
class Collected:
    """Everything read so far (grows while it is being read; nobody keeps it).

    `znodes` holds what is there; `denied` the paths that this identity may not see; `moving` what never stood still.
    `states` is topic -> partition -> state; `malformed` is keyed by path and part.
    """

    znodes: dict[str, Znode] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topics: dict[str, decode.TopicZnode] = field(default_factory=dict)
    states: dict[str, dict[int, State]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    malformed: dict[tuple[str, ZnodePart], Malformed] = field(default_factory=dict)
    moving: tuple[str, ...] = ()
    count: int = 0
    rounds: int = 0
    zxid_first: int = 0
    zxid_last: int = 0

    def keep_malformed(self, error: MalformedZnode, part: ZnodePart) -> None:
        self.malformed[error.where, part] = Malformed(error.where, error.what, part)


def collect(reader: TreeReader) -> Collected:
    """All of Kafka's znodes, each as it stood still (or named in `moving`)."""
    found = Collected(zxid_first=reader.zxid())
    _read_round(reader, found, None)
    moved: set[str] | None = None
    for number in range(1, ROUNDS):
        if number == 1 and reader.zxid() == found.zxid_first:
            break
        moved = _read_round(reader, found, moved)
        LOG.debug("round %d: %d znodes had moved", number, len(moved))
        if not moved - ALWAYS_MOVING:
            break
    else:
        found.moving = tuple(sorted((moved or set()) - ALWAYS_MOVING))
    found.zxid_last = reader.zxid()
    _forget_mended(found)
    kinds = [*map(type, chain.from_iterable(states.values() for states in found.states.values()))]
    found.count = len(found.znodes) + len(kinds) - kinds.count(Absent)
    return found


def _forget_mended(found: Collected) -> None:
    """A znode that was malformed in an earlier round, and is not any more or is gone, is no finding."""
    for path, part in list(found.malformed):
        name = path[len(layout.TOPICS) + 1 :].partition("/")[0]
        if part is ZnodePart.TOPIC:
            still = path in found.znodes and name not in found.topics
        else:
            partition = int(path.split("/")[-2])
            still = found.states.get(name, {}).get(partition) is Absent.MALFORMED
        if not still:
            del found.malformed[path, part]


def _read_round(reader: TreeReader, found: Collected, only: set[str] | None) -> set[str]:
    """Read everything (`only` None), or what is new and what `only` names; answers the paths that differ."""
    moved = _list_all(reader, found)
    wanted = list(_wanted(found))
    present = set(wanted)
    for path in [path for path in found.znodes if path not in present]:
        del found.znodes[path]
        moved.add(path)
    paths = wanted if only is None else [path for path in wanted if path in only or path not in found.znodes]
    for path, answer in zip(paths, reader.data(paths), strict=True):
        moved |= _take(found, path, answer)
    _decode_topics(found, moved)
    moved |= _read_states(reader, found, only)
    found.rounds += 1
    return moved


def _take(found: Collected, path: str, answer: Znode | Absent) -> set[str]:
    before = found.znodes.get(path)
    if answer is Absent.DENIED:
        found.denied.add(path)
        return set()
    if isinstance(answer, Absent):
        found.znodes.pop(path, None)
        return {path} if before is not None else set()
    found.znodes[path] = answer
    same = before is not None and (before.mzxid, before.czxid) == (answer.mzxid, answer.czxid)
    return set() if same else {path}


def _list_all(reader: TreeReader, found: Collected) -> set[str]:
    """List every directory; answers those whose children differ from before."""
    moved = _list(reader, found, (*layout.FLAT_DIRECTORIES, *layout.NAME_DIRECTORIES, layout.USER_CONFIGS))
    users = found.names.get(layout.USER_CONFIGS, ())
    moved |= _list(reader, found, [layout.user_clients(user) for user in users])
    moved |= _list(reader, found, layout.ACL_ROOTS)
    return moved | _list(reader, found, _acl_directories(found))


def _list(reader: TreeReader, found: Collected, directories: Sequence[str]) -> set[str]:
    moved: set[str] = set()
    for directory, answer in zip(directories, reader.children(directories), strict=True):
        if answer is Absent.DENIED:
            found.denied.add(directory)
        now = None if isinstance(answer, Absent) else answer
        if now != found.names.get(directory):
            moved.add(directory)
        if now is None:
            found.names.pop(directory, None)
        else:
            found.names[directory] = now
    return moved


def _acl_directories(found: Collected) -> list[str]:
    return [child(root, kind) for root in layout.ACL_ROOTS for kind in found.names.get(root, ())]


def _wanted(found: Collected) -> Iterator[str]:
    yield from layout.SINGLE_ZNODES
    users = found.names.get(layout.USER_CONFIGS, ())
    directories = (*layout.FLAT_DIRECTORIES, layout.USER_CONFIGS, *map(layout.user_clients, users))
    for directory in (*directories, *_acl_directories(found)):
        for name in found.names.get(directory, ()):
            yield child(directory, name)


def _decode_topics(found: Collected, moved: set[str]) -> None:
    for name in found.names.get(layout.TOPICS, ()):
        path = child(layout.TOPICS, name)
        znode = found.znodes.get(path)
        if znode is None:
            found.topics.pop(name, None)
        elif path in moved or name not in found.topics:
            found.topics.pop(name, None)
            try:
                found.topics[name] = decode.topic(path, znode.data)
            except MalformedZnode as error:
                found.keep_malformed(error, ZnodePart.TOPIC)
    for name in [name for name in found.topics if child(layout.TOPICS, name) not in found.znodes]:
        del found.topics[name]
    for name in [name for name in found.states if name not in found.topics]:
        del found.states[name]


def _read_states(reader: TreeReader, found: Collected, only: set[str] | None) -> set[str]:
    """Read partition states in bounded batches; answers the paths that differ from before."""
    moved: set[str] = set()
    batch: list[Wanted] = []
    for topic, znode in found.topics.items():
        states = found.states.setdefault(topic, {})
        for gone in [partition for partition in states if partition not in znode.replicas]:
            del states[gone]
        for partition, path in zip(znode.replicas, layout.partition_states(topic, znode.replicas), strict=True):
            if only is None or partition not in states or path in only:
                batch.append((states, partition, path))
        if len(batch) >= STATES_AT_ONCE:
            moved |= _read_batch(reader, found, batch)
            batch = []
    return moved | _read_batch(reader, found, batch)


def _read_batch(reader: TreeReader, found: Collected, batch: Sequence[Wanted]) -> set[str]:
    answers = reader.data([path for _, _, path in batch])
    moved: set[str] = set()
    fresh: list[tuple[Wanted, Znode]] = []
    for wanted, answer in zip(batch, answers, strict=True):
        states, partition, path = wanted
        before = states.get(partition)
        if isinstance(answer, Absent):
            if answer is Absent.DENIED:
                found.denied.add(path)
            if before is not answer:
                moved.add(path)
                states[partition] = answer
        elif not isinstance(before, decode.PartitionState) or before.mzxid != answer.mzxid:
            fresh.append((wanted, answer))
    for (states, partition, path), znode in fresh:
        now: State = Absent.MALFORMED
        try:
            now = decode.partition_state(path, znode.data, znode.mzxid)
        except MalformedZnode as error:
            found.keep_malformed(error, ZnodePart.STATE)
        if now is not Absent.MALFORMED or states.get(partition) is not now:
            moved.add(path)
            states[partition] = now
    return moved
