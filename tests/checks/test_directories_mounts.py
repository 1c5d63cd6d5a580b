"""Directories of one broker on one file system, those that it has and those that it shall get."""

from __future__ import annotations

from dataclasses import replace

from migrate import checks
from migrate.model.findings import Finding
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from tests.checks.bends import directory, new_directory, then
from tests.testing.worlds import world_at

CODE = "W-DIR-25"
APART = then(*(directory(node, index, mount=f"/d{index}") for node in range(3) for index in range(3)))


def told_of(world: World) -> list[Finding]:
    """What is said of it."""
    return [entry for entry in checks.run(world, target=Stage.DIRECTORIES) if entry.code == CODE]


def at(stage: Stage = Stage.CLEANUP) -> World:
    """Every directory on a disk of its own, the same names on every broker."""
    return APART(world_at(stage))


def test_a_disk_for_each_is_nothing_to_tell() -> None:
    """Mounts of two brokers have nothing to do with each other."""
    assert told_of(at()) == []
    assert told_of(new_directory(1, mount="/d7")(at())) == []


def test_two_on_one_file_system_are_named_with_it() -> None:
    """The broker, the mount, each path; it blocks nothing."""
    (told,) = told_of(directory(1, 2, mount="/d0")(at(Stage.ASSESS)))
    assert told.about == "broker 1"
    assert told.message == "2 of its log directories are on /d0"
    assert told.evidence == "/data/b1/d0, /data/b1/d2"
    assert told.blocks_from == checks.NEVER


def test_a_new_directory_on_the_disk_of_an_old_one_is_told_as_new() -> None:
    """The folder was made, and the disk is not mounted."""
    (told,) = told_of(new_directory(1, mount="/d2")(at()))
    assert told.message == "2 of its log directories are on /d2; new among them: /new/b1"


def test_one_that_has_become_a_log_directory_is_not_counted_twice() -> None:
    """Between its start and the end of the run it stands in both lists."""
    added = new_directory(1, mount="/d0", path="/data/b1/d0")
    assert told_of(added(at())) == []
    (told,) = told_of(then(added, directory(1, 2, mount="/d0"))(at()))
    assert told.message == "2 of its log directories are on /d0", "nothing of it is new any more"


def test_a_broken_directory_lies_on_no_file_system() -> None:
    """Where its disk is gone, its path leads to the one below: B-DIR-01 says what is wrong."""
    broken = then(directory(1, 2, mount="/d0", problem="is no folder"), directory(1, 1, mount="", problem="is gone"))
    assert told_of(broken(at())) == []


def test_where_the_new_ones_cannot_be_seen_that_is_said() -> None:
    """Of one broker, or of all; without a DirectoryPlaybook nothing is missed."""
    one = replace(new_directory(0, mount="/d7")(at()), new_directories={NodeId(0): Unknown("no such host")})
    (told,) = told_of(one)
    assert (told.about, told.evidence) == ("the new directories of broker 0", "no such host")
    every = told_of(replace(at(), new_directories=Unknown("no executor")))
    assert [entry.evidence for entry in every] == ["no executor"] * 3
