"""Disks die in the middle of a migration: the run stops at the right place, and goes on after the mend that is printed.

One lab, six failures: under a broker that is being restarted (both rolls), under one that was rolled before (the first
roll), between the stop and the start of a killed run, and between the comparison and finalize.  All of it is `long`.
That a disk dies under the first KRaft broker in the second roll is `tests/lab/test_directory_hole.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from migrate.lab import breaking
from migrate.lab.breaking import DiskFault
from migrate.lab.cluster import Lab
from migrate.lab.topology import Shape
from migrate.run import journal as journals
from tests.lab.commands import SECONDS, environment, kraft_migrate
from tests.lab.sick_broker import SickBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

REFUSED, NO_PROGRESS, PLANNED, KILLED = 3, 5, 2, -9
LOOK: Final = 0.02  # seconds between two looks into the journal


@dataclass
class Stop:
    """Where a run stopped because of a disk, what was said, and how it went on."""

    code: int
    said: str
    trouble: dict[str, Any]
    files: dict[int, str]  # broker -> the mode of its file, then
    ran: bool  # did the broker run, then?


@dataclass
class Story:
    """All of it, in order."""

    lab: Lab
    stops: dict[str, Stop] = field(default_factory=dict)
    ended: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)

    # -- commands ------------------------------------------------------------------------------------------------
    def demo(self, until: str) -> None:
        """`lab demo --until STAGE`."""
        ended = kraft_migrate("lab", "demo", "--dir", self.lab.topology.directory, "--until", until, "--no-load")
        assert ended.returncode == 0, ended.stderr[-3000:]

    def plan(self, stage: str) -> Path:
        """A plan to that stage."""
        ended = kraft_migrate("plan", str(self.lab.playbook_path), "--stage", stage, "--output", "json")
        assert ended.returncode == PLANNED, ended.stderr[-3000:] + ended.stdout[-3000:]
        fingerprint: str = json.loads(ended.stdout)["fingerprint"]
        return Path(self.lab.inventory.runs) / fingerprint[:8] / "plan.json"

    # -- a disk dies, the run stops, the words are followed ----------------------------------------------------------
    def stop_by(self, name: str, plan: Path, sick: SickBroker, fault: DiskFault, rolled: int, way: str) -> None:
        """The disk dies as soon as `rolled` is told to stop; the run's end, `status`, and the mend."""
        before = len(stops_of(plan, rolled))
        command = [sys.executable, "-m", "migrate", "apply", str(plan)]
        run = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.until(run, lambda: len(stops_of(plan, rolled)) > before)
            sick.break_now(fault)
            said = run.communicate(timeout=SECONDS)[1]
        finally:
            run.kill()
        self.stopped(name, sick, run.returncode, said, way)

    def stopped(self, name: str, sick: SickBroker, code: int, said: str, way: str) -> None:
        """What is seen then; and the mend."""
        status = sick.status()
        files = {row["node"]: row["file"] for row in status["processes"]}
        print(f"{name}: {code}: {said[-1500:]}\n{json.dumps(status['disks'], indent=1)}", file=sys.stderr, flush=True)
        (trouble,) = status["disks"]
        self.stops[name] = Stop(code, said, trouble, files, sick.runs())
        sick.follow(trouble, way)
        assert sick.disks() == []

    def until(self, run: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
        """While the run goes on."""
        began = time.monotonic()
        while not reached():
            assert run.poll() is None, run.communicate()[1][-3000:]
            assert time.monotonic() - began < SECONDS
            threading.Event().wait(LOOK)

    def apply(self, name: str, plan: Path, *words: str) -> None:
        """To its end."""
        self.ended[name] = kraft_migrate("apply", str(plan), *words)


def stops_of(plan: Path, broker: int) -> list[Any]:
    """The orders to stop that broker, in the run's journal."""
    path = plan.parent / "journal.jsonl"
    if not path.exists():
        return []
    events = journals.read(path).events
    return [e for e in events if e.name == "effect" and e.data["effect"] == "stop" and e.data["node"] == str(broker)]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once."""
    lab = Lab.create(tmp_path_factory.mktemp("rolls") / "lab", Shape(directories=2))
    text = lab.playbook_path.read_text()
    lab.playbook_path.write_text(text.replace("no_progress_timeout: 3m", "no_progress_timeout: 30s"))
    found = Story(lab)
    try:
        tell(found)
        yield found
    finally:
        lab.down()
        SickBroker(lab, 0).made_whole()


def tell(story: Story) -> None:
    """From ZooKeeper mode to the point of no return."""
    first_roll(story)
    story.demo("hybrid")
    second_roll(story)
    story.demo("soak")
    before_finalize(story)


def first_roll(story: Story) -> None:
    """Into migration mode."""
    lab = story.lab
    story.demo("controllers")
    plan = story.plan("migration-mode")
    story.stop_by("1 restarted", plan, SickBroker(lab, 0), DiskFault.GONE, rolled=0, way="old")
    story.stop_by("1 rolled before", plan, SickBroker(lab, 0), DiskFault.GONE, rolled=1, way="old")
    killed = kraft_migrate("apply", str(plan), crash="before:start:2")
    assert killed.returncode == KILLED, killed.stderr[-3000:]
    sick = SickBroker(lab, 2)
    sick.break_now(DiskFault.GONE)
    again = kraft_migrate("apply", str(plan))
    story.stopped("1 killed", sick, again.returncode, again.stderr, "old")
    story.apply("1", plan)


def second_roll(story: Story) -> None:
    """Into KRaft mode."""
    lab = story.lab
    plan = story.plan("kraft-mode")
    story.stop_by("2 emptied", plan, SickBroker(lab, 0), DiskFault.EMPTIED, rolled=0, way="old")
    story.stop_by("2 restarted", plan, SickBroker(lab, 1), DiskFault.GONE, rolled=1, way="new")
    story.apply("2", plan)


def before_finalize(story: Story) -> None:
    """Behind the comparison and the soak, with a confirmed plan in hand."""
    plan = story.plan("finalize")
    fingerprint = json.loads(plan.read_text())["fingerprint"]
    words = ("--confirm", fingerprint, "--confirm-cluster", story.lab.inventory.name)
    sick = SickBroker(story.lab, 1)
    sick.break_now(DiskFault.GONE)
    sick.until_offline()
    refused = kraft_migrate("apply", str(plan), *words)
    story.stopped("finalize", sick, refused.returncode, refused.stderr, "old")
    story.apply("finalize", plan, *words)


@pytest.mark.parametrize("name", ["1 restarted", "1 killed", "2 emptied", "2 restarted", "finalize"])
def test_a_run_is_refused_where_the_disk_died_and_names_it(story: Story, name: str) -> None:
    """By the broker and the reason; nothing is waited for."""
    found = story.stops[name]
    assert found.code == REFUSED
    assert f"broker {found.trouble['broker']}" in found.said
    assert found.trouble["path"] in found.said


def test_a_disk_that_dies_under_another_broker_stops_the_run_before_the_next_restart(story: Story) -> None:
    """The proof of the one that is being restarted asks for full ISRs; what it waits for names the disk."""
    found = story.stops["1 rolled before"]
    assert found.code == NO_PROGRESS
    assert found.trouble["path"] in found.said


def test_no_broker_behind_the_sick_one_was_touched(story: Story) -> None:
    """Each stop leaves the next ones in their old mode."""
    for name, migrating in (("1 restarted", {0}), ("1 rolled before", {0, 1}), ("1 killed", {0, 1, 2})):
        files = {node for node, mode in story.stops[name].files.items() if mode == "migration"}
        assert files == migrating, name
    for name, kraft in (("2 emptied", {0}), ("2 restarted", {0, 1})):
        files = {node for node, mode in story.stops[name].files.items() if mode == "kraft"}
        assert files == kraft, name


def test_what_each_broker_did(story: Story) -> None:
    """One whose disk died while it was stopped is not started again, in both rolls; it halts in migration mode."""
    ran = {name: stop.ran for name, stop in story.stops.items()}
    assert ran == {
        "1 restarted": False,
        "1 rolled before": False,
        "1 killed": False,
        "2 emptied": False,
        "2 restarted": False,
        "finalize": True,
    }
    for name in ("1 restarted", "2 restarted"):
        assert "E-DIR-10" in story.stops[name].said
        assert "started now, it would go on without it" in story.stops[name].said
    assert "Do not start it before the disk is whole" in story.stops["1 restarted"].trouble["effect"]
    assert "one disk is one broker" in story.stops["1 rolled before"].trouble["effect"]
    assert "No `meta.properties` found" in story.stops["2 emptied"].trouble["effect"]


def test_every_stop_says_the_right_file_for_a_new_disk(story: Story) -> None:
    """None in migration mode, a version 0 file in KRaft mode before finalize."""
    for name, stop in story.stops.items():
        assert ("version=0" in stop.trouble["command"]) is not name.startswith("1"), name
        assert stop.trouble["command"].count("kafka-storage") == 0


@pytest.mark.parametrize("name", ["1", "2", "finalize"])
def test_mended_by_the_words_the_same_plan_goes_to_its_end(story: Story, name: str) -> None:
    """Every row VERIFIED, every ISR full, as ever."""
    assert story.ended[name].returncode == 0, story.ended[name].stderr[-3000:]


def test_the_new_disk_has_a_version_0_file_and_is_registered(story: Story) -> None:
    """Broker 1's, replaced in the second roll: the way back stayed open until finalize."""
    meta = SickBroker(story.lab, 1).meta()
    assert (meta.version, meta.node_id) == (0, 1)
    status = SickBroker(story.lab, 1).status()
    assert status["stage"] in ("finalize", "cleanup")
    assert set(status["ledger"]["brokers"]["1"]) == {"VERIFIED"}
    assert breaking.broken_disks(story.lab) == ()
