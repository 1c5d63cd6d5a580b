"""A quorum without leader, and controllers that have not registered with the flag, are explained by what is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks.stuck import explain
from migrate.errors import MetadataMoved
from migrate.kraft.fetch import MetadataReader
from migrate.model.columns import PartitionColumns
from migrate.model.findings import Clues
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown, unknown
from migrate.model.secrets import Digester
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MetaMissing, NodeAnswer, NoFile, Quorum, Stopped, Voter
from migrate.model.world import World
from tests.checks.bends import directory
from tests.checks.stuck.worlds_that_wait import (
    REFUSED,
    cause,
    codes,
    due,
    file,
    not_ready,
    only,
    silent,
    started_with,
    state,
    why_unknown,
)
from tests.kraft.fake_quorum import CLUSTER_ID, running
from tests.testing import worlds
from tests.testing.worlds import with_values

FLAG = "zookeeper__metadata__migration__enable"


def leaderless(world: World) -> World:
    """Nobody leads, and nobody's metadata can be read."""
    gone = worlds.with_live(world, quorum=Unknown("no controller leads the quorum"))
    return replace(gone, kraft=Unknown("E-KAFKA-07 no leader"))


def unflagged(world: World, *nodes: int) -> World:
    """Those controllers answer without the flag."""
    answers = dict(worlds.live(world).controllers)
    for node in nodes:
        answer = answers[NodeId(node)]
        assert isinstance(answer, NodeAnswer)
        answers[NodeId(node)] = replace(answer, migration_flag=False)
    return worlds.with_live(world, controllers=answers)


# -- registrations -----------------------------------------------------------------------------------------------
MISSING = not_ready(3001)
OLD = not_ready(3001, registered=True)


@pytest.mark.parametrize(
    ("code", "world", "text"),
    [
        ("S-STUCK-20", with_values(OLD, 3001, **{FLAG: None}), "zookeeper.metadata.migration.enable is missing in its"),
        ("S-STUCK-20", with_values(OLD, 3001, **{FLAG: "false"}), "migration.enable is false in its file"),
        ("S-STUCK-20", unflagged(with_values(OLD, 3001, **{FLAG: None}), 3001), "is missing in its file"),
        ("S-STUCK-21", started_with(OLD, 3001, "f" * 64), "its process was started with another file"),
        ("S-STUCK-21", unflagged(OLD, 3001), "its process says that it was started without"),
        ("S-STUCK-22", state(silent(MISSING, 3001), 3001, Stopped(1)), "does not run (its process on "),
        ("S-STUCK-23", silent(MISSING, 3001), "it runs and does not answer"),
    ],
)
def test_each_reason_of_a_controller_that_is_not_ready(code: str, world: World, text: str) -> None:
    """Named with the controller, whatever the brokers do."""
    found = only(world)
    assert found.code == code
    assert text in cause(found)
    assert found.nodes == (3001,)
    assert found.waits_for == "controller 3001 to register with the migration flag"
    assert found.driver == "WAIT_FOR_CONTROLLER_QUORUM"
    assert "wakes the driver" in found.by_itself


def test_the_metadatas_own_word_is_shown() -> None:
    """Registered without the flag, or not at all."""
    assert "the metadata has its registration without the flag" in only(OLD).evidence
    assert "the metadata has none of it" in only(MISSING).evidence


def test_a_stopped_controller_without_the_flag_has_both_faults() -> None:
    """Started as it is, it would be the next trouble: the flag is told first."""
    world = with_values(state(MISSING, 3001, Stopped()), 3001, **{FLAG: None})
    assert codes(world) == ["S-STUCK-20", "S-STUCK-22"]


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (MISSING, "its file has the flag, its process runs with that file and answers with the flag"),
        (file(MISSING, 3001, Unknown("permission denied")), "its file: permission denied"),
        (state(MISSING, 3001, Unknown("no /proc")), "its process: no /proc"),
        (state(silent(MISSING, 3001), 3001, Unknown("no /proc")), "its answer: E-KAFKA-01"),
    ],
)
def test_nothing_is_guessed_of_a_controller(world: World, reason: str) -> None:
    """Unknown stays Unknown, with its reason."""
    found = only(world)
    assert found.code == "S-STUCK-24"
    assert reason in why_unknown(found)


def test_below_controller_registrations_the_driver_asks_for_none() -> None:
    """metadata.version under 3.7-IV0: that wait does not exist."""
    features = {"metadata.version": 14}
    assert "S-STUCK-24" not in codes(worlds.with_kraft(MISSING, features=features))
    assert "S-STUCK-24" in codes(worlds.with_kraft(MISSING, features={"metadata.version": 15}))


def test_a_ready_controller_is_not_waited_for_though_it_is_stopped() -> None:
    """Its registration stays in the metadata, and that is what the driver reads."""
    assert codes(state(silent(due(), 3001), 3001, Stopped())) == ["S-STUCK-69"]


# -- the quorum --------------------------------------------------------------------------------------------------
def test_a_quorum_without_majority_names_those_that_are_stopped() -> None:
    """Two of three: nobody can lead.  One of three is no reason."""
    two = state(state(silent(leaderless(due()), 3000, 3002), 3000, Stopped(1)), 3002, Stopped())
    found = only(two)
    assert (found.code, found.nodes) == ("S-STUCK-10", (3000, 3002))
    assert cause(found) == "2 of 3 controllers are stopped (3000, 3002), and 2 must run"
    one = state(silent(leaderless(due()), 3000), 3000, Stopped())
    assert codes(one) == ["S-STUCK-13"]


@pytest.mark.parametrize(
    ("stage", "left"), [(Stage.COPY, "--discard-differences"), (Stage.KRAFT_MODE, "docs/support.md")]
)
def test_where_most_metadata_is_lost_nobody_is_told_to_start_or_to_format(stage: Stage, left: str) -> None:
    """Two of three directories are empty: back while every broker can, later what the survivor holds."""
    world = leaderless(due() if stage is Stage.COPY else worlds.world_at(stage))
    for node in (3000, 3002):
        lost = directory(node, 0, meta=MetaMissing(), holds_metadata_log=False)
        world = lost(state(silent(world, node), node, Stopped(1)))
    (found,) = (entry for entry in explain(world) if entry.code == "S-STUCK-10")
    assert cause(found).endswith("the metadata directories of 3000, 3002 are empty")
    assert "Format none of these directories" in found.next_step
    assert left in found.next_step


def test_a_controller_that_runs_and_does_not_answer_is_named_with_its_address() -> None:
    """And with what its file makes it listen on, where that is elsewhere."""
    found = only(silent(leaderless(due()), 3001))
    assert (found.code, cause(found)) == ("S-STUCK-11", "it runs and does not answer at c3001:9090")
    assert found.evidence[0] == REFUSED.reason
    elsewhere = only(with_values(silent(leaderless(due()), 3001), 3001, listeners="CTL://c3001:9095"))
    assert cause(elsewhere) == "its file makes it listen on CTL://c3001:9095, and it is called at c3001:9090"


def test_files_that_disagree_on_the_voters_are_named() -> None:
    """Each counts by its own list."""
    world = with_values(leaderless(due()), 3002, controller__quorum__voters="3000@c3000:9090,3002@c3002:9090")
    found = only(world)
    assert (found.code, found.nodes) == ("S-STUCK-12", (3002,))
    assert "/conf/c3002.properties" in found.owner


def test_without_a_visible_reason_it_says_what_could_not_be_read() -> None:
    """All run, all answer, all agree; or nothing of the processes is known."""
    found = only(leaderless(due()))
    assert found.code == "S-STUCK-13"
    assert "no controller leads the quorum; E-KAFKA-07 no leader" in why_unknown(found)
    blind = replace(leaderless(due()), services=Unknown("no supervisor"))
    assert "the process of controller 3000: no supervisor" in why_unknown(only(blind))


def test_metadata_that_only_we_cannot_read_is_not_called_a_quorum_without_leader() -> None:
    """The leader answers: the tool's own access is what fails."""
    found = only(replace(due(), kraft=Unknown("E-KAFKA-05 no right to Fetch")))
    assert (found.code, found.waits_for) == ("S-STUCK-13", "metadata that can be read")
    assert "no right to Fetch" in why_unknown(found)


def test_a_leader_that_the_inventory_does_not_have_is_the_cause() -> None:
    """Its followers name it where the metadata is read; it is no quorum without a leader."""
    with running() as quorum:
        quorum.leader = 3009
        reader = MetadataReader(quorum.inventory(CLUSTER_ID), Digester(), patience=0.1)
        with reader, pytest.raises(MetadataMoved) as caught:
            reader.view()
    why = why_unknown(only(replace(leaderless(due()), kraft=unknown(caught.value))))
    assert "controller 3009 leads, and is not in the inventory: add it to the inventory" in why


def with_voters(world: World, *ends: int, committed: int = 0) -> World:
    """A quorum of these log ends, led by 3000; who has nothing has never caught up."""
    voters = tuple(Voter(NodeId(3000 + index), end, 0 if end > 0 else -1) for index, end in enumerate(ends))
    return worlds.with_live(world, quorum=Quorum(NodeId(3000), 1, committed, voters))


def test_a_leader_whose_followers_do_not_fetch_has_nothing_committed() -> None:
    """Who they are, and that they are stopped; else that it cannot be determined."""
    world = state(with_voters(due(), 5, 0, 0), 3001, Stopped())
    found = next(entry for entry in explain(world) if entry.code == "S-STUCK-14")
    assert found.nodes == (3001, 3002)
    assert cause(found) == "controller 3001 is stopped"
    deaf = next(entry for entry in explain(silent(with_voters(due(), 5, 5, 0), 3002)) if entry.code == "S-STUCK-14")
    assert "controller 3002 does not answer" in cause(deaf)
    lost = next(entry for entry in explain(with_voters(due(), 5, 0, 0)) if entry.code == "S-STUCK-14")
    assert "[3001, 3002] do not fetch, and they run and answer" in why_unknown(lost)
    assert "S-STUCK-14" not in codes(with_voters(due(), 5, 0, 0, committed=5))


# -- started without the flag --------------------------------------------------------------------------------------
def test_a_log_at_none_can_never_migrate() -> None:
    """It must be created again; an empty log says nothing yet."""
    world = worlds.with_kraft(due(), migration_state=ZkMigrationState.NONE, brokers={}, partitions=PartitionColumns())
    assert codes(world) == ["S-STUCK-15"]
    assert codes(worlds.with_kraft(world, offset=-1)) == []


def test_metadata_that_holds_a_cluster_is_never_told_to_be_set_aside() -> None:
    """Kafka 4 writes no word of the migration into its snapshots; formatting such controllers would end the cluster."""
    world = worlds.with_kraft(worlds.world_at(Stage.KRAFT_MODE), migration_state=ZkMigrationState.NONE)
    assert "S-STUCK-15" not in codes(world)
    found = {entry.code for entry in checks.run(world, target=Stage.CLEANUP)}
    assert "B-MIG-17" in found
    assert "B-MIG-02" not in found


def test_log_lines_of_controllers_are_evidence() -> None:
    """Of the one that is waited for."""
    line = "Controller 3001 has not enabled zookeeper.metadata.migration.enable"
    found = only(with_values(OLD, 3001, **{FLAG: None}), Clues(logs={NodeId(3001): (line,)}))
    assert f"log of node 3001: {line}" in found.evidence


def test_controllers_that_are_only_planned_are_not_waited_for() -> None:
    """Nothing has begun before they were started."""
    world = worlds.world_at(Stage.ASSESS)
    assert codes(world) == []
    assert codes(file(world, 3000, NoFile("/conf/c3000.properties"))) == []
    assert codes(worlds.world_at(Stage.PREPARE)) == []
