"""Stages have names, an order, and one point of no return."""

from __future__ import annotations

import pytest

from migrate.model.stage import MIGRATION, Stage


def test_stages_are_named_as_on_the_command_line_and_back() -> None:
    """Eleven of a migration, in order; two behind them have plans of their own."""
    labels = [stage.label for stage in Stage]
    assert labels[4:8] == ["migration-mode", "copy", "hybrid", "kraft-mode"]
    assert [Stage.from_label(label) for label in labels] == list(range(13))
    assert [stage.label for stage in Stage if stage not in MIGRATION] == ["directories", "protocol"]
    assert len(MIGRATION) == 11
    with pytest.raises(KeyError):
        Stage.from_label("rollback")


def test_the_rollback_ends_with_finalize() -> None:
    """Cleanup has none either."""
    assert [stage.label for stage in Stage if not stage.reversible] == ["finalize", "cleanup"]
