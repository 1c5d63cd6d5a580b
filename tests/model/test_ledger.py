"""A row says what was seen of its replica: every copy, and "" for what is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED
from migrate.model.ledger import Ledger, ReplicaFacts, ReplicaState, decide, row

WHOLE = ReplicaFacts("orders", "T", 3, 1, ("d1",), future=False, registered=frozenset({"d1"}), in_metadata="d1")


def test_a_replica_that_is_nowhere_in_the_metadata_has_no_directory_there() -> None:
    """As text, for the file that people read."""
    found = row(replace(WHOLE, in_metadata=None, on_disk=("d1", "d2"), unknown="why"))
    assert (found.in_metadata, found.on_disk, found.why) == ("", "d1,d2", "why")
    assert (found.topic, found.partition, found.broker, found.state) == ("orders", 3, 1, ReplicaState.UNKNOWN)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, ReplicaState.VERIFIED),
        ({"unknown": "hidden"}, ReplicaState.UNKNOWN),
        ({"on_disk": ("d1", "d2")}, ReplicaState.TWO_COPIES),
        ({"on_disk": ()}, ReplicaState.NOT_ON_DISK),
        ({"registered": frozenset({"d2"})}, ReplicaState.NOT_REGISTERED),
        ({"future": True}, ReplicaState.MOVING),
        ({"in_metadata": None}, ReplicaState.MIGRATING),
        ({"in_metadata": str(MIGRATING)}, ReplicaState.MIGRATING),
        ({"in_metadata": str(UNASSIGNED)}, ReplicaState.UNASSIGNED),
        ({"in_metadata": str(LOST)}, ReplicaState.LOST),
        ({"in_metadata": "d2"}, ReplicaState.MISMATCH),
        ({"registered": None}, ReplicaState.MISMATCH),
        ({"listed": False}, ReplicaState.MISMATCH),
    ],
)
def test_each_fault_alone_has_its_state(changes: dict[str, object], state: ReplicaState) -> None:
    """Only where all agree it is VERIFIED."""
    assert decide(replace(WHOLE, **changes)) is state  # type: ignore[arg-type]


def test_a_row_names_the_directory_that_the_metadata_names() -> None:
    """A replica that both lists name, as nobody said otherwise."""
    whole = ReplicaFacts("orders", "T", 3, 1, ("d1",), future=False, registered=frozenset({"d1"}), in_metadata="d1")
    found = row(whole)
    assert (found.in_metadata, found.on_disk, found.why, found.state) == ("d1", "d1", "", ReplicaState.VERIFIED)


def test_a_ledger_counts_its_rows_by_state_and_tells_those_of_one_broker() -> None:
    """States in their order, and none that no row has."""
    bad = replace(WHOLE, in_metadata="d2")
    rows = tuple(map(row, (WHOLE, bad, replace(bad, broker=2), replace(bad, on_disk=()))))
    ledger = Ledger(rows, 7, "pure")
    assert [*ledger.counts().items()] == [("NOT ON DISK", 1), ("MISMATCH", 2), ("VERIFIED", 1)]
    assert ledger.of(2) == (rows[2],)
    assert ledger.of(1) == (rows[0], rows[1], rows[3])
    assert ledger.of(3) == ()
