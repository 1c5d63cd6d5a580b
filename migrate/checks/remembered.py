"""What several checks of one look ask for is found out once.

    with remembering():
        ...                # each `remembered` function answers once for the same objects

Objects are the same by identity: views are frozen, and a look has one of each.  Nothing outlives the block, and outside
of one every call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Key = tuple[Any, ...]
_ANSWERS: Final[ContextVar[dict[Key, tuple[tuple[Any, ...], Any]] | None]] = ContextVar("answers", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Answers are kept while the block runs, each with its arguments, so that no other object gets their identity."""
    token = _ANSWERS.set({})
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, asked once a block for the same arguments; its answer is shared, so nobody may change it."""

    @wraps(function)
    def asked(*args: P.args, **words: P.kwargs) -> T:
        answers = _ANSWERS.get()
        if answers is None or words:
            return function(*args, **words)
        key = (function, *map(id, args))
        if key not in answers:
            answers[key] = (args, function(*args, **words))
        answer: T = answers[key][1]
        return answer

    return asked
