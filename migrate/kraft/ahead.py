"""The next batch is read and summed while the one before is decoded: a kernel runs without Python's lock."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """The same items, in order, each asked for in another thread while the one before is worked on.

    So one more is in memory.  What `items` raises is raised here, behind the items that came before it.
    """
    end = object()
    with ThreadPoolExecutor(1, "ahead") as pool:
        asked = pool.submit(next, items, end)
        while (found := asked.result()) is not end:
            asked = pool.submit(next, items, end)
            yield found  # type: ignore[misc]  # the end is not yielded
