"""The judgement: what is missing, what appears twice, what waited, and what may be claimed at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import LoadHistoryBroken
from migrate.lab.load import ACKED, FAILED, printed
from migrate.lab.load_check import Judgement, complaints, summary_of
from migrate.lab.load_watch import FILE as ISRS
from migrate.lab.load_watch import IsrSample, Leaderless, RestartInterval, Sample, Short
from migrate.model.history import LoadSummary

FINE = LoadSummary(sent=10, acknowledged=10, read=10, missing=0, duplicated=0, gaps=(), leaderless=())


def acked(number: int, time: float = 0.0, partition: int = 0, start: int = 1) -> dict[str, Any]:
    """A record's acknowledgement, as the producer prints it."""
    value = f"{start}.{number}"
    return {"name": ACKED, "value": value, "partition": partition, "offset": number, "timestamp": int(time * 1000)}


def failed(number: int, time: float = 0.0) -> dict[str, Any]:
    """A record that was given up."""
    return {"name": FAILED, "value": f"1.{number}", "message": "gone", "timestamp": int(time * 1000)}


def ended(time: float) -> dict[str, Any]:
    """The producer's last word."""
    return {"name": "shutdown_complete", "timestamp": int(time * 1000)}


def judge(entries: Iterable[dict[str, Any]], seen: Iterable[int], *, claimed: bool = True) -> Judgement:
    """One start's history, and the numbers that stand in the partitions."""
    judgement = Judgement("safe" if claimed else "single", claimed=claimed)
    judgement.read_history(1, entries)
    for number in seen:
        judgement.saw(f"1.{number}")
    return judgement


def judged(
    *topics: Judgement, folder: Path = Path("/nowhere"), restarts: Sequence[RestartInterval] = ()
) -> LoadSummary:
    """Their summary."""
    return summary_of(topics, folder, restarts)


# -- records -----------------------------------------------------------------------------------------------------
def test_a_whole_run_has_nothing_against_it() -> None:
    """Everything acknowledged is there once."""
    summary = judged(judge([acked(0), acked(1)], [1, 0]))
    assert summary == replace(FINE, sent=2, acknowledged=2, read=2)
    assert complaints(summary) == ()


def test_an_acknowledged_record_that_is_not_there_is_missing() -> None:
    """That is the loss nobody may see."""
    summary = judged(judge([acked(0), acked(1)], [0]))
    assert summary.missing == 1
    assert complaints(summary) == ("1 acknowledged records are missing",)


def test_a_record_never_acknowledged_may_be_there_or_not() -> None:
    """Given up, or in progress when the load was killed: either end is right."""
    for seen in ([0], [0, 1], [0, 2], [0, 1, 2]):
        summary = judged(judge([acked(0), failed(2)], seen))
        assert (summary.missing, summary.duplicated, summary.read) == (0, 0, len(seen))
        assert complaints(summary) == ()


def test_a_value_at_two_offsets_is_counted_once() -> None:
    """However often it stands there."""
    summary = judged(judge([acked(0)], [0, 0, 0]))
    assert (summary.duplicated, summary.read) == (1, 1)
    assert complaints(summary) == ("1 records are at two offsets",)


def test_a_value_of_a_start_that_never_was_is_unexpected() -> None:
    """Nobody sent it."""
    judgement = judge([acked(0)], [0])
    judgement.saw("2.0")
    assert complaints(judged(judgement)) == ("1 records were never sent",)


@pytest.mark.parametrize("value", ["1", "", "x.1", "1.0.0", "seeded\u2028", "1." + "9" * 40])
def test_records_of_others_are_passed_over(value: str) -> None:
    """The seed's are in the topics of the load, too."""
    judgement = judge([acked(0)], [0])
    judgement.saw(value)
    assert judged(judgement) == replace(FINE, sent=1, acknowledged=1, read=1)


def test_no_claim_is_made_for_one_replica() -> None:
    """Its losses are counted apart and are no complaint."""
    summary = judged(judge([acked(0)], [0]), judge([acked(1)], [], claimed=False))
    assert (summary.missing, summary.missing_single) == (0, 1)
    assert complaints(summary) == ()


def test_a_load_without_acknowledgements_proves_nothing() -> None:
    """An empty history never passes."""
    nothing = ("no record was acknowledged: nothing is proven",)
    assert complaints(judged(judge([failed(0)], []))) == nothing
    assert complaints(judged()) == nothing


def test_starts_are_told_apart() -> None:
    """The same number of two starts is two records."""
    judgement = Judgement("safe", claimed=True)
    for start in (1, 2):
        judgement.read_history(start, [acked(0, start=start)])
    judgement.saw("1.0")
    summary = judged(judgement)
    assert (summary.acknowledged, summary.missing, summary.duplicated) == (2, 1, 0)


@pytest.mark.slow
@given(st.data())
def test_the_judgement_equals_plain_sets(data: st.DataObject) -> None:
    """Whatever was acknowledged and found."""
    ids = list(range(60))
    given_acked = data.draw(st.sets(st.sampled_from(ids)))
    seen = data.draw(st.lists(st.sampled_from(ids), max_size=100))
    summary = judged(judge([acked(one) for one in sorted(given_acked)], seen))
    assert summary.sent == len(given_acked | set(seen))
    assert summary.acknowledged == len(given_acked)
    assert summary.missing == len(given_acked - set(seen))
    assert summary.duplicated == sum(seen.count(one) > 1 for one in set(seen))
    assert summary.unexpected == 0


def test_what_a_kill_tore_is_left_out_and_other_damage_is_named(tmp_path: Path) -> None:
    """The tool writes whole lines: another one was not written by it."""
    path = tmp_path / "producer-safe-0001.jsonl"
    path.write_text('{"name": "a"}\n{"name": "b"}\n{"na')
    assert [entry["name"] for entry in printed(path)] == ["a", "b"]
    path.write_text('{"name": "a"}\n[1]\n')
    with pytest.raises(LoadHistoryBroken, match="line 2"):
        list(printed(path))


# -- gaps --------------------------------------------------------------------------------------------------------
def test_silence_of_a_partition_is_a_gap() -> None:
    """From its last acknowledgement to the next; a steady stream has none."""
    entries = [acked(0, 5.0), acked(1, 5.9), acked(2, 8.9), acked(3, 9.0)]
    assert judge(entries, []).gaps == [(5.9, 3.0, "safe-0")]


def test_partitions_are_silent_by_themselves() -> None:
    """One partition's stream does not hide another's silence, nor its end."""
    entries = [acked(0, 1.0, 1)] + [acked(number, 1.0 + number / 2) for number in range(8)] + [ended(5.0)]
    assert judge(entries, []).gaps == [(1.0, 4.0, "safe-1")]


# -- leaders -----------------------------------------------------------------------------------------------------
def test_only_unexplained_losses_of_leaders_are_complaints(tmp_path: Path) -> None:
    """One replica and our own restarts are reasons; anything else ends the run."""
    samples = [
        Sample(0.0, 3),
        Sample(
            1.0, 3, (Leaderless("single-0", (1,), 1), Leaderless("safe-0", (1, 2), 1), Leaderless("safe-1", (2, 3), 2))
        ),
        Sample(2.0, 3),
        Sample(9.0, 3),
    ]
    (tmp_path / "watch.jsonl").write_text("".join(sample.line() for sample in samples))
    summary = judged(judge([acked(0)], [0]), folder=tmp_path, restarts=[RestartInterval(1, 0.5, 3.0)])
    assert summary.leaderless == (
        (1.0, 1.0, "safe-0", "restart of broker 1"),
        (1.0, 1.0, "safe-1", "unexplained"),
        (1.0, 1.0, "single-0", "RF 1"),
    )
    assert summary.blind == ((2.0, 7.0, "no samples: the load did not run"),)
    assert complaints(summary) == ("safe-1 had no leader for 1.00 s, for no known reason",)


def test_a_short_isr_is_told_with_its_reason_and_with_how_often_was_looked(tmp_path: Path) -> None:
    """Beside the samples of leaders, from a file of its own; without it nobody has looked."""
    (tmp_path / "watch.jsonl").write_text(Sample(0.0, 3).line())
    assert judged(folder=tmp_path).judged == 0
    short = (Short("safe-0", (0, 1, 2), 1, 2), Short("pair-0", (0, 1), 1, 2))
    samples = [IsrSample(0.0, 3), IsrSample(1.0, 3, short), IsrSample(2.0, 3)]
    (tmp_path / ISRS).write_text("".join(sample.line() for sample in samples))
    summary = judged(folder=tmp_path, restarts=[RestartInterval(1, 0.5, 3.0)])
    assert summary.judged == 3
    assert summary.short == (
        (1.0, 1.0, "pair-0", "needs every replica; restart of broker 1"),
        (1.0, 1.0, "safe-0", "unexplained"),
    )
