"""Topics whose znodes are as Kafka writes them at rest, as columns of numbers: hundreds of thousands of partitions.

Plain is a topic with an id, without a reassignment, whose partitions are 0 to n - 1, each with a state in which no
leader recovers.  Whatever is not plain is read znode by znode (`migrate.zookeeper.collect`); both make one view.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.fingerprints import Fingerprint
from migrate.model.views import ZookeeperView
from migrate.zookeeper import layout
from migrate.zookeeper.layout import child

Array = np.ndarray[Any, np.dtype[Any]]
NONE: Final[list[int]] = []  # shared: columns are never changed
NO_DIRECTORIES: Final[list[str]] = []


@dataclass(frozen=True, slots=True)
class PlainTopics:
    """Parallel arrays; topic i has the partitions 0 to count[i] - 1, in the rows from first[i] on.

    A row's replicas are members[replicas[0]:replicas[0] + replicas[1]], its ISR likewise; its `leader` -1 is none.
    `mzxid` is the topic's, `state_mzxid` its state's.  `lanes` are fingerprints (`migrate.model.fingerprints`).
    """

    names: list[str]
    ids: Array  # uint8[topics, 16]
    mzxid: Array
    first: Array
    count: Array
    lanes: Array  # uint64[topics, 2]
    leader: Array
    leader_epoch: Array
    writer: Array  # the controller epoch of who wrote the state
    state_mzxid: Array
    replicas: Array  # int32[rows, 2]
    isr: Array  # int32[rows, 2]
    members: Array

    def __len__(self) -> int:
        return len(self.names)

    @property
    def partitions(self) -> int:
        return int(self.count.sum())

    def id_texts(self) -> list[str]:
        raw = self.ids.tobytes()
        return [base64.urlsafe_b64encode(raw[at : at + 16])[:22].decode() for at in range(0, len(raw), 16)]

    def fingerprints(self) -> Iterator[tuple[str, Fingerprint]]:
        return zip(self.names, map(Fingerprint._make, self.lanes.tolist()), strict=True)

    def highest_writer(self) -> int:
        """The highest controller epoch that a state was written with; -1 where there is none."""
        rows = self._rows(range(len(self)))
        return int(self.writer[rows].max(initial=-1))

    def _rows(self, topics: range | list[int]) -> Array:
        which = np.asarray(topics, np.int64)
        counts = self.count[which]
        starts = np.repeat(self.first[which] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        found: Array = starts + np.arange(int(counts.sum()), dtype=np.int64)
        return found

    def columns(self, topics: list[int]) -> PartitionColumns:
        """The partitions of these topics, in this order, as views hold them."""
        rows, texts = self._rows(topics), self.id_texts()
        counts = self.count[topics].tolist()
        total = len(rows)
        return PartitionColumns(
            topic=_repeated([self.names[topic] for topic in topics], counts),
            topic_id=_repeated([texts[topic] for topic in topics], counts),
            partition=[number for count in counts for number in range(count)],
            replicas=self._lists(self.replicas[rows]),
            isr=self._lists(self.isr[rows]),
            adding=[NONE] * total,
            removing=[NONE] * total,
            leader=self.leader[rows].tolist(),
            leader_epoch=self.leader_epoch[rows].tolist(),
            recovery_state=[0] * total,
            directories=[NO_DIRECTORIES] * total,
            revision=self.state_mzxid[rows].tolist(),
        )

    def added_to(self, view: ZookeeperView) -> ZookeeperView:
        """A view that was read without these topics, with them."""
        znodes = len(self) + self.partitions
        paths = (child(layout.TOPICS, name) for name in self.names)
        return replace(
            view,
            partitions=self.merged_with(view.partitions),
            entities=self._ids_added_to(view.entities),
            znodes=view.znodes + znodes,
            mzxids=dict(view.mzxids) | dict(zip(paths, self.mzxid.tolist(), strict=True)),
            state_epoch=max(view.state_epoch, self.highest_writer()),
        )

    def _ids_added_to(self, rows: EntityColumns) -> EntityColumns:
        """The rows of topics stand first, sorted by name."""
        count = rows.kind.count("topic")
        known = zip(rows.key[:count], rows.value[:count], strict=True)
        merged = EntityColumns()
        for name, topic_id in sorted((*known, *zip(self.names, self.id_texts(), strict=True))):
            merged.add("topic", name, "topic_id", topic_id, child(layout.TOPICS, name))
        for column in fields(EntityColumns):
            getattr(merged, column.name).extend(getattr(rows, column.name)[count:])
        return merged

    def without_rows(self) -> PlainTopics:
        """The topics, as if none had a partition."""
        return replace(self, first=np.zeros_like(self.first), count=np.zeros_like(self.count))

    def merged_with(self, others: PartitionColumns, topics: list[int] | None = None) -> PartitionColumns:
        """All partitions by topic and number: these, and those of other topics, which come in that order.

        `topics`: of these topics only those.
        """
        order = sorted(range(len(self)) if topics is None else topics, key=self.names.__getitem__)
        ours = self.columns(order) if order else others
        if not order or not len(others):
            return ours
        runs = [(self.names[topic], ours, int(self.count[topic])) for topic in order]
        runs += [(name, others, len(list(rows))) for name, rows in groupby(others.topic)]
        starts = {id(ours): 0, id(others): 0}
        merged = PartitionColumns()
        columns = [
            (getattr(merged, entry.name), {id(one): getattr(one, entry.name) for one in (ours, others)})
            for entry in fields(PartitionColumns)
        ]
        for _, one, count in sorted(runs, key=itemgetter(0)):
            start = starts[id(one)]
            starts[id(one)] = stop = start + count
            for target, sources in columns:
                target.extend(sources[id(one)][start:stop])
        return merged

    def _lists(self, runs: Array) -> list[list[int]]:
        found: list[list[int]] = [NONE] * len(runs)
        for length in np.unique(runs[:, 1]).tolist():
            if length:
                where = np.flatnonzero(runs[:, 1] == length)
                values = self.members[runs[where, 0].astype(np.int64)[:, None] + np.arange(length)]
                if len(where) == len(runs):
                    return list(values.tolist())
                for place, entry in zip(where.tolist(), values.tolist(), strict=True):
                    found[place] = entry
        return found


def _repeated(texts: list[str], counts: list[int]) -> list[str]:
    return [*chain.from_iterable(map(repeat, texts, counts))]
