"""A copy that does not begin: the run says why, gives up for want of progress, and can be left at any moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NoProgress, RunInterrupted, UsageWrong
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MigrationZnode
from migrate.model.world import World
from migrate.plan.parking import last_before
from tests.run.gated import Gated, refused
from tests.testing import worlds
from tests.testing.worlds import kraft, zk

DEAD = 9
PATIENCE = 60.0
ROLLED = "migration-mode/2"


def held(tmp_path: Path) -> Gated:
    """A cluster whose copy waits for a broker id that is in an assignment and nowhere else; NoOps move the offset."""
    run = Gated(tmp_path, replace(worlds.playbook(), no_progress_seconds=PATIENCE), target=Stage.HYBRID)
    looks = iter(range(1, 1_000_000))

    def bend(world: World) -> World:
        if not run.cluster.copied:
            return world
        table, number = zk(world).partitions, next(looks)
        replicas = [[*table.replicas[0], DEAD], *table.replicas[1:]]
        waiting = worlds.with_zk(
            world,
            migration=MigrationZnode(-1, -1, 3000, number, number),
            partitions=replace(table, replicas=replicas),
        )
        view = kraft(world)
        return worlds.with_kraft(
            waiting,
            migration_state=ZkMigrationState.PRE_MIGRATION,
            offset=view.offset + 1000 * number,
            high_watermark=view.offset + 1000 * number + 1,
        )

    run.cluster.bend = bend
    return run


def copy_waits(run: Gated) -> bool:
    """Is the copy being watched?"""
    return any(event.data["step"] == "copy/copy" for event in run.named("waiting"))


def when_watching(run: Gated, act: object) -> None:
    """Do that once the copy is being watched for some time."""
    done: list[bool] = []

    def look() -> None:
        if not done and copy_waits(run) and run.clock.now() > run.named("waiting")[-1].time + PATIENCE / 4:
            done.append(True)
            assert callable(act)
            act()

    run.clock.slept = look


@pytest.mark.slow
def test_a_copy_without_new_content_gives_up_although_the_offset_moves(tmp_path: Path) -> None:
    """Within the playbook's patience, with the broker id that it waits for, and what to do about it."""
    run = held(tmp_path)
    with pytest.raises(NoProgress) as caught:
        run.session()
    assert f"brokers [{DEAD}], found in assignments, to register with KRaft" in caught.value.what
    assert "S-STUCK" in caught.value.what
    assert "the controllers make the copy by themselves" in caught.value.next_step
    begun = next(event.time for event in run.named("waiting") if event.data["step"] == "copy/copy")
    assert run.clock.now() - begun < PATIENCE + 30
    assert run.named("stop")[-1].data["code"] == NoProgress.id


@pytest.mark.slow
def test_a_copy_that_brings_content_is_waited_for_as_long_as_it_takes(tmp_path: Path) -> None:
    """Records of its open transaction count, although the image does not move."""
    run = held(tmp_path)
    bend, records = run.cluster.bend, iter(range(1, 1_000_000))

    def copying(world: World) -> World:
        found = bend(world)
        if not run.cluster.copied:
            return found
        if (read := next(records)) > 5 * PATIENCE:
            return world
        return worlds.with_kraft(found, waiting=read)

    run.cluster.bend = copying
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_the_watch_of_a_copy_can_be_left_and_says_that_the_copy_goes_on(tmp_path: Path) -> None:
    """At once, with nothing changed; the same command watches it again, to its end."""
    run = held(tmp_path)
    when_watching(run, lambda: setattr(run.request, "by", "Ctrl-C"))
    error = refused(run, RunInterrupted)
    assert error.what.startswith("parked in copy/copy: ")
    assert "the controllers make the copy by themselves, whether it is watched or not" in error.what
    assert run.stopped() == ["0", "1", "2"]
    run.request.by, run.cluster.bend, run.clock.slept = "", lambda world: world, lambda: None
    assert run.session()[-1].name == "end"
    assert run.stopped() == ["0", "1", "2"]


def test_a_run_cannot_be_asked_to_stop_between_the_first_roll_and_the_copy(tmp_path: Path) -> None:
    """The copy comes by itself after the last broker: what can be asked for is named."""
    steps = held(tmp_path).planned().steps
    for until in ("migration-mode", "migration-mode/2"):
        with pytest.raises(UsageWrong, match=f"may not stop after {until}") as caught:
            last_before(steps, until)
        assert caught.value.next_step == "--until copy/copy"
