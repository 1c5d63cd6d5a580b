"""What somebody was asked for is waited for like anything else that must come true; what nobody tells is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NoProgress, PlanStopped
from migrate.model.outcome import Awaited, Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.world import World
from migrate.run import journal as journals
from tests.run.test_rollback import at, go_back, is_back
from tests.testing.simulated_back import TwoWay

ASKED = Awaited("the metadata logs are not brought yet", "whoever works those hosts", "bring them")
LONG = 20  # looks, some seconds apart: longer than something may be unseen, shorter than the patience


def held(cluster: TwoWay, seen: Unknown, looks: int) -> list[World]:
    """The stopped controllers' logs are that for so many looks; the worlds that were looked at."""
    looked: list[World] = []

    def bend(world: World) -> World:
        if not isinstance(world.metadata_logs, MetadataLogs) or len(looked) >= looks:
            return world
        looked.append(world)
        return replace(world, metadata_logs=seen)

    cluster.bend = bend
    return looked


@pytest.mark.slow
def test_a_log_that_a_person_brings_late_is_waited_for(tmp_path: Path) -> None:
    """Longer than the half minute for what is unseen; who owns the wait is told, and the rollback ends well."""
    cluster = at("hybrid", tmp_path / "forward")
    looked = held(cluster, ASKED, LONG)
    events = go_back(cluster, tmp_path / "back")
    assert len(looked) == LONG
    is_back(cluster)
    told = [event.data for event in events if event.name == "waiting"]
    assert (ASKED.reason, ASKED.owner, ASKED.next_step) in {(one["what"], one["owner"], one["next"]) for one in told}


def test_a_log_that_nobody_brings_ends_the_run_with_nothing_handed_back(tmp_path: Path) -> None:
    """By no progress, as any wait; the znodes are as they were, and with the log the same plan goes on."""
    cluster = at("hybrid", tmp_path / "forward")
    held(cluster, ASKED, 100_000)
    with pytest.raises(NoProgress, match="not brought yet"):
        go_back(cluster, tmp_path / "back")
    assert cluster.migration is not None
    assert cluster.owner is not None
    assert cluster.owner[0] != "zookeeper"


def test_a_log_that_cannot_be_read_and_was_asked_of_nobody_is_refused(tmp_path: Path) -> None:
    """As before: half a minute, then the reason."""
    cluster = at("hybrid", tmp_path / "forward")
    held(cluster, Unknown("no such right"), 100_000)
    with pytest.raises(PlanStopped, match="no such right"):
        go_back(cluster, tmp_path / "back")
    names = [event.name for event in journals.read(tmp_path / "back" / "journal.jsonl").events]
    assert names[-1] == "stop"
    assert cluster.migration is not None
