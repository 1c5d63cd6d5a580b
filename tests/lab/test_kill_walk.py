"""Real Kafka: killed before and after the effect of one kind of step a commit; all kinds in the long run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.commands import kraft_migrate, stopped
from tests.lab.kill_walk import STAGE_OF, UNTIL_HYBRID, as_markdown, effects_in, journal_of, killed_at, walk

pytestmark = pytest.mark.kafka
# writing the same copy once more changes nothing; every process takes the lock anew, and so gives it back anew
REPEATABLE = ("backup-file", "backup-zookeeper", "release-lock")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """The lab's folder; what lives in it at the end is stopped."""
    folder = tmp_path / "lab"
    yield folder
    stopped(folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(STAGE_OF))
def test_killed_before_and_after_the_effect_of_a_kind_of_step(kind: str, directory: Path) -> None:
    """The same command goes on; what had happened is not done again."""
    effect, words = UNTIL_HYBRID[kind][-1], ("--until", STAGE_OF[kind], "--no-load")
    before = killed_at(directory, kind, f"before:{effect}", *words)
    after = killed_at(directory, kind, f"after:{effect}", *words)
    assert (before.code, after.code) == (-signal.SIGKILL, -signal.SIGKILL)
    events = journal_of(directory)
    ended = kraft_migrate("lab", "demo", "--dir", str(directory), *words)
    assert ended.returncode == 0, ended.stderr[-3000:]
    name, node = effect.split(":")
    whole = journal_of(directory)
    assert whole[: len(events)] == events, "the journal goes on where it was"
    again = effects_in(whole[len(events) :])
    assert not [entry for entry in again if f" {name} {node}" in entry] or name in REPEATABLE
    concluded = [event["data"]["step"] for event in whole if event["event"] == "conclude"]
    assert len(concluded) == len(set(concluded))


@pytest.mark.long
@pytest.mark.spark
def test_a_migration_killed_at_every_kind_of_step_ends_proven(directory: Path) -> None:
    """One cluster, every kind of step, every effect of it: under load, to the end."""
    found = walk(directory, quick=False)
    print(as_markdown(found))
    assert {kill.code for kill in found.kills} == {-signal.SIGKILL}
    assert found.ended == 0, found.said
    assert found.report["verdict"]["word"] == "PROVEN"
    assert found.report["load"]["missing"] == 0
    assert {entry.split()[1] for entry, count in found.effects.items() if count > 2} <= set(REPEATABLE)
