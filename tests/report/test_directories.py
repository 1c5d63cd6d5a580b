"""Log directories as rows, as text, as a picture: everything is told, nothing unknown looks fine."""

from __future__ import annotations

from dataclasses import replace

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import Directory, MetaBroken, MetaMissing
from migrate.model.world import World
from migrate.report.directories import (
    HEAD,
    MOST_BROKERS,
    DirectoryRow,
    cells,
    directories_html,
    directories_text,
    directory_rows,
    disks_and_replicas,
    legend,
)
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
    assert [cells(sick)[name] for name in ("replicas", "size", "metadata log")] == ["?"] * 3
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
    text = directories_text(directory_rows(world))
    assert "the metadata directory, outside of log.dirs" in text


def test_folders_that_would_be_stray_are_counted_where_they_lie() -> None:
    """With their bytes; where nobody says what is assigned, that is not known."""
    world = with_folder(whole(Stage.HYBRID), 2, 0, ("gone", 0, directory_id(9, 9), "current"))
    row = directory_rows(world)[6]
    assert (row.would_be_stray, row.stray_bytes) == (1, 10)
    assert [other.would_be_stray for other in directory_rows(world)[:6]] == [0] * 6
    assert "1 folder with 10 B would be renamed -stray at a KRaft start" in directories_text(directory_rows(world))
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


def test_the_text_names_each_directory_under_its_broker() -> None:
    """In two lines what is known of it; below that what is wrong with it."""
    world = bent(whole(Stage.KRAFT_MODE), problem="I/O error", oddities=("a link\nforged",))
    blocks = directories_text(directory_rows(world)).split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [f"broker {node}  cluster {CLUSTER_ID}" for node in range(3)]
    healthy, sick = blocks[0].splitlines(), blocks[1].splitlines()
    assert [line.startswith("      ") for line in healthy[1:]] == [False, True, True] * 3
    assert all(", registered yes, " in line for line in healthy[2::3])
    assert all(", replica states 2 VERIFIED, " in line for line in healthy[3::3])
    assert sick[7:9] == ["      NOT HEALTHY: I/O error", "      a link\\x0aforged"]
    assert directories_text(()) == "no broker"


def test_the_picture_has_a_box_a_directory_and_the_sick_ones_are_marked() -> None:
    """Well-formed, with the states' legend."""
    rows = directory_rows(bent(whole(Stage.KRAFT_MODE), problem="I/O <error>"))
    drawn = str(disks_and_replicas(rows))
    assert drawn.count('class="disk"') == 8
    assert drawn.count('class="disk disk-bad"') == 1
    assert "I/O &lt;error&gt;" in drawn
    assert [state for state, _ in legend(rows)] == ["VERIFIED"]
    page = pages.read(directories_html(rows, "pay<ments>"))
    assert page.faults == []
    assert "1 not known to be healthy" in page.words
    assert disks_and_replicas(()) == ""


def test_of_very_many_brokers_those_with_something_wrong_are_drawn() -> None:
    """The rest stands in the table, and the picture says so."""
    rows = [DirectoryRow(broker, "/d0", "healthy", meta="V0", replicas=3) for broker in range(200)]
    rows[150] = replace(rows[150], health="I/O error")
    drawn = str(disks_and_replicas(rows))
    assert drawn.count("/d0 on") == MOST_BROKERS
    assert "broker 150" in drawn
    assert "and 160 brokers more, in the table" in drawn


def test_before_there_is_a_ledger_a_bar_is_what_the_disk_is_full_of() -> None:
    """With its bytes and its free space; where that is unknown it says so, and bars compare bytes."""
    full = DirectoryRow(1, "/d0", "healthy", meta="V0", replicas=3, bytes=300, free_bytes=100)
    drawn = str(disks_and_replicas([full]))
    assert 'class="s-used" style="width:75.00%"' in drawn
    assert "3 replicas, 300 B, 100 B free" in drawn
    pair = [replace(full, free_bytes=-1), replace(full, path="/d1", free_bytes=-1, bytes=150)]
    drawn = str(disks_and_replicas(pair))
    assert "width:100.00%" in drawn
    assert "width:50.00%" in drawn
    assert "free space unknown" in drawn
    told = pages.read(directories_html(pair, "c")).words
    assert "share of the disk" in told
    assert "cluster id" not in told, "a column that is `-` in every row says nothing"
