"""Backups are proven by the journal; a controller's file is rendered once, and over nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.hosts.properties import parse
from migrate.model.broker_modes import node_mode
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Ready, Refused, Unknown, Verified
from migrate.model.secrets import hidden
from migrate.model.stage import Stage
from migrate.model.step import NotBegun, Predicted
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import World
from migrate.steps import configuration, facts
from migrate.steps.prepare import BackUpBroker, BackUpZookeeper, RenderController, backup_told
from tests.steps.looks import Remembered, answer, whole, without
from tests.testing import worlds
from tests.testing.worlds import config_file, inventory

BEFORE, AFTER = whole(Stage.ASSESS), whole(Stage.PREPARE)
RENDER, KEEP = RenderController(3001), BackUpBroker(1)
PATHS = ("/conf/b1.properties", *(f"/data/b1/d{index}/meta.properties" for index in range(3)))


def with_config(world: World, node: int, found: ConfigFile | NoFile | Unknown) -> World:
    """One node's file replaced."""
    assert not isinstance(world.configs, Unknown)
    return replace(world, configs={**world.configs, NodeId(node): found})


# -- backups ---------------------------------------------------------------------------------------------------------
def test_the_tree_is_backed_up_once_no_blocker_stands() -> None:
    """And proven by the fact that the journal keeps."""
    step, effects = BackUpZookeeper(), Remembered()
    assert step.check(BEFORE) == Ready()
    assert isinstance(step.check(worlds.with_values(BEFORE, 1, broker__id="9")), Refused)
    step.do(BEFORE, effects)
    assert effects.done == ["back up zookeeper"]
    assert answer(step.verify(BEFORE)) == "refused: no backup of ZooKeeper is in the journal"
    kept = replace(BEFORE, facts={"backup:zookeeper": "tree.gz: sha256 0"})
    assert step.verify(kept) == Verified(("tree.gz: sha256 0",))
    assert [action.symbol for action in step.actions(BEFORE, Predicted())] == ["+"]


def test_a_brokers_file_and_each_meta_properties_are_kept() -> None:
    """All directories of it, by path."""
    effects = Remembered()
    KEEP.do(BEFORE, effects)
    assert KEEP.paths(BEFORE) == PATHS
    assert effects.done == [f"keep 1 {', '.join(PATHS)}"]
    assert [action.what for action in KEEP.actions(BEFORE, Predicted())] == [f"keep a copy of {path}" for path in PATHS]
    assert KEEP.id == "prepare/back-up-broker-1"
    assert "broker 1" in KEEP.title


def test_only_what_can_be_seen_is_listed() -> None:
    """Unseen disks leave the file alone; an unseen file leaves nothing to say."""
    assert KEEP.paths(without("disks")(BEFORE)) == PATHS[:1]
    assert KEEP.paths(replace(BEFORE, disks={NodeId(1): Unknown("no mount")})) == PATHS[:1]
    assert KEEP.paths(without("configs")(BEFORE)) == PATHS[1:]


def test_a_broker_without_a_readable_file_is_not_backed_up() -> None:
    """Absent is refused, unseen is Unknown."""
    assert KEEP.check(BEFORE) == Ready()
    assert answer(KEEP.check(with_config(BEFORE, 1, NoFile("/x")))) == "refused: broker 1 has no file /x"
    assert answer(KEEP.check(without("configs")(BEFORE))) == "unknown: configs hidden"


def test_no_meta_properties_is_left_out_because_the_disks_are_not_seen() -> None:
    """Nothing is kept until they are."""
    dark = replace(BEFORE, disks=Unknown("timed out"))
    assert KEEP.check(dark) == Unknown("timed out")


def test_the_backups_of_another_broker_prove_nothing() -> None:
    """Broker 11's key begins with 1, too."""
    other = replace(BEFORE, facts={"backup:11:/conf/b11.properties": "x", "backup:zookeeper": "y"})
    assert isinstance(KEEP.verify(other), Refused)
    own = replace(BEFORE, facts={f"backup:1:{path}": "x" for path in PATHS})
    assert KEEP.verify(own) == Verified(("4 files kept",))


# -- rendering -------------------------------------------------------------------------------------------------------
def test_a_controllers_file_is_written_where_nothing_lies() -> None:
    """With the content that the plan showed."""
    effects = Remembered()
    assert RENDER.check(BEFORE) == Ready()
    assert RENDER.progress(BEFORE) == NotBegun()
    RENDER.do(BEFORE, effects)
    assert effects.done == ["write 3001 /conf/c3001.properties over nothing"]
    written = config_file(NodeId(3001), "/conf/c3001.properties", effects.written[3001])
    assert node_mode(written.values) == "controller"
    assert written.sha256 == RENDER.expects(BEFORE, Predicted())["config:3001"]
    assert isinstance(RENDER.verify(with_config(BEFORE, 3001, written)), Verified)


def test_the_file_that_lies_there_already_is_not_written_again() -> None:
    """Whole or not at all: it is written atomically."""
    assert isinstance(RENDER.check(AFTER), AlreadyDone)
    assert isinstance(RENDER.progress(AFTER), AlreadyDone)


def test_other_content_is_never_overwritten() -> None:
    """Nor taken for the planned one."""
    other = with_config(BEFORE, 3001, config_file(NodeId(3001), "/conf/c3001.properties", b"node.id=3001\n"))
    assert "exists with other content" in answer(RENDER.check(other))
    assert "controller.listener.names is missing, to be CTL" in answer(RENDER.check(other))
    assert isinstance(RENDER.verify(other), Refused)
    assert RENDER.progress(other) == NotBegun()


def test_a_file_that_is_gone_is_no_proof() -> None:
    """Nor is one that cannot be read."""
    assert answer(RENDER.verify(BEFORE)) == "refused: the file does not have the planned content"
    assert answer(RENDER.verify(without("configs")(BEFORE))) == "unknown: configs hidden"


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (without("configs")(BEFORE), "configs hidden"),
        (with_config(BEFORE, 0, Unknown("permission denied")), "broker 0 cannot be read"),
        (with_config(BEFORE, 3001, Unknown("permission denied")), "permission denied"),
    ],
)
def test_without_the_brokers_file_nothing_is_rendered(world: World, says: str) -> None:
    """Nor where it cannot be seen whether something lies there."""
    assert says in answer(RENDER.check(world))
    assert isinstance(RENDER.progress(world), Unknown)


def test_rendering_is_planned_on_the_first_brokers_file() -> None:
    """Bound to it and to the empty place; predicted for the steps that follow."""
    first = facts.predicted_config(BEFORE, Predicted(), 0)
    assert first is not None
    assert RENDER.binds(BEFORE, Predicted()) == {"config:0": facts.sha256(first), "config:3001": "absent"}
    after = RENDER.predict(BEFORE, Predicted())
    wanted = configuration.controller(parse(first), inventory(), inventory().controllers[1])
    assert after.configs == {NodeId(3001): wanted}
    assert after.modes == {NodeId(3001): "controller"}
    assert RENDER.expects(BEFORE, Predicted()) == facts.observed(AFTER, ("config:3001", "mode:3001"))


def test_an_unreadable_brokers_file_predicts_nothing() -> None:
    """And binds as unknown."""
    blind = with_config(BEFORE, 0, Unknown("permission denied"))
    assert RENDER.predict(blind, Predicted()) == Predicted()
    assert RENDER.expects(blind, Predicted()) == {}
    assert RENDER.binds(blind, Predicted())["config:0"] == "unknown"
    assert RENDER.actions(blind, Predicted())[0].diff == ()


def test_the_plan_shows_the_new_file_without_its_secrets() -> None:
    """Line by line."""
    (action,) = RENDER.actions(BEFORE, Predicted())
    assert "+process.roles=controller" in action.diff
    assert f"+password.encoder.secret={hidden('a-secret-of-the-lab')}" in action.diff
    assert not [line for line in action.diff if "a-secret-of-the-lab" in line]


def test_a_backup_is_told_to_people() -> None:
    """What could not be read is not left out; another release's note is shown as it is."""
    note = "z.gz: denied 0, path /runs/1/backup/zookeeper.jsonl.gz, sha256 efc9fc43a7cca9ee, znodes 443, zxid 613"
    assert backup_told(note) == "443 znodes at zxid 613 in /runs/1/backup/zookeeper.jsonl.gz, SHA-256 efc9fc43a7cc"
    assert backup_told(note.replace("denied 0", "denied 2")).startswith("443 znodes, 2 of them not readable, at")
    assert backup_told("tree.gz: sha256 0") == "tree.gz: sha256 0"
