"""Control goes back to ZooKeeper: the controllers stop, the znodes of the takeover are repaired, a broker takes over.

Order and reasons (seen on 3.9.2): no controller may run while /controller is deleted, it would claim it again and
delete what ZooKeeper's controller made meanwhile; /controller_epoch is raised first (KAFKA-20488); /migration goes too,
else the next quorum would take its offset for a finished copy and empty ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.difference import DifferenceClass, DifferenceName, names_from_text
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.rollback_readiness import StateBehind
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NO_ZNODE, Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ControllerZnode, MigrationZnode, NoZnode, NullZnode, Running, ZookeeperView
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.controllers import all_flagged
from migrate.steps.gates import Gate, ask_until_closed, gate, requires
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

    kind = "keep-zookeeper"
    stage_is = Stage.HYBRID
    titled = "back up the ZooKeeper tree as it is now"
    needs = frozenset({Need.ZOOKEEPER})

    def check(self, world: World) -> Readiness:
        return world.zookeeper if isinstance(world.zookeeper, Unknown) else Ready()


@dataclass(frozen=True, slots=True)
class StopControllers(BaseStep):
    """Stop every controller, followers first: from the loss of the majority on nobody leads, until ZooKeeper does.

    `discarded` are the differences between ZooKeeper and the metadata that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind = "stop-controllers"
    stage_is = Stage.HYBRID
    titled = "stop every controller"
    needs = LOOK | {Need.KRAFT, Need.DIFF, *REHEARSED}
    proof_needs = LOOK
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "start them again, with the flag and before /controller is deleted"
    proof = "no controller process is running, and none answers"
    stops_controller = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        down = back.stopped(world, facts.controllers(world))
        gone = () if isinstance(down, Unknown) else down
        stops = (
            Action("~", f"controller {node}", "stop the process (its metadata stays)")
            for node in facts.controllers(world)
            if node not in gone
        )
        return (*stops, *_given_up(self.discarded))

    def own_gates(self) -> tuple[Gate, ...]:
        """So it is with some of them stopped: while one leads, what it has not written can still be written."""
        return (
            gate(back.not_finalized),
            gate(back.none_runs_kraft),
            gate(_repairable),  # later no controller would lead
            gate(back.rehearsed),
            gate(back.zookeeper_equal, names_from_text(self.discarded)),
        )

    def progress(self, world: World) -> Progress:
        down = back.stopped(world, facts.controllers(world))
        if isinstance(down, Unknown):
            return down
        alive = len(facts.controllers(world)) - len(down)
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
        lost = (f"discarded, as planned: {name}" for name in sorted(names_from_text(self.discarded)))
        stops = f"controllers {list(facts.controllers(world))} are stopped"
        return gates.as_outcome(back.controllers_gone(world), stops, *lost)


def _given_up(discarded: str) -> Iterator[Action]:
    for name in sorted(names_from_text(discarded)):
        yield Action("-", "difference discarded", f"{name}: {GIVEN_UP[DifferenceClass(name.cls)]}")


def in_order(world: World) -> tuple[int, ...]:
    leader = -1
    if not isinstance(world.live, Unknown) and not isinstance(world.live.quorum, Unknown):
        leader = int(world.live.quorum.leader)
    return tuple(sorted(facts.controllers(world), key=lambda node: (node == leader, node)))


@dataclass(frozen=True, slots=True)
class HandBackControl(BaseStep):
    """Raise /controller_epoch, delete /controller, delete /migration: in this order, each under a version check.

    `discarded` are the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind = "hand-back-control"
    stage_is = Stage.COPY
    titled = "give control back to ZooKeeper, and see every broker believe it"
    needs = LOOK | {Need.METADATA_LOGS, Need.DIFF}
    proof_needs = LOOK | {Need.CONTROLLER_NAMES}
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "none needed: migrate again later"
    proof = (
        f"/migration is gone, a broker owns /controller, and every broker names it in {back.ANSWERS} answers of "
        f"{back.ANSWERS}"
    )
    restores_controller = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """The znodes as they stand now; the epoch may still rise until the controllers are stopped."""
        if isinstance(world.zookeeper, Unknown):
            return (Action("?", "ZooKeeper", world.zookeeper.reason),)
        view, due, found = world.zookeeper, epoch_due(world), []
        low, goes = epoch_low(world), _owner_goes(world)
        if goes:
            word = f"raise from {view.controller_epoch} to {due}" if low else f"at least {due} already"
            found.append(_epoch_change(view, word, due if low else view.controller_epoch))
        if isinstance(view.controller, ControllerZnode) and goes:
            owner = f"controller {view.controller.id}'s" if view.kraft_owns else "of a broker with too low an epoch"
            found.append(_deletion(layout.CONTROLLER, f"delete: it is {owner}", view.controller))
        if not isinstance(view.migration, NoZnode):
            znode = view.migration if isinstance(view.migration, MigrationZnode) else None
            word = "it has no data" if znode is None else "it waits for a copy"
            if znode is not None and znode.offset > 0:
                word = f"it remembers a copy up to metadata offset {znode.offset}"
            found.append(_deletion(layout.MIGRATION, f"delete: {word}", view.migration))
        if back.stopped(world, facts.controllers(world)) == facts.controllers(world):  # else their stop says so
            found += _given_up(self.discarded)
        return tuple(found)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {"migration_znode:": facts.ABSENT, "controller_znode:": "zookeeper"}

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(back.controllers_gone),
            gate(back.none_runs_kraft),
            gate(back.stopped_equal, names_from_text(self.discarded)),
            gate(_repairable),
        )

    def progress(self, world: World) -> Progress:
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        kraft, migration = world.zookeeper.kraft_owns, not isinstance(world.zookeeper.migration, NoZnode)
        if not kraft and claims_again(world):
            return HalfDone("/controller was deleted, and its new owner has too low an epoch")
        if not kraft and not migration:
            return AlreadyDone("/migration is gone, and /controller is no controller's")
        return NotBegun() if kraft else HalfDone("/controller is deleted, /migration is not")

    def do(self, world: World, effects: Effects) -> None:
        view = world.zookeeper
        assert not isinstance(view, Unknown)
        owner, due, goes = view.controller, epoch_due(world), _owner_goes(world)
        if goes:
            effects.note(EPOCH_NOTE, str(due))
        if epoch_low(world):
            effects.set_znode(layout.CONTROLLER_EPOCH, str(due).encode(), view.controller_epoch_version)
        if isinstance(owner, ControllerZnode) and goes:  # a broker's: it claims again, higher
            effects.delete_znode(layout.CONTROLLER, owner.version, controller_ids(world))
        if isinstance(view.migration, MigrationZnode | NullZnode):
            effects.delete_znode(layout.MIGRATION, view.migration.version, controller_ids(world))

    def verify(self, world: World) -> Outcome:
        found = gates.first(back.controllers_gone(world), back.zookeeper_controls(world), back.controller_named(world))
        return gates.as_outcome(found, *evidence(world))


def _epoch_change(view: ZookeeperView, what: str, after: object) -> Action:
    epoch, version = view.controller_epoch, view.controller_epoch_version
    return Action(
        "=" if after == epoch else "~",
        layout.CONTROLLER_EPOCH,
        what,
        znode=layout.CONTROLLER_EPOCH,
        version=None if version < 0 else version,
        before=str(epoch) if isinstance(epoch, int) else facts.version_and_value(epoch)[1],
        after=str(after) if isinstance(after, int) else None,
    )


def _deletion(path: str, what: str, found: ControllerZnode | MigrationZnode | NullZnode | Unknown) -> Action:
    version, before = facts.version_and_value(found)
    return Action("-", path, what, znode=path, version=version, before=before, after=NO_ZNODE)


def controller_ids(world: World) -> tuple[NodeId, ...]:
    return tuple(NodeId(node) for node in facts.controllers(world))


def evidence(world: World) -> tuple[str, ...]:
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
    if isinstance(world.zookeeper, Unknown):
        return False
    epoch = world.zookeeper.controller_epoch
    return isinstance(epoch, int) and epoch < epoch_due(world)


def claims_again(world: World) -> bool:
    """Has a broker to claim /controller again: with too low an epoch, or with one that was raised under it since?

    Such an owner stays: ZooKeeper refuses all that it writes, and Kafka lets it resign only once /controller changes.
    """
    if isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns:
        return False
    return epoch_low(world) or world.zookeeper.owner_fenced


def _owner_goes(world: World) -> bool:
    return claims_again(world) or (not isinstance(world.zookeeper, Unknown) and world.zookeeper.kraft_owns)


@requires("/migration, /controller and /controller_epoch can be read, and somebody owns /controller")
def _repairable(world: World) -> Readiness:
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    view = world.zookeeper
    for part in (view.migration, view.controller, view.controller_epoch):
        if isinstance(part, Unknown):
            return part
    if view.kraft_owns and (not isinstance(view.controller_epoch, int) or view.controller_epoch_version < 0):
        return Refused("/controller_epoch is missing: the controllers cannot have claimed /controller without it")
    return back.owned(world)


@dataclass(frozen=True, slots=True)
class FinishDualWrite(BaseStep):
    """Start the controllers with the metadata that they have, until ZooKeeper is equal to it.

    A record that was committed between the last look at dual write and the end of the last controller would be lost
    with the deletion of /controller: a topic made then lives in the metadata alone.
    `discarded` are the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind = "finish-dual-write"
    stage_is = Stage.HYBRID
    titled = "start the controllers again: ZooKeeper lacks what they have committed"
    needs = LOOK | {Need.METADATA_LOGS}
    proof_needs = LOOK | {Need.KRAFT, Need.DIFF}
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "stop them again"
    proof = "a controller leads with the flag, and ZooKeeper holds what the metadata holds"
    restores_controller = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        lasting = () if isinstance(world.diff, Unknown) else world.diff.standing(names_from_text(self.discarded))
        names = ", ".join(str(DifferenceName.of(row)) for row in lasting[: back.NAMED])
        more = f" and {len(lasting) - back.NAMED} more" if len(lasting) > back.NAMED else ""
        said = f"{names}{more}" if names else "ZooKeeper may lack what they have committed"
        starts = (
            Action(">", f"controller {node}", "start with the migration flag") for node in facts.controllers(world)
        )
        return (*starts, Action("=", "ZooKeeper", f"dual write continues: {said}"))

    def own_gates(self) -> tuple[Gate, ...]:
        return gate(_made_a_copy), gate(all_flagged)

    def check(self, world: World) -> Readiness:
        return ask_until_closed(self.own_gates(), world)

    def resume(self, world: World) -> Readiness:
        """Some run by now: that they belong was asked before the first."""
        return all_flagged(world)

    def progress(self, world: World) -> Progress:
        down = back.stopped(world, facts.controllers(world))
        if isinstance(down, Unknown):
            return down
        if not down:
            return AlreadyDone("every controller runs")
        return NotBegun() if len(down) == len(facts.controllers(world)) else HalfDone(f"{len(down)} are still down")

    def do(self, world: World, effects: Effects) -> None:
        assert not isinstance(world.services, Unknown)
        for node in facts.controllers(world):
            if not isinstance(world.services.get(NodeId(node)), Running):
                effects.start(NodeId(node))

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            back.quorum_leads(world),
            gates.state_is(world, ZkMigrationState.MIGRATION),
            back.zookeeper_equal(world, names_from_text(self.discarded)),
        )
        return gates.as_outcome(found, "ZooKeeper was compared with the committed metadata, and is equal")


@requires("the controllers' own metadata says MIGRATION")
def _made_a_copy(world: World) -> Readiness:
    if isinstance(world.metadata_logs, Unknown):
        return world.metadata_logs
    if world.metadata_logs.state is ZkMigrationState.MIGRATION:
        return Ready()
    return Refused(f"the controllers' metadata says {world.metadata_logs.state.name}: it has made no copy")


SHOWN = 3  # states that a sentence names
RAISED = "every partition's state in ZooKeeper has at least the version that the metadata counts"


@dataclass(frozen=True, slots=True)
class RaiseStateVersions(BaseStep):
    """Write partition states' own bytes over them, until their versions are the partition epochs of the metadata.

    KRaft counts a partition epoch for each change, dual write may write several changes at once.  A topic made in dual
    write is then behind: a broker that was not restarted since takes ZooKeeper's controller for an older one and
    ignores it without a word, its followers are never heard and ISRs do not fill (seen on 3.9.2).  The controllers are
    stopped, so that nobody else writes.

    Where a broker has /controller already, it goes with the last of them: the next owner reads them.  `discarded` are
    the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind = "raise-state-versions"
    stage_is = Stage.COPY
    titled = "raise partition states' versions to the partition epochs that brokers know"
    needs = LOOK | {Need.METADATA_LOGS, Need.STATES_BEHIND, Need.DIFF}
    proof_needs = LOOK | {Need.METADATA_LOGS, Need.STATES_BEHIND}
    undo = "none needed: the same bytes, under a higher version"
    proof = RAISED

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """One each; while the controllers run nobody can say which they will be."""
        behind = behind_of(world)
        if isinstance(behind, Unknown):
            word = "write the bytes of each whose version is below the metadata's partition epoch over it again"
            return (Action("~", "partition states", f"{word}: known once the controllers are stopped"),)
        found = [
            Action(
                *("~", it.path, f"the same bytes, version {it.version} to {it.partition_epoch}"),
                znode=it.path,
                version=it.version,
                after=f"the same bytes, version {it.partition_epoch}",
            )
            for it in behind
        ]
        owner = _broker_that_leads(world)
        if found and owner is not None:
            word = f"delete: broker {owner.id} read the states before; a new election reads them"
            found.append(_deletion(layout.CONTROLLER, word, owner))
        return tuple(found)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(back.controllers_gone),
            gate(back.stopped_equal, names_from_text(self.discarded)),
            gate(_known),
            gate(back.owned),
        )

    def progress(self, world: World) -> Progress:
        """By the versions themselves: the last of them is raised together with the election."""
        behind = behind_of(world)
        if isinstance(behind, Unknown):
            return behind
        return NotBegun() if behind else AlreadyDone(RAISED)

    def do(self, world: World, effects: Effects) -> None:
        behind = behind_of(world)
        assert not isinstance(behind, Unknown)
        owner = _broker_that_leads(world)
        effects.raise_versions(behind, None if owner is None else owner.version, controller_ids(world))

    def verify(self, world: World) -> Outcome:
        behind = behind_of(world)
        if not isinstance(behind, Unknown) and behind:
            return gates.as_outcome(Refused(f"still behind the metadata's partition epochs: {named(behind)}"))
        return gates.as_outcome(_known(world), RAISED)


def behind_of(world: World) -> tuple[StateBehind, ...] | Unknown:
    if isinstance(world.states_behind, Unknown) and _never_led(world):
        return ()
    return world.states_behind


def _never_led(world: World) -> bool:
    """Is it known that no broker ever heard of a partition from a KRaft controller?"""
    if isinstance(world.zookeeper, Unknown) or isinstance(world.zookeeper.migration, Unknown) or claims_again(world):
        return False
    view = world.zookeeper
    return view.copy_note is None and isinstance(view.controller, ControllerZnode) and not view.kraft_owns


@requires("it is known which partition states are behind the metadata's partition epochs")
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

    Nobody where it has to claim again: the hand-back raises the epoch first, and then calls the election itself.
    """
    if isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns or claims_again(world):
        return None
    owner = world.zookeeper.controller
    return owner if isinstance(owner, ControllerZnode) else None


def are_behind(world: World) -> bool:
    return not isinstance(world.states_behind, Unknown) and bool(world.states_behind)


def named(behind: tuple[StateBehind, ...]) -> str:
    texts = [f"{it.path} (version {it.version}, partition epoch {it.partition_epoch})" for it in behind[:SHOWN]]
    more = len(behind) - SHOWN
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
