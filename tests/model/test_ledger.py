"""A row says what was seen of its replica: every copy, and "" for what is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.facts import DisksByBroker, build
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, NodeId
from migrate.model.ledger import (
    Ledger,
    No,
    ReplicaFacts,
    ReplicaState,
    Verdict,
    Yes,
    can_unfence,
    decide,
    may_restart,
    row,
)
from migrate.model.outcome import Unknown
from migrate.model.stage import DirectoryPolicy
from migrate.model.views import Directory, KraftView, MetaBroken, MetaMissing
from tests.testing.clusters import (
    Cluster,
    directory,
    directory_id,
    disks_of,
    healthy_cluster,
    kraft_view,
    registration,
    topic_id,
    uuid,
)

WHOLE = ReplicaFacts("orders", "T", 3, 1, ("d1",), future=False, registered=frozenset({"d1"}), in_metadata="d1")


def test_a_replica_that_is_nowhere_in_the_metadata_has_no_directory_there() -> None:
    """As text, for the file that people read."""
    found = row(replace(WHOLE, in_metadata=None, on_disk=("d1", "d2"), unknown="why"))
    assert (found.in_metadata, found.on_disk, found.why) == ("", "d1,d2", "why")
    assert (found.topic, found.partition, found.broker, found.state) == ("orders", 3, 1, ReplicaState.UNKNOWN)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, ReplicaState.VERIFIED),
        ({"unknown": "hidden"}, ReplicaState.UNKNOWN),
        ({"on_disk": ("d1", "d2")}, ReplicaState.TWO_COPIES),
        ({"on_disk": ()}, ReplicaState.NOT_ON_DISK),
        ({"registered": frozenset({"d2"})}, ReplicaState.NOT_REGISTERED),
        ({"future": True}, ReplicaState.MOVING),
        ({"in_metadata": None}, ReplicaState.MIGRATING),
        ({"in_metadata": str(MIGRATING)}, ReplicaState.MIGRATING),
        ({"in_metadata": str(UNASSIGNED)}, ReplicaState.UNASSIGNED),
        ({"in_metadata": str(LOST)}, ReplicaState.LOST),
        ({"in_metadata": "d2"}, ReplicaState.MISMATCH),
        ({"registered": None}, ReplicaState.MISMATCH),
        ({"listed": False}, ReplicaState.MISMATCH),
    ],
)
def test_each_fault_alone_has_its_state(changes: dict[str, object], state: ReplicaState) -> None:
    """Only where all agree it is VERIFIED."""
    assert decide(replace(WHOLE, **changes)) is state  # type: ignore[arg-type]


def test_a_row_names_the_directory_that_the_metadata_names() -> None:
    """A replica that both lists name, as nobody said otherwise."""
    whole = ReplicaFacts("orders", "T", 3, 1, ("d1",), future=False, registered=frozenset({"d1"}), in_metadata="d1")
    found = row(whole)
    assert (found.in_metadata, found.on_disk, found.why, found.state) == ("d1", "d1", "", ReplicaState.VERIFIED)


def test_a_ledger_counts_its_rows_by_state_and_tells_those_of_one_broker() -> None:
    """States in their order, and none that no row has."""
    bad = replace(WHOLE, in_metadata="d2")
    rows = tuple(map(row, (WHOLE, bad, replace(bad, broker=2), replace(bad, on_disk=()))))
    ledger = Ledger(rows, 7, "pure")
    assert [*ledger.counts().items()] == [("NOT ON DISK", 1), ("MISMATCH", 2), ("VERIFIED", 1)]
    assert ledger.of(2) == (rows[2],)
    assert ledger.of(1) == (rows[0], rows[1], rows[3])
    assert ledger.of(3) == ()


BROKER = NodeId(0)
OBSERVE, DRIVE = DirectoryPolicy.OBSERVE, DirectoryPolicy.DRIVE


def judge(cluster: Cluster, kraft: KraftView | None = None, disks: DisksByBroker | None = None) -> dict[str, Verdict]:
    """All verdicts of broker 0: by policy, and on unfencing."""
    image = cluster.kraft if kraft is None else kraft
    folders = cluster.disks if disks is None else disks
    ledger = build(cluster.zookeeper, image, folders, after_copy=True, finalized=False)
    return {
        "observe": may_restart(BROKER, OBSERVE, ledger, folders, image),
        "drive": may_restart(BROKER, DRIVE, ledger, folders, image),
        "unfence": can_unfence(BROKER, ledger, folders, image),
    }


def answers(verdicts: dict[str, Verdict]) -> str:
    """The verdicts as one word: who says yes."""
    return " ".join(name for name, verdict in verdicts.items() if isinstance(verdict, Yes)) or "none"


def reasons(verdict: Verdict) -> str:
    """The reasons of a no."""
    assert isinstance(verdict, No)
    return "; ".join(verdict.reasons)


def with_directory(cluster: Cluster, found: Directory) -> DisksByBroker:
    """The disks with broker 0's first directory replaced."""
    disks = cluster.disks
    own = disks[BROKER]
    assert not isinstance(own, Unknown)
    return {**disks, BROKER: replace(own, directories=(found, *own.directories[1:]))}


def first_directory(cluster: Cluster) -> Directory:
    """Broker 0's first directory, as it should be."""
    own = cluster.disks[BROKER]
    assert not isinstance(own, Unknown)
    return own.directories[0]


def test_a_broker_whose_replicas_are_all_verified_may_do_both() -> None:
    """The healthy cluster: yes three times, and it says what was seen."""
    verdicts = judge(healthy_cluster())
    assert answers(verdicts) == "observe drive unfence"
    assert verdicts["unfence"] == Yes("3 directories, 6 replicas: 6 VERIFIED")


@pytest.mark.parametrize("reserved", [MIGRATING, UNASSIGNED])
def test_a_migrating_replica_holds_back_all_but_an_observed_restart(reserved: str) -> None:
    """Under `observe` the broker's own reports come after its restart; nothing else continues without them."""
    cluster = healthy_cluster()
    cluster.partitions[0].directories[0] = reserved
    verdicts = judge(cluster)
    assert answers(verdicts) == "observe"
    verdict = verdicts["unfence"]
    assert isinstance(verdict, No)
    assert [(row.topic, row.partition, row.broker) for row in verdict.rows] == [("t0", 0, 0)]
    assert "1 MIGRATING" in reasons(verdict) or "1 UNASSIGNED" in reasons(verdict)


def test_another_brokers_trouble_is_not_this_ones() -> None:
    """Verdicts are a broker's own."""
    cluster = healthy_cluster()
    cluster.partitions[0].directories[1] = UNASSIGNED
    disks = cluster.disks
    disks[NodeId(2)] = Unknown("away")
    assert answers(judge(cluster, disks=disks)) == "observe drive unfence"


def test_a_wrong_directory_in_the_metadata_is_not_verified() -> None:
    """A KRaft broker puts it right after its restart: only an observed restart may go on."""
    cluster = healthy_cluster()
    cluster.partitions[0].directories[0] = directory_id(0, 2)
    assert answers(judge(cluster)) == "observe"


def test_a_broken_directory_stops_everything() -> None:
    """One disk = one broker, whatever lies on it."""
    cluster = healthy_cluster()
    verdicts = judge(cluster, disks=with_directory(cluster, directory("/d0", None, problem="Input/output error")))
    assert answers(verdicts) == "none"
    assert "directory /d0 is broken: Input/output error" in reasons(verdicts["observe"])


def test_a_broken_directory_that_holds_nothing_stops_too() -> None:
    """Also where no replica lies in it, and its id is still registered."""
    cluster = healthy_cluster(topics=0)
    broken = directory("/d0", directory_id(0, 0), problem="Read-only file system")
    assert answers(judge(cluster)) == "observe drive unfence"
    assert answers(judge(cluster, disks=with_directory(cluster, broken))) == "none"


def test_a_directory_that_nobody_tried_stops_everything() -> None:
    """Neither healthy nor broken; its identity and its replicas are as they should be."""
    cluster = healthy_cluster()
    untried = replace(first_directory(cluster), unproven="read from a listing")
    verdicts = judge(cluster, disks=with_directory(cluster, untried))
    assert answers(verdicts) == "none"
    for verdict in verdicts.values():
        assert f"directory {untried.path} is not known to be healthy: read from a listing" in reasons(verdict)


@pytest.mark.parametrize(
    ("meta", "why"), [(MetaMissing(), "has no"), (MetaBroken("NUL bytes"), "properties: NUL bytes")]
)
def test_a_directory_without_id_stops_everything(meta: MetaMissing | MetaBroken, why: str) -> None:
    """It cannot be compared with the registration; a file that is there and cannot be read is told as that."""
    cluster = healthy_cluster(topics=0)
    nameless = replace(first_directory(cluster), meta=meta)
    verdicts = judge(cluster, disks=with_directory(cluster, nameless))
    assert answers(verdicts) == "none"
    assert "has no directory.id" in reasons(verdicts["unfence"])
    assert why in reasons(verdicts["observe"])


def test_one_id_in_two_directories_stops_everything() -> None:
    """As sets they equal the registration; Kafka refuses to start on them (a cloned disk)."""
    cluster = healthy_cluster(topics=0, directories=2)
    twin = replace(first_directory(cluster), path="/data/b0/clone")
    disks = cluster.disks
    own = disks[BROKER]
    assert not isinstance(own, Unknown)
    verdicts = judge(cluster, disks={**disks, BROKER: replace(own, directories=(*own.directories, twin))})
    assert answers(verdicts) == "none"
    assert "is in 2 directories" in reasons(verdicts["unfence"])


def test_a_directory_that_is_not_registered_stops_everything() -> None:
    """The controller would take its replicas for lost, or never learn of its failure."""
    cluster = healthy_cluster()
    brokers = [registration(0, [directory_id(0, 0), directory_id(0, 1)]), registration(1, [directory_id(1, 0)])]
    verdicts = judge(cluster, replace(kraft_view(cluster.partitions, brokers=brokers)))
    assert answers(verdicts) == "none"
    assert f"({directory_id(0, 2)}) is not among" in reasons(verdicts["observe"])


def test_a_registered_directory_that_is_on_no_disk_forbids_unfencing_alone() -> None:
    """Unfencing wants equal sets; a restart registers again."""
    cluster = healthy_cluster()
    brokers = [registration(b, [*ids, uuid(7)] if b == 0 else ids) for b, ids in cluster.log_dirs.items()]
    verdicts = judge(cluster, kraft_view(cluster.partitions, brokers=brokers))
    assert answers(verdicts) == "observe drive"
    assert f"directory {uuid(7)} is registered and on no disk" in reasons(verdicts["unfence"])


def test_no_registration_is_a_no() -> None:
    """Even for a broker without replicas."""
    cluster = healthy_cluster(topics=0)
    verdicts = judge(cluster, kraft_view(brokers=[registration(1, [])]))
    assert answers(verdicts) == "none"
    assert "broker 0 has no registration" in reasons(verdicts["unfence"])


@pytest.mark.parametrize(
    ("folder", "state"),
    [
        (("t0", 0, topic_id(0), "current"), ReplicaState.TWO_COPIES),
        (("t0", 0, "?", "current"), ReplicaState.UNKNOWN),
    ],
)
def test_a_replica_without_exactly_one_copy_stops_everything(
    folder: tuple[str, int, str, str], state: ReplicaState
) -> None:
    """Two copies, or one that cannot be judged."""
    cluster = healthy_cluster()
    cluster.folders[0, 1].append(folder)
    verdicts = judge(cluster)
    assert answers(verdicts) == "none"
    verdict = verdicts["observe"]
    assert isinstance(verdict, No)
    assert [row.state for row in verdict.rows] == [state]


@pytest.mark.parametrize("state", ["UNKNOWN", "TWO_COPIES", "NOT_ON_DISK", "NOT_REGISTERED"])
def test_the_ledgers_word_on_a_replica_stops_everything(state: str) -> None:
    """Whatever else of the broker is as it should be: a ledger may have been made elsewhere."""
    cluster = healthy_cluster()
    ledger = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    entry = next(entry for entry in ledger.rows if entry.broker == BROKER)
    wrong = replace(entry, state=ReplicaState[state])
    bent = replace(ledger, rows=tuple(wrong if row is entry else row for row in ledger.rows))
    for policy in (OBSERVE, DRIVE):
        verdict = may_restart(BROKER, policy, bent, cluster.disks, cluster.kraft)
        assert "replicas without one current copy" in reasons(verdict)
        assert isinstance(verdict, No)
        assert verdict.rows == (wrong,)
    assert "not VERIFIED" in reasons(can_unfence(BROKER, bent, cluster.disks, cluster.kraft))


def test_a_replica_that_the_metadata_gives_to_nobody_is_told_once() -> None:
    """As what it is; one without a copy is told as that alone."""
    cluster = healthy_cluster()
    ledger = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    entry = next(entry for entry in ledger.rows if entry.broker == BROKER)
    nowhere = replace(entry, state=ReplicaState.NOT_ON_DISK, in_metadata="")
    rows = tuple(nowhere if row is entry else row for row in ledger.rows)
    verdict = may_restart(BROKER, OBSERVE, replace(ledger, rows=rows), cluster.disks, cluster.kraft)
    assert "does not give" not in reasons(verdict)
    assert isinstance(verdict, No)
    assert verdict.rows == (nowhere,)


def test_a_policy_names_the_replicas_that_it_waits_for() -> None:
    """A move holds `drive` and not `observe`: only there its row is named."""
    cluster = healthy_cluster()
    cluster.folders[0, 1].append(("t0", 0, topic_id(0), "future"))
    verdict = judge(cluster)["drive"]
    assert isinstance(verdict, No)
    assert [row.state for row in verdict.rows] == [ReplicaState.MOVING]


def test_two_directories_without_an_id_are_no_clone_of_each_other() -> None:
    """Each lacks one; none appears twice."""
    cluster = healthy_cluster(topics=0, directories=2)
    own = cluster.disks[BROKER]
    assert not isinstance(own, Unknown)
    bare = tuple(replace(entry, meta=MetaMissing()) for entry in own.directories)
    verdicts = judge(cluster, disks={**cluster.disks, BROKER: replace(own, directories=bare)})
    assert "is in 2" not in reasons(verdicts["unfence"])


def test_a_replica_not_on_disk_stops_everything() -> None:
    """Its folder is gone."""
    cluster = healthy_cluster()
    cluster.folders[0, 0].clear()
    assert answers(judge(cluster)) == "none"


def test_a_replica_that_the_metadata_gives_to_nobody_stops_everything() -> None:
    """A KRaft broker would rename the folder `-stray` at its start."""
    cluster = healthy_cluster()
    whole = healthy_cluster()
    del cluster.partitions[0]
    ledger = build(whole.zookeeper, cluster.kraft, whole.disks, after_copy=True, finalized=False)
    verdict = may_restart(BROKER, OBSERVE, ledger, whole.disks, cluster.kraft)
    assert "1 replica that the metadata does not give to broker 0" in reasons(verdict)


def test_a_moving_replica_is_not_verified() -> None:
    """A future copy: the broker may restart under observe, and does not count as done."""
    cluster = healthy_cluster()
    cluster.folders[0, 1].append(("t0", 0, topic_id(0), "future"))
    assert answers(judge(cluster)) == "observe"


@pytest.mark.parametrize("view", ["ledger", "disks", "broker's disks", "kraft"])
def test_unknown_anywhere_is_a_no_with_its_reason(view: str) -> None:
    """Never yes without having seen."""
    cluster = healthy_cluster()
    ledger: Ledger | Unknown = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    disks: DisksByBroker | Unknown = cluster.disks
    kraft: KraftView | Unknown = cluster.kraft
    match view:
        case "ledger":
            ledger = Unknown("lights out")
        case "disks":
            disks = Unknown("lights out")
        case "kraft":
            kraft = Unknown("lights out")
        case _:
            disks = {**cluster.disks, BROKER: Unknown("lights out")}
    for policy in (OBSERVE, DRIVE):
        assert "lights out" in reasons(may_restart(BROKER, policy, ledger, disks, kraft))
    assert "lights out" in reasons(can_unfence(BROKER, ledger, disks, kraft))


def test_a_ledger_without_its_seed_proves_nothing_even_without_rows() -> None:
    """No rows, because ZooKeeper did not answer, is not a broker without replicas."""
    cluster = healthy_cluster(topics=0)
    ledger = build(Unknown("no answer"), cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    assert ledger.rows == ()
    assert "zookeeper: no answer" in reasons(can_unfence(BROKER, ledger, cluster.disks, cluster.kraft))


def test_metadata_that_is_not_proven_committed_is_a_no() -> None:
    """Files of one directory alone, or an offset at the high watermark."""
    cluster = healthy_cluster()
    for watermark, why in ((Unknown("tail unproven"), "committed: tail unproven"), (100, "what is below 100")):
        verdicts = judge(cluster, replace(cluster.kraft, high_watermark=watermark))
        assert answers(verdicts) == "none"
        assert why in reasons(verdicts["unfence"])


def test_a_ledger_without_a_view_is_told_as_that_and_not_by_its_offset() -> None:
    """Where it stands means nothing then."""
    cluster = healthy_cluster()
    ledger = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    said = reasons(
        can_unfence(BROKER, replace(ledger, unknown=("disks: hidden",), offset=5), cluster.disks, cluster.kraft)
    )
    assert "the ledger was made without a view: disks: hidden" in said
    assert "offset 5" not in said


def test_a_ledger_of_another_offset_is_a_no() -> None:
    """Verdicts join a ledger and a registration: both must be of one moment."""
    cluster = healthy_cluster()
    ledger = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    later = replace(cluster.kraft, offset=101, high_watermark=102)
    assert "offset 100" in reasons(can_unfence(BROKER, ledger, cluster.disks, later))
    early = build(cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=False, finalized=False)
    assert "offset -1" in reasons(may_restart(BROKER, OBSERVE, early, cluster.disks, cluster.kraft))


def test_a_broker_that_shows_no_directory_is_a_no() -> None:
    """Nothing on disk equals nothing registered as sets, and is still no broker."""
    cluster = healthy_cluster(topics=0)
    kraft = kraft_view(brokers=[registration(0, [])])
    verdicts = judge(cluster, kraft, {**cluster.disks, **disks_of({0: []})})
    assert answers(verdicts) == "none"
