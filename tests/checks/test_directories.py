"""Log directories, fault by fault: one finding for each, and none for what is as it should be or is another rule's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks.directories import cluster_id_of
from migrate.model.disk_trouble import NO_REPLICA
from migrate.model.findings import Severity
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties
from migrate.model.world import World
from tests.checks.bends import directory, metadata_apart, new_directory, of, then, values, volatile
from tests.steps.looks import Bend, registration, rows, whole, without
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, directory_id, uuid
from tests.testing.worlds import world_at

ZK, HYBRID, KRAFT = whole(Stage.ASSESS), whole(Stage.COPY), whole(Stage.KRAFT_MODE)


def told(world: World, code: str) -> Mapping[str, str]:
    """What a check says of which object; blind spots by their reason."""
    return {
        entry.about: entry.evidence if entry.severity is Severity.BLIND_SPOT else entry.message
        for entry in checks.run(world, target=Stage.CLEANUP)
        if entry.code == code
    }


@pytest.mark.parametrize(
    ("bend", "codes"),
    [
        (directory(1, 1, problem="I/O", meta=MetaBroken("not read")), {"B-DIR-01"}),
        (directory(1, 1, problem="I/O", meta=MetaMissing()), {"B-DIR-01"}),
        (directory(1, 1, unproven="no rights"), {"B-DIR-01"}),
        (directory(1, 1, meta=MetaMissing()), {"B-DIR-24"}),
        (metadata_apart(MetaMissing()), {"B-DIR-04"}),
    ],
    ids=["dead, torn", "dead, bare", "not tried", "bare", "metadata.log.dir bare"],
)
def test_a_directory_has_one_fault(bend: Bend, codes: set[str]) -> None:
    """What was read of a dead one is no second; each kind of directory has its own rule for a missing identity."""
    found = {"B-DIR-01", "B-DIR-04", "B-DIR-24", "B-DIR-03", "B-DIR-02"}
    assert {code for code in found if told(bend(HYBRID), code)} == codes
    assert "cannot be trusted" not in "".join(told(bend(HYBRID), "B-DIR-01").values())


def test_a_metadata_directory_that_says_who_it_is_lacks_nothing() -> None:
    """Apart from log.dirs, with the broker's own meta.properties."""
    own = MetaProperties(0, CLUSTER_ID, 1, DirectoryId(uuid(77)))
    assert told(metadata_apart(own)(HYBRID), "B-DIR-04") == {}  # type: ignore[arg-type]


def test_a_dead_metadata_directory_does_not_lack_its_identity() -> None:
    """It is broken: that is told, and nothing more."""

    def bend(world: World) -> World:
        world = metadata_apart(MetaMissing())(world)
        assert not isinstance(world.disks, Unknown)
        disks = world.disks[NodeId(1)]
        assert not isinstance(disks, Unknown)
        assert disks.metadata_directory is not None
        dead = replace(disks.metadata_directory, problem="I/O")
        return replace(world, disks={**world.disks, NodeId(1): replace(disks, metadata_directory=dead)})

    assert told(bend(HYBRID), "B-DIR-04") == {}
    assert set(told(bend(HYBRID), "B-DIR-01")) == {"broker 1: /meta"}


def test_an_id_that_a_controllers_directory_has_is_taken() -> None:
    """Over the whole cluster; two brokers' directories are compared without any controller's, too."""
    mine = MetaProperties(0, CLUSTER_ID, 1, DirectoryId(uuid(8000 + 3000)))
    found = told(directory(1, 1, meta=mine)(HYBRID), "B-DIR-02")
    assert found == {"node 3000: /data/c3000": found["node 3000: /data/c3000"]}
    assert "is that of node 1: /data/b1/d1 too" in found["node 3000: /data/c3000"]
    assert told(without("disks")(HYBRID), "B-DIR-02") == {"the brokers' disks": "disks hidden"}


@pytest.mark.parametrize(
    ("meta", "code", "says"),
    [
        (MetaProperties(0, uuid(7), 1, None), "B-DIR-03", f"cluster.id {uuid(7)}, the cluster is {CLUSTER_ID}"),
        (MetaProperties(0, CLUSTER_ID, 2, None), "B-DIR-03", "has node id 2, the broker is 1"),
        (MetaProperties(0, None, 1, None), "B-DIR-04", "meta.properties has no cluster.id"),
        (MetaProperties(0, CLUSTER_ID, None, None), "B-DIR-04", "meta.properties has no node id"),
        (MetaProperties(0, None, None, None), "B-DIR-04", "meta.properties has no node id and no cluster.id"),
    ],
)
def test_an_id_that_is_another_is_a_strangers_and_one_that_is_missing_is_missing(
    meta: MetaProperties, code: str, says: str
) -> None:
    """Never both of one id."""
    world = directory(1, 1, meta=meta)(ZK)
    assert list(told(world, code)) == ["broker 1: /data/b1/d1"]
    assert says in told(world, code)["broker 1: /data/b1/d1"]
    assert told(world, "B-DIR-04" if code == "B-DIR-03" else "B-DIR-03") == {}


def test_the_clusters_id_is_zookeepers_the_metadatas_or_the_inventorys() -> None:
    """In that order; where nobody says it no directory is a stranger's."""
    other = worlds.with_kraft(worlds.with_zk(HYBRID, cluster_id="Z" * 22), cluster_id="K" * 22)
    assert cluster_id_of(other) == "Z" * 22
    hidden = without("zookeeper")(other)
    assert cluster_id_of(hidden) == "K" * 22
    for unsaid in (without("kraft")(hidden), worlds.with_kraft(hidden, cluster_id="")):
        assert cluster_id_of(unsaid) == CLUSTER_ID
        nobody = replace(unsaid, inventory=replace(unsaid.inventory, expect_cluster_id=None))
        assert cluster_id_of(nobody) is None
        assert told(nobody, "B-DIR-03") == {}


@pytest.mark.parametrize(
    ("bend", "places"),
    [
        (directory(1, 0, holds_metadata_log=True), []),
        (directory(1, 1, holds_metadata_log=True), ["broker 1: /data/b1/d1"]),
        (then(values(1, metadata__log__dir=" /data/b1/d1/ "), directory(1, 1, holds_metadata_log=True)), ["/d0"]),
        (lambda world: replace(world, configs=without_file(world, 1)), []),
        (lambda world: replace(world, disks=without_directories(world, 1)), []),
    ],
    ids=["first", "second", "named", "file not seen", "no directories"],
)
def test_the_metadata_log_belongs_into_the_directory_that_the_file_names(bend: Bend, places: list[str]) -> None:
    """The first of log.dirs where it names none; what cannot be compared is no fault of this rule."""
    moved = told(bend(HYBRID), "B-DIR-05")
    found = [about for about in moved if about.startswith("broker 1: ")]
    assert len(found) == len(places)
    assert all(one.endswith(place) for one, place in zip(found, places, strict=True))


def without_file(world: World, node: int) -> object:
    """The files, but for a broker's."""
    assert not isinstance(world.configs, Unknown)
    return {**world.configs, NodeId(node): Unknown("denied")}


def without_directories(world: World, node: int) -> object:
    """The disks; a broker's log.dirs are empty."""
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(node)]
    assert not isinstance(disks, Unknown)
    return {**world.disks, NodeId(node): replace(disks, directories=())}


def test_only_brokers_in_kraft_mode_owe_a_proof_of_each_replica() -> None:
    """Each row of them that is not VERIFIED; where the metadata cannot be read nobody knows who they are."""
    ledger = rows(ReplicaState.VERIFIED, ReplicaState.UNASSIGNED, broker=1)
    one = replace(KRAFT, ledger=ledger)
    assert told(one, "B-DIR-08") == {"broker 1: orders-1": "its row is UNASSIGNED"}
    assert told(registration(1, migrating=True)(one), "B-DIR-08") == {}
    assert told(registration(2, migrating=True)(one), "B-DIR-08") != {}
    hidden = told(without("kraft")(replace(HYBRID, ledger=ledger)), "B-DIR-08")
    assert hidden == {"the KRaft metadata": "kraft hidden"}


def test_a_volatile_file_system_is_one_finding_by_whether_it_was_accepted() -> None:
    """With the first directory on it as evidence."""
    world = then(directory(1, 0, filesystem="tmpfs"), directory(1, 2, filesystem="tmpfs"))(ZK)
    assert told(world, "B-DIR-09") == {"broker 1": "2 directories on tmpfs"}
    assert told(world, "W-DIR-09") == {}
    accepted = volatile("tmpfs")(world)
    assert (told(accepted, "B-DIR-09"), told(accepted, "W-DIR-09")) == ({}, {"broker 1": "2 directories on tmpfs"})
    (finding,) = [entry for entry in checks.run(world, target=Stage.CLEANUP) if entry.code == "B-DIR-09"]
    assert finding.evidence == "/data/b1/d0"


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ((0, 1, 2), None),
        ((0, 1), "on its disks and not registered: " + str(directory_id(1, 2))),
        ((0, 1, 2, 7), "registered and not on its disks: " + str(directory_id(1, 7))),
    ],
)
def test_registered_directories_are_those_on_the_disks(ids: tuple[int, ...], says: str | None) -> None:
    """As sets: one more on either side is a fault."""
    world = registration(1, log_dirs=frozenset(directory_id(1, index) for index in ids))(HYBRID)
    assert told(world, "B-DIR-10") == ({} if says is None else {"broker 1": says})


def test_a_directory_without_an_id_is_not_compared_with_the_registration() -> None:
    """It has none that could be registered: another rule names it."""
    others = frozenset(directory_id(1, index) for index in (0, 1))
    world = directory(1, 2, meta=MetaMissing())(registration(1, log_dirs=others)(HYBRID))
    assert told(world, "B-DIR-10") == {}


def test_a_folder_on_which_kafka_does_not_start_is_told_once() -> None:
    """As a blocker, and not among what is merely odd."""
    world = directory(0, 0, oddities=(f"{NO_REPLICA}lost+found", "link, not followed: x"))(ZK)
    assert told(world, "W-DIR-18") == {"broker 0: /data/b0/d0": "link, not followed: x"}


# -- directories on one file system --------------------------------------------------------------------------------
SHARED = "W-DIR-25"
APART = then(*(directory(node, index, mount=f"/d{index}") for node in range(3) for index in range(3)))


def at(stage: Stage = Stage.CLEANUP) -> World:
    """Every directory on a disk of its own, the same names on every broker."""
    return APART(world_at(stage))


def test_a_disk_for_each_is_nothing_to_tell() -> None:
    """Mounts of two brokers have nothing to do with each other."""
    assert of(at(), SHARED) == []
    assert of(new_directory(1, mount="/d7")(at()), SHARED) == []


def test_two_on_one_file_system_are_named_with_it() -> None:
    """The broker, the mount, each path; it blocks nothing."""
    (told,) = of(directory(1, 2, mount="/d0")(at(Stage.ASSESS)), SHARED)
    assert told.about == "broker 1"
    assert told.message == "2 of its log directories are on /d0"
    assert told.evidence == "/data/b1/d0, /data/b1/d2"
    assert told.blocks_from == checks.NEVER


def test_a_new_directory_on_the_disk_of_an_old_one_is_told_as_new() -> None:
    """The folder was made, and the disk is not mounted."""
    (told,) = of(new_directory(1, mount="/d2")(at()), SHARED)
    assert told.message == "2 of its log directories are on /d2; new among them: /new/b1"


def test_one_that_has_become_a_log_directory_is_not_counted_twice() -> None:
    """Between its start and the end of the run it stands in both lists."""
    added = new_directory(1, mount="/d0", path="/data/b1/d0")
    assert of(added(at()), SHARED) == []
    (told,) = of(then(added, directory(1, 2, mount="/d0"))(at()), SHARED)
    assert told.message == "2 of its log directories are on /d0", "nothing of it is new any more"


def test_a_broken_directory_lies_on_no_file_system() -> None:
    """Where its disk is gone, its path leads to the one below: B-DIR-01 says what is wrong."""
    broken = then(directory(1, 2, mount="/d0", problem="is no folder"), directory(1, 1, mount="", problem="is gone"))
    assert of(broken(at()), SHARED) == []


def test_where_the_new_ones_cannot_be_seen_that_is_said() -> None:
    """Of one broker, or of all; without a DirectoryPlaybook nothing is missed."""
    one = replace(new_directory(0, mount="/d7")(at()), new_directories={NodeId(0): Unknown("no such host")})
    (told,) = of(one, SHARED)
    assert (told.about, told.evidence) == ("the new directories of broker 0", "no such host")
    every = of(replace(at(), new_directories=Unknown("no executor")), SHARED)
    assert [entry.evidence for entry in every] == ["no executor"] * 3
