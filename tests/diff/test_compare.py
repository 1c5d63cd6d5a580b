"""The comparison finds every planted difference, no other, and counts every field once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.diff import compare as comparison
from migrate.diff import frames
from migrate.diff.compare import Terms, compare, equal_fields, idle_acceptances, rows_given
from migrate.diff.frames import PARTITIONS
from migrate.diff.tables import PARTITION_FIELDS
from migrate.diff.typed_rows import blind_configs
from migrate.model.difference import Difference, DifferenceClass, DiffReport, current
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.views import KraftView, PendingWork, ZookeeperView
from tests.diff.reference import reference
from tests.testing.clusters import Partition, healthy_cluster, kraft_view, registration, topic_id, zookeeper_view

pytestmark = pytest.mark.spark
TODAY = date(2026, 11, 21)
ONLY_ZK, ONLY_KRAFT, DIFFERS = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT, DifferenceClass.DIFFERS
ENTITIES = [
    ("topic", "t0", "topic_id", topic_id(0)),
    ("topic-config", "t0", "retention.ms", "3600000"),
    ("broker-config", "0", "log.cleaner.backoff.ms", "14000"),
    ("broker-config", "<default>", "ssl.keystore.password", "hmac:0123"),
    ("client-quota", "user=alice", "producer_byte_rate", "1000000.0"),
    ("scram", "carol", "SCRAM-SHA-512.salt", "hmac:4567"),
    ("acl", "TOPIC|LITERAL|orders|User:alice|*|READ|ALLOW", "acl", "present"),
    ("delegation-token", "hmac:89ab", "owner", "User:alice"),
    ("producer-ids", "", "next_producer_id", "1000"),
]


def compared(
    spark: SparkSession,
    zookeeper: ZookeeperView,
    kraft: KraftView,
    accepted: tuple[AcceptedDifference, ...] = (),
    today: date = TODAY,
) -> DiffReport:
    """The report at offset 100, without metadata.version, which always differs."""
    return compare(spark, zookeeper, replace(kraft, features={}), accepted, offset=100, lag=3, today=today)


def shapes(report: DiffReport) -> set[tuple[str, str, str, str]]:
    """The listed rows without their values."""
    return {(row.kind, row.key, row.field, row.cls.value) for row in report.differences}


def acceptance(row: Difference, expires: str = "2027-01-01") -> AcceptedDifference:
    """An acceptance of exactly that row."""
    return AcceptedDifference(row.cls.value, row.kind, row.key, row.field, "an old script", "CHG0045931", expires)


def test_equal_views_have_no_difference_and_every_field_is_counted(spark: SparkSession) -> None:
    """Eight fields a partition, one an entity, two a broker without rack."""
    cluster = healthy_cluster()
    kraft = kraft_view(cluster.partitions, ENTITIES, [registration(b, ids) for b, ids in cluster.log_dirs.items()])
    report = compared(spark, zookeeper_view(cluster.partitions, ENTITIES, [0, 1, 2]), kraft)
    assert report.differences == ()
    assert report.unexcused == ()
    assert report.counts["partition"] == {"EQUAL": 6 * len(PARTITION_FIELDS)}
    assert report.counts["broker"] == {"EQUAL": 6}
    assert report.counts["broker-config"] == {"EQUAL": 2}
    assert sum(sum(classes.values()) for classes in report.counts.values()) == 48 + 6 + len(ENTITIES)
    assert (report.offset, report.lag, report.blind_spots) == (100, 3, ())


def test_empty_views_compare_too(spark: SparkSession) -> None:
    """Nothing on both sides, and nothing on one: the counts come back although there is nothing to count."""
    assert compared(spark, zookeeper_view(), kraft_view()).counts == {}
    only = compared(spark, zookeeper_view(healthy_cluster().partitions, ENTITIES), kraft_view())
    assert only.counts["partition"] == {"ONLY_ZK": 6}
    assert only.counts["scram"] == {"ONLY_ZK": 1}
    other = compared(spark, zookeeper_view(), kraft_view(healthy_cluster().partitions, ENTITIES))
    assert other.counts["partition"] == {"ONLY_KRAFT": 6}


def test_each_field_of_a_partition_is_told_apart(spark: SparkSession) -> None:
    """One partition a field, and the report shows both values as a reader wants them."""
    ours = [Partition("t", topic_id(0), number, [0, 1, 2]) for number in range(len(PARTITION_FIELDS))]
    theirs = [Partition("t", topic_id(0), number, [0, 1, 2]) for number in range(len(PARTITION_FIELDS))]
    changes: list[tuple[str, object, str, str]] = [
        ("topic_id", topic_id(1), topic_id(0), topic_id(1)),
        ("replicas", [0, 2, 1], "0,1,2", "0,2,1"),
        ("isr", [0, 1], "0,1,2", "0,1"),
        ("adding", [4], "", "4"),
        ("removing", [1], "", "1"),
        ("leader", 1, "0", "1"),
        ("leader_epoch", 4, "3", "4"),
        ("recovery_state", 1, "0", "1"),
    ]
    for number, (name, value, _, _) in enumerate(changes):
        setattr(theirs[number], name, value)
        theirs[number].isr = [0, 1, 2] if name == "replicas" else theirs[number].isr
    report = compared(spark, zookeeper_view(ours), kraft_view(theirs))
    expected = {
        Difference("partition", f"t-{number}", name, DIFFERS, left, right)
        for number, (name, _, left, right) in enumerate(changes)
    }
    assert set(report.differences) == expected
    assert report.counts == {"partition": {"DIFFERS": 8, "EQUAL": 56}}


def test_the_order_of_an_isr_is_no_difference_and_that_of_replicas_is(spark: SparkSession) -> None:
    """An ISR is a set; the first replica is the preferred leader."""
    ours = Partition("t", topic_id(0), 0, [0, 1, 2], isr=[0, 1, 2], adding=[3, 4], removing=[1, 2])
    theirs = Partition("t", topic_id(0), 0, [0, 1, 2], isr=[2, 0, 1], adding=[4, 3], removing=[2, 1])
    assert compared(spark, zookeeper_view([ours]), kraft_view([theirs])).differences == ()
    theirs.replicas, theirs.leader = [1, 0, 2], 0
    assert shapes(compared(spark, zookeeper_view([ours]), kraft_view([theirs]))) == {
        ("partition", "t-0", "replicas", "DIFFERS")
    }


def test_lists_that_flatten_alike_are_not_alike(spark: SparkSession) -> None:
    """Spark's xxhash64 cannot tell ([1], [2, 3]) from ([1, 2], [3]): no hash stands between the values and us."""
    ours = Partition("t", topic_id(0), 0, [1, 2, 3], isr=[1], adding=[2, 3], leader=1)
    theirs = Partition("t", topic_id(0), 0, [1, 2, 3], isr=[1, 2], adding=[3], leader=1)
    assert shapes(compared(spark, zookeeper_view([ours]), kraft_view([theirs]))) == {
        ("partition", "t-0", "isr", "DIFFERS"),
        ("partition", "t-0", "adding", "DIFFERS"),
    }


def test_a_broker_in_kraft_mode_that_still_has_its_znode_is_a_difference(spark: SparkSession) -> None:
    """Only its absence is expected."""
    report = compared(spark, zookeeper_view(brokers=[0]), kraft_view(brokers=[registration(0, [], migrating=False)]))
    assert shapes(report) == {("broker", "0", "mode", "DIFFERS"), ("broker", "0", "endpoints", "ONLY_ZK")}


def test_a_migrating_broker_must_be_registered_as_its_znode_says(spark: SparkSession) -> None:
    """Endpoints and rack of both, and both must be there."""
    other = replace(registration(1, []), endpoints=("PLAINTEXT://10.0.0.9:9092",), rack="r1")
    report = compared(spark, zookeeper_view(brokers=[0, 1]), kraft_view(brokers=[other, registration(2, [])]))
    assert shapes(report) == {
        ("broker", "0", "mode", "ONLY_ZK"),
        ("broker", "0", "endpoints", "ONLY_ZK"),
        ("broker", "1", "endpoints", "DIFFERS"),
        ("broker", "1", "rack", "ONLY_KRAFT"),
        ("broker", "2", "mode", "ONLY_KRAFT"),
        ("broker", "2", "endpoints", "ONLY_KRAFT"),
    }
    assert len(report.unexcused) == 6


def test_features_are_compared_by_level(spark: SparkSession) -> None:
    """Those of the image itself; level 0 is none, and only metadata.version may be KRaft's alone."""
    kraft = replace(kraft_view(), features={"metadata.version": 21, "group.version": 1, "x.version": 0, "y.version": 2})
    zookeeper = zookeeper_view(entities=[("feature", "y.version", "level", "1")])
    report = compare(spark, zookeeper, kraft, (), offset=100, lag=0, today=TODAY)
    assert shapes(report) == {
        ("feature", "metadata.version", "level", "EXPECTED"),
        ("feature", "group.version", "level", "ONLY_KRAFT"),
        ("feature", "y.version", "level", "DIFFERS"),
    }


# -- acceptance --------------------------------------------------------------------------------------------------
def test_an_accepted_difference_is_excused_by_its_exact_name_alone(spark: SparkSession) -> None:
    """Another class, key or field is not covered; the report keeps the ticket."""
    ours = [("topic-config", "audit", "retention.ms", "1"), ("topic-config", "audit", "segment.ms", "1")]
    theirs = [("topic-config", "audit", "retention.ms", "2"), ("topic-config", "audit", "segment.ms", "2")]
    row = Difference("topic-config", "audit", "retention.ms", DIFFERS, "1", "2")
    near = (replace(row, cls=ONLY_ZK), replace(row, key="audit2"), replace(row, kind="broker-config"))
    accepted = tuple(map(acceptance, (row, *near)))
    report = compared(spark, zookeeper_view(entities=ours), kraft_view(entities=theirs), accepted)
    assert report.differences == (
        replace(row, field="segment.ms"),
        replace(row, cls=DifferenceClass.ACCEPTED, rule="CHG0045931"),
    )
    assert report.counts == {"topic-config": {"ACCEPTED": 1, "DIFFERS": 1}}
    assert [found.field for found in report.unexcused] == ["segment.ms"]


def test_an_acceptance_ends_on_its_day() -> None:
    """From the day of `expires` on it counts as a difference again."""
    entry = acceptance(Difference("topic-config", "a", "b", DIFFERS, "1", "2"), expires="2026-12-01")
    assert current([entry], date(2026, 11, 30)) == (entry,)
    assert current([entry], date(2026, 12, 1)) == ()


def test_an_expired_acceptance_excuses_nothing(spark: SparkSession) -> None:
    """The row comes back as what it is."""
    row = Difference("topic-config", "audit", "retention.ms", DIFFERS, "1", "2")
    views = (
        zookeeper_view(entities=[(row.kind, row.key, row.field, "1")]),
        kraft_view(entities=[(row.kind, row.key, row.field, "2")]),
    )
    expired = (acceptance(row, expires="2026-11-21"),)
    assert compared(spark, *views, expired).unexcused == (row,)


# -- what is not compared, what is cut -------------------------------------------------------------------------------
def test_a_password_that_cannot_be_decoded_is_a_blind_spot_and_no_difference(spark: SparkSession) -> None:
    """It is named in the report, and nothing else is hidden with it."""
    text = "/config/brokers/0: ssl.keystore.password is encoded, and no password.encoder.secret was given to compare it"
    zookeeper = replace(zookeeper_view(), blind_spots=(text,))
    secrets = [("broker-config", broker, "ssl.keystore.password", "hmac:1") for broker in ("0", "1")]
    report = compared(spark, zookeeper, kraft_view(entities=secrets))
    assert shapes(report) == {("broker-config", "1", "ssl.keystore.password", "ONLY_KRAFT")}
    assert report.blind_spots == (text,)


def test_blind_configurations_are_read_from_the_blind_spots() -> None:
    """Both wordings of ZooKeeper's reader; other blind spots name no configuration."""
    spots = (
        "/config/brokers/0: ssl.key.password is encoded, and no password.encoder.secret was given to compare it",
        "/config/brokers/<default> listener.name.x.ssl.key.password: the secret does not fit",
        "/config/users: this identity may not read it",
    )
    assert blind_configs(spots) == {
        ("0", "ssl.key.password"),
        ("<default>", "listener.name.x.ssl.key.password"),
    }


def test_a_cut_list_never_hides_an_unexcused_row(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Excused rows fill the list last; counts stay exact; the cut is named."""
    monkeypatch.setattr(comparison, "MOST_ROWS", 5)
    doomed = [Partition("a-doomed", topic_id(0), number, [0]) for number in range(30)]
    lost = Partition("z-lost", topic_id(1), 0, [0])
    zookeeper = replace(zookeeper_view([*doomed, lost]), pending=PendingWork(deletions=("a-doomed",)))
    report = compared(spark, zookeeper, kraft_view())
    assert report.counts == {"partition": {"EXPECTED": 30, "ONLY_ZK": 1}}
    assert len(report.differences) == 5
    assert [row.key for row in report.unexcused] == ["z-lost-0"]
    assert report.blind_spots == ("26 of 31 differences are counted and not listed",)


def test_a_report_lists_no_more_rows_than_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of a fleet may have more of them in hand; those that nothing excuses come first."""
    monkeypatch.setattr(comparison, "MOST_ROWS", 2)
    row = {"kind": "topic", "key": "a", "field": "", "zookeeper": None, "kraft": "T1"}
    rows = [
        {**row, "cls": cls, "rule": rule} for cls, rule in (("EXPECTED", "R"), ("EXPECTED", "R"), ("ONLY_KRAFT", ""))
    ]
    counted = Counter({("topic", "EXPECTED"): 2, ("topic", "ONLY_KRAFT"): 1})
    report = comparison.report_of(Terms(500, 0), rows, counted, TODAY)
    assert [entry.cls for entry in report.differences] == ["ONLY_KRAFT", "EXPECTED"]
    assert report.blind_spots == ("1 of 3 differences are counted and not listed",)


def test_a_key_that_stands_twice_stops_the_comparison(spark: SparkSession) -> None:
    """Rows that a join multiplies would make false counts: that is a bug of a reader, and is said."""
    twice = [("topic-config", "a", "b", "1"), ("topic-config", "a", "b", "2")]
    with pytest.raises(RuntimeError, match="a key appears twice"):
        compared(spark, zookeeper_view(entities=twice), kraft_view(entities=twice[:1]))


# -- the property ------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Plant:
    """A change of a partition on one side."""

    name: str
    change: Callable[[Partition, Random], None]


PLANTS = (
    Plant("topic_id", lambda p, r: setattr(p, "topic_id", topic_id(r.randint(900, 999)))),
    Plant("replicas", lambda p, _: p.replicas.reverse()),
    Plant("isr", lambda p, r: setattr(p, "isr", p.replicas[: r.randint(0, 2)])),
    Plant("isr order", lambda p, _: setattr(p, "isr", p.replicas[::-1])),
    Plant("adding", lambda p, r: p.adding.append(r.randint(5, 9))),
    Plant("removing", lambda p, r: p.removing.append(r.choice(p.replicas))),
    Plant("leader", lambda p, r: setattr(p, "leader", r.choice([-1, 7]))),
    Plant("leader_epoch", lambda p, r: setattr(p, "leader_epoch", r.randint(4, 9))),
    Plant("recovery_state", lambda p, _: setattr(p, "recovery_state", 1)),
)


def bent_entities(random: Random) -> list[tuple[str, str, str, str]]:
    """The entities of one side: some gone, some changed, one more."""
    rows = [row for row in ENTITIES if random.random() > 0.1]
    rows = [(*row[:3], row[3] + "9") if random.random() < 0.1 else row for row in rows]
    return [*rows, ("topic-config", "t1", "x", "1")] if random.random() < 0.3 else rows


@settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(random=st.randoms(use_true_random=True))
def test_all_planted_differences_are_found_and_no_other(spark: SparkSession, random: Random) -> None:
    """Any mixture of changes, on either side, against the comparison in plain Python."""
    sides: list[list[Partition]] = []
    for _ in range(2):
        partitions = healthy_cluster(topics=8, partitions=10).partitions
        for partition in partitions:
            if random.random() < 0.3:
                random.choice(PLANTS).change(partition, random)
        sides.append([partition for partition in partitions if random.random() > 0.05])
    zookeeper = zookeeper_view(sides[0], bent_entities(random), [0, 1])
    brokers = [registration(0, []), replace(registration(1, []), rack="r")]
    kraft = kraft_view(sides[1], bent_entities(random), brokers)
    expected, equal = reference(zookeeper, replace(kraft, features={}))
    report = compared(spark, zookeeper, kraft)
    assert shapes(report) == expected
    found = Counter({kind: classes.get("EQUAL", 0) for kind, classes in report.counts.items()})
    assert +found == equal
    unequal = sum(n for classes in report.counts.values() for cls, n in classes.items() if cls != "EQUAL")
    assert unequal == len(expected)


def test_racks_are_part_of_a_broker(spark: SparkSession) -> None:
    """A rack that one side lacks would move replicas later."""
    zookeeper = zookeeper_view(brokers=[0])
    racked = replace(zookeeper.brokers[NodeId(0)], rack="r1")
    zookeeper = replace(zookeeper, brokers={NodeId(0): racked})
    report = compared(spark, zookeeper, kraft_view(brokers=[registration(0, [])]))
    assert shapes(report) == {("broker", "0", "rack", "ONLY_ZK")}


# -- acceptances without effect --------------------------------------------------------------------------------------
def test_acceptances_that_excuse_nothing_are_told(spark: SparkSession) -> None:
    """One is used, one names another field, one has expired; only the last two are told."""
    row = Difference("topic-config", "audit", "retention.ms", DIFFERS, "1", "2")
    views = (
        zookeeper_view(entities=[(row.kind, row.key, row.field, "1")]),
        kraft_view(entities=[(row.kind, row.key, row.field, "2")]),
    )
    used, unused = acceptance(row), acceptance(replace(row, field="segment.ms"))
    expired = acceptance(replace(row, key="old"), expires="2026-11-21")
    report = compared(spark, *views, (used, unused, expired))
    assert [(idle.entry, idle.why.value) for idle in report.idle] == [(unused, "unused"), (expired, "expired")]


def test_a_cut_list_calls_no_acceptance_unused() -> None:
    """Excused rows are cut first: what is not listed may still be used."""
    row = Difference("topic-config", "audit", "retention.ms", DIFFERS, "1", "2")
    entries = (acceptance(row), acceptance(row, expires="2026-01-01"))
    assert [idle.why.value for idle in idle_acceptances(entries, (), TODAY, whole=False)] == ["expired"]
    assert [idle.why.value for idle in idle_acceptances(entries, (), TODAY, whole=True)] == ["unused", "expired"]


FIELDS = len(PARTITION_FIELDS)


def partition(cluster: int, number: int) -> dict[str, object]:
    """A partition; what is compared of it does not matter here."""
    return {"cluster": cluster, "topic": "a", "partition": number}


def entity(cluster: int, kind: str, name: str) -> dict[str, object]:
    """Something that is no partition."""
    return {"cluster": cluster, "kind": kind, "key": "k", "name": name, "value": "v"}


def row(kind: str, field: str, zookeeper: str | None, kraft: str | None, cluster: int = 0) -> dict[str, object]:
    """A difference."""
    return {"cluster": cluster, "kind": kind, "field": field, "zookeeper": zookeeper, "kraft": kraft}


def test_rows_are_counted_by_cluster_kind_and_side() -> None:
    """Kinds that one side alone has, too; a table without rows counts nothing."""
    partitions = [pa.Table.from_pylist([partition(0, 0), partition(0, 1), partition(2, 0)], PARTITIONS)]
    partitions.append(pa.Table.from_pylist([partition(0, 0)], PARTITIONS))
    entities = pa.Table.from_pylist([entity(1, "broker", "x"), entity(1, "feature", "y")], frames.ENTITIES)
    given = rows_given([(partitions[0], partitions[1]), (entities, frames.ENTITIES.empty_table())])
    assert given == {
        (0, "partition"): (2, 1),
        (2, "partition"): (1, 0),
        (1, "broker"): (1, 0),
        (1, "feature"): (1, 0),
    }


def test_what_is_not_listed_is_equal_field_by_field() -> None:
    """A partition that one side lacks has no equal field; one that differs in a field has all the others."""
    given = {(0, "partition"): (3, 3), (0, "broker"): (2, 1), (1, "partition"): (1, 1)}
    rows = [
        row("partition", "", "replicas 1", None),
        row("partition", "", None, "replicas 1"),
        row("partition", "leader", None, "1"),
        row("broker", "rack", "a", None),
    ]
    assert equal_fields(given, rows) == Counter(
        {(0, "partition"): 2 * FIELDS - 1, (0, "broker"): 1, (1, "partition"): FIELDS}
    )


def test_rows_that_do_not_go_with_what_differs_are_an_error() -> None:
    """A row that appears twice on a side is neither alone nor equal."""
    with pytest.raises(RuntimeError, match=r"2 and 1 rows of \(0, 'partition'\) .* a key appears twice"):
        equal_fields({(0, "partition"): (2, 1)}, [])
