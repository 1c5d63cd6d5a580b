"""Do ZooKeeper and KRaft still agree: asked again and again, at the cost of what has changed.

Both sides are kept as fingerprints a topic.  What a reader has read anew since the last time (`Kept.touched` of
ZooKeeper, `Image.take_touched` of the metadata) is taken out of them and put in again; a topic is compared where one of
its two sides has changed.  Where a reader cannot say what changed (a whole read, a snapshot, another session or
leader's log) that side is summed anew.  The answer is that of `WholeSides.agreement` on the same two views
(`tests/observe/test_recheck.py`).  It proves nothing: a gate compares every field.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.diff import typed_rows
from migrate.kraft.image import Image
from migrate.kraft.state import PartitionRow, Topic, partition_columns
from migrate.model import fingerprints
from migrate.model.fingerprints import NOTHING, Fingerprint
from migrate.observe.agreement import Agreement, Side, agreement, entity_rows
from migrate.observe.print_columns import fingerprints_of
from migrate.zookeeper.again import Kept
from migrate.zookeeper.changes import TAKEOVER, Touched
from migrate.zookeeper.collect import State
from migrate.zookeeper.decode import TopicZnode
from migrate.zookeeper.read import NO_STATE
from migrate.zookeeper.znode import Absent


class Recheck:
    """Two readers' fingerprints, kept from look to look; `summed` counts the sides that were summed anew."""

    def __init__(self) -> None:
        self.summed = 0
        self._ours: dict[str, Fingerprint] = {}
        self._theirs: dict[str, Fingerprint] = {}
        self._counts: dict[str, int] = {}  # KRaft's partitions, of the topics that have a fingerprint
        self._total = 0
        self._differing: set[str] = set()
        self._kept: Kept | None = None
        self._image: Image | None = None
        self._others: tuple[int, Agreement] | None = None

    def agreement(self, kept: Kept, image: Image) -> Agreement:
        """What both agree on, as they were read last.  Raises MalformedZnode, and what the image raises."""
        names = self._zookeeper(kept)
        more = self._kraft(image)
        if names is None or more is None:
            names = self._ours.keys() | self._theirs.keys()
            self._differing = set()
        else:
            names |= more
        for name in names:
            if self._ours.get(name) == self._theirs.get(name):
                self._differing.discard(name)
            else:
                self._differing.add(name)
        return self._told(kept, image)

    # -- ZooKeeper ---------------------------------------------------------------------------------------------------
    def _zookeeper(self, kept: Kept) -> set[str] | None:
        """The topics whose fingerprint may be another; None: all."""
        touched, kept.touched = kept.touched, Touched()
        if touched.singles - TAKEOVER or touched.topics or touched.everything:
            self._others = None
        if touched.everything or kept is not self._kept:
            self._ours, self._kept, self._others = {}, None, None
            self._ours = fingerprints_of(kept.current().partitions)
            self._kept = kept
            self.summed += 1
            return None
        self._kept = None  # until all is in
        topics, states = kept.found.topics, kept.found.states
        for name in touched.topics:
            _put(self._ours, name, _topic_of_zookeeper(topics.get(name), states.get(name, {})))
        for (name, partition), before in touched.states.items():
            if name not in touched.topics:
                now = states[name][partition]
                change = _state(partition, now).minus(_state(partition, before))
                self._ours[name] = self._ours[name].plus(change)
        self._kept = kept
        return {*touched.topics, *(name for name, _ in touched.states)}

    # -- KRaft -------------------------------------------------------------------------------------------------------
    def _kraft(self, image: Image) -> set[str] | None:
        """Likewise."""
        touched, state = image.take_touched(), image.state
        if touched is None or image is not self._image:
            self._image, self._others = None, None
            self._theirs = fingerprints_of(partition_columns(state))
            self._counts = {topic.name: len(topic.partitions) for topic in state.topics.values() if topic.partitions}
            self._total = sum(self._counts.values())
            self._image = image
            self.summed += 1
            return None
        self._image = None  # until all is in
        names = set(touched.topics)
        for name in touched.topics:
            topic_id = state.topic_ids.get(name)
            self._count(name, 0 if topic_id is None else len(state.topics[topic_id].partitions))
            _put(self._theirs, name, None if topic_id is None else _topic_of_kraft(topic_id, state.topics[topic_id]))
        for (topic_id, partition), before in touched.partitions.items():
            topic = state.topics.get(topic_id)
            if topic is not None and topic.name not in touched.topics:
                self._row_changed(topic_id, topic, partition, before)
                names.add(topic.name)
        self._image = image
        return names

    def _row_changed(self, topic_id: str, topic: Topic, partition: int, before: PartitionRow | None) -> None:
        known = self._theirs.get(topic.name)
        now = _row(partition, topic.partitions[partition])
        if known is None:
            _put(self._theirs, topic.name, _topic_of_kraft(topic_id, topic))
        else:
            self._theirs[topic.name] = known.plus(now).minus(NOTHING if before is None else _row(partition, before))
        self._count(topic.name, len(topic.partitions))

    def _count(self, name: str, now: int) -> None:
        self._total += now - self._counts.pop(name, 0)
        if now:
            self._counts[name] = now

    # -- both --------------------------------------------------------------------------------------------------------
    def _told(self, kept: Kept, image: Image) -> Agreement:
        """With all that is no partition compared where any of it has changed."""
        stamp, view = image.state.entity_changes, kept.view
        if self._others is None or self._others[0] != stamp:
            view, kraft = kept.current(), image.head()
            blind = typed_rows.blind_configs(view.blind_spots)
            ours = Side({}, entity_rows(view.entities, typed_rows.of_zookeeper(view), blind))
            theirs = Side({}, entity_rows(kraft.entities, typed_rows.of_kraft(kraft), blind))
            self._others = stamp, agreement(ours, theirs, {}, view.pending.deletions)
        others = self._others[1]
        gone = {name for name in self._differing if name in view.pending.deletions and name not in self._theirs}
        agreed = self._total - sum(self._counts.get(name, 0) for name in self._differing)
        return Agreement(
            topics=tuple(sorted(self._differing - gone)),
            others=others.others,
            deleting=tuple(sorted(gone)),
            excused=others.excused,
            partitions=agreed,
        )


def _put(prints: dict[str, Fingerprint], name: str, now: Fingerprint | None) -> None:
    if now is None:
        prints.pop(name, None)
    else:
        prints[name] = now


def _topic_of_zookeeper(topic: TopicZnode | None, states: Mapping[int, State]) -> Fingerprint | None:
    """None where the topic is not there, or has no partitions."""
    if topic is None or not topic.replicas:
        return None
    found = fingerprints.identity(topic.id)
    for number, replicas in topic.replicas.items():
        adding, removing = topic.adding.get(number, ()), topic.removing.get(number, ())
        found = found.plus(fingerprints.assignment(number, replicas, adding, removing))
        found = found.plus(_state(number, states.get(number, Absent.MISSING)))
    return found


def _state(partition: int, state: State) -> Fingerprint:
    seen = NO_STATE if isinstance(state, Absent) else state
    return fingerprints.state(partition, seen.leader, seen.leader_epoch, seen.recovery, seen.isr)


def _topic_of_kraft(topic_id: str, topic: Topic) -> Fingerprint | None:
    if not topic.partitions:
        return None
    found = fingerprints.identity(topic_id)
    for number, row in topic.partitions.items():
        found = found.plus(_row(number, row))
    return found


def _row(partition: int, row: PartitionRow) -> Fingerprint:
    one = fingerprints.assignment(partition, row.replicas, row.adding, row.removing)
    return one.plus(fingerprints.state(partition, row.leader, row.leader_epoch, row.recovery_state, row.isr))
