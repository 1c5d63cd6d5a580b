"""Control goes back to ZooKeeper: the controllers stop, the znodes of the takeover are repaired, a broker takes over.

Order and reasons (seen on 3.9.2): no controller may run while /controller is deleted, it would claim it again and
delete what ZooKeeper's controller made meanwhile; /controller_epoch is raised first (KAFKA-20488); /migration goes too,
else the next quorum would take its offset for a finished copy and empty ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from migrate.model.difference import DifferenceClass, names_from_text
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ControllerZnode, MigrationZnode, NoZnode, NullZnode, Running, ZookeeperView
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.prepare import BackUpZookeeper
from migrate.steps.rollback import gates as back
from migrate.zookeeper import layout

EPOCH_NOTE = "rollback:kraft-epoch"
GIVEN_UP: Final = {
    DifferenceClass.ONLY_ZK: "ZooKeeper alone has it, and it comes back",
    DifferenceClass.ONLY_KRAFT: "the metadata alone has it, and it is lost",
    DifferenceClass.DIFFERS: "ZooKeeper's value comes back",
}
REHEARSED = (Need.UNITS, Need.METADATA_LOGS, Need.HOST_RIGHTS, Need.REHEARSAL)
LOOK = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS, Need.SERVICES})


@dataclass(frozen=True, slots=True)
class KeepZookeeper(BackUpZookeeper):
    """The whole tree once more, as dual write left it: the rollback may begin in any state, so no check bars it."""

    kind: ClassVar[str] = "keep-zookeeper"
    stage_is: ClassVar[Stage] = Stage.HYBRID
    title: ClassVar[str] = "back up the ZooKeeper tree as it is now"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ZOOKEEPER})

    def check(self, world: World) -> Readiness:
        """ZooKeeper answers."""
        return world.zookeeper if isinstance(world.zookeeper, Unknown) else Ready()


@dataclass(frozen=True, slots=True)
class StopControllers(BaseStep):
    """Stop every controller, followers first: from the loss of the majority on nobody leads, until ZooKeeper does.

    `discarded` are the differences between ZooKeeper and the metadata that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind: ClassVar[str] = "stop-controllers"
    stage_is: ClassVar[Stage] = Stage.HYBRID
    title: ClassVar[str] = "stop every controller"
    needs: ClassVar[frozenset[Need]] = LOOK | {Need.KRAFT, Need.DIFF, *REHEARSED}
    proof_needs: ClassVar[frozenset[Need]] = LOOK
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    undo: ClassVar[str] = "start them again, with the flag and before /controller is deleted"
    proof: ClassVar[str] = "no controller process lives, and none answers"
    stops_controller: ClassVar[bool] = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """One stop each, and what is given up with them."""
        down = back.stopped(world, back.controllers(world))
        gone = () if isinstance(down, Unknown) else down
        stops = (
            Action("~", f"controller {node}", "stop the process (its metadata stays)")
            for node in back.controllers(world)
            if node not in gone
        )
        lost = (
            Action("-", "difference given up", f"{name}: {GIVEN_UP[DifferenceClass(name.cls)]}")
            for name in sorted(names_from_text(self.discarded))
        )
        return (*stops, *lost)

    def check(self, world: World) -> Readiness:
        """Not finalized, every broker back in migration mode, the rest rehearsed, and ZooKeeper equal to the metadata.

        So it is with some of them stopped: while one leads, what it has not written can still be written.
        """
        return gates.first(
            back.not_finalized(world),
            back.none_runs_kraft(world),
            back.rehearsed(world),
            back.zookeeper_equal(world, names_from_text(self.discarded)),
        )

    def progress(self, world: World) -> Progress:
        """How many of them live?"""
        down = back.stopped(world, back.controllers(world))
        if isinstance(down, Unknown):
            return down
        alive = len(back.controllers(world)) - len(down)
        if not alive:
            return AlreadyDone("no controller runs")
        return HalfDone(f"{alive} still run") if down else NotBegun()

    def do(self, world: World, effects: Effects) -> None:
        """Followers first: what is committed by then is the leader's to write to ZooKeeper."""
        assert not isinstance(world.services, Unknown)
        for node in in_order(world):
            if isinstance(world.services.get(NodeId(node)), Running):
                effects.stop(NodeId(node))

    def verify(self, world: World) -> Outcome:
        """All gone; the journal keeps what was given up."""
        lost = (f"given up, as planned: {name}" for name in sorted(names_from_text(self.discarded)))
        stops = f"controllers {list(back.controllers(world))} are stopped"
        return gates.as_outcome(back.controllers_gone(world), stops, *lost)


def in_order(world: World) -> tuple[int, ...]:
    """Followers by id, the leader last; by id alone where nobody leads."""
    leader = -1
    if not isinstance(world.live, Unknown) and not isinstance(world.live.quorum, Unknown):
        leader = int(world.live.quorum.leader)
    return tuple(sorted(back.controllers(world), key=lambda node: (node == leader, node)))


@dataclass(frozen=True, slots=True)
class HandBackControl(BaseStep):
    """Raise /controller_epoch, delete /controller, delete /migration: in this order, each under a version check.

    `discarded` are the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind: ClassVar[str] = "hand-back-control"
    stage_is: ClassVar[Stage] = Stage.COPY
    title: ClassVar[str] = "give control back to ZooKeeper, and see every broker believe it"
    needs: ClassVar[frozenset[Need]] = LOOK | {Need.METADATA_LOGS, Need.DIFF}
    proof_needs: ClassVar[frozenset[Need]] = LOOK | {Need.CONTROLLER_NAMES}
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    undo: ClassVar[str] = "none needed: migrate again later"
    proof: ClassVar[str] = (
        f"/migration is gone, a broker owns /controller, and every broker names it in {back.ANSWERS} answers of "
        f"{back.ANSWERS}"
    )
    restores_controller: ClassVar[bool] = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """The znodes as they stand now; the epoch may still rise until the controllers are stopped."""
        if isinstance(world.zookeeper, Unknown):
            return (Action("?", "ZooKeeper", world.zookeeper.reason),)
        view, due, found = world.zookeeper, epoch_due(world), []
        low = epoch_low(world)
        if view.kraft_owns or low:
            word = f"raise from {view.controller_epoch} to {due}" if low else f"at least {due} already"
            found.append(Action("~" if low else "=", layout.CONTROLLER_EPOCH, word, znode=layout.CONTROLLER_EPOCH))
        if isinstance(view.controller, ControllerZnode) and (view.kraft_owns or low):
            owner = f"controller {view.controller.id}'s" if view.kraft_owns else "of a broker with too low an epoch"
            found.append(Action("-", layout.CONTROLLER, f"delete: it is {owner}", znode=layout.CONTROLLER))
        if not isinstance(view.migration, NoZnode):
            found.append(Action("-", layout.MIGRATION, f"delete: {_said(view)}", znode=layout.MIGRATION))
        return tuple(found)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's signature
        """Both are as in a cluster that never migrated."""
        return {"migration_znode:": facts.ABSENT, "controller_znode:": "zookeeper"}

    def check(self, world: World) -> Readiness:
        """No controller lives, every broker can take over, ZooKeeper holds what the logs hold, the znodes are known."""
        return gates.first(
            back.controllers_gone(world),
            back.none_runs_kraft(world),
            back.stopped_equal(world, names_from_text(self.discarded)),
            _repairable(world),
        )

    def progress(self, world: World) -> Progress:
        """By the znodes themselves."""
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        kraft, migration = world.zookeeper.kraft_owns, not isinstance(world.zookeeper.migration, NoZnode)
        if not kraft and epoch_low(world):
            return HalfDone("/controller was deleted, /controller_epoch not raised")
        if not kraft and not migration:
            return AlreadyDone("/migration is gone, and /controller is no controller's")
        return NotBegun() if kraft else HalfDone("/controller is deleted, /migration is not")

    def do(self, world: World, effects: Effects) -> None:
        """What is missing of the three."""
        view = world.zookeeper
        assert not isinstance(view, Unknown)
        owner, due, low = view.controller, epoch_due(world), epoch_low(world)
        if view.kraft_owns or low:
            effects.note(EPOCH_NOTE, str(due))
        if low:
            effects.set_znode(layout.CONTROLLER_EPOCH, str(due).encode(), view.controller_epoch_version)
        if isinstance(owner, ControllerZnode) and (view.kraft_owns or low):  # a broker's: it claims again, higher
            effects.delete_znode(layout.CONTROLLER, owner.version, controller_ids(world))
        if isinstance(view.migration, MigrationZnode | NullZnode):
            effects.delete_znode(layout.MIGRATION, view.migration.version, controller_ids(world))

    def verify(self, world: World) -> Outcome:
        """A broker owns it, and every broker knows."""
        found = gates.first(back.controllers_gone(world), back.zookeeper_controls(world), back.controller_named(world))
        return gates.as_outcome(found, *evidence(world))


def controller_ids(world: World) -> tuple[NodeId, ...]:
    """Those that must stay down while znodes are changed."""
    return tuple(NodeId(node) for node in back.controllers(world))


def evidence(world: World) -> tuple[str, ...]:
    """Who owns what now."""
    if isinstance(world.zookeeper, Unknown):
        return ()
    view = world.zookeeper
    owner = view.controller.id if isinstance(view.controller, ControllerZnode) else "nobody"
    return (
        f"/controller belongs to broker {owner}, /controller_epoch is {view.controller_epoch}, /migration is gone",
        f"every broker that runs names broker {owner} in {back.ANSWERS} answers of {back.ANSWERS}",
    )


def epoch_due(world: World) -> int:
    """What /controller_epoch has to reach: the highest epoch that /controller, partition states or logs know.

    Where /controller was deleted by hand its KRaft epoch is gone; the states that KRaft wrote carry it, and brokers
    still hold it against a controller with a lower one.  -1: nothing of KRaft was ever written.
    """
    if isinstance(world.zookeeper, Unknown):
        return -1
    view, logs = world.zookeeper, world.metadata_logs
    known = [view.state_epoch]
    if isinstance(view.controller, ControllerZnode):
        known.append(view.controller.kraft_epoch)
    if not isinstance(logs, Unknown) and logs.state is ZkMigrationState.MIGRATION:  # only then it ever claimed
        known.append(logs.epoch)
    return max(known)


def epoch_low(world: World) -> bool:
    """Is it known that /controller_epoch is below that?"""
    if isinstance(world.zookeeper, Unknown):
        return False
    epoch = world.zookeeper.controller_epoch
    return isinstance(epoch, int) and epoch < epoch_due(world)


def _said(view: ZookeeperView) -> str:
    match view.migration:
        case MigrationZnode(offset=offset) if offset > 0:
            return f"it remembers a copy up to metadata offset {offset}"
        case MigrationZnode():
            return "it waits for a copy"
        case _:
            return "it has no data"


def _repairable(world: World) -> Readiness:
    """Each of the three znodes is known, and /controller_epoch can be raised."""
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    view = world.zookeeper
    for part in (view.migration, view.controller, view.controller_epoch):
        if isinstance(part, Unknown):
            return part
    if view.kraft_owns and (not isinstance(view.controller_epoch, int) or view.controller_epoch_version < 0):
        return Refused("/controller_epoch is missing: the controllers cannot have claimed /controller without it")
    return back.owned(world)
