"""Every check: silent on a healthy cluster, loud on the one fault it is for, and never silent on what it cannot see."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from migrate import checks
from migrate.checks import processes
from migrate.checks.next_release import NEXT_RELEASE
from migrate.checks.phase import Phase
from migrate.checks.registry import CHECKS, MESSAGE_LIMIT, SHOWN
from migrate.checks.sight import inventory as sees_inventory
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, NoFile, PendingWork, Stopped
from migrate.model.world import World
from tests.checks.bends import SECURED, metadata, of, registration
from tests.checks.cases import CASES, Case
from tests.steps.looks import broken_disk
from tests.testing import worlds
from tests.testing.blocking import blocking
from tests.testing.worlds import with_values, with_zk, world_at

BLINDLY = {"W-ZKN-15"}  # have nothing but blind spots to tell


@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.label)
def test_a_healthy_cluster_has_no_blocker_and_no_warning_at_any_stage(stage: Stage) -> None:
    """What the steps write, and what Kafka makes of it, passes every check."""
    found = checks.run(world_at(stage), target=Stage.CLEANUP)
    assert blocking(found, Stage.CLEANUP) == ()
    assert [entry for entry in found if entry.severity in (Severity.BLOCKER, Severity.WARNING)] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_check_fires_on_its_fault_and_names_the_object(case: Case) -> None:
    """One bend of the healthy world; the finding says where, what, and what to do."""
    (finding, *_) = [
        entry
        for entry in of(case.bend(world_at(case.stage)), case.code)
        if entry.severity is not Severity.BLIND_SPOT and case.about in entry.about
    ]
    assert finding.severity.value == case.code[0]
    assert finding.message
    assert finding.fix
    if case.code[0] == "B":
        assert finding.blocks_from == CHECKS[case.code].blocks_from <= Stage.FINALIZE
    else:
        assert finding.blocks_from == checks.NEVER


@pytest.mark.parametrize("case", [case for case in CASES if case.code[0] != "I"], ids=lambda case: case.name)
def test_each_check_is_silent_where_its_fault_is_not(case: Case) -> None:
    """The same stage without the bend."""
    assert [entry for entry in of(world_at(case.stage), case.code) if entry.severity is not Severity.BLIND_SPOT] == []


def test_no_check_is_without_a_case() -> None:
    """A code that no test makes fire is a code that may never fire."""
    assert {case.code for case in CASES} | BLINDLY == set(checks.CODES)


def test_what_a_later_look_no_longer_sees_of_topics_in_deletion_is_no_finding() -> None:
    """Only what lasts, and what the later look could not see, stays; other findings are not touched."""
    bend = worlds.with_zk
    first = world_at(Stage.ASSESS)
    both = bend(first, pending=PendingWork(deletions=("gone", "stays")), topics_without_id=("old",))
    later = bend(first, pending=PendingWork(deletions=("stays", "new")))
    found = checks.run(both, target=Stage.ASSESS)
    left = checks.lasting(found, checks.run(later, target=Stage.ASSESS))
    assert {entry.about for entry in found} - {entry.about for entry in left} == {"/admin/delete_topics/gone"}
    assert "B-ZKN-03" in {entry.code for entry in left}
    blind = checks.run(replace(first, zookeeper=Unknown("no answer")), target=Stage.ASSESS)
    assert checks.lasting(found, blind) == found


def test_a_world_of_which_nothing_is_known_passes_nothing() -> None:
    """Every check that looks at more than the inventory is a blind spot, and blocks what a hit would block."""
    # an executor by which hosts are asked what is allowed, and a target for the checks of the next upgrade
    nothing = World(inventory=replace(worlds.inventory(), executor="ssh"), facts={NEXT_RELEASE: "4.3"})
    every = checks.run(nothing, target=Stage.CLEANUP)
    found = {entry.code: entry for entry in every if entry.severity is Severity.BLIND_SPOT}
    for code, entry in CHECKS.items():
        if Phase.BEFORE_COPY not in entry.when or entry.look is sees_inventory:
            continue
        assert code in found
        assert found[code].blocks_from == (checks.NEVER if entry.proof else entry.blocks_from)
        assert "not asked for" in found[code].evidence


@pytest.mark.parametrize("part", ["zookeeper", "kraft", "disks", "live", "configs"])
@pytest.mark.parametrize("stage", [Stage.MIGRATION_MODE, Stage.SOAK], ids=lambda stage: stage.label)
def test_what_cannot_be_seen_is_told_and_never_counted_as_a_pass(part: str, stage: Stage) -> None:
    """Losing one view turns the checks that need it into blind spots; the others go on."""
    whole = checks.run(world_at(stage), target=stage)
    lost: dict[str, Any] = {part: Unknown("the cable is cut")}
    blind = checks.run(replace(world_at(stage), **lost), target=stage)
    new = [entry for entry in blind if entry.severity is Severity.BLIND_SPOT and entry.evidence == "the cable is cut"]
    assert new
    assert blocking(blind, Stage.FINALIZE)
    hits = {entry.code for entry in blind if entry.severity is Severity.BLOCKER}
    assert hits <= {entry.code for entry in whole} | {"B-CFG-08"}


def test_one_broker_that_cannot_be_seen_is_named_and_the_others_are_checked() -> None:
    """A partial view is neither a pass nor a total loss."""
    world = world_at(Stage.MIGRATION_MODE)
    assert not isinstance(world.disks, Unknown)
    disks = {**world.disks, NodeId(1): Unknown("no such host")}
    bent = worlds.with_directory(replace(world, disks=disks), 2, 0, lambda entry: replace(entry, problem="is gone"))
    found = of(bent, "B-DIR-01")
    assert [(entry.severity, entry.about) for entry in found] == [
        (Severity.BLOCKER, "broker 2: /data/b2/d0"),
        (Severity.BLIND_SPOT, "the disks of broker 1"),
    ]


def test_a_connect_string_alone_gives_a_useful_answer() -> None:
    """ZooKeeper's faults are found; hosts and files are blind spots, a reason each, and block later stages only."""
    full = world_at(Stage.ASSESS)
    bare = replace(full.inventory, name="", brokers=(), controllers=(), expect_cluster_id=None)
    world = World(inventory=bare, zookeeper=with_zk(full, topics_without_id=("t0",)).zookeeper)
    found = checks.run(world, target=Stage.ASSESS)
    assert blocking(found, Stage.ASSESS) == ()
    assert [entry.code for entry in found if entry.severity is Severity.BLOCKER] == ["B-ZKN-03"]
    unseen = {(entry.code, entry.about) for entry in found if entry.evidence == "not asked for"}
    assert ("B-DIR-01", "the brokers' disks") in unseen
    assert "the KRaft metadata" not in {about for _, about in unseen}, "there is no quorum yet: nothing to see"


def test_a_planned_controllers_file_is_not_missed_before_it_is_rendered() -> None:
    """No file is a fact, not a blind spot, until controllers run."""
    assert of(world_at(Stage.ASSESS), "B-QRM-03") == []
    world = world_at(Stage.HYBRID)
    assert not isinstance(world.configs, Unknown)
    gone = replace(world, configs={**world.configs, NodeId(3001): NoFile("/conf/c3001.properties")})
    (finding,) = of(gone, "B-QRM-03")
    assert finding.severity is Severity.BLIND_SPOT
    assert "does not exist" in finding.evidence


def test_a_stale_migration_znode_under_a_kraft_owner_needs_the_log_to_judge() -> None:
    """In hybrid an offset is right; with the controllers out of reach nobody may say so."""
    world = replace(world_at(Stage.HYBRID), kraft=Unknown("no controller answers"))
    (finding,) = of(world, "B-ZKN-01")
    assert finding.severity is Severity.BLIND_SPOT
    assert finding in blocking(checks.run(world, target=Stage.CONTROLLERS), Stage.CONTROLLERS)


def test_findings_that_block_the_target_come_first() -> None:
    """Blockers of the target, its blind spots, then the rest by severity."""
    world = with_values(world_at(Stage.PREPARE), 3001, zookeeper__metadata__migration__enable=None)
    world = worlds.with_directory(world, 1, 0, lambda entry: replace(entry, oddities=("lost+found",)))
    found = checks.run(replace(world, live=Unknown("down")), target=Stage.CONTROLLERS)
    assert found[0].code == "B-QRM-03"
    order = [entry.severity for entry in found[1:]]
    assert order == sorted(order, key=checks.ORDER.index)


def test_control_characters_of_names_never_reach_a_terminal() -> None:
    """Names come from whoever could write into ZooKeeper."""
    world = with_zk(world_at(Stage.ASSESS), topics_without_id=("evil\x1b[2J\nB-ZKN-99: fake" + "x" * 9999,))
    (finding,) = of(world, "B-ZKN-03")
    assert "\x1b" not in finding.about + finding.message
    assert "\n" not in finding.about + finding.message
    assert "\\x1b[2J\\n" in finding.about
    assert len(finding.about) <= MESSAGE_LIMIT + 3


def test_thousands_of_hits_are_a_page_and_a_number() -> None:
    """The first ones by name, the rest counted."""
    found = of(with_zk(world_at(Stage.ASSESS), topics_without_id=tuple(f"t{n}" for n in range(5000))), "B-ZKN-03")
    assert len(found) == SHOWN + 1
    assert found[-1].about == f"{5000 - SHOWN} more"
    assert found[-1].severity is Severity.BLOCKER


@pytest.mark.slow
def test_a_fault_of_forty_brokers_is_named_for_each_of_them() -> None:
    """Gates have a finding per broker, no matter how many; a reader has one with all of them."""
    healthy = world_at(Stage.ASSESS)
    first = healthy.inventory.brokers[0]
    brokers = tuple(replace(first, id=NodeId(node)) for node in range(40))
    files = {node.id: worlds.config_file(node.id, first.config, b"num.io.threads=8\n") for node in brokers}
    world = replace(healthy, inventory=replace(healthy.inventory, brokers=brokers), configs=files)
    assert [entry.about for entry in of(world, "B-VER-03")] == [f"broker {n}: {first.config}" for n in range(40)]
    (told,) = (entry for entry in checks.told(world, target=Stage.CLEANUP) if entry.code == "B-VER-03")
    assert (told.about, len(told.objects)) == (f"brokers 0-39: {first.config}", 40)
    (blind,) = (entry for entry in checks.told(world, target=Stage.CLEANUP) if entry.code == "B-DIR-01")
    assert (blind.about, len(blind.objects)) == ("the disks of brokers 3-39", 37)


@pytest.mark.parametrize("case", [case for case in CASES if "SEC" in case.code], ids=lambda case: case.name)
def test_no_secret_stands_in_a_finding(case: Case) -> None:
    """Not the encoder's secret, not a JAAS password, wherever it fires."""
    world = case.bend(SECURED(world_at(case.stage)) if case.stage is Stage.PREPARE else world_at(case.stage))
    assert not isinstance(world.configs, Unknown)
    text = repr(checks.run(world, target=Stage.CLEANUP))
    for file in world.configs.values():
        if isinstance(file, ConfigFile) and "password.encoder.secret" in file.values:
            assert file.values["password.encoder.secret"] not in text
    assert "password=" not in text


def test_sasl_principals_are_told_from_the_logins() -> None:
    """Brokers and controllers by their own names: all in super.users is silence, one missing is named."""
    everyone = "User:broker;User:controller;User:ANONYMOUS"
    world = SECURED(world_at(Stage.PREPARE))
    for node in (*worlds.BROKERS, *worlds.CONTROLLERS):
        world = with_values(world, node, super__users=everyone)
    assert of(world, "B-SEC-06") == []
    (finding,) = of(with_values(world, 3002, super__users="User:controller"), "B-SEC-06")
    assert "User:broker" in finding.message
    assert "broker 0, broker 1, broker 2" in finding.message


def test_a_principal_from_a_certificate_is_a_blind_spot() -> None:
    """What only TLS knows is not guessed."""
    world = world_at(Stage.PREPARE)
    for node in worlds.CONTROLLERS:
        protocols = "INTERNAL:PLAINTEXT,CTL:SSL"
        world = with_values(world, node, listener__security__protocol__map=protocols, ssl__client__auth="required")
    assert {entry.severity for entry in of(world, "B-SEC-06")} == {Severity.BLIND_SPOT}


def test_a_secret_that_the_node_resolves_itself_is_a_blind_spot() -> None:
    """`${file:...}` on both sides proves nothing."""
    world = with_values(world_at(Stage.PREPARE), 3000, password__encoder__secret="${file:/x:y}")
    (finding,) = of(world, "B-SEC-04")
    assert (finding.severity, finding.about[:9]) == (Severity.BLIND_SPOT, "node 3000")


def test_controllers_need_no_authorizer_where_brokers_have_none() -> None:
    """Iff, in both directions: nothing is said of an open cluster's super.users either."""
    world = world_at(Stage.PREPARE)
    for node in (*worlds.BROKERS, *worlds.CONTROLLERS):
        world = with_values(world, node, authorizer__class__name=None, super__users=None)
    assert [of(world, code) for code in ("B-SEC-01", "B-SEC-06", "B-SEC-07")] == [[], [], []]


@pytest.mark.parametrize("code", sorted(checks.CODES))
def test_every_code_is_well_formed_and_documented(code: str) -> None:
    """Severity, area, number; and texts that a reader can act on."""
    doc = checks.CODES[code]
    assert re.fullmatch(r"[BWI]-(VER|CFG|ZKN|DIR|SEC|NET|HLT|QRM|MIG|RBK|OPS)-[0-9]{2}", code)
    assert all((doc.title, doc.why, doc.fix, doc.source))
    assert not doc.title[0].isupper() or doc.title.split()[0] in ("AclAuthorizer", "ZooKeeper")
    assert not doc.title.endswith(".")


def test_a_broker_that_was_lost_after_an_early_finalize_does_not_bar_its_own_roll_forward() -> None:
    """It is fenced and sees nobody until then; another broker that is fenced, or sees too few, still blocks."""
    world = metadata(brokers=())(world_at(Stage.FINALIZE))
    for changed, bars in (({"migrating": True, "fenced": True}, False), ({"fenced": True}, True)):
        bent = registration(1, **changed)(world)
        assert bool(of(bent, "B-NET-01")) is bool(of(bent, "B-MIG-05")) is bars
        assert bool(of(bent, "W-MIG-03")) is not bars


@pytest.mark.parametrize("code", ["B-DIR-06", "B-DIR-07", "B-DIR-21"])
def test_what_a_kraft_controllers_first_full_request_would_set_aside_holds_the_first_roll(code: str) -> None:
    """The copy starts by itself when the last broker is in migration mode, and the request comes with its end."""
    for case in CASES:
        if case.code == code:
            found = checks.run(case.bend(world_at(case.stage)), target=Stage.MIGRATION_MODE)
            assert code in {entry.code for entry in blocking(found, Stage.MIGRATION_MODE)}, case.name


def test_what_is_found_because_a_broker_is_down_says_what_to_type() -> None:
    """Its process is known to have ended: where, and how it is started, with the file that it has."""
    world = world_at(Stage.CONTROLLERS)
    alive = {node: entry for node, entry in worlds.zk(world).brokers.items() if node != 1}
    assert not isinstance(world.services, Unknown)
    gone = replace(worlds.with_zk(world, brokers=alive), services={**world.services, NodeId(1): Stopped(1)})
    typed = processes.start(world.inventory, [1])
    for code in ("B-CFG-08", "B-ZKN-05"):
        assert all(f"Start what is down, with its file as it is ({typed})" in entry.fix for entry in of(gone, code)), (
            code
        )
    dead = broken_disk(1)(gone)
    for code in ("B-CFG-08", "B-ZKN-05"):
        for entry in of(dead, code):
            assert entry.fix.startswith("Repair or replace the disk of broker 1, and start nothing before"), code
            assert typed not in entry.fix, "it would recreate its replicas on its other disks"
    unknown = replace(gone, services=Unknown("no such host"))
    assert all("Start what is down" not in entry.fix for entry in of(unknown, "B-CFG-08"))
