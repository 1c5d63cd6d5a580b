"""All rollbacks on real Kafka, each with a second migration to its end: some forty minutes.

With KRAFT_MIGRATE_KEEP_RUNS=1 the report is kept in docs/runs/rollbacks.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.lab import odd_entries
from tests.lab.commands import stopped
from tests.lab.rollbacks import ENTRIES, ODD, demo, rehearse, roll_back_after

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]
REPORT = Path(__file__).parents[2] / "docs" / "runs" / "rollbacks.md"
HEAD = """\
# Rollbacks on real clusters
Apache Kafka 3.9.2, three brokers with three log directories each, three controllers, on one host of two cores, under
load. Each cluster was migrated to the stage, rolled back, and migrated again to the end (`lab demo --rollback-from`).
Written by `tests/long/test_rollbacks.py`.

| from | verdict | took | gap | one replica | several | longest wait | acknowledged, missing |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
TAIL = """
*Took* and *gap*: the duration of the rollback, and of the time without a controller in it. *One replica*, *several*:
how many partitions with so many replicas had no leader at some time, and the longest such time; with one replica this
is unavoidable while its broker restarts. Leaders were observed four times per second. *Longest wait*: for an
acknowledgement of the load, whose topics have two and three replicas.

| after a fault | stage | rolled back, and migrated again to the end |
| --- | --- | --- |
"""
ODD_STATES = """
Unusual states, caused by people or by rare failures (`tests/lab/odd_entries.py`), resolved under load, and migrated
again to the end; `early-finalize` has no rollback: the migration is completed.

| unusual state | verdict | resolved in | acknowledged, missing |
| --- | --- | --- | --- |
"""
NOTE = """
`version-1` met a bug of Kafka 3.9.2 in one of two runs: when `/controller` was handed back, the thread of broker 1
that sends AlterPartition requests died (`zk-broker-1-to-controller-alter-partition-channel-manager: Error due to ...
IllegalArgumentException: A metric named ... connection-close-total, group=alter-partition-metrics ... already
exists`). Partitions that it led never added a restarted replica to their ISR. The roll stopped, named the broker, and
restarted no other one. Reason and remedy: [the
rollback](../rollback.md#a-broker-whose-thread-to-the-controller-died).
"""


@dataclass
class Kept:
    """The rows of the three tables, by their first cells; those of parts that do not run now stay as they are."""

    entries: dict[str, str] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """The whole page."""
        before = REPORT.read_text(encoding="utf-8").splitlines(keepends=True) if REPORT.exists() else []
        rows = {line.split("|")[1].strip(): line for line in before if line.startswith("| ")}
        text = ""
        for head, names, new in (
            (HEAD, ENTRIES, self.entries),
            (TAIL, ODD, self.odd),
            (ODD_STATES, odd_entries.PARTS, self.states),
        ):
            text += head + "".join({**rows, **new}.get(name, "") for name in names)
        return text + NOTE


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    """Written when the module has ended."""
    found = Kept()
    yield found
    if os.environ.get("KRAFT_MIGRATE_KEEP_RUNS"):
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(found.page(), encoding="utf-8")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; whatever lives in it at the end is stopped."""
    yield tmp_path / "lab"
    stopped(tmp_path / "lab")


def row(story: Any) -> str:
    """One line of the first table."""
    back = next(leg for leg in story["legs"] if leg["name"] == "rollback")
    gap = "none" if story["gap_seconds"] is None else f"{story['gap_seconds']:.1f} s"
    load = story["load"]
    word = "PROVEN" if story["proven"] else "NOT PROVEN"
    single = [one["leaderless"] for one in story["down"] if one["leaderless"] and one["why"] == "RF 1"]
    several = [one["leaderless"] for one in story["down"] if one["leaderless"] and one["why"] != "RF 1"]
    waited = max((one["unacknowledged"] for one in story["down"]), default=0.0)
    return (
        f"| {story['rollback_from']} | {word} | {back['seconds']:.0f} s | {gap} "
        f"| {len(single)}, {max(single, default=0.0):.1f} s | {len(several)}, {max(several, default=0.0):.2f} s "
        f"| {waited:.1f} s | {load['acknowledged']:,}, {load['missing']} |\n"
    )


@pytest.mark.parametrize("entry", ENTRIES)
def test_back_from_each_entry_and_all_the_way_again(entry: str, directory: Path, kept: Kept) -> None:
    """Everything is proven, and nothing of the load is lost."""
    found = rehearse(directory, entry)
    assert found.ended.returncode == 0, found.ended.stderr[-4000:]
    story = found.story()
    kept.entries[entry] = row(story)
    assert story["proven"] is True


@pytest.mark.parametrize("fault", ODD)
def test_back_after_each_fault_and_all_the_way_again(fault: str, directory: Path, kept: Kept) -> None:
    """The state is found from the cluster itself."""
    found = roll_back_after(fault, directory)
    assert found.against == ()
    assert found.load.missing == found.load.duplicated == 0
    demo("cleanup", directory)
    kept.odd[fault] = f"| {fault} | {ODD[fault][1]} | PROVEN |\n"


@pytest.mark.parametrize("part", odd_entries.PARTS)
def test_out_of_each_odd_state_and_all_the_way_again(part: str, directory: Path, kept: Kept) -> None:
    """What is bent by hand is recognised, led out of, and the cluster is migrated to its end."""
    story = odd_entries.tried(part, directory, again=True)
    assert story.load is not None
    assert story.load.missing == story.load.duplicated == 0
    out = story.seconds[odd_entries.LED_OUT[part]]
    load = f"{story.load.acknowledged:,}, {story.load.missing}"
    kept.states[part] = f"| {part} | PROVEN | {out:.0f} s | {load} |\n"
