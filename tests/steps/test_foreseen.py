"""What a run would refuse once it has written the controllers' files is said before it writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks.phase import Phase
from migrate.checks.registry import run_on_files
from migrate.hosts.properties import edit, with_content
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.findings import Severity
from migrate.model.inventory import Access, AddedProperties
from migrate.model.listeners import DENIED, GONE, StoreFile
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import World
from migrate.steps import foreseen
from tests.checks.cases import CASES, Case
from tests.steps.looks import whole

OPA = "org.openpolicyagent.kafka.OpaAuthorizer"


def own_authorizer(world: World) -> World:
    """Every broker asks a class of somebody else's."""
    assert not isinstance(world.configs, Unknown)
    files = {file.node: file for file in world.configs.values() if isinstance(file, ConfigFile)}
    changed = {node: with_content(file, edit(file.raw, {"authorizer.class.name": OPA})) for node, file in files.items()}
    return replace(world, configs={**world.configs, **changed})


def test_a_controller_decides_by_the_brokers_own_class() -> None:
    """Its rendered file has the class: nothing is asked but whether it works there (B-CFG-37)."""
    found = foreseen.run(own_authorizer(whole(Stage.ASSESS)), target=Stage.PREPARE)
    assert not [entry for entry in found if entry.code == "B-SEC-19"]
    assert [entry.about for entry in found if entry.code == "B-CFG-37"] == [f"class {OPA}"]


def test_a_controller_that_would_decide_by_another_class_is_told_before_it_is_rendered() -> None:
    """By the code that the run would stop with, for each controller; `checks.run` alone sees no file of theirs."""
    world = whole(Stage.ASSESS)
    added = AddedProperties("", {"authorizer.class.name": OPA})
    world = replace(world, inventory=replace(world.inventory, controller_properties=added))
    assert not [entry for entry in checks.run(world, target=Stage.PREPARE) if entry.code == "B-SEC-19"]
    found = [entry for entry in foreseen.run(world, target=Stage.PREPARE) if entry.code == "B-SEC-19"]
    assert [entry.about.partition(":")[0] for entry in found] == [f"controller {node}" for node in (3000, 3001, 3002)]
    assert all(entry.evidence.endswith(foreseen.TO_BE_WRITTEN) for entry in found)
    assert OPA in found[0].message
    (told,) = [entry for entry in foreseen.told(world, target=Stage.PREPARE) if entry.code == "B-SEC-19"]
    assert len(told.objects) == 3


@pytest.mark.slow
@pytest.mark.parametrize("stage", Stage)
def test_of_a_healthy_cluster_nothing_more_is_foreseen_in_any_stage(stage: Stage) -> None:
    """Files that are written well have no finding that those which are there have not."""
    world = whole(stage)
    assert foreseen.run(world, target=stage) == checks.run(world, target=stage)


def test_a_controllers_file_that_is_there_is_judged_as_it_is() -> None:
    """It is never rendered again, and not once there is a quorum."""
    for stage in (Stage.PREPARE, Stage.SOAK):
        world = whole(stage)
        assert foreseen.as_prepared(world).configs == world.configs


def of_stores(world: World, fault: str | Unknown) -> World:
    """TLS at the controllers' listener, by a store that the inventory names; on controller 3001's host it has that."""
    added = AddedProperties("", {"ssl.truststore.location": "/ca.pem"})
    inventory = replace(world.inventory, controller_access=Access("SSL"), controller_properties=added)
    there = StoreFile("ssl.truststore.location", "/ca.pem", "")
    stores = {node.id: (replace(there, fault=fault if node.id == 3001 else ""),) for node in inventory.nodes}
    return replace(world, inventory=inventory, stores=stores)


@pytest.mark.parametrize("fault", [GONE, DENIED])
def test_a_store_that_a_controller_will_not_open_is_told_before_it_is_rendered(fault: str) -> None:
    """B-SEC-25, on the host where it fails alone."""
    world = of_stores(whole(Stage.ASSESS), fault)
    (found,) = (entry for entry in foreseen.run(world, target=Stage.PREPARE) if entry.code == "B-SEC-25")
    assert found.about.startswith("controller 3001")
    assert f"names /ca.pem, which {fault}" in found.message
    assert found.blocks_from == int(Stage.CONTROLLERS)


def test_a_store_of_which_nobody_knows_whether_the_node_opens_it_is_a_blind_spot() -> None:
    """Also one that is named now, and was not looked at."""
    world = foreseen.as_prepared(of_stores(whole(Stage.ASSESS), Unknown("another account looked")))
    for stores in (world.stores, {node.id: () for node in world.inventory.nodes}):
        found = checks.run(replace(world, stores=stores), target=Stage.PREPARE)
        blind = [entry for entry in found if entry.code == "W-SEC-26" and entry.severity is Severity.BLIND_SPOT]
        assert any(entry.about.startswith("controller 3001") for entry in blind)


def test_files_to_come_are_those_that_the_rolls_write() -> None:
    """Each broker's, from the mode that it is in; a broker that is in that mode already is left alone."""
    first = foreseen.as_rolled(whole(Stage.ASSESS), Mode.MIGRATION)
    second = foreseen.as_rolled(first, Mode.KRAFT)
    for world, goal in ((first, Mode.MIGRATION), (second, Mode.KRAFT)):
        assert not isinstance(world.configs, Unknown)
        for node in world.inventory.brokers:
            file = world.configs[node.id]
            assert isinstance(file, ConfigFile)
            assert mode_of(file.values) is goal
    assert foreseen.as_rolled(second, Mode.MIGRATION).configs == second.configs
    assert foreseen.as_rolled(second, Mode.KRAFT).configs == second.configs


def test_without_a_playbook_or_files_nothing_is_made_up() -> None:
    """What is rendered needs both."""
    world = whole(Stage.ASSESS)
    assert foreseen.as_prepared(replace(world, playbook=Unknown("none"))).configs == world.configs
    assert foreseen.as_prepared(replace(world, configs=Unknown("none"))) == replace(world, configs=Unknown("none"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.name}")
def test_no_blocker_of_the_controllers_files_is_first_asked_of_written_ones(case: Case) -> None:
    """Each fault that a check knows: what is found of the files as they would be written is found before."""
    world = case.bend(whole(case.stage))
    written = foreseen.as_prepared(world)
    if isinstance(world.configs, Unknown) or written.configs == world.configs:
        return
    assert not isinstance(written.configs, Unknown)
    planned = [node.id for node in world.inventory.controllers if isinstance(world.configs.get(node.id), NoFile)]
    assert planned
    assert all(isinstance(written.configs[node], ConfigFile) for node in planned)
    before = {(entry.code, entry.about) for entry in foreseen.run(world, target=Stage.PREPARE)}
    after = checks.run(written, target=Stage.CONTROLLERS)
    assert {(entry.code, entry.about) for entry in after if entry.severity is Severity.BLOCKER} <= before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.name}")
def test_no_blocker_of_a_file_is_first_found_when_a_roll_has_written_it(case: Case) -> None:
    """Each fault that a check knows: what the files of each stage to come have is found before the first of them."""
    world = case.bend(whole(case.stage))
    found = {entry.code for entry in foreseen.run(world, target=Stage.PREPARE)}
    first = foreseen.as_rolled(foreseen.as_prepared(world), Mode.MIGRATION)
    second = foreseen.as_rolled(first, Mode.KRAFT)
    for rolled, phase in ((first, Phase.BEFORE_COPY), (second, Phase.DUAL_WRITE)):
        if rolled.configs != world.configs:
            codes = {entry.code for entry in run_on_files(rolled, phase) if entry.severity is Severity.BLOCKER}
            assert codes <= found
