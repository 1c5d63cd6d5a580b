"""All explanations together: in the order of danger, for every world whatever it lacks, and what more is looked at."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.checks.stuck import CODES, DOCS, because, begun, explain, next_step, wanted
from migrate.model.findings import Clues, WaitDoc, Wanted
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MigrationZnode, NoZnode, NullZnode, Running, Stopped
from migrate.model.world import World
from tests.checks.stuck.worlds_that_wait import (
    REFUSED,
    codes,
    due,
    not_ready,
    only,
    silent,
    started_with,
    state,
    unregistered,
)
from tests.testing import worlds
from tests.testing.worlds import kraft, with_kraft, with_live, with_values, with_zk

PARTS = ("zookeeper", "kraft", "disks", "live", "configs", "services")
WRONG = "3000@c3000:9999,3001@c3001:9090,3002@c3002:9090"


# -- the codes -----------------------------------------------------------------------------------------------------
def test_codes_are_told_in_their_own_order_and_stop_comes_first() -> None:
    """Numbers follow the driver; what ends in an emptied ZooKeeper leads every list."""
    numbers = [int(doc.code.removeprefix("S-STUCK-")) for doc in DOCS]
    assert numbers == sorted(numbers)
    assert len(CODES) == len(DOCS)
    assert [doc.code for doc in DOCS if doc.title.startswith("STOP")] == ["S-STUCK-01", "S-STUCK-02"]


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.code)
def test_every_code_says_all_that_a_person_needs(doc: WaitDoc) -> None:
    """A state, a line, a reason, a way out, what comes by itself, a source."""
    assert re.fullmatch(r"S-STUCK-\d\d", doc.code)
    assert all((doc.title, doc.driver, doc.line, doc.why, doc.fix, doc.by_itself, doc.source))
    assert doc.fix.endswith(".")
    assert doc.why.endswith(".")
    assert re.fullmatch(r"[A-Z_]+", doc.driver)


# -- when nothing is told --------------------------------------------------------------------------------------------
def test_nothing_waits_before_the_controllers_and_after_the_copy() -> None:
    """A list that always holds something is read by nobody."""
    waiting = {stage: codes(worlds.world_at(stage)) for stage in Stage}
    assert waiting.pop(Stage.CONTROLLERS) == ["S-STUCK-30"]
    assert waiting.pop(Stage.MIGRATION_MODE) == ["S-STUCK-30"]
    assert {stage: found for stage, found in waiting.items() if found} == {}


def test_a_cluster_that_is_ready_is_told_that_the_copy_is_due() -> None:
    """No fault is made up where none is seen."""
    found = only(due())
    assert found.code == "S-STUCK-69"
    assert "every controller and every broker has registered" in str(found.cause)
    assert because(due()) == ""
    assert next_step(due()) == ""


def test_a_wait_has_begun_as_soon_as_something_of_the_controllers_is_there() -> None:
    """Their metadata, their znode, their process; and not before."""
    fresh = worlds.world_at(Stage.PREPARE)
    assert not begun(fresh)
    assert begun(with_zk(fresh, migration=MigrationZnode(-1, -1, -1, -1, 0)))
    assert begun(with_zk(fresh, migration=NullZnode(0)))
    assert begun(state(fresh, 3000, Running(1, 1.0, None)))
    assert not begun(state(fresh, 3000, Stopped()))
    assert not begun(replace(fresh, zookeeper=Unknown("no session"), services=Unknown("no supervisor")))
    assert begun(due())


def test_controllers_that_all_died_are_told_by_their_znode() -> None:
    """Nobody answers, and /migration says that somebody was here."""
    world = with_live(worlds.world_at(Stage.CONTROLLERS), quorum=Unknown("nobody"))
    for node in worlds.CONTROLLERS:
        world = state(silent(world, node), node, Stopped(1))
    world = replace(world, kraft=Unknown("nobody answers"))
    assert codes(world) == ["S-STUCK-10"]
    assert only(world).nodes == (3000, 3001, 3002)


# -- together --------------------------------------------------------------------------------------------------------
def bent() -> World:
    """A fault of each kind at once."""
    world = state(not_ready(3001, world=unregistered(0, 1)), 0, Stopped())
    world = with_values(world, 1, controller__quorum__voters=WRONG)
    world = with_zk(world, topics_without_id=("orders",), migration=MigrationZnode(9, 99, 3000, 1, 0))
    return with_zk(world, controller_epoch=NoZnode())


def test_everything_that_holds_is_told_and_the_danger_first() -> None:
    """Mending the first alone would only show the next."""
    assert codes(bent()) == ["S-STUCK-01", "S-STUCK-24", "S-STUCK-31", "S-STUCK-33", "S-STUCK-51", "S-STUCK-60"]


def test_each_fault_that_is_mended_leaves_the_others() -> None:
    """No explanation hangs on another."""
    healed = with_zk(bent(), migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert codes(healed) == codes(bent())[1:]
    everyone = with_kraft(healed, brokers=kraft(due()).brokers)
    assert codes(everyone) == ["S-STUCK-24", "S-STUCK-51", "S-STUCK-60"]


def test_the_line_of_a_wait_names_known_causes_of_the_nodes_it_is_about() -> None:
    """What cannot be determined is not said in it, and other nodes' faults are not this wait's."""
    world = bent()
    assert because(world, frozenset({0})) == "; S-STUCK-31: 0: broker 0 does not run (its process on b0)"
    assert because(world, frozenset({1})).startswith("; S-STUCK-33: 1: its file gives the active controller 3000")
    assert because(world, frozenset({2, 3001})) == ""
    assert because(world).startswith("; S-STUCK-01: /migration remembers a copy")
    assert "S-STUCK-24" not in because(world)
    assert next_step(world).startswith("Stop all controllers now")
    assert next_step(world, frozenset({1})).startswith("Correct controller.quorum.voters")


def test_the_line_of_a_wait_stands_still_while_nothing_changes() -> None:
    """A wait ends by lack of progress: an offset that counts up in its text would keep it alive for ever."""
    for world in (bent(), unregistered(1), not_ready(3001), worlds.world_at(Stage.CONTROLLERS)):
        later = with_kraft(world, offset=kraft(world).offset + 1000, high_watermark=kraft(world).offset + 1001)
        assert because(later) == because(world)


# -- what more to look at ----------------------------------------------------------------------------------------------
def test_only_where_something_waits_more_is_looked_at() -> None:
    """`status` of a cluster in order asks nobody twice."""
    for stage in (Stage.ASSESS, Stage.COPY, Stage.SOAK, Stage.FINALIZE):
        assert wanted(worlds.world_at(stage)) == Wanted()


def test_the_logs_of_those_who_are_waited_for_and_of_the_leader_are_wanted() -> None:
    """And addresses that only a broker's file has."""
    world = with_values(unregistered(1), 1, controller__quorum__voters=WRONG)
    assert wanted(world) == Wanted(("c3000:9999",), (NodeId(1), NodeId(3000)))
    registered = with_values(unregistered(2), 1, controller__quorum__voters=WRONG)
    assert wanted(registered).addresses == ()


def test_a_dead_id_has_no_log_to_read_and_addresses_have_an_end() -> None:
    """It is in no inventory; and a file with a thousand voters costs no thousand connections."""
    rows = worlds.zk(due()).partitions
    dead = with_zk(due(), partitions=replace(rows, replicas=[[9], *rows.replicas[1:]]))
    assert wanted(dead).logs == (NodeId(3000),)
    many = ",".join(f"{node}@nowhere:{node}" for node in range(1, 1000))
    assert len(wanted(with_values(unregistered(1), 1, controller__quorum__voters=many)).addresses) == 12


# -- whatever cannot be seen -------------------------------------------------------------------------------------
WORLDS = [
    ("stages", [worlds.world_at(stage) for stage in Stage]),
    ("faults", [due(), bent(), unregistered(0, 1, 2), not_ready(3000, 3001, 3002), started_with(bent(), 1, None)]),
    ("none", [with_kraft(due(), migration_state=ZkMigrationState.NONE)]),
]
EVERY = st.sampled_from([world for _, found in WORLDS for world in found])


@pytest.mark.slow
@given(EVERY, st.sets(st.sampled_from(PARTS)), st.sets(st.sampled_from([*worlds.BROKERS, *worlds.CONTROLLERS])))
def test_any_part_hidden_is_an_answer_and_never_more_certain(
    world: World, hidden: set[str], nodes: set[NodeId]
) -> None:
    """It does not fail, every cause that is not known says why, and nothing is called a fault for being unseen."""
    blind = replace(world, **{part: Unknown(f"{part} hidden") for part in hidden})  # type: ignore[arg-type]
    for part in ("disks", "configs", "services"):
        found = getattr(blind, part)
        if not isinstance(found, Unknown):
            one = {node: Unknown("this one hidden") if node in nodes else entry for node, entry in found.items()}
            blind = replace(blind, **{part: one})  # type: ignore[arg-type]
    for entry in explain(blind):
        assert entry.code in CODES
        assert all((entry.waits_for, entry.owner, entry.next_step, entry.by_itself, entry.driver))
        assert entry.cause.reason if isinstance(entry.cause, Unknown) else entry.cause
    certain = {(entry.code, entry.nodes) for entry in explain(blind) if not isinstance(entry.cause, Unknown)}
    seen = {(entry.code, entry.nodes) for entry in explain(world)}
    # hidden metadata make the quorum's own state the answer
    loose = {"S-STUCK-69", "S-STUCK-30", "S-STUCK-10", "S-STUCK-11", "S-STUCK-12"}
    assert {found for found in certain - seen if found[0] not in loose} == set()


@pytest.mark.slow
@given(EVERY, st.text(max_size=30), st.text(max_size=30))
def test_no_clue_makes_it_fail(world: World, address: str, line: str) -> None:
    """Logs and answers are what others wrote."""
    clues = Clues({address: REFUSED, "c3000:9999": REFUSED}, dict.fromkeys(worlds.CONTROLLERS, (line,)))
    for entry in explain(world, clues):
        assert all(text.isprintable() for text in entry.evidence)
