"""No command, option, code, key, event or claim is lost unnoticed."""

from __future__ import annotations

from tests.features import KEPT, features


def test_no_feature_of_the_kept_list_is_lost() -> None:
    """`python -m tests features` names each difference; `--write` accepts them."""
    lost = {*KEPT.read_text(encoding="utf-8").splitlines()} - {*features()}
    assert lost == set()
