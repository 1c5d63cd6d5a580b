"""Plans for inter.broker.protocol.version before a migration: raised to 3.9, or the files from before again (pure).

Where the cluster stands is read off the brokers' files and their own words, so that a run that was cut short is planned
anew as its rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate import checks
from migrate.checks.releases import PROTOCOL
from migrate.errors import NothingToPlan
from migrate.model.config_keys import IBP
from migrate.model.detect import Detected
from migrate.model.inventory import Playbook
from migrate.model.outcome import Ready, Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.step import Step
from migrate.model.views import ConfigFile
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.plan.build import plan_of_one_roll, zookeeper_controller
from migrate.steps import facts, gates
from migrate.steps.protocol import (
    ELSEWHERE,
    KeepProtocolFiles,
    LowerProtocol,
    ProveProtocol,
    RaiseProtocol,
    in_file,
    not_begun,
    said_by,
    versions_fit,
)
from migrate.steps.restore import Restored, to_protocol
from migrate.steps.rollback import gates as rollback_gates

PLANNED_ON: Final = (RaiseProtocol.needs | {Need.SESSIONS}) - {Need.LISTENERS}  # what they serve is a proof's


def build(world: World, playbook: Playbook, *, created: float, back: bool = False) -> Plan:
    """The plan that raises the version of each broker that is below 3.9; with `back`, puts the files from before back.

    Raises:
        NothingToPlan: a migration has begun, a version is not known or not raised by this tool, or a copy is unclear.
    """
    found = not_begun(world) if back else gates.first(not_begun(world), versions_fit(world))
    if not isinstance(found, Ready):
        raise NothingToPlan(str(getattr(found, "reason", found)), next_step="do that, then give the same command again")
    due = _due_back(world) if back else _due(world)
    return plan_of_one_roll(
        world,
        playbook,
        _steps(world, due, back=back),
        created=created,
        here=Detected(Stage.PROTOCOL, None, f"ZooKeeper mode; {_told(world)}"),
        findings=tuple(
            entry
            for entry in checks.told(world, target=Stage.MIGRATION_MODE)
            if entry.blocks_from == checks.NEVER or not (back or entry.code in ELSEWHERE)
        ),
        checked=0 if back else len(checks.asked(world)),
        restarts=len(due),
        undo="the same roll with the files from before, while no migration has begun",
        back=back,
    )


def _due(world: World) -> list[int]:
    """Brokers whose file or process has an earlier version; the controller comes last, its restart moves it."""
    brokers = facts.brokers(world)
    old = [one for one in brokers if {in_file(world, one), said_by(world, one)} != {PROTOCOL}]
    return sorted(old, key=lambda broker: broker == zookeeper_controller(world))


def _due_back(world: World) -> list[int]:
    """Brokers whose file or process is not the one from before: those that are down first, the controller last."""
    due = []
    for broker in facts.brokers(world):
        file = facts.config(world, broker)
        if not isinstance(file, ConfigFile):
            raise NothingToPlan(f"the file of broker {broker} cannot be read")
        found = to_protocol(world, broker, file.raw)
        if not isinstance(found, Restored):
            raise NothingToPlan(
                found.reason,
                why="a file is restored from a copy that is proven to be the one from before, and never generated",
                next_step="see to the copies next to it, then give the same command again; or leave the version at 3.9",
            )
        if found.raw != file.raw or said_by(world, broker) != in_file(world, broker):
            due.append(broker)
    down = rollback_gates.stopped(world, due)
    if isinstance(down, Unknown):
        raise NothingToPlan(f"which processes run is unknown: {down.reason}")
    controller = zookeeper_controller(world)
    return sorted(due, key=lambda broker: (broker not in down, broker == controller))


def _told(world: World) -> str:
    """`2 brokers with 3.8, 1 broker with 3.9`, by the brokers' files."""
    versions = [str(in_file(world, broker)) for broker in facts.brokers(world)]
    counted = (f"{plural(versions.count(one), 'broker')} with {one}" for one in sorted(set(versions)))
    return f"{IBP} of the files: {', '.join(counted)}"


def _steps(world: World, due: list[int], *, back: bool) -> Iterator[Step]:
    """Forward a copy is kept of every file, also of one that stays: so a rollback knows that it was as it is."""
    if due and not back:
        yield from (KeepProtocolFiles(broker) for broker in facts.brokers(world))
    for broker in due:
        yield LowerProtocol(broker) if back else RaiseProtocol(broker)
    sessions = () if isinstance(world.zookeeper, Unknown) else world.zookeeper.brokers.values()
    since = max((entry.epoch for entry in sessions), default=0)
    yield ProveProtocol("no" if back else "yes", ",".join(map(str, due)), since)
