"""`diff` ends with 2 for a difference that nothing excuses, and never with 0 where nothing was compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.difference import Difference, DifferenceClass, DiffReport, IdleAcceptance, IdleReason
from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from tests.cli.commands import Ended, inventory_in, kraft_migrate
from tests.steps.looks import WRONG, whole, without
from tests.testing.kept import sources_of

EXCUSED = Difference("topic", "t", "f", DifferenceClass.EXPECTED, "a", "b", rule="KRAFT-DEFAULT")
ACCEPTED = Difference("topic", "t", "g", DifferenceClass.ACCEPTED, "a", None, rule="by name")
EQUAL = DiffReport(500, 3, {"topic": {"EQUAL": 6, "EXPECTED": 1}}, (EXCUSED, ACCEPTED), ("a blind spot",))
PLACED = replace(
    WRONG,
    zookeeper_where="/config/topics/orders, mzxid 7",
    kraft_where="image at metadata offset 500, offset 412",
)
IDLE = IdleAcceptance(
    AcceptedDifference("DIFFERS", "topic-config", "old", "retention.ms", "why", "CHG7", "2026-01-01"),
    IdleReason.EXPIRED,
)
OTHER = replace(EQUAL, counts={**EQUAL.counts, "topic-config": {"DIFFERS": 1}}, differences=(PLACED, EXCUSED))

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
    assert answer.err == "", "the line of progress is for a terminal"
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
    assert "  DIFFERS topic-config orders retention.ms: ZooKeeper 1, KRaft 2" in answer.out.splitlines()
    assert "      ZooKeeper: /config/topics/orders, mzxid 7" in answer.out.splitlines()
    assert "      KRaft:     image at metadata offset 500, offset 412" in answer.out.splitlines()
    assert "      likely: the znode was written past Kafka, or dual write of it failed" in answer.out.splitlines()
    assert "KRAFT-DEFAULT" not in answer.out
    assert answer.out.endswith("1 difference outside EXPECTED\n")


def test_differences_that_are_not_listed_are_counted(diff: Diff) -> None:
    """Of a list that was cut the number of its rows would be too small."""
    cut = replace(OTHER, counts={"topic-config": {"DIFFERS": 20_300, "EQUAL": 4}})
    assert diff(cut).out.endswith("20,300 differences outside EXPECTED\n")
    assert json.loads(diff(cut, "--output", "json").out)["unexcused"] == 20_300


def test_json_has_every_difference_with_its_class_and_rule(diff: Diff) -> None:
    """Excused ones too."""
    answer = diff(OTHER, "--output", "json")
    assert answer.code == 2
    found = json.loads(answer.out)
    assert found["differences"][0].pop("cause").startswith("the znode was written past Kafka")
    assert (
        found["differences"][0].pop("what_to_do").startswith("if the znode was written past Kafka and that is wanted")
    )
    assert found["differences"][0] == {
        "kind": "topic-config",
        "key": "orders",
        "field": "retention.ms",
        "class": "DIFFERS",
        "zookeeper": "1",
        "kraft": "2",
        "zookeeper_where": "/config/topics/orders, mzxid 7",
        "kraft_where": "image at metadata offset 500, offset 412",
        "rule": "",
    }
    assert (found["differences"][1]["class"], found["differences"][1]["rule"]) == ("EXPECTED", "KRAFT-DEFAULT")
    assert (found["offset"], found["lag"], found["unexcused"], found["schema"]) == (500, 3, 1, "kraft-migrate/diff/v1")


def test_what_was_not_compared_is_an_error_and_never_equal(diff: Diff) -> None:
    """With the reason."""
    answer = diff(Unknown("ZooKeeper is unknown: E-ZK-02"))
    assert (answer.code, answer.out) == (1, "")
    assert "E-VIEW-01: ZooKeeper and KRaft cannot be compared: ZooKeeper is unknown: E-ZK-02" in answer.err.splitlines()
    empty = diff(replace(EQUAL, counts={"partition": {}}))
    assert (empty.code, empty.out) == (1, "")
    assert "two empty views prove nothing" in empty.err


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (Stage.CONTROLLERS, "they are equal by dual write only in MIGRATION; the metadata says PRE_MIGRATION"),
        (Stage.FINALIZE, "the migration is finalized, and ZooKeeper is not written any more"),
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


def test_a_cause_that_holds_for_many_rows_is_told_once(diff: Diff) -> None:
    """Rows of one kind follow each other; at most forty are shown."""
    rows = tuple(replace(WRONG, field=f"f{number:02}") for number in range(45))
    answer = diff(replace(OTHER, differences=rows))
    assert answer.out.count("likely:") == 1
    assert answer.out.count("DIFFERS topic-config orders") == 40
    assert "  and 5 more: see --output json or --parquet FOLDER" in answer.out.splitlines()


def test_what_never_stood_still_is_2_and_no_difference(diff: Diff) -> None:
    """Nobody may take it for equal."""
    moving = replace(EQUAL, unsettled=(WRONG,), looks=6)
    answer = diff(moving)
    assert answer.code == 2
    assert "  unsettled: topic-config orders retention.ms changed in every one of 6 looks" in answer.out.splitlines()
    assert answer.out.endswith("0 differences outside EXPECTED\n")
    assert json.loads(diff(moving, "--output", "json").out)["unsettled"][0]["key"] == "orders"


def test_an_acceptance_without_effect_is_told(diff: Diff) -> None:
    """It changes no exit code: it is a finding of `assess` as well."""
    answer = diff(replace(EQUAL, idle=(IDLE,)))
    assert answer.code == 0
    line = "  acceptance CHG7 (DIFFERS topic-config old retention.ms) is expired since 2026-01-01"
    assert line in answer.out.splitlines()
    (idle,) = json.loads(diff(replace(EQUAL, idle=(IDLE,)), "--output", "json").out)["idle_acceptances"]
    assert (idle["ticket"], idle["why"]) == ("CHG7", "expired")


@pytest.mark.slow
def test_parquet_has_every_row_and_every_count_and_overwrites_nothing(diff: Diff, tmp_path: Path) -> None:
    """What is unsettled says so; a second time is refused."""
    import pyarrow.parquet as pq

    folder = tmp_path / "out"
    report = replace(OTHER, unsettled=(replace(WRONG, key="busy"),))
    assert diff(report, "--parquet", folder).code == 2
    rows = pq.read_table(folder / "differences.parquet").to_pylist()
    assert [(row["key"], row["class"], row["settled"]) for row in rows] == [
        ("orders", "DIFFERS", True),
        ("t", "EXPECTED", True),
        ("busy", "DIFFERS", False),
    ]
    assert rows[0]["zookeeper_where"] == "/config/topics/orders, mzxid 7"
    counts = pq.read_table(folder / "counts.parquet").to_pylist()
    assert {(row["kind"], row["class"], row["fields"]) for row in counts} >= {("topic", "EQUAL", 6)}
    again = diff(report, "--parquet", folder)
    assert again.code == 1
    assert "a file exists there already" in again.err
