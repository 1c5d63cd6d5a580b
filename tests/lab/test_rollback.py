"""The rollback on real Kafka, from each entry, after faults and from odd states.

On each commit: from half of the second roll, killed on the way, from hybrid, and with the copy done again.  The others,
a second migration to its end, and one over changes that dual write lost, are `long`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.lab.cluster import Lab
from migrate.model.causes import cause_of
from migrate.run import journal as journals
from tests.lab import lost_writes, odd_entries
from tests.lab.commands import stopped
from tests.lab.rollbacks import ENTRIES, ODD, Rehearsed, rehearse, roll_back_after
from tests.testing.tiers import parts

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
ALWAYS = "half-kraft-mode"
OTHERS = (*(entry for entry in ENTRIES if entry != ALWAYS), *ODD, *odd_entries.EACH_COMMIT)


@pytest.fixture(scope="module", params=parts(["assess", "cleanup"], each_commit=["assess"]))
def half(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Two of three brokers in KRaft mode, back, and forward again so far; killed with /controller just deleted."""
    folder = tmp_path_factory.mktemp("half") / "lab"
    try:
        killed = rehearse(folder, ALWAYS, crash="after:delete-znode:/controller")
        assert killed.ended.returncode == -signal.SIGKILL, killed.ended.stderr[-4000:]
        yield rehearse(folder, ALWAYS, until=request.param)
    finally:  # one that fails early leaves nothing behind either: the tests that follow need the machine
        stopped(folder)


def test_from_half_of_the_second_roll_and_forward_again_everything_is_proven(half: Rehearsed) -> None:
    """The same command goes on after the kill; exit code 0, and no claim that does not hold."""
    assert half.ended.returncode == 0, half.ended.stderr[-4000:]
    story = half.story()
    assert story["proven"] is True
    assert {claim["holds"] for claim in story["claims"]} <= {"holds", "not due yet"}
    there, back, again = (leg["verdict"] for leg in story["legs"])
    assert (there, back, again.split()[0]) == ("left there, as wanted", "PROVEN", "PROVEN")


def test_no_acknowledged_record_is_lost_over_two_migrations_and_a_rollback(half: Rehearsed) -> None:
    """One load ran through all of it."""
    load = half.story()["load"]
    assert load["missing"] == load["duplicated"] == 0
    assert load["acknowledged"] > 5000


def test_the_gap_and_the_downtime_of_each_partition_are_reported(half: Rehearsed) -> None:
    """By measuring, in values and in words."""
    story = half.story()
    assert story["gap_seconds"] > 0
    assert set(story["away_seconds"]) == {"0", "1", "2"}
    assert isinstance(story["down"], list)
    assert all(one["leaderless"] or one["unacknowledged"] for one in story["down"])
    text = (half.directory / "runs" / "rehearsal.md").read_text()
    assert text.startswith(f"# Rollback from {ALWAYS}: PROVEN")
    assert "without a controller" in text


def test_the_quorums_metadata_is_set_aside_and_a_next_quorum_is_another(half: Rehearsed) -> None:
    """Moved whole into a folder beside what runs later, which was formatted again; Kafka leaves that folder alone."""
    for controller in Lab.open(half.directory).topology.controllers:
        now = Path(controller.metadata_directory)
        (aside,) = now.glob("kraft-migrate-aside-*")
        assert list((aside / "__cluster_metadata-0").glob("*.log"))
        again = now / "meta.properties"
        assert not again.exists() or (aside / "meta.properties").read_text() != again.read_text()


def test_the_rollback_was_killed_once_and_no_effect_was_made_twice(half: Rehearsed) -> None:
    """By its journal: two lives, or more where a broker lost its channel, and each znode deleted once."""
    events = journals.read(half.back_folder() / "journal.jsonl").events
    assert sum(event.name == "session" for event in events) >= 2
    deleted = [event.data["node"] for event in events if event.name == "effect" and "delete" in event.data["effect"]]
    assert sorted(deleted) == ["/controller", "/migration"]


@pytest.mark.long
def test_what_dual_write_lost_stops_a_rollback_before_any_controller(directory: Path) -> None:
    """Three last quotas and an ACL with `/`, acknowledged, passed by /migration; the printed remedies let it go on."""
    found = lost_writes.refused_and_repaired(directory, "hybrid")
    for text in (found.planned, found.applied):
        causes = map(cause_of, lost_writes.ROWS)
        told = (*lost_writes.NAMES, *(words for cause in causes for words in (cause.cause, cause.what_to_do)))
        assert all(lost_writes.joined(words) in text for words in told)
    assert len(found.running) == 3
    assert "delete-znode" not in found.effects
    assert found.ended.returncode == 0, found.ended.stderr[-4000:]
    assert found.against == (lost_writes.REPAIRED,)
    assert found.load.missing == found.load.duplicated == 0


@pytest.mark.parametrize("part", parts(OTHERS, each_commit=["hybrid", "copy-again"]))
def test_from_one_of_the_other_entries_or_after_a_fault(part: str, directory: Path) -> None:
    """Back in ZooKeeper mode, everything that was made survives, no acknowledged record is lost."""
    if part in ODD:
        found = roll_back_after(part, directory)
        assert found.against == ()
        assert found.load.missing == found.load.duplicated == 0
        assert found.load.acknowledged > 1000
        if part == "versions-behind":
            assert found.raised > 100
        if part.startswith("files-changed"):
            first = "migration-mode/back-1" if part == "files-changed" else "kraft-mode/back-1"
            assert "its file says ZooKeeper mode" in found.said[first]
            assert "key by key" in found.said["migration-mode/back-2"]
            assert "log.cleaner.threads" in found.said["migration-mode/back-2"]
        return
    if part in odd_entries.PARTS:
        load = odd_entries.tried(part, directory, again=False).load
        assert load is not None
        assert load.missing == load.duplicated == 0
        assert load.acknowledged > 1000
        return
    rehearsed = rehearse(directory, part, until="assess")
    assert rehearsed.ended.returncode == 0, rehearsed.ended.stderr[-4000:]
    story = rehearsed.story()
    assert story["proven"] is True
    assert story["load"]["missing"] == story["load"]["duplicated"] == 0
