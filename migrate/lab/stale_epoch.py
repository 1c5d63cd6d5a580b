"""One stale broker epoch in a demo: AssignReplicasToDirs must be retried with the current one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate.model.ids import NodeId
from migrate.model.ports import DirectoryAssigner


class StaleEpochOnce:
    """Sends the first AssignReplicasToDirs with an old broker epoch: the real controller answers STALE_BROKER_EPOCH."""

    def __init__(self, real: DirectoryAssigner) -> None:
        self._real = real
        self.planted = 0

    def assign(
        self, broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[tuple[str, int]]]
    ) -> Mapping[tuple[str, int], int]:
        """Assign as the real one does, but for the first epoch."""
        if not self.planted:
            self.planted += 1
            return self._real.assign(broker, broker_epoch - 1, assignments)
        return self._real.assign(broker, broker_epoch, assignments)
