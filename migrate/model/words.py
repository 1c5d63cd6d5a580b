"""How numbers and states are said in messages (pure)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping


def plural(number: int, one: str, many: str = "") -> str:
    """`1 file`, `3 files`; thousands are set apart."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def counted(counts: Mapping[str, int]) -> str:
    """`361 MIGRATING, 3 VERIFIED`; `none` for nothing."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items()) or "none"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`, `6 d 3 h`: two units at most, no zero behind another."""
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s".removesuffix(" 00 s")
    hours, minutes = divmod(whole // 60, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def estimate(seconds: float) -> str:
    """The duration in tens of seconds below two minutes, else in minutes: more digits of it are not known."""
    unit = 10 if seconds < 120 else 60
    return duration(max(unit, round(seconds / unit) * unit)) if seconds > 0 else duration(0)


def span(low: float, high: float) -> str:
    """`18 min to 45 min`; once where both round to the same."""
    first, last = estimate(low), estimate(high)
    return first if first == last else f"{first} to {last}"


def moment(seconds: float) -> str:
    """A time since the epoch as UTC: `2025-03-01 21:04:05 UTC`; the number itself where no calendar has it."""
    try:
        return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s since 1970"


def registered_as(*, migrating: bool, fenced: bool) -> str:
    """A broker's registration: `registered in migration mode, fenced`."""
    mode = "migration" if migrating else "KRaft"
    return f"registered in {mode} mode, {'fenced' if fenced else 'unfenced'}"


def as_utf8(text: str) -> str:
    """With what is no UTF-8 spelled out, such as a byte in a host's path: Arrow takes nothing else (pure)."""
    return text.encode("utf-8", "backslashreplace").decode()
