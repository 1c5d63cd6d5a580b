"""A comparison is not made again for the very same views, and is for any other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.views import ControllerZnode, NoZnode, PendingWork
from migrate.observe import analysis
from migrate.observe.still import Compared, Question
from tests.testing.clusters import kraft_view, zookeeper_view

TODAY = date(2026, 1, 5)
EQUAL = DiffReport(5, 0, {"partition": {"EQUAL": 8}}, ())


def question() -> Question:
    """Two views."""
    return Question(zookeeper_view(), kraft_view(), (), TODAY)


def moved(asked: Question) -> Question:
    """What dual write does twice a second."""
    controller = NoZnode() if isinstance(asked.zookeeper.controller, ControllerZnode) else asked.zookeeper.controller
    zookeeper = replace(asked.zookeeper, migration=NoZnode(), controller=controller, zxid_last=99)
    return replace(asked, zookeeper=zookeeper, kraft=replace(asked.kraft, offset=asked.kraft.offset + 7))


def test_the_report_holds_while_only_offsets_move() -> None:
    """The columns are the same ones."""
    compared, asked = Compared(), question()
    assert compared.answer(asked) is None
    compared.keep(asked, EQUAL)
    assert compared.answer(moved(asked)) is EQUAL


OTHER: dict[str, Any] = {
    "partitions in ZooKeeper": lambda q: replace(
        q, zookeeper=replace(q.zookeeper, partitions=replace(q.zookeeper.partitions))
    ),
    "entities in ZooKeeper": lambda q: replace(
        q, zookeeper=replace(q.zookeeper, entities=replace(q.zookeeper.entities))
    ),
    "partitions in KRaft": lambda q: replace(q, kraft=replace(q.kraft, partitions=replace(q.kraft.partitions))),
    "entities in KRaft": lambda q: replace(q, kraft=replace(q.kraft, entities=replace(q.kraft.entities))),
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
    """Columns that are equal and not the same too: nobody has looked."""
    compared, asked = Compared(), question()
    compared.keep(asked, EQUAL)
    assert compared.answer(OTHER[name](asked)) is None


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
