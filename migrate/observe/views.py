"""The table of views: each is a method of `Sources`, with what it needs before it and what a bundle has of it.

A new one takes two places: a `Need` with its part of `World`, and its method in `migrate.observe.sources`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from migrate.errors import MigrateError
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.outcome import Unknown, unknown
from migrate.model.world import Need

Node = BrokerNode | ControllerNode


@dataclass(frozen=True, slots=True)
class View:
    """One view: `look` names the method, `part` what of the World it answers.

    `after` are the parts that it depends on, in the order of its arguments: they are observed first, and where one is
    Unknown, so is this, unless it is `derived`: made of them, whatever they are.  `beside` are given where
    they were asked for.  `absent` says why a bundle does not have it; `by_node` ones have an answer for each node.
    """

    need: Need
    look: str
    after: tuple[Need, ...]
    beside: tuple[Need, ...]
    derived: bool
    by_node: bool
    work: str  # what a progress line calls it
    absent: str

    @property
    def part(self) -> str:
        return self.need.replace("-", "_")

    @property
    def kept(self) -> bool:
        """Is it in a bundle?"""
        return not self.absent and not self.derived


class Answering(Protocol):
    """What has views: `Sources`, and what stands in for them."""

    def answer(self, view: View, look: Callable[[], Any]) -> Any:
        """What a look says, or what is known without it."""

    def each(self, work: str, look: Callable[[Node], Any]) -> dict[NodeId, Any]:
        """What a look says of each node."""


VIEWS: Final[dict[Need, View]] = {}  # each behind those that it is looked at with
P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Answering)


def view(
    need: Need,
    *,
    after: tuple[Need, ...] = (),
    beside: tuple[Need, ...] = (),
    derived: bool = False,
    by_node: bool = False,
    work: str = "",
    absent: str = "",
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Make a method a view of the whole cluster: what it raises becomes Unknown."""

    def of(look: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        entry = View(need, look.__name__, after, beside, derived, by_node, work, absent)
        VIEWS[need] = entry

        def answered(self: S, /, *args: P.args, **words: P.kwargs) -> T:
            found: T = self.answer(entry, lambda: look(self, *args, **words))
            return found

        functools.update_wrapper(answered, look)
        return answered

    return of


def node_view(
    need: Need,
    work: str,
    *,
    after: tuple[Need, ...] = (),
    absent: str = "",
    lost: Callable[[MigrateError], Unknown] = unknown,
) -> Callable[[Callable[Concatenate[S, Node, P], T]], Callable[Concatenate[S, P], dict[NodeId, T | Unknown]]]:
    """Make a method that looks at one node a view of all nodes: what it raises is Unknown of that node (`lost`)."""

    def of(look: Callable[Concatenate[S, Node, P], T]) -> Callable[Concatenate[S, P], dict[NodeId, T | Unknown]]:
        def of_all(self: S, /, *args: P.args, **words: P.kwargs) -> dict[NodeId, T | Unknown]:
            def at(node: Node) -> T | Unknown:
                try:
                    return look(self, node, *args, **words)
                except MigrateError as error:
                    return lost(error)

            return self.each(work, at)

        functools.update_wrapper(of_all, look)
        return view(need, after=after, by_node=not absent, absent=absent)(of_all)

    return of
