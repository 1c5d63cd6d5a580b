"""Steps and actions that make the same change on several nodes, as one entry with the list of nodes (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from migrate.model.plan import PlannedStep
from migrate.model.step import Action

T = TypeVar("T")
Number = tuple[str, str]  # where two texts differ: the one's number, the other's
_NUMBERS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class EqualSteps:
    """A step, and those right behind it that do the same; `but` are the keys whose values differ between them.

    `like` is the id of a step before them that is the same, but for the values of `first_but`; "" where there is none.
    """

    first: PlannedStep
    others: tuple[PlannedStep, ...]
    but: tuple[str, ...]
    like: str = ""
    first_but: tuple[str, ...] = ()

    @property
    def ids(self) -> str:
        """The ids of the others: `kraft-mode/{1-29}`."""
        return spread([step.id for step in self.others])


def equal_steps(steps: Iterable[PlannedStep]) -> list[EqualSteps]:
    """Fold neighbours that differ in one number and in the values of changed keys; the order stays."""
    found: list[EqualSteps] = []
    for first, *others in _neighbours(steps, _same_step):
        but = _keys(first, others)
        earlier = next((entry.first for entry in found if _same_step(entry.first, first)), None)
        like, first_but = (earlier.id, _keys(earlier, [first])) if earlier else ("", ())
        found.append(EqualSteps(first, tuple(others), but, like, first_but))
    return found


def equal_actions(found: Iterable[Action]) -> list[list[Action]]:
    """Fold neighbouring actions that differ in one number."""
    return _neighbours(found, lambda first, other: _same_action(first, other, _number(_said(first), _said(other))))


def spread(texts: Sequence[str]) -> str:
    """`/data/b{0-2}/d1`: texts that differ in one number, with all of its values in their order."""
    split = [_NUMBERS.split(text) for text in texts]
    if len(set(map(len, split))) > 1:
        return "; ".join(texts)
    columns = [list(dict.fromkeys(pieces)) for pieces in zip(*split, strict=True)]
    if any(len(pieces) > 1 and not all(piece.isdecimal() for piece in pieces) for pieces in columns):
        return "; ".join(texts)
    return "".join(pieces[0] if len(pieces) == 1 else f"{{{_in_order(list(map(int, pieces)))}}}" for pieces in columns)


def changed_lines(diff: Sequence[str]) -> list[str]:
    """What a difference adds and removes, without its file names, places and unchanged lines."""
    return [line for line in diff if line[:1] in ("+", "-") and not line.startswith(("+++ ", "--- "))]


def _in_order(numbers: Sequence[int]) -> str:
    """`0-2, 7, 5`: the numbers as they come; a row of ascending neighbours as a range."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _neighbours(entries: Iterable[T], same: Callable[[T, T], bool]) -> list[list[T]]:
    found: list[list[T]] = []
    for entry in entries:
        if found and same(found[-1][0], entry):
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def _same_step(first: PlannedStep, other: PlannedStep) -> bool:
    number = _number(first.id, other.id)
    return (
        number is not None
        and first.kind == other.kind
        and len(first.actions) == len(other.actions)
        and all(
            _same_text(ours, theirs, number)
            for ours, theirs in ((first.title, other.title), (first.proof, other.proof), (first.undo, other.undo))
        )
        and all(_same_action(ours, theirs, number) for ours, theirs in zip(first.actions, other.actions, strict=True))
    )


def _same_action(first: Action, other: Action, number: Number | None) -> bool:
    return (
        number is not None
        and first.symbol == other.symbol
        and first.znode == other.znode
        and _same_text(first.where, other.where, number)
        and _same_text(first.what, other.what, number)
        and [_key(line) for line in changed_lines(first.diff)] == [_key(line) for line in changed_lines(other.diff)]
    )


def differing_keys(first: Action, other: Action) -> list[str]:
    """The keys whose changed lines differ between two actions that change the same keys."""
    pairs = zip(changed_lines(first.diff), changed_lines(other.diff), strict=True)
    return [_key(ours)[1:] for ours, theirs in pairs if ours != theirs]


def _keys(first: PlannedStep, others: Iterable[PlannedStep]) -> tuple[str, ...]:
    pairs = [pair for other in others for pair in zip(first.actions, other.actions, strict=True)]
    return tuple(sorted({key for ours, theirs in pairs for key in differing_keys(ours, theirs)}))


def _said(action: Action) -> str:
    return f"{action.where}: {action.what}"


def _key(line: str) -> str:
    return line.partition("=")[0]


def _number(one: str, other: str) -> Number | None:
    """The number by which the texts differ; None where they are equal, or differ in something else."""
    ours, theirs = _NUMBERS.split(one), _NUMBERS.split(other)
    if len(ours) != len(theirs):
        return None
    found = {pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]}
    if len(found) != 1:
        return None
    (pair,) = found
    return pair if pair[0].isdecimal() and pair[1].isdecimal() else None


def _same_text(one: str, other: str, number: Number) -> bool:
    return one == other or _number(one, other) == number
