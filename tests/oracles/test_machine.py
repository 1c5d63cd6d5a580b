"""The stage machine, rule by rule: what may come next from states whole and half done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracles.machine import (
    EVERY,
    Act,
    BrokerAt,
    Choice,
    ControllerAt,
    Done,
    Flag,
    Guard,
    Metadata,
    Mode,
    Move,
    Moves,
    Owner,
    Registered,
    Standing,
    Stop,
    Views,
    Wait,
    Znode,
    back,
    forward,
)

Z = BrokerAt(Mode.ZOOKEEPER, Mode.ZOOKEEPER, Registered.NOT, whole=True, verified=False)
M = BrokerAt(Mode.MIGRATION, Mode.MIGRATION, Registered.MIGRATING, whole=True, verified=False, believes_kraft=True)
K = BrokerAt(Mode.KRAFT, Mode.KRAFT, Registered.KRAFT, whole=True, verified=True)
NONE = ControllerAt(Flag.GONE, Flag.GONE, formatted=False)
UP = ControllerAt(Flag.ON, Flag.ON, formatted=True)
LEADER = replace(UP, leads=True)
DOWN = replace(UP, process=Flag.GONE)
BARE = ControllerAt(Flag.OFF, Flag.OFF, formatted=True)

BEGIN = Standing((Z, Z, Z), (NONE, NONE, NONE), Metadata.UNKNOWN, Znode.ABSENT, Owner.ZOOKEEPER)
WAITING = Standing((Z, Z, Z), (UP, UP, LEADER), Metadata.PRE_MIGRATION, Znode.WAITING, Owner.ZOOKEEPER)
HYBRID = Standing((M, M, M), (UP, UP, LEADER), Metadata.MIGRATION, Znode.COPIED, Owner.KRAFT)
SOAKED = replace(HYBRID, brokers=(K, K, K))


def acts(choice: Choice) -> list[tuple[Act, int]]:
    """The moves, in order."""
    assert isinstance(choice, Moves), choice
    return [(move.act, move.node) for move in choice.of]


@pytest.mark.parametrize(
    ("standing", "wanted"),
    [
        (BEGIN, [(Act.RENDER, 0), (Act.RENDER, 1), (Act.RENDER, 2)]),
        (WAITING, [(Act.STOP, 0), (Act.STOP, 1), (Act.STOP, 2)]),
        (replace(WAITING, brokers=(M, Z, Z)), [(Act.STOP, 1), (Act.STOP, 2)]),
        (replace(HYBRID, brokers=(K, M, M)), [(Act.STOP, 1), (Act.STOP, 2), (Act.ASSIGN, 1), (Act.ASSIGN, 2)]),
        (SOAKED, [(Act.STOP_CONTROLLER, 0), (Act.STOP_CONTROLLER, 1)]),
        (replace(SOAKED, controllers=(BARE, BARE, LEADER), finalizing=True), [(Act.STOP_CONTROLLER, 2)]),
        (replace(SOAKED, controllers=(DOWN, UP, LEADER)), [(Act.FLAG_OFF, 0)]),
    ],
    ids=["begin", "waiting", "half of roll 1", "half of roll 2", "soaked", "the last controller", "a stopped one"],
)
def test_forward_from_each_stage(standing: Standing, wanted: list[tuple[Act, int]]) -> None:
    """Any of the equal ones."""
    assert acts(forward(standing)) == wanted


@pytest.mark.parametrize(
    ("broker", "wanted"),
    [
        (replace(Z, process=Mode.DOWN, whole=False), Act.TO_MIGRATION),
        (replace(M, process=Mode.DOWN, whole=False), Act.START),
        (replace(Z, file=Mode.MIGRATION), Act.STOP),
    ],
    ids=["stopped", "written", "written under its process"],
)
def test_a_broker_that_is_half_way_goes_on_alone(broker: BrokerAt, wanted: Act) -> None:
    """No other one is stopped beside it."""
    assert acts(forward(replace(WAITING, brokers=(Z, broker, Z)))) == [(wanted, 1)]


@pytest.mark.parametrize(
    ("standing", "guard"),
    [
        (replace(BEGIN, znode=Znode.COPIED), Guard.UNKNOWN),
        (replace(WAITING, znode=Znode.COPIED), Guard.STALE_MIGRATION),
        (replace(WAITING, znode=Znode.NULL), Guard.STALE_MIGRATION),
        (replace(HYBRID, controllers=(BARE, UP, LEADER)), Guard.FLAG),
        (replace(WAITING, metadata=Metadata.NONE), Guard.FLAG),
        (replace(HYBRID, views=Views.DIFFER), Guard.ZERO_DIFFERENCE),
        (replace(WAITING, brokers=(replace(Z, ours=False), Z, Z)), Guard.STALENESS),
        (replace(WAITING, brokers=(replace(Z, healthy=False), Z, Z)), Guard.DISKS),
    ],
    ids=lambda value: value.name if isinstance(value, Guard) else "",
)
def test_what_stops_it_is_named(standing: Standing, guard: Guard) -> None:
    """A person is needed."""
    found = forward(standing)
    assert isinstance(found, Stop)
    assert found.guard is guard


@pytest.mark.parametrize(
    "standing",
    [
        replace(WAITING, brokers=(Z, replace(Z, whole=False), Z)),
        replace(WAITING, brokers=(M, M, M)),
        replace(HYBRID, znode=Znode.WAITING),
        replace(HYBRID, views=Views.BEHIND),
        replace(HYBRID, views=Views.UNSEEN),
        replace(HYBRID, brokers=(replace(K, verified=False), M, M)),
        replace(SOAKED, brokers=(K, K, replace(K, verified=False))),
        replace(WAITING, brokers=(replace(M, process=Mode.DOWN, session_left=True), Z, Z)),
    ],
    ids=["not whole", "copy", "offset", "behind", "unseen", "not proven", "last not proven", "session"],
)
def test_what_comes_by_itself_is_waited_for(standing: Standing) -> None:
    """With what it is."""
    found = forward(standing)
    assert isinstance(found, Wait)
    assert found.what


def test_the_rollback_has_one_order() -> None:
    """From hybrid: controllers, followers first; epoch; /controller; /migration; brokers; what is set aside."""
    assert acts(back(HYBRID)) == [(Act.STOP_CONTROLLER, 0), (Act.STOP_CONTROLLER, 1)]
    gone = replace(HYBRID, controllers=(DOWN, DOWN, DOWN), metadata=Metadata.UNKNOWN, epoch_low=True)
    assert acts(back(gone)) == [(Act.RAISE_EPOCH, -1)]
    assert acts(back(replace(gone, epoch_low=False))) == [(Act.DELETE_CONTROLLER, -1)]
    handed = replace(gone, epoch_low=False, owner=Owner.ZOOKEEPER)
    assert acts(back(handed)) == [(Act.DELETE_MIGRATION, -1)]
    clean = replace(handed, znode=Znode.ABSENT)
    assert isinstance(back(clean), Wait)  # until they believe it
    believing = tuple(replace(entry, believes_kraft=False) for entry in clean.brokers)
    assert acts(back(replace(clean, brokers=believing)))[0] == (Act.STOP, 0)
    assert acts(back(replace(clean, brokers=(Z, Z, Z))))[0] == (Act.SET_ASIDE, 0)
    assert back(replace(clean, brokers=(Z, Z, Z), controllers=(NONE, NONE, NONE))) == Done()


def test_kraft_brokers_go_back_while_the_controllers_are_up() -> None:
    """One by one, also those of a half-done roll; without controllers, these come first."""
    assert acts(back(SOAKED)) == [(Act.STOP, 0), (Act.STOP, 1), (Act.STOP, 2)]
    down = replace(SOAKED, controllers=(DOWN, DOWN, DOWN), metadata=Metadata.UNKNOWN)
    assert {act for act, _ in acts(back(down))} == {Act.START_CONTROLLER}


def test_controllers_that_went_too_early_finish_their_writing() -> None:
    """What ZooKeeper is known to lack is not given up."""
    gone = replace(HYBRID, controllers=(DOWN, DOWN, DOWN), metadata=Metadata.UNKNOWN, views=Views.BEHIND)
    assert {act for act, _ in acts(back(gone))} == {Act.START_CONTROLLER}
    again = replace(gone, controllers=(UP, DOWN, DOWN))
    assert acts(back(again)) == [(Act.START_CONTROLLER, 1), (Act.START_CONTROLLER, 2)]


def test_a_crashed_controllers_service_is_stopped_too() -> None:
    """Whoever owns it would start it again, beside ZooKeeper's own controller."""
    crashed = replace(HYBRID, controllers=(DOWN, DOWN, replace(DOWN, returns=True)), metadata=Metadata.UNKNOWN)
    assert acts(back(crashed)) == [(Act.STOP_CONTROLLER, 2)]


def test_an_accident_is_undone_before_it_finalizes_and_not_after() -> None:
    """The flagless one first, then its file; elected, no rollback is possible, and forward leads on."""
    accident = replace(HYBRID, controllers=(BARE, UP, LEADER))
    assert acts(back(accident)) == [(Act.STOP_CONTROLLER, 0)]
    stopped = replace(accident, controllers=(replace(BARE, process=Flag.GONE), UP, LEADER))
    assert acts(back(stopped)) == [(Act.FLAG_ON, 0)]
    elected = replace(accident, metadata=Metadata.POST_MIGRATION)
    found = back(elected)
    assert isinstance(found, Stop)
    assert found.guard is Guard.NO_RETURN
    assert {act for act, _ in acts(forward(elected))} == {Act.STOP}


def test_done_is_what_is_proven() -> None:
    """Finalized, every broker whole, every replica VERIFIED."""
    end = replace(SOAKED, controllers=(BARE, BARE, replace(BARE, leads=True)), metadata=Metadata.POST_MIGRATION)
    assert forward(end) == Done()
    assert isinstance(forward(replace(end, brokers=(K, K, replace(K, verified=False)))), Wait)
    assert back(BEGIN) == Done()


def test_a_guard_that_is_off_asks_nothing() -> None:
    """Which is how tests know that it is needed."""
    stale = replace(BEGIN, znode=Znode.COPIED)
    assert isinstance(forward(stale, EVERY - {Guard.STALE_MIGRATION}), Moves)
    assert Move(Act.RENDER, 0) in forward(stale, EVERY - {Guard.STALE_MIGRATION}).of  # type: ignore[union-attr]


def test_over_half_a_rollback_nothing_is_started() -> None:
    """The quorum that was given up still lies there; finishing the rollback clears it."""
    given_up = replace(
        BEGIN, controllers=(DOWN, DOWN, DOWN), metadata=Metadata.UNKNOWN, znode=Znode.ABSENT, old_log=True
    )
    found = forward(given_up)
    assert isinstance(found, Stop)
    assert "finish the rollback" in found.why
    assert {act for act, _ in acts(back(given_up))} == {Act.SET_ASIDE}
    assert {act for act, _ in acts(forward(replace(given_up, old_log=False)))} == {Act.START_CONTROLLER}
