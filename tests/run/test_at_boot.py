"""What a boot starts: enabled by the run, disabled by the rollback where a run enabled it, claimed in the report."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.launch import ENABLED_BY_RUNS
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.plan import rollback
from migrate.plan.build import build
from migrate.report.run_report import AT_BOOT
from migrate.report.run_report import build as report
from migrate.report.run_values import Extra, Holds, RunReport, RunWord
from migrate.run.past_runs import enabled_by_runs
from migrate.run.snapshots import write
from migrate.steps.at_boot import DisableAtBoot, EnableAtBoot
from tests.checks.bends import unit_of
from tests.report import story
from tests.run.test_engine import plan_for, run
from tests.run.test_rollback import at
from tests.steps.looks import Remembered, answer
from tests.testing import worlds
from tests.testing.simulated import FakeClock, KillAt, Killed
from tests.testing.simulated_back import TwoWay, two_way
from tests.testing.worlds import BROKERS, CONTROLLERS

BROKER_IDS, CONTROLLER_IDS = set(map(int, BROKERS)), set(map(int, CONTROLLERS))


def on_units() -> TwoWay:
    """Nodes that are units; boots start two of the brokers, and no controller."""
    cluster = two_way()
    cluster.are_units, cluster.enabled = True, {0, 1}
    return cluster


def known_as(cluster: TwoWay, folder: Path) -> Inventory:
    """The inventory as the cluster's units are called, its runs in that folder."""
    world = cluster.observe(frozenset(), {})
    nodes = {node.id: f"kafka-{int(node.id)}.service" for node in world.inventory.nodes}
    return replace(
        world.inventory,
        runs=str(folder),
        brokers=tuple(replace(node, unit=nodes[node.id]) for node in world.inventory.brokers),
        controllers=tuple(replace(node, unit=nodes[node.id]) for node in world.inventory.controllers),
    )


def test_controllers_are_enabled_once_they_lead_and_brokers_at_the_end(tmp_path: Path) -> None:
    """A broker that a boot starts without a disk in the middle of a migration would make its replicas anew."""
    cluster = on_units()
    run(cluster, plan_for(cluster), tmp_path)
    assert cluster.harms == []
    assert cluster.enabled == BROKER_IDS | CONTROLLER_IDS
    enabled = [text for text in cluster.done if text.startswith("enable")]
    assert enabled == ["enable 3000", "enable 3001", "enable 3002", "enable 2"]
    last_start = max(number for number, text in enumerate(cluster.done) if text.startswith("start"))
    assert cluster.done.index("enable 3000") < cluster.done.index("stop 0")
    assert cluster.done.index("enable 2") > last_start


def test_where_all_start_or_the_playbook_forbids_it_nothing_is_enabled() -> None:
    """No step without work, and none against a policy; the finding says what is left."""
    cluster = on_units()
    never = replace(worlds.playbook(), enable_units=False)
    world = cluster.observe(frozenset(), {})
    plan = build(replace(world, playbook=never), never, target=Stage.CLEANUP, only=False, created=1.0)
    assert not [step for step in plan.steps if step.kind == "enable-at-boot"]
    (finding, *_) = [entry for entry in plan.findings if entry.code == "W-OPS-07" and "3000" in str(entry)]
    assert "systemctl enable -- kafka-3000.service" in finding.fix
    assert "a run of this playbook" not in finding.fix
    ours = plan_for(cluster)
    (finding, *_) = [entry for entry in ours.findings if entry.code == "W-OPS-07" and "3000" in str(entry)]
    assert "a run of this playbook does it" in finding.fix
    acts = [action.what for step in ours.steps if step.id == "controllers/enable-at-boot" for action in step.actions]
    assert "systemctl enable -- kafka-3000.service" in acts
    cluster.enabled = BROKER_IDS | CONTROLLER_IDS
    assert not [step for step in plan_for(cluster).steps if step.kind == "enable-at-boot"]


@pytest.mark.parametrize("point", range(1, 8))
def test_killed_while_units_are_enabled_the_same_command_goes_on(point: int, tmp_path: Path) -> None:
    """Before and behind each of the three effects."""
    cluster = on_units()
    plan = plan_for(cluster, Stage.CONTROLLERS)
    plan = replace(plan, steps=tuple(step for step in plan.steps if step.kind == "enable-at-boot"))
    with pytest.raises(Killed):
        run(cluster, plan, tmp_path, KillAt(point))
    run(cluster, plan, tmp_path)
    assert cluster.enabled == {0, 1} | CONTROLLER_IDS


def test_a_rollback_disables_what_a_run_enabled_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first controller stops, so that no boot brings one back; what its operator enabled stays so."""
    cluster = on_units()
    cluster.enabled.add(3001)
    forward = plan_for(cluster, Stage.HYBRID)
    (tmp_path / "forward").mkdir()
    run(cluster, forward, tmp_path / "forward")
    inventory = known_as(cluster, tmp_path)
    facts = enabled_by_runs(inventory)
    assert facts == {ENABLED_BY_RUNS: "3000,3002"}
    cluster.done.clear()
    world = replace(cluster.observe(rollback.PLANNED_ON, {}), facts=facts)
    plan = rollback.build(world, worlds.playbook(), created=2.0)
    (tmp_path / "back").mkdir()
    monkeypatch.setattr("tests.run.test_engine.FakeClock", lambda: FakeClock(2_000_000.0))  # a later day
    run(cluster, plan, tmp_path / "back")
    assert cluster.harms == []
    assert cluster.enabled == {0, 1, 3001}
    assert cluster.done.index("disable 3002") < cluster.done.index("stop 3001")
    assert enabled_by_runs(inventory) == {}
    assert not [step for step in rollback_steps(cluster, enabled_by_runs(inventory)) if step == "disable-at-boot"]


def rollback_steps(cluster: TwoWay, facts: Any) -> list[str]:
    """Kinds of steps of another rollback from there."""
    world = replace(cluster.observe(rollback.PLANNED_ON, {}), facts=facts)
    return [step.kind for step in rollback.build(world, worlds.playbook(), created=3.0).steps]


def test_without_a_run_that_enabled_them_a_rollback_disables_nothing(tmp_path: Path) -> None:
    """And an intent that was killed counts: the unit was disabled until then."""
    cluster = deepcopy(at("hybrid", tmp_path / "forward"))
    cluster.are_units, cluster.enabled = True, set(CONTROLLER_IDS)
    assert "disable-at-boot" not in rollback_steps(cluster, {})
    assert "disable-at-boot" in rollback_steps(cluster, {ENABLED_BY_RUNS: "3000"})
    cluster.enabled.clear()
    assert "disable-at-boot" not in rollback_steps(cluster, {ENABLED_BY_RUNS: "3000"})


# -- the steps alone -------------------------------------------------------------------------------------------------
def test_what_cannot_be_enabled_is_left_to_people_and_said() -> None:
    """A masked unit does not stop a migration; a unit that is not seen does."""
    step, copied = EnableAtBoot("controllers"), worlds.world_at(Stage.COPY)
    world = unit_of(3001, word="masked", starts_at_boot=False)(copied)
    hands = Remembered()
    step.do(world, hands)
    assert hands.done == []
    assert answer(step.verify(world)) == "verified"
    assert any("kafka-3001.service is masked; a boot starts it: no" in line for line in step.verify(world).evidence)  # type: ignore[union-attr]
    disabled = unit_of(3001, word="disabled", starts_at_boot=False)(copied)
    step.do(disabled, hands)
    assert hands.done == ["enable 3001 kafka-3001.service"]
    assert answer(step.verify(disabled)).startswith("refused: `systemctl enable` was given, and kafka-3001.service")
    assert isinstance(step.check(replace(world, units=Unknown("no route"))), Unknown)
    assert isinstance(step.check(replace(world, units={NodeId(3000): Unknown("no route")})), Unknown)


def test_a_unit_that_stays_enabled_is_no_disabled_one() -> None:
    """What systemd says counts, not that it was asked."""
    step, world = DisableAtBoot("3001"), unit_of(3000)(worlds.world_at(Stage.COPY))
    hands = Remembered()
    step.do(world, hands)
    assert hands.done == ["disable 3001 kafka-3001.service"]
    assert answer(step.verify(world)).startswith("refused: `systemctl disable` was given")
    assert isinstance(step.verify(replace(world, units=Unknown("no route"))), Unknown)


# -- the claim -------------------------------------------------------------------------------------------------------
def reported(world: World) -> RunReport:
    """The report of a whole run that ended with this look at the units."""
    kept: list[tuple[str, dict[str, Any]]] = []
    planned = story.plan().steps[-1]
    write(lambda name, **data: kept.append((name, data)), planned, world)
    events = [event for event in story.journal() if event.name != "units"]
    end = events.pop()
    events += [Event(end.number, end.time, name, data) for name, data in kept if name == "units"]
    return report(story.plan(), [*events, end], None, Extra(journal_intact=True))


PLAIN = worlds.world_at(Stage.CLEANUP)


@pytest.mark.parametrize(
    ("world", "holds", "word", "says"),
    [
        (unit_of(3000)(PLAIN), Holds.YES, RunWord.PROVEN, "6 units: enabled"),
        (
            unit_of(3000, word="disabled", starts_at_boot=False)(PLAIN),
            Holds.NO,
            RunWord.NOT_PROVEN,
            "no boot starts node 3000 (kafka-3000.service is disabled)",
        ),
        (
            unit_of(2, word="static", starts_at_boot=Unknown("it is static"))(PLAIN),
            Holds.NOT_SEEN,
            RunWord.NOT_PROVEN,
            "node 2: it is static",
        ),
        (
            replace(PLAIN, inventory=replace(PLAIN.inventory, executor="manual"), units=Unknown("no units are seen")),
            Holds.NOT_SEEN,
            RunWord.NOT_PROVEN,
            "no units are seen: `systemctl is-enabled -- UNIT`",
        ),
        (PLAIN, Holds.NOT_SEEN, RunWord.NOT_PROVEN, "no look at the units"),
    ],
    ids=["enabled", "disabled", "not known", "people", "nobody looked"],
)
def test_proven_is_said_only_of_a_cluster_that_boots(world: World, holds: Holds, word: RunWord, says: str) -> None:
    """After finalize a start from nothing is part of the claim; what was not checked is said."""
    found = reported(world)
    (claim,) = [claim for claim in found.claims if claim.text == AT_BOOT]
    assert (claim.holds, found.verdict.word) == (holds, word)
    assert says in claim.evidence


def test_of_a_labs_processes_no_boot_is_claimed() -> None:
    """No unit starts them; the demo stops all of them and starts them again instead."""
    found = reported(replace(PLAIN, units=Unknown("executor supervisor sees no systemd units")))
    assert AT_BOOT not in {claim.text for claim in found.claims}
    assert found.verdict.word is RunWord.PROVEN
