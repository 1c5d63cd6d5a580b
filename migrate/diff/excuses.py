"""The rules of `migrate.diff.expected` for one row, without Spark: for early answers; a report has Spark's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from migrate.diff.expected import PRODUCER_ID_BLOCK
from migrate.model.difference import Difference, DifferenceClass

NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
TOPIC_KINDS: Final = frozenset({"topic", "topic-config", "partition"})


def _is(row: Difference, kind: str, cls: DifferenceClass, field: str) -> bool:
    return (row.kind, row.cls, row.field) == (kind, cls, field)


def _kraft_mode_broker(row: Difference, _deleting: bool) -> bool:
    return _is(row, "broker", DifferenceClass.ONLY_KRAFT, "mode") and row.kraft == "kraft"


def _pending_deletion(row: Difference, deleting: bool) -> bool:
    return deleting and row.kind in TOPIC_KINDS and row.cls is DifferenceClass.ONLY_ZK


def _metadata_version(row: Difference, _deleting: bool) -> bool:
    return row.kind == "feature" and row.cls is DifferenceClass.ONLY_KRAFT and row.key == "metadata.version"


def _producer_id_block(row: Difference, _deleting: bool) -> bool:
    if not _is(row, "producer-ids", DifferenceClass.DIFFERS, "next_producer_id"):
        return False
    numbers = [int(value) for value in (row.zookeeper, row.kraft) if value is not None and NUMBER.fullmatch(value)]
    return len(numbers) == 2 and numbers[0] - numbers[1] == PRODUCER_ID_BLOCK


EXCUSES: Final[dict[str, Callable[[Difference, bool], bool]]] = {
    "X-BROKER-01": _kraft_mode_broker,
    "X-TOPIC-01": _pending_deletion,
    "X-FEATURE-01": _metadata_version,
    "X-PRODUCER-01": _producer_id_block,
}


def rule_for(row: Difference, *, deleting: bool) -> str:
    """The id of the first rule that excuses the row, "" for none; `deleting`: its topic is in /admin/delete_topics."""
    return next((name for name, holds in EXCUSES.items() if holds(row, deleting)), "")
