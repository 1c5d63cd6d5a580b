"""The comparison in plain Python: slow, plain, and the measure of the one on Spark."""

from __future__ import annotations

from collections import Counter

from migrate.model.columns import PartitionColumns
from migrate.model.difference import DifferenceClass
from migrate.model.views import KraftView, ZookeeperView

Found = tuple[str, str, str, str]  # kind, key, field, class
ORDERED = ("topic_id", "replicas", "leader", "leader_epoch", "recovery_state")
SETS = ("isr", "adding", "removing")


def partitions_of(columns: PartitionColumns) -> dict[str, dict[str, object]]:
    """Key -> field -> value, sets as sets."""
    found: dict[str, dict[str, object]] = {}
    for index in range(len(columns)):
        values: dict[str, object] = {name: getattr(columns, name)[index] for name in ORDERED}
        values |= {name: frozenset(getattr(columns, name)[index]) for name in SETS}
        found[f"{columns.topic[index]}-{columns.partition[index]}"] = values
    return found


def brokers_of(view: ZookeeperView | KraftView) -> dict[tuple[str, str, str], str]:
    """Rows of kind `broker`."""
    rows: dict[tuple[str, str, str], str] = {}
    for broker, found in view.brokers.items():
        key = str(int(broker))
        if not getattr(found, "migrating", True):
            rows["broker", key, "mode"] = "kraft"
            continue
        rows["broker", key, "mode"] = "zookeeper"
        rows["broker", key, "endpoints"] = ",".join(sorted(found.endpoints))
        if found.rack is not None:
            rows["broker", key, "rack"] = found.rack
    return rows


def entities_of(view: ZookeeperView | KraftView) -> dict[tuple[str, str, str], str]:
    """(kind, key, name) -> value."""
    rows = view.entities
    found = {
        (kind, key, name): value
        for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True)
        if kind != "broker"
    }
    if isinstance(view, KraftView):
        found |= {("feature", name, "level"): str(level) for name, level in view.features.items() if level > 0}
    return found | brokers_of(view)


def side(left: object, right: object) -> str:
    """The class of what stands on one side alone, or differs."""
    if right is None:
        return DifferenceClass.ONLY_ZK.value
    return DifferenceClass.ONLY_KRAFT.value if left is None else DifferenceClass.DIFFERS.value


def reference(zookeeper: ZookeeperView, kraft: KraftView) -> tuple[set[Found], Counter[str]]:
    """All rows that are not equal, before any is excused, and the number of equal fields by kind."""
    rows: set[Found] = set()
    equal: Counter[str] = Counter()
    left, right = partitions_of(zookeeper.partitions), partitions_of(kraft.partitions)
    for key in left.keys() | right.keys():
        ours, theirs = left.get(key), right.get(key)
        if ours is None or theirs is None:
            rows.add(("partition", key, "", side(ours, theirs)))
            continue
        for name in (*ORDERED, *SETS):
            if ours[name] == theirs[name]:
                equal["partition"] += 1
            else:
                rows.add(("partition", key, name, DifferenceClass.DIFFERS.value))
    one, other = entities_of(zookeeper), entities_of(kraft)
    for kind, key, name in one.keys() | other.keys():
        value, answer = one.get((kind, key, name)), other.get((kind, key, name))
        if value == answer:
            equal[kind] += 1
        else:
            rows.add((kind, key, name, side(value, answer)))
    return rows, equal
