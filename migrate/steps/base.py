"""What most steps share: no inputs, no predictions, nothing done; each step overrides what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Final

from migrate.model.config_keys import Moment
from migrate.model.outcome import Readiness
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.world import Need, World
from migrate.steps.gates import Gate, ask_all

NARROW: Final = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES})  # no disk, no tree, no table is read


class BaseStep:
    """Defaults of a step.  Subclasses are frozen dataclasses whose fields are text, numbers or enums."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""  # the id behind the stage, with the step's fields in braces; without one its kind
    titled: ClassVar[str] = ""  # the title, with the step's fields in braces
    stage_is: ClassVar[Stage] = Stage.DISCOVER
    needs: ClassVar[frozenset[Need]] = frozenset()
    proof_needs: ClassVar[frozenset[Need]] = frozenset()
    waits_for: ClassVar[frozenset[Need]] = NARROW
    undo: ClassVar[str] = "nothing to undo: it changes nothing"
    proof: ClassVar[str] = ""
    stops_controller: ClassVar[bool] = False  # from its first effect on, the cluster may have no controller
    writes_at: ClassVar[tuple[Moment, ...]] = ()  # whose keys are its own in the files of the nodes that it starts
    restores_controller: ClassVar[bool] = False  # once it is proven, the cluster has a controller again

    @property
    def id(self) -> str:
        return f"{self.stage.label}/{(self.name or self.kind).format_map(self.params())}"

    @property
    def stage(self) -> Stage:
        return self.stage_is

    @property
    def title(self) -> str:
        return self.titled.format_map(self.params())

    def params(self) -> Mapping[str, str]:
        own: Any = self
        return {entry.name: str(getattr(self, entry.name)) for entry in fields(own)}

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return ()

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {}

    def predict(self, world: World, before: Predicted) -> Predicted:
        return before

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {}

    def own_gates(self) -> tuple[Gate, ...]:
        """What must hold before it begins, in the order in which it is asked."""
        return ()

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(gate.requires for gate in self.own_gates())

    def check(self, world: World) -> Readiness:
        return ask_all(self.own_gates(), world)

    def progress(self, world: World) -> Progress:
        """It leaves no traces, so an interrupted attempt starts again."""
        return NotBegun()

    def resume(self, world: World) -> Readiness:
        return self.check(world)

    def starts(self, world: World) -> tuple[int, ...]:
        return ()

    def becomes(self, world: World, node: int, raw: bytes) -> bytes:
        return raw

    def do(self, world: World, effects: Effects) -> None: ...
