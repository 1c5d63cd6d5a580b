"""The judgement: what is missing, what appears twice, what waited, and what may be claimed at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import LoadHistoryBroken
from migrate.lab.load_check import IdSet, Judgement, complaints, find_gaps
from migrate.lab.load_history import Entry, HistoryHead, Kind, LoadTopic
from migrate.lab.load_watch import FILE as ISRS
from migrate.lab.load_watch import IsrSample, Leaderless, RestartInterval, Sample, Short
from migrate.model.history import LoadSummary

TAG = b"01234567"
HEAD = HistoryHead(TAG, 1, (LoadTopic("safe", 2, 3), LoadTopic("single", 1, 1)))
FINE = LoadSummary(sent=10, acknowledged=10, read=10, missing=0, duplicated=0, gaps=(), leaderless=())


def sent(sequence: int, time: float = 0.0, topic: int = 0, partition: int = 0) -> Entry:
    """A record handed to the producer."""
    return Entry(Kind.SENT, topic, partition, sequence, time, -1)


def acked(sequence: int, time: float = 0.0, topic: int = 0, partition: int = 0) -> Entry:
    """Its acknowledgement."""
    return Entry(Kind.ACKED, topic, partition, sequence, time, sequence)


def judged(entries: Iterable[Entry], seen: Iterable[int], watch: Path, head: HistoryHead = HEAD) -> LoadSummary:
    """The summary of one epoch's history and the sequences that stand in the partitions."""
    judgement = Judgement()
    judgement.read_history(head, entries)
    for sequence in seen:
        judgement.saw(head.epoch, sequence)
    return judgement.summary(watch, ())


@pytest.fixture
def watch(tmp_path: Path) -> Path:
    """No samples."""
    return tmp_path / "watch.jsonl"


# -- records -----------------------------------------------------------------------------------------------------
def test_a_whole_run_has_nothing_against_it(watch: Path) -> None:
    """Everything acknowledged is there once."""
    summary = judged([sent(0), acked(0), sent(1), acked(1)], [1, 0], watch)
    assert summary == replace(FINE, sent=2, acknowledged=2, read=2)
    assert complaints(summary) == ()


def test_an_acknowledged_record_that_is_not_there_is_missing(watch: Path) -> None:
    """That is the loss nobody may see."""
    summary = judged([sent(0), acked(0), sent(1), acked(1)], [0], watch)
    assert summary.missing == 1
    assert complaints(summary) == ("1 acknowledged records are missing",)


def test_a_record_never_acknowledged_may_be_there_or_not(watch: Path) -> None:
    """Sent, refused or in progress when the load was killed: either end is right."""
    entries = [sent(0), acked(0), sent(1), sent(2), Entry(Kind.FAILED, 0, 0, 2, 0.0, -1)]
    for seen in ([0], [0, 1], [0, 2], [0, 1, 2]):
        summary = judged(entries, seen, watch)
        assert (summary.missing, summary.duplicated, summary.read) == (0, 0, len(seen))
        assert complaints(summary) == ()


def test_an_id_at_two_offsets_is_counted_once(watch: Path) -> None:
    """However often it stands there."""
    summary = judged([sent(0), acked(0)], [0, 0, 0], watch)
    assert (summary.duplicated, summary.read) == (1, 1)
    assert complaints(summary) == ("1 records are at two offsets",)


def test_an_id_never_sent_is_unexpected(watch: Path) -> None:
    """It is told, and grows no bitmap, whatever number it bears."""
    summary = judged([sent(0), acked(0)], [0, 2**60], watch)
    assert summary.unexpected == 1
    assert complaints(summary) == ("1 records were never sent",)


def test_no_claim_is_made_for_one_replica(watch: Path) -> None:
    """Its losses are counted apart and are no complaint."""
    summary = judged([sent(0), acked(0), sent(1, topic=1), acked(1, topic=1)], [0], watch)
    assert (summary.missing, summary.missing_single) == (0, 1)
    assert complaints(summary) == ()


def test_a_load_without_acknowledgements_proves_nothing(watch: Path) -> None:
    """An empty history never passes."""
    assert complaints(judged([sent(0)], [], watch)) == ("no record was acknowledged: nothing is proven",)
    assert complaints(Judgement().summary(watch, ()))


def test_epochs_are_told_apart(watch: Path) -> None:
    """The same sequence of two epochs is two records."""
    judgement = Judgement()
    for epoch in (1, 2):
        judgement.read_history(replace(HEAD, epoch=epoch), [sent(0), acked(0)])
    judgement.saw(1, 0)
    summary = judgement.summary(watch, ())
    assert (summary.acknowledged, summary.missing, summary.duplicated) == (2, 1, 0)


def test_histories_of_two_loads_are_not_mixed() -> None:
    """A file of another load in the folder would make everything in it look lost."""
    judgement = Judgement()
    judgement.read_history(HEAD, [])
    with pytest.raises(LoadHistoryBroken, match="another load"):
        judgement.read_history(replace(HEAD, tag=b"another!", epoch=2), [])


def test_a_topic_that_grew_is_read_whole() -> None:
    """The most partitions that any epoch saw."""
    judgement = Judgement()
    for epoch, count in ((1, 4), (2, 2)):
        judgement.read_history(HistoryHead(TAG, epoch, (LoadTopic("safe", count, 3),)), [])
    assert judgement.topics == {"safe": 4}


@given(st.data())
def test_the_judgement_equals_plain_sets(data: st.DataObject) -> None:
    """Whatever was sent, acknowledged and found."""
    ids = list(range(60))
    given_sent = data.draw(st.sets(st.sampled_from(ids), min_size=1))
    given_acked = data.draw(st.sets(st.sampled_from(sorted(given_sent))))
    seen = data.draw(st.lists(st.sampled_from(ids), max_size=100))
    entries = [sent(one) for one in sorted(given_sent)] + [acked(one) for one in sorted(given_acked)]
    summary = judged(entries, seen, Path("/nowhere"))

    known = [one for one in seen if one in given_sent]
    assert summary.sent == len(given_sent)
    assert summary.acknowledged == len(given_acked)
    assert summary.missing == len(given_acked - set(seen))
    assert summary.duplicated == sum(known.count(one) > 1 for one in set(known))
    assert summary.unexpected == len(seen) - len(known)


# -- gaps --------------------------------------------------------------------------------------------------------
def gaps(*entries: Entry) -> list[tuple[float, float, str]]:
    """The gaps of a history, longer than a second."""
    return list(find_gaps(HEAD, entries, 1.0))


def test_a_wait_for_an_acknowledgement_is_a_gap() -> None:
    """From the moment the first record waited."""
    assert gaps(sent(0, 5.0), acked(0, 8.0)) == [(5.0, 3.0, "safe-0")]


def test_a_steady_stream_has_none() -> None:
    """Late is late only beyond the usual."""
    assert gaps(sent(0, 0.0), acked(0, 0.9), sent(1, 1.0), acked(1, 2.0)) == []


def test_silence_without_records_is_no_gap() -> None:
    """Where nothing was sent nothing can be acknowledged."""
    assert gaps(sent(0, 0.0), acked(0, 0.1), sent(1, 60.0), acked(1, 60.1)) == []


def test_acknowledgements_between_cut_a_wait() -> None:
    """What counts is silence, not one slow record."""
    stream = [sent(number, number * 0.5) for number in range(4)]
    assert gaps(*stream, acked(0, 1.6), acked(1, 2.0), acked(2, 2.9), acked(3, 3.5)) == [(0.0, 1.6, "safe-0")]


def test_partitions_wait_by_themselves() -> None:
    """One partition's stream does not hide another's silence."""
    found = gaps(
        sent(0, 0.0), sent(1, 0.0, topic=1), acked(0, 0.1), sent(2, 2.0), acked(2, 2.1), acked(1, 4.0, topic=1)
    )
    assert found == [(0.0, 4.0, "single-0")]


def test_a_wait_that_never_ended_is_a_gap() -> None:
    """Records in flight when the load ended waited until then."""
    assert gaps(sent(0, 1.0), Entry(Kind.CLOSED, 0, 0, 0, 31.0, -1)) == [(1.0, 30.0, "safe-0")]


def test_a_refused_record_ends_its_own_wait_only() -> None:
    """It was not acknowledged: the silence goes on while another waits."""
    refused = Entry(Kind.FAILED, 0, 0, 0, 2.0, -1)
    assert gaps(sent(0, 0.0), sent(1, 0.0), refused, acked(1, 3.0)) == [(0.0, 3.0, "safe-0")]
    assert gaps(sent(0, 0.0), refused, sent(1, 9.0), acked(1, 9.1)) == []


# -- leaders -----------------------------------------------------------------------------------------------------
def test_only_unexplained_losses_of_leaders_are_complaints(watch: Path) -> None:
    """One replica and our own restarts are reasons; anything else ends the run."""
    samples = [
        Sample(0.0, 3),
        Sample(
            1.0, 3, (Leaderless("single-0", (1,), 1), Leaderless("safe-0", (1, 2), 1), Leaderless("safe-1", (2, 3), 2))
        ),
        Sample(2.0, 3),
        Sample(9.0, 3),
    ]
    watch.write_text("".join(sample.line() for sample in samples))
    judgement = Judgement()
    judgement.read_history(HEAD, [sent(0), acked(0)])
    judgement.saw(1, 0)
    summary = judgement.summary(watch, [RestartInterval(1, 0.5, 3.0)])

    assert summary.leaderless == (
        (1.0, 1.0, "safe-0", "restart of broker 1"),
        (1.0, 1.0, "safe-1", "unexplained"),
        (1.0, 1.0, "single-0", "RF 1"),
    )
    assert summary.blind == ((2.0, 7.0, "no samples: the load did not run"),)
    assert complaints(summary) == ("safe-1 had no leader for 1.00 s, for no known reason",)


def test_a_short_isr_is_told_with_its_reason_and_with_how_often_was_looked(watch: Path) -> None:
    """Beside the samples of leaders, from a file of its own; without it nobody has looked."""
    watch.write_text(Sample(0.0, 3).line())
    assert Judgement().summary(watch, []).judged == 0
    short = (Short("safe-0", (0, 1, 2), 1, 2), Short("pair-0", (0, 1), 1, 2))
    samples = [IsrSample(0.0, 3), IsrSample(1.0, 3, short), IsrSample(2.0, 3)]
    watch.with_name(ISRS).write_text("".join(sample.line() for sample in samples))
    summary = Judgement().summary(watch, [RestartInterval(1, 0.5, 3.0)])
    assert summary.judged == 3
    assert summary.short == (
        (1.0, 1.0, "pair-0", "needs every replica; restart of broker 1"),
        (1.0, 1.0, "safe-0", "unexplained"),
    )


IDS = st.sets(st.tuples(st.integers(1, 3), st.integers(0, 40_000)), max_size=200)


def _filled(ids: set[tuple[int, int]]) -> IdSet:
    filled = IdSet()
    for epoch, sequence in ids:
        assert filled.add(epoch, sequence)
    return filled


@given(IDS, IDS)
def test_it_equals_a_plain_set(left: set[tuple[int, int]], right: set[tuple[int, int]]) -> None:
    """Length, membership and difference agree with Python's set; the difference comes in order."""
    one, other = _filled(left), _filled(right)

    assert len(one) == len(left)
    assert all(key in one for key in left)
    assert not any(key in one for key in right - left)
    assert list(one.without(other)) == sorted(left - right)


@given(IDS)
def test_a_second_add_is_told_apart(ids: set[tuple[int, int]]) -> None:
    """That is how a record at two offsets is found."""
    filled = _filled(ids)
    assert not any(filled.add(epoch, sequence) for epoch, sequence in ids)
    assert len(filled) == len(ids)


def test_a_million_ids_take_a_bit_each() -> None:
    """An hour and a half of load fits into a fraction of a megabyte."""
    filled = IdSet()
    for sequence in range(1_000_000):
        filled.add(1, sequence)
    assert len(filled) == 1_000_000
    assert sum(map(len, filled._bits.values())) < 130_000
