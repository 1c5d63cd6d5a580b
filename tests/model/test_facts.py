"""The ledger's facts are what the views say, and nothing that they do not say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.facts import build, gather
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from tests.testing.clusters import (
    Cluster,
    Partition,
    columns_of,
    directory,
    directory_id,
    disks_of,
    healthy_cluster,
    kraft_view,
    registration,
    topic_id,
    zookeeper_view,
)


def ledger_of(cluster: Cluster, *, after_copy: bool = True, finalized: bool = False) -> Ledger:
    """The ledger of a cluster's views."""
    return build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=after_copy, finalized=finalized)


def row_of(ledger: Ledger, topic: str, partition: int, broker: int) -> LedgerRow:
    """The one row of that replica."""
    (found,) = [r for r in ledger.rows if (r.topic, r.partition, r.broker) == (topic, partition, broker)]
    return found


def others(ledger: Ledger, row: LedgerRow) -> set[ReplicaState]:
    """The states of all other rows."""
    return {entry.state for entry in ledger.rows if entry != row}


def test_a_cluster_in_which_all_views_agree_is_verified_whole() -> None:
    """Every replica of a healthy cluster after the copy is VERIFIED, once."""
    ledger = ledger_of(healthy_cluster())
    assert ledger.counts() == {"VERIFIED": 18}
    assert ledger.offset == 100
    assert ledger.engine == "pure"
    assert ledger.unknown == ()
    assert len({(r.topic_id, r.partition, r.broker) for r in ledger.rows}) == 18


def test_rows_are_in_the_order_of_topic_partition_and_broker() -> None:
    """Readers and the other engine see one order."""
    keys = [(r.topic, r.partition, r.broker) for r in ledger_of(healthy_cluster()).rows]
    assert keys == sorted(keys)


def test_before_the_copy_a_healthy_replica_is_migrating() -> None:
    """ZooKeeper and disks suffice, and the metadata is not asked even where it is known."""
    cluster = healthy_cluster()
    for kraft in (cluster.kraft, Unknown("no controllers yet")):
        ledger = build(cluster.zookeeper, kraft, cluster.disks, after_copy=False, finalized=False)
        assert ledger.counts() == {"MIGRATING": 18}
        assert ledger.offset == -1
        assert ledger.unknown == ()


def test_before_the_copy_a_registration_already_counts() -> None:
    """A broker that registered without the directory of a replica is found while it is still in ZooKeeper mode."""
    cluster = healthy_cluster()
    kraft = kraft_view(brokers=[registration(0, [directory_id(0, 1), directory_id(0, 2)])])
    ledger = build(cluster.zookeeper, kraft, cluster.disks, after_copy=False, finalized=False)
    found = {r.state for r in ledger.of(0) if r.on_disk == directory_id(0, 0)}
    assert found == {ReplicaState.NOT_REGISTERED}
    assert {r.state for r in ledger.of(1)} == {ReplicaState.MIGRATING}


@pytest.mark.parametrize(
    ("reserved", "state"),
    [
        (MIGRATING, ReplicaState.MIGRATING),
        (UNASSIGNED, ReplicaState.UNASSIGNED),
        (LOST, ReplicaState.LOST),
        (directory_id(0, 2), ReplicaState.MISMATCH),
    ],
)
def test_what_the_metadata_says_is_the_state_of_that_replica_alone(reserved: str, state: ReplicaState) -> None:
    """A reserved or another directory in the metadata marks one row."""
    cluster = healthy_cluster()
    cluster.partitions[0].directories[0] = reserved
    ledger = ledger_of(cluster)
    row = row_of(ledger, "t0", 0, 0)
    assert (row.state, row.in_metadata, row.on_disk) == (state, reserved, directory_id(0, 0))
    assert others(ledger, row) == {ReplicaState.VERIFIED}


def test_a_folder_with_another_topic_id_is_no_copy_of_this_replica() -> None:
    """Kafka would rename it `-stray`: the replica is not on disk."""
    cluster = healthy_cluster()
    cluster.folders[0, 0][0] = ("t0", 0, topic_id(99), "current")
    row = row_of(ledger_of(cluster), "t0", 0, 0)
    assert (row.state, row.on_disk) == (ReplicaState.NOT_ON_DISK, "")


def test_a_folder_without_partition_metadata_is_no_copy() -> None:
    """A log without topic id cannot be proven to be this topic's."""
    cluster = healthy_cluster()
    cluster.folders[0, 0][0] = ("t0", 0, "", "current")
    assert row_of(ledger_of(cluster), "t0", 0, 0).state is ReplicaState.NOT_ON_DISK


def test_an_unreadable_partition_metadata_is_unknown_not_absent() -> None:
    """What cannot be read is neither a copy nor none."""
    cluster = healthy_cluster()
    cluster.folders[0, 0][0] = ("t0", 0, "?", "current")
    row = row_of(ledger_of(cluster), "t0", 0, 0)
    assert (row.state, row.why) == (ReplicaState.UNKNOWN, "disks: a partition.metadata cannot be read")


def test_two_current_copies_are_found_and_an_old_topics_folder_is_not_one() -> None:
    """Two folders of one topic id are TWO COPIES; a second folder of another id is not."""
    cluster = healthy_cluster()
    cluster.folders[0, 1].append(("t0", 0, topic_id(99), "current"))
    assert row_of(ledger_of(cluster), "t0", 0, 0).state is ReplicaState.VERIFIED
    cluster.folders[0, 1].append(("t0", 0, topic_id(0), "current"))
    row = row_of(ledger_of(cluster), "t0", 0, 0)
    assert row.state is ReplicaState.TWO_COPIES
    assert row.on_disk == f"{directory_id(0, 0)},{directory_id(0, 1)}"


def test_a_copy_in_a_broken_directory_is_no_copy() -> None:
    """Only healthy directories hold current copies."""
    cluster = healthy_cluster()
    folder = ("t0", 0, topic_id(0), "current")
    broken = directory("/data/b0/d0", directory_id(0, 0), [folder], problem="Input/output error")
    ledger = build(
        cluster.zookeeper, cluster.kraft, {**cluster.disks, **disks_of({0: [broken]})}, after_copy=True, finalized=False
    )
    assert {r.state for r in ledger.of(0)} == {ReplicaState.NOT_ON_DISK}


@pytest.mark.parametrize(
    ("kind", "state"),
    [("future", ReplicaState.MOVING), ("deleted", ReplicaState.VERIFIED), ("stray", ReplicaState.VERIFIED)],
)
def test_only_a_future_copy_makes_a_replica_moving(kind: str, state: ReplicaState) -> None:
    """Deleted and stray folders are no copies."""
    cluster = healthy_cluster()
    cluster.folders[0, 1].append(("t0", 0, topic_id(0), kind))
    assert row_of(ledger_of(cluster), "t0", 0, 0).state is state


def test_a_replica_that_the_metadata_lacks_is_a_mismatch_not_a_migrating_one() -> None:
    """After the copy a missing replica is not mistaken for one that only waits for its directory."""
    cluster = healthy_cluster()
    zookeeper = cluster.zookeeper
    del cluster.partitions[0]
    ledger = build(zookeeper, cluster.kraft, healthy_cluster().disks, after_copy=True, finalized=False)
    row = row_of(ledger, "t0", 0, 0)
    assert (row.state, row.in_metadata) == (ReplicaState.MISMATCH, "")
    assert ledger.counts() == {"MISMATCH": 3, "VERIFIED": 15}


def test_a_replica_that_the_metadata_alone_names_has_a_row() -> None:
    """It is the broker's too: it can be no proof that ZooKeeper lacks it."""
    cluster = healthy_cluster()
    kraft = cluster.kraft
    del cluster.partitions[0]
    ledger = build(cluster.zookeeper, kraft, healthy_cluster().disks, after_copy=True, finalized=False)
    assert ledger.counts() == {"MISMATCH": 3, "VERIFIED": 15}
    assert row_of(ledger, "t0", 0, 0).in_metadata == directory_id(0, 0)


def test_a_topic_made_anew_is_two_topics() -> None:
    """Rows go by topic id: ZooKeeper's topic and the metadata's of the same name do not vouch for each other."""
    cluster = healthy_cluster(topics=1, partitions=1)
    zookeeper = cluster.zookeeper
    cluster.partitions[0].topic_id = topic_id(50)
    ledger = build(zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    assert ledger.counts() == {"NOT ON DISK": 3, "MISMATCH": 3}


def test_after_finalize_the_metadata_alone_seeds_the_rows() -> None:
    """ZooKeeper may be gone, or frozen and wrong."""
    cluster = healthy_cluster()
    for zookeeper in (Unknown("stopped"), zookeeper_view([Partition("old", topic_id(70), 0, [0])])):
        ledger = build(zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=True)
        assert ledger.counts() == {"VERIFIED": 18}
        assert ledger.unknown == ()


@pytest.mark.parametrize("view", ["zookeeper", "kraft", "disks"])
def test_an_unknown_view_makes_every_row_unknown_and_is_named(view: str) -> None:
    """No row is decided without a view that it needs; and the ledger says that rows may be missing."""
    cluster = healthy_cluster()
    views = {"zookeeper": cluster.zookeeper, "kraft": cluster.kraft, "disks": cluster.disks, view: Unknown("no answer")}
    ledger = build(views["zookeeper"], views["kraft"], views["disks"], after_copy=True, finalized=False)  # type: ignore[arg-type]
    assert ledger.counts() == {"UNKNOWN": 18}
    assert ledger.unknown == (f"{view}: no answer",)
    assert {row.why for row in ledger.rows} == {f"{view}: no answer"}


def test_nothing_known_is_no_rows_and_says_so() -> None:
    """An empty ledger without views is not an empty cluster."""
    nothing = Unknown("no network")
    ledger = build(nothing, nothing, nothing, after_copy=True, finalized=False)
    assert ledger.rows == ()
    assert ledger.unknown == ("zookeeper: no network", "kraft: no network", "disks: no network")


def test_one_unknown_broker_makes_its_own_rows_unknown() -> None:
    """The others keep their states; a broker that was not looked at is as unknown as one that did not answer."""
    cluster = healthy_cluster()
    disks = cluster.disks
    disks[NodeId(1)] = Unknown("ssh: timed out")
    del disks[NodeId(2)]
    ledger = build(cluster.zookeeper, cluster.kraft, disks, after_copy=True, finalized=False)
    assert {row.why for row in ledger.of(1)} == {"disks: ssh: timed out"}
    assert {row.why for row in ledger.of(2)} == {"disks: broker 2 was not looked at"}
    assert {row.state for row in ledger.of(0)} == {ReplicaState.VERIFIED}
    assert ledger.unknown == ()


def test_a_topic_without_id_is_unknown() -> None:
    """Without a topic id no folder can be its copy, and "" equals nothing."""
    zookeeper = zookeeper_view([Partition("t0", "", 0, [0])])
    disks = disks_of({0: [directory("/d0", directory_id(0, 0), [("t0", 0, "", "current")])]})
    (row,) = build(zookeeper, Unknown("none"), disks, after_copy=False, finalized=False).rows
    assert (row.state, row.why) == (ReplicaState.UNKNOWN, "zookeeper: the topic has no topic_id")


def test_a_broker_without_registration_or_log_dirs_is_never_verified() -> None:
    """After the copy a replica needs a registration that holds its directory."""
    cluster = healthy_cluster()
    kraft = cluster.kraft
    bare = replace(kraft.brokers[NodeId(0)], log_dirs=frozenset())
    brokers = {NodeId(0): bare, NodeId(1): kraft.brokers[NodeId(1)]}
    ledger = build(cluster.zookeeper, replace(kraft, brokers=brokers), cluster.disks, after_copy=True, finalized=False)
    assert {row.state for row in ledger.of(0)} == {ReplicaState.MISMATCH}
    assert {row.state for row in ledger.of(2)} == {ReplicaState.MISMATCH}
    assert {row.state for row in ledger.of(1)} == {ReplicaState.VERIFIED}


def test_a_short_list_of_directories_vouches_for_nobody() -> None:
    """A replica without an entry in the metadata's list has no directory there."""
    cluster = healthy_cluster(topics=1, partitions=1)
    cluster.partitions[0].directories = cluster.partitions[0].directories[:1]
    assert ledger_of(cluster).counts() == {"MISMATCH": 2, "VERIFIED": 1}


def test_facts_say_where_both_lists_name_the_replica() -> None:
    """`listed` holds the comparison of the two replica lists."""
    cluster = healthy_cluster(topics=1, partitions=2)
    kraft = replace(cluster.kraft, partitions=columns_of(cluster.partitions[1:], directories=True))
    facts = list(gather(cluster.zookeeper, kraft, cluster.disks, after_copy=True, finalized=False))
    assert {entry.partition: entry.listed for entry in facts} == {0: False, 1: True}
