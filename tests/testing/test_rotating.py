"""A rotation gives one part a commit, each part in time, and what the environment asks for."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.testing import rotating
from tests.testing.rotating import VARIABLE, asked, commit, picked, rotated, rotation

PARTS = ("port", "dead-id", "topic-id", "flag")


@pytest.fixture(autouse=True)
def no_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the suite with a request does not change what these tests see; what they pick is not reported."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(rotating, "PICKED", [])


def test_a_commit_always_runs_the_same_part_and_its_name_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs of a commit can be compared, and the output says what they ran."""
    first = rotation("stuck", PARTS)
    assert (rotation("stuck", PARTS), rotated("stuck", PARTS)) == (first, (first,))
    assert capsys.readouterr().out.splitlines() == [f"rotation stuck: {first} of port, dead-id, topic-id, flag"] * 3
    assert [f"rotation stuck: {first} of port, dead-id, topic-id, flag"] == rotating.PICKED


def test_in_a_hundred_commits_every_part_has_its_turn() -> None:
    """No part is left out, and none takes most of the turns."""
    turns = Counter(picked("stuck", PARTS, f"{number:040x}") for number in range(100))
    assert set(turns) == set(PARTS)
    assert max(turns.values()) < 50


def test_two_rotations_do_not_move_in_step() -> None:
    """A part of one rotation meets every part of another in time."""
    commits = [f"{number:040x}" for number in range(200)]
    pairs = {(picked("stuck", PARTS, each), picked("kill", PARTS, each)) for each in commits}
    assert len(pairs) == len(PARTS) ** 2


def test_dear_rotations_take_turns_and_each_has_its_own() -> None:
    """Half of them for a commit; in fifty commits each has been on, and no two always go together."""
    seats = [rotating.seated(f"{number:040x}") for number in range(50)]
    assert {len(found) for found in seats} == {rotating.SEATS}
    assert frozenset().union(*seats) == set(rotating.TURNS)
    assert len(set(seats)) > 20
    assert rotating.seated("a" * 40) == rotating.seated("a" * 40)


def test_whoever_asks_for_a_part_gets_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a rotation that takes no turns cannot be asked for one."""
    monkeypatch.setattr(rotating, "commit", lambda: "b" * 40)
    assert sum(map(rotating.has_turn, rotating.TURNS)) == rotating.SEATS
    monkeypatch.setenv(VARIABLE, "all")
    assert all(map(rotating.has_turn, rotating.TURNS))
    with pytest.raises(ValueError, match="placement"):
        rotating.has_turn("placement")


def test_without_git_the_first_part_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked archive has no commit, and still runs something that is known."""
    monkeypatch.setattr(rotating, "commit", lambda: None)
    assert (rotation("stuck", PARTS), rotated("stuck", PARTS)) == ("port", ("port",))


def test_a_missing_git_command_is_no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run in images without git as well."""
    monkeypatch.setenv("PATH", "")
    assert commit() is None


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        ("all", PARTS),
        ("stuck=all", PARTS),
        ("flag", ("flag",)),
        ("stuck=dead-id", ("dead-id",)),
        (" flag , port ", ("port", "flag")),
        ("kill=flag", ()),
        ("kill=all", ()),
        ("something-else", ()),
        ("", ()),
    ],
)
def test_the_environment_asks_for_parts_by_name(wanted: str, parts: tuple[str, ...]) -> None:
    """In the order of the rotation; a request for another rotation says nothing of this one."""
    assert asked("stuck", PARTS, wanted) == parts


def test_a_request_overrides_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of one part and of several."""
    for part in PARTS:
        monkeypatch.setenv(VARIABLE, part)
        assert (rotation("stuck", PARTS), rotated("stuck", PARTS)) == (part, (part,))
    monkeypatch.setenv(VARIABLE, "all")
    assert rotated("stuck", PARTS) == PARTS
    assert rotation("stuck", PARTS) == picked("stuck", PARTS, commit())


def test_a_rotation_of_nothing_is_refused() -> None:
    """A test that runs nothing must not pass."""
    for pick in (rotation, rotated):
        with pytest.raises(ValueError, match="nothing to choose from"):
            pick("stuck", ())
