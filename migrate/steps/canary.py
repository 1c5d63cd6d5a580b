"""The soak behind a canary: the first broker of a roll is watched for a while before the next one is restarted.

The time counts only while everything holds and somebody looks: what breaks meanwhile (an ISR, the broker, its
directories, the clients' error budget) is waited for, and then the time begins anew, as it does in a new session.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from migrate.model.broker_modes import Mode, positions
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NotBegun, Progress
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.base import BaseStep
from migrate.steps.disks import with_sick_disks
from migrate.steps.roll_broker import SEEN, can_be_unfenced, is_registered

HELD: Final = "held"  # the fact: for how many seconds this step's look has found nothing wrong
CLOCK: Final = "the clock"  # who is waited for while nothing is wrong
LOOK_SECONDS: Final = (1.0, 30.0)  # between two looks: of the shortest soak, of the longest


@dataclass(frozen=True, slots=True)
class CanarySoak(BaseStep):
    """What both rolls share: `broker` was restarted first, `seconds` must pass in which everything holds."""

    broker: int
    seconds: float

    goal: ClassVar[str] = ""
    proof_needs: ClassVar[frozenset[Need]] = SEEN | {Need.LEDGER}
    waits_for: ClassVar[frozenset[Need]] = frozenset()  # its looks are the proof
    proof: ClassVar[str] = (
        "for the whole time every ISR was full, the canary registered with its directories, and the error budget kept"
    )

    @property
    def id(self) -> str:
        """`kraft-mode/canary-2`."""
        return f"{self.stage.label}/canary-{self.broker}"

    @property
    def title(self) -> str:
        """How long, and for whom."""
        return f"watch broker {self.broker}, the canary of the roll, for {self.seconds:g} s before the next one"

    def progress(self, world: World) -> Progress:
        """Where another broker was restarted after it, it was watched, or somebody decided to go on."""
        if any(one.now is self.goal for one in positions(world) if one.broker != self.broker):
            return AlreadyDone(f"another broker is in {self.goal} mode already")
        return NotBegun()

    @abstractmethod
    def holds(self, world: World) -> Readiness:
        """What was proven of the canary, looked at again."""

    def verify(self, world: World) -> Outcome:
        """Nothing is wrong now, and nothing was for so long."""
        found = with_sick_disks(world, self.broker, self.holds(world))
        if not isinstance(found, Ready):
            return found
        if HELD not in world.facts:
            return Unknown("for how long everything has held was not measured")
        held = float(world.facts[HELD])
        if held < self.seconds:
            return NotYet(
                f"the soak of canary {self.broker} to last {self.seconds:g} s (so far {held:.0f} s without a fault)",
                CLOCK,
                "nothing: the next broker follows by itself; a fault meanwhile begins the time anew",
                progress=f"{held:.0f}",
                pace=self.pace(held),
            )
        return gates.as_outcome(
            Ready(), f"{held:.0f} s without a fault: every ISR full, broker {self.broker} as it was proven"
        )

    def pace(self, held: float) -> float:
        """Seconds to the next look."""
        return max(0.1, min(max(LOOK_SECONDS[0], self.seconds / 100), LOOK_SECONDS[1], self.seconds - held))


@dataclass(frozen=True, slots=True)
class CanaryInMigrationMode(CanarySoak):
    """Behind the first broker of roll 1."""

    kind: ClassVar[str] = "canary-in-migration-mode"
    stage_is: ClassVar[Stage] = Stage.MIGRATION_MODE
    goal: ClassVar[Mode] = Mode.MIGRATION
    undo: ClassVar[str] = "one roll back to ZooKeeper mode of that broker, with the backed-up file"

    def holds(self, world: World) -> Readiness:
        """Registered as migrating, its disks healthy; the controllers wait for the others; ISRs full."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION),
            is_registered(world, self.broker, migrating=True),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )


@dataclass(frozen=True, slots=True)
class CanaryInKraftMode(CanarySoak):
    """Behind the first broker of roll 2."""

    kind: ClassVar[str] = "canary-in-kraft-mode"
    stage_is: ClassVar[Stage] = Stage.KRAFT_MODE
    goal: ClassVar[Mode] = Mode.KRAFT
    undo: ClassVar[str] = "roll that broker back to migration mode while the controllers are up"

    def holds(self, world: World) -> Readiness:
        """Registered in KRaft mode, every replica of it VERIFIED; ISRs full."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            is_registered(world, self.broker, migrating=False),
            gates.disks_healthy(world, self.broker),
            can_be_unfenced(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
