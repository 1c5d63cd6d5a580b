"""`directories show|verify|assign`: one row a directory, one a replica, and nothing sent unasked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.facts import pure_ledger
from migrate.model.ids import LOST, DirectoryId, NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from migrate.model.world import World
from migrate.run.locks import LockFile
from tests.cli.commands import Ended, inventory_in, kraft_migrate, playbook_in
from tests.steps.looks import service, whole, without
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, directory_id
from tests.testing.kept import sources_of

Directories = Callable[..., Ended]


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directories:
    """`directories` on a world."""
    path = inventory_in(tmp_path)

    def run(world: World, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        return kraft_migrate("directories", *words, "--inventory", path)

    return run


# -- show ------------------------------------------------------------------------------------------------------------
def test_show_has_a_row_for_each_directory_of_each_broker(directories: Directories) -> None:
    """Health, identity, registration, replicas, and the ledger's counts."""
    answer = directories(whole(Stage.KRAFT_MODE), "show", "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    rows = json.loads(answer.out)["directories"]
    assert [(row["broker"], row["path"]) for row in rows] == [
        (node, f"/data/b{node}/d{index}") for node in range(3) for index in range(3)
    ]
    row = rows[4]
    assert (row["health"], row["meta"], row["cluster_id"]) == ("healthy", "V0", CLUSTER_ID)
    assert (row["directory_id"], row["registered"]) == (directory_id(1, 1), "yes")
    assert (row["replicas"], row["ledger"]) == (2, {"VERIFIED": 2})
    assert (row["node_id"], row["metadata_log"], row["would_be_stray"]) == (1, False, 0)
    text = directories(whole(Stage.KRAFT_MODE), "show").out.splitlines()
    assert [line.split()[2] for line in text if line.startswith("broker")] == ["VVV"] * 3
    full = directories(whole(Stage.KRAFT_MODE), "show", "--full").out.splitlines()
    assert "replica states 2 VERIFIED" in full[full.index("broker 1  /data/b1/d1") + 2]


def test_show_draws_a_page(directories: Directories, tmp_path: Path) -> None:
    """Beside the text, as one file that needs nothing."""
    page = tmp_path / "page.html"
    answer = directories(whole(Stage.KRAFT_MODE), "show", "--html", page)
    assert (answer.code, answer.err) == (0, "")
    assert "/data/b2/d2" in page.read_text(encoding="utf-8")
    assert page.stat().st_mode & 0o777 == 0o600


def test_show_tells_a_dead_directory_an_unregistered_one_and_oddities(directories: Directories) -> None:
    """And brokers whose disks are not seen at all."""
    world = worlds.with_directory(
        whole(Stage.COPY),
        1,
        2,
        lambda entry: replace(entry, problem="input/output error", oddities=("a stray folder",)),
    )
    brokers = worlds.kraft(world).brokers
    world = worlds.with_kraft(
        world, brokers={**brokers, NodeId(0): replace(brokers[NodeId(0)], log_dirs=frozenset({directory_id(0, 0)}))}
    )
    assert not isinstance(world.disks, Unknown)
    world = replace(world, disks={**world.disks, NodeId(2): Unknown("no mount")})
    answer = directories(world, "show", "-o", "json")
    rows = json.loads(answer.out)["directories"]
    assert answer.code == 2
    assert [row["registered"] for row in rows[:3]] == ["yes", "no", "no"]
    assert (rows[5]["health"], rows[5]["oddities"]) == ("input/output error", ["a stray folder"])
    assert (rows[6]["health"], rows[6]["replicas"], len(rows)) == ("unknown: no mount", 6, 7)
    assert "  a stray folder" in directories(world, "show").out.splitlines()


def test_show_before_there_is_metadata(directories: Directories) -> None:
    """No ids, no registrations: said, not guessed."""
    rows = json.loads(directories(whole(Stage.ASSESS), "show", "-o", "json").out)["directories"]
    assert {(row["directory_id"], row["registered"]) for row in rows} == {("-", "unknown")}


# -- verify ----------------------------------------------------------------------------------------------------------
def test_verify_ends_with_0_where_every_replica_is_verified(directories: Directories) -> None:
    """One row a replica, as the ledger has it."""
    answer = directories(whole(Stage.KRAFT_MODE), "verify", "--output", "json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert (found["offset"], found["counts"]) == (500, {"VERIFIED": 18})
    assert set(found["replicas"][0]) >= {"topic", "topic_id", "partition", "broker", "state", "on_disk", "in_metadata"}
    assert directories(whole(Stage.KRAFT_MODE), "verify").out == "18 replicas at metadata offset 500: 18 VERIFIED\n"


def test_verify_ends_with_2_where_nothing_is_copied_yet(directories: Directories) -> None:
    """No broker is registered in the metadata: nothing is expected of one."""
    answer = directories(whole(Stage.ASSESS), "verify", "--output", "json")
    assert (answer.code, json.loads(answer.out)["counts"]) == (2, {"MIGRATING": 18})
    lines = directories(whole(Stage.ASSESS), "verify").out.splitlines()
    why = "in ZooKeeper alone, not copied to KRaft"
    assert lines == [
        *(f"broker {one}: 6 replicas MIGRATING: {why}" for one in range(3)),
        "18 replicas before the copy into the metadata: 18 MIGRATING",
    ], "no row each, and no offset -1 before there is one"


def test_what_nobody_sees_is_a_line_per_broker_with_the_reason(directories: Directories) -> None:
    """Never a row each with the same reason, never before the copy; the map has question marks, and no end of rows."""
    dark = replace(whole(Stage.COPY), kraft=Unknown("no controller answers"))
    dark = replace(dark, ledger=pure_ledger(dark))
    said = directories(dark, "verify")
    assert said.out.splitlines()[1:] == [
        *(f"broker {one}: 6 replicas UNKNOWN: kraft: no controller answers" for one in range(3)),
        "    make what the reason names visible, and look again; until then nothing is known of it",
        "18 replicas and no metadata that could be read: 18 UNKNOWN",
    ]
    for world in (dark, without("zookeeper")(whole(Stage.COPY))):
        lines = directories(world, "show").out.splitlines()
        assert " PROBLEM" in lines[0]
        assert lines[2] == "18 replicas: 18 UNKNOWN"
        assert [line.split()[2] for line in lines if line.startswith("broker")] == ["???"] * 3


@pytest.mark.slow
def test_after_the_first_roll_migrating_is_expected_and_a_line_per_broker(directories: Directories) -> None:
    """Exit code 0; each replica is listed on demand, by path; one in another state is told and is 2."""
    assert directories(whole(Stage.COPY), "verify", "-o", "json").code == 0
    answer = directories(whole(Stage.COPY), "verify")
    assert (answer.code, answer.out.splitlines()) == (
        0,
        [
            *(f"broker {one}: 6 replicas MIGRATING: expected until its restart into KRaft mode" for one in range(3)),
            "nothing else was found; --output json has each replica",
            "18 replicas at metadata offset 500: 18 MIGRATING",
        ],
    )
    dead = worlds.with_directory(whole(Stage.COPY), 1, 1, lambda entry: replace(entry, problem="gone"))
    sick = directories(replace(dead, ledger=pure_ledger(dead)), "verify")
    assert sick.code == 2
    assert sick.out.count(": NOT ON DISK (") == 2
    assert "broker 1: 4 replicas MIGRATING: expected until" in sick.out


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (directory_id(0, 2), f"; the metadata names /data/b0/d2, id {directory_id(0, 2)})"),
        (directory_id(1, 1), f"; the metadata names id {directory_id(1, 1)}, which no disk that was seen has)"),
        (LOST, ")"),
    ],
)
def test_a_row_shows_paths_and_an_id_only_where_no_path_has_it(
    named: DirectoryId, said: str, directories: Directories
) -> None:
    """What is on the disk, and what the metadata names if that is another directory."""
    world = whole(Stage.KRAFT_MODE)
    columns = deepcopy(worlds.kraft(world).partitions)
    at = next(n for n, nodes in enumerate(columns.replicas) if nodes[0] == 0)
    columns.directories[at] = [named, *columns.directories[at][1:]]
    first = directories(worlds.with_kraft(world, partitions=columns), "verify").out.splitlines()[0]
    assert re.match(rf"{columns.topic[at]}-{columns.partition[at]} @ broker 0: \w+ \(on /data/b0/d\d", first)
    assert first.endswith(said)


def test_a_long_list_is_cut_and_says_so(directories: Directories, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not shown is counted, and where it stands is named."""
    monkeypatch.setattr("migrate.cli.directories.LISTED", 5)
    world = whole(Stage.COPY)
    nobody = worlds.with_kraft(world, brokers={})
    lines = directories(replace(nobody, ledger=pure_ledger(nobody)), "verify").out.splitlines()
    assert sum(" @ broker " in line and ": MIGRATING (on /" in line for line in lines) == 5
    assert "... and 13 more (--output json has them all)" in lines
    alike = [line for line in lines if "6 MIGRATING: the broker is not registered: it reports" in line]
    assert [line.split(":")[0] for line in alike] == ["broker 0", "broker 1", "broker 2"]
    assert sum("it reports" in line for line in lines) == 3, "what to do is said once for each broker, not in each row"


def test_unseen_disks_are_2_and_say_why(directories: Directories) -> None:
    """UNKNOWN is a state, and not VERIFIED."""
    world = whole(Stage.KRAFT_MODE)
    assert not isinstance(world.disks, Unknown)
    answer = directories(replace(world, disks={**world.disks, NodeId(2): Unknown("no mount")}), "verify", "-o", "json")
    assert answer.code == 2
    found = json.loads(answer.out)
    assert found["counts"] == {"UNKNOWN": 6, "VERIFIED": 12}
    assert {row["why"] for row in found["replicas"] if row["state"] == ReplicaState.UNKNOWN} == {"disks: no mount"}


def test_no_replica_at_all_is_no_proof(directories: Directories) -> None:
    """An empty ledger proves nothing."""
    view = worlds.zk(whole(Stage.ASSESS))
    empty = worlds.with_zk(whole(Stage.ASSESS), partitions=type(view.partitions)())
    answer = directories(empty, "verify")
    assert (answer.code, answer.out) == (2, "0 replicas before the copy into the metadata: none\n")


@pytest.mark.parametrize("words", [("verify",), ("assign", "1")])
def test_without_zookeeper_there_is_no_ledger_to_go_by(words: tuple[str, ...], directories: Directories) -> None:
    """An error with an id: nothing can be said, nothing is sent."""
    answer = directories(without("zookeeper")(whole(Stage.COPY)), *words)
    assert answer.code == 1
    assert answer.out in ("", "1 PROBLEM: ZooKeeper cannot be read (zookeeper hidden)\n")
    assert "zookeeper hidden" in answer.err
    assert answer.err.startswith(("E-VIEW-01", "E-DIR-02"))


# -- assign ----------------------------------------------------------------------------------------------------------
def test_assign_shows_what_would_be_sent_and_sends_nothing(directories: Directories) -> None:
    """By directory; --yes is another matter."""
    answer = directories(whole(Stage.COPY), "assign", "1")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        *(f"directory {entry}: 2 replicas" for entry in sorted(directory_id(1, index) for index in range(3))),
        "dry run; pass --yes to send",
    ]


def test_assign_says_first_what_is_wrong(directories: Directories) -> None:
    """`nothing to send` is no word on a broker that is down."""
    answer = directories(service(1, Stopped())(whole(Stage.KRAFT_MODE)), "assign", 1)
    assert answer.out.startswith("1 PROBLEM: broker 1 is stopped on b1")


def test_assign_of_a_finished_broker_has_nothing_to_send(directories: Directories) -> None:
    """Not even with --yes: no lock is taken for it."""
    answer = directories(whole(Stage.KRAFT_MODE), "assign", "1", "--yes")
    assert (answer.code, answer.out) == (0, "nothing to send\n")


def test_assign_is_for_brokers_of_the_inventory(directories: Directories) -> None:
    """A controller is none."""
    for node in ("7", "3000", "-1"):
        answer = directories(whole(Stage.COPY), "assign", node)
        assert answer.code == 64, node
        assert answer.out == ""


def test_assign_sends_nothing_while_a_run_goes_on(directories: Directories, tmp_path: Path) -> None:
    """Seven, and who it is."""
    lock = LockFile(tmp_path / "runs" / "lock")
    try:
        answer = directories(whole(Stage.COPY), "assign", "1", "--yes")
    finally:
        lock.release()
    assert answer.code == 7
    assert "E-RUN-03" in answer.err


def test_a_playbook_names_the_cluster_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every one of them."""
    playbook = playbook_in(tmp_path)
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.KRAFT_MODE)))
    for words in (("show",), ("verify",), ("assign", "1")):
        assert kraft_migrate("directories", *words, playbook).code == 0
