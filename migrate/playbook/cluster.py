"""What every kind of playbook says of its cluster: brokers by id, what is expected, a probe's budget."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from migrate.model.inventory import Inventory
from migrate.model.policies import ErrorBudget
from migrate.playbook.problems import Fault, Location
from migrate.playbook.schema import Expect, Probes, budget_of


def id_faults(at: Location, ids: Iterable[str]) -> Iterator[Fault]:
    """Keys that are no broker ids."""
    for text in ids:
        if not text.isascii() or not text.isdigit() or (text[0] == "0" and text != "0") or int(text[:11]) >= 2**31:
            yield Fault((*at, text), f"{text!r} is no broker id")


def brokers_faults(at: Location, ids: Iterable[str], inventory: Inventory) -> Iterator[Fault]:
    """Ids of brokers that the inventory has not; what is no id is told by `id_faults`."""
    for text in ids:
        if text.isascii() and text.isdigit() and int(text[:11]) not in _brokers(inventory):
            yield Fault((*at, text), f"broker {text} is not in the inventory", _has(inventory))


def expected_faults(expect: Expect, inventory: Inventory) -> Iterator[Fault]:
    """The cluster that is expected, against the inventory's."""
    if expect.brokers is not None and set(expect.brokers) != _brokers(inventory):
        told = f"expected are the brokers {sorted(expect.brokers)}"
        yield Fault(("spec", "cluster", "expect", "brokers"), told, _has(inventory))
    if expect.cluster_id and inventory.expect_cluster_id and expect.cluster_id != inventory.expect_cluster_id:
        yield Fault(
            ("spec", "cluster", "expect", "cluster_id"),
            f"expected is cluster {expect.cluster_id}",
            f"{inventory.path} expects {inventory.expect_cluster_id}",
        )


def _brokers(inventory: Inventory) -> set[int]:
    return {int(node.id) for node in inventory.brokers}


def _has(inventory: Inventory) -> str:
    return f"{inventory.path} has {sorted(_brokers(inventory))}"


def error_budget(probes: Probes | None, near: Path) -> ErrorBudget | None:
    """The budget as a value; `near` is the playbook's folder."""
    if probes is None:
        return None
    file = probes.history or f"probe-{probes.topic}.jsonl"
    return ErrorBudget(os.path.normpath(near / file), *budget_of(probes.error_budget), probes.topic or "")
