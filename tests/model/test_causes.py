"""Every row that the comparison can make has a likely cause, and a way out."""

from __future__ import annotations

from itertools import product

import pytest

from migrate.model.causes import CAUSES, cause_of
from migrate.model.difference import Difference, DifferenceClass

KINDS = {
    "partition": ("", "topic_id", "replicas", "isr", "adding", "removing", "leader", "leader_epoch", "recovery_state"),
    "broker": ("mode", "endpoints", "rack"),
    "topic": ("topic_id",),
    "topic-config": ("retention.ms",),
    "broker-config": ("log.cleaner.backoff.ms",),
    "client-quota": ("producer_byte_rate",),
    "scram": ("SCRAM-SHA-512.salt",),
    "acl": ("present",),
    "delegation-token": ("owner",),
    "producer-ids": ("next_producer_id",),
    "feature": ("level",),
}
SIDES = (("1", "2"), ("1", None), (None, "2"))
ROWS = [
    Difference(kind, "k", field, DifferenceClass.DIFFERS, *values)
    for kind, fields in KINDS.items()
    for field, values in product(fields, SIDES)
    if field or None in values  # a whole partition differs by standing on one side
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.field}-{row.side}")
def test_every_row_has_a_cause_and_a_way_out(row: Difference) -> None:
    """In words that stand in one line."""
    cause = cause_of(row)
    assert cause.cause
    assert cause.what_to_do
    assert "\n" not in cause.cause + cause.what_to_do


def test_no_line_of_the_table_is_out_of_reach() -> None:
    """A line that an earlier one covers would never be said."""
    assert {cause_of(row) for row in ROWS} == set(CAUSES)


def test_a_kind_that_nobody_knows_is_an_error() -> None:
    """The table grows with the comparison."""
    with pytest.raises(LookupError, match="stranger"):
        cause_of(Difference("stranger", "k", "f", DifferenceClass.DIFFERS, "1", "2"))
