"""From the controllers' stop until control is handed back nobody leads: a rollback parks before it or after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import ClockJumped, MigrateError, RunInterrupted, RunParked
from migrate.model.ids import NodeId
from migrate.model.plan import Plan
from migrate.model.windows import Weekly, Window
from migrate.plan.parking import block, may_lack_controller, may_leave_while_waiting, may_park_before
from tests.run.gated import HOUR, Gated
from tests.run.test_rollback import ENTRIES, at, rollback_plan, stuck
from tests.testing import worlds
from tests.testing.simulated_back import TwoWay

GAP: Final = ("raise-state-versions", "hand-back-control")
EVENINGS: Final = Window("evenings", "UTC", (Weekly(tuple(range(7)), 21 * 60, 24 * 60),), (), 600.0)


def stopped_by_hand(cluster: TwoWay, *controllers: int) -> TwoWay:
    """The cluster after a person stopped these controllers."""
    for node in controllers:
        cluster.stop(NodeId(node), 1.0)
    cluster.done.clear()
    return cluster


def behind_at_stop(cluster: TwoWay) -> TwoWay:
    """Every controller is stopped, and ZooKeeper lacks something of what they committed."""
    cluster.unwritten_at_stop = 2
    return stopped_by_hand(cluster, 3001, 3002, 3000)


CASES: Final[dict[str, Callable[[Path], tuple[TwoWay, bool]]]] = {  # name -> the cluster, and whether to copy again
    **{entry: lambda folder, entry=entry: (at(entry, folder), False) for entry in ENTRIES},  # type: ignore[misc] # mypy infers no lambda with a default
    "one controller is down": lambda folder: (stopped_by_hand(at("hybrid", folder), 3001), False),
    "every controller is down": lambda folder: (stopped_by_hand(at("hybrid", folder), 3001, 3002, 3000), False),
    "ZooKeeper lacks something": lambda folder: (behind_at_stop(at("hybrid", folder)), False),
    "a stuck copy": lambda folder: (stuck(folder), False),
    "a stuck copy, copied again": lambda folder: (stuck(folder), True),
}


def planned(case: str, folder: Path) -> tuple[TwoWay, Plan]:
    """The cluster of that case, and the rollback that is built for it."""
    cluster, copy_again = CASES[case](folder)
    return cluster, rollback_plan(cluster, copy_again=copy_again)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_plan_parks_while_the_cluster_has_no_controller(tmp_path: Path, case: str) -> None:
    """The steps from the stop to the hand-back are one block, so that a window must hold all of them."""
    _, plan = planned(case, tmp_path)
    kinds = [step.kind for step in plan.steps]
    for kind in GAP:
        assert not may_park_before(plan.steps, kinds.index(kind))
    for index in range(kinds.index("hand-back-control")):
        if "stop" in kinds[index] or kinds[index] in GAP:
            assert not may_leave_while_waiting(plan.steps, index)
    stop = next((index for index, kind in enumerate(kinds) if kind.startswith("stop-")), None)
    if stop is not None:
        assert may_park_before(plan.steps, stop)
        assert [step.kind for step in block(plan.steps, stop)] == [kinds[stop], *GAP]
    assert may_park_before(plan.steps, kinds.index("hand-back-control") + 1)


INTERRUPTIONS: Final[dict[str, tuple[Callable[[Gated], object], type[MigrateError]]]] = {
    "Ctrl-C": (lambda run: setattr(run.request, "by", "Ctrl-C"), RunInterrupted),
    "SIGHUP": (lambda run: setattr(run.request, "by", "SIGHUP"), RunInterrupted),
    "the window's end": (lambda run: setattr(run.clock, "time", run.clock.time + 3 * HOUR), RunParked),
    "a clock jump": (lambda run: setattr(run.clock, "set_by", 120.0), ClockJumped),
}


def lost(run: Gated) -> bool:
    """Is no controller process left that could lead, and /controller not yet handed back?"""
    cluster = run.cluster
    assert isinstance(cluster, TwoWay)
    back = "delete /controller" in cluster.done or "delete /migration" in cluster.done
    return sum(node in cluster.running for node in (3000, 3001, 3002)) < 2 and not back


def rollback(cluster: TwoWay, plan: Plan, folder: Path) -> Gated:
    """A run of that plan in the evening, under a playbook that has a window for rollbacks."""
    folder.mkdir()
    playbook = replace(worlds.playbook(), windows={"evenings": EVENINGS}, rollback_window="evenings")
    return Gated(folder, replace(playbook, pace=replace(playbook.pace, node_estimate=60.0)), cluster=cluster, plan=plan)


@pytest.mark.slow
@pytest.mark.parametrize("kind", INTERRUPTIONS)
@pytest.mark.parametrize("case", ["controllers up", "hybrid", "all brokers KRaft", "a stuck copy, copied again"])
def test_an_interruption_while_nobody_leads_is_obeyed_after_the_hand_back(tmp_path: Path, case: str, kind: str) -> None:
    """Whoever asks, and whatever the hour: the run goes on until a broker owns /controller, and parks there."""
    cluster, plan = planned(case, tmp_path / "forward")
    run = rollback(cluster, plan, tmp_path / "back")
    interrupt, error = INTERRUPTIONS[kind]
    struck: list[bool] = []

    def look() -> None:
        if not struck and lost(run):
            struck.append(True)
            interrupt(run)

    run.each_look = look
    after = plan.steps[[step.kind for step in plan.steps].index("hand-back-control") + 1].id
    with pytest.raises(error):
        run.session()
    assert not run.concluded(after)
    assert run.concluded("copy/hand-back-control")
    assert cluster.owner is not None
    assert cluster.owner[0] == "zookeeper"
    assert struck
    assert cluster.harms == []
    if kind not in ("the window's end", "a clock jump"):
        (note,) = [event for event in run.named("note") if event.data["key"] == "postponed"]
        assert f"obeyed before {after}" in note.data["value"]


def test_a_run_that_does_not_fit_into_its_window_parks_before_the_controllers_stop(tmp_path: Path) -> None:
    """There is room for the stop alone, and not for what has to follow it."""
    cluster, plan = planned("hybrid", tmp_path / "forward")
    run = rollback(cluster, plan, tmp_path / "back")
    run.clock.time += 3 * HOUR - 1000.0  # the stop, two steps and the reserve: 24 + 2 * 300 + 600 seconds
    with pytest.raises(RunParked, match=r"parked before hybrid/stop-controllers: .* 20 min needed"):
        run.session()
    assert {3000, 3001, 3002} <= set(cluster.running)


def test_a_new_session_keeps_no_hours_while_nobody_leads(tmp_path: Path) -> None:
    """Killed in between, and the window closed since: control is handed back first, then the rolls wait."""
    cluster, plan = planned("hybrid", tmp_path / "forward")
    run = rollback(cluster, plan, tmp_path / "back")

    def look() -> None:
        if lost(run):
            raise KeyboardInterrupt

    run.each_look = look
    with pytest.raises(KeyboardInterrupt):
        run.session()
    run.each_look = lambda: None
    run.clock.time += 5 * HOUR
    with pytest.raises(RunParked, match="window evenings"):
        run.session()
    assert run.concluded("copy/hand-back-control")


def test_whoever_stops_a_run_at_once_hears_that_the_cluster_may_have_no_controller(tmp_path: Path) -> None:
    """From the begun stop to the proven hand-back, and at no other time."""
    _, plan = planned("hybrid", tmp_path)
    ids = [step.id for step in plan.steps]
    told = [
        (
            may_lack_controller(plan.steps, ids[:number], ids[:number]),
            may_lack_controller(plan.steps, ids[:number], ids[: number + 1]),
        )
        for number in range(len(ids) + 1)
    ]
    kinds = [step.kind for step in plan.steps]
    stop, back = kinds.index("stop-controllers"), kinds.index("hand-back-control")
    assert [number for number, (_, begun) in enumerate(told) if begun] == list(range(stop, back + 1))
    assert [number for number, (idle, _) in enumerate(told) if idle] == list(range(stop + 1, back + 1))
