"""The measurement of the secured demo against the plain one: its order, its figures, and when there are none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bench.demo import Pass
from tests.bench.securing import Demo, as_markdown, by_stage, paired, ratio


def told(plain: float, secured: float) -> dict[str, Demo]:
    """A pair with those seconds, all of them in one stage."""
    return {
        kind: Demo(seconds, 1.0, 0.5, {"hybrid": seconds}) for kind, seconds in (("plain", plain), ("secured", secured))
    }


def test_each_goes_first_in_turn_and_their_folders_are_taken_away(tmp_path: Path) -> None:
    """Else the machine's warmth would count for the second one."""
    asked: list[str] = []

    def runner(words: Sequence[str]) -> Pass:
        asked.append("secured" if "--secured" in words else "plain")
        assert "--no-load" in words
        Path(words[words.index("--dir") + 1]).mkdir()
        return Pass(2.0 if "--secured" in words else 1.0, 0.5, 0, 0, "")

    found = paired(2, tmp_path, ("--no-load",), runner)
    assert asked == ["plain", "secured", "secured", "plain"]
    assert ratio(found) == 2.0
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_failed_gives_no_figure_and_leaves_no_cluster(tmp_path: Path) -> None:
    """What it said last is told, and the lab is stopped."""
    asked: list[str] = []

    def runner(words: Sequence[str]) -> Pass:
        asked.append(words[words.index("lab") + 1])
        return Pass(1.0, 0.5, 0 if "down" in words else 3, 0, "one\nblocked\n")

    with pytest.raises(RuntimeError, match="ended with 3: blocked"):
        paired(1, tmp_path, (), runner)
    assert asked == ["demo", "down"]


def test_the_ratio_is_the_median_of_the_pairs_and_is_held_against_the_promise() -> None:
    """One pair beside a busy neighbour does not decide."""
    pairs = [told(100, 120), told(100, 124), told(50, 200)]
    assert ratio(pairs) == pytest.approx(1.24)
    assert "1.24; promised <= 1.25: holds" in as_markdown(pairs)
    assert "DOES NOT HOLD" in as_markdown([told(100, 126)])
    stage, *seconds = by_stage(pairs)[0]
    assert stage == "hybrid"
    assert seconds == pytest.approx([250 / 3, 148])
