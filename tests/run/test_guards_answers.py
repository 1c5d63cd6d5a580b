"""Each guard alone, in hybrid: what it sees refuses by name, and what it cannot see is never passed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.errors import PlanIsStale
from migrate.model.config_keys import QuorumKind
from migrate.model.ids import NodeId
from migrate.model.outcome import Awaited, NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerZnode, NodeAnswer, NoFile, NoZnode
from migrate.model.world import Need, World
from migrate.run import guards
from migrate.run.guards import GUARDS, Situation
from migrate.steps import facts
from migrate.steps.rollback.copy_again import RestartInMigrationMode
from tests.run.test_engine import plan_for
from tests.testing import worlds
from tests.testing.simulated import SimulatedCluster

BLIND = Unknown("lights out")
HYBRID = worlds.world_at(Stage.HYBRID)
PLAN = plan_for(SimulatedCluster.in_zookeeper_mode())
COPIES = ("roll-to-migration-mode", RestartInMigrationMode.kind)  # the last of such restarts starts the copy
EVERY_NEED = frozenset(Need)
Bend = Callable[[World], World]


def first(kind: str, plan: Plan = PLAN) -> PlannedStep:
    """The first step of that kind; a copy again restarts in the place of the first roll."""
    if kind == RestartInMigrationMode.kind:
        return replace(first("roll-to-migration-mode", plan), kind=kind)
    return next(step for step in plan.steps if step.kind == kind)


def ask(guard: str, world: World, kind: str = "roll-to-kraft", done: frozenset[str] = frozenset()) -> Readiness:
    """One guard's answer before the first step of that kind."""
    return GUARDS[guard](Situation(PLAN, first(kind), done, EVERY_NEED), world)


def as_planned(world: World, *but: str) -> Plan:
    """The plan with every file bound to what lies in that world now, and `but` to other content."""
    keys = {key for step in PLAN.steps for key in (*step.binds, *step.expects) if key.startswith("config:")}
    now = facts.observed(world, keys)
    now.update(dict.fromkeys(but, "f" * 64))

    def bind(entries: dict[str, str]) -> dict[str, str]:
        return {key: now.get(key, value) for key, value in entries.items()}

    steps = tuple(replace(step, binds=bind(dict(step.binds)), expects=bind(dict(step.expects))) for step in PLAN.steps)
    return replace(PLAN, steps=steps)


def files(world: World, plan: Plan, done: frozenset[str] = frozenset()) -> Readiness:
    """What the guard of the files says before the first broker's second roll."""
    return guards.files_as_left(Situation(plan, first("roll-to-kraft", plan), done, EVERY_NEED), world)


def with_services(world: World, **changes: object) -> World:
    """With the processes of some nodes seen otherwise (`n1`: node 1)."""
    assert not isinstance(world.services, Unknown)
    states = {**world.services, **{NodeId(int(name[1:])): state for name, state in changes.items()}}
    return replace(world, services=states)  # type: ignore[arg-type]


def with_flag(world: World, node: int, value: str | None) -> World:
    """With another value of the migration flag in that node's file; None: without the key."""
    return worlds.with_values(world, node, zookeeper__metadata__migration__enable=value)


def without_file(node: int, instead: NoFile | Unknown) -> Bend:
    """That node's file is not there, or cannot be read."""

    def bend(world: World) -> World:
        assert not isinstance(world.configs, Unknown)
        return replace(world, configs={**world.configs, NodeId(node): instead})

    return bend


@pytest.mark.parametrize("guard", [name for name in GUARDS if name != "files-as-left"])
@pytest.mark.parametrize("kind", ["assign-directories", "roll-to-kraft", "finalize-controller"])
def test_in_hybrid_as_it_should_be_every_guard_lets_pass(guard: str, kind: str) -> None:
    """So that the refusals below are for what is bent alone."""
    assert ask(guard, HYBRID, kind) == Ready()


@pytest.mark.parametrize(
    ("guard", "bend"),
    [
        ("processes-seen", lambda world: replace(world, services=BLIND)),
        ("processes-seen", lambda world: with_services(world, n1=BLIND)),
        ("processes-seen", lambda world: with_services(world, n3002=BLIND)),
        ("processes-seen", lambda world: replace(world, services={})),
        ("same-cluster", lambda world: replace(world, zookeeper=BLIND, kraft=BLIND)),
        ("early-finalize", lambda world: replace(world, kraft=BLIND)),
        ("early-finalize", without_file(3001, BLIND)),
        ("early-finalize", without_file(3001, NoFile("/conf/c3001.properties"))),
        ("early-finalize", lambda world: replace(world, configs=BLIND)),
        ("controller-is-krafts", lambda world: replace(world, zookeeper=BLIND)),
        ("controller-is-krafts", lambda world: worlds.with_zk(world, controller=BLIND)),
        ("nothing-moves", lambda world: replace(world, kraft=BLIND)),
        ("logins-issued", lambda world: replace(world, issuers=BLIND)),
        ("logins-issued", lambda world: replace(world, issuers={NodeId(0): BLIND})),
        ("logins-issued", lambda world: replace(world, issuers={})),
    ],
)
def test_what_a_guard_cannot_see_it_does_not_let_pass(guard: str, bend: Bend) -> None:
    """Unknown, with the reason; not "all is well"."""
    assert isinstance(ask(guard, bend(HYBRID)), Unknown)


def test_a_restart_waits_for_whoever_issues_that_nodes_login() -> None:
    """By name; what another node needs, and steps that start nothing, wait for nobody."""
    away = ("no KDC of the realm answers: Connection refused",)
    first_broker = next(step for step in PLAN.steps if step.kind == "roll-to-kraft").params["broker"]
    for node in map(int, worlds.BROKERS):
        world = replace(HYBRID, issuers={**dict.fromkeys(worlds.BROKERS, ()), NodeId(node): away})
        found = ask("logins-issued", world)
        if str(node) == first_broker:
            assert isinstance(found, NotYet)
            assert found.what == f"who issues the logins of broker {node} to answer: {away[0]}"
        else:
            assert found == Ready()
    assert ask("logins-issued", replace(HYBRID, issuers=BLIND), "back-up-zookeeper") == Ready()


@pytest.mark.parametrize(
    "bend",
    [
        lambda world: worlds.with_zk(world, cluster_id="another"),
        lambda world: worlds.with_kraft(world, cluster_id="another"),
        lambda world: replace(worlds.with_kraft(world, cluster_id="another"), zookeeper=BLIND),
    ],
)
def test_either_store_of_another_cluster_makes_the_plan_stale(bend: Bend) -> None:
    """The one that is right does not speak for the other."""
    with pytest.raises(PlanIsStale, match="another"):
        ask("same-cluster", bend(HYBRID))


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (
            lambda world: worlds.with_values(world, 3001, zookeeper__metadata__migration__enable="false"),
            "controller 3001",
        ),
        (lambda world: worlds.with_values(world, 3002, zookeeper__metadata__migration__enable=None), "controller 3002"),
        (
            lambda world: worlds.with_live(
                world, controllers={**worlds.live(world).controllers, NodeId(3000): NodeAnswer(False, {})}
            ),
            "controller 3000 runs without the flag",
        ),
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), "POST_MIGRATION"),
    ],
)
@pytest.mark.parametrize("kind", [*COPIES, "assign-directories", "roll-to-kraft"])
def test_a_controller_without_the_flag_refuses_every_roll(kind: str, bend: Bend, says: str) -> None:
    """By its file as by its own answer; and the rollback is told to be gone where it is."""
    found = ask("early-finalize", bend(HYBRID), kind)
    assert isinstance(found, Refused)
    assert says in found.reason
    assert found.codes == ("B-MIG-07",)


@pytest.mark.parametrize(
    "owner",
    [
        NoZnode(),
        ControllerZnode(0, -1, ephemeral=True, version=0),
        ControllerZnode(3000, 1, ephemeral=True, version=0),
        ControllerZnode(3000, -1, ephemeral=False, version=0),
    ],
)
@pytest.mark.parametrize("kind", ["assign-directories", "roll-to-kraft", "finalize-controller"])
def test_only_a_persistent_controller_with_a_kraft_epoch_is_krafts(owner: ControllerZnode | NoZnode, kind: str) -> None:
    """Each of the two signs alone is not enough."""
    found = ask("controller-is-krafts", worlds.with_zk(HYBRID, controller=owner), kind)
    assert isinstance(found, Refused)
    assert found.codes == ("B-MIG-13",)


@pytest.mark.parametrize("column", ["adding", "removing"])
@pytest.mark.parametrize("kind", ["assign-directories", "roll-to-kraft", "finalize-controller"])
def test_a_replica_that_comes_or_goes_is_waited_for(column: str, kind: str) -> None:
    """A reassignment may have either half left alone."""
    columns = worlds.kraft(HYBRID).partitions
    rows = [list(entry) for entry in getattr(columns, column)]
    rows[1] = [NodeId(2)]
    moving = replace(columns, adding=rows) if column == "adding" else replace(columns, removing=rows)
    found = ask("nothing-moves", worlds.with_kraft(HYBRID, partitions=moving), kind)
    assert isinstance(found, NotYet)
    assert f"{columns.topic[1]}-{columns.partition[1]}" in str(found)


def test_files_as_they_were_left_let_pass() -> None:
    """Also where the step's own file is half written: that is its own matter."""
    own = [key for key in first("roll-to-kraft").binds if key.startswith("config:")]
    assert own
    assert files(HYBRID, as_planned(HYBRID)) == Ready()
    assert files(HYBRID, as_planned(HYBRID, *own)) == Ready()


def test_a_file_of_another_hand_makes_the_plan_stale() -> None:
    """Whichever node's it is."""
    node = HYBRID.inventory.node(2)
    with pytest.raises(PlanIsStale, match=rf"{node.config} of broker 2 on {node.host} \(sha256 "):
        files(HYBRID, as_planned(HYBRID, "config:2"))


def test_a_file_that_cannot_be_read_is_neither_left_nor_changed() -> None:
    """Unknown: looked at again, not stale for ever."""
    found = files(without_file(2, BLIND)(HYBRID), as_planned(HYBRID))
    assert found == Unknown("the file of broker 2 cannot be seen: lights out")


def test_a_host_that_is_off_is_waited_for_and_hides_all_its_nodes_at_once() -> None:
    """One reason, both nodes, and whose turn it is: not a refusal after half a minute."""
    off = Awaited("E-HOST-22 h2: no connection", "whoever runs h2", "start the host")
    found = ask("processes-seen", with_services(HYBRID, n2=off, n3001=off))
    assert found == replace(off, reason=f"the process of broker 2 and controller 3001 to be seen ({off.reason})")
    assert files(without_file(2, off)(HYBRID), as_planned(HYBRID)) == replace(
        off, reason=f"the file of broker 2 to be seen ({off.reason})"
    )


def test_what_a_concluded_step_wrote_counts_and_not_what_it_was_planned_on() -> None:
    """The same file twice in a plan: its last writer decides, once it is concluded."""
    now = as_planned(HYBRID)
    writer = next(step for step in now.steps if step.kind == "roll-to-migration-mode" and "config:2" in step.binds)
    wrote = replace(writer, binds={**writer.binds, "config:2": "0" * 64})
    plan = replace(now, steps=tuple(wrote if step is writer else step for step in now.steps))
    assert files(HYBRID, plan, frozenset({writer.id})) == Ready()
    with pytest.raises(PlanIsStale, match="of broker 2 on"):
        files(HYBRID, plan)


@pytest.mark.parametrize("step", PLAN.steps, ids=lambda step: step.id)
def test_every_step_is_preceded_by_a_look_at_the_files(step: PlannedStep) -> None:
    """And at the store that says which cluster this is."""
    wanted = guards.needs(step)
    assert Need.CONFIGS in wanted
    assert wanted & {Need.ZOOKEEPER, Need.KRAFT}
    assert (Need.ZOOKEEPER in wanted) == (step.stage < Stage.FINALIZE)
    assert (Need.KRAFT in wanted) == (step.stage > Stage.CONTROLLERS)


@pytest.mark.parametrize("kind", COPIES)
def test_before_a_copy_a_dynamic_quorum_has_all_controllers_registered_with_the_flag(kind: str) -> None:
    """Nobody else waits for them: asked again before every restart that may start the copy, and before no later one."""
    known = {node: found for node, found in worlds.kraft(HYBRID).controllers.items() if node != 3001}
    static = worlds.with_kraft(HYBRID, controllers=known)
    dynamic = replace(static, inventory=replace(static.inventory, quorum=QuorumKind.DYNAMIC))
    assert isinstance(ask("early-finalize", dynamic, kind), NotYet)
    assert ask("early-finalize", dynamic) == Ready()
    assert ask("early-finalize", static, kind) == Ready()
