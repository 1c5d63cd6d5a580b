"""What a boot starts: a controller that no boot starts blocks; the report claims the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate import checks
from migrate.lab import units
from migrate.model.findings import Severity, blocks
from migrate.model.history import Event
from migrate.model.launch import OF_A_LAB, Unit
from migrate.model.outcome import Unknown
from migrate.model.stage import MIGRATION, Stage
from migrate.model.world import World
from migrate.report.run_report import AT_BOOT
from migrate.report.run_report import build as report
from migrate.report.run_values import Extra, Holds, RunReport, RunWord
from migrate.run.snapshots import write
from tests.checks.bends import unit_of
from tests.report import story
from tests.testing import worlds
from tests.testing.worlds import CONTROLLERS


# -- the check -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", [stage for stage in MIGRATION if Stage.ASSESS <= stage < Stage.FINALIZE])
def test_a_controller_that_no_boot_starts_blocks_every_plan_from_prepare_on(stage: Stage) -> None:
    """No run enables it: its owner does, before the first plan."""
    for controller in CONTROLLERS:
        world = unit_of(int(controller), word="disabled", starts_at_boot=False)(worlds.world_at(stage))
        found = [entry for entry in checks.run(world, target=Stage.PREPARE) if entry.code == "B-OPS-17"]
        assert [entry.about for entry in found if blocks(entry, Stage.PREPARE)] == [
            f"node {controller} on c{controller}"
        ]
        assert f"systemctl enable -- kafka-{controller}.service" in found[0].fix


def test_what_is_not_known_of_a_controllers_boot_blocks_as_well() -> None:
    """Its word is static, or nobody saw its unit."""
    static = unit_of(3000, word="static", starts_at_boot=Unknown("it is static"))(worlds.world_at(Stage.ASSESS))
    for world in (static, replace(static, units=Unknown("no route")), replace(static, units={})):
        found = [entry for entry in checks.run(world, target=Stage.PREPARE) if entry.code == "B-OPS-17"]
        assert found
        assert all(entry.severity is Severity.BLIND_SPOT and blocks(entry, Stage.PREPARE) for entry in found)


def test_a_broker_that_no_boot_starts_is_a_warning() -> None:
    """Its owner may keep it from making replicas anew without a disk, in the middle of a migration."""
    world = unit_of(1, word="disabled", starts_at_boot=False)(worlds.world_at(Stage.ASSESS))
    found = [entry for entry in checks.run(world, target=Stage.CLEANUP) if entry.code in ("W-OPS-07", "B-OPS-17")]
    assert [(entry.code, entry.about) for entry in found] == [("W-OPS-07", "node 1 on b1")]


def test_of_nodes_that_are_no_units_nothing_is_asked_here() -> None:
    """W-OPS-16 says what to compare; nothing could be enabled."""
    world = unit_of(3000, starts_at_boot=Unknown("it is no unit of systemd"), is_own=True)(
        worlds.world_at(Stage.ASSESS)
    )
    codes = {entry.code for entry in checks.run(world, target=Stage.CLEANUP) if "3000" in entry.about}
    assert "B-OPS-17" not in codes
    assert "W-OPS-07" in codes


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
    """No boot starts them; the demo stops all of them and starts them again instead."""
    world = unit_of(3000)(PLAIN)
    assert not isinstance(world.units, Unknown)
    labs = {node: replace(unit, word=units.OF_A_LAB) for node, unit in world.units.items() if isinstance(unit, Unit)}
    found = reported(replace(world, units=labs))
    assert AT_BOOT not in {claim.text for claim in found.claims}
    assert found.verdict.word is RunWord.PROVEN
    assert units.OF_A_LAB == OF_A_LAB
