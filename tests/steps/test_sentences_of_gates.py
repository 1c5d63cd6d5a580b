"""What a plan says that a step requires is what its `check` asks, and nothing else is."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from migrate.model.outcome import AlreadyDone, Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.world import NOT_ASKED, World
from migrate.steps.gates import Gate, ask_all, ask_until_closed
from migrate.steps.registry import KINDS, rebuild
from tests.steps.looks import whole

WORLD = whole(Stage.HYBRID)
VALUES = {
    "controller": "3000",
    "of": "3",
    "after": "copy",
    "policy": "observe",
    "directories": "/d8,/d9",
    "discarded": "",
}
UNGATED = {
    *("discover", "assess", "canary-in-migration-mode", "copy", "hybrid", "canary-in-kraft-mode", "soak"),
    *("prove-final", "prove-zookeeper-mode", "prove-directories"),  # they look
    *("back-up-zookeeper", "keep-zookeeper", "back-up-broker", "keep-directory-files", "render-controller"),
    *("keep-protocol-files", "prove-protocol"),
}
GATED = sorted(KINDS.keys() - UNGATED)


def made(kind: str) -> Any:
    """A step of that kind with plausible parameters."""
    return rebuild(kind, {entry.name: VALUES.get(entry.name, "1") for entry in fields(KINDS[kind])})


@pytest.mark.parametrize("kind", GATED)
def test_a_step_that_acts_on_processes_or_znodes_says_what_it_requires(kind: str) -> None:
    """A sentence for each gate, none twice."""
    said = made(kind).requires
    assert said
    assert all(said)
    assert len(set(said)) == len(said)
    assert all(sentence == sentence.strip().rstrip(".") for sentence in said)


def test_steps_without_a_gate_look_or_keep_files() -> None:
    """A kind that is new is in one of the two lists."""
    assert {kind for kind in KINDS if not made(kind).requires} == UNGATED


@pytest.mark.parametrize("kind", GATED)
def test_check_asks_the_gates_that_are_named(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """All open: it may act, or has nothing to do.  One shut: it may not, and says that one's reason."""
    step = made(kind)
    monkeypatch.setattr("migrate.steps.rollback.copy_again._still_stuck", lambda _: Ready())
    opened = Gate("it is open", lambda _: Ready())
    monkeypatch.setattr(type(step), "own_gates", lambda _: (opened,))
    assert isinstance(step.check(WORLD), Ready | AlreadyDone)
    monkeypatch.setattr(type(step), "own_gates", lambda _: (opened, Gate("it is shut", lambda _: Refused("shut here"))))
    found = step.check(WORLD)
    assert isinstance(found, Refused)
    assert found.reason.startswith("shut here")


def test_every_gate_is_asked_and_one_that_was_not_asked_for_comes_last() -> None:
    """Or none behind the first that is shut."""
    asked: list[int] = []

    def gate(number: int, answer: Any) -> Gate:
        def holds(_: World) -> Any:
            asked.append(number)
            return answer

        return Gate(str(number), holds)

    row = (gate(1, Ready()), gate(2, NOT_ASKED), gate(3, Refused("no")), gate(4, Unknown("dark")))
    assert ask_all(row, WORLD) == Refused("no")
    assert asked == [1, 2, 3, 4]
    asked.clear()
    assert ask_until_closed(row, WORLD) == NOT_ASKED
    assert asked == [1, 2]
    assert ask_all((), WORLD) == ask_until_closed((), WORLD) == Ready()
