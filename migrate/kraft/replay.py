"""From record batches to the image: offsets without a gap, transactions whole or not at all, cut at a high watermark.

Source: `MD/image/loader/MetadataBatchLoader.java`, KIP-868 (metadata transactions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from migrate.errors import DecodeError, ReplayError, SnapshotError
from migrate.kernels.choice import ready, repaid
from migrate.kraft.rules import apply_record
from migrate.kraft.state import PartitionRow, State
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.unswept import unswept
from migrate.protocol.batches import Batch, Idle
from migrate.protocol.fields import Struct, Values
from migrate.protocol.records import (
    ABORT_TRANSACTION,
    BEGIN_TRANSACTION,
    END_TRANSACTION,
    KRAFT_VERSION,
    decode_control,
    decode_record,
)

if TYPE_CHECKING:
    from migrate.kraft.plain_replay import PlainLog

HEADER = "SNAPSHOT_HEADER"
FOOTER = "SNAPSHOT_FOOTER"
KERNEL = "metadata"
LARGE = 16 << 20  # bytes of a snapshot, 130,000 partitions: from here on compiling the kernel pays
LEAST_BATCH = 4 << 10  # bytes of a log's batch; for a smaller one alone no kernel is loaded


class Rows(NamedTuple):
    """Partitions of one topic that were decoded in columns, in the order of their records."""

    topic_id: str
    rows: list[tuple[int, PartitionRow]]


Span = TypeVar("Span", bound=Batch | Idle)
Waiting = tuple[Struct, Values, str] | Rows  # a record with where it stands, or what stands for several


@dataclass(slots=True)
class Transaction:
    """An open metadata transaction: where it began, and the records that wait for its end."""

    begin: int
    epoch_before: int
    waiting: list[Waiting] = field(default_factory=list)
    records: int = 0  # of Kafka, in `waiting`


@dataclass(slots=True)
class Replayer:
    """Applies batches in order.

    `next_offset` is what must come next (also where to fetch from), `fetched_epoch` the epoch of the last batch read.
    `offset` and `epoch` say how far the image stands: before the beginning of a transaction that is still open.
    """

    digester: Digester
    state: State = field(default_factory=State)
    next_offset: int = 0
    fetched_epoch: int = 0
    transaction: Transaction | None = None
    plain: PlainLog | None = None  # once the kernel is used
    at_copy: Callable[[int, Mapping[str, int]], None] | None = None  # called once Kafka's copy is in the image

    @property
    def offset(self) -> int:
        """The last offset that is in the image; -1 for none."""
        return (self.next_offset if self.transaction is None else self.transaction.begin) - 1

    @property
    def waiting(self) -> int:
        """Records read of an open transaction, however they were decoded."""
        return 0 if self.transaction is None else self.transaction.records

    @property
    def epoch(self) -> int:
        """The epoch of the batch that holds `offset`."""
        return self.fetched_epoch if self.transaction is None else self.transaction.epoch_before

    def apply(self, batches: Iterable[Batch | Idle], *, below: int | None = None) -> None:
        """Apply what is new in these batches, up to (and without) the offset `below`.

        Records that were applied before are passed over: an answer to a fetch may begin below the asked offset.
        Raises ReplayError for a gap, for an epoch that goes back, and where records contradict the image.
        """
        with unswept():
            for batch in in_sequence(batches, self.next_offset, self.fetched_epoch):
                if isinstance(batch, Idle):
                    if not self._pass_over(batch, below):
                        return
                elif not (self._apply_in_columns(batch, below) or self._apply_batch(batch, below)):
                    return

    def _pass_over(self, idle: Idle, below: int | None) -> bool:
        """A NoOp changes nothing; False where the cut was reached."""
        end = idle.last_offset + 1 if below is None else min(idle.last_offset + 1, below)
        if end > max(idle.base_offset, self.next_offset):
            self.next_offset, self.fetched_epoch = end, idle.epoch
        return end > idle.last_offset

    def _apply_in_columns(self, batch: Batch, below: int | None) -> bool:
        """False where the batch is left to `_apply_batch`: too small for a kernel, not plain, or not wanted whole."""
        if batch.control:
            return False
        if batch.base_offset < self.next_offset or (below is not None and batch.last_offset >= below):
            if self.plain is not None:
                self.plain.forget()
            return False
        if self.plain is None:
            if not repaid(KERNEL, len(batch.raw), LARGE, LEAST_BATCH):
                return False
            from migrate.kraft.plain_replay import PlainLog  # noqa: PLC0415 - numpy and numba, for what is large

            self.plain = PlainLog()
        if not self.plain.apply(batch, self):
            return False
        self.next_offset, self.fetched_epoch = batch.last_offset + 1, batch.epoch
        return True

    def _apply_batch(self, batch: Batch, below: int | None) -> bool:
        """False where the cut was reached."""
        for offset, key, value in batch.records():
            if offset < self.next_offset:
                continue
            if below is not None and offset >= below:
                return False
            if batch.control:
                apply_control(self.state, key, value, batch)
            else:
                table, values = decoded(value, offset, batch)
                self.record(table, values, offset)
            self.next_offset = offset + 1
            self.fetched_epoch = batch.epoch
        return True

    def record(self, table: Struct, values: Values, offset: int) -> None:
        """Apply one decoded record, or let it wait for the end of its transaction.  Raises ReplayError."""
        is_open, where = self.transaction is not None, f"offset {offset}"
        if table is BEGIN_TRANSACTION:
            if is_open:
                raise ReplayError("a transaction begins inside a transaction", where=where)
            self.transaction = Transaction(offset, self.fetched_epoch)
        elif table is END_TRANSACTION or table is ABORT_TRANSACTION:
            if self.transaction is None:
                raise ReplayError("a transaction ends that has not begun", where=where)
            waiting, self.transaction = self.transaction.waiting, None
            if table is END_TRANSACTION:
                before = self.state.migration_state
                for one in waiting:
                    self._apply(one)
                now = self.state.migration_state
                if self.at_copy is not None and now is ZkMigrationState.MIGRATION and before is not now:
                    self.at_copy(offset, _counted(waiting))
        else:
            self.take((table, values, where))

    def take(self, one: Waiting) -> None:
        """Apply it, or let it wait for the end of its transaction.  Raises ReplayError."""
        if self.transaction is not None:
            self.transaction.waiting.append(one)
            self.transaction.records += len(one.rows) if isinstance(one, Rows) else 1
        else:
            self._apply(one)

    def _apply(self, one: Waiting) -> None:
        if isinstance(one, Rows):
            self.state.set_rows(one.topic_id, one.rows)
        else:
            apply_record(self.state, *one, self.digester)


def _counted(waiting: Iterable[Waiting]) -> Mapping[str, int]:
    """Records by the name of their type in `MetadataRecordType`, as the controller's own log counts them."""
    found: Counter[str] = Counter()
    for one in waiting:
        if isinstance(one, Rows):
            found["PARTITION_RECORD"] += len(one.rows)
        else:
            found[re.sub("(?<=[a-z])(?=[A-Z])", "_", one[0].name).upper()] += 1
    return found


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

    A leader change says nothing of the image; kraft.version is a feature that no FeatureLevelRecord carries.
    """
    try:
        name, table, _, values = decode_control(key, value)
    except DecodeError as error:
        raise type(error)(error.what, where=batch.place) from error
    if table is KRAFT_VERSION:
        state.features["kraft.version"] = values["kRaftVersion"]
    return name


def check_broker_epoch(broker: int, epoch: int, end_offset: int, where: str) -> None:
    """A broker's epoch is an offset, and lies below the end of the snapshot that holds its registration."""
    if epoch >= end_offset:
        what = (
            f"broker {broker} was registered at offset {epoch}; the snapshot's name says that it ends at {end_offset}"
        )
        raise SnapshotError(what, where=where)


def replay_snapshot(
    batches: Iterable[Batch], end_offset: int, epoch: int, digester: Digester, name: str, size: int = 0
) -> Replayer:
    """The image of a whole snapshot: header first, footer last, every batch of the snapshot's own epoch.

    Offsets inside a snapshot begin at 0 and are no log offsets; the log goes on at `end_offset`.  One of many bytes
    (`size`) is decoded in columns.  Raises SnapshotError where the snapshot is not whole.
    """
    replayer = Replayer(digester)
    where, state = f"snapshot {end_offset}-{epoch}", replayer.state
    apply = apply_data
    if ready(KERNEL, size, LARGE):
        from migrate.kraft.plain_replay import PlainReplay  # noqa: PLC0415 - numpy and numba, for what is large

        apply = PlainReplay().apply_data
    with unswept():
        for batch in data_batches(batches, epoch, state, name):
            apply(state, batch, where, digester)
    for registration, _ in state.brokers.values():
        check_broker_epoch(registration.id, registration.epoch, end_offset, name)
    replayer.next_offset, replayer.fetched_epoch = end_offset, epoch
    return replayer


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


def apply_data(state: State, batch: Batch, where: str, digester: Digester) -> None:
    """Apply the records of a snapshot's data batch, one by one."""
    for offset, _, value in batch.records():
        apply_decoded(state, decoded(value, offset, batch), batch, where, digester)


def apply_decoded(state: State, record: tuple[Struct, Values], batch: Batch, where: str, digester: Digester) -> None:
    """Apply one record of a snapshot's batch."""
    table, values = record
    if table in {BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION}:
        raise SnapshotError("a snapshot holds a part of a transaction", where=batch.place)
    apply_record(state, table, values, where, digester)
