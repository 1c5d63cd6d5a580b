"""AssignReplicasToDirs as bytes: which requests say where replicas lie.

`requests_by_reference` says what is right, from the tables that everything else is encoded with.  A broker with very
many replicas, or one of a cluster for which the kernel was loaded (`prepare`), is planned in columns
(`migrate.kafka.assignment_columns`): the same bytes, and the same refusals, for a kernel refuses nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from migrate.kafka.assignment_requests import MAX_ASSIGNMENTS, AssignRequest, Replica, requests_by_reference
from migrate.kernels.choice import ready
from migrate.model.ids import NodeId

KERNEL: Final = "assignments"
LARGE: Final = 200_000  # replicas: from here on loading the kernel (0.6 s) costs less than it saves
WARM: Final = 500  # once it is loaded


def prepare(replicas: int) -> bool:
    """Load the kernel if so many replicas, of all brokers, are to be sent by this process; is it used?"""
    return ready(KERNEL, replicas, LARGE)


def requests_of(
    broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[Replica]], most: int = MAX_ASSIGNMENTS
) -> list[AssignRequest]:
    """The requests for directory id -> [(topic id, partition)]: sorted, each replica once, at most `most` a request.

    Raises:
        ValueError: a replica in two directories, or a directory id that Kafka reserves.
        EncodeError: an id that is none.
    """
    if ready(KERNEL, sum(map(len, assignments.values())), LARGE, WARM):
        from migrate.kafka.assignment_columns import columns_of, requests_by_kernel  # noqa: PLC0415 - numpy, numba

        columns = columns_of({broker: assignments})
        found = None if columns is None else requests_by_kernel(columns, {broker: broker_epoch}, most)
        if found is not None:
            return found
    return requests_by_reference(broker, broker_epoch, assignments, most)
