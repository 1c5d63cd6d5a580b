"""What policy `drive` sends: proven rows only, each once, in requests of a bounded size."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.run.drive import MOST, chunks, to_send


def row(number: int, state: ReplicaState, *, broker: int = 1, directory: str = "D" * 22) -> LedgerRow:
    """A row of the ledger."""
    return LedgerRow("t", "T" * 22, number, broker, state, directory, "")


def test_only_rows_without_a_directory_in_the_metadata_are_sent() -> None:
    """Everything else is either done already, or not proven."""
    states = [state for state in ReplicaState if state is not ReplicaState.UNKNOWN]
    rows = tuple(row(number, state) for number, state in enumerate(states))
    sent = to_send(Ledger(rows, 7, "pure"), 1)
    numbers = [number for replicas in sent.values() for _, number in replicas]
    assert {states[number] for number in numbers} == {ReplicaState.MIGRATING, ReplicaState.UNASSIGNED}


def test_rows_of_other_brokers_and_rows_without_a_directory_are_never_sent() -> None:
    """A directory without id proves nothing."""
    rows = (
        row(0, ReplicaState.MIGRATING, broker=2),
        row(1, ReplicaState.MIGRATING, directory=""),
        row(2, ReplicaState.MIGRATING),
    )
    assert to_send(Ledger(rows, 7, "pure"), 1) == {"D" * 22: (("T" * 22, 2),)}


def test_a_replica_named_twice_is_sent_once() -> None:
    """Kafka does not collapse duplicates: each would be a record."""
    rows = (row(0, ReplicaState.MIGRATING), row(0, ReplicaState.MIGRATING))
    assert to_send(Ledger(rows, 7, "pure"), 1) == {"D" * 22: (("T" * 22, 0),)}


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), st.integers(1, 60), max_size=5), st.integers(1, 40))
def test_chunks_hold_every_replica_once_and_never_too_many(sizes: dict[str, int], most: int) -> None:
    """As few requests as there can be."""
    assignments = {name: tuple((name, number) for number in range(size)) for name, size in sizes.items()}
    requests = list(chunks(assignments, most))
    sent = [replica for request in requests for replicas in request.values() for replica in replicas]
    assert sorted(sent) == sorted(replica for replicas in assignments.values() for replica in replicas)
    assert all(sum(map(len, request.values())) <= most for request in requests)
    assert len(requests) == -(-len(sent) // most)


def test_the_bound_is_kafkas_own() -> None:
    """AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST."""
    assert MOST == 2250
