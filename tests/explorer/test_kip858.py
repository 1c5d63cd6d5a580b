"""KIP-858's invariants and what eventually holds, with more than the author's own model has."""

from __future__ import annotations

import pytest

from tests.testing.explorer.kip858 import KRAFT, MIGRATION, Flaw, Size, prove, start, unfinished

SMALL = Size(restarts=2, failures=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "size",
    [
        SMALL,
        Size(brokers=1, directories=3, partitions=3, restarts=2, failures=2),
        Size(brokers=1, directories=2, partitions=5, restarts=3, failures=1),
        pytest.param(Size(restarts=2, failures=2), marks=pytest.mark.explorer),
    ],
    ids=lambda size: f"{size.brokers}x{size.directories}x{size.partitions}-{size.restarts}-{size.failures}",
)
def test_the_protocol_holds_in_every_state_and_at_every_end(size: Size) -> None:
    """TypeOK, UpdatesOnlyOfflinePartitions, BrokerHoldsPartitionsInASingleLogDir; in every end all four promises."""
    found = prove(size)
    assert not found.breach, "\n".join(found.trace)
    assert found.states > 5_000
    assert found.ends > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaw", "breach"),
    [
        (Flaw.WRONG_DIRECTORY, "UpdatesOnlyOfflinePartitions"),
        (Flaw.RECREATES, "BrokerHoldsPartitionsInASingleLogDir"),
        (Flaw.FORGETS, "the controller never knows the true directory"),
        (Flaw.SILENT, "the controller never knows a dead directory"),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Flaw) else "",
)
def test_each_planted_flaw_is_found(flaw: Flaw, breach: str) -> None:
    """With the way to it."""
    found = prove(SMALL, frozenset({flaw}))
    assert found.breach.startswith(breach)
    assert found.trace[-1] == found.breach
    assert len(found.trace) > 1


def test_every_flaw_is_tried() -> None:
    """The list above is whole."""
    assert len(Flaw) == 4


def test_the_model_begins_as_a_hybrid_does() -> None:
    """Every broker in migration mode, every directory unknown, every replica in its ISR."""
    brokers, _, _ = start(SMALL)
    assert {broker[0] for broker in brokers} == {MIGRATION} != {KRAFT}
    assert {replica[1:] for broker in brokers for replica in broker[-1]} == {(0, 1)}
    assert unfinished(start(SMALL)) == ""
