"""`status` on broken disks: each with its effect and its mend, and the partitions that a replaced disk leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.cli.status import describe
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.report.status import SHOWN, as_text
from tests.steps.looks import whole, without
from tests.testing import worlds
from tests.testing.sick_disks import MODES, PATH, gone


def without_leader(world: World, count: int) -> World:
    """The first partitions have no leader; the first of their replicas is in the ISR and online."""
    rows = worlds.kraft(world).partitions
    leader, isr = list(rows.leader), list(rows.isr)
    for index in range(count):
        leader[index], isr[index] = -1, [rows.replicas[index][0]]
    return worlds.with_kraft(world, partitions=replace(rows, leader=leader, isr=isr))


def test_healthy_disks_have_no_line() -> None:
    """Neither have partitions with leaders."""
    found = describe(whole(Stage.SOAK))
    assert (found["disks"], found["leaderless"]) == ([], [])
    assert not [line for line in as_text(found).splitlines() if line.startswith("disk")]


def test_disks_that_were_not_seen_are_told_with_the_reason() -> None:
    """Silence would read as healthy."""
    world = whole(Stage.SOAK)
    assert not isinstance(world.disks, Unknown)
    blind = replace(world, disks={**world.disks, NodeId(1): Unknown("the host does not answer")})
    found = describe(blind)
    assert (found["disks"], found["disks_unseen"]) == ([], {"1": "the host does not answer"})
    assert "disk     node 1: its disks were not seen: the host does not answer" in as_text(found).splitlines()


@pytest.mark.parametrize("stage", MODES)
def test_a_dead_disk_is_told_with_its_effect_and_both_ways_on(stage: Stage) -> None:
    """The same words as JSON and as text; the command of a shell among them."""
    found = describe(worlds.with_directory(whole(stage), 1, 1, gone))
    (row,) = found["disks"]
    mode = f"{MODES[stage].words}, finalized" if stage is Stage.CLEANUP else MODES[stage].words
    assert (row.broker, row.path, row.mode) == (1, PATH, mode)
    lines = as_text(found).splitlines()
    assert f"disk     broker 1 ({row.mode}) {PATH}: {row.what}" in lines
    assert f"disk       {row.effect}" in lines
    assert [line.removeprefix("disk       do: ") for line in lines if "do: " in line] == list(row.do)
    assert row.command in row.do[1]


def test_partitions_that_can_be_elected_are_named_with_the_command() -> None:
    """A disk that was replaced held their only replica."""
    found = describe(without_leader(whole(Stage.SOAK), 2))
    assert len(found["leaderless"]) == 2
    text = as_text(found)
    assert f"disk     without a leader although a replica is online: {', '.join(found['leaderless'])}" in text
    assert f"kraft-migrate directories rescue --inventory {found['inventory']}" in text


def test_many_are_counted() -> None:
    """The first ones by name."""
    found = describe(whole(Stage.SOAK))
    text = as_text({**found, "leaderless": [f"t-{number}" for number in range(SHOWN + 3)]})
    assert "t-4 and 3 more\n" in text


def test_metadata_that_cannot_be_seen_has_no_such_partitions() -> None:
    """Its absence is told elsewhere."""
    assert describe(without("kraft")(whole(Stage.SOAK)))["leaderless"] == []
