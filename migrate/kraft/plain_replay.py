"""The image of a large snapshot, or of a long log, with partitions decoded in columns.

`PlainReplay` does what `migrate.kraft.replay.apply_data` does with a snapshot's batches, `PlainLog` what
`migrate.kraft.replay.Replayer` does with a log's, record after record.
"""

from __future__ import annotations

from itertools import islice

from migrate.kraft.plain_batches import OtherRecord, PlainBatches, in_order, topic_values
from migrate.kraft.replay import Replayer, Rows, apply_data, apply_decoded, decoded
from migrate.kraft.rules import apply_record
from migrate.kraft.state import State
from migrate.model.secrets import Digester
from migrate.protocol import records
from migrate.protocol.batches import Batch


class PlainReplay:
    """Applies a snapshot's data batches to a state, one after another."""

    def __init__(self) -> None:
        self._decoder = PlainBatches()
        self._topic_id = ""

    def apply_data(self, state: State, batch: Batch, where: str, digester: Digester) -> None:
        """As the reference."""
        plain = self._decoder.decode(batch)
        if plain is None:
            apply_data(state, batch, where, digester)
            return
        made = plain.partitions(0, len(plain.rows))

        def topic(number: int) -> None:
            values = topic_values(plain, number)
            self._topic_id = values["topicId"]
            apply_record(state, records.TOPIC, values, where, digester)

        def rows(_topic: int, first: int, end: int) -> None:
            state.set_rows(self._topic_id, list(islice(made, end - first)))

        def other(record: OtherRecord) -> None:
            apply_decoded(state, decoded(record.value, record.offset, batch), batch, where, digester)

        in_order(plain, topic, rows, other)


class PlainLog:
    """Applies a log's batches by way of a replayer, which knows of transactions."""

    def __init__(self) -> None:
        self._decoder = PlainBatches()
        self._topic_id = ""

    def forget(self) -> None:
        """A batch was applied by the reference: what it said of the topic at hand is not known here."""
        self._decoder.at_hand(b"")

    def apply(self, batch: Batch, replayer: Replayer) -> bool:
        """The whole batch, as the reference would; False where nothing was done, for the batch is not plain."""
        plain = self._decoder.decode(batch)
        if plain is None:
            return False
        made, offsets = plain.partitions(0, len(plain.rows)), plain.topic_offsets()

        def topic(number: int) -> None:
            values = topic_values(plain, number)
            self._topic_id = values["topicId"]
            replayer.record(records.TOPIC, values, offsets[number - 1])

        def rows(_topic: int, first: int, end: int) -> None:
            replayer.take(Rows(self._topic_id, list(islice(made, end - first))))

        def other(record: OtherRecord) -> None:
            table, values = decoded(record.value, record.offset, batch)
            if record.offset > batch.base_offset:
                replayer.fetched_epoch = batch.epoch  # that of the record before
            replayer.record(table, values, record.offset)

        in_order(plain, topic, rows, other)
        return True
