"""One rule says which mode a broker is in: its file, its process and its registration together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Final

import pytest

from migrate.checks.rollback import origin
from migrate.checks.rollback.readiness import rollback_readiness
from migrate.cli.status import describe
from migrate.errors import MigrateError, NothingToPlan
from migrate.model.broker_modes import FLAG, BrokerPosition, Mode, controller_flags, flag_of, has_flag, position_of
from migrate.model.detect import Detected, detect
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ConfigFile, MetaProperties, NoFile, Running, Stopped
from migrate.model.world import World
from migrate.plan.build import build
from migrate.plan.rollback import start_of, steps_of
from migrate.report.status import as_text
from migrate.steps import configuration
from migrate.steps.forward import RollToMigrationMode
from tests.steps.looks import registration, running, service, silent, whole
from tests.testing import worlds

KNOWN: Final = worlds.inventory()
PLAIN: Final = worlds.BROKER_FILE.format(id=1).encode()
MIGRATING: Final = configuration.migration_mode(PLAIN, KNOWN)
FILES: Final = {
    Mode.ZOOKEEPER: PLAIN,
    Mode.MIGRATION: MIGRATING,
    Mode.KRAFT: configuration.kraft_mode(MIGRATING, KNOWN, KNOWN.brokers[1]),
}
ONE: Final = NodeId(1)
OTHER: Final = "0" * 64  # of a file that is gone


def with_file(world: World, mode: Mode) -> World:
    """The file of broker 1 is of that mode now; its process is the one of before."""
    assert not isinstance(world.configs, Unknown)
    file = worlds.config_file(ONE, KNOWN.brokers[1].config, FILES[mode])
    return replace(world, configs={**world.configs, ONE: file})


def in_sessions(world: World, *, there: bool) -> World:
    """Broker 1 is in /brokers/ids, or it is not."""
    brokers = dict(worlds.zk(whole(Stage.ASSESS)).brokers)
    if not there:
        del brokers[ONE]
    return worlds.with_zk(world, brokers=brokers)


def unregistered(world: World) -> World:
    """The controllers know nothing of broker 1."""
    brokers = {node: entry for node, entry in worlds.kraft(world).brokers.items() if node != ONE}
    return worlds.with_kraft(world, brokers=brokers)


def hybrid(file: Mode = Mode.ZOOKEEPER, started: str | None = OTHER) -> World:
    """Dual write, with such a file of broker 1 put there under its running process."""
    return running(with_file(whole(Stage.COPY), file), 1, started)


def seen(world: World) -> BrokerPosition:
    """Broker 1."""
    return position_of(world, 1)


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.DIRECTORIES])
def test_in_a_healthy_migration_file_process_and_registration_agree(stage: Stage) -> None:
    """Nothing is contradicted, and each broker stands in one mode."""
    world = worlds.world_at(stage)
    for node in KNOWN.brokers:
        found = position_of(world, node.id)
        assert found.file == found.process == found.now == found.furthest
        assert found.same_file
        assert found.contradiction == ""


@pytest.mark.parametrize("started", [OTHER, None], ids=["another file", "not known"])
def test_a_file_put_back_under_a_running_broker_is_named_in_one_sentence(started: str | None) -> None:
    """What runs is told by its registration where nobody knows the file of its start, as over SSH."""
    found = seen(hybrid(started=started))
    assert (found.file, found.process, found.furthest) == (Mode.ZOOKEEPER, Mode.MIGRATION, Mode.MIGRATION)
    assert found.contradiction == ("broker 1 runs in migration mode; its file says ZooKeeper mode: it needs a restart")


@pytest.mark.parametrize("started", [OTHER, None], ids=["another file", "not known"])
def test_readiness_rollback_plan_and_status_name_the_same_brokers(started: str | None) -> None:
    """The rollback restarts the broker whose file was put back by hand; it was left out once."""
    world = hybrid(started=started)
    start = start_of(world)
    assert start.migration == (0, 1, 2)
    planned = [step.id for step in steps_of(world, start)]
    assert [entry for entry in planned if entry.startswith("migration-mode/")] == [
        f"migration-mode/back-{node}" for node in (0, 1, 2)
    ]
    assert rollback_readiness(world).cost.restarts == 3
    sentence = "broker 1 runs in migration mode; its file says ZooKeeper mode: it needs a restart"
    assert describe(world)["contradictions"] == [sentence]
    assert sentence in as_text(describe(world))
    assert sentence in start.how


def test_the_plan_forward_rolls_a_broker_whose_file_was_put_back() -> None:
    """After a whole second roll too: the stage is half done again."""
    kraft = running(with_file(whole(Stage.KRAFT_MODE), Mode.MIGRATION), 1, None)
    here = detect(kraft)
    assert isinstance(here, Detected)
    assert (here.stage, here.half) == (Stage.HYBRID, Stage.KRAFT_MODE)
    assert "broker 1 runs in KRaft mode; its file says migration mode" in here.how
    for world in (kraft, hybrid()):
        plan = build(world, worlds.playbook(), target=Stage.KRAFT_MODE, only=False, created=1.0)
        assert "kraft-mode/1" in [step.id for step in plan.steps]


def test_before_the_copy_a_file_of_kraft_mode_is_refused_by_name() -> None:
    """The first roll edits a file of ZooKeeper mode; nothing was copied for a KRaft broker."""
    world = running(with_file(whole(Stage.CONTROLLERS), Mode.KRAFT), 1, OTHER)
    with pytest.raises(NothingToPlan, match="broker 1 runs in ZooKeeper mode; its file says KRaft mode"):
        build(world, worlds.playbook(), target=Stage.COPY, only=False, created=1.0)


def test_a_process_that_was_started_with_the_file_is_of_its_mode() -> None:
    """An old registration of a broker that was taken back already says nothing; one of KRaft mode has to go."""
    world = with_file(whole(Stage.MIGRATION_MODE), Mode.ZOOKEEPER)
    back = running(world, 1, started_with(world))
    assert seen(back).furthest is Mode.ZOOKEEPER
    assert seen(registration(0, migrating=False)(whole(Stage.COPY))).furthest is Mode.MIGRATION
    kraft = registration(1, migrating=False)(whole(Stage.COPY))
    assert (seen(kraft).process, seen(kraft).furthest) == (Mode.MIGRATION, Mode.KRAFT)


def started_with(world: World) -> str:
    """The hash of broker 1's file."""
    assert not isinstance(world.configs, Unknown)
    file = world.configs[ONE]
    assert isinstance(file, ConfigFile)
    return file.sha256


def test_a_stopped_broker_is_what_its_file_says() -> None:
    """Whatever it was registered as."""
    world = service(1, Stopped())(with_file(whole(Stage.KRAFT_MODE), Mode.MIGRATION))
    found = seen(world)
    assert (found.now, found.furthest, found.contradiction, found.changed) == (
        Mode.MIGRATION,
        Mode.MIGRATION,
        "",
        False,
    )
    assert found.settled(Mode.MIGRATION)


def test_a_session_without_registration_is_zookeeper_mode() -> None:
    """The metadata is readable and has no such broker: unless its file has the flag, when it may be starting."""
    world = in_sessions(unregistered(hybrid(Mode.ZOOKEEPER)), there=True)
    assert seen(world).process is Mode.ZOOKEEPER
    starting = in_sessions(unregistered(hybrid(Mode.MIGRATION)), there=True)
    assert seen(starting).may_run == {Mode.ZOOKEEPER, Mode.MIGRATION}
    assert seen(starting).contradiction == ""


def test_disks_without_directory_ids_prove_that_it_never_ran_with_the_flag() -> None:
    """Files that configuration management wrote for all brokers at once make none of them a migrating one."""
    world = running(with_file(whole(Stage.CONTROLLERS), Mode.MIGRATION), 1, None)
    found = seen(world)
    assert found.process is Mode.ZOOKEEPER
    assert found.contradiction.startswith("broker 1 runs in ZooKeeper mode; its file says migration mode")
    for index in range(3):
        world = worlds.with_directory(
            world, 1, index, lambda entry: replace(entry, meta=MetaProperties(0, "c", 1, DirectoryId("x" * 22)))
        )
    assert isinstance(seen(world).process, Unknown)


def test_the_first_roll_does_not_wait_for_a_broker_whose_turn_is_still_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its file has the flag and its process has not: it cannot register before it is restarted."""
    monkeypatch.setattr("migrate.steps.gates.no_blockers", silent)
    world = running(with_file(whole(Stage.CONTROLLERS), Mode.MIGRATION), 1, None)
    assert "broker 1" not in str(RollToMigrationMode(0).check(world))


def test_without_metadata_a_broker_whose_file_was_changed_may_be_in_either_mode_and_is_rolled() -> None:
    """The controllers are stopped already: it is restarted, whichever it runs in."""
    world = in_sessions(replace(hybrid(), kraft=Unknown("no controller answers")), there=True)
    found = seen(world)
    assert isinstance(found.process, Unknown)
    assert found.furthest is Mode.MIGRATION
    assert found.contradiction == ""


def test_a_broker_that_nothing_tells_of_is_unknown_for_readiness_and_plan_alike() -> None:
    """No session, no registration that can be read, and a file that was changed: it may be a KRaft broker."""
    world = in_sessions(replace(hybrid(), kraft=Unknown("no controller answers")), there=False)
    assert isinstance(seen(world).furthest, Unknown)
    assert "broker-unknown" in {reason.name for reason in rollback_readiness(world).reasons}
    with pytest.raises(NothingToPlan, match="broker 1 may run in"):
        start_of(world)


def test_a_file_that_was_edited_within_its_mode_is_rolled_where_anything_is_taken_back() -> None:
    """Else the last proof, with which file each process was started, could never be given."""
    begun = running(whole(Stage.CONTROLLERS), 1, None)
    assert start_of(begun).migration == (1,)
    assert rollback_readiness(begun).cost.restarts == 1


@pytest.mark.parametrize("ids", [True, False], ids=["migrated before", "never migrated"])
def test_an_edited_file_in_a_cluster_without_controllers_is_no_beginning(ids: bool) -> None:
    """Nothing is restarted for it: directory ids on its disks may be left from a migration that was rolled back."""
    world = running(whole(Stage.ASSESS), 1, None)
    if ids:
        world = replace(world, disks=whole(Stage.COPY).disks)
    assert seen(world).process is Mode.ZOOKEEPER
    assert origin(world).changed == ()
    assert rollback_readiness(world).origin == "nothing was begun"


def test_files_that_are_none_of_a_migration_are_unknown() -> None:
    """Unreadable, missing, or of both roles."""
    world = whole(Stage.COPY)
    assert not isinstance(world.configs, Unknown)
    for file in (Unknown("denied"), NoFile("/conf/b1.properties")):
        assert isinstance(seen(replace(world, configs={**world.configs, ONE: file})).file, Unknown)
    both = seen(worlds.with_values(world, 1, process__roles="broker,controller"))
    assert isinstance(both.file, Unknown)
    assert "broker,controller" in both.file.reason


def test_a_process_that_cannot_be_seen_is_told_by_its_registration_alone() -> None:
    """Heartbeats are what keeps a registration unfenced."""
    blind = service(1, Unknown("no route"))(whole(Stage.COPY))
    assert seen(blind).process is Mode.MIGRATION
    fenced = registration(1, fenced=True)(blind)
    assert isinstance(seen(fenced).process, Unknown)
    assert seen(fenced).furthest is Mode.MIGRATION
    nothing = seen(World(inventory=KNOWN))
    assert isinstance(nothing.furthest, Unknown)
    assert not nothing.running


STATES: Final = (None, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION)


@pytest.mark.parametrize(("file", "state"), list(product(Mode, STATES)))
def test_whatever_the_evidence_readiness_and_the_rollback_plan_restart_the_same_brokers(
    file: Mode, state: ZkMigrationState | None
) -> None:
    """Over every combination of file, start, registration, fence and session of broker 1."""
    base = with_file(whole(Stage.COPY), file)
    agreed = 0
    for started, entry, there in product(("same", OTHER, None, "down"), range(5), (True, False)):
        world = in_sessions(base, there=there)
        process = (
            Stopped() if started == "down" else Running(1, 1.0, started_with(base) if started == "same" else started)
        )
        world = service(1, process)(world)
        if entry == 0:
            world = unregistered(world)
        else:
            world = registration(1, migrating=entry < 3, fenced=entry % 2 == 0)(world)
        world = (
            replace(world, kraft=Unknown("silent"))
            if state is None
            else worlds.with_kraft(world, migration_state=state)
        )
        ready = rollback_readiness(world)
        try:
            start = start_of(world)
        except MigrateError:
            reasons = {reason.name for reason in ready.reasons}
            assert reasons & {"broker-unknown", "lag-unknown", "no-quorum"}, (started, entry, there, reasons)
            continue
        agreed += 1
        assert (ready.cost.rolls, ready.cost.restarts) == (start.rolls, 2 * len(start.kraft) + len(start.migration))
    assert agreed > 10 or (file is Mode.KRAFT and state is None)  # then the plan needs controllers that answer


@pytest.mark.parametrize(
    ("value", "expected"), [(None, False), ("", False), ("true", True), (" TRUE ", True), ("yes", False)]
)
def test_the_flag_is_read_as_kafka_reads_it(value: str | None, expected: bool) -> None:
    """`ConfigDef.parseType`: anything but true is false to us, and Kafka does not start on it."""
    assert has_flag({} if value is None else {FLAG: value}) is expected


def test_every_source_answers_for_itself() -> None:
    """The file decides the next start, the answer is the process's, the registration what the metadata last heard."""
    world = worlds.with_values(worlds.world_at(Stage.HYBRID), 3001, **{FLAG: None})
    found = {flag.node: flag for flag in controller_flags(world)}
    assert list(found) == [3000, 3001, 3002]
    assert (found[3001].file, found[3001].answer, found[3001].registered) == (False, True, True)
    assert (found[3000].file, found[3000].answer, found[3000].registered) == (True, True, True)
    assert found[3000].path


@pytest.mark.parametrize("part", ["configs", "live", "kraft"])
def test_what_is_not_seen_is_unknown_and_never_without_or_with_the_flag(part: str) -> None:
    """Also where the whole part is missing."""
    whole = worlds.world_at(Stage.HYBRID)
    changes: dict[str, Any] = {part: Unknown("hidden")}
    world = replace(whole, **changes)
    name = {"configs": "file", "live": "answer", "kraft": "registered"}[part]
    assert getattr(flag_of(world, 3000), name) == Unknown("hidden")


def test_a_controller_that_nobody_looked_at_is_unknown() -> None:
    """No file was read and no answer came; the metadata, which is whole, does not know it."""
    found = flag_of(worlds.world_at(Stage.HYBRID), 9999)
    assert isinstance(found.file, Unknown)
    assert isinstance(found.answer, Unknown)
    assert found.registered is None


def test_a_file_that_does_not_exist_is_known() -> None:
    """It is neither with the flag nor without it."""
    world = worlds.world_at(Stage.HYBRID)
    assert not isinstance(world.configs, Unknown)
    gone = replace(world, configs={**world.configs, NodeId(3000): NoFile("/etc/gone")})
    assert flag_of(gone, 3000).file == NoFile("/etc/gone")
