"""A step: what one change needs, checks, predicts, does, verifies and undoes.  Steps are frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.world import Need, World


@dataclass(frozen=True, slots=True)
class NotBegun:
    """Nothing of the step has happened."""


@dataclass(frozen=True, slots=True)
class HalfDone:
    """Some effects happened; `do` adds the missing ones, each decided by what is observed."""

    what: str


Progress = NotBegun | HalfDone | AlreadyDone | Unknown


NO_ZNODE: Final = "no such znode"


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan: `symbol` is + create, ~ change, - remove, > restart, = no change, ! irreversible.

    An action on a znode has its version and its value before and after, in words and as it was read for the plan: None
    where the plan does not know them, NO_ZNODE where there is none.  No value of an ACL or of a credential is among
    them.
    """

    symbol: str
    where: str
    what: str
    diff: tuple[str, ...] = ()  # unified diff lines, secrets redacted
    znode: str = ""
    version: int | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Predicted:
    """The world as the steps so far would leave it: the parts that later steps decide by."""

    configs: Mapping[NodeId, bytes] = field(default_factory=dict, repr=False)  # bytes; none: no such file
    modes: Mapping[NodeId, str] = field(default_factory=dict)


class Step(Protocol):
    """Implemented by one frozen dataclass a kind of step in `migrate.steps`; its fields are its parameters."""

    kind: ClassVar[str]

    @property
    def id(self) -> str:
        """Unique in a plan and stable over runs: `kraft-mode/1`."""

    @property
    def stage(self) -> Stage:
        """The stage it belongs to."""

    @property
    def title(self) -> str:
        """One line for a person."""

    @property
    def needs(self) -> frozenset[Need]:
        """What `check` and `progress` look at."""

    @property
    def proof_needs(self) -> frozenset[Need]:
        """What `verify` looks at."""

    @property
    def waits_for(self) -> frozenset[Need]:
        """What a narrow look reads of the above while a wait goes on; it proves nothing.  Empty: each look is full."""

    @property
    def undo(self) -> str:
        """How its effect is taken back, or why it cannot be."""

    @property
    def requires(self) -> tuple[str, ...]:
        """The gates that `check` asks, a sentence each, in their order."""

    def params(self) -> Mapping[str, str]:
        """Its parameters, as a saved plan keeps them."""

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """What it would do, for the plan."""

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        """The inputs that decide its actions: `config:1` -> sha256 and the like.  Compared before it acts."""

    def predict(self, world: World, before: Predicted) -> Predicted:
        """The predicted world after it."""

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        """Facts that must hold after it: `mode:1` -> `kraft`.  Compared after it acted."""

    def check(self, world: World) -> Readiness:
        """May it act now?"""

    def progress(self, world: World) -> Progress:
        """How far did an interrupted attempt get?"""

    def resume(self, world: World) -> Readiness:
        """May a half-done attempt go on?  Asked instead of `check`, which wants what its own half took away."""

    @property
    def writes_at(self) -> tuple[Moment, ...]:
        """The moments whose keys are its own in the files of the nodes that it starts."""

    def starts(self, world: World) -> tuple[int, ...]:
        """The nodes that it starts with a file which the plan names."""

    def becomes(self, world: World, node: int, raw: bytes) -> bytes:
        """The file that it starts such a node with, where its file is `raw`."""

    def do(self, world: World, effects: Effects) -> None:
        """The missing effects, in order."""

    def verify(self, world: World) -> Outcome:
        """Is the world as promised?"""
