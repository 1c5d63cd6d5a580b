"""`diff` ends with 2 for a difference that nothing excuses, and never with 0 where nothing was compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from tests.cli.commands import Ended, inventory_in, kraft_migrate
from tests.steps.looks import WRONG, whole, without
from tests.testing.kept import sources_of

EXCUSED = Difference("topic", "t", "f", DifferenceClass.EXPECTED, "a", "b", rule="KRAFT-DEFAULT")
ACCEPTED = Difference("topic", "t", "g", DifferenceClass.ACCEPTED, "a", None, rule="by name")
EQUAL = DiffReport(500, 3, {"topic": {"EQUAL": 6, "EXPECTED": 1}}, (EXCUSED, ACCEPTED), ("a blind spot",))
OTHER = replace(EQUAL, counts={**EQUAL.counts, "topic-config": {"DIFFERS": 1}}, differences=(WRONG, EXCUSED))

Diff = Callable[..., Ended]


@pytest.fixture
def diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diff:
    """`diff` of a copied cluster, ending in that report."""
    path = inventory_in(tmp_path)

    def run(report: DiffReport | Unknown, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.COPY)))
        monkeypatch.setattr("migrate.observe.analysis.with_diff", lambda _, world: replace(world, diff=report))
        return kraft_migrate("diff", "--inventory", path, *words)

    return run


def test_nothing_outside_the_rules_is_0(diff: Diff) -> None:
    """Counts by kind, what was not compared, and the sum."""
    answer = diff(EQUAL)
    assert answer.code == 0
    assert answer.err.startswith("Spark is being started"), "half a minute without a word looks like a hang"
    assert answer.out.splitlines() == [
        "compared at metadata offset 500 (dual write was 3 records behind)",
        "  topic              EQUAL 6  EXPECTED 1",
        "  not compared: a blind spot",
        "0 differences outside EXPECTED",
    ]


def test_a_difference_is_2_and_shown_with_both_values(diff: Diff) -> None:
    """Excused ones are not listed for a person."""
    answer = diff(OTHER)
    assert answer.code == 2
    assert "  DIFFERS topic-config orders retention.ms: 1 / 2" in answer.out.splitlines()
    assert "KRAFT-DEFAULT" not in answer.out
    assert answer.out.endswith("1 differences outside EXPECTED\n")


def test_json_has_every_difference_with_its_class_and_rule(diff: Diff) -> None:
    """Excused ones too."""
    answer = diff(OTHER, "--output", "json")
    assert answer.code == 2
    found = json.loads(answer.out)
    assert found["differences"][0] == {
        "kind": "topic-config",
        "key": "orders",
        "field": "retention.ms",
        "class": "DIFFERS",
        "zookeeper": "1",
        "kraft": "2",
        "rule": "",
    }
    assert (found["differences"][1]["class"], found["differences"][1]["rule"]) == ("EXPECTED", "KRAFT-DEFAULT")
    assert (found["offset"], found["lag"], found["unexcused"], found["schema"]) == (500, 3, 1, 1)


def test_what_was_not_compared_is_an_error_and_never_equal(diff: Diff) -> None:
    """With the reason."""
    answer = diff(Unknown("ZooKeeper is unknown: E-ZK-02"))
    assert (answer.code, answer.out) == (1, "")
    assert "E-VIEW-01: the two cannot be compared: ZooKeeper is unknown: E-ZK-02" in answer.err.splitlines()


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (Stage.CONTROLLERS, "they are equal by dual write only in MIGRATION; the metadata says PRE_MIGRATION"),
        (Stage.FINALIZE, "POST_MIGRATION"),
        (Stage.ASSESS, "the metadata is unknown"),
    ],
)
def test_outside_dual_write_there_is_nothing_to_compare(
    stage: Stage, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the copy KRaft is empty, after finalize ZooKeeper is old."""
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(stage)))
    answer = kraft_migrate("diff", "--inventory", inventory_in(tmp_path))
    assert answer.code == 1
    assert says in answer.err


def test_an_uncommitted_tail_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one directory says alone may never have been."""
    world = whole(Stage.COPY)
    assert not isinstance(world.kraft, Unknown)
    alone = replace(world, kraft=replace(world.kraft, high_watermark=Unknown("one directory alone")))
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(alone))
    answer = kraft_migrate("diff", "--inventory", inventory_in(tmp_path))
    assert answer.code == 1
    assert "tail is not proven" in answer.err
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(without("zookeeper")(world)))
    assert "zookeeper hidden" in kraft_migrate("diff", "--inventory", inventory_in(tmp_path)).err
