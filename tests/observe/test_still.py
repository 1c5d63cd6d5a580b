"""A comparison is not made again for the very same views, and is for any other."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ControllerZnode, NoZnode, PendingWork
from migrate.model.world import World
from migrate.observe import analysis
from migrate.observe.ledgers import pure_ledger
from migrate.observe.still import Compared, LedgerKept, Question
from tests.testing.worlds import world_at

TODAY = date(2026, 1, 5)
EQUAL = DiffReport(5, 0, {"partition": {"EQUAL": 8}}, ())


def question() -> Question:
    """Two views."""
    world = world_at(Stage.HYBRID)
    assert not isinstance(world.zookeeper, Unknown)
    assert not isinstance(world.kraft, Unknown)
    return Question(world.zookeeper, world.kraft, (), TODAY)


def moved(asked: Question) -> Question:
    """What dual write does twice a second."""
    controller = NoZnode() if isinstance(asked.zookeeper.controller, ControllerZnode) else asked.zookeeper.controller
    zookeeper = replace(asked.zookeeper, migration=NoZnode(), controller=controller, zxid_last=99)
    return replace(asked, zookeeper=zookeeper, kraft=replace(asked.kraft, offset=asked.kraft.offset + 7))


def test_the_report_holds_while_only_offsets_move() -> None:
    """The columns are the same ones, or others that hold the same: a ZooKeeper before 3.9 is read anew at each look."""
    compared, asked = Compared(), question()
    assert compared.answer(asked) is None
    compared.keep(asked, EQUAL)
    assert compared.answer(moved(asked)) is EQUAL
    again = question()
    assert again.zookeeper.partitions is not asked.zookeeper.partitions
    assert compared.answer(moved(again)) is EQUAL


def with_another(columns: PartitionColumns, name: str) -> PartitionColumns:
    """One partition has another value there."""
    values = list(getattr(columns, name))
    last = values[-1]
    values[-1] = [*last, 7] if isinstance(last, list) else last + type(last)(7)
    return replace(columns, **{name: values})


ONE = EntityColumns(["topic-config"], ["t"], ["cleanup.policy"], ["compact"])
OTHER: dict[str, Any] = {
    "entities in ZooKeeper": lambda q: replace(q, zookeeper=replace(q.zookeeper, entities=ONE)),
    "entities in KRaft": lambda q: replace(q, kraft=replace(q.kraft, entities=ONE)),
    "brokers in ZooKeeper": lambda q: replace(q, zookeeper=replace(q.zookeeper, brokers={1: None})),
    "deletions": lambda q: replace(q, zookeeper=replace(q.zookeeper, pending=PendingWork(deletions=("t",)))),
    "blind spots": lambda q: replace(q, zookeeper=replace(q.zookeeper, blind_spots=("somewhere",))),
    "brokers in KRaft": lambda q: replace(q, kraft=replace(q.kraft, brokers={1: None})),
    "features": lambda q: replace(q, kraft=replace(q.kraft, features={"new": 1})),
    "the day": lambda q: replace(q, today=date(2026, 1, 6)),
    "acceptances": lambda q: replace(q, accepted=("one",)),
}


@pytest.mark.parametrize("name", OTHER)
def test_anything_else_is_compared_again(name: str) -> None:
    """A comparison looks at it."""
    compared, asked = Compared(), question()
    compared.keep(asked, EQUAL)
    assert compared.answer(OTHER[name](asked)) is None


@pytest.mark.parametrize("name", [one.name for one in fields(PartitionColumns) if one.name != "directories"])
@pytest.mark.parametrize("side", ["zookeeper", "kraft"])
def test_any_field_of_any_partition_is_compared_again(side: str, name: str) -> None:
    """In columns of their own."""
    compared, asked = Compared(), question()
    compared.keep(asked, EQUAL)
    view = getattr(asked, side)
    other = replace(asked, **{side: replace(view, partitions=with_another(view.partitions, name))})
    assert compared.answer(other) is None


def test_a_report_with_differences_is_not_kept() -> None:
    """It is to be looked at again; and what was kept before it is gone."""
    compared, asked = Compared(), question()
    row = Difference("partition", "t-0", "leader", DifferenceClass.DIFFERS, "1", "2")
    for report in (
        replace(EQUAL, differences=(row,)),
        replace(EQUAL, unsettled=(row,)),
        replace(EQUAL, counts={"partition": {"DIFFERS": 3}}),
    ):
        compared.keep(asked, EQUAL)
        compared.keep(asked, report)
        assert compared.answer(asked) is None


def test_a_gate_that_asks_again_gets_its_report_at_the_offset_of_now() -> None:
    """Without a session of Spark."""

    class Sources:
        compared = Compared()

        def spark(self) -> None:
            """None here."""

    sources: Any = Sources()
    asked = replace(question(), today=datetime.now(UTC).date())
    assert "without Spark" in str(analysis._on_spark(sources, asked.zookeeper, asked.kraft, (), 3))
    sources.compared.keep(asked, EQUAL)
    later = moved(asked)
    found = analysis._on_spark(sources, later.zookeeper, later.kraft, (), 3)
    assert found == replace(EQUAL, offset=later.kraft.offset, lag=3)


# -- the ledger ------------------------------------------------------------------------------------------------------
class AskedOnce:
    """Sources whose Spark answers as the pure rule, and counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ledgered = LedgerKept()
        self.asked = 0
        monkeypatch.setattr(analysis, "_asked", self.by_spark)

    def by_spark(self, _sources: object, question: Any) -> Ledger:
        """What Spark says."""
        self.asked += 1
        world = replace(
            world_at(Stage.HYBRID), zookeeper=question.zookeeper, kraft=question.kraft, disks=question.disks
        )
        found = pure_ledger(world)
        assert not isinstance(found, Unknown)
        return replace(found, engine="spark")

    def says(self, world: World) -> Ledger:
        """The gate's ledger."""
        found = analysis.spark_ledger(self, world)  # type: ignore[arg-type]  # as much of Sources as it asks
        assert not isinstance(found, Unknown)
        return found


def test_spark_is_asked_for_a_ledger_once_while_nothing_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the ledger stands at the offset of the metadata that was read last."""
    sources = AskedOnce(monkeypatch)
    first, second = world_at(Stage.HYBRID), world_at(Stage.HYBRID)
    assert not isinstance(first.kraft, Unknown)
    later = less_free(replace(second, kraft=replace(first.kraft, offset=first.kraft.offset + 7)))
    before, after = sources.says(first), sources.says(later)
    assert sources.asked == 1
    assert after == replace(before, offset=first.kraft.offset + 7)
    assert after.engine == "spark"


def less_free(world: World) -> World:
    """Brokers write all the time, their metadata logs too."""
    assert not isinstance(world.disks, Unknown)
    seen = world.disks[NodeId(0)]
    assert not isinstance(seen, Unknown)
    fuller = tuple(
        replace(one, free_bytes=one.free_bytes + 1, metadata_log_bytes=one.metadata_log_bytes + 2)
        for one in seen.directories
    )
    return replace(world, disks={**world.disks, NodeId(0): replace(seen, directories=fuller)})


def changed_disk(world: World) -> World:
    """A broker's first directory is not healthy any more."""
    assert not isinstance(world.disks, Unknown)
    seen = world.disks[NodeId(0)]
    assert not isinstance(seen, Unknown)
    first, *others = seen.directories
    other = replace(seen, directories=(replace(first, problem="cannot be read"), *others))
    return replace(world, disks={**world.disks, NodeId(0): other})


def changed_directory(world: World) -> World:
    """The metadata names another directory for one replica."""
    assert not isinstance(world.kraft, Unknown)
    columns = world.kraft.partitions
    directories = [["AAAAAAAAAAAAAAAAAAAAAQ", *columns.directories[0][1:]], *columns.directories[1:]]
    return replace(world, kraft=replace(world.kraft, partitions=replace(columns, directories=directories)))


def without_a_registration(world: World) -> World:
    """A broker registered no longer."""
    assert not isinstance(world.kraft, Unknown)
    brokers = {broker: found for broker, found in world.kraft.brokers.items() if broker != 0}
    return replace(world, kraft=replace(world.kraft, brokers=brokers))


@pytest.mark.parametrize("change", [changed_disk, changed_directory, without_a_registration])
def test_a_ledger_of_anything_else_is_asked_for_again(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its rows are other ones or not."""
    sources = AskedOnce(monkeypatch)
    world = world_at(Stage.HYBRID)
    sources.says(world)
    sources.says(change(world))
    assert sources.asked == 2


def test_a_ledger_that_is_not_the_pure_rules_is_unknown_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row less."""
    sources = AskedOnce(monkeypatch)
    right = sources.by_spark
    monkeypatch.setattr(analysis, "_asked", lambda *words: replace(right(*words), rows=right(*words).rows[1:]))
    found = analysis.spark_ledger(sources, world_at(Stage.HYBRID))  # type: ignore[arg-type]  # as above
    assert isinstance(found, Unknown)
    assert "defect" in found.reason
    monkeypatch.setattr(analysis, "_asked", right)
    assert sources.says(world_at(Stage.HYBRID)).engine == "spark"
