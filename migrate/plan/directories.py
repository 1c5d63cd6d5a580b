"""Plans for a KRaft cluster's log directories: more of them, or the same ones away again (pure).

Where the cluster stands is read off the brokers' files: a plan is made of the brokers that still lack, or still have,
what the playbook names, so that a run which was cut short is planned anew as its rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from migrate import checks
from migrate.errors import DirectoriesRefused, NothingToPlan
from migrate.model.detect import Detected
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.new_directories import release_of
from migrate.model.outcome import Ready, Refused, Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.step import Step
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.plan.build import plan_of_one_roll
from migrate.steps import facts
from migrate.steps.directories import gates
from migrate.steps.directories.steps import (
    SEPARATOR,
    AddDirectories,
    KeepDirectoryFiles,
    ProveDirectories,
    RemoveDirectories,
)
from migrate.steps.gates import first

PLANNED_ON: Final = frozenset(
    {Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.LEDGER, Need.NEW_DIRECTORIES}
)
SHOWN: Final = 5
MOVE: Final = (
    "move them to another directory of that broker with `kafka-reassign-partitions.sh` (`log_dirs` of its file names "
    "the directory), `--verify` it, then plan again"
)


def build(world: World, playbook: Playbook, *, created: float, back: bool = False) -> Plan:
    """The plan that gives each broker what it lacks of the playbook's directories; with `back`, takes them away.

    Raises:
        NothingToPlan: the metadata or a broker's file is not visible, or ZooKeeper is part of the cluster.
        DirectoriesRefused: a directory cannot be used, or replicas lie in one that is to go.
    """
    release = _release(world)
    due = _due(world, playbook, back=back)
    refused = list(_against(world, due, back=back))
    if refused:
        more = f" (and {len(refused) - SHOWN} more)" if len(refused) > SHOWN else ""
        raise DirectoriesRefused(
            "; ".join(why for why, _ in refused[:SHOWN]) + more,
            where=playbook.path,
            next_step=next((fix for _, fix in refused if fix), ""),
        )
    lacking = "still have some of" if back else "lack some of"
    brokers = plural(len(facts.brokers(world)), "broker")
    how = f"KRaft alone; {len(due)} of {brokers} {lacking} the playbook's directories"
    return plan_of_one_roll(
        world,
        playbook,
        _steps(due, release, back=back),
        created=created,
        here=Detected(Stage.DIRECTORIES, None, how),
        findings=checks.told(world, target=Stage.DIRECTORIES),
        restarts=len(due),
        undo="the same roll the other way, while they have no replicas",
        back=back,
        checked=len(checks.asked(world)),
    )


def _release(world: World) -> str:
    if isinstance(world.kraft, Unknown):
        raise NothingToPlan(
            f"the metadata cannot be read: {world.kraft.reason}", next_step="make the controllers answer"
        )
    found = first(gates.kraft_alone(world), gates.version_fits(world))
    if not isinstance(found, Ready):
        raise NothingToPlan(str(getattr(found, "reason", found)), next_step="do that, then give the same command again")
    release = release_of(world.kraft)
    if isinstance(release, Unknown):
        raise NothingToPlan(release.reason, next_step="use a version of this tool that knows it")
    return release


def _due(world: World, playbook: Playbook, *, back: bool) -> dict[int, tuple[str, ...]]:
    due: dict[int, tuple[str, ...]] = {}
    for broker in facts.brokers(world):
        here = gates.listed(world, broker)
        if isinstance(here, Unknown):
            raise NothingToPlan(here.reason)
        wanted = playbook.new_directories.get(NodeId(broker), ())
        paths = tuple(path for path in wanted if (os.path.normpath(path) in here) is back)
        if paths:
            due[broker] = paths
    return due


def _against(world: World, due: dict[int, tuple[str, ...]], *, back: bool) -> Iterator[tuple[str, str]]:
    for broker, paths in due.items():
        if not back:
            yield from _told(gates.fit_to_format(world, broker, paths), "")
            continue
        yield from _told(gates.not_metadata(world, broker, paths), "")
        yield from _told(gates.holds_nothing(world, broker, paths), MOVE)


def _told(found: object, fix: str) -> Iterator[tuple[str, str]]:
    if isinstance(found, Refused | Unknown):
        yield found.reason, fix if isinstance(found, Refused) else ""


def _steps(due: dict[int, tuple[str, ...]], release: str, *, back: bool) -> Iterator[Step]:
    yield from (KeepDirectoryFiles(broker) for broker in due)
    for broker, paths in due.items():
        joined = SEPARATOR.join(paths)
        yield RemoveDirectories(broker, joined) if back else AddDirectories(broker, joined, release)
    yield ProveDirectories("no" if back else "yes")
