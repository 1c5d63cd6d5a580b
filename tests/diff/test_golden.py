"""On what a real cluster wrote at each stage: nothing differs that is not expected, and the ledger tells the truth."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import SparkSession

from migrate.diff.compare import compare
from migrate.diff.ledger import Question, ledgers
from migrate.model.difference import DifferenceClass
from migrate.model.facts import build
from migrate.model.ids import NodeId
from migrate.model.ledger import Yes, can_unfence, may_restart
from migrate.model.stage import DirectoryPolicy
from migrate.model.views import MigrationZnode
from tests.testing.golden_views import LOG_ENDS, Views, views_at

TODAY = date(2026, 11, 21)
BROKERS = (NodeId(0), NodeId(1), NodeId(2))
KRAFT_MODE = {
    "hybrid-after-copy": [],
    "first-broker-kraft": [0],
    "all-brokers-kraft": [0, 1, 2],
    "finalized": [0, 1, 2],
}


def questions() -> list[Question]:
    """Every stage, as its gates would ask."""
    asked = []
    for stage in LOG_ENDS:
        views = views_at(stage)
        asked.append(Question(views.zookeeper, views.kraft, views.disks, True, stage == "finalized"))
    return asked


@pytest.mark.spark
@pytest.mark.parametrize("stage", LOG_ENDS)
def test_at_rest_nothing_differs_but_what_kafka_itself_makes(spark: SparkSession, stage: str) -> None:
    """Every partition field is equal, ISRs and leaders included; what is expected has its rule."""
    views = views_at(stage)
    migration = views.zookeeper.migration
    assert isinstance(migration, MigrationZnode)
    lag = views.kraft.offset - migration.offset
    report = compare(spark, views.zookeeper, views.kraft, (), offset=views.kraft.offset, lag=lag, today=TODAY)
    assert report.unexcused == ()
    expected = [("broker", str(broker), "X-BROKER-01") for broker in KRAFT_MODE[stage]]
    found = [(row.kind, row.key, row.rule) for row in report.differences]
    assert found == [*expected, ("feature", "metadata.version", "X-FEATURE-01")]
    assert report.counts["partition"] == {"EQUAL": 212 * 8}
    assert {kind for kind, classes in report.counts.items() if classes.get("EQUAL")} >= {
        "topic",
        "topic-config",
        "broker-config",
        "client-quota",
        "scram",
        "acl",
        "producer-ids",
    }


@pytest.mark.spark
def test_changes_planted_in_a_real_cluster_are_all_that_is_reported(spark: SparkSession) -> None:
    """A quota and a leader, bent on the KRaft side."""
    views = views_at("hybrid-after-copy")
    kraft = views.kraft
    values = list(kraft.entities.value)
    quota = kraft.entities.kind.index("client-quota")
    values[quota] = "1.0"
    leaders = list(kraft.partitions.leader)
    leaders[17] = -1
    bent = replace(
        kraft,
        entities=replace(kraft.entities, value=values),
        partitions=replace(kraft.partitions, leader=leaders),
    )
    report = compare(spark, views.zookeeper, bent, (), offset=kraft.offset, lag=0, today=TODAY)
    key = f"{kraft.partitions.topic[17]}-{kraft.partitions.partition[17]}"
    found = [(row.kind, row.key, row.field, row.cls) for row in report.unexcused]
    assert found == [
        ("client-quota", kraft.entities.key[quota], kraft.entities.name[quota], DifferenceClass.DIFFERS),
        ("partition", key, "leader", DifferenceClass.DIFFERS),
    ]


@pytest.mark.spark
def test_spark_agrees_with_the_pure_rule_on_the_real_cluster(spark: SparkSession) -> None:
    """All four stages in one job."""
    asked = questions()
    for question, found in zip(asked, ledgers(spark, asked), strict=True):
        expected = build(
            question.zookeeper,
            question.kraft,
            question.disks,
            after_copy=question.after_copy,
            finalized=question.finalized,
        )
        assert replace(found, engine="pure") == expected


def verdicts(views: Views, *, finalized: bool) -> tuple[list[NodeId], list[NodeId], list[NodeId]]:
    """Brokers that may restart under observe, under drive, and that can unfence."""
    ledger = build(views.zookeeper, views.kraft, views.disks, after_copy=True, finalized=finalized)
    told = {
        policy: [b for b in BROKERS if isinstance(may_restart(b, policy, ledger, views.disks, views.kraft), Yes)]
        for policy in DirectoryPolicy
    }
    unfence = [b for b in BROKERS if isinstance(can_unfence(b, ledger, views.disks, views.kraft), Yes)]
    return told[DirectoryPolicy.OBSERVE], told[DirectoryPolicy.DRIVE], unfence


@pytest.mark.parametrize("stage", LOG_ENDS)
def test_replicas_become_verified_broker_by_broker(stage: str) -> None:
    """A broker's 177, 175 and 175 replicas turn from MIGRATING to VERIFIED with its own restart into KRaft."""
    views = views_at(stage)
    ledger = build(views.zookeeper, views.kraft, views.disks, after_copy=True, finalized=stage == "finalized")
    assert len(ledger.rows) == 527
    for broker in BROKERS:
        states = {row.state.value for row in ledger.of(broker)}
        assert states == {"VERIFIED" if broker in KRAFT_MODE[stage] else "MIGRATING"}


@pytest.mark.parametrize("stage", LOG_ENDS)
def test_only_brokers_in_kraft_mode_can_unfence_on_the_real_cluster(stage: str) -> None:
    """Each may restart under observe; drive and unfencing want every row VERIFIED."""
    observe, drive, unfence = verdicts(views_at(stage), finalized=stage == "finalized")
    assert observe == list(BROKERS)
    assert drive == unfence == KRAFT_MODE[stage]
