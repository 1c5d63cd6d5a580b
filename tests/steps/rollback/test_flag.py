"""The flag goes back into a controller's file only where it is proven that no process ever ran without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, NotYet, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import HalfDone, NotBegun, Predicted
from migrate.model.views import ConfigFile, HostFile, KeptFiles, NodeAnswer, NoFile, Running, Stopped
from migrate.model.world import World
from migrate.steps import configuration, facts
from migrate.steps.rollback.flag import PutFlagBack, without_flag
from tests.steps.looks import Bend, Remembered, answer, no_leader, service, whole, without
from tests.testing import worlds
from tests.testing.worlds import kraft, live, with_values

STEP = PutFlagBack(3000)
SEEN = facts.config(whole(Stage.COPY), 3000)
assert isinstance(SEEN, ConfigFile)
FLAGGED = SEEN
FLAGLESS = worlds.config_file(NodeId(3000), SEEN.path, configuration.finalized_controller(SEEN.raw))
COPY = HostFile(SEEN.path + BACKUP_SUFFIX, SEEN.raw, SEEN.sha256)


def with_file(world: World, file: ConfigFile | NoFile) -> World:
    """Controller 3000 with that file."""
    assert not isinstance(world.configs, Unknown)
    return replace(world, configs={**world.configs, NodeId(3000): file})


def half() -> World:
    """Finalize wrote the file under a running controller, and ended."""
    return replace(with_file(whole(Stage.COPY), FLAGLESS), backups={NodeId(3000): KeptFiles((COPY,), ())})


DOWN = service(3000, Stopped(0, FLAGGED.sha256))


def registered(ready: bool | None) -> Bend:
    """How controller 3000 is registered; None: not at all."""

    def bend(world: World) -> World:
        known = dict(kraft(world).controllers)
        entry = known.pop(NodeId(3000))
        if ready is not None:
            known[NodeId(3000)] = replace(entry, migration_ready=ready)
        return worlds.with_kraft(world, controllers=known)

    return bend


def test_the_file_of_before_goes_back_and_what_is_down_is_started() -> None:
    """Each only where it is missing."""
    write = f"write 3000 {FLAGGED.path} over {FLAGLESS.sha256[:8]}"
    for world, told, done in (
        (half(), NotBegun(), [write]),
        (DOWN(half()), NotBegun(), [write, "start 3000"]),
        (with_file(half(), FLAGGED), AlreadyDone("it has the flag, and runs"), []),
        (DOWN(with_file(half(), FLAGGED)), HalfDone("it has the flag, and is down"), ["start 3000"]),
    ):
        effects = Remembered()
        assert STEP.check(world) == Ready()
        assert STEP.progress(world) == told
        STEP.do(world, effects)
        assert effects.done == done
        assert effects.written.get(3000, FLAGGED.raw) == FLAGGED.raw


def test_a_controller_whose_process_cannot_be_seen_is_not_started() -> None:
    """It may run: two processes of one controller would write one log."""
    effects = Remembered()
    STEP.do(without("services")(half()), effects)
    assert [entry.split()[0] for entry in effects.done] == ["write"]


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (without("configs"), "the file of controller 3000 cannot be read"),
        (lambda world: with_file(world, NoFile("/x")), "the file of controller 3000 cannot be read"),
        (without("services"), "services hidden"),
    ],
)
def test_what_cannot_be_seen_is_neither_done_nor_to_be_done(bend: Bend, says: str) -> None:
    """A person has to look."""
    assert STEP.progress(bend(half())) == Unknown(says)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (without("kraft"), "unknown: whether the migration is finalized is not known: kraft hidden"),
        (
            lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.PRE_MIGRATION),
            "refused: the metadata says PRE_MIGRATION, not MIGRATION",
        ),
        (registered(ready=False), "refused: controller 3000 has registered without the flag"),
        (without("configs"), "unknown: the file of controller 3000 cannot be read"),
        (lambda world: with_file(world, NoFile("/x")), "unknown: the file of controller 3000 cannot be read"),
        (without("backups"), "unknown: backups hidden"),
        (
            lambda world: replace(world, backups={NodeId(3000): KeptFiles((), ())}),
            "refused: no copy of controller 3000's file with the flag leads to the one there",
        ),
        (without("services"), "unknown: services hidden"),
        (lambda world: replace(world, services={}), "unknown: controller 3000 was not looked at"),
        (service(3000, Unknown("no /proc")), "unknown: no /proc"),
        (service(3000, Running(1, 1.0, FLAGLESS.sha256)), "refused: the last process of controller 3000 is not known"),
        (service(3000, Running(1, 1.0, None)), "refused: the last process of controller 3000 is not known"),
        (service(3000, Stopped(0, FLAGLESS.sha256)), "refused: the last process of controller 3000 is not known"),
        (service(3000, Stopped(0)), "refused: the last process of controller 3000 is not known"),
    ],
)
def test_without_the_proof_that_none_ran_without_the_flag_nothing_is_put_back(bend: Bend, says: str) -> None:
    """Neither begun nor proven: one that was elected without it has finalized the migration."""
    assert answer(STEP.check(bend(half()))).startswith(says)
    assert answer(STEP.verify(bend(half()))).startswith(says)


def test_a_controller_that_never_registered_has_not_registered_without_the_flag() -> None:
    """Its process and its file are the proof."""
    assert STEP.check(registered(ready=None)(half())) == Ready()


def test_another_controller_that_answers_without_the_flag_holds_it() -> None:
    """As soon as that one is elected there is no rollback."""
    node = live(half()).controllers[NodeId(3001)]
    assert isinstance(node, NodeAnswer)
    answers = {**live(half()).controllers, NodeId(3001): replace(node, migration_flag=False)}
    found = STEP.check(worlds.with_live(half(), controllers=answers))
    assert isinstance(found, Refused)
    assert found.codes == ("B-MIG-07",)
    assert answer(STEP.check(without("live")(half()))) == "unknown: live hidden"


def test_the_proof_is_a_quorum_that_leads_with_the_flag() -> None:
    """The file alone is none."""
    after = with_file(half(), FLAGGED)
    assert STEP.verify(after) == Verified(("the file has the flag again, and so has what runs",))
    assert isinstance(STEP.verify(no_leader(after)), NotYet)
    promised = STEP.expects(half(), Predicted())
    assert facts.observed(after, promised) == promised


def test_the_plan_shows_the_files_change_and_the_start_of_what_is_down() -> None:
    """Nothing where the file or its copy cannot be read: the checks say why."""
    (edit,) = STEP.actions(half(), Predicted())
    assert edit.what.startswith(f"restore {FLAGGED.path} from the copy {COPY.path}")
    assert "+zookeeper.metadata.migration.enable=true" in edit.diff
    assert STEP.actions(without("services")(half()), Predicted()) == (edit,)
    assert [action.symbol for action in STEP.actions(DOWN(half()), Predicted())] == ["~", ">"]
    for bend in (without("configs"), without("backups")):
        assert STEP.actions(bend(half()), Predicted()) == ()


def test_a_controller_of_other_roles_has_the_flag_that_its_file_has() -> None:
    """The plan and the readiness go by one rule: that roles are wrong is another check's finding."""
    assert without_flag(with_values(whole(Stage.COPY), 3000, process__roles="broker,controller")) == ()
    assert without_flag(half()) == (3000,)
