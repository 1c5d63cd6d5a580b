"""The rollback to ZooKeeper mode, as a pure protocol: one procedure, whatever the state it begins in.

Order (each part seen to be needed): KRaft brokers back into migration mode while the controllers are up; all
controllers down once ZooKeeper holds everything; partition states' versions and `/controller_epoch` raised;
`/controller`, then `/migration` deleted; brokers out of migration mode once they believe in the new controller; the
controllers' metadata set aside.
"""

from __future__ import annotations

from tests.oracles.machine.moves import EVERY, Act, Choice, Done, Guard, Guards, Move, Moves, Stop, Wait, on_each
from tests.oracles.machine.roll import roll
from tests.oracles.machine.standing import ControllerAt, Flag, Metadata, Mode, Owner, Standing, Views, Znode


def back(standing: Standing, guards: Guards = EVERY) -> Choice:
    """What may be done next on the rollback to ZooKeeper mode."""
    for rule in (_blocked, _accident, _out_of_kraft, _start_the_one_down, _no_controllers, _znodes, _last_roll, _aside):
        choice = rule(standing, guards)
        if choice is not None:
            return choice
    return Done()


def _blocked(standing: Standing, guards: Guards) -> Choice | None:
    if standing.metadata is Metadata.POST_MIGRATION and Guard.NO_RETURN in guards:
        return Stop("the metadata says POST_MIGRATION: there is no rollback", Guard.NO_RETURN)
    if standing.finalizing and any(map(_without_flag, standing.controllers)) and Guard.NO_RETURN in guards:
        return Stop("finalize has started a controller without the flag: there is no rollback", Guard.NO_RETURN)
    if Guard.STALENESS in guards and not all(entry.ours for entry in standing.brokers):
        return Stop("a broker's file is not what the plan was made from", Guard.STALENESS)
    return None


def _accident(standing: Standing, guards: Guards) -> Choice | None:
    """A controller that another hand started without the flag goes first, before it can be elected.

    Then every file gets its flag back: what is started later, by whomever, must not finalize.
    """
    nodes = [n for n, entry in enumerate(standing.controllers) if _without_flag(entry)]
    if nodes:
        return on_each(Act.STOP_CONTROLLER, nodes)
    files = [n for n, entry in enumerate(standing.controllers) if entry.file is Flag.OFF]
    return on_each(Act.FLAG_ON, files) if files else None


def _without_flag(entry: ControllerAt) -> bool:
    """Does it run without the flag, or did it and will it again?"""
    return entry.process is Flag.OFF or (entry.file is Flag.OFF and entry.returns)


def _out_of_kraft(standing: Standing, guards: Guards) -> Choice | None:
    """Brokers in KRaft mode need controllers that dual-write, also to leave it."""
    if not any(Mode.KRAFT in (entry.file, entry.process) for entry in standing.brokers):
        return None
    if Guard.KRAFT_FIRST not in guards:
        return None
    down = _bring_controllers_up(standing)
    return down if down is not None else roll(standing, Mode.MIGRATION, guards)


def _bring_controllers_up(standing: Standing) -> Choice | None:
    """With their own metadata."""
    down = [n for n, entry in enumerate(standing.controllers) if entry.formatted and not entry.process]
    if down:
        return on_each(Act.START_CONTROLLER, down)
    return Wait("the quorum's leader") if standing.metadata is Metadata.UNKNOWN else None


def _start_the_one_down(standing: Standing, guards: Guards) -> Choice | None:
    """A broker that is stopped with a file it can start with is started while its controller is still there."""
    if not standing.any_controller_up:
        return None  # the znodes first: what is half way then is the last roll's
    for number, entry in enumerate(standing.brokers):
        joins = entry.file is Mode.MIGRATION or standing.owner is Owner.ZOOKEEPER
        if entry.process is Mode.DOWN and joins:
            if not entry.healthy and Guard.DISKS in guards:
                continue
            if entry.session_left and Guard.SESSION in guards:
                return Wait("the ZooKeeper session of the broker's last process to end")
            return Moves((Move(Act.START, number),))
    return None


def _no_controllers(standing: Standing, guards: Guards) -> Choice | None:
    """All controllers down, the active one last, and only when ZooKeeper has everything."""
    up = [n for n, entry in enumerate(standing.controllers) if entry.process or entry.returns]
    dual = standing.metadata is Metadata.MIGRATION and standing.znode is Znode.COPIED
    if up:
        if dual and standing.views is not Views.EQUAL and Guard.DUAL_WRITE in guards:
            if standing.views is Views.DIFFER:
                return Stop("ZooKeeper and the metadata differ", Guard.DUAL_WRITE)
            return Wait("dual write, and a comparison")
        if standing.metadata is Metadata.UNKNOWN and _behind(standing) and Guard.DUAL_WRITE in guards:
            return _bring_controllers_up(standing)
        if standing.owner is Owner.KRAFT and Guard.CONTROLLERS_GONE not in guards:
            return Moves((Move(Act.DELETE_CONTROLLER),))
        followers = [n for n in up if not standing.controllers[n].leads]
        return on_each(Act.STOP_CONTROLLER, followers or up)
    if _behind(standing) and Guard.DUAL_WRITE in guards:
        return _bring_controllers_up(standing)  # the last one stopped before it wrote all: let them finish
    return None


def _behind(standing: Standing) -> bool:
    """Is it known that the controllers went before ZooKeeper had everything?  Their logs on disk are compared too."""
    copied = standing.owner is Owner.KRAFT and standing.znode is Znode.COPIED
    return copied and standing.views in (Views.BEHIND, Views.DIFFER)


def _znodes(standing: Standing, guards: Guards) -> Choice | None:
    """Partition states' versions, `/controller_epoch`, then `/controller`, then `/migration`."""
    if standing.versions_low and Guard.VERSIONS in guards:
        return Moves((Move(Act.RAISE_VERSIONS),))
    if standing.owner is Owner.KRAFT:
        if standing.epoch_low and Guard.EPOCH in guards:
            return Moves((Move(Act.RAISE_EPOCH),))
        return Moves((Move(Act.DELETE_CONTROLLER),))
    if standing.znode is not Znode.ABSENT and Guard.MIGRATION_GONE in guards:
        return Moves((Move(Act.DELETE_MIGRATION),))
    return None


def _last_roll(standing: Standing, guards: Guards) -> Choice | None:
    """Out of migration mode, once every broker names the new controller."""
    if standing.owner is Owner.NOBODY and any(entry.process for entry in standing.brokers):
        return Wait("a broker to take /controller")
    if Guard.BELIEF in guards and any(entry.believes_kraft for entry in standing.brokers if entry.process):
        return Wait("every broker to name the owner of /controller as its controller")
    return roll(standing, Mode.ZOOKEEPER, guards)


def _aside(standing: Standing, guards: Guards) -> Choice | None:
    """The controllers' metadata is renamed, never deleted."""
    nodes = [n for n, entry in enumerate(standing.controllers) if entry.formatted]
    return on_each(Act.SET_ASIDE, nodes) if nodes else None
