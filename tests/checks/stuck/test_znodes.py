"""What stands in ZooKeeper and holds the driver is named with its znode, and what would empty ZooKeeper comes first."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate.checks.stuck import because, explain
from migrate.model.columns import PartitionColumns
from migrate.model.findings import Clues
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import (
    ControllerZnode,
    Malformed,
    MigrationZnode,
    NoZnode,
    NullZnode,
    PendingWork,
    Quorum,
    ZnodePart,
    whole_or_unknown,
)
from migrate.model.world import World
from tests.checks.bends import kraft_has
from tests.checks.stuck.worlds_that_wait import cause, codes, due, only, unregistered, why_unknown
from tests.testing import worlds
from tests.testing.worlds import kraft, with_kraft, with_live, with_zk, zk


def assigned(world: World, row: int, *replicas: int) -> World:
    """One partition of ZooKeeper assigned to these brokers."""
    rows = zk(world).partitions
    cells = list(rows.replicas)
    cells[row] = list(replicas)
    return with_zk(world, partitions=replace(rows, replicas=cells))


def name_of(world: World, row: int) -> str:
    """topic-partition."""
    rows: PartitionColumns = zk(world).partitions
    return f"{rows.topic[row]}-{rows.partition[row]}"


def led(world: World, epoch: int) -> World:
    """The leader's epoch."""
    quorum = worlds.live(world).quorum
    assert isinstance(quorum, Quorum)
    return with_live(world, quorum=replace(quorum, leader_epoch=epoch))


# -- /migration ----------------------------------------------------------------------------------------------------
def test_a_stale_migration_of_a_higher_epoch_says_stop() -> None:
    """Each restart of a controller brings the deletion nearer."""
    found = only(with_zk(due(), migration=MigrationZnode(9000, kraft(due()).epoch + 1, 3000, 2, 7)))
    assert found.code == "S-STUCK-01"
    assert found.next_step.startswith("Stop all controllers now, and restart none of them")
    assert found.driver == "SYNC_KRAFT_TO_ZK"
    assert "nothing good" in found.by_itself
    assert "/migration: kraft_metadata_offset 9000" in found.evidence[0]


def test_a_stale_migration_says_stop_before_the_last_broker_registers() -> None:
    """Who is left is the trigger; where nobody is left there is no time at all."""
    stale = with_zk(unregistered(1), migration=MigrationZnode(9000, kraft(due()).epoch, 3000, 2, 7))
    first = explain(stale)[0]
    assert (first.code, first.nodes, first.waits_for) == ("S-STUCK-02", (1,), "brokers [1] to register")
    assert first.next_step.startswith("Stop all controllers now")
    assert codes(stale) == ["S-STUCK-02", "S-STUCK-40"]
    everyone = only(with_zk(due(), migration=MigrationZnode(9000, kraft(due()).epoch, 3000, 2, 7)))
    assert everyone.waits_for == "nothing any more: every broker has registered"


@pytest.mark.parametrize("offset", [0, -1])
def test_a_waiting_migration_is_not_stale(offset: int) -> None:
    """Whatever its epoch: an offset of 0 or less was never a copy."""
    assert codes(with_zk(due(), migration=MigrationZnode(offset, 99, 3000, 2, 7))) == ["S-STUCK-69"]


@pytest.mark.parametrize("stage", [Stage.CONTROLLERS, Stage.COPY])
def test_a_migration_without_data_hangs_every_stage(stage: Stage) -> None:
    """The driver of each new leader reads it."""
    found = explain(with_zk(worlds.world_at(stage), migration=NullZnode(3)))[0]
    assert (found.code, found.evidence) == ("S-STUCK-03", ("version 3",))


@pytest.mark.parametrize("znode", [MigrationZnode(-1, -1, 3000, 1, 7), MigrationZnode(0, 0, -1, -1, 0), NoZnode()])
def test_a_copy_that_nobody_will_note_is_stuck_for_ever(znode: MigrationZnode | NoZnode) -> None:
    """The metadata says MIGRATION, and another leader was elected since the one that copied."""
    found = only(with_zk(led(worlds.world_at(Stage.COPY), 2), migration=znode))
    assert found.code == "S-STUCK-04"
    assert "the quorum has another leader since" in cause(found)
    assert "rollback plan PLAYBOOK --copy-again" in found.next_step


def test_a_copy_whose_leader_still_leads_is_about_to_be_noted() -> None:
    """One look cannot call that stuck."""
    found = only(with_zk(worlds.world_at(Stage.COPY), migration=MigrationZnode(-1, -1, 3000, 1, 7)))
    assert found.code == "S-STUCK-69"
    assert "still leads" in cause(found)
    blind = with_live(
        with_zk(worlds.world_at(Stage.COPY), migration=MigrationZnode(-1, -1, 3000, 0, 7)), quorum=Unknown("no answer")
    )
    assert "S-STUCK-04" in codes(blind)  # the epoch of the metadata itself is enough


@pytest.mark.parametrize("stage", [Stage.COPY, Stage.HYBRID, Stage.KRAFT_MODE, Stage.SOAK, Stage.FINALIZE])
def test_nothing_waits_after_a_copy_that_was_noted(stage: Stage) -> None:
    """No stage after it has an explanation to show."""
    assert codes(worlds.world_at(stage)) == []


# -- the sync to ZooKeeper ------------------------------------------------------------------------------------------
SLASHED = "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW"


def syncing(world: World) -> World:
    """A new leader, of epoch 2, has claimed dual write and has written nothing of its epoch."""
    moved = worlds.with_kraft(led(world, 2), epoch=2)
    return with_zk(moved, migration=MigrationZnode(400, 1, 3001, 2, 9))


@pytest.mark.parametrize("stage", [Stage.HYBRID, Stage.KRAFT_MODE, Stage.SOAK])
@pytest.mark.parametrize(
    ("code", "kind", "key", "about", "command"),
    [
        ("S-STUCK-05", "client-metrics-config", "sub", "client-metrics-config sub", "kafka-configs --bootstrap-contr"),
        (
            "S-STUCK-06",
            "acl",
            SLASHED,
            "ACL of GROUP a/b (LITERAL)",
            "kafka-acls --bootstrap-server HOST:PORT --remove",
        ),
    ],
)
def test_what_stops_the_sync_is_named_with_the_command_that_removes_it(
    stage: Stage, code: str, kind: str, key: str, about: str, command: str
) -> None:
    """From the metadata itself; and nobody is sent to the remedy of a stale /migration, which would harm here."""
    lines = {NodeId(3000): ("ERROR Encountered zk migration fault: Unhandled error in SyncKRaftMetadataEvent",)}
    found = only(kraft_has(kind, key)(syncing(worlds.world_at(stage))), Clues(logs=lines))
    assert found.code == code
    assert about in cause(found)
    assert command in found.next_step
    assert "after pauses that double up to 60 s, and then syncs once: wait that long, nothing else" in found.next_step
    assert "not S-STUCK-01: stop no controller, and delete no znode" in found.next_step
    assert found.driver == "SYNC_KRAFT_TO_ZK"
    assert "claimed in epoch 2, written up to offset 400 of epoch 1" in found.evidence[0]
    assert "SyncKRaftMetadataEvent" in found.evidence[1]


def test_each_object_that_stops_the_sync_is_told() -> None:
    """To delete the first would only show the next."""
    world = kraft_has("client-metrics-config", "sub")(kraft_has("acl", SLASHED)(syncing(worlds.world_at(Stage.HYBRID))))
    assert codes(world) == ["S-STUCK-05", "S-STUCK-06"]


def test_a_sync_that_nothing_known_stops_is_unknown_and_sends_nobody_to_delete_anything() -> None:
    """It may be in progress: on a large cluster it takes its time."""
    found = only(syncing(worlds.world_at(Stage.HYBRID)))
    assert found.code == "S-STUCK-07"
    assert "may be in progress" in why_unknown(found)
    assert "zk migration fault" in found.next_step
    for word in ("delete", "format", "stop all"):
        assert word not in found.next_step.lower()
    assert because(syncing(worlds.world_at(Stage.HYBRID))) == ""


def test_objects_that_kafka_cannot_write_are_no_wait_while_dual_write_goes_on() -> None:
    """They are a finding then (B-MIG-14): the next election of a controller makes a wait of them."""
    assert codes(kraft_has("acl", SLASHED)(worlds.world_at(Stage.HYBRID))) == []


# -- the claim -----------------------------------------------------------------------------------------------------
def test_a_missing_controller_epoch_is_named() -> None:
    """The takeover needs it."""
    found = only(with_zk(due(), controller_epoch=NoZnode()))
    assert (found.code, cause(found)) == ("S-STUCK-60", "/controller_epoch does not exist")


@pytest.mark.parametrize(
    ("owner", "refused"),
    [
        (ControllerZnode(3000, 1, ephemeral=False, version=0), False),  # the leader itself, in its own epoch
        (ControllerZnode(3001, 1, ephemeral=False, version=0), True),
        (ControllerZnode(3000, 2, ephemeral=False, version=0), True),
        (ControllerZnode(3002, 0, ephemeral=False, version=0), False),
        (ControllerZnode(1, -1, ephemeral=True, version=0), False),
    ],
)
def test_the_claim_is_refused_by_the_same_or_a_higher_epoch(owner: ControllerZnode, refused: bool) -> None:
    """Kafka's own rule; a ZooKeeper controller never refuses."""
    for world in (due(), worlds.world_at(Stage.COPY)):
        assert ("S-STUCK-61" in codes(with_zk(world, controller=owner))) is refused
    unled = with_live(with_zk(due(), controller=owner), quorum=Unknown("no answer"))
    assert "S-STUCK-61" not in codes(unled)


# -- assignments ---------------------------------------------------------------------------------------------------
def test_an_id_that_is_only_left_in_an_assignment_is_named_with_its_partitions_and_the_way_out() -> None:
    """The reassignment is ready to be used: a living broker in its place."""
    world = assigned(due(), 0, 0, 9)
    found = only(world)
    assert (found.code, found.nodes, found.waits_for) == (
        "S-STUCK-50",
        (9,),
        "broker 9, found in assignments, to register",
    )
    assert cause(found).endswith(f"partitions assigned to it: 1 ({name_of(world, 0)})")
    moved = json.loads(found.next_step[found.next_step.index("{") :])
    (entry,) = moved["partitions"]
    assert entry["replicas"][0] == 0
    assert entry["replicas"][1] in (1, 2)
    assert f"{entry['topic']}-{entry['partition']}" == name_of(world, 0)
    assert "looks again within a minute" in found.by_itself


def test_a_replica_that_lived_there_alone_is_told() -> None:
    """Moving it moves nothing: no living broker has its records."""
    alone = only(assigned(due(), 0, 9))
    assert any("no living broker has a replica" in line for line in alone.evidence)
    assert not any("no living broker has a replica" in line for line in only(assigned(due(), 0, 0, 9)).evidence)


def test_every_living_broker_in_it_already_means_one_replica_less() -> None:
    """There is no fourth broker to take its place."""
    found = only(assigned(due(), 0, 0, 9, 1, 2))
    (entry,) = json.loads(found.next_step[found.next_step.index("{") :])["partitions"]
    assert entry["replicas"] == [0, 1, 2]


def test_many_partitions_are_counted_and_the_first_are_shown() -> None:
    """A line stays a line."""
    world = due()
    for row in range(6):
        world = assigned(world, row, 0, 9)
    found = only(world)
    assert "partitions assigned to it: 6 (" in cause(found)
    assert "and 1 more" in cause(found)
    assert "the first 5 of 6" in found.next_step


def test_topics_under_deletion_are_not_waited_for() -> None:
    """The driver skips them, and so do we."""
    world = assigned(due(), 0, 0, 9)
    pending = PendingWork(deletions=(zk(world).partitions.topic[0],))
    assert codes(with_zk(world, pending=pending)) == ["S-STUCK-69"]


def test_a_broker_of_the_inventory_that_is_down_is_no_dead_id() -> None:
    """It is ours, and may come back: nobody moves its replicas."""
    view = zk(due())
    gone = with_zk(unregistered(1), brokers={node: entry for node, entry in view.brokers.items() if node != 1})
    assert codes(gone) == ["S-STUCK-40"]


def test_a_broker_that_lives_and_is_not_in_the_inventory_was_not_looked_at() -> None:
    """Nothing is said about it but that."""
    view = zk(due())
    world = with_zk(due(), brokers={**view.brokers, NodeId(7): replace(view.brokers[NodeId(0)], id=NodeId(7))})
    found = only(world)
    assert (found.code, found.nodes) == ("S-STUCK-40", (7,))
    assert "not in the inventory" in why_unknown(found)


# -- topics --------------------------------------------------------------------------------------------------------
def test_a_topic_without_id_is_given_back_the_id_of_its_folders() -> None:
    """A new one would make strays of them."""
    rows = zk(due()).partitions
    topic, topic_id = rows.topic[0], rows.topic_id[0]
    found = only(with_zk(due(), topics_without_id=(topic,)))
    assert (found.code, cause(found)) == ("S-STUCK-51", f"/brokers/topics/{topic} has no topic_id")
    assert f'write "topic_id":"{topic_id}" into /brokers/topics/{topic}' in found.next_step
    assert "Error in topic consumer" not in found.next_step


@pytest.mark.parametrize(
    ("world", "text"),
    [
        (replace(due(), disks=Unknown("no hands there")), "was not seen: no hands there"),
        (due(), "no folder of it carries a topic id"),
    ],
)
def test_an_id_that_nobody_has_seen_is_not_made_up(world: World, text: str) -> None:
    """Then the code's own way out stands: the next ZooKeeper controller gives a new one."""
    found = only(with_zk(world, topics_without_id=("never-seen",)))
    assert text in found.evidence[0]
    assert "let ZooKeeper's controller move" in found.next_step
    assert '"topic_id":' not in found.next_step


def test_folders_that_disagree_are_told_and_no_id_is_proposed() -> None:
    """One of them is of another topic of that name."""
    rows = zk(due()).partitions
    topic = rows.topic[0]
    world = worlds.with_folder(due(), 1, 0, (topic, 77, "X" * 22, "current"))
    found = only(with_zk(world, topics_without_id=(topic,)))
    assert "different topic ids" in found.evidence[0]
    assert '"topic_id":' not in found.next_step


@pytest.mark.parametrize("kind", ["current", "future"])
def test_a_folder_whose_id_cannot_be_read_proposes_none(kind: str) -> None:
    """It may carry another id than the ones that can be read, and what stands for *unreadable* is no id."""
    rows = zk(due()).partitions
    for topic in (rows.topic[0], "only-unreadable"):
        world = worlds.with_folder(due(), 1, 0, (topic, 77, "?", kind))
        found = only(with_zk(world, topics_without_id=(topic,)))
        assert "was not seen: partition.metadata of /" in found.evidence[0]
        assert '"topic_id":' not in found.next_step


@pytest.mark.parametrize("kind", ["stray", "deleted"])
def test_what_was_set_aside_or_deleted_says_nothing_of_a_topics_id(kind: str) -> None:
    """Such a folder is of another topic of that name, as a rule."""
    rows = zk(due()).partitions
    world = worlds.with_folder(due(), 1, 0, (rows.topic[0], 77, "X" * 22, kind))
    assert f'"topic_id":"{rows.topic_id[0]}"' in only(with_zk(world, topics_without_id=(rows.topic[0],))).next_step
    world = worlds.with_folder(due(), 1, 0, ("long-gone", 0, "X" * 22, kind))
    found = only(with_zk(world, topics_without_id=("long-gone",)))
    assert "no folder of it carries a topic id" in found.evidence[0]
    assert '"topic_id":' not in found.next_step


def test_a_znode_that_cannot_be_parsed_is_told_beside_all_that_can() -> None:
    """The readable rest still says who is missing."""
    world = unregistered(1)
    view = replace(zk(world), malformed=(Malformed("/config/topics/t", "it is no JSON", ZnodePart.CONFIG),))
    found = replace(world, zookeeper=whole_or_unknown(view))
    assert codes(found) == ["S-STUCK-40", "S-STUCK-52"]


def test_without_zookeeper_the_controllers_are_still_told() -> None:
    """And nothing about brokers, of which nothing is known."""
    assert codes(replace(unregistered(1), zookeeper=Unknown("no session"))) == []


def test_the_active_controllers_log_is_evidence_for_the_znodes() -> None:
    """Its last word on it."""
    line = "Still waiting for ZK brokers [9] found in metadata to register with KRaft."
    found = only(assigned(due(), 0, 0, 9), Clues(logs={NodeId(3000): (line,), NodeId(3001): ("another's",)}))
    assert f"log of node 3000: {line}" in found.evidence
    assert not any("another's" in entry for entry in found.evidence)


def test_names_from_znodes_cannot_draw_on_a_terminal() -> None:
    """Control characters are escaped, whoever wrote them."""
    found = only(with_zk(due(), topics_without_id=("evil\x1b[2J",)))
    for text in (cause(found), found.waits_for, found.next_step, *found.evidence):
        assert "\x1b" not in text


def test_all_that_is_registered_has_a_metadata_to_be_registered_in() -> None:
    """A finalized or empty metadata waits for nobody."""
    assert codes(with_kraft(worlds.world_at(Stage.FINALIZE), brokers={})) == []
