"""Sets of ids as bitmaps behave as sets, and stay small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrate.lab.load_ids import IdSet

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
