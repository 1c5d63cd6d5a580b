"""A fact is the same text whether it was predicted or observed; what cannot be seen is `unknown`, never equal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Predicted
from migrate.model.views import (
    ConfigFile,
    ControllerZnode,
    LogDirAnswer,
    MigrationZnode,
    NoFile,
    NoZnode,
    NullZnode,
)
from migrate.run import snapshots
from migrate.steps import facts
from tests.steps.looks import whole, without
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID
from tests.testing.worlds import live


def see(world: object, key: str) -> str:
    """One fact."""
    return facts.observed(world, (key,))[key]  # type: ignore[arg-type]


def test_every_fact_of_a_healthy_world() -> None:
    """By kind, at the stages where it changes."""
    assert see(whole(Stage.ASSESS), "config:3000") == "absent"
    assert len(see(whole(Stage.ASSESS), "config:0")) == 64
    modes = [see(whole(stage), "mode:0") for stage in (Stage.ASSESS, Stage.COPY, Stage.KRAFT_MODE)]
    assert modes == ["zookeeper", "migration", "kraft"]
    assert [see(whole(stage), "mode:3000") for stage in (Stage.PREPARE, Stage.FINALIZE)] == ["controller", "finalized"]
    registered = [see(whole(stage), "registered:2") for stage in (Stage.MIGRATION_MODE, Stage.COPY, Stage.SOAK)]
    assert registered == ["no", "migration", "kraft"]
    znodes = [see(whole(stage), "migration_znode:") for stage in (Stage.ASSESS, Stage.CONTROLLERS, Stage.COPY)]
    assert znodes == ["absent", "waiting", "copied"]
    assert see(worlds.with_zk(whole(Stage.ASSESS), migration=NullZnode(0)), "migration_znode:") == "null"
    nothing = MigrationZnode(0, 0, 3000, 2, 7)  # an offset of 0 is no copy
    assert see(worlds.with_zk(whole(Stage.ASSESS), migration=nothing), "migration_znode:") == "waiting"
    least = MigrationZnode(1, 0, 3000, 2, 7)
    assert see(worlds.with_zk(whole(Stage.ASSESS), migration=least), "migration_znode:") == "copied"
    assert see(whole(Stage.COPY), "migration_state:") == ZkMigrationState.MIGRATION.name
    assert see(whole(Stage.ASSESS), "cluster_id:") == see(whole(Stage.CLEANUP), "cluster_id:") == CLUSTER_ID
    assert see(whole(Stage.ASSESS), "log_dirs:1") == "/data/b1/d0,/data/b1/d1,/data/b1/d2"


def test_log_dir_stands_in_for_log_dirs() -> None:
    """As Kafka reads them."""
    one = worlds.with_values(whole(Stage.ASSESS), 1, log__dirs=None, log__dir="/data/only")
    assert see(one, "log_dirs:1") == "/data/only"
    assert see(worlds.with_values(whole(Stage.ASSESS), 1, log__dirs=None), "log_dirs:1") == ""


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("configs", "config:1"),
        ("configs", "mode:1"),
        ("configs", "log_dirs:1"),
        ("kraft", "registered:1"),
        ("kraft", "migration_state:"),
        ("zookeeper", "migration_znode:"),
        ("zookeeper", "controller_znode:"),
        ("zookeeper", "session:1"),
    ],
)
def test_a_hidden_view_is_unknown(part: str, key: str) -> None:
    """And so is a fact of a kind that nobody knows."""
    assert see(whole(Stage.COPY), key) != facts.UNKNOWN
    assert see(without(part)(whole(Stage.COPY)), key) == facts.UNKNOWN
    assert see(whole(Stage.COPY), "weather:1") == facts.UNKNOWN


@pytest.mark.parametrize(
    ("owner", "fact"),
    [
        (ControllerZnode(0, -1, ephemeral=True, version=3), "zookeeper"),
        (ControllerZnode(3000, 5, ephemeral=False, version=3), "kraft"),
        (NoZnode(), "absent"),
        (Unknown("malformed"), "unknown"),
    ],
)
def test_the_owner_of_the_controller_znode_is_told_by_how_the_znode_was_made(owner: object, fact: str) -> None:
    """A broker's ends with its session; a KRaft controller's stays."""
    assert see(worlds.with_zk(whole(Stage.COPY), controller=owner), "controller_znode:") == fact


def test_a_malformed_migration_znode_is_unknown() -> None:
    """Neither waiting nor copied."""
    assert see(worlds.with_zk(whole(Stage.COPY), migration=Unknown("malformed")), "migration_znode:") == facts.UNKNOWN


def test_only_a_file_is_shown_by_its_path() -> None:
    """Other facts have no file: the key names them."""
    world = whole(Stage.ASSESS)
    assert facts.shown(world, "config:1") == "/conf/b1.properties of broker 1 on b1"
    assert facts.shown(world, "cluster_id:") == "cluster_id:"
    assert facts.shown(world, "mode:1") == "mode:1"


def test_offline_directories_are_those_that_a_broker_calls_offline() -> None:
    """A broker that does not answer calls none."""
    dead = LogDirAnswer("/data/b1/d0", 56, 0, ())
    found = {**live(whole(Stage.COPY)).log_dirs, NodeId(0): Unknown("refused"), NodeId(1): (dead,)}
    world = worlds.with_live(whole(Stage.COPY), log_dirs=found)
    assert facts.offline_directories(live(world)) == [(1, "/data/b1/d0")]


def test_the_cluster_id_is_read_from_either_store() -> None:
    """Unknown where both are hidden."""
    hidden = without("zookeeper")(whole(Stage.COPY))
    assert see(hidden, "cluster_id:") == CLUSTER_ID
    assert see(without("kraft")(hidden), "cluster_id:") == facts.UNKNOWN


def test_a_file_that_was_not_read_is_unknown_and_one_that_is_not_there_is_absent() -> None:
    """Neither has a mode or directories."""
    world = whole(Stage.ASSESS)
    assert isinstance(facts.config(world, 77), Unknown)
    assert see(replace(world, configs={NodeId(1): NoFile("/x")}), "config:1") == facts.ABSENT
    assert see(replace(world, configs={NodeId(1): NoFile("/x")}), "mode:1") == facts.UNKNOWN
    assert see(replace(world, configs={NodeId(1): NoFile("/x")}), "log_dirs:1") == facts.UNKNOWN


def test_predictions_go_before_what_is_seen() -> None:
    """And know the mode of what they hold."""
    world = whole(Stage.ASSESS)
    seen = facts.config(world, 1)
    assert isinstance(seen, ConfigFile)
    assert facts.predicted_config(world, Predicted(), 1) == seen.raw
    assert facts.predicted_config(world, Predicted(), 3000) is None
    after = facts.with_config(Predicted(), 1, b"process.roles=broker\n")
    assert facts.predicted_config(world, after, 1) == b"process.roles=broker\n"
    assert after.modes == {NodeId(1): "kraft"}
    assert facts.predicted_config(world, after, 0) == facts.predicted_config(world, Predicted(), 0)


def test_every_fact_has_a_view_that_it_is_read_from() -> None:
    """What a run must observe to hold a prediction against the world."""
    assert set(snapshots.NEEDS) == {
        "config",
        "mode",
        "registered",
        "cluster_id",
        "log_dirs",
        "migration_state",
        "migration_znode",
        "controller_znode",
        "session",
    }
    world = whole(Stage.COPY)
    assert facts.UNKNOWN not in facts.observed(world, [f"{name}:1" for name in snapshots.NEEDS]).values()
