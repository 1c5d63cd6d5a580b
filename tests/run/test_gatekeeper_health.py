"""Before every restart the cluster must be well: looks in a row, or a wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NoProgress
from migrate.model.ids import NodeId
from migrate.model.inventory import HealthPolicy
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import PartitionHealth, Stopped
from migrate.model.world import World
from tests.run.gated import EVENING, gated
from tests.testing.worlds import live


def unhealthy(world: World, topic: str = "orders") -> World:
    """One partition lacks a replica, by every broker's answer."""
    sick = PartitionHealth(topic, 0, 0, (0, 1), (0, 1, 2))
    seen = {
        node: answer if isinstance(answer, Unknown) else replace(answer, unhealthy=(sick,))
        for node, answer in live(world).metadata.items()
    }
    return replace(world, live=replace(live(world), metadata=seen))


@pytest.mark.slow
def test_a_restart_needs_so_many_good_looks_in_a_row(tmp_path: Path) -> None:
    """Twelve looks, ten seconds apart, before each of three brokers; a bad sixth one begins the count anew."""

    def looks_of(folder: Path, bad: int) -> list[float]:
        folder.mkdir()
        run, found = gated(folder, health=HealthPolicy(12, 10.0)), []
        run.target = Stage.COPY

        def look() -> None:
            found.append(run.clock.now())
            run.cluster.bend = unhealthy if len(found) == bad else (lambda world: world)

        run.each_look = look
        run.session()
        return found

    calm = looks_of(tmp_path / "calm", 0)
    assert calm[-1] - EVENING >= 3 * 11 * 10.0
    sixth = next(at for at in range(len(calm)) if calm[at] >= EVENING + 5 * 10.0) + 1
    shaken = looks_of(tmp_path / "shaken", sixth)
    assert shaken[-1] - calm[-1] >= 5 * 10.0


@pytest.mark.slow
def test_a_cluster_that_does_not_get_well_ends_the_wait_by_no_progress(tmp_path: Path) -> None:
    """Nobody is restarted; it is said what is waited for."""
    run = gated(tmp_path, health=HealthPolicy(3, 5.0), no_progress_seconds=60.0)
    run.cluster.bend = unhealthy
    with pytest.raises(NoProgress):
        run.session()
    assert run.stopped() == []
    assert run.named("waiting")


@pytest.mark.slow
def test_a_broker_that_another_hand_stopped_is_named_before_the_next_one_restarts(tmp_path: Path) -> None:
    """Not as one that may answer by itself: its process, its host, and what to type."""

    def ended(world: World) -> World:
        if isinstance(world.services, Unknown):
            return world
        silent = {**live(world).metadata, NodeId(2): Unknown("Connection refused")}
        services = {**world.services, NodeId(2): Stopped()}
        return replace(world, live=replace(live(world), metadata=silent), services=services)

    run = gated(tmp_path, health=HealthPolicy(3, 5.0), no_progress_seconds=60.0)
    run.cluster.bend = ended
    with pytest.raises(NoProgress) as caught:
        run.session()
    assert "broker 2 (its process on b2) to run again" in caught.value.what
    assert "start broker 2" in caught.value.next_step
