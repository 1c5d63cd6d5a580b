"""Plans that retire ZooKeeper after the cleanup: who uses it, a last archive, each server stopped for good (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate import checks
from migrate.errors import NothingToPlan
from migrate.model.detect import detect
from migrate.model.ensemble import Ensemble
from migrate.model.inventory import Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.step import Step
from migrate.model.world import World
from migrate.plan.build import plan_of, planned_steps
from migrate.plan.summary import summarize
from migrate.steps.retire import LOOK, ArchiveZookeeper, ProveRetired, ProveUnused, RetireServer

PLANNED_ON = LOOK


@dataclass(frozen=True, slots=True)
class Cleaned:
    """When a run of this cluster proved its cleanup, in seconds since the epoch, and which one."""

    at: float
    run: str


def build(world: World, playbook: Playbook, cleaned: Cleaned | None, *, created: float) -> Plan:
    """The plan for what is left to do of it.

    Raises:
        NothingToPlan: the cleanup is not proven, or ZooKeeper cannot be seen, or does not serve and is not stopped.
    """
    here, seen = detect(world), world.ensemble
    if isinstance(here, Unknown) or here.stage < Stage.FINALIZE or cleaned is None:
        stands = here.reason if isinstance(here, Unknown) else f"the cluster is at {here.words} ({here.how})"
        raise NothingToPlan(
            f"no journal in {world.inventory.runs} says when the cleanup was proven; {stands}",
            why="keep_zookeeper counts from there, and before it brokers or this tool need ZooKeeper",
            next_step="`kraft-migrate plan PLAYBOOK --stage cleanup` first, and apply it with the same inventory",
        )
    if isinstance(seen, Unknown):
        raise NothingToPlan(f"ZooKeeper's servers cannot be seen: {seen.reason}")
    steps = tuple(_steps(seen, cleaned.at + playbook.keep_zookeeper))
    return plan_of(
        world,
        playbook,
        created=created,
        target=Stage.RETIRE_ZOOKEEPER,
        steps=planned_steps(steps, world),
        findings=checks.told(world, target=Stage.RETIRE_ZOOKEEPER),
        summary=replace(summarize(world, playbook, here), rollback=(), checks=len(checks.asked(world))),
    )


def _steps(seen: Ensemble, until: float) -> Iterator[Step]:
    """A server that is retired already has no step; where all are, the end is proven once more."""
    due = [server for server in seen.servers if not server.retired]
    if due and not seen.serves:
        states = "; ".join(
            server.listens.reason if isinstance(server.listens, Unknown) else server.address for server in due
        )
        raise NothingToPlan(
            f"ZooKeeper does not serve, and is not stopped for good: {states}",
            why="without a quorum no last archive can be made",
            next_step="apply the plan that stopped its servers once more; or start its servers, then plan again",
        )
    if due:
        yield ProveUnused(until)
        yield ArchiveZookeeper()
    yield from (RetireServer(server.address) for server in due if server.unit is not None)
    where = (f"{server.address} {' and '.join(server.data)}" for server in seen.servers if server.data)
    yield ProveRetired("; ".join(where))
