"""The benchmark of the engine counts what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.model.history import Event
from tests.bench.engine import appended, own_share


def events(*entries: tuple[float, str]) -> list[Event]:
    """Events at those times."""
    return [Event(number, time, name, {}) for number, (time, name) in enumerate(entries)]


def test_waits_effects_and_comparisons_are_not_the_engines_own() -> None:
    """Nor is the time between two processes."""
    found = own_share(
        events(
            (0.0, "run"),
            (1.0, "session"),  # nobody ran before it
            (1.5, "stage"),  # 0.5 own
            (2.0, "intend"),  # 0.5 own
            (2.1, "effect"),  # 0.1 own
            (9.1, "effected"),  # 7 within an effect
            (9.3, "waiting"),  # the look that found it waiting
            (19.3, "waiting"),  # 10 of waiting
            (20.3, "ledger"),  # the last turn of it
            (20.4, "conclude"),  # 0.1 own
            (99.0, "session"),
        )
    )
    assert found == pytest.approx((1.2, 19.4))


def test_a_line_is_measured_on_a_real_file(tmp_path: Path) -> None:
    """Three hundred of them."""
    assert "ms" in appended(tmp_path).value
