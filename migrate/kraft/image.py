"""The metadata image, grown batch by batch, and the frozen views of it.

The live reader gives it the bytes of Fetch and FetchSnapshot answers, the files give it theirs; both ask for a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from migrate.errors import MigrateError, ReplayError
from migrate.kraft.replay import Replayer, replay_snapshot
from migrate.kraft.state import State, partition_columns
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.copied import CopyEnd
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol.batches import Batch, Idle, split


class Image:
    """A metadata image that only ever moves forward; `load_snapshot` begins it anew.

    After an error in the middle of batches the image is not to be trusted: it refuses everything until a snapshot or
    `reset` begins it anew.  With `keep_copy` it keeps the metadata as it was at the end of Kafka's copy, where the log
    that is read reaches back to it.
    """

    def __init__(self, digester: Digester, *, keep_copy: bool = False) -> None:
        self.digester = digester
        self.copy_end: CopyEnd | None = None
        self._keep_copy = keep_copy
        self._adopt(Replayer(digester))

    @property
    def next_offset(self) -> int:
        """The offset to fetch from."""
        return self._replayer.next_offset

    @property
    def fetched_epoch(self) -> int:
        """The epoch of the last batch that was read (0 for none): Fetch's lastFetchedEpoch."""
        return self._replayer.fetched_epoch

    @property
    def offset(self) -> int:
        """The last offset that is in the image, -1 for none; an open transaction is not in it."""
        return self._replayer.offset

    def reset(self) -> None:
        """Begin anew at offset 0."""
        self._adopt(Replayer(self.digester))

    def _adopt(self, replayer: Replayer) -> None:
        self._replayer = replayer
        self._error: MigrateError | None = None
        self._partitions: tuple[int, PartitionColumns] | None = None
        self._entities: tuple[int, EntityColumns] | None = None
        if self._keep_copy:
            self.copy_end = None
            replayer.at_copy = self._copied

    def _copied(self, offset: int, records: Mapping[str, int]) -> None:
        state = self._replayer.state
        self.copy_end = CopyEnd(offset, partition_columns(state), entity_columns(state), records)

    def apply_batches(self, raw: bytes, *, below: int | None, where: str = "the metadata log") -> None:
        """Apply the record batches of a Fetch answer up to (and without) the offset `below`, the high watermark.

        All batches are checked before the first is applied; a last batch that the answer cut off is left for the next
        fetch.  Raises BatchError, DecodeError, ReplayError.
        """
        self.apply(list(split(raw, where=where, partial_tail=True)), below=below)

    def apply(self, batches: Iterable[Batch | Idle], *, below: int | None) -> None:
        """Apply checked batches up to (and without) the offset `below`."""
        self._usable()
        try:
            self._replayer.apply(batches, below=below)
        except MigrateError as error:
            self._error = error
            raise

    def load_snapshot(self, raw: bytes, end_offset: int, epoch: int, where: str = "the snapshot") -> None:
        """Begin anew from the bytes of a whole snapshot that ends (exclusively) at `end_offset`.

        The image stays as it was where the snapshot is not whole: SnapshotError, BatchError, DecodeError, ReplayError.
        """
        self.load_snapshot_batches(split(raw, where=where), end_offset, epoch, where)

    def load_snapshot_batches(self, batches: Iterable[Batch], end_offset: int, epoch: int, where: str) -> None:
        """Begin anew from the batches of a whole snapshot."""
        self._adopt(replay_snapshot(batches, end_offset, epoch, self.digester, where))

    def _usable(self) -> None:
        if self._error is not None:
            raise ReplayError("the image broke off in the middle of a batch", why=str(self._error)) from self._error

    @property
    def state(self) -> State:
        """The image itself: it changes."""
        self._usable()
        return self._replayer.state

    def view(self, cluster_id: str, high_watermark: int | Unknown, source: str) -> KraftView:
        """A frozen view; columns are shared with the last view while nothing in them has changed."""
        self._usable()
        state = self._replayer.state
        if self._partitions is None or self._partitions[0] != state.partition_changes:
            self._partitions = (state.partition_changes, partition_columns(state))
        return self._view(cluster_id, high_watermark, source, self._partitions[1])

    def head(self) -> KraftView:
        """A view without partitions, which says nothing of what is committed."""
        self._usable()
        return self._view("", Unknown("not asked"), "", PartitionColumns())

    def _view(
        self, cluster_id: str, high_watermark: int | Unknown, source: str, partitions: PartitionColumns
    ) -> KraftView:
        state = self._replayer.state
        if self._entities is None or self._entities[0] != state.entity_changes:
            self._entities = (state.entity_changes, entity_columns(state))
        return KraftView(
            cluster_id=cluster_id,
            offset=self._replayer.offset,
            epoch=self._replayer.epoch,
            high_watermark=high_watermark,
            source=source,
            migration_state=state.migration_state,
            features=dict(state.features),
            brokers={registration.id: registration for registration, _ in state.brokers.values()},
            controllers={registration.id: registration for registration in state.controllers.values()},
            partitions=partitions,
            entities=self._entities[1],
            waiting=self._replayer.waiting,
        )


def entity_columns(state: State) -> EntityColumns:
    """Everything that is not a partition, by kind, key and name.

    An ACL that stands under two ids is one row: the pair means the same as one of them.
    """
    rows = {("topic", topic.name, "topic_id"): (key, topic.where) for key, topic in state.topics.items()}
    for (kind, key), names in state.settings.items():
        rows.update({(kind, key, name): found for name, found in names.items()})
    rows.update({("acl", key, "present"): ("true", where) for key, where in state.acls.values()})
    for registration, where in state.brokers.values():
        key = str(registration.id)
        rows["broker", key, "endpoints"] = (",".join(registration.endpoints), where)
        if registration.rack is not None:
            rows["broker", key, "rack"] = (registration.rack, where)
    columns = EntityColumns()
    for kind, key, name in sorted(rows):
        value, where = rows[kind, key, name]
        columns.add(kind, key, name, value, where)
    return columns
