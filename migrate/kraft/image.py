"""The metadata image: record batches applied without a gap, transactions whole or not at all; and frozen views of it.

The live reader gives it the bytes of Fetch and FetchSnapshot answers, the files give it theirs; both ask for a view.
Source: `MD/image/loader/MetadataBatchLoader.java`, KIP-868 (metadata transactions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from migrate.errors import DecodeError, MigrateError, ReplayError, SnapshotError
from migrate.kraft.rules import State, apply_record, partition_columns
from migrate.model.columns import EntityColumns, PartitionColumns, unswept
from migrate.model.copied import CopyEnd
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView
from migrate.protocol.batches import Batch, Idle, split
from migrate.protocol.loader import Struct, Values
from migrate.protocol.records import (
    ABORT_TRANSACTION,
    BEGIN_TRANSACTION,
    END_TRANSACTION,
    KRAFT_VERSION,
    decode_control,
    decode_record,
)

HEADER = "SNAPSHOT_HEADER"
FOOTER = "SNAPSHOT_FOOTER"

Span = TypeVar("Span", bound=Batch | Idle)
Waiting = tuple[Struct, Values, str]  # a record, and where it is


@dataclass(slots=True)
class Transaction:
    """An open metadata transaction: where it began, and the records that wait for its end."""

    begin: int
    epoch_before: int
    waiting: list[Waiting] = field(default_factory=list)


class Image:
    """A metadata image that only ever moves forward; `load_snapshot` begins it anew.

    `next_offset` is what must come next (also where to fetch from), `fetched_epoch` the epoch of the last batch that
    was read (0 for none): Fetch's lastFetchedEpoch.  After an error in the middle of batches the image is not to be
    trusted: it refuses everything until a snapshot or `reset` begins it anew.  With `keep_copy` it keeps the metadata
    as it was at the end of Kafka's copy, where the log that is read reaches back to it.
    """

    def __init__(self, digester: Digester, *, keep_copy: bool = False) -> None:
        self.digester = digester
        self._keep_copy = keep_copy
        self._begin(State())

    def reset(self) -> None:
        self._begin(State())

    def _begin(self, state: State, next_offset: int = 0, epoch: int = 0) -> None:
        self._state = state
        self.next_offset = next_offset
        self.fetched_epoch = epoch
        self.copy_end: CopyEnd | None = None
        self._transaction: Transaction | None = None
        self._error: MigrateError | None = None
        self._partitions: tuple[int, PartitionColumns] | None = None
        self._entities: tuple[int, EntityColumns] | None = None

    @property
    def offset(self) -> int:
        """The last offset that is in the image, -1 for none; an open transaction is not in it."""
        return (self.next_offset if self._transaction is None else self._transaction.begin) - 1

    def apply_batches(self, raw: bytes, *, below: int | None, where: str = "the metadata log") -> None:
        """Apply the record batches of a Fetch answer up to (and without) the offset `below`, the high watermark.

        All batches are checked before the first is applied; a last batch that the answer cut off is left for the next
        fetch.  Raises BatchError, DecodeError, ReplayError.
        """
        self.apply(list(split(raw, where=where, partial_tail=True)), below=below)

    def apply(self, batches: Iterable[Batch | Idle], *, below: int | None) -> None:
        """Apply what is new in these checked batches, up to (and without) the offset `below`.

        Records that were applied before are passed over: an answer to a fetch may begin below the asked offset.
        Raises ReplayError for a gap, for an epoch that goes back, and where records contradict the image.
        """
        self._usable()
        try:
            with unswept():
                for batch in in_sequence(batches, self.next_offset, self.fetched_epoch):
                    if isinstance(batch, Idle):  # NoOps change nothing
                        end = batch.last_offset + 1 if below is None else min(batch.last_offset + 1, below)
                        if end > max(batch.base_offset, self.next_offset):
                            self.next_offset, self.fetched_epoch = end, batch.epoch
                        if end <= batch.last_offset:
                            return
                        continue
                    for offset, key, value in batch.records():
                        if offset < self.next_offset:
                            continue
                        if below is not None and offset >= below:
                            return
                        if batch.control:
                            apply_control(self._state, key, value, batch)
                        else:
                            self._apply_record(*decoded(value, offset, batch), offset)
                        self.next_offset, self.fetched_epoch = offset + 1, batch.epoch
        except MigrateError as error:
            self._error = error
            raise

    def _apply_record(self, table: Struct, values: Values, offset: int) -> None:
        """Apply one decoded record, or let it wait for the end of its transaction.  Raises ReplayError."""
        state, where = self._state, f"offset {offset}"
        if table is BEGIN_TRANSACTION:
            if self._transaction is not None:
                raise ReplayError("a transaction begins inside a transaction", where=where)
            self._transaction = Transaction(offset, self.fetched_epoch)
        elif table is END_TRANSACTION or table is ABORT_TRANSACTION:
            if self._transaction is None:
                raise ReplayError("a transaction ends that has not begun", where=where)
            waiting, self._transaction = self._transaction.waiting, None
            if table is END_TRANSACTION:
                before = state.migration_state
                for one in waiting:
                    apply_record(state, *one, self.digester)
                now = state.migration_state
                if self._keep_copy and now is ZkMigrationState.MIGRATION and before is not now:
                    # by the types' names in `MetadataRecordType`, as the controller's own log counts them
                    names = (re.sub("(?<=[a-z])(?=[A-Z])", "_", record.name).upper() for record, _, _ in waiting)
                    self.copy_end = CopyEnd(offset, partition_columns(state), entity_columns(state), Counter(names))
        elif self._transaction is not None:
            self._transaction.waiting.append((table, values, where))
        else:
            apply_record(state, table, values, where, self.digester)

    def load_snapshot(self, raw: bytes, end_offset: int, epoch: int, where: str = "the snapshot") -> None:
        """Begin anew from the bytes of a whole snapshot that ends (exclusively) at `end_offset`.

        The image stays as it was where the snapshot is not whole: SnapshotError, BatchError, DecodeError, ReplayError.
        """
        self.load_snapshot_batches(split(raw, where=where), end_offset, epoch, where)

    def load_snapshot_batches(self, batches: Iterable[Batch], end_offset: int, epoch: int, where: str) -> None:
        self._begin(snapshot_state(batches, end_offset, epoch, self.digester, where), end_offset, epoch)

    def _usable(self) -> None:
        if self._error is not None:
            raise ReplayError("the image broke off in the middle of a batch", why=str(self._error)) from self._error

    @property
    def state(self) -> State:
        """The image itself: it changes."""
        self._usable()
        return self._state

    def view(self, cluster_id: str, high_watermark: int | Unknown, source: str) -> KraftView:
        """A frozen view; columns are shared with the last view while nothing in them has changed."""
        state, transaction = self.state, self._transaction
        if self._partitions is None or self._partitions[0] != state.partition_changes:
            self._partitions = (state.partition_changes, partition_columns(state))
        if self._entities is None or self._entities[0] != state.entity_changes:
            self._entities = (state.entity_changes, entity_columns(state))
        return KraftView(
            cluster_id=cluster_id,
            offset=self.offset,
            epoch=self.fetched_epoch if transaction is None else transaction.epoch_before,
            high_watermark=high_watermark,
            source=source,
            migration_state=state.migration_state,
            features=dict(state.features),
            brokers={registration.id: registration for registration, _ in state.brokers.values()},
            controllers={registration.id: registration for registration in state.controllers.values()},
            partitions=self._partitions[1],
            entities=self._entities[1],
            waiting=0 if transaction is None else len(transaction.waiting),
            kraft_version=state.kraft_version,
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


def in_sequence(batches: Iterable[Span], next_offset: int, epoch: int) -> Iterator[Span]:
    """Those batches of a log that hold something from that offset on; `epoch` is that of the last one before.

    Raises ReplayError for a gap, and for an epoch that goes back.
    """
    for batch in batches:
        if batch.last_offset < next_offset:
            continue
        if batch.base_offset > next_offset:
            what = f"a batch begins at offset {batch.base_offset}; {next_offset} was due"
            raise ReplayError(what, where=batch.place)
        if batch.epoch < epoch:
            what = f"a batch of epoch {batch.epoch} follows one of epoch {epoch}"
            raise ReplayError(what, where=batch.place)
        yield batch
        next_offset, epoch = batch.last_offset + 1, batch.epoch


def decoded(value: bytes | None, offset: int, batch: Batch) -> tuple[Struct, Values]:
    """Table and values of a record, or its error with the place."""
    try:
        table, _, values = decode_record(value)
    except DecodeError as error:
        raise type(error)(error.what, where=f"{batch.place}, offset {offset}") from error
    return table, values


def apply_control(state: State, key: bytes | None, value: bytes | None, batch: Batch) -> str:
    """The control record's type.

    A leader change says nothing of the image.  kraft.version is Raft's: a FeatureLevelRecord of that name, which 3.9
    writes for anybody who asks for one (KAFKA-18979), has no effect, and stays a feature.
    """
    try:
        name, table, _, values = decode_control(key, value)
    except DecodeError as error:
        raise type(error)(error.what, where=batch.place) from error
    if table is KRAFT_VERSION:
        state.kraft_version = values["kRaftVersion"]
    return name


def check_broker_epoch(broker: int, epoch: int, end_offset: int, where: str) -> None:
    """A broker's epoch is an offset, and lies below the end of the snapshot that holds its registration."""
    if epoch >= end_offset:
        what = (
            f"broker {broker} was registered at offset {epoch}; the snapshot's name says that it ends at {end_offset}"
        )
        raise SnapshotError(what, where=where)


def snapshot_state(batches: Iterable[Batch], end_offset: int, epoch: int, digester: Digester, name: str) -> State:
    """The image of a whole snapshot: header first, footer last, every batch of the snapshot's own epoch.

    Offsets inside a snapshot begin at 0 and are no log offsets; the log goes on at `end_offset`.

    Raises SnapshotError where the snapshot is not whole.
    """
    where, state = f"snapshot {end_offset}-{epoch}", State()
    with unswept():
        for batch in data_batches(batches, epoch, state, name):
            for offset, _, value in batch.records():
                table, values = decoded(value, offset, batch)
                if table in {BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION}:
                    raise SnapshotError("a snapshot holds a part of a transaction", where=batch.place)
                apply_record(state, table, values, where, digester)
    for registration, _ in state.brokers.values():
        check_broker_epoch(registration.id, registration.epoch, end_offset, name)
    return state


def data_batches(batches: Iterable[Batch], epoch: int, state: State, name: str) -> Iterator[Batch]:
    """The data batches of a snapshot; its control records are applied to the state, and its frame is checked.

    Raises SnapshotError: no header first, no footer last, another epoch, a gap.
    """
    last, due = "", 0
    for batch in batches:
        if batch.epoch != epoch or batch.base_offset != due:
            what = f"a batch of epoch {batch.epoch} at offset {batch.base_offset}; epoch {epoch}, offset {due} was due"
            raise SnapshotError(what, where=batch.place)
        if last == FOOTER:
            raise SnapshotError("a batch follows the snapshot's footer", where=batch.place)
        if batch.control:
            for offset, key, value in batch.records():
                last = apply_control(state, key, value, batch)
                if (last == HEADER) != (offset == 0):
                    raise SnapshotError(f"{last} at offset {offset}", where=batch.place)
        elif not last:
            next(batch.records())  # what is wrong with it comes first
            raise SnapshotError("the snapshot does not begin with its header", where=batch.place)
        else:
            yield batch
        due = batch.last_offset + 1
    if last != FOOTER:
        raise SnapshotError("the snapshot ends without its footer", where=name)
