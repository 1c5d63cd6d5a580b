"""A row says what was seen of its replica: every copy, and "" for what is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ledger import ReplicaFacts, ReplicaState, decide, row

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
        ({"in_metadata": "d2"}, ReplicaState.MISMATCH),
        ({"registered": None}, ReplicaState.MISMATCH),
        ({"listed": False}, ReplicaState.MISMATCH),
    ],
)
def test_each_fault_alone_has_its_state(changes: dict[str, object], state: ReplicaState) -> None:
    """Only where all agree it is VERIFIED."""
    assert decide(replace(WHOLE, **changes)) is state  # type: ignore[arg-type]
