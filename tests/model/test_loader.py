"""Foretold fates of replica folders: those that Kafka's own loader gives them, none missed and none extra."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts.meta_properties import decode_folder, decode_partition_metadata
from migrate.model.columns import PartitionColumns, ReplicaColumns
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.loader import (
    Assigned,
    Fate,
    Foretold,
    Loading,
    Move,
    all_assigned,
    foretell,
    foretell_all,
    moves,
    moves_of,
    told,
)
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, Directory, MetaProperties
from migrate.model.world import World
from tests.testing.assigned import assigned_to
from tests.testing.clusters import topic_id
from tests.testing.ensembles import CLUSTER, IDS
from tests.testing.kafka_loader import BROKER, UNIQUE, KafkaLoader, Planted, became, kafka_loader, metadata_of
from tests.testing.worlds import BROKERS, with_directory, with_folder, world_at

TOPICS = ("Sl08ZXU2QW6uF5hIoSzc8w", "69O438ZkTSeqqclTtZO2KA", "2Ik9_5-oRDOKpSXd2SuG5w", "YS9owjv5TG2OlsvBM0Qw6g")
A, B, C, NONE = TOPICS
MIGRATING, UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"
# topic a has partitions 0 to 3, b 0 and 1; c exists and is not this broker's
IMAGE = {A: {0: IDS[0], 1: IDS[1], 2: MIGRATING, 3: UNASSIGNED}, B: {0: IDS[2], 1: IDS[0]}}
NAMES = {A: "a", B: "b", C: "c"}


def disks(planted: Sequence[Planted], problems: tuple[str, ...] = ("", "", "")) -> BrokerDisks:
    """The listing of those folders, as the hosts' readers make it."""
    found = []
    for index, problem in enumerate(problems):
        rows = ReplicaColumns()
        for entry in planted:
            if entry.directory != index:
                continue
            replica = decode_folder(entry.folder)
            assert replica is not None, entry
            rows.topic.append(replica.topic)
            rows.partition.append(replica.partition)
            rows.kind.append(replica.kind)
            rows.folder.append(entry.folder)
            rows.size.append(entry.size)
            raw = entry.metadata
            rows.topic_id.append("" if raw is None else decode_partition_metadata(raw.encode()))
        meta = MetaProperties(0, CLUSTER, BROKER, DirectoryId(IDS[index]))
        found.append(Directory(f"/d{index}", problem, meta, rows, False))
    return BrokerDisks(NodeId(BROKER), tuple(found))


def assigned() -> Assigned:
    """What IMAGE gives this broker."""
    columns = PartitionColumns()
    for identity, partitions in {**IMAGE, C: {0: ""}}.items():
        for partition, directory in partitions.items():
            mine = identity != C
            columns.topic.append(NAMES[identity])
            columns.topic_id.append(identity)
            columns.partition.append(partition)
            columns.replicas.append([9, BROKER] if mine else [9])
            columns.directories.append([MIGRATING, directory] if mine else [MIGRATING])
    return assigned_to(BROKER, columns)


def fates(found: Foretold) -> dict[str, Fate]:
    """By path."""
    return {entry.path: entry.fate for entry in found.fates}


PLANTED = (
    Planted(0, "a-0", metadata_of(A), 10),
    Planted(1, "a-1", metadata_of(A)),
    Planted(1, "a-2", metadata_of(A)),
    Planted(0, "b-1", None, 7),  # no partition.metadata
    Planted(2, "b-0", metadata_of(NONE), 70),  # another topic id
    Planted(2, "c-0", metadata_of(C), 700),  # not assigned here
    Planted(2, "a-17", metadata_of(A)),  # no such partition
    Planted(0, "gone-0", metadata_of(NONE)),  # no such topic
    Planted(2, f"a-0.{UNIQUE}-future", metadata_of(A)),  # a move in progress
    Planted(0, f"a-1.{UNIQUE}-future", metadata_of(C)),  # a future copy that is stray
    Planted(1, f"b-1.{UNIQUE}-future", None),  # a future copy without partition.metadata
    Planted(1, f"a-3.{UNIQUE}-delete", metadata_of(A)),
    Planted(0, f"a-3.{UNIQUE}-stray", metadata_of(A)),
    Planted(1, f"gone-1.{UNIQUE}-delete", None),
)
EXPECTED = {
    "/d0/b-1": Fate.STRAY,
    "/d2/b-0": Fate.STRAY,
    "/d2/c-0": Fate.STRAY,
    "/d2/a-17": Fate.STRAY,
    "/d0/gone-0": Fate.STRAY,
    f"/d2/a-0.{UNIQUE}-future": Fate.FUTURE,
    f"/d0/a-1.{UNIQUE}-future": Fate.STRAY,
    f"/d1/b-1.{UNIQUE}-future": Fate.STRAY,
    f"/d1/a-3.{UNIQUE}-delete": Fate.DELETED,
    f"/d0/a-3.{UNIQUE}-stray": Fate.SET_ASIDE,
    f"/d1/gone-1.{UNIQUE}-delete": Fate.DELETED,
}


def test_each_planted_folder_has_its_fate_and_those_in_place_make_no_object() -> None:
    """At a KRaft start; with bytes, and why."""
    found = foretell(disks(PLANTED), assigned())
    assert fates(found) == EXPECTED
    assert (found.loaded, found.refuses, found.stray_bytes) == (3, "", 777)
    why = {entry.path: entry.why for entry in found.fates}
    assert why["/d0/b-1"] == "it has no partition.metadata"
    assert why["/d2/b-0"] == f"its topic id is {NONE}, the topic's is {B}"
    assert why["/d2/c-0"] == "it is not assigned to this broker"


def test_a_future_copy_where_the_metadata_says_takes_the_whole_ones_place() -> None:
    """KAFKA-16082: nobody asks whether it caught up."""
    planted = (Planted(1, "a-0", metadata_of(A)), Planted(0, f"a-0.{UNIQUE}-future", metadata_of(A)))
    found = foretell(disks(planted), assigned())
    assert fates(found) == {f"/d0/a-0.{UNIQUE}-future": Fate.PROMOTED, "/d1/a-0": Fate.REPLACED}
    alone = foretell(disks(planted[1:]), assigned())
    assert fates(alone) == {f"/d0/a-0.{UNIQUE}-future": Fate.PROMOTED}
    taken = (Planted(0, "a-0", metadata_of(A)), Planted(0, f"a-0.{UNIQUE}-future", metadata_of(A)))
    same = foretell(disks(taken), assigned())
    assert (same.refuses, same.loaded) == ("/d0 holds a-0 and a future copy of it", 1)
    assert fates(same) == {f"/d0/a-0.{UNIQUE}-future": Fate.DUPLICATE}
    migrating = (Planted(1, "a-2", metadata_of(A)), Planted(0, f"a-2.{UNIQUE}-future", metadata_of(A)))
    assert fates(foretell(disks(migrating), assigned())) == {f"/d0/a-2.{UNIQUE}-future": Fate.FUTURE}


def test_two_copies_stop_the_broker_and_a_stray_one_of_them_does_not() -> None:
    """By name: one with another topic id is set aside before they meet."""
    planted = (Planted(0, "a-0", metadata_of(A)), Planted(1, "a-0", metadata_of(A)))
    found = foretell(disks(planted), assigned())
    assert found.refuses == "copies of a-0 are in /d0 and /d1"
    assert set(fates(found).values()) == {Fate.DUPLICATE}
    assert found.loaded == 0
    other = foretell(disks((planted[0], Planted(1, "a-0", metadata_of(NONE)))), assigned())
    assert (other.refuses, fates(other)) == ("", {"/d1/a-0": Fate.STRAY})
    futures = tuple(Planted(index, f"a-2.{UNIQUE}-future", metadata_of(A)) for index in range(2))
    assert foretell(disks(futures), assigned()).refuses == "future copies of a-2 are in /d0 and /d1"


def test_a_broken_directory_is_not_loaded_and_its_copies_meet_nobody() -> None:
    """Kafka leaves such a directory out."""
    planted = (Planted(0, "a-0", metadata_of(A)), Planted(1, "a-0", metadata_of(A)))
    found = foretell(disks(planted, ("", "input/output error", "")), assigned())
    assert (found.refuses, found.loaded, fates(found)) == ("", 1, {"/d1/a-0": Fate.UNTOUCHED})


@pytest.mark.parametrize("text", ["", "version: 0\n", "version: 0\ntopic_id: x\n", metadata_of(MIGRATING), "\0" * 40])
def test_a_torn_partition_metadata_is_never_fine(text: str) -> None:
    """The directory fails, or the start: said, not guessed which."""
    found = foretell(disks((Planted(0, "a-0", text),)), assigned())
    assert fates(found) == {"/d0/a-0": Fate.UNREADABLE}
    assert found.refuses == "/d0/a-0/partition.metadata cannot be read"


# -- migration mode --------------------------------------------------------------------------------------------------
def test_a_full_request_decides_by_name_and_takes_the_future_copy_along() -> None:
    """ReplicaManager.updateStrayLogs: current and future log of a partition go together."""
    planted = (
        Planted(0, "a-0", metadata_of(A)),
        Planted(0, "b-0", metadata_of(NONE)),
        Planted(1, f"b-0.{UNIQUE}-future", metadata_of(B)),
        Planted(2, "c-0", metadata_of(C)),
    )
    found = foretell(disks(planted), assigned(), Loading.FULL_REQUEST)
    expected = dict.fromkeys(("/d0/b-0", f"/d1/b-0.{UNIQUE}-future", "/d2/c-0"), Fate.STRAY)
    assert (fates(found), found.loaded, found.refuses) == (expected, 1, "")


def test_a_log_without_topic_id_ends_a_full_request() -> None:
    """It throws before anything is set aside."""
    planted = (Planted(0, "a-0", None), Planted(2, "c-0", metadata_of(C)))
    found = foretell(disks(planted), assigned(), Loading.FULL_REQUEST)
    assert "a-0 has no topic id" in found.refuses
    assert fates(found) == {}


def test_all_brokers_are_foretold_at_once() -> None:
    """By the same columns."""
    columns = PartitionColumns(["a"], [A], [0], [[BROKER, 2]], directories=[[]])
    here = disks((Planted(0, "a-0", metadata_of(A)),))
    assert {broker: found.loaded for broker, found in foretell_all({1: here, 2: here, 3: here}, columns)} == {
        1: 1,
        2: 1,
        3: 0,
    }


# -- against Kafka's own loader --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def kafka() -> Any:
    """One JVM for all of it."""
    with kafka_loader() as loader:
        yield loader


REFUSALS = (
    "failed directories",
    "Duplicate log directories",
    "Error while renaming dir",
    "NullPointerException",  # partition.metadata without a line
    "IllegalArgumentException",  # ... with an id that is none
)


def compare(kafka: KafkaLoader, planted: Sequence[Planted], base: Path) -> Foretold:
    """Plant, let Kafka load, and hold each folder's fate against what was foretold."""
    directories = [base / f"d{index}" for index in range(3)]
    for directory in directories:
        directory.mkdir(parents=True)
    for entry in planted:
        entry.make(directories[entry.directory])
    found = foretell(disks(planted), assigned())
    said = kafka.load(directories, IDS, IMAGE)
    assert bool(said) is bool(found.refuses), (said, found)
    if found.refuses:
        assert any(part in said for part in REFUSALS), said
        return found
    foretold = fates(found)
    for entry in planted:
        expected = foretold.get(f"/d{entry.directory}/{entry.folder}", "loaded")
        assert became(entry, directories) == expected, entry
    return found


@pytest.mark.kafka
def test_kafkas_loader_does_what_was_foretold_with_planted_folders(kafka: KafkaLoader, tmp_path: Path) -> None:
    """Every case by name."""
    assert fates(compare(kafka, PLANTED, tmp_path / "all")) == EXPECTED
    promoted = (Planted(1, "a-0", metadata_of(A)), Planted(0, f"a-0.{UNIQUE}-future", metadata_of(A)))
    compare(kafka, promoted, tmp_path / "promoted")
    twice = (Planted(0, "a-0", metadata_of(A)), Planted(1, "a-0", metadata_of(A)))
    assert compare(kafka, twice, tmp_path / "twice").refuses
    for number, text in enumerate(["", "version: 0\n", "version: 0\ntopic_id: x\n", metadata_of(MIGRATING)]):
        assert compare(kafka, (Planted(0, "a-0", text),), tmp_path / f"torn-{number}").refuses


@pytest.mark.kafka
def test_kafkas_loader_does_what_was_foretold_with_any_folders(kafka: KafkaLoader, tmp_path: Path) -> None:
    """Random listings: names, topic ids, kinds and places in all mixtures."""
    chance = random.Random(16082)
    seen: set[object] = set()
    for number in range(70):
        planted = {}
        for _ in range(chance.randint(1, 8)):
            mark = chance.choice(["", "", "", f".{UNIQUE}-future", f".{UNIQUE}-delete", f".{UNIQUE}-stray"])
            folder = f"{chance.choice('aaabc')}-{chance.randint(0, 4)}{mark}"
            topic_id = chance.choice([None, A, A, A, B, B, C, NONE])
            if topic_id and chance.random() < 0.6:
                topic_id = {"a": A, "b": B, "c": C}[folder[0]]
            entry = Planted(chance.randrange(3), folder, None if topic_id is None else metadata_of(topic_id))
            planted[entry.directory, folder] = entry
        found = compare(kafka, tuple(planted.values()), tmp_path / str(number))
        seen |= {entry.fate for entry in found.fates} | {bool(found.refuses)}
    assert seen >= {Fate.STRAY, Fate.FUTURE, Fate.PROMOTED, Fate.DUPLICATE, True, False}


class Counted(int):
    """A broker's id that counts how often it is compared."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return int(self) == other


@pytest.mark.slow
def test_a_partition_of_many_replicas_is_assigned_in_linear_time() -> None:
    """One znode may name 100,000: looking for each in the list compares five thousand million times."""
    ids = [Counted(number) for number in range(20_000)]
    rows = PartitionColumns(
        topic=["a"], topic_id=[A], partition=[0], replicas=[[*ids]], directories=[[IDS[0], *[IDS[1]] * (len(ids) - 1)]]
    )
    Counted.compared = 0
    found = all_assigned(rows)
    assert Counted.compared <= 2 * len(ids)
    assert [found[broker].directories[A, 0] for broker in (0, 1, 19_999)] == [IDS[0], IDS[1], IDS[1]]


def test_of_a_broker_that_a_partition_names_twice_the_first_place_counts() -> None:
    """As a search for it would find it."""
    rows = PartitionColumns(topic=["a"], topic_id=[A], partition=[0], replicas=[[7, 8, 7]], directories=[[*IDS[:3]]])
    assert all_assigned(rows)[7] == Assigned({(A, 0): IDS[0]}, {("a", 0): A})


ZERO = BROKERS[0]


def disks_of(world: World) -> BrokerDisks:
    """Those of broker 0."""
    assert not isinstance(world.disks, Unknown)
    found = world.disks[ZERO]
    assert isinstance(found, BrokerDisks)
    return found


def moving(*targets: int) -> World:
    """t0-0 of broker 0 lies in its first directory, with future copies in these."""
    world = world_at(Stage.ASSESS)
    for target in targets:
        world = with_folder(world, 0, target, ("t0", 0, topic_id(0), "future"))
    return world


def test_a_move_says_where_from_where_to_and_how_far() -> None:
    """By the folders' sizes; it reads as a sentence does."""
    seen = disks_of(moving(2))
    (move,) = moves_of(seen)
    source = next(entry for entry in seen.directories if "t0" in entry.replicas.topic and entry.path != move.target)
    size = source.replicas.size[source.replicas.topic.index("t0")]
    assert move == Move(0, "t0", 0, source.path, seen.directories[2].path, "t0-0", 10, size)
    assert str(move) == f"t0-0 on broker 0 from {source.path} to {move.target} (10 of {size} bytes)"


def test_a_future_copy_without_a_whole_one_is_told_as_that() -> None:
    """Its source's disk is dead: nobody will ever finish it."""
    world = with_directory(moving(2), 0, 0, lambda entry: replace(entry, problem="gone"))
    (move,) = moves_of(disks_of(world))
    assert (move.source, move.total) == ("", -1)
    assert "from nowhere" in str(move)


def test_no_future_copy_is_no_move() -> None:
    """A cluster at rest."""
    assert moves(world_at(Stage.ASSESS).disks) == ()


def test_one_broker_that_cannot_be_seen_makes_it_unknown() -> None:
    """Not none."""
    world = moving()
    assert not isinstance(world.disks, Unknown)
    found = moves({**world.disks, ZERO: Unknown("no rights")})
    assert isinstance(found, Unknown)
    assert "broker 0" in found.reason
    assert "no rights" in found.reason
    assert moves(Unknown("nobody looked")) == Unknown("nobody looked")


def test_many_moves_are_told_by_number_and_sample() -> None:
    """Three of them, and how many more."""
    found = [Move(1, "t", number, "/a", "/b", f"t-{number}.x-future", 1, 2) for number in range(5)]
    text = told(found)
    assert text.startswith("5 moves between directories: t-0 on broker 1 from /a to /b (1 of 2 bytes); ")
    assert text.endswith(" and 2 more")
    assert told(found[:1]).startswith("1 move between directories: ")
