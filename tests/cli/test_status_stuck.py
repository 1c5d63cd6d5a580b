"""`status` says why a migration stands still, in words and as JSON, with what more can be seen where it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate.cli.status import clues_for, describe
from migrate.model.findings import Clues
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.observe.world import ClusterObserver
from migrate.report.status import as_text
from tests.checks.stuck.test_reports import rows_of, unreported
from tests.checks.stuck.worlds_that_wait import REFUSED, due, unregistered
from tests.cli.commands import inventory_in, kraft_migrate
from tests.testing import worlds
from tests.testing.kept import KeptSources, sources_of
from tests.testing.worlds import with_values

WRONG = "3000@127.0.0.1:1,3001@c3001:9090,3002@c3002:9090"


def waiting() -> Any:
    """Broker 1 calls the leader at a wrong port."""
    return with_values(unregistered(1), 1, controller__quorum__voters=WRONG)


def test_a_wait_is_part_of_the_answer_and_of_its_text() -> None:
    """The same in both; a cluster in order has an empty list and no line."""
    clues = Clues({"127.0.0.1:1": REFUSED}, {NodeId(1): ("Connection to node 3000 could not be established",)})
    found = describe(waiting(), clues)
    (row,) = found["waiting"]
    assert (row["code"], row["nodes"], row["unknown"]) == ("S-STUCK-33", [1], None)
    assert row["evidence"] == [
        f"nobody answers at 127.0.0.1:1: {REFUSED.reason}",
        "log of node 1: Connection to node 3000 could not be established",
    ]
    text = as_text(found)
    assert "waits    S-STUCK-33 for broker 1 to register\n" in text
    assert "because its file gives the active controller 3000 as 127.0.0.1:1, and it listens on c3000:9090" in text
    assert text.index("waits    ") < text.rindex("next     kraft-migrate")
    quiet = describe(worlds.world_at(Stage.COPY))
    assert quiet["waiting"] == []
    assert "waits" not in as_text(quiet)


def test_clues_are_looked_for_only_where_something_waits() -> None:
    """The address in that file is really asked, and nobody listens at port 1."""
    sources = KeptSources(waiting())
    observer = ClusterObserver(sources)
    try:
        found = clues_for(observer, waiting())
        assert list(found.addresses) == ["127.0.0.1:1"]
        assert set(found.logs) == {1, 3000}
        assert clues_for(observer, worlds.world_at(Stage.COPY)) == Clues()
    finally:
        observer.close()


def test_the_command_ends_with_0_and_shows_what_was_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Waiting is no error of the command; `seen` names the refused connection."""
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(waiting()))
    path = inventory_in(tmp_path)
    words = ("status", "--inventory", path)
    answer = kraft_migrate(*words, "--output", "json")
    assert answer.code == 0
    (row,) = json.loads(answer.out)["waiting"]
    assert "nobody answers at 127.0.0.1:1" in row["evidence"][0]
    assert "S-STUCK-33 for broker 1 to register" in kraft_migrate(*words).out


def test_a_broker_that_reports_nothing_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look finds the same: a stall, with a queue that is unknown where no JMX is offered."""
    monkeypatch.setattr("migrate.cli.status.AGAIN_SECONDS", 0.0)
    world = unreported()
    observer = ClusterObserver(KeptSources(world))
    try:
        found = clues_for(observer, world)
    finally:
        observer.close()
    report = found.reports[NodeId(1)]
    assert report.later == rows_of(world)
    assert report.queued == Unknown("the inventory gives no jmx address for it")
    (row,) = [row for row in describe(world, found)["waiting"] if row["code"] == "S-STUCK-70"]
    assert row["nodes"] == [1]
    assert "QueuedReplicaToDirAssignments of broker 1 is unknown" in row["evidence"][0]


def test_a_copy_that_is_due_says_that_it_comes_by_itself() -> None:
    """No fault is named, and no command is asked for."""
    text = " ".join(as_text(describe(due())).split())
    assert "waits S-STUCK-69 for the copy to begin because every controller and every broker has registered" in text
    assert "without action: the driver looks again within a minute, and continues" in text
