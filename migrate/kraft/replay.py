"""From record batches to the image: offsets without a gap, transactions whole or not at all, cut at a high watermark.

Source: `MD/image/loader/MetadataBatchLoader.java`, KIP-868 (metadata transactions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from migrate.errors import DecodeError, ReplayError, SnapshotError
from migrate.kraft.rules import apply_record
from migrate.kraft.state import State
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.unswept import unswept
from migrate.protocol.batches import Batch, Idle
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
    at_copy: Callable[[int, Mapping[str, int]], None] | None = None  # called once Kafka's copy is in the image

    @property
    def offset(self) -> int:
        """The last offset that is in the image; -1 for none."""
        return (self.next_offset if self.transaction is None else self.transaction.begin) - 1

    @property
    def waiting(self) -> int:
        """Records read of an open transaction."""
        return 0 if self.transaction is None else len(self.transaction.waiting)

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
                elif not self._apply_batch(batch, below):
                    return

    def _pass_over(self, idle: Idle, below: int | None) -> bool:
        """A NoOp changes nothing; False where the cut was reached."""
        end = idle.last_offset + 1 if below is None else min(idle.last_offset + 1, below)
        if end > max(idle.base_offset, self.next_offset):
            self.next_offset, self.fetched_epoch = end, idle.epoch
        return end > idle.last_offset

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
                    apply_record(self.state, *one, self.digester)
                now = self.state.migration_state
                if self.at_copy is not None and now is ZkMigrationState.MIGRATION and before is not now:
                    self.at_copy(offset, _counted(waiting))
        elif self.transaction is not None:
            self.transaction.waiting.append((table, values, where))
        else:
            apply_record(self.state, table, values, where, self.digester)


def _counted(waiting: Iterable[Waiting]) -> Mapping[str, int]:
    """Records by the name of their type in `MetadataRecordType`, as the controller's own log counts them."""
    found: Counter[str] = Counter()
    for table, _, _ in waiting:
        found[re.sub("(?<=[a-z])(?=[A-Z])", "_", table.name).upper()] += 1
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


def replay_snapshot(batches: Iterable[Batch], end_offset: int, epoch: int, digester: Digester, name: str) -> Replayer:
    """The image of a whole snapshot: header first, footer last, every batch of the snapshot's own epoch.

    Offsets inside a snapshot begin at 0 and are no log offsets; the log goes on at `end_offset`.

    Raises SnapshotError where the snapshot is not whole.
    """
    replayer = Replayer(digester)
    where, state = f"snapshot {end_offset}-{epoch}", replayer.state
    with unswept():
        for batch in data_batches(batches, epoch, state, name):
            for offset, _, value in batch.records():
                table, values = decoded(value, offset, batch)
                if table in {BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION}:
                    raise SnapshotError("a snapshot holds a part of a transaction", where=batch.place)
                apply_record(state, table, values, where, digester)
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
