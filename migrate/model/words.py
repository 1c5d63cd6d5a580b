"""How numbers and states are said in messages (pure)."""

from __future__ import annotations

from collections.abc import Mapping


def plural(number: int, one: str, many: str = "") -> str:
    """`1 file`, `3 files`; thousands are set apart."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def counted(counts: Mapping[str, int]) -> str:
    """`361 MIGRATING, 3 VERIFIED`; `none` for nothing."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items()) or "none"


def lasting(seconds: float) -> str:
    """`3 s`, `12 min 30 s`, `2 h`, `7 d 3 h`: the two greatest parts, none of them naught."""
    left, parts = round(seconds), []
    for name, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def registered_as(*, migrating: bool, fenced: bool) -> str:
    """A broker's registration: `registered in migration mode, fenced`."""
    mode = "migration" if migrating else "KRaft"
    return f"registered in {mode} mode, {'fenced' if fenced else 'unfenced'}"
