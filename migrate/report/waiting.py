"""Explanations of a wait as `status` shows them: plain values for machines, lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from migrate.model.outcome import Unknown
from migrate.model.waiting import Explanation

WIDTH: Final = 118
INDENT: Final = " " * 9


def as_values(found: Iterable[Explanation]) -> list[dict[str, Any]]:
    """A row each; `cause` is null where it cannot be told, and `unknown` says why."""
    return [
        {
            "code": entry.code,
            "waits_for": entry.waits_for,
            "driver": entry.driver,
            "nodes": list(entry.nodes),
            "owner": entry.owner,
            "cause": None if isinstance(entry.cause, Unknown) else entry.cause,
            "unknown": entry.cause.reason if isinstance(entry.cause, Unknown) else None,
            "evidence": list(entry.evidence),
            "next": entry.next_step,
            "by_itself": entry.by_itself,
        }
        for entry in found
    ]


def as_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The same rows for a person: what is waited for, why, what shows it, what to do."""
    for row in rows:
        yield f"waits    {row['code']} for {row['waits_for']}"
        why = f"cannot tell why, because {row['unknown']}" if row["cause"] is None else f"because {row['cause']}"
        yield from _wrapped(why)
        for line in row["evidence"]:
            yield from _wrapped(f"seen: {line}")
        yield from _wrapped(f"owner: {row['owner']}")
        yield from _wrapped(f"next: {row['next']}")
        yield from _wrapped(f"by itself: {row['by_itself']}")


def _wrapped(text: str) -> list[str]:
    # never inside a word: paths, addresses and JSON are there to be copied
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
