"""Disks die in the middle of a migration: the run stops at the right place, and goes on after the mend that is printed.

One lab, six failures: under a broker that is being restarted (both rolls), under one that was rolled before (the first
roll), between the stop and the start of a killed run, and between the comparison and finalize.  All of it is `long`.
That a disk dies under the first KRaft broker in the second roll is `tests/lab/test_directory_hole.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab.commands import kraft_migrate
from tests.lab.disk_story import KILLED, NO_PROGRESS, REFUSED, Story, story_in
from tests.lab.faults import DiskFault
from tests.lab.sick_broker import SickBroker
from tests.testing.sick_disks import broken_disks

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once."""
    with story_in(tmp_path_factory.mktemp("rolls") / "lab") as found:
        tell(found)
        yield found


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
        assert "started now, it would continue without it" in story.stops[name].said
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
    """Broker 1's, replaced in the second roll: the rollback stayed open until finalize."""
    meta = SickBroker(story.lab, 1).meta()
    assert (meta.version, meta.node_id) == (0, 1)
    status = SickBroker(story.lab, 1).status()
    assert status["stage"] in ("finalize", "cleanup")
    assert set(status["ledger"]["brokers"]["1"]) == {"VERIFIED"}
    assert broken_disks(story.lab) == ()
