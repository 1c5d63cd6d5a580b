"""Gates with a sentence each: a step names those before it once, its `check` asks them, and the plan shows them.

Each is made when it is asked for.  What several kinds of steps need is here; what one needs is beside that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from migrate.model.outcome import Readiness, Ready
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.world import World
from migrate.steps import disks, gates


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that must hold before a step begins: in a sentence for the plan, and as the look that decides it."""

    requires: str
    holds: Callable[[World], Readiness]


def all_open(found: Iterable[Gate], world: World) -> Readiness:
    """The first that is not open, by `gates.first`; every one is asked."""
    return gates.first(*(gate.holds(world) for gate in found))


def one_by_one(found: Iterable[Gate], world: World) -> Readiness:
    """The first that is not open; none behind it is asked."""
    answers = (gate.holds(world) for gate in found)
    return next((answer for answer in answers if not isinstance(answer, Ready)), Ready())


def no_blockers(stage: Stage, besides: frozenset[str] = frozenset(), down: int | None = None) -> Gate:
    said = f" (but {' and '.join(sorted(besides))}, which say what the step itself brings about)" if besides else ""
    return Gate(
        f"no check finds a blocker of stage {stage.label}{said}, and every check that could find one was made",
        lambda world: gates.no_blockers(world, stage, down=down, besides=besides),
    )


def state_is(*states: ZkMigrationState) -> Gate:
    words = " or ".join(state.name for state in states)
    return Gate(f"the metadata says {words}", lambda world: gates.state_is(world, *states))


def moves_ended() -> Gate:
    return Gate("no replica is moved between log directories", disks.ended)


def disks_healthy(broker: int) -> Gate:
    return Gate(f"every log directory of broker {broker} is healthy", lambda world: gates.disks_healthy(world, broker))


def stop_is_accepted(broker: int) -> Gate:
    return Gate(
        f"a stop of broker {broker} makes no topic unavailable but those that the playbook accepts",
        lambda world: gates.stop_is_accepted(world, broker),
    )


def quorum_healthy() -> Gate:
    return Gate(
        "the quorum has a leader, every controller answers, and every voter has caught up", gates.quorum_healthy
    )


def replicas_full() -> Gate:
    return Gate("every broker sees all brokers and every partition with its full ISR", gates.replicas_full)


def views_equal() -> Gate:
    return Gate(
        "ZooKeeper and the metadata are equal, but for differences that are expected or accepted", gates.views_equal
    )
