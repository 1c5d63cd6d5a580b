"""One broker's replicas in a view, as the package reads those of all brokers in one pass."""

from __future__ import annotations

from migrate.model.columns import PartitionColumns
from migrate.model.loader import Assigned, all_assigned


def assigned_to(broker: int, partitions: PartitionColumns) -> Assigned:
    """Those of that broker; empty where it has none."""
    return all_assigned(partitions).get(broker, Assigned({}, {}))
