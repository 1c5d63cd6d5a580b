"""What most steps share: no inputs, no predictions, nothing done; each step overrides what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Final

from migrate.model.outcome import Readiness, Ready
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.world import Need, World

NARROW: Final = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES})  # no disk, no tree, no table is read


class BaseStep:
    """Defaults of a step.  Subclasses are frozen dataclasses whose fields are text, numbers or enums."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    stage_is: ClassVar[Stage] = Stage.DISCOVER
    needs: ClassVar[frozenset[Need]] = frozenset()
    proof_needs: ClassVar[frozenset[Need]] = frozenset()
    waits_for: ClassVar[frozenset[Need]] = NARROW
    undo: ClassVar[str] = "nothing to undo: it changes nothing"
    proof: ClassVar[str] = ""
    stops_controller: ClassVar[bool] = False  # from its first effect on, the cluster may have no controller
    restores_controller: ClassVar[bool] = False  # once it is proven, the cluster has a controller again

    @property
    def id(self) -> str:
        """Stage and kind; steps that exist more than once add what they are about."""
        return f"{self.stage.label}/{self.kind}"

    @property
    def stage(self) -> Stage:
        """The stage it belongs to."""
        return self.stage_is

    def params(self) -> Mapping[str, str]:
        """The fields as text."""
        own: Any = self
        return {entry.name: str(getattr(self, entry.name)) for entry in fields(own)}

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - a default
        """Nothing that a plan would list."""
        return ()

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:  # noqa: ARG002 - a default
        """No input decides it."""
        return {}

    def predict(self, world: World, before: Predicted) -> Predicted:  # noqa: ARG002 - a default
        """It leaves the world as it is."""
        return before

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:  # noqa: ARG002 - a default
        """It promises no fact."""
        return {}

    def check(self, world: World) -> Readiness:  # noqa: ARG002 - a default
        """It may always act."""
        return Ready()

    def progress(self, world: World) -> Progress:  # noqa: ARG002 - a default
        """It leaves no traces, so an interrupted attempt starts again."""
        return NotBegun()

    def resume(self, world: World) -> Readiness:
        """What it asks for at its beginning."""
        return self.check(world)

    def do(self, world: World, effects: Effects) -> None:
        """It only looks."""
