"""Real dual write under real clients: nothing false is reported, and what was changed past Kafka is, each time.

One ZooKeeper, two brokers in migration mode, one controller; a client makes and deletes topics, changes
configurations and moves leaders all the while.  At rest a bundle of the cluster says the same as the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from migrate.diff.session import SparkHandle
from migrate.lab.cluster import Lab
from migrate.lab.topology import Shape
from migrate.model.difference import Difference, DiffReport
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView
from migrate.model.world import Need
from migrate.observe.bundle import read_bundle, write_bundle
from migrate.observe.bundled import BundledSources, look_for_bundle
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from tests.testing.dual_writing import churning, migrate_by_hand
from tests.testing.kraft_cluster import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]
LOOKED_AT = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF})
Row = tuple[str, str, str]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The cluster in hybrid."""
    made = Lab.create(tmp_path_factory.mktemp("motion") / "lab", Shape(brokers=2, directories=2, controllers=1))
    try:
        made.up()
        migrate_by_hand(made)
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def observer(lab: Lab, spark_handle: SparkHandle) -> Iterator[ClusterObserver]:
    """What `diff` looks with, kept over all looks; it waits for the end of the copy."""
    sources = Sources(lab.inventory, Unknown("no playbook"), None)
    sources.use_spark(spark_handle)
    found = ClusterObserver(sources)

    def copied() -> bool:
        view = sources.kraft()
        return (
            isinstance(view, KraftView)
            and view.migration_state is ZkMigrationState.MIGRATION
            and sources.dual_write_offset() > 0
        )

    try:
        wait_for("the copy", copied, 180)
        spark_handle.get(300)
        yield found
    finally:
        found.close()


@pytest.fixture
def client(lab: Lab) -> Iterator[KazooClient]:
    """A session that writes what no tool of Kafka's would."""
    found = KazooClient(lab.inventory.zookeeper)
    found.start(15)
    try:
        yield found
    finally:
        found.stop()
        found.close()


def report_of(observer: ClusterObserver) -> DiffReport:
    """One comparison."""
    found = observer.observe(LOOKED_AT, {}).diff
    assert isinstance(found, DiffReport), found
    return found


def of_config(value: Any, turn: int) -> Any:
    """Another retention."""
    return {**value, "config": {**value["config"], "retention.ms": str(5000 + turn)}}


def of_assignment(value: Any, turn: int) -> Any:
    """The replicas of a partition in another order."""
    return {**value, "partitions": {**value["partitions"], "2": value["partitions"]["2"][::-1]}}


ACL = {"principal": "User:eve", "permissionType": "Allow", "operation": "Read", "host": "*"}
STATE = "/brokers/topics/calm/partitions/{}/state"
# path; its value from the one before (None: no such znode, or none any more); the row that must come of it
PAST_KAFKA: tuple[tuple[str, Callable[[Any, int], Any], Row], ...] = (
    ("/config/topics/calm", of_config, ("topic-config", "calm", "retention.ms")),
    (
        STATE.format(1),
        lambda value, _: {**value, "leader_epoch": value["leader_epoch"] + 40},
        ("partition", "calm-1", "leader_epoch"),
    ),
    ("/brokers/topics/calm", of_assignment, ("partition", "calm-2", "replicas")),
    (
        "/config/users/eve",
        lambda *_: {"version": 1, "config": {"producer_byte_rate": "1024"}},
        ("client-quota", "user=eve", "producer_byte_rate"),
    ),
    (STATE.format(3), lambda value, _: {**value, "isr": value["isr"][:1]}, ("partition", "calm-3", "isr")),
    ("/config/topics/calm", lambda *_: None, ("topic-config", "calm", "retention.ms")),
    (
        "/kafka-acl/Topic/calm",
        lambda *_: {"version": 1, "acls": [ACL]},
        ("acl", "TOPIC|LITERAL|calm|User:eve|*|READ|ALLOW", "present"),
    ),
)


@contextmanager
def past_kafka(client: KazooClient, turn: int) -> Iterator[Row]:
    """A znode changed, made or deleted behind Kafka's back, and put back; the row that must come of it."""
    path, change, row = PAST_KAFKA[turn % len(PAST_KAFKA)]
    try:
        before, _ = client.get(path)
    except NoNodeError:
        before = None
    put(client, path, change(None if before is None else json.loads(before), turn))
    try:
        yield row
    finally:
        put(client, path, None if before is None else json.loads(before))


def put(client: KazooClient, path: str, value: Any) -> None:
    """That value, or no znode."""
    if value is None:
        client.delete(path)
    elif client.exists(path):
        client.set(path, json.dumps(value).encode())
    else:
        client.create(path, json.dumps(value).encode(), makepath=True)


@pytest.mark.parametrize("rounds", [10, pytest.param(50, marks=pytest.mark.long)])
def test_comparisons_in_a_row_report_nothing_false_and_every_change_past_kafka(
    lab: Lab, observer: ClusterObserver, client: KazooClient, rounds: int
) -> None:
    """Every other one with a znode changed behind Kafka's back; `calm` rests among what moves."""
    planted = 0
    with churning(lab) as churn:
        again = 0
        for turn in range(rounds):
            if turn % 2:
                with past_kafka(client, turn // 2) as row:
                    found = report_of(observer)
                planted += 1
                assert [(entry.kind, entry.key, entry.field) for entry in found.unexcused] == [row], found.unexcused
                assert all(entry.zookeeper_where and entry.kraft_where for entry in found.unexcused)
            else:
                found = report_of(observer)
                assert found.unexcused == ()
            again += found.looks > 1
            assert {entry.key.partition("-")[0] for entry in found.unsettled} <= {"busy", "brief"}
        assert churn.failures == []
        assert churn.rounds > rounds / 2, "the client did nothing meanwhile"
        assert again >= planted == rounds // 2


def test_at_rest_all_is_equal_again(lab: Lab, observer: ClusterObserver) -> None:
    """Whatever moved has settled: one look is enough, and nothing is left open."""
    found = report_of(observer)
    assert (found.unexcused, found.unsettled) == ((), ())
    assert found.counts["partition"]["EQUAL"] >= 8 * 8


def told(report: DiffReport) -> list[Difference]:
    """The rows, but for where they were read: offsets go on."""
    return [replace(row, zookeeper_where="", kraft_where="") for row in report.differences]


def test_a_bundle_says_of_it_what_the_cluster_says(
    lab: Lab, observer: ClusterObserver, client: KazooClient, spark_handle: SparkHandle, tmp_path: Path
) -> None:
    """Equal, and with a difference: the same rows, the same counts, from the file alone."""
    for planted in (False, True):
        path = str(tmp_path / f"bundle-{planted}")
        if planted:
            with past_kafka(client, 0) as row:
                live = report_of(observer)
                write_bundle(path, look_for_bundle(observer), 0)
            assert [(entry.kind, entry.key, entry.field) for entry in live.unexcused] == [row]
        else:
            live = report_of(observer)
            write_bundle(path, look_for_bundle(observer), 0)
        kept = BundledSources(lab.inventory, Unknown("no playbook"), None, read_bundle(path))
        kept.use_spark(spark_handle)
        found = report_of(ClusterObserver(kept))
        assert (told(found), found.counts, found.unsettled) == (told(live), live.counts, live.unsettled)
        assert found.offset >= live.offset
