"""Moves between the directories of a broker, as its disks show them."""

from __future__ import annotations

from dataclasses import replace

from migrate.model.moves import Move, moves, moves_of, told
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks
from migrate.model.world import World
from tests.testing.clusters import topic_id
from tests.testing.worlds import BROKERS, with_directory, with_folder, world_at

ZERO = BROKERS[0]


def disks_of(world: World) -> BrokerDisks:
    """Those of broker 0."""
    assert not isinstance(world.disks, Unknown)
    found = world.disks[ZERO]
    assert isinstance(found, BrokerDisks)
    return found


def moving(*targets: int) -> World:
    """t0-0 of broker 0 lies in its first directory, with future copies in these."""
    world = world_at(Stage.ASSESS)
    for target in targets:
        world = with_folder(world, 0, target, ("t0", 0, topic_id(0), "future"))
    return world


def test_a_move_says_where_from_where_to_and_how_far() -> None:
    """By the folders' sizes; it reads as a sentence does."""
    seen = disks_of(moving(2))
    (move,) = moves_of(seen)
    source = next(entry for entry in seen.directories if "t0" in entry.replicas.topic and entry.path != move.target)
    size = source.replicas.size[source.replicas.topic.index("t0")]
    assert move == Move(0, "t0", 0, source.path, seen.directories[2].path, "t0-0", 10, size)
    assert str(move) == f"t0-0 on broker 0 from {source.path} to {move.target} (10 of {size} bytes)"


def test_a_future_copy_without_a_whole_one_is_told_as_that() -> None:
    """Its source's disk is dead: nobody will ever finish it."""
    world = with_directory(moving(2), 0, 0, lambda entry: replace(entry, problem="gone"))
    (move,) = moves_of(disks_of(world))
    assert (move.source, move.total) == ("", -1)
    assert "from nowhere" in str(move)


def test_no_future_copy_is_no_move() -> None:
    """A cluster at rest."""
    assert moves(world_at(Stage.ASSESS).disks) == ()


def test_one_broker_that_cannot_be_seen_makes_it_unknown() -> None:
    """Not none."""
    world = moving()
    assert not isinstance(world.disks, Unknown)
    found = moves({**world.disks, ZERO: Unknown("no rights")})
    assert isinstance(found, Unknown)
    assert "broker 0" in found.reason
    assert "no rights" in found.reason
    assert moves(Unknown("nobody looked")) == Unknown("nobody looked")


def test_many_moves_are_told_by_number_and_sample() -> None:
    """Three of them, and how many more."""
    found = [Move(1, "t", number, "/a", "/b", f"t-{number}.x-future", 1, 2) for number in range(5)]
    text = told(found)
    assert text.startswith("5 moves between directories: t-0 on broker 1 from /a to /b (1 of 2 bytes); ")
    assert text.endswith(" and 2 more")
    assert told(found[:1]).startswith("1 move between directories: ")
