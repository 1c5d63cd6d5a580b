"""Markdown whose words cannot become markup: text, code spans, code blocks, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from migrate.report.wording import printable

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&])|(?<=[a-zA-Z])(?=:/)|(?<=www)(?=\.)")


def words(text: str) -> str:
    """Text as it stands: characters with a meaning are escaped, addresses are no links, one line."""
    return _SPECIAL.sub(lambda found: "\\" + (found[1] or ""), printable(text))


def code(text: str) -> str:
    """A code span, also within a table; empty text stays empty."""
    safe = printable(text)
    if not safe:
        return ""
    fence = "`" * (_longest_run(safe) + 1)
    pad = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{pad}{safe.replace('|', chr(92) + '|')}{pad}{fence}"


def block(lines: Iterable[str], language: str = "") -> list[str]:
    """A fenced code block that its own lines cannot end."""
    safe = [printable(line) for line in lines]
    fence = "`" * max(3, max(map(_longest_run, safe), default=0) + 1)
    return [fence + language, *safe, fence]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table.  Cells are markup already (`words` or `code`); a title that ends in `>` is set to the right."""
    names = [name.removesuffix(">") for name in head]
    rule = ["---:" if name.endswith(">") else "---" for name in head]
    return [f"| {' | '.join(cells)} |" for cells in (names, rule, *rows)]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
