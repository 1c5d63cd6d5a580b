"""Gates of the rollback: one condition each, from a World to a Readiness (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from migrate.model.broker_modes import Mode, controller_flags, positions
from migrate.model.causes import Cause, cause_of
from migrate.model.difference import NOTHING_COMPARED, REGISTRATION, Difference, DifferenceName
from migrate.model.ids import NodeId
from migrate.model.outcome import Awaited, NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.rights import denied
from migrate.model.rollback_readiness import Growing, MetadataLogs
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    ControllerZnode,
    MigrationZnode,
    NodeAnswer,
    NoZnode,
    Stopped,
    majority,
)
from migrate.model.words import plural
from migrate.model.world import World
from migrate.steps import facts, gates
from migrate.steps.gates import requires

ANSWERS: Final = 20  # a broker that believes in KRaft names a random broker: 20 equal answers by chance are N^-20
NAMED: Final = 5  # differences of each cause that a refusal names
REPAIR: Final = "Then run the same command again."
START_AGAIN: Final = (
    "The cluster has no controller now: plan the rollback again at once. The new plan starts the controllers with the "
    "flag, so that they write it to ZooKeeper, compares again, and continues."
)
AFTER: Final = gates.LOOK_AT_NODES_LOG


def _but(discarded: Collection[DifferenceName]) -> str:
    return f", but for {plural(len(discarded), 'difference')} discarded by name" if discarded else ""


def stopped(world: World, nodes: Iterable[int]) -> tuple[int, ...] | Unknown:
    if isinstance(world.services, Unknown):
        return world.services
    found = []
    for node in nodes:
        state = world.services.get(NodeId(node), Unknown(f"the process of node {node} was not looked at"))
        if isinstance(state, Unknown):
            return state
        if isinstance(state, Stopped):
            found.append(node)
    return tuple(found)


# -- controllers -------------------------------------------------------------------------------------------------
@requires("the migration is not finalized, and no controller runs without the flag")
def not_finalized(world: World) -> Readiness:
    if world.finalized:
        return gates.state_is(world, ZkMigrationState.MIGRATION)
    return flagged(world)


def flagged(world: World) -> Readiness:
    """Every controller that answers has the flag: one without it finalizes by being elected."""
    if isinstance(world.live, Unknown):
        return world.live
    without = [flag.node for flag in controller_flags(world) if flag.answer is False]
    if not without:
        return Ready()
    return Refused(
        f"controllers {without} run without the migration flag: as soon as one of them is elected no rollback is "
        "possible. Stop them first, put the flag into their files, and make a new plan",
        ("B-MIG-07",),
    )


@requires("a majority keeps up with the quorum's leader, and every controller that answers has the flag")
def quorum_leads(world: World) -> Readiness:
    """A leader, committed records, a majority that answers and keeps up: a single dead controller bars no rollback."""
    if isinstance(world.live, Unknown):
        return world.live
    quorum = world.live.quorum
    if isinstance(quorum, Unknown):
        return NotYet(f"a leader of the quorum ({quorum.reason})", "the controllers", AFTER)
    answering = [node for node, answer in world.live.controllers.items() if isinstance(answer, NodeAnswer)]
    least = max(1, quorum.high_watermark - gates.VOTER_LAG)
    near = [voter for voter in quorum.voters if voter.id in answering and voter.log_end_offset >= least]
    if quorum.high_watermark <= 0 or len(near) < majority(len(world.inventory.controllers)):
        return NotYet(
            f"a majority of the controllers to keep up with high watermark {quorum.high_watermark}",
            f"leader {int(quorum.leader)}",
            AFTER,
            progress=str([voter.log_end_offset for voter in quorum.voters]),
        )
    return flagged(world)


@requires("no controller runs, and none answers")
def controllers_gone(world: World) -> Readiness:
    down = stopped(world, facts.controllers(world))
    if isinstance(down, Unknown):
        return down
    if isinstance(world.live, Unknown):
        return world.live
    alive = sorted(set(facts.controllers(world)) - set(down))
    if alive:
        return Refused(f"controllers {alive} run: what is deleted under them they claim again")
    answering = [int(node) for node, answer in world.live.controllers.items() if isinstance(answer, NodeAnswer)]
    if answering:
        return Refused(f"controllers {answering} answer, though their processes here are stopped: who runs them?")
    return Ready()


@requires(lambda discarded: f"after a copy, ZooKeeper holds what the metadata holds{_but(discarded)}")
def zookeeper_equal(world: World, discarded: Collection[DifferenceName]) -> Readiness:
    """ZooKeeper holds what the metadata holds, but for the differences that the plan gives up by name.

    The offset in /migration is what the comparison waits for, and proves nothing by itself: Kafka 3.9 moves it on past
    a write that failed (`KRaftMigrationDriver.MetadataChangeEvent`).  Before a copy there is nothing to compare.
    Without a majority nobody answers for the metadata: what the stopped controllers' logs say is asked later.
    """
    down = stopped(world, facts.controllers(world))
    if isinstance(down, Unknown):
        return down
    if len(facts.controllers(world)) - len(down) < majority(len(facts.controllers(world))):
        return Ready()
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", AFTER)
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    znode = world.zookeeper.migration
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION or not isinstance(znode, MigrationZnode):
        return Ready()
    writable = gates.all_writable(world)
    if znode.sync_pending(world.kraft.epoch) and not isinstance(writable, Ready):
        return writable  # nothing is written and nothing can be compared before it is removed
    if 0 < znode.offset < world.kraft.offset:
        return NotYet(  # without the metadata's own offset: that one moves twice a second, whatever dual write does
            f"dual write to reach the committed metadata (/migration is at metadata offset {znode.offset})",
            "the active controller",
            "`kraft-migrate status` says what holds it; if it lasts, look for `Encountered ZooKeeper error` and `zk "
            "migration fault` in the active controller's log",
            progress=str(znode.offset),
        )
    return equal_but(world, discarded) if znode.copied else Ready()


def equal_but(world: World, discarded: Collection[DifferenceName], remedy: str = REPAIR) -> Readiness:
    """A comparison of ZooKeeper with the metadata has no difference but those that the plan gives up by name (pure).

    Registrations of brokers do not count: no controller writes them, each broker registers itself.
    """
    report = world.diff
    if isinstance(report, Awaited):
        return report
    if isinstance(report, Unknown):
        return Unknown(f"ZooKeeper was not compared with the metadata: {report.reason}")
    lasting = report.standing(discarded)
    if lasting:
        return Refused(
            f"ZooKeeper and the metadata differ in {plural(len(lasting), 'place')}, and a rollback keeps what "
            f"ZooKeeper has. {_told(lasting)} {remedy} To give the differences up by name: {world.give_up}",
            ("B-MIG-06",),
        )
    if report.uncovered_cut:
        return Refused("more differences were counted than are listed: they cannot be discarded by name", ("B-MIG-06",))
    if not report.compared:
        return Unknown(NOTHING_COMPARED)
    moving = [row for row in report.unsettled if row.kind != REGISTRATION]
    if moving:
        row, *_ = moving
        return NotYet(
            f"{plural(len(moving), 'field')} to stop changing while both sides are read: "
            f"{row.kind} {row.key} {row.field}",
            "whoever changes it",
            "let it rest, so that it can be compared",
        )
    return Ready()


def _told(rows: Iterable[Difference]) -> str:
    by_cause: dict[Cause, list[Difference]] = {}
    for row in rows:
        by_cause.setdefault(cause_of(row), []).append(row)
    said = []
    for cause, found in by_cause.items():
        names = "; ".join(
            f"{DifferenceName.of(row)} (ZooKeeper {row.zookeeper or 'nothing'}, metadata {row.kraft or 'nothing'})"
            for row in found[:NAMED]
        )
        more = f" and {len(found) - NAMED} more (`kraft-migrate diff` lists all)" if len(found) > NAMED else ""
        said.append(f"{names}{more}. Cause: {cause.cause}. To do: {cause.what_to_do}.")
    return " ".join(said)


@requires(
    lambda discarded: f"after a copy, ZooKeeper holds what the stopped controllers have committed{_but(discarded)}"
)
def stopped_equal(world: World, discarded: Collection[DifferenceName]) -> Readiness:
    """ZooKeeper holds what the stopped controllers committed, but for the differences that the plan gives up by name.

    Asked of their logs, field by field, until /controller is handed back: afterwards ZooKeeper continues without them.
    """
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    view = world.zookeeper
    if view.copy_note is None:
        return Ready()  # nothing was ever copied: what ZooKeeper has is all that there is
    if not view.kraft_owns:
        return Ready()
    logs = world.metadata_logs
    unproven = logs if isinstance(logs, Unknown) else logs.end
    if isinstance(unproven, Awaited):
        return unproven
    lost = world.lost_logs
    if isinstance(unproven, Unknown) and not lost:
        return Unknown(
            f"whether ZooKeeper has all that the controllers committed is not known ({unproven.reason}): make their "
            "metadata directories readable, or start them again with the flag, and plan the rollback again"
        )
    return equal_but(world, discarded, REPAIR if lost else START_AGAIN)


@requires("what is needed once no controller leads was tried: units, logs, commands, znodes")
def rehearsed(world: World) -> Readiness:
    """What steps need while no controller leads was tried while one does, and every unit can be stopped.

    Asked first with the quorum lost, a right that is missing would leave the cluster without a controller.
    """
    return gates.first(
        gates.units_obey(world, [node.id for node in world.inventory.controllers]),
        _logs_readable(world),
        _commands_allowed(world),
        _znodes_allowed(world),
    )


def _logs_readable(world: World) -> Readiness:
    logs = world.metadata_logs
    if world.inventory.executor == "manual":  # a person is asked to bring them, once they are stopped
        return Ready()
    if isinstance(logs, MetadataLogs) or (isinstance(logs, Growing) and logs.rehearsed):
        return Ready()
    return Unknown(
        f"the controllers' metadata logs cannot be read ({logs.reason}), and they are read once no controller leads: "
        "make them readable first (`doctor --hosts` says what is missing). "
        "No controller was stopped"
    )


def _commands_allowed(world: World) -> Readiness:
    if world.inventory.executor not in ("local", "ssh"):
        return Ready()
    if isinstance(world.host_rights, Unknown):
        return world.host_rights
    refused = [f"{what} ({advice})" for what, advice in denied(world.host_rights)]
    if refused:
        return Refused(f"commands that are needed once no controller leads are not allowed: {'; '.join(refused)}")
    for node in world.inventory.controllers:
        found = world.host_rights.get(node.id, Unknown("not checked"))
        if isinstance(found, Unknown):
            return Unknown(f"what is allowed on the host of controller {int(node.id)} is not known: {found.reason}")
    return Ready()


def _znodes_allowed(world: World) -> Readiness:
    if isinstance(world.rehearsal, Unknown):
        return Unknown(f"whether ZooKeeper lets this identity take control back is not known: {world.rehearsal.reason}")
    return Refused(world.rehearsal) if world.rehearsal else Ready()


# -- znodes ------------------------------------------------------------------------------------------------------
@requires("somebody owns /controller")
def owned(world: World) -> Readiness:
    """Somebody has /controller: between two owners nobody can be told to go."""
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    match world.zookeeper.controller:
        case ControllerZnode():
            return Ready()
        case NoZnode():
            return NotYet("somebody to own /controller", "the brokers in ZooKeeper or migration mode", AFTER)
        case unknown:
            return unknown


@requires("/migration is gone, and a broker owns /controller")
def zookeeper_controls(world: World) -> Readiness:
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    view = world.zookeeper
    if not isinstance(view.migration, NoZnode):
        return Refused(f"/migration is still there ({view.migration})", ("B-ZKN-01",))
    match view.controller:
        case ControllerZnode(ephemeral=True, id=owner) if view.owner_fenced:
            what = (
                f"/controller_epoch was written since broker {owner} claimed /controller: ZooKeeper refuses its writes"
            )
            return Refused(f"{what}. Plan the rollback again, for a new election")
        case ControllerZnode(ephemeral=True, kraft_epoch=-1) as owner if NodeId(owner.id) in view.brokers:
            return Ready()
        case ControllerZnode(ephemeral=False):
            return Refused(f"/controller still belongs to a KRaft controller ({view.controller})")
        case Unknown() as unknown:
            return unknown
        case found:
            return NotYet(
                f"a broker to claim /controller (now: {found})",
                "the brokers in ZooKeeper or migration mode",
                "nothing: one of them claims it within a second",
                progress=str(found),
            )


@requires(f"every running broker names the owner of /controller in {ANSWERS} answers of {ANSWERS}")
def controller_named(world: World) -> Readiness:
    """Every broker that runs names the owner of /controller in each of its answers.

    One that still believes in the dead KRaft controller would hang 300 s in its controlled shutdown.
    """
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    if isinstance(world.live, Unknown):
        return world.live
    down = stopped(world, facts.brokers(world))
    if isinstance(down, Unknown):
        return down
    owner = world.zookeeper.controller
    if not isinstance(owner, ControllerZnode):
        return NotYet("a broker to claim /controller", "the brokers", AFTER)
    for broker in (node for node in facts.brokers(world) if node not in down):
        answer = world.live.metadata.get(NodeId(broker), Unknown("it was not asked"))
        if isinstance(answer, Unknown):
            return NotYet(f"broker {broker} to answer ({answer.reason})", f"broker {broker}", AFTER)
        named = answer.controller_ids
        if len(named) < ANSWERS:
            return Unknown(f"broker {broker} was asked {len(named)} times who its controller is; {ANSWERS} prove it")
        if set(named) != {owner.id}:
            return NotYet(
                f"broker {broker} to name broker {owner.id}, which owns /controller, in {ANSWERS} answers of {ANSWERS} "
                f"(now in {named.count(owner.id)})",
                f"broker {broker}",
                "nothing: it learns it from ZooKeeper within seconds",
                progress=str(named.count(owner.id)),
            )
    return Ready()


@requires("broker {0} has no ZooKeeper session, if it is down")
def session_ended(world: World, broker: int) -> Readiness:
    """A stopped broker's session is over: started before, it fails with NodeExists on its own registration."""
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    down = stopped(world, [broker])
    if isinstance(down, Unknown):
        return down
    if down and NodeId(broker) in world.zookeeper.brokers:
        return NotYet(
            f"the ZooKeeper session that broker {broker} left to end",
            "ZooKeeper",
            "nothing: it ends after zookeeper.session.timeout.ms",
        )
    return Ready()


# -- brokers -----------------------------------------------------------------------------------------------------
@requires("every partition has its full ISR; if broker {0} is down, what brokers that are down hold may be missing")
def whole_before(world: World, broker: int) -> Readiness:
    """Nothing is missing while this broker runs; every stopped one may be if it is stopped itself."""
    found = stopped(world, facts.brokers(world))
    if isinstance(found, Unknown):
        return found
    return gates.whole_but(world, found if broker in found else ())


def whole_after(world: World, broker: int) -> Readiness:
    """It is whole again, but for brokers that were down before and have their turn still to come."""
    found = stopped(world, facts.brokers(world))
    if isinstance(found, Unknown):
        return found
    return gates.whole_but(world, frozenset(found) - {broker})


@requires("no broker is in KRaft mode")
def none_runs_kraft(world: World) -> Readiness:
    """Every broker is back: no file and no process is of KRaft mode, and no such registration is left of one that runs.

    Where no controller can be read a process that is not known is let pass: it was asked while they were up.
    """
    if isinstance(world.services, Unknown):
        return world.services
    found = positions(world)
    for one in found:
        if isinstance(one.file, Unknown):
            return one.file
        if isinstance(one.furthest, Unknown) and not isinstance(world.kraft, Unknown):
            return one.furthest
    still = [int(one.broker) for one in found if one.furthest is Mode.KRAFT]
    if still:
        return Refused(f"brokers {still} are in KRaft mode: they go back first, while the controllers are up")
    return Ready()
