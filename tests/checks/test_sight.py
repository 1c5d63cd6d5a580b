"""Within one look the same question about the same objects is asked once; outside of it, each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from migrate import checks
from migrate.checks import replicas
from migrate.checks.registry import run_all
from migrate.checks.sight import remembered, remembering
from migrate.model import loader
from migrate.model.columns import PartitionColumns
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks
from tests.testing import worlds


def test_the_same_object_is_asked_about_once_in_a_block() -> None:
    """And gets the same answer; an equal one that is another object is asked about again."""
    calls: list[list[int]] = []

    @remembered
    def about(thing: list[int]) -> list[int]:
        calls.append(thing)
        return [*thing, 0]

    one, other = [1], [1]
    with remembering():
        assert about(one) is about(one)
        assert about(other) == [1, 0]
        assert about(other) is not about(one)
    assert calls == [one, other]


def test_nothing_outlives_the_block_and_a_block_within_shares_its_answers() -> None:
    """Outside of every block each call asks anew."""
    calls: list[str] = []

    @remembered
    def about(thing: str) -> str:
        calls.append(thing)
        return thing

    for _ in range(2):
        about("a")
        with remembering():
            about("a")
            with remembering():
                about("a")
            about("a")
    assert len(calls) == 2 * 2


def test_objects_of_a_block_keep_their_identity() -> None:
    """An argument that nobody else holds is held: another object never takes its place."""

    @remembered
    def about(thing: list[int]) -> int:
        return thing[0]

    with remembering():
        assert [about([number]) for number in range(1000)] == list(range(1000))


@pytest.mark.parametrize("stage", Stage)
def test_findings_are_the_same_with_and_without_memory(stage: Stage) -> None:
    """`run_all` outside of a block asks everything anew."""
    world = worlds.world_at(stage)
    found = checks.run(world, target=stage)
    assert sorted(found, key=str) == sorted(run_all(world), key=str)


def test_a_look_foretells_each_broker_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five checks want to know what a start would set aside."""
    asked: list[object] = []

    def counting(
        disks: Mapping[int, BrokerDisks], partitions: PartitionColumns
    ) -> Iterator[tuple[int, loader.Foretold]]:
        asked.append(disks)
        return loader.foretell_all(disks, partitions)

    monkeypatch.setattr(replicas, "foretell_all", counting)
    checks.run(worlds.world_at(Stage.COPY), target=Stage.KRAFT_MODE)
    assert len(asked) == 1
