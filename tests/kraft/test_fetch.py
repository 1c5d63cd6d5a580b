"""The live KRaft view: what is committed and nothing else, whoever leads."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from migrate.errors import (
    AccessRefused,
    AnswerBroken,
    BatchCrcError,
    KafkaRefused,
    MetadataBehind,
    MetadataMoved,
    MigrateError,
    NoActiveController,
    OtherCluster,
    Retryable,
    TlsRefused,
)
from migrate.kafka.connection import Connection, Limits
from migrate.kafka.controller import ActiveController
from migrate.kraft import fetch
from migrate.kraft.fetch import MetadataReader
from migrate.model.ids import METADATA_TOPIC
from migrate.model.inventory import Access
from migrate.model.secrets import Digester
from migrate.model.views import BrokerDisks, KraftView
from migrate.protocol.loader import Struct, Values
from migrate.protocol.messages import DESCRIBE_QUORUM
from migrate.protocol.records import BEGIN_TRANSACTION, END_TRANSACTION
from tests.kafka.fake_node import Close
from tests.kraft.fake_quorum import CLUSTER_ID, FakeQuorum, Stored, running, topic
from tests.testing.kraft_cluster import BROKER, KraftCluster, wait_for
from tests.testing.kraft_cluster import CLUSTER_ID as REAL_CLUSTER_ID
from tests.testing.this_host import disks_here

QUICK = Limits(connect_seconds=1, answer_seconds=1)
ABORT: tuple[Struct, int, Values] = (END_TRANSACTION, 0, {})
BEGIN = (BEGIN_TRANSACTION, 0, {"name": "ZK Migration"})


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    """Three controllers with three committed topics."""
    with running() as found:
        found.append(topic(1), topic(2))
        found.append(topic(3))
        yield found


def reader_of(quorum: FakeQuorum, patience: float = 2.0, expect: str | None = CLUSTER_ID) -> MetadataReader:
    """A reader of it."""
    return MetadataReader(quorum.inventory(expect), Digester(), limits=QUICK, patience=patience)


def topics(view: KraftView) -> list[str]:
    """Names of the topics in the image."""
    return [key for kind, key in zip(view.entities.kind, view.entities.key, strict=True) if kind == "topic"]


# -- what is committed -------------------------------------------------------------------------------------------
def test_the_image_stands_at_the_leaders_high_watermark(quorum: FakeQuorum) -> None:
    """And says where it comes from, at which offset and epoch, and that all of it is committed."""
    with reader_of(quorum) as reader:
        view = reader.view()
    assert topics(view) == ["t1", "t2", "t3"]
    assert (view.offset, view.epoch, view.high_watermark, view.cluster_id) == (2, 1, 3, CLUSTER_ID)
    assert view.committed
    assert view.source == f"Fetch from controller 3000 at {quorum.nodes[3000].address}"


def test_what_is_not_committed_is_not_seen(quorum: FakeQuorum) -> None:
    """The leader serves it; a batch that straddles the high watermark is cut inside."""
    quorum.append(topic(4), topic(5), commit=False)
    quorum.high_watermark = 4
    with reader_of(quorum) as reader:
        view = reader.view()
        assert topics(view) == ["t1", "t2", "t3", "t4"]
        assert (view.offset, view.high_watermark) == (3, 4)
        quorum.high_watermark = 5
        assert topics(reader.view()) == ["t1", "t2", "t3", "t4", "t5"]


def test_what_was_never_committed_may_vanish(quorum: FakeQuorum) -> None:
    """The next leader writes something else at the same offset: the image has only that."""
    quorum.append(topic(4), commit=False)
    with reader_of(quorum) as reader:
        assert topics(reader.view()) == ["t1", "t2", "t3"]
        quorum.batches.pop()
        quorum.leader, quorum.epoch = 3002, 2
        quorum.append(topic(5))
        view = reader.view()
    assert topics(view) == ["t1", "t2", "t3", "t5"]
    assert (view.offset, view.epoch) == (3, 2)


def test_an_open_transaction_is_not_in_the_image(quorum: FakeQuorum) -> None:
    """Committed or not: the copy of a whole cluster is one transaction, and shows when it ends."""
    quorum.append(BEGIN, topic(4))
    with reader_of(quorum) as reader:
        view = reader.view()
        assert (topics(view), view.offset, view.high_watermark) == (["t1", "t2", "t3"], 2, 5)
        quorum.append(topic(5), ABORT)
        view = reader.view()
        assert (topics(view), view.offset) == (["t1", "t2", "t3", "t4", "t5"], 6)


@pytest.mark.slow
def test_a_leader_without_a_high_watermark_is_asked_again(quorum: FakeQuorum) -> None:
    """A new leader knows none until a majority has fetched; nothing is shown on its word alone."""
    quorum.high_watermark = -1
    with reader_of(quorum, patience=0.3) as reader:
        with pytest.raises(MetadataMoved, match="no high watermark yet"):
            reader.view()
        quorum.high_watermark = 2
        assert topics(reader.view()) == ["t1", "t2"]


def test_a_high_watermark_that_falls_back_takes_nothing_back(quorum: FakeQuorum) -> None:
    """What was committed stays committed, even if a new leader does not know so yet."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.high_watermark = 1
        view = reader.view()
    assert (view.offset, view.high_watermark, view.committed) == (2, 3, True)


# -- going on ----------------------------------------------------------------------------------------------------
def test_a_second_view_asks_only_for_what_is_new(quorum: FakeQuorum) -> None:
    """From the next offset, with the epoch of the last batch, over the same connection."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.append(topic(4))
        assert topics(reader.view()) == ["t1", "t2", "t3", "t4"]
    last = quorum.asked("Fetch")[-1][1]["topics"][0]["partitions"][0]
    assert (last["fetchOffset"], last["lastFetchedEpoch"], last["currentLeaderEpoch"]) == (3, 1, 1)
    assert [node.connections for node in quorum.nodes.values()] == [1, 0, 0]


def test_an_answer_that_begins_below_the_asked_offset_is_no_repetition(quorum: FakeQuorum) -> None:
    """Batches come whole: records that were applied before are passed over."""
    quorum.append(topic(4), topic(5), topic(6), commit=False)
    with reader_of(quorum) as reader:
        for committed in (4, 5, 6):
            quorum.high_watermark = committed
            assert reader.view().offset == committed - 1


@pytest.mark.slow
def test_an_offset_can_be_waited_for(quorum: FakeQuorum) -> None:
    """It comes while we wait; without it the wait ends with an error that says how far the log stands."""
    with reader_of(quorum, patience=0.3) as reader:
        with pytest.raises(MetadataBehind, match="is at offset 2, 9 was waited for"):
            reader.view(min_offset=9)
        quorum.append(*(topic(number) for number in range(4, 11)))
        assert reader.view(min_offset=9).offset == 9
        assert reader.view(min_offset=1).offset == 9


# -- who leads ---------------------------------------------------------------------------------------------------
def test_a_follower_names_the_leader_and_its_epoch(quorum: FakeQuorum) -> None:
    """Fetch alone finds it: no DESCRIBE is needed."""
    quorum.leader, quorum.epoch = 3002, 7
    quorum.append(topic(4))
    with reader_of(quorum) as reader:
        assert "controller 3002" in reader.view().source
    assert {name for node in quorum.nodes.values() for name, _, _ in node.seen} == {"ApiVersions", "Fetch"}


def test_an_election_between_two_views_is_followed(quorum: FakeQuorum) -> None:
    """What was read is kept: the new leader is asked for the rest only."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.leader, quorum.epoch = 3001, 2
        quorum.append(topic(4))
        view = reader.view()
    assert topics(view) == ["t1", "t2", "t3", "t4"]
    assert "controller 3001" in view.source
    assert all(
        body["topics"][0]["partitions"][0]["fetchOffset"] == 3 for node, body in quorum.asked("Fetch") if node == 3001
    )


def test_a_dead_leader_is_left_for_the_others(quorum: FakeQuorum) -> None:
    """Closing mid-request and refusing connections, while another leads already."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.nodes[3000].__exit__(None, None, None)
        quorum.leader, quorum.epoch = 3002, 2
        quorum.append(topic(4))
        assert topics(reader.view()) == ["t1", "t2", "t3", "t4"]


def test_without_any_controller_the_reason_names_each(quorum: FakeQuorum) -> None:
    """At once: before the controllers exist, every look meets this."""
    for node in quorum.nodes.values():
        node.__exit__(None, None, None)
    began = time.monotonic()
    with reader_of(quorum, patience=60) as reader, pytest.raises(NoActiveController) as caught:
        reader.view()
    assert time.monotonic() - began < 30
    assert all(f"{id_}: no connection" in caught.value.why for id_ in (3000, 3001, 3002))


def test_a_controller_that_refuses_the_connection_keeps_nobody_from_the_others(
    quorum: FakeQuorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expired certificate of one is not asked to lead; where all refuse, the refusal is told, and nothing waits."""
    refusing = {quorum.nodes[3000].address}

    def connection(address: str, *others: Any) -> Connection:
        if address in refusing:
            raise TlsRefused("its certificate has expired", where=address)
        return Connection(address, *others)

    monkeypatch.setattr(fetch, "Connection", connection)
    quorum.leader, quorum.epoch = 3002, 2
    with reader_of(quorum) as reader:
        assert topics(reader.view()) == ["t1", "t2", "t3"]
        reader.close()
        refusing |= {node.address for node in quorum.nodes.values()}
        with pytest.raises(TlsRefused, match="expired"):
            reader.view()


@pytest.mark.slow
def test_without_a_leader_it_asks_until_its_patience_ends(quorum: FakeQuorum) -> None:
    """In the middle of an election every controller says that it knows none."""
    quorum.leader = -1
    with reader_of(quorum, patience=0.3) as reader:
        with pytest.raises(MetadataMoved, match="knows no leader") as caught:
            reader.view()
        assert isinstance(caught.value, Retryable)
        quorum.leader = 3001
        assert topics(reader.view()) == ["t1", "t2", "t3"]


def test_a_leader_that_the_inventory_does_not_have_is_named(quorum: FakeQuorum) -> None:
    """A controller that was added under a new id: nobody waits for an election that was long ago."""
    quorum.leader = 3009
    with reader_of(quorum, patience=0.1) as reader, pytest.raises(MetadataMoved) as caught:
        reader.view()
    assert caught.value.what.startswith("controller 3009 leads, and is not in the inventory: add it to the inventory")


def test_where_an_answer_names_no_leader_its_zeros_are_no_controllers_id(quorum: FakeQuorum) -> None:
    """Kafka's schema of FetchSnapshot has no -1 for what is left out; the first election makes epoch 1."""
    quorum.compact(topic(1))
    zeros = {"index": 0, "errorCode": 6, "snapshotId": {"endOffset": 0, "epoch": 0}}
    zeros |= {"size": 0, "position": 0, "unalignedRecords": b""}
    said = {"errorCode": 0, "topics": [{"name": METADATA_TOPIC, "partitions": [zeros]}]}
    quorum.snapshot_answers = [said] * 100
    with reader_of(quorum, patience=0.1) as reader, pytest.raises(MetadataMoved, match="knows no leader"):
        reader.view()


# -- snapshots ---------------------------------------------------------------------------------------------------
def test_where_the_log_begins_with_a_snapshot_it_is_read_first(quorum: FakeQuorum) -> None:
    """In parts that end anywhere, then the log behind it."""
    quorum.compact(topic(1), topic(2), topic(3))
    quorum.append(topic(4))
    quorum.part_bytes = 37
    with reader_of(quorum) as reader:
        view = reader.view()
    assert topics(view) == ["t1", "t2", "t3", "t4"]
    assert (view.offset, view.high_watermark) == (3, 4)
    assert len(quorum.asked("FetchSnapshot")) > 3


def test_a_snapshot_without_a_log_behind_it_is_a_whole_view(quorum: FakeQuorum) -> None:
    """At rest the log may end where the snapshot does."""
    quorum.compact(topic(1), topic(2), topic(3))
    with reader_of(quorum) as reader:
        view = reader.view()
    assert (topics(view), view.offset, view.committed) == (["t1", "t2", "t3"], 2, True)


def test_a_reader_that_fell_behind_takes_the_snapshot(quorum: FakeQuorum) -> None:
    """The log was cut above where it stopped: it begins anew from the snapshot."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.append(topic(4), topic(5))
        quorum.compact(topic(1), topic(4), topic(5))
        view = reader.view()
    assert (topics(view), view.offset) == (["t1", "t4", "t5"], 4)


@pytest.mark.slow
def test_a_snapshot_that_is_gone_is_asked_for_again(quorum: FakeQuorum) -> None:
    """Kafka answers -1 without topics where it should say 98; a leader that changed says so."""
    quorum.compact(topic(1), topic(2), topic(3))
    quorum.snapshot_answers += [{"errorCode": -1, "topics": []}, {"errorCode": 98, "topics": []}, Close()]
    with reader_of(quorum) as reader:
        assert topics(reader.view()) == ["t1", "t2", "t3"]


@pytest.mark.parametrize(("position", "part"), [(7, b"x"), (0, b"")])
def test_a_part_that_does_not_fit_is_broken(quorum: FakeQuorum, position: int, part: bytes) -> None:
    """Parts are joined in order or not at all, and an empty one would never end."""
    quorum.compact(topic(1))
    entry = {"index": 0, "errorCode": 0, "snapshotId": {"endOffset": 3, "epoch": 1}, "size": 100}
    said = [{"name": "__cluster_metadata", "partitions": [entry | {"position": position, "unalignedRecords": part}]}]
    quorum.snapshot_answers.append({"errorCode": 0, "topics": said})
    with reader_of(quorum) as reader:
        with pytest.raises(AnswerBroken, match="of 100 came for 0"):
            reader.view()
        assert topics(reader.view()) == ["t1"]


# -- faults ------------------------------------------------------------------------------------------------------
def test_a_log_that_parted_ways_is_read_anew(quorum: FakeQuorum) -> None:
    """Controllers that were formatted again: nothing of the old image stays."""
    with reader_of(quorum) as reader:
        assert reader.view().offset == 2
        quorum.batches.clear()
        quorum.high_watermark, quorum.epoch = 0, 1
        quorum.append(topic(9))
        view = reader.view()
    assert (topics(view), view.offset, view.high_watermark) == (["t9"], 0, 1)


@pytest.mark.parametrize("top", [True, False])
def test_a_quorum_that_was_formatted_anew_refuses_the_old_epoch_and_is_read_anew(quorum: FakeQuorum, top: bool) -> None:
    """INVALID_REQUEST is what a real one answers to an epoch that it has not reached: it would never pass."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.batches.clear()
        quorum.high_watermark, quorum.epoch = 0, 1
        quorum.append(topic(9))
        quorum.fetch_answers.append(answered(0, 42) if top else answered(42))
        view = reader.view()
    assert (topics(view), view.offset) == (["t9"], 0)


def test_while_no_controller_runs_what_was_read_is_forgotten(quorum: FakeQuorum) -> None:
    """A quorum that was formatted meanwhile may look like the old one's sequel."""
    with reader_of(quorum) as reader:
        reader.view()
        asked = reader._order
        reader._order = []
        reader.close()
        with pytest.raises(NoActiveController):
            reader.view()
        reader._order = asked
        quorum.batches.clear()
        for number in range(6, 10):
            quorum.append(topic(number))
        assert topics(reader.view()) == ["t6", "t7", "t8", "t9"]


def test_a_reset_forgets_everything(quorum: FakeQuorum) -> None:
    """For one who knows that the controllers were formatted, where their new log looks like the old one's sequel."""
    with reader_of(quorum) as reader:
        reader.view()
        quorum.batches.clear()
        for number in range(6, 10):
            quorum.append(topic(number))
        reader.reset()
        assert topics(reader.view()) == ["t6", "t7", "t8", "t9"]


def test_a_broken_batch_is_never_applied(quorum: FakeQuorum) -> None:
    """From the beginning it is an error; later the log is read anew once, and then it is one."""
    good = quorum.batches[1].raw
    bad = good[:-1] + bytes([good[-1] ^ 1])
    with reader_of(quorum, patience=0.5) as reader:
        quorum.batches[1].raw = bad
        with pytest.raises(BatchCrcError):
            reader.view()
        quorum.batches[1].raw = good
        assert topics(reader.view()) == ["t1", "t2", "t3"]
        quorum.append(topic(4))
        broken = quorum.batches[2]
        quorum.batches[2] = Stored(broken.base, broken.last, 1, broken.raw[:-1] + b"\x7f")
        with pytest.raises(BatchCrcError):
            reader.view()
        quorum.batches[2] = broken
        assert topics(reader.view()) == ["t1", "t2", "t3", "t4"]


def answered(error: int, top: int = 0) -> dict[str, object]:
    """A Fetch answer with an error."""
    entry = {"partitionIndex": 0, "errorCode": error, "highWatermark": -1, "abortedTransactions": None, "records": b""}
    return {"errorCode": top, "responses": [{"topicId": "A" * 22, "partitions": [entry]}]}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (answered(0, 31), AccessRefused),
        (answered(31), AccessRefused),
        (answered(0, 42), KafkaRefused),
        (answered(42), KafkaRefused),
        (answered(0, 104), OtherCluster),
    ],
)
def test_refusals_that_asking_again_does_not_cure_end_at_once(
    quorum: FakeQuorum, said: dict[str, object], kind: type[MigrateError]
) -> None:
    """A missing right, another cluster: told after one request; the next view tries again."""
    quorum.fetch_answers.append(said)
    with reader_of(quorum) as reader:
        with pytest.raises(kind) as caught:
            reader.view()
        assert len(quorum.asked("Fetch")) == 1
        assert not isinstance(caught.value, Retryable)
        assert topics(reader.view()) == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    "said", [answered(0, -1), answered(8), answered(5), {"errorCode": 0, "responses": []}, Close()]
)
def test_passing_troubles_are_passed_over(quorum: FakeQuorum, said: object) -> None:
    """Starting and stopping controllers answer such things; the view comes all the same."""
    quorum.fetch_answers.append(said)  # type: ignore[arg-type]
    with reader_of(quorum) as reader:
        assert topics(reader.view()) == ["t1", "t2", "t3"]


def test_the_cluster_id_is_asked_for_where_none_is_expected(quorum: FakeQuorum) -> None:
    """By DescribeCluster; where nobody may tell, the error says what to put where."""
    said = {"errorCode": 0, "clusterId": "of-the-node", "controllerId": 3000, "brokers": []}
    quorum.nodes[3000].scripts["DescribeCluster"] = lambda _version, _body: dict(said)
    with reader_of(quorum, expect=None) as reader, pytest.raises(OtherCluster, match="is not of-the-node"):
        reader.view()
    said["clusterId"] = CLUSTER_ID
    with reader_of(quorum, expect=None) as reader:
        assert reader.view().cluster_id == CLUSTER_ID
    said["errorCode"] = 31
    with reader_of(quorum, expect=None) as reader, pytest.raises(AccessRefused, match="cluster's id") as caught:
        reader.view()
    assert "inventory" in caught.value.next_step


# -- on real Kafka -----------------------------------------------------------------------------------------------
def directories(view: KraftView) -> dict[tuple[str, int], str]:
    """(topic, partition) -> directory id, of one replica each."""
    rows = zip(view.partitions.topic, view.partitions.partition, view.partitions.directories, strict=True)
    return {(name, partition): found[0] for name, partition, found in rows}


def on_disk(cluster: KraftCluster) -> dict[tuple[str, int], str]:
    """The same from the broker's disks."""
    paths = [str(cluster.data(BROKER, index)) for index in range(3)]
    disks = disks_here().look(BROKER, paths, None)
    assert isinstance(disks, BrokerDisks)
    return {
        (name, partition): str(directory.id)
        for directory in disks.directories
        for name, partition in zip(directory.replicas.topic, directory.replicas.partition, strict=True)
    }


def observers(cluster: KraftCluster) -> set[int]:
    """Who reads the metadata without a vote, as the leader tells it."""
    connection, _ = ActiveController(cluster.inventory).connect()
    wanted = {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}
    with contextlib.closing(connection):
        ((only,),) = (topic["partitions"] for topic in connection.call(DESCRIBE_QUORUM, wanted)["topics"])
    return {entry["replicaId"] for entry in only["observers"]}


@pytest.mark.kafka
def test_a_real_log_gives_the_directories_that_are_on_the_disks(kraft_cluster: KraftCluster) -> None:
    """Registration, log directories and each replica's directory: what no admin request shows."""
    kraft_cluster.create_topic("fetched", 6)
    with MetadataReader(kraft_cluster.inventory, Digester()) as reader:
        wait_for("directories as on disk", lambda: directories(reader.view()) == on_disk(kraft_cluster))
        view = reader.view()
        assert observers(kraft_cluster) == {BROKER}, "a reader leaves no trace"
    assert view.committed
    assert view.cluster_id == REAL_CLUSTER_ID
    assert view.features["metadata.version"] == 21
    registration = view.brokers[BROKER]
    assert registration.log_dirs == {kraft_cluster.directory_id(BROKER, index) for index in range(3)}
    assert not registration.migrating
    assert sorted(view.controllers) == [node.id for node in kraft_cluster.inventory.controllers]


@pytest.mark.kafka
def test_a_fresh_reader_and_an_old_one_see_the_same(kraft_cluster: KraftCluster) -> None:
    """One began with a snapshot, the other read on: the images are equal at one offset."""
    digester = Digester()
    with MetadataReader(kraft_cluster.inventory, digester) as old:
        old.view()
        for number in range(3):
            kraft_cluster.create_topic(f"same-{number}", 2)
        wait_for("directories", lambda: directories(old.view()) == on_disk(kraft_cluster))
        with MetadataReader(kraft_cluster.inventory_with("127.0.0.1:1", Access(), None), digester) as fresh:
            first = fresh.view(old.view().offset)
            second = old.view(first.offset)
    assert first.cluster_id == REAL_CLUSTER_ID
    assert first.partitions == second.partitions
    assert first.brokers == second.brokers
    for column in ("kind", "key", "name", "value"):
        assert getattr(first.entities, column) == getattr(second.entities, column)


@pytest.mark.kafka
def test_a_real_election_is_followed(kraft_cluster: KraftCluster) -> None:
    """The leader is killed under the reader; the view goes on from where it was, at a higher epoch."""
    inventory = kraft_cluster.inventory
    with MetadataReader(inventory, Digester(), patience=30) as reader:
        before = reader.view()
        leader = ActiveController(inventory).quorum().leader
        kraft_cluster.kill(leader)
        try:
            after = reader.view(before.offset + 5)
        finally:
            kraft_cluster.start(leader)
            kraft_cluster.wait_until_ready()
    assert after.epoch > before.epoch
    assert after.offset >= before.offset + 5
    assert f"controller {leader} " not in after.source
    assert after.partitions == before.partitions


@pytest.mark.kafka
def test_a_paused_real_leader_does_not_hold_the_reader(kraft_cluster: KraftCluster) -> None:
    """It accepts and never answers: after the limit another is asked, which leads by then."""
    inventory = kraft_cluster.inventory
    with MetadataReader(inventory, Digester(), limits=QUICK, patience=30) as reader:
        before = reader.view()
        leader = ActiveController(inventory).quorum().leader
        kraft_cluster.signal(leader, signal.SIGSTOP)
        try:
            after = reader.view(before.offset + 3)
        finally:
            kraft_cluster.signal(leader, signal.SIGCONT)
            kraft_cluster.wait_until_ready()
    assert after.offset >= before.offset + 3


@pytest.mark.kafka
def test_a_real_quorum_refuses_a_reader_of_another_cluster(kraft_cluster: KraftCluster) -> None:
    """The expected cluster id is checked by the leader itself."""
    inventory = kraft_cluster.inventory_with("127.0.0.1:1", Access(), "AAAAAAAAAAAAAAAAAAAAAA")
    with MetadataReader(inventory, Digester()) as reader, pytest.raises(OtherCluster):
        reader.view()
