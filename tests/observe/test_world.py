"""An observation holds what was asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Barrier

import pytest

from migrate.model.facts import pure_ledger
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import Growing, MetadataLogs
from migrate.model.stage import Stage
from migrate.model.views import NoFile, Stopped
from migrate.model.world import NOT_ASKED, Need, World
from migrate.observe.world import ClusterObserver
from tests.testing.kept import KeptSources
from tests.testing.worlds import OFFSET, world_at


@contextmanager
def looking(world: World) -> Iterator[tuple[ClusterObserver, KeptSources]]:
    """An observer on these sources."""
    sources = KeptSources(world)
    observer = ClusterObserver(sources)
    try:
        yield observer, sources
    finally:
        observer.close()
    assert sources.closed


PARTS = {
    Need.ZOOKEEPER: {"zookeeper"},
    Need.KRAFT: {"kraft"},
    Need.LIVE: {"live"},
    Need.CONFIGS: {"configs"},
    Need.SERVICES: {"services"},
    Need.DISKS: {"disks", "configs"},  # log.dirs stand in the files
    Need.LEDGER: {"zookeeper", "kraft", "disks", "configs"},
    Need.SPARK_LEDGER: {"zookeeper", "kraft", "disks", "configs"},
}


@pytest.mark.slow
@pytest.mark.parametrize("need", PARTS, ids=str)
def test_only_what_was_asked_for_is_looked_at_once(need: Need) -> None:
    """And what that needs itself; everything else is `not asked for`."""
    world = world_at(Stage.COPY)
    with looking(world) as (observer, sources):
        found = observer.observe(frozenset({need}), {"soak_elapsed": "1"})
    assert sorted(sources.asked) == sorted(PARTS[need])
    for part in ("zookeeper", "kraft", "live", "configs", "disks", "services"):
        wanted = getattr(world, part) if part in PARTS[need] else NOT_ASKED
        assert getattr(found, part) == wanted, part
    assert (found.ledger == NOT_ASKED) is (need not in (Need.LEDGER, Need.SPARK_LEDGER))
    assert (found.inventory, found.playbook, found.facts) == (world.inventory, world.playbook, {"soak_elapsed": "1"})


def test_views_are_read_side_by_side() -> None:
    """All four wait for each other: read one after the other, they would wait for ever."""
    together = Barrier(4, timeout=20)
    with looking(world_at(Stage.COPY)) as (observer, sources):
        sources.wait = together.wait
        observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.DISKS}), {})
    assert not together.broken


def test_a_log_that_grows_is_read_only_to_rehearse_its_reading() -> None:
    """Each look of a wait would read it; and what it says of its end counts for nothing."""
    needs = frozenset({Need.METADATA_LOGS})
    with looking(world_at(Stage.COPY)) as (observer, sources):
        found = observer.observe(needs, {}).metadata_logs
        assert isinstance(found, Growing)
        assert not found.rehearsed
        assert "metadata-logs" not in sources.asked
        found = observer.observe(needs | {Need.REHEARSAL}, {}).metadata_logs
        assert isinstance(found, Growing)
        assert found.rehearsed
        assert sources.asked.count("metadata-logs") == 1
        sources.world = replace(sources.world, metadata_logs=Unknown("tar: refused"))
        assert observer.observe(needs | {Need.REHEARSAL}, {}).metadata_logs == Unknown("tar: refused")


def test_where_a_part_is_unknown_nothing_is_looked_at_with_it() -> None:
    """And the reason is that part's, through every view that is made of it."""
    world = replace(world_at(Stage.COPY), zookeeper=Unknown("no session"), metadata_logs=MetadataLogs((3000,), 7))
    stopped = dict.fromkeys((node.id for node in world.inventory.controllers), Stopped())
    with looking(replace(world, services=stopped)) as (observer, sources):
        found = observer.observe(frozenset({Need.STATES_BEHIND}), {})
    assert (found.metadata_logs, found.states_behind) == (world.metadata_logs, Unknown("no session"))
    assert Need.STATES_BEHIND not in sources.asked


@pytest.mark.parametrize("slow", [Need.DIFF, Need.SPARK_LEDGER])
def test_who_answers_is_asked_after_what_takes_seconds(slow: Need) -> None:
    """Full ISRs from before a long comparison would be old news."""
    with looking(world_at(Stage.COPY)) as (observer, sources):
        found = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, slow}), {})
    assert sources.asked[-1] == "live"
    assert sources.asked.count("live") == 1
    assert found.live == world_at(Stage.COPY).live


def test_a_quorum_that_was_never_made_is_not_called() -> None:
    """No controller has a file: nothing can run there, and no connection is tried."""
    with looking(world_at(Stage.ASSESS)) as (observer, sources):
        found = observer.observe(frozenset({Need.KRAFT, Need.CONFIGS}), {})
        assert "kraft" not in sources.asked
    assert found.kraft == Unknown("no controller has a configuration file yet")


def test_one_controllers_file_is_enough_to_ask() -> None:
    """Half prepared, half started: only a look can tell."""
    world = world_at(Stage.COPY)
    assert not isinstance(world.configs, Unknown)
    gone = {node: NoFile("/x") if node in (3000, 3001) else file for node, file in world.configs.items()}
    with looking(replace(world, configs=gone)) as (observer, sources):
        found = observer.observe(frozenset({Need.KRAFT, Need.CONFIGS}), {})
    assert "kraft" in sources.asked
    assert found.kraft == world.kraft


def test_the_ledger_comes_with_the_views_that_it_was_made_of() -> None:
    """At one offset, by the pure rule."""
    with looking(world_at(Stage.KRAFT_MODE)) as (observer, _):
        found = observer.observe(frozenset({Need.LEDGER}), {})
    assert isinstance(found.ledger, Ledger)
    assert (found.ledger.offset, found.ledger.engine) == (OFFSET, "pure")
    assert found.ledger.counts() == {"VERIFIED": 18}
    assert found.ledger == pure_ledger(found)


def test_without_spark_its_ledger_is_unknown_and_never_the_pure_one() -> None:
    """The gates that ask Spark refuse without it."""
    with looking(world_at(Stage.COPY)) as (observer, _):
        found = observer.observe(frozenset({Need.SPARK_LEDGER, Need.LEDGER}), {})
    assert found.ledger == Unknown("this command works without Spark, and this gate asks Spark")
