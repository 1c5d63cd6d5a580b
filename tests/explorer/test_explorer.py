"""The bounded model is visited whole: two engines, every fault, both ways, and no promise broken."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.oracles.machine import EVERY, Guard, Metadata, Mode, Owner, Znode
from tests.testing.explorer.cluster import G, in_zookeeper_mode, plain_ints, standing, told, with_broker
from tests.testing.explorer.faults import Fault
from tests.testing.explorer.search import Visit, visit, ways
from tests.testing.explorer.system import Bounds, System, breach_of
from tests.testing.explorer.walk import numbers, walk

ONE = Bounds(engines=1, faults=1)
TWO_ENGINES = Bounds(engines=2, faults=1)
# engines that die and sleep, controllers that another hand starts without the flag: what two engines can be hurt by
TWO_FAULTS = Bounds(engines=2, faults=2, kinds=frozenset({Fault.KILL, Fault.PAUSE, Fault.FLAGLESS}))


def sound(found: Visit) -> None:
    """No breach; else its shortest trace is what the test says."""
    assert not found.breach, "\n".join(found.trace)
    assert found.whole


@pytest.mark.slow
def test_one_engine_without_a_fault_gets_to_both_ends() -> None:
    """What is proven is not proven of nothing: finalized, and back in ZooKeeper mode, are both among the states."""
    system = System(Bounds(brokers=3, engines=1, faults=0))
    sound(visit(system))
    metas = {cluster[2][G.META] for cluster in system.clusters}
    assert {Metadata.PRE_MIGRATION, Metadata.MIGRATION, Metadata.POST_MIGRATION} <= metas
    found = ways(system)
    assert found.dead == ()
    assert 0 < found.forward <= found.states
    assert 0 < found.back < found.states  # from finalized there is none


@pytest.mark.explorer
def test_from_every_state_a_way_leads_to_an_end() -> None:
    """After any one fault, at any time: without another fault one of the two ends can be reached (G3, G5).

    Excepted are clusters that another hand has finalized while a broker was in ZooKeeper mode: those need a person.
    """
    found = ways(System(ONE))
    assert found.states > 70_000
    left = [line for line in found.dead if "log POST_MIGRATION" not in line]
    assert left == []
    assert len(found.dead) < found.states / 100


@pytest.mark.explorer
def test_two_engines_and_any_one_fault_break_no_promise() -> None:
    """More than a million transitions, the whole model."""
    found = visit(System(TWO_ENGINES))
    sound(found)
    assert found.transitions > 1_000_000


@pytest.mark.explorer
def test_two_engines_and_two_faults_break_no_promise() -> None:
    """Breadth first to the bound."""
    found = visit(System(TWO_FAULTS), most=2_500_000)
    assert not found.breach, "\n".join(found.trace)
    assert found.whole or found.transitions >= 2_500_000


@pytest.mark.explorer
def test_three_brokers_and_any_one_fault_break_no_promise() -> None:
    """One engine."""
    sound(visit(System(Bounds(brokers=3, engines=1, faults=1))))


# -- seeded walks ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_seeded_walks_of_a_larger_model_break_no_promise(seed: int) -> None:
    """Three brokers, two engines, three faults, every kind: deeper than the visit gets, and nowhere near whole."""
    found = walk(Bounds(brokers=3, engines=2, faults=3), seed=seed, steps=4_000)
    assert not found.breach, "\n".join(found.lines[-60:])
    assert found.steps > 100


def test_one_integer_reproduces_a_walk() -> None:
    """Line by line."""
    bounds = Bounds(engines=2, faults=2)
    assert walk(bounds, seed=7, steps=300) == walk(bounds, seed=7, steps=300)
    assert walk(bounds, seed=7, steps=300) != walk(bounds, seed=8, steps=300)


@pytest.mark.slow
def test_a_walk_with_a_guard_off_ends_at_its_breach() -> None:
    """And its last line says which promise it was."""
    walks = [walk(Bounds(engines=1, faults=2), seed=seed, steps=600, guards=EVERY - {Guard.WHOLE}) for seed in range(9)]
    broken = [found for found in walks if found.breach]
    assert broken
    assert all(found.lines[-1].endswith(found.breach) for found in broken)


class Walker(RuleBasedStateMachine):
    """Hypothesis chooses what happens next, and shrinks what breaks a promise."""

    system = System(Bounds(brokers=3, engines=2, faults=2))

    def __init__(self) -> None:
        super().__init__()
        self.state = self.system.start()
        self.breach = ""

    @rule(choice=st.integers(0, 1 << 16))
    @precondition(lambda self: not self.breach)
    def something_happens(self, choice: int) -> None:
        """Any of the transitions that the model has from here."""
        steps = list(self.system.steps(self.state))
        _, self.state, self.breach = steps[choice % len(steps)]

    @rule(choice=st.integers(0, 1 << 16))
    @precondition(lambda self: not self.breach)
    def an_engine_goes_on(self, choice: int) -> None:
        """Engines act more often than faults befall, or no walk would get far."""
        steps = [step for step in self.system.steps(self.state) if not step[0].startswith("FAULT")]
        if steps:
            _, self.state, self.breach = steps[choice % len(steps)]

    @invariant()
    def no_promise_is_broken(self) -> None:
        """G1 to G9."""
        assert not self.breach
        assert not breach_of(self.system.cluster(self.state))


TestWalker = Walker.TestCase
TestWalker.settings = settings(max_examples=30, stateful_step_count=120, deadline=None)


# -- the model itself --------------------------------------------------------------------------------------------------
def test_equal_nodes_are_one() -> None:
    """Which of the brokers it is makes no difference."""
    first = in_zookeeper_mode(3, 3)
    assert {with_broker(first, number, (0, int(Mode.MIGRATION))) for number in range(3)} == {
        with_broker(first, 0, (0, int(Mode.MIGRATION)))
    }


def test_states_of_engines_with_names_exchanged_are_one() -> None:
    """Folding is its own inverse up to one representative."""
    system = System(TWO_ENGINES)
    chance = numbers(3)
    state = system.start()
    for _ in range(400):
        steps = list(system.steps(state))
        state = steps[next(chance) % len(steps)][1]
        assert system.folded(system.folded(state)) == system.folded(state)


def test_a_stale_znode_looks_like_any_copied_one() -> None:
    """An engine sees an offset above 0; whose copy it was, it cannot see."""
    brokers, controllers, common = in_zookeeper_mode(2, 3)
    values = list(common)
    values[G.ZNODE] = 4
    seen = standing(plain_ints((brokers, controllers, tuple(values))))
    assert seen.znode is Znode.COPIED
    assert seen.owner is Owner.ZOOKEEPER
    assert "stale" in told((brokers, controllers, tuple(values)))
