"""Before ZooKeeper's controller leads again: no partition state may be older, by its version, than brokers know.

KRaft counts a partition epoch for each change, dual write may write several changes at once.  A topic made in dual
write is then behind: a broker that was not restarted since takes ZooKeeper's controller for an older one and ignores
it without a word, its followers are never heard and ISRs do not fill (seen on 3.9.2).  The same bytes, written again,
raise the version; the controllers are stopped, so that nobody else writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model.difference import names_from_text
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.rollback_evidence import StateBehind
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.views import ControllerZnode, MigrationZnode
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.base import BaseStep
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.control import LOOK, controller_ids, epoch_low
from migrate.zookeeper import layout

SHOWN = 3  # states that a sentence names
RAISED = "every partition's state in ZooKeeper has at least the version that the metadata counts"


@dataclass(frozen=True, slots=True)
class RaiseStateVersions(BaseStep):
    """Write partition states' own bytes over them, until their versions are the partition epochs of the metadata.

    Where a broker has /controller already, it goes with the last of them: the next owner reads them.  `discarded` are
    the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind: ClassVar[str] = "raise-state-versions"
    stage_is: ClassVar[Stage] = Stage.COPY
    title: ClassVar[str] = "raise partition states' versions to the partition epochs that brokers know"
    needs: ClassVar[frozenset[Need]] = LOOK | {Need.METADATA_LOGS, Need.STATES_BEHIND, Need.DIFF}
    proof_needs: ClassVar[frozenset[Need]] = LOOK | {Need.METADATA_LOGS, Need.STATES_BEHIND}
    undo: ClassVar[str] = "none needed: the same bytes, under a higher version"
    proof: ClassVar[str] = RAISED

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """One each; while the controllers run nobody can say which they will be."""
        behind = behind_of(world)
        if isinstance(behind, Unknown):
            word = "write the bytes of each whose version is below the metadata's partition epoch over it again"
            return (Action("~", "partition states", f"{word}: told once the controllers are stopped"),)
        found = [
            Action("~", it.path, f"the same bytes, version {it.version} to {it.partition_epoch}", znode=it.path)
            for it in behind
        ]
        owner = _broker_that_leads(world)
        if found and owner is not None:
            word = f"delete: broker {owner.id} read the states before; a new election reads them"
            found.append(Action("-", layout.CONTROLLER, word, znode=layout.CONTROLLER))
        return tuple(found)

    def check(self, world: World) -> Readiness:
        """No controller lives, ZooKeeper holds what the logs hold, what is behind is known, /controller is owned."""
        return gates.first(
            back.controllers_gone(world),
            back.stopped_equal(world, names_from_text(self.discarded)),
            _known(world),
            back.owned(world),
        )

    def progress(self, world: World) -> Progress:
        """By the versions themselves: the last of them is raised together with the election."""
        behind = behind_of(world)
        if isinstance(behind, Unknown):
            return behind
        return NotBegun() if behind else AlreadyDone(RAISED)

    def do(self, world: World, effects: Effects) -> None:
        """All that are behind."""
        behind = behind_of(world)
        assert not isinstance(behind, Unknown)
        owner = _broker_that_leads(world)
        effects.raise_versions(behind, None if owner is None else owner.version, controller_ids(world))

    def verify(self, world: World) -> Outcome:
        """None is behind."""
        behind = behind_of(world)
        if not isinstance(behind, Unknown) and behind:
            return gates.as_outcome(Refused(f"still behind the metadata's partition epochs: {named(behind)}"))
        return gates.as_outcome(_known(world), RAISED)


def behind_of(world: World) -> tuple[StateBehind, ...] | Unknown:
    """Those that are behind: none where KRaft never led, whatever its logs say."""
    if isinstance(world.states_behind, Unknown) and _never_led(world):
        return ()
    return world.states_behind


def _never_led(world: World) -> bool:
    """Is it known that no broker ever heard of a partition from a KRaft controller?"""
    if isinstance(world.zookeeper, Unknown) or isinstance(world.zookeeper.migration, Unknown) or epoch_low(world):
        return False
    view = world.zookeeper
    copied = isinstance(view.migration, MigrationZnode) and view.migration.copied
    return not copied and isinstance(view.controller, ControllerZnode) and not view.kraft_owns


def _known(world: World) -> Readiness:
    behind = behind_of(world)
    if isinstance(behind, Unknown):
        return Unknown(
            f"whether partition states in ZooKeeper are behind what brokers know is not known ({behind.reason}): "
            "make the controllers' metadata directories readable"
        )
    return Ready()


def _broker_that_leads(world: World) -> ControllerZnode | None:
    """The ZooKeeper-mode owner of /controller, who has read the states as they are.

    Nobody where /controller_epoch is too low: the hand-back raises it first, and then calls the election itself.
    """
    if isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns or epoch_low(world):
        return None
    owner = world.zookeeper.controller
    return owner if isinstance(owner, ControllerZnode) else None


def are_behind(world: World) -> bool:
    """Is it known that some are?"""
    return not isinstance(world.states_behind, Unknown) and bool(world.states_behind)


def named(behind: tuple[StateBehind, ...]) -> str:
    """The first few, for a sentence."""
    texts = [f"{it.path} (version {it.version}, partition epoch {it.partition_epoch})" for it in behind[:SHOWN]]
    more = len(behind) - SHOWN
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
