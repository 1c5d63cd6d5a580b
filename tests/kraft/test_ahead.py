"""Reading ahead changes nothing but when things are read."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from migrate.kraft.ahead import ahead


def test_the_same_items_come_in_the_same_order() -> None:
    """None, one and many."""
    for size in (0, 1, 7):
        assert list(ahead(iter(range(size)))) == list(range(size))


def test_what_is_raised_comes_behind_the_items_before_it() -> None:
    """As without."""

    def two() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("cut")

    reading = ahead(two())
    assert [next(reading), next(reading)] == [1, 2]
    with pytest.raises(ValueError, match="cut"):
        next(reading)


def test_the_next_one_is_read_while_one_is_worked_on() -> None:
    """And no further one."""
    asked = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for number, event in enumerate(asked):
            event.set()
            yield number

    reading = ahead(items())
    assert next(reading) == 0
    assert asked[1].wait(20)
    assert not asked[2].is_set()
    reading.close()
    assert not asked[2].is_set()


def test_who_stops_early_leaves_no_thread() -> None:
    """The thread ends with the iteration."""
    before = threading.active_count()
    reading = ahead(iter(range(10)))
    next(reading)
    reading.close()
    assert threading.active_count() == before
