"""All ways back on real Kafka, each with a second migration to its end: some forty minutes.

With KRAFT_MIGRATE_KEEP_RUNS=1 the report is kept in docs/runs/rollbacks.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.lab.commands import kraft_migrate
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
*Took* and *gap*: the rollback, and the time without a controller in it. *One replica*, *several*: how many partitions
had no leader for a moment of the rollback, and the longest of them; with one replica that is while its broker
restarts, whatever one does. It was looked at four times a second. *Longest wait*: for an acknowledgement, of the load,
whose topics have two and three replicas.

| after a fault | stage | rolled back, and migrated again to the end |
| --- | --- | --- |
"""


@dataclass
class Kept:
    """The rows of both tables."""

    entries: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    """Written when the module has ended."""
    found = Kept()
    yield found
    if os.environ.get("KRAFT_MIGRATE_KEEP_RUNS"):
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(HEAD + "".join(found.entries) + TAIL + "".join(found.odd), encoding="utf-8")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; whatever lives in it at the end is stopped."""
    yield tmp_path / "lab"
    if (tmp_path / "lab" / "lab.json").exists():
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


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
    kept.entries.append(row(story))
    assert story["proven"] is True


@pytest.mark.parametrize("fault", ODD)
def test_back_after_each_fault_and_all_the_way_again(fault: str, directory: Path, kept: Kept) -> None:
    """The state is found from the cluster itself."""
    found = roll_back_after(fault, directory)
    assert found.against == ()
    assert found.load.missing == found.load.duplicated == 0
    demo("cleanup", directory)
    kept.odd.append(f"| {fault} | {ODD[fault][1]} | PROVEN |\n")
