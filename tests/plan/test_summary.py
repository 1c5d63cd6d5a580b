"""A plan's reader sees counts, directories, what suffers, and what was not seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks.parity import Cell
from migrate.model.detect import Detected, detect
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, OwnExecutor, SecretFile, Store
from migrate.model.outcome import Unknown
from migrate.model.plan import PlanSummary
from migrate.model.stage import Stage
from migrate.model.views import MetaBroken
from migrate.model.world import World
from migrate.plan.build import build
from migrate.plan.summary import rows_of, summarize
from migrate.report.plan_json import plan_from_json, plan_to_json
from migrate.report.plan_text import plan_html, plan_text
from tests.steps.looks import whole, without
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, Partition, columns_of, directory_id, topic_id
from tests.testing.worlds import playbook, with_values, world_at, zk


def summary(world: World) -> PlanSummary:
    """What the reader sees of that world."""
    here = detect(whole(Stage.COPY)) if isinstance(world.kraft, Unknown) else detect(world)
    assert isinstance(here, Detected)
    return summarize(world, worlds.playbook(), here)


def test_counts_are_of_the_store_that_leads() -> None:
    """ZooKeeper's while it is there, then the metadata's: the same numbers."""
    counts = {"topics": 2, "partitions": 6, "replicas": 18}
    assert summary(whole(Stage.COPY)).inventory == counts
    assert summary(whole(Stage.CLEANUP)).inventory == counts
    richer = worlds.with_entity(whole(Stage.COPY), "topic-config", "t0", "retention.ms", "1")
    assert summary(richer).inventory == {**counts, "topic-config": 1}
    assert summary(without("kraft")(without("zookeeper")(whole(Stage.COPY)))).inventory == {}


def test_every_directory_of_every_broker_has_a_row() -> None:
    """Controllers' metadata directories are no log directories."""
    rows = summary(whole(Stage.COPY)).disks
    assert [(row["broker"], row["path"]) for row in rows] == [
        (str(node), f"/data/b{node}/d{index}") for node in range(3) for index in range(3)
    ]
    assert rows[0]["health"] == "healthy"
    assert rows[0]["meta"] == "V0"
    assert rows[4]["directory.id"] == directory_id(1, 1)
    assert sum(int(row["replicas"]) for row in rows) == 18
    assert summary(whole(Stage.ASSESS)).disks[0]["directory.id"] == "-"


def test_a_directory_that_is_not_well_says_so() -> None:
    """Broken, with a broken meta.properties, or not seen at all."""
    broken = worlds.with_directory(whole(Stage.COPY), 1, 2, lambda entry: replace(entry, problem="input/output error"))
    assert [row["health"] for row in summary(broken).disks if row["path"] == "/data/b1/d2"] == ["input/output error"]
    torn = worlds.with_directory(whole(Stage.COPY), 1, 2, lambda entry: replace(entry, meta=MetaBroken("torn")))
    assert [row["meta"] for row in summary(torn).disks if row["path"] == "/data/b1/d2"] == ["broken: torn"]
    assert not isinstance(broken.disks, Unknown)
    unseen = replace(broken, disks={**broken.disks, NodeId(1): Unknown("no mount")})
    assert [row["health"] for row in summary(unseen).disks if row["broker"] == "1"] == ["unknown: no mount"]
    assert summary(without("disks")(broken)).disks == ()


def test_what_must_become_unavailable_is_listed_by_topic() -> None:
    """Accepted or not, with the patterns that accept."""
    single = [Partition("single-a", topic_id(7), 0, [1]), Partition("tight", topic_id(8), 0, [0, 1])]
    world = worlds.with_zk(whole(Stage.COPY), partitions=columns_of(single))
    lines = summary(world).availability
    assert [line.split(":")[0] for line in lines] == ["single-a", "tight"]
    assert "one replica" in lines[0]
    assert "2 replicas and min.insync.replicas=2" in lines[1]
    assert all("single-.*" in line for line in lines)
    assert summary(whole(Stage.COPY)).availability == ()


def test_what_was_not_seen_is_told() -> None:
    """Each part by its name, and ZooKeeper's own blind spots."""
    assert summary(whole(Stage.COPY)).blind_spots == ()
    hidden = without("disks")(without("live")(without("configs")(whole(Stage.COPY))))
    assert summary(hidden).blind_spots == ("disks: disks hidden", "live answers: live hidden", "files: configs hidden")
    assert summary(without("zookeeper")(whole(Stage.COPY))).blind_spots == ("ZooKeeper: zookeeper hidden",)
    secret = worlds.with_zk(whole(Stage.COPY), blind_spots=("a password without its secret",))
    assert summary(secret).blind_spots == ("a password without its secret",)


def test_the_rollback_is_listed_for_each_stage_and_ends_with_finalize() -> None:
    """So that a reader sees what it costs at each point."""
    rows = summary(whole(Stage.ASSESS)).rollback
    assert [row["stage"] for row in rows] == [
        "prepare",
        "controllers",
        "migration-mode",
        "hybrid",
        "kraft-mode",
        "soak",
        "finalize",
    ]
    assert rows[-1]["procedure"].startswith("none")
    assert [row["rolls"] for row in rows] == ["0", "0", "1", "1", "2", "2", "-"]


def test_where_it_stands_is_told_with_its_evidence() -> None:
    """The stage, and how it was seen."""
    assert summary(whole(Stage.COPY)).detected == (
        "copy (ZkMigrationState=MIGRATION at offset 500; 0 of 3 brokers in KRaft mode)"
    )
    assert zk(whole(Stage.COPY)).cluster_id == CLUSTER_ID


@pytest.mark.parametrize(
    "stage", [Stage.ASSESS, Stage.PREPARE, Stage.HYBRID, Stage.SOAK], ids=lambda stage: stage.label
)
def test_what_the_tool_renders_is_on_par_at_every_stage(stage: Stage) -> None:
    """Whether the files are there or only planned."""
    rows = rows_of(world_at(stage))
    assert {cell for row in rows for cell in row.controllers.values()} == {Cell.EQUAL}
    assert {row.key for row in rows} >= {"super.users", "password.encoder.secret", "inter.broker.listener.name"}
    assert {node for row in rows for node in row.controllers} == {3000, 3001, 3002}


def test_a_controllers_file_that_lies_there_is_compared_as_it_is() -> None:
    """Not as it would be rendered."""
    rows = {row.key: row for row in rows_of(with_values(world_at(Stage.PREPARE), 3001, super__users="User:x"))}
    assert rows["super.users"].controllers == {3000: Cell.EQUAL, 3001: Cell.DIFFERS, 3002: Cell.EQUAL}


def test_overrides_are_in_the_matrix() -> None:
    """They are the reason why a row may differ."""
    own = replace(playbook(), controller_overrides={NodeId(3002): {"num.io.threads": "9"}})
    rows = {row.key: row for row in rows_of(replace(world_at(Stage.ASSESS), playbook=own))}
    assert rows["num.io.threads"].controllers == {3000: Cell.ABSENT, 3001: Cell.ABSENT, 3002: Cell.ONLY_HERE}


def test_what_cannot_be_seen_has_no_row_and_no_column() -> None:
    """An unreadable file is no equal one."""
    whole = world_at(Stage.PREPARE)
    assert rows_of(replace(whole, configs=Unknown("no way there"))) == ()
    assert not isinstance(whole.configs, Unknown)
    dark = replace(whole, configs={**whole.configs, NodeId(3000): Unknown("permission denied")})
    assert {node for row in rows_of(dark) for node in row.controllers} == {3001, 3002}
    none = replace(whole, configs=dict.fromkeys(whole.configs, Unknown("permission denied")))
    assert rows_of(none) == ()


@pytest.mark.slow
def test_the_plan_shows_it_in_every_format_and_keeps_it() -> None:
    """Terminal, page, file."""
    plan = build(world_at(Stage.ASSESS), playbook(), target=Stage.PREPARE, only=False, created=0.0)
    assert plan_from_json(plan_to_json(plan)).summary == plan.summary
    text, page = plan_text(plan), plan_html(plan)
    assert "Parity of the controllers' files with the brokers'" in text
    assert "min.insync.replicas" in text.partition("Parity of")[2]
    assert 'id="parity"' in page
    assert 'href="#parity"' in page
    for shown in (text, page, plan_to_json(plan)):
        assert "a-secret-of-the-lab" not in shown


def test_nodes_with_settings_of_their_own_are_told_and_no_secret_of_them() -> None:
    """A row for each; none where every node is as the others are."""
    world = whole(Stage.ASSESS)
    assert summary(world).own == ()
    access = Access("SASL_SSL", "PLAIN", "ops", SecretFile("/canary"), Store("/t.pem", "PEM", SecretFile("/canary")))
    brokers = (replace(world.inventory.brokers[0], access=access, kafka_home="/srv/k"), *world.inventory.brokers[1:])
    here = OwnExecutor("local", sudo=False)
    controllers = (*world.inventory.controllers[:2], replace(world.inventory.controllers[2], executor=here))
    own = summary(replace(world, inventory=replace(world.inventory, brokers=brokers, controllers=controllers))).own
    assert [dict(row) for row in own] == [
        {
            "node": "broker 0",
            "kafka_home": "/srv/k",
            "access": "SASL_SSL, PLAIN, user ops, truststore /t.pem",
            "executor": "-",
        },
        {"node": "controller 3002", "kafka_home": "-", "access": "-", "executor": "local, without sudo"},
    ]
