"""How fast ZooKeeper is read is the operator's to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate.model.inventory import Inventory
from migrate.model.stage import Stage
from tests.cli.commands import inventory_in, kraft_migrate, playbook_in
from tests.steps.looks import whole
from tests.testing.kept import KeptSources, sources_of


# -- the rate ------------------------------------------------------------------------------------------------------
@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The rates of the sources that commands open, on a world in which there is little to say."""
    seen: list[int | None] = []
    opened = sources_of(whole(Stage.COPY))

    def sources(inventory: Inventory, *rest: Any) -> KeptSources:
        seen.append(inventory.zookeeper_rate)
        found: KeptSources = opened(inventory, *rest)
        return found

    monkeypatch.setattr("migrate.observe.bundled.look_for_bundle", lambda observer: observer.observe(frozenset(), {}))
    monkeypatch.setattr("migrate.observe.sources.Sources", sources)
    monkeypatch.setattr("migrate.observe.analysis.with_diff", lambda _, world: world)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("assess", "PLAYBOOK"),
        ("plan", "PLAYBOOK"),
        ("diff", "PLAYBOOK"),
        ("status", "PLAYBOOK"),
        ("directories", "show", "PLAYBOOK"),
        ("bundle", "create", "BUNDLE", "PLAYBOOK"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_looks_has_the_inventorys_rate(
    words: tuple[str, ...], rates: list[int | None], tmp_path: Path
) -> None:
    """Without one there is no limit."""
    playbook = playbook_in(tmp_path)
    inventory = tmp_path / "inventory.yaml"
    named = {"PLAYBOOK": playbook}

    def run(number: int) -> None:
        answer = kraft_migrate(
            *(named.get(word, tmp_path / f"b{number}" if word == "BUNDLE" else word) for word in words)
        )
        assert answer.code != 64, answer.err

    run(1)
    inventory.write_text(inventory.read_text().replace("  zookeeper:", "  zookeeper_rate: 250\n  zookeeper:"))
    run(2)
    assert rates == [None, 250]


@pytest.mark.slow
def test_assess_tells_what_it_asked_of_zookeeper(rates: list[int | None], tmp_path: Path) -> None:
    """In words and in JSON; by a connect string alone too."""
    words = ("assess", "--zookeeper", "zk:2181", "--zookeeper-rate", 70)
    answer = kraft_migrate(*words)
    assert answer.out.splitlines()[-1] == "ZooKeeper was read by 0 operations, at most 70 operations a second"
    found = json.loads(kraft_migrate(*words, "-o", "json").out)
    assert found["zookeeper_reads"] == {"operations": 0, "most_a_second": 70}
    assert rates == [70, 70]
    unlimited = kraft_migrate("assess", "--inventory", inventory_in(tmp_path))
    assert unlimited.out.splitlines()[-1] == "ZooKeeper was read by 0 operations, as fast as it answers"


@pytest.mark.parametrize("rate", ["0", "-3", "fast", "1000001", "2.5"])
def test_a_rate_that_is_none_is_wrong_usage(rate: str) -> None:
    """Before anything is opened."""
    assert kraft_migrate("assess", "--zookeeper", "zk:2181", "--zookeeper-rate", rate).code == 64


def test_a_rate_beside_an_inventory_is_wrong_usage(tmp_path: Path) -> None:
    """The inventory has its own, in one place for every command."""
    ended = kraft_migrate("assess", "--inventory", inventory_in(tmp_path), "--zookeeper-rate", 70)
    assert ended.code == 64
    assert "write zookeeper_rate into the inventory" in ended.err
