"""Log directories as rows, as text, as a picture: everything is told, nothing unknown looks fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.columns import ReplicaColumns
from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import Directory, MetaBroken, MetaMissing
from migrate.model.world import World
from migrate.report.directories import (
    HEAD,
    DirectoryRow,
    cells,
    directories_html,
    directories_lines,
    directory_rows,
    heat,
)
from migrate.report.lines import Tone, text
from tests.report import pages
from tests.steps.looks import whole
from tests.testing.clusters import CLUSTER_ID, directory_id
from tests.testing.worlds import with_directory, with_folder, with_kraft, with_zk, world_at, zk


def bent(world: World, **changes: object) -> World:
    """Directory 1 of broker 1 with other fields."""
    return with_directory(world, 1, 1, lambda entry: replace(entry, **changes))  # type: ignore[arg-type]


def test_every_directory_has_a_row_and_an_unseen_broker_says_why() -> None:
    """In the order of inventory and file."""
    world = world_at(Stage.ASSESS)
    rows = directory_rows(world)
    assert [row.broker for row in rows] == [0] * 3 + [1] * 3 + [2] * 3
    assert {tuple(cells(row)) for row in rows} == {HEAD}
    assert (rows[0].health, rows[0].meta, rows[0].cluster_id, rows[0].node_id) == ("healthy", "V0", CLUSTER_ID, 0)
    assert not isinstance(world.disks, Unknown)
    blind = directory_rows(replace(world, disks={**world.disks, NodeId(1): Unknown("no route")}))
    assert [row.health for row in blind if row.broker == 1] == ["unknown: no route"]
    assert not any(row.healthy for row in blind if row.broker == 1)
    unseen = directory_rows(replace(world, disks=Unknown("not asked")))
    assert {cells(row)["health"] for row in unseen} == {"unknown: not asked"}


def test_what_is_wrong_with_a_directory_stands_in_its_row() -> None:
    """Health and identity; of what could not be read nothing is said, and no number is a zero."""
    sick = directory_rows(bent(world_at(Stage.ASSESS), problem="I/O error", meta=MetaMissing()))[4]
    assert (sick.health, sick.meta, sick.directory_id, sick.healthy) == ("I/O error", "?", "?", False)
    assert sick.registered == "unknown"
    assert [cells(sick)[name] for name in ("registered", "size", "metadata log", "node")] == ["?"] * 4
    assert (sick.replicas, sick.bytes, sick.metadata_log) == (None, None, None)
    emptied = directory_rows(bent(world_at(Stage.ASSESS), meta=MetaMissing()))[4]
    assert (emptied.health, emptied.meta, emptied.directory_id) == ("healthy", "missing", "-")
    broken = directory_rows(bent(world_at(Stage.ASSESS), meta=MetaBroken("no number")))[4]
    assert broken.meta == "broken: no number"
    untried = directory_rows(bent(world_at(Stage.ASSESS), unproven="nobody tried"))[4]
    assert (untried.health, untried.healthy) == ("unknown: nobody tried", False)


def test_a_metadata_directory_apart_has_a_row_of_its_own() -> None:
    """metadata.log.dir is registered by nobody."""
    world = whole(Stage.KRAFT_MODE)
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(1)]
    assert not isinstance(disks, Unknown)
    first: Directory = replace(disks.directories[0], path="/meta", holds_metadata_log=True)
    world = replace(world, disks={**world.disks, NodeId(1): replace(disks, metadata_directory=first)})
    row = directory_rows(world)[6]
    assert (row.path, row.log_dir, row.metadata_log, row.registered) == ("/meta", False, True, "-")
    assert "the metadata directory, outside of log.dirs" in text(directories_lines(directory_rows(world), full=True))


def test_folders_that_would_be_stray_are_counted_where_they_lie() -> None:
    """With their bytes; where nobody says what is assigned, that is not known."""
    world = with_folder(whole(Stage.HYBRID), 2, 0, ("gone", 0, directory_id(9, 9), "current"))
    row = directory_rows(world)[6]
    assert (row.would_be_stray, row.stray_bytes) == (1, 10)
    assert [other.would_be_stray for other in directory_rows(world)[:6]] == [0] * 6
    assert "1 folder with 10 B would be renamed -stray at a KRaft start" in text(
        directories_lines(directory_rows(world))
    )
    blind = replace(world, zookeeper=Unknown("hidden"), kraft=Unknown("hidden"))
    assert directory_rows(blind)[6].would_be_stray is None


def test_after_finalize_the_metadata_says_what_is_assigned_and_an_old_tree_does_not() -> None:
    """The tree stands still from then on."""
    world = with_folder(whole(Stage.HYBRID), 2, 0, ("gone", 0, directory_id(9, 9), "current"))
    tree = zk(world).partitions
    knows = replace(tree, topic=[*tree.topic, "gone"], topic_id=[*tree.topic_id, directory_id(9, 9)])
    knows = replace(knows, partition=[*tree.partition, 0], replicas=[*tree.replicas, [2]])
    stale = with_zk(world, partitions=knows)
    assert directory_rows(stale)[6].would_be_stray == 0
    finalized = with_kraft(stale, migration_state=ZkMigrationState.POST_MIGRATION)
    assert directory_rows(finalized)[6].would_be_stray == 1


@pytest.mark.parametrize(
    ("stage", "named", "known"),
    [
        (Stage.ASSESS, "?", {}),
        (Stage.COPY, directory_id(1, 1), {"NOT ON DISK": 2}),
        (Stage.KRAFT_MODE, directory_id(1, 1), {"NOT ON DISK": 2}),
    ],
)
def test_a_directory_that_cannot_be_read_keeps_its_replicas_and_its_id(
    stage: Stage, named: str, known: dict[str, int]
) -> None:
    """By the metadata and the registration: nothing of it is missing in a count, nothing is `no` or 0."""
    healthy = sum(row.replicas or 0 for row in directory_rows(whole(stage)))
    rows = directory_rows(unreadable(stage))
    row = rows[4]
    assert (row.directory_id, row.registered) == (named, "unknown" if named == "?" else "yes")
    assert sum(one.replicas or 0 for one in rows) == healthy
    assert (row.replicas, row.bytes, row.metadata_log, row.unexpected) == (2, None, None, {"NOT ON DISK": 2})
    assert known.items() <= row.ledger.items()
    told = text(directories_lines(rows, 80))
    assert "broker 1  .D." in told or "broker 1  mDm" in told or "broker 1  VDV" in told
    assert not any(word in told for word in ("registered no", "meta missing", "replicas 0"))
    assert ("by the registration at offset 51" in told) is (named != "?")
    assert "2 NOT ON DISK" in told


def test_replicas_that_no_directory_holds_are_in_every_count() -> None:
    """Two directories are dead, and nothing says which one a MIGRATING replica was in: a row of their own."""
    world = with_directory(unreadable(Stage.COPY), 1, 2, lambda entry: replace(entry, problem="gone"))
    rows = directory_rows(replace(world, ledger=pure_ledger(world)))
    nowhere = [row for row in rows if not row.path]
    assert [(row.broker, row.replicas, row.healthy) for row in nowhere] == [(1, 4, False)]
    assert "in no directory that was seen" in text(directories_lines(rows))
    assert not isinstance(world.disks, Unknown)
    unseen = replace(world, disks={**world.disks, NodeId(1): Unknown("no route")})
    row = next(one for one in directory_rows(replace(unseen, ledger=pure_ledger(unseen))) if one.path == "?")
    assert row.ledger == {"UNKNOWN": 6}


def unreadable(stage: Stage) -> World:
    """Directory 1 of broker 1 cannot be read, and its ledger was made of what is left."""
    world = bent(whole(stage), problem="Permission denied", meta=MetaMissing(), replicas=ReplicaColumns())
    return replace(world, ledger=pure_ledger(world))


def large() -> list[DirectoryRow]:
    """Thirty brokers with twelve directories in the middle of the second roll; one is dead, one has a wrong replica."""
    fine = DirectoryRow(0, "", "healthy", "/data", "xfs", 2**36, "V0", CLUSTER_ID, 0, directory_id(1, 1), "", "yes")
    rows = [
        replace(fine, broker=broker, path=f"/data/kafka/d{disk:02}", replicas=360, bytes=2**37, ledger={state: 360})
        for broker in range(30)
        for disk in range(12)
        for state in ["VERIFIED" if broker < 15 else "MIGRATING"]
    ]
    dead = {"ledger": {"NOT ON DISK": 360}, "unexpected": {"NOT ON DISK": 360}, "health": "Input/output error"}
    rows[7 * 12 + 5] = replace(rows[7 * 12 + 5], **dead, meta="?", bytes=None, registered="offline")  # type: ignore[arg-type]
    wrong = {"ledger": {"VERIFIED": 358, "MISMATCH": 2}, "unexpected": {"MISMATCH": 2}}
    rows[9 * 12 + 3] = replace(rows[9 * 12 + 3], **wrong)  # type: ignore[arg-type]
    return rows


def test_thirty_brokers_with_twelve_disks_fit_one_screen() -> None:
    """A line each with totals; below them what is not fine, and with `full` every directory."""
    lines = [line.text for line in directories_lines(large(), 80)]
    assert max(map(len, lines)) <= 80
    assert len(lines) < 50
    assert lines[0] == "30 brokers, 360 directories: 1 not known to be healthy"
    assert lines[1].startswith("129,600 replicas: 64,438 VERIFIED, 2 MISMATCH, 64,800 MIGRATING, 360 NOT ON DISK")
    assert sum(line.startswith("broker ") and "VVVVVVVVVVVV" in line for line in lines) == 13
    assert next(line for line in lines if line.startswith("broker 7 ")).split()[2:4] == ["VVVVVDVVVVVV", "4,320"]
    assert [line for line in lines if line.startswith("broker") and "/data" in line] == [
        "broker 7  /data/kafka/d05",
        "broker 9  /data/kafka/d03",
    ]
    full = [line.text for line in directories_lines(large(), 80, full=True)]
    assert sum("/data/kafka/d" in line and line.startswith("broker") for line in full) == 360
    assert text(directories_lines(())) == "no broker\n"


def test_the_terminal_and_the_page_draw_the_same_squares() -> None:
    """Letters and colours of one heat map; control characters and markup of paths are harmless in both."""
    rows = directory_rows(bent(whole(Stage.KRAFT_MODE), problem="I/O <error>", oddities=("a link\nforged",)))
    found = heat(rows)
    assert ["".join(one.letter for one in row.squares) for row in found.rows] == ["VVV", "VDV", "VVV"]
    (line,) = [line for line in directories_lines(rows) if line.text.startswith("broker 1 ")][:1]
    assert line.parts[2] == ("D", Tone.BAD)
    html = directories_html(rows, "pay<ments>", "now")
    page = pages.read(html)
    assert page.faults == []
    assert html.count('<i class="square s-verified" title') == 8
    assert html.count('<i class="square s-dead" title') == 1
    assert "1 not known to be healthy" in page.words
    assert "a link\\x0aforged" in text(directories_lines(rows))
    assert (
        "cluster id" not in pages.read(directories_html([DirectoryRow(1, "/d0", "healthy", meta="V0")], "c", "")).words
    )
