"""Reading again what a watch has named, and nothing else: topics, states and single znodes of a tree that was read.

Whatever is not plainly one of these, cannot be read or cannot be decoded is left to a whole read.  `Touched` gathers
what a look changed, with what stood there before: so that fingerprints are corrected and not summed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from migrate.errors import MalformedZnode
from migrate.zookeeper import decode, layout
from migrate.zookeeper.collect import ROUNDS, Collected, State
from migrate.zookeeper.layout import child
from migrate.zookeeper.tree_watch import TreeWatch
from migrate.zookeeper.znode import Absent, TreeReader, Znode

# of these a view says nothing, whatever is written there
UNREAD: Final = ("/isr_change_notification", "/brokers/seqid", layout.CONFIG_CHANGES)
TAKEOVER: Final = frozenset({layout.MIGRATION, layout.CONTROLLER, layout.CONTROLLER_EPOCH})
BELOW_TOPICS: Final = f"{layout.TOPICS}/"
PARTITIONS: Final = "partitions"
STATE: Final = "state"


@dataclass(slots=True)
class Touched:
    """What looks have changed: whole topics; states, as they were before; single znodes; was anything missed?

    A topic in `topics` is to be taken anew, whatever `states` says of it.
    """

    topics: set[str] = field(default_factory=set)
    states: dict[tuple[str, int], State] = field(default_factory=dict)
    singles: set[str] = field(default_factory=set)
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.topics or self.states or self.singles or self.everything)

    def add(self, other: Touched) -> None:
        """And what a later look changed."""
        self.topics |= other.topics
        self.states = other.states | self.states  # the first one is what stood there
        self.singles |= other.singles
        self.everything |= other.everything


class SyncedReader(TreeReader, Protocol):
    """A live one."""

    def sync(self) -> None:
        """Later reads see all writes that were completed before."""


class _Unclear(Exception):
    """Only a whole read can say."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What has changed, the transaction up to which that is told, and: is it all that there was?"""

    touched: Touched
    zxid: int
    whole: bool


def catch_up(client: SyncedReader, found: Collected, watch: TreeWatch, stands: int) -> CaughtUp | None:
    """Bring what was read at the transaction `stands` to where the tree stands after a sync; None: read it whole.

    What moves while this reads is read again, a few times.
    """
    touched, zxids = Touched(), set[int]()
    for _ in range(ROUNDS):
        client.sync()
        zxid = client.zxid()
        changed = watch.take()
        if changed is None:
            return None
        zxids |= changed.zxids
        try:
            now = _read(client, found, changed.paths)
        except _Unclear:
            return None
        touched.add(now)
        if not now.topics and not now.states and now.singles <= {layout.MIGRATION}:
            told = sum(stands < one <= zxid for one in zxids)
            return CaughtUp(touched, zxid, whole=told == zxid - stands)
    return None


def _read(reader: TreeReader, found: Collected, changed: Iterable[str]) -> Touched:
    """Read these paths into `found`; raises _Unclear."""
    topics: set[str] = set()
    states: set[tuple[str, int]] = set()
    singles: set[str] = set()
    for path in changed:
        if path.startswith(BELOW_TOPICS):
            _sort(path, topics, states)
        elif path in layout.SINGLE_ZNODES:
            singles.add(path)
        elif not any(path == place or path.startswith(f"{place}/") for place in UNREAD):
            raise _Unclear
    touched = Touched(topics, {}, singles)
    _read_singles(reader, found, sorted(singles))
    _read_topics(reader, found, sorted(topics))
    wanted = sorted(one for one in states if one[0] not in topics and _is_known(found, *one))
    touched.states = _read_states(reader, found, wanted)
    return touched


def _sort(path: str, topics: set[str], states: set[tuple[str, int]]) -> None:
    name, *below = path[len(BELOW_TOPICS) :].split("/")
    match below:
        case [] | ["partitions"]:
            topics.add(name)
        case ["partitions", number] if number.isdecimal() and number.isascii():
            topics.add(name)
        case ["partitions", number, "state"] if number.isdecimal() and number.isascii():
            states.add((name, int(number)))
        case _:
            raise _Unclear


def _is_known(found: Collected, topic: str, partition: int) -> bool:
    """A state of a partition that no assignment names is looked at by nobody."""
    known = found.topics.get(topic)
    return known is not None and partition in known.replicas


def _read_singles(reader: TreeReader, found: Collected, paths: Sequence[str]) -> None:
    for path, answer in zip(paths, reader.data(paths), strict=True):
        if answer is Absent.MISSING:
            found.znodes.pop(path, None)
        elif isinstance(answer, Znode):
            found.znodes[path] = answer
        else:
            raise _Unclear


def _read_topics(reader: TreeReader, found: Collected, names: Sequence[str]) -> None:
    paths = [child(layout.TOPICS, name) for name in names]
    there: list[str] = []
    for name, path, answer in zip(names, paths, reader.data(paths), strict=True):
        found.states.pop(name, None)
        found.topics.pop(name, None)
        found.znodes.pop(path, None)
        if isinstance(answer, Znode):
            found.znodes[path] = answer
            found.topics[name] = _decoded_topic(path, answer)
            found.states[name] = {}
            there.append(name)
        elif answer is not Absent.MISSING:
            raise _Unclear
    if names:
        others = set(found.names.get(layout.TOPICS, ())).difference(names)
        found.names[layout.TOPICS] = tuple(sorted(others.union(there)))
    _read_states(reader, found, [(name, number) for name in there for number in found.topics[name].replicas])


def _decoded_topic(path: str, znode: Znode) -> decode.TopicZnode:
    try:
        return decode.topic(path, znode.data)
    except MalformedZnode as error:
        raise _Unclear from error


def _read_states(
    reader: TreeReader, found: Collected, wanted: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], State]:
    """What stood there before, of each."""
    paths = [f"{BELOW_TOPICS}{topic}/{PARTITIONS}/{number}/{STATE}" for topic, number in wanted]
    before: dict[tuple[str, int], State] = {}
    for (topic, number), path, answer in zip(wanted, paths, reader.data(paths), strict=True):
        states = found.states.setdefault(topic, {})
        before[topic, number] = states.get(number, Absent.MISSING)
        if answer is Absent.MISSING:
            states[number] = Absent.MISSING
        elif isinstance(answer, Znode):
            states[number] = _decoded_state(path, answer)
        else:
            raise _Unclear
    return before


def _decoded_state(path: str, znode: Znode) -> decode.PartitionState:
    try:
        return decode.partition_state(path, znode.data, znode.mzxid)
    except MalformedZnode as error:
        raise _Unclear from error
