"""Words of every report: text that came from a cluster made safe to show, times, durations, plurals."""

from __future__ import annotations

import unicodedata
from typing import Final

from migrate.model.words import duration, moment, plural

__all__ = ["clip", "clock", "duration", "hanging", "moment", "plural", "printable", "size"]

# Cc control, Cf format (bidirectional overrides among them), Zl and Zp line separators, Cs lone surrogates
_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})


def printable(text: str) -> str:
    r"""The text with every character that a terminal or browser would act on spelled out: `\x1b`, `\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def hanging(text: str, indent: str) -> str:
    """The text made printable, its own later lines under an indent: none of them can pass for a line of ours."""
    first, *more = text.split("\n")
    return "\n".join([printable(first), *(indent + printable(line.strip()) for line in more)])


def _spelled(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clip(text: str, width: int) -> str:
    """The text, cut to `width` characters with an ellipsis."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def size(count: int) -> str:
    """Bytes in powers of 1024: `931,979 B` is `910.1 KiB`."""
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):  # noqa: B007 - the unit is used after the loop
        if amount < 1024:
            break
        amount /= 1024
    else:
        unit = "PiB"
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def clock(seconds: float) -> str:
    """Only the time of day in UTC: `21:04:05`."""
    return moment(seconds)[11:19]
