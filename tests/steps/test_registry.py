"""A saved plan becomes the same steps again, or is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.errors import PlanUnreadable
from migrate.model.config_keys import QuorumKind
from migrate.model.stage import Stage, ZkMigrationState
from migrate.plan.build import steps_of
from migrate.steps.base import BaseStep
from migrate.steps.registry import KINDS, rebuild
from migrate.steps.rollback.cleanup import ProveZookeeperMode
from tests.steps.looks import whole
from tests.testing import worlds

EARLY = worlds.with_kraft(whole(Stage.COPY), migration_state=ZkMigrationState.POST_MIGRATION)  # finalized by accident
ASKING = replace(worlds.playbook(), canary_soak=60.0, remove_copies=True)
UNITS = replace(whole(Stage.ASSESS), inventory=replace(worlds.inventory(), executor="ssh"))
VOTERS = replace(UNITS, inventory=replace(UNITS.inventory, quorum=QuorumKind.DYNAMIC))
ALL = [step for stage in Stage for step in steps_of(stage, UNITS, ASKING)]


@pytest.mark.parametrize("step", ALL, ids=lambda step: step.id)
def test_a_step_is_rebuilt_from_its_kind_and_parameters(step: object) -> None:
    """Numbers, texts and seconds, all of them kept as text."""
    params = step.params()  # type: ignore[attr-defined]
    assert all(isinstance(value, str) for value in params.values())
    assert rebuild(step.kind, params) == step  # type: ignore[attr-defined]


def test_every_kind_is_planned_somewhere_and_every_id_is_its_own() -> None:
    """A kind that nothing plans would never be tried; an id that appears twice would be concluded once."""
    late = [step for stage in Stage for step in steps_of(stage, EARLY, ASKING)]
    late += steps_of(Stage.CONTROLLERS, VOTERS, ASKING)
    assert {step.kind for step in (*ALL, *late)} == {
        kind
        for kind, cls in KINDS.items()
        if not {"rollback", "directories", "protocol"} & set(cls.__module__.split("."))
    }
    assert len({step.id for step in ALL}) == len(ALL)
    assert all(step.id.startswith(f"{step.stage.label}/") for step in ALL)


def test_every_step_says_how_it_is_undone_and_proven() -> None:
    """The plan's reader sees both."""
    assert all(step.undo and step.title for step in ALL)
    assert all(getattr(step, "proof", "") for step in ALL)


@pytest.mark.parametrize("kind", [*KINDS.values()], ids=[*KINDS])
def test_a_step_that_changes_something_is_not_said_to_change_nothing(kind: type[BaseStep]) -> None:
    """Whoever acts or names an action says what becomes of it; a note in the journal is no change of a cluster."""
    acts = kind.do is not BaseStep.do and kind is not ProveZookeeperMode
    assert not (acts or kind.actions is not BaseStep.actions) or "changes nothing" not in kind.undo


@pytest.mark.parametrize(
    ("kind", "params", "says"),
    [
        ("reboot-everything", {}, "does not know"),
        ("roll-to-kraft", {"broker": "1"}, "takes the parameters"),
        ("roll-to-kraft", {"broker": "1", "policy": "drive", "force": "yes"}, "takes the parameters"),
        ("roll-to-kraft", {"broker": "one", "policy": "drive"}, "invalid literal"),
        ("soak", {"seconds": "a while"}, "could not convert"),
    ],
)
def test_what_no_step_has_is_refused(kind: str, params: dict[str, str], says: str) -> None:
    """Nothing is guessed, nothing is left out."""
    with pytest.raises(PlanUnreadable, match=says):
        rebuild(kind, params)
