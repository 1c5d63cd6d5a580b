"""Disks that go bad in the middle of a migration without being gone: read-only, full, unreadable, replaced.

One lab.  In each roll all four: replaced under a broker that a killed run left stopped, unreadable and full under one
that is being restarted, read-only under one that was rolled before.  Then all four between the comparison and finalize,
with a confirmed plan in hand.  Each time the run stops at the right place, the words of `status` are followed, and the
same plan goes on.  All of it is `long`; what is gone or emptied is `tests/lab/test_disks_in_rolls.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.lab.commands import kraft_migrate
from tests.lab.disk_story import REFUSED, Story, story_in
from tests.lab.faults import DiskFault
from tests.lab.sick_broker import ROOT, SickBroker
from tests.lab.test_disk_failures import the_new_one_stays

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(not ROOT, reason="a disk in memory that is read-only or full needs root"),
]

LAST: Final = (DiskFault.READ_ONLY, DiskFault.FULL, DiskFault.UNREADABLE, DiskFault.REPLACED)
IN_ROLLS: Final = ("replaced", "unreadable", "read-only", "full")
SAID: Final = {
    "read-only": "cannot be written: Read-only file system",
    "full": "cannot be written: No space left on device",
    "unreadable": "cannot be read: not a regular file",
}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once."""
    with story_in(tmp_path_factory.mktemp("bad-disks") / "lab") as found:
        found.demo("controllers")
        roll(found, 1, found.plan("migration-mode"))
        found.demo("hybrid")
        roll(found, 2, found.plan("kraft-mode"))
        found.demo("soak")
        before_finalize(found)
        yield found


def roll(story: Story, number: int, plan: Path) -> None:
    """One broker after the other, each with a disk that fails."""
    lab = story.lab
    replaced = SickBroker(lab, 0)
    story.killed_then(f"{number} replaced", plan, replaced, DiskFault.REPLACED, "before:start:0")
    the_new_one_stays(replaced)
    story.stop_by(f"{number} unreadable", plan, SickBroker(lab, 1), DiskFault.UNREADABLE, rolled=1, way="old")
    the_new_one_stays(SickBroker(lab, 1))
    story.killed_then(f"{number} read-only", plan, SickBroker(lab, 0), DiskFault.READ_ONLY, "before:stop:2")
    story.stop_by(f"{number} full", plan, SickBroker(lab, 2), DiskFault.FULL, rolled=2, way="old")
    story.apply(str(number), plan)


def before_finalize(story: Story) -> None:
    """Under a running broker, one after the other; the plan was made and confirmed before."""
    plan = story.plan("finalize")
    words = ("--confirm", json.loads(plan.read_text())["fingerprint"], "--confirm-cluster", story.lab.inventory.name)
    for fault in LAST:
        sick = SickBroker(story.lab, 1)
        sick.break_now(fault)
        if fault in (DiskFault.READ_ONLY, DiskFault.FULL):
            sick.until_offline()
        refused = kraft_migrate("apply", str(plan), *words)
        story.stopped(f"finalize {fault}", sick, refused.returncode, refused.stderr, "old")
        the_new_one_stays(sick)
    story.apply("finalize", plan, *words)


EVERY: Final = (*(f"{number} {name}" for number in (1, 2) for name in IN_ROLLS), *(f"finalize {one}" for one in LAST))


@pytest.mark.parametrize("name", EVERY)
def test_a_run_is_refused_where_a_disk_went_bad_and_names_it(story: Story, name: str) -> None:
    """By the broker, the directory and the reason; nothing is waited for."""
    found = story.stops[name]
    assert found.code == REFUSED
    assert f"broker {found.trouble['broker']}" in found.said
    assert found.trouble["path"] in found.said
    expected = SAID.get(name.partition(" ")[2])
    if expected:
        assert expected in found.said
        assert expected in found.trouble["what"]


def test_no_broker_behind_the_sick_one_was_touched(story: Story) -> None:
    """Each stop leaves the next ones in their old mode."""
    rolled = {"replaced": {0}, "unreadable": {0, 1}, "read-only": {0, 1}, "full": {0, 1, 2}}
    for name in IN_ROLLS:
        for number, mode in ((1, "migration"), (2, "kraft")):
            files = {node for node, now in story.stops[f"{number} {name}"].files.items() if now == mode}
            assert files == rolled[name], (number, name)


def test_what_each_broker_did(story: Story) -> None:
    """One that is stopped stays so; one in migration mode halts; one in KRaft mode continues without the disk."""
    ran = {name: stop.ran for name, stop in story.stops.items()}
    lived = {"2 read-only", *(f"finalize {fault}" for fault in LAST)}
    assert ran == {name: name in lived for name in EVERY}
    for number in (1, 2):
        for name in ("unreadable", "full"):
            assert "E-DIR-10" in story.stops[f"{number} {name}"].said
            assert "started now, it would continue without it" in story.stops[f"{number} {name}"].said


@pytest.mark.parametrize("name", ["1", "2", "finalize"])
def test_mended_by_the_words_the_same_plan_goes_to_its_end(story: Story, name: str) -> None:
    """Every row VERIFIED, every ISR full, as ever."""
    assert story.ended[name].returncode == 0, story.ended[name].stderr[-3000:]


def test_every_replica_lies_where_the_metadata_says_in_the_end(story: Story) -> None:
    """Of all brokers; no disk is bad, and none has a file that bars ZooKeeper mode."""
    status = SickBroker(story.lab, 1).status()
    assert status["disks"] == []
    assert [set(rows) for rows in status["ledger"]["brokers"].values()] == [{"VERIFIED"}] * 3
