"""What the tool offers grows only with a decision: the counts of the newest one are the limit."""

from __future__ import annotations

from tests.features import BUDGETED, KEPT, budget, counts, features


def test_the_kept_list_is_what_the_tool_offers() -> None:
    """`python -m tests features --write` writes it."""
    assert KEPT.read_text(encoding="utf-8").splitlines() == features()


def test_no_kind_of_feature_has_more_than_the_newest_decision_allows() -> None:
    """Nor fewer: what was removed is not spent again without a decision."""
    assert counts(features()) == budget(BUDGETED.read_text(encoding="utf-8"))
