"""A node does not start with its planned file: whatever a person then does, the printed next step leads on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import pytest

from migrate.checks.rollback.readiness import rollback_readiness
from migrate.errors import MigrateError, NoProgress, PlanIsStale, PlanStopped
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.properties import edit, parse
from migrate.model.broker_modes import node_mode
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.outcome import Awaited, Unknown
from migrate.model.plan import Plan
from migrate.model.rollback_readiness import RollbackWord
from migrate.model.stage import Stage
from migrate.model.views import Running, Stopped
from migrate.model.world import NOT_ASKED, Need, World
from migrate.plan import rollback
from migrate.report.run_report import build
from migrate.run import journal as journals
from migrate.run.past_runs import rollback_facts
from migrate.steps.facts import sha256
from tests.run.test_engine import plan_for, run
from tests.run.test_rollback import rollback_plan
from tests.testing import worlds
from tests.testing.simulated_back import TwoWay, two_way

REPAIR: Final = {"num.network.threads": "3"}


@dataclass(slots=True)
class Faulty(TwoWay):
    """A cluster with one node that starts in one mode only once its file was repaired."""

    faulty: tuple[int, str] = (-1, "")

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """As any look; processes are seen where they are asked for."""
        world = TwoWay.observe(self, needs, facts)
        return world if Need.SERVICES in needs else replace(world, services=NOT_ASKED)

    def start(self, node: NodeId) -> None:
        """As any start; the faulty one is over at once."""
        raw = self.files[int(node), path_of(int(node))]
        if (int(node), str(node_mode(parse(raw)))) != self.faulty or REPAIR.items() <= parse(raw).items():
            TwoWay.start(self, node)
            return
        self.done.append(f"start {int(node)} fails")
        self.started[int(node)] = sha256(raw)


@dataclass(slots=True)
class Unit(Faulty):
    """The same below systemd, which starts again what ended; a person repairs its file meanwhile."""

    looks: int = 0

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """With a unit in auto-restart for what ended; it runs after the third look."""
        world = Faulty.observe(self, needs, facts)
        node = NodeId(self.faulty[0])
        down = not isinstance(world.services, Unknown) and isinstance(world.services.get(node), Stopped)
        if not down or f"start {int(node)} fails" not in self.done:
            return world
        self.looks += 1
        if self.looks == 3:
            place = int(node), path_of(int(node))
            self.files[place] = edit(self.files[place], REPAIR, ())
            self.start(node)
        ends = Awaited("kafka.service on b1 is activating (auto-restart)", "whoever runs b1", "repair that")
        assert not isinstance(world.services, Unknown)
        return replace(world, services={**world.services, node: ends})


@dataclass(slots=True)
class Runit(Faulty):
    """The same below a supervisor that says of nothing that it ended: each look meets another process."""

    looks: int = 0

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """What ended has a new process id each time."""
        world = Faulty.observe(self, needs, facts)
        if isinstance(world.services, Unknown) or f"start {self.faulty[0]} fails" not in self.done:
            return world
        self.looks += 1
        file = self.files[self.faulty[0], path_of(self.faulty[0])]
        lives = Running(1000 + self.looks, 1.0, sha256(file))
        return replace(world, services={**world.services, NodeId(self.faulty[0]): lives})


@dataclass(slots=True)
class Story:
    """Where a run stands that stopped at a node which did not start."""

    cluster: Faulty
    plan: Plan
    folder: Path
    node: int

    def apply(self) -> tuple[Event, ...]:
        """The same command."""
        return run(self.cluster, self.plan, self.folder)

    def change(self, changes: dict[str, str], remove: tuple[str, ...] = ()) -> None:
        """A person edits the node's file."""
        place = self.node, path_of(self.node)
        self.cluster.files[place] = edit(self.cluster.files[place], changes, remove)

    def follow(self, text: str) -> None:
        """Type what a next step says: put a file back, start what it names, make the plan that it names, apply that."""
        copied = re.search(r"on (\w+): cp -p (\S+) (\S+); ", text) or re.search(
            r"copy (/\S+) to (\S+) on (\w+), ", text
        )
        if copied is not None and text[copied.start() :].startswith("on"):
            node = next(int(one.id) for one in worlds.inventory().nodes if one.host == copied[1])
            self.cluster.files[node, copied[3]] = self.cluster.files[node, copied[2]]
        elif copied is not None:
            node = next(int(one.id) for one in worlds.inventory().nodes if one.host == copied[3])
            self.cluster.files[node, copied[2]] = Path(copied[1]).read_bytes()
        for node in dict.fromkeys(re.findall(r"on \w+: start (?:broker|controller) (\d+)", text)):
            self.cluster.start(NodeId(int(node)))
        found = re.search(r"`kraft-migrate (rollback )?plan (\S+)(?: --to (\S+))?`", text)
        if found is not None:
            assert found[2] == worlds.playbook().path
            target = Stage.CLEANUP if found[3] is None else next(one for one in Stage if one.label == found[3])
            self.plan = rollback_plan(self.cluster) if found[1] else plan_for(self.cluster, target)
            self.folder = self.folder / "anew"
            self.folder.mkdir()

    def until_it_ends(self) -> list[str]:
        """Do what is printed until a command goes to its end; what was printed."""
        said = list[str]()
        for _ in range(4):
            try:
                self.apply()
            except MigrateError as error:
                said.append(f"{error}: {error.next_step}")
                self.follow(said[-1])
            else:
                break
        self.ends()
        return said

    def ends(self) -> None:
        """It went to its end, and what was repaired stays."""
        assert self.cluster.harms == []
        back = self.plan.kind.rolls_back
        modes = {int(node.id): self.cluster.modes[int(node.id)] for node in worlds.inventory().brokers}
        assert set(modes.values()) == {"zookeeper" if back else "kraft"}
        assert self.cluster.finalized is not back


def path_of(node: int) -> str:
    """Its file."""
    return worlds.inventory().node(NodeId(node)).config


STORIES: Final = {  # name: the node, the mode that it does not start in, the step there
    "controllers": (3001, "controller", "controllers/start-controllers"),
    "roll 1": (1, "migration", "migration-mode/1"),
    "roll 2": (1, "kraft", "kraft-mode/1"),
    "finalize": (3001, "finalized", "finalize/1-of-3"),
    "back from roll 2": (1, "migration", "kraft-mode/back-1"),
    "back from roll 1": (1, "zookeeper", "migration-mode/back-1"),
}
STOPPED: Final[dict[str, Story]] = {}


def stopped(name: str, folder: Path) -> Story:
    """A run of that story, where its node did not start: taken there once, then a copy of that."""
    if name not in STOPPED:
        STOPPED[name] = _stopped(name, folder / "first")
    kept = STOPPED[name]
    own = folder / "own"
    shutil.copytree(kept.folder, own)
    return Story(deepcopy(kept.cluster), kept.plan, own, kept.node)


def _stopped(name: str, folder: Path) -> Story:
    node, mode, step = STORIES[name]
    whole = two_way()
    cluster = Faulty(**{entry.name: getattr(whole, entry.name) for entry in fields(whole)})
    folder.mkdir()
    plan = plan_for(cluster)
    if "back" in name:
        last = next(number for number, entry in enumerate(plan.steps) if entry.id == "soak/soak")
        run(cluster, replace(plan, steps=plan.steps[:last]), folder)
        plan, folder = rollback_plan(cluster), folder / "back"
        folder.mkdir()
    cluster.faulty = node, mode
    story = Story(cluster, plan, folder, node)
    with pytest.raises(PlanStopped) as caught:
        story.apply()
    assert caught.value.where == f"step {step}"
    assert "repair" in f"{caught.value} {caught.value.next_step}".lower()
    assert "same command" in f"{caught.value} {caught.value.next_step}"
    return story


def from_before(story: Story) -> bytes:
    """The copy of broker 1's file as the step found it."""
    wanted = {"migration": "zookeeper", "kraft": "migration"}[story.cluster.faulty[1]]
    copies = [
        raw for (node, path), raw in story.cluster.files.items() if node == 1 and path.startswith(path_of(1) + ".")
    ]
    return next(raw for raw in copies if node_mode(parse(raw)) == wanted)


EVERY: Final = pytest.mark.parametrize("name", STORIES)


@pytest.mark.slow
@EVERY
def test_a_repaired_file_is_started_by_the_same_command_and_told(tmp_path: Path, name: str) -> None:
    """To the end of the plan, over every later step that rests on that file; journal and report name the key."""
    story = stopped(name, tmp_path)
    story.change(REPAIR)
    events = story.apply()
    story.ends()
    told = [value for key, value in journals.notes(events).items() if key.startswith(f"repaired:{story.node}:")]
    assert told
    assert all("was repaired by a person, in num.network.threads: the run goes on with it" in one for one in told)
    assert "+num.network.threads=3" in told[0].splitlines()
    report = build(story.plan, events)
    step = next(entry for entry in report.steps if entry.id == STORIES[name][2])
    assert any("was repaired by a person, in num.network.threads" in line for line in step.evidence)
    if (story.node, path_of(story.node)) in story.cluster.files:
        assert REPAIR.items() <= parse(story.cluster.files[story.node, path_of(story.node)]).items()


@pytest.mark.slow
def test_a_file_that_is_repaired_while_the_run_waits_for_its_unit_needs_no_second_command(tmp_path: Path) -> None:
    """Its unit starts the node with the repaired file; the run takes it as the same command would, and says it."""
    whole = two_way()
    cluster = Unit(**{entry.name: getattr(whole, entry.name) for entry in fields(whole)}, faulty=(1, "migration"))
    events = run(cluster, plan_for(cluster), tmp_path)
    assert cluster.looks >= 3
    assert cluster.finalized
    assert cluster.harms == []
    told = [value for key, value in journals.notes(events).items() if key.startswith("repaired:1:")]
    assert any("was repaired by a person, in num.network.threads" in one for one in told)


@pytest.mark.slow
def test_a_process_that_is_another_one_in_each_look_is_said_to_end_again(tmp_path: Path) -> None:
    """Not that its broker is about to register: seen below runit, where the wait ended with 'usually nothing'."""
    whole = two_way()
    cluster = Runit(**{entry.name: getattr(whole, entry.name) for entry in fields(whole)}, faulty=(1, "migration"))
    with pytest.raises(NoProgress) as caught:
        run(cluster, plan_for(cluster), tmp_path)
    assert "waiting for broker 1 to stay up (its process on b1 ends, and is started again)" in str(caught.value)
    assert caught.value.next_step == "its log says why; repair that; then give the same command again"


@pytest.mark.slow
@EVERY
def test_a_node_that_was_started_by_hand_with_its_repaired_file_is_proven_as_it_runs(tmp_path: Path, name: str) -> None:
    """It is not started again, and the record has the repair all the same."""
    story = stopped(name, tmp_path)
    story.change(REPAIR)
    story.cluster.start(NodeId(story.node))
    before = len(story.cluster.done)
    events = story.apply()
    story.ends()
    step = STORIES[name][2]
    effects = [entry.data for entry in events if entry.name == "effect" and entry.data["step"] == step]
    assert [one["effect"] for one in effects if one["node"] == str(story.node)].count("start") == 1
    assert before < len(story.cluster.done)
    assert any(key.startswith(f"repaired:{story.node}:") for key in journals.notes(events))


@pytest.mark.slow
@EVERY
def test_a_file_that_was_right_is_started_by_the_same_command(tmp_path: Path, name: str) -> None:
    """The fault was elsewhere: the planned file, or the one from before that a person put back, leads on."""
    story = stopped(name, tmp_path)
    if name.startswith("roll"):
        story.cluster.files[1, path_of(1)] = from_before(story)
    story.cluster.faulty = (-1, "")
    events = story.apply()
    story.ends()
    assert not any(key.startswith("repaired:") for key in journals.notes(events))


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("by_hand", [False, True], ids=["down", "started by hand"])
def test_with_the_journal_lost_each_printed_next_step_leads_on(tmp_path: Path, name: str, by_hand: bool) -> None:
    """A new plan is made of nodes that run: what to start is typed as it is printed, then what to plan."""
    story = stopped(name, tmp_path)
    story.change(REPAIR)
    if by_hand:
        story.cluster.start(NodeId(story.node))
    (story.folder / "journal.jsonl").unlink()
    said = story.until_it_ends()
    if story.node == 1 and not by_hand:
        assert "start what is down with its file as it is (on b1: start broker 1), then make a new plan" in said[0]


@pytest.mark.slow
@EVERY
def test_a_file_that_is_gone_is_put_back_from_the_copy_that_is_named(tmp_path: Path, name: str) -> None:
    """By its path, with what is typed; where no copy has it (a new controller's), the run's folder has it then."""
    story = stopped(name, tmp_path)
    del story.cluster.files[story.node, path_of(story.node)]
    story.cluster.faulty = (-1, "")
    said = story.until_it_ends()
    assert f"{path_of(story.node)} of {'broker' if story.node == 1 else 'controller'} {story.node}" in said[0]
    assert "is gone: put it back" in said[0]
    assert BACKUP_SUFFIX in said[0] or name == "controllers"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roll 1", "roll 2", "back from roll 1"])
def test_without_the_journal_no_copy_is_said_to_be_the_one_that_is_gone(tmp_path: Path, name: str) -> None:
    """Its steps have left other files than the plan began with: a copy of KRaft mode would misdirect a rollback."""
    story = stopped(name, tmp_path)
    was = story.cluster.files.pop((story.node, path_of(story.node)))
    (story.folder / "journal.jsonl").unlink()
    with pytest.raises(PlanIsStale, match="of broker 1 on b1 is gone") as caught:
        story.apply()
    assert "cp -p" not in caught.value.next_step
    assert "put it back as it was last (copies on b1: " in caught.value.next_step
    assert f"{path_of(1)}{BACKUP_SUFFIX} (zookeeper mode)" in caught.value.next_step
    story.cluster.files[story.node, path_of(story.node)] = was
    story.cluster.faulty = (-1, "")
    story.until_it_ends()


@pytest.mark.slow
def test_without_a_journal_a_controllers_file_is_made_again_as_it_was_rendered(tmp_path: Path) -> None:
    """No copy is beside it, and a plan of now knows nothing of it: a copy of the first broker's file has its values."""
    story = stopped("roll 1", tmp_path)
    story.cluster.faulty = (-1, "")
    story.cluster.start(NodeId(story.node))
    shutil.rmtree(story.folder)
    story.folder.mkdir()
    place = 3001, path_of(3001)
    was = story.cluster.files.pop(place)
    story.plan = plan_for(story.cluster)
    with pytest.raises(PlanIsStale, match="of controller 3001 on c3001 is gone") as caught:
        story.apply()
    assert "put it back: copy /" in caught.value.next_step
    story.follow(caught.value.next_step)
    assert story.cluster.files[place] == was
    story.until_it_ends()


@pytest.mark.slow
def test_the_file_of_another_broker_is_put_back_in_the_same_way(tmp_path: Path) -> None:
    """Rolled before, by this plan: no copy has what the roll wrote, so it is made again, to the byte."""
    story = stopped("roll 2", tmp_path)
    story.cluster.faulty = (-1, "")
    place = 2, path_of(2)
    was = story.cluster.files.pop(place)
    with pytest.raises(PlanIsStale, match="of broker 2 on b2 is gone") as caught:
        story.apply()
    story.follow(caught.value.next_step)
    assert story.cluster.files[place] == was
    story.apply()
    story.ends()


def test_what_is_rendered_for_a_controller_is_in_the_runs_folder_too(tmp_path: Path) -> None:
    """No copy of it is beside it: there was no file before."""
    story = stopped("controllers", tmp_path)
    [kept] = (story.folder / "backup" / "3001").iterdir()
    assert kept.read_bytes() == story.cluster.files[3001, path_of(3001)]


def test_of_a_file_that_nothing_makes_again_the_copies_are_named(tmp_path: Path) -> None:
    """Of another hand's plan, or of a broker whose copies are gone: what there is, and what leads on."""
    story = stopped("roll 2", tmp_path)
    for place in [place for place in story.cluster.files if place[0] == 1 and place[1].startswith(path_of(1))]:
        del story.cluster.files[place]
    with pytest.raises(PlanIsStale, match="of broker 1 on b1 is gone") as caught:
        story.apply()
    assert "copies on b1: none; backup/ in each run's folder has others" in caught.value.next_step
    assert "make a new plan: `kraft-migrate" in caught.value.next_step


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roll 1", "roll 2"])
def test_the_file_from_before_put_back_with_the_repair_in_it_is_edited_and_started(tmp_path: Path, name: str) -> None:
    """What would be written of it differs from the plan in the repaired key alone."""
    story = stopped(name, tmp_path)
    story.cluster.files[1, path_of(1)] = edit(from_before(story), REPAIR)
    story.apply()
    story.ends()


OWN: Final = {  # a key that the step writes, or by which it knows the node: it is refused, and put back it leads on
    "controllers": ("controller.quorum.voters", "3000@c3000:1"),
    "roll 1": ("controller.quorum.voters", "3000@c3000:1"),
    "roll 2": ("log.dirs", "/elsewhere"),
    "finalize": ("node.id", "7"),
    "back from roll 2": ("controller.quorum.voters", "3000@c3000:1"),
    "back from roll 1": ("zookeeper.connect", "elsewhere:2181"),
}


@pytest.mark.slow
@EVERY
def test_a_change_in_a_key_of_the_plan_is_refused_by_name_and_put_back_it_leads_on(tmp_path: Path, name: str) -> None:
    """The refusal says the key, its planned value, and both ways on."""
    story = stopped(name, tmp_path)
    key, value = OWN[name]
    was = parse(story.cluster.files[story.node, path_of(story.node)])[key]
    story.change(REPAIR | {key: value})
    with pytest.raises(MigrateError) as caught:
        story.apply()
    assert key in str(caught.value)
    assert not any(entry.endswith(("start 1", "start 3001")) for entry in story.cluster.done[-1:])
    assert story.node not in story.cluster.running
    assert isinstance(caught.value, PlanIsStale)
    assert f"put these keys back ({key}={was}) and give the same command" in caught.value.next_step
    assert "make a new plan: `kraft-migrate" in caught.value.next_step
    story.change({key: was})
    story.apply()
    story.ends()


@pytest.mark.parametrize(("name", "key"), [("roll 1", "controller.quorum.voters"), ("back from roll 2", "node.id")])
def test_a_key_of_the_step_alone_is_not_written_over_without_a_word(tmp_path: Path, name: str, key: str) -> None:
    """Who changed it would give the same command again and again, and not see his change."""
    story = stopped(name, tmp_path)
    story.change({key: "7"})
    with pytest.raises(PlanIsStale, match=key):
        story.apply()
    assert story.node not in story.cluster.running


@pytest.mark.slow
@EVERY
def test_a_repair_that_kafka_would_refuse_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """By the same reader as B-CFG-21; repaired, the same command starts the node."""
    story = stopped(name, tmp_path)
    story.change(REPAIR | {"num.io.threads": "many"})
    with pytest.raises(PlanIsStale, match=r"num\.io\.threads: .many. is no whole number") as caught:
        story.apply()
    assert story.node not in story.cluster.running
    assert "repair that too and give the same command" in caught.value.next_step
    story.change({"num.io.threads": "8"})
    story.apply()
    story.ends()


@pytest.mark.slow
def test_a_secret_of_the_repair_is_in_no_record(tmp_path: Path) -> None:
    """Its key is named, its value is not."""
    story = stopped("roll 1", tmp_path)
    story.change(REPAIR | {"ssl.keystore.password": "hunter2-hunter2"})
    events = story.apply()
    assert "hunter2" not in (story.folder / "journal.jsonl").read_text()
    assert "num.network.threads, ssl.keystore.password" in "".join(journals.notes(events).values())


def test_a_file_that_changed_before_the_node_was_started_is_no_repair(tmp_path: Path) -> None:
    """Killed between its stop and its start: another hand wrote the file of a node that has not failed."""
    story = stopped("roll 1", tmp_path)
    path = story.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(
        number for number, line in enumerate(lines) if b'"effect":"start"' in line and b"migration-mode/1" in line
    )
    path.write_bytes(b"".join(lines[:first]))
    story.change(REPAIR)
    with pytest.raises(PlanIsStale, match="would do other than planned"):
        story.apply()


@pytest.mark.slow
def test_the_planned_file_put_back_after_a_repair_is_told_too(tmp_path: Path) -> None:
    """The last note holds: the steps behind it are held to the file that the node runs with."""
    story = stopped("roll 1", tmp_path)
    planned = story.cluster.files[1, path_of(1)]
    story.change({"num.io.threads": "9"})
    with pytest.raises(PlanStopped):
        story.apply()
    story.cluster.faulty = (-1, "")
    story.cluster.files[1, path_of(1)] = planned
    events = story.apply()
    story.ends()
    assert any("is the planned one again" in value for value in journals.notes(events).values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roll 1", "roll 2"])
def test_the_rollback_of_a_repaired_broker_is_ready_and_keeps_the_repair(tmp_path: Path, name: str) -> None:
    """Before it was started and after: the migration's keys go back, the repaired key stays."""
    story = stopped(name, tmp_path)
    story.change(REPAIR)
    for _ in range(2):
        world = story.cluster.observe(rollback.PLANNED_ON, {})
        found = rollback_readiness(world, rollback_facts(world))
        assert found.word is not RollbackWord.NOT_READY, found.reasons
        [note] = [reason for reason in found.reasons if reason.name == "file-edited"]
        assert "kept: num.network.threads" in note.what
        if 1 not in story.cluster.running:
            story.cluster.start(NodeId(1))
    folder = story.folder / "back"
    folder.mkdir()
    run(story.cluster, rollback_plan(story.cluster), folder)
    assert story.cluster.harms == []
    original = two_way().files[1, path_of(1)]
    assert parse(story.cluster.files[1, path_of(1)]) == parse(original) | REPAIR
