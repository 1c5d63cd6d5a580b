"""No decision rests on wall time: clocks that jump end no soak early, lengthen none, and break no wait."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.model.history import Event
from migrate.model.outcome import NotYet, Unknown
from migrate.run.clock import SystemClock
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.elapsed import reading, since_last_roll
from migrate.run.engine import Engine, Machinery
from migrate.run.journal import Journal
from migrate.run.waits import UNSEEN_SECONDS, Wait
from tests.run.test_engine import NoLock, plan_for
from tests.testing.simulated import FakeClock, KillAt, SimulatedCluster

DAY = 86_400.0


@dataclass(slots=True)
class Jumping(FakeClock):
    """Its wall time jumps by whole days at every look; what it counts by does not."""

    days: tuple[float, ...] = (400.0, -800.0, 3.0)
    looks: int = 0
    host: str = "boot"

    def now(self) -> float:
        """Somebody sets the clock all the time."""
        self.looks += 1
        return self.time + DAY * self.days[self.looks % len(self.days)]

    def boot(self) -> str:
        """Until the host is restarted."""
        return self.host


def ended(clock: FakeClock, stage: str = "kraft-mode") -> Event:
    """The conclusion of a step."""
    return Event(1, clock.now(), "conclude", {"step": f"{stage}/1", "stage": stage, **reading(clock)})


def began(clock: FakeClock) -> Event:
    """The first line of a session."""
    return Event(0, clock.now(), "session", {"pid": 1, **reading(clock)})


def test_a_soak_lasts_as_long_as_it_lasts() -> None:
    """By the clock that nobody sets, whatever the other one says."""
    clock = Jumping()
    events = [began(clock), ended(clock, "hybrid"), ended(clock)]
    clock.sleep(7)
    assert since_last_roll(events, clock) == pytest.approx(7)
    assert since_last_roll([*events, began(clock)], clock) == pytest.approx(7), "a run started again goes on counting"
    assert since_last_roll([], clock) is None


def test_after_a_reboot_it_begins_again() -> None:
    """Nobody knows for how long the host was down."""
    clock = Jumping()
    events = [began(clock), ended(clock)]
    clock.sleep(1000)
    clock.host = "another boot"
    assert since_last_roll(events, clock) == 0.0
    events.append(began(clock))
    clock.sleep(3)
    assert since_last_roll(events, clock) == pytest.approx(3)


def test_a_journal_of_another_run_proves_dual_write_from_its_own_first_session_on() -> None:
    """Who rolled the brokers is not in it."""
    clock = Jumping()
    events = [began(clock)]
    clock.sleep(5)
    events.append(began(clock))
    clock.sleep(5)
    assert since_last_roll(events, clock) == pytest.approx(10)


def test_a_whole_migration_under_a_clock_that_jumps_ends_as_any(tmp_path: Path) -> None:
    """Days forward and back at every line of the journal."""
    cluster, clock = SimulatedCluster.in_zookeeper_mode(), Jumping()
    plan = plan_for(cluster)
    journal = Journal.begin(tmp_path / "journal.jsonl", clock.now(), {"plan": plan.fingerprint})
    hands = Hands(
        cluster, cluster, lambda: cluster, cluster.drive, cluster.restore_leaders, not_storing=cluster.not_storing
    )
    crash = KillAt()
    effects = JournaledEffects(hands, journal, NoLock(), clock, tmp_path, crash)  # type: ignore[arg-type]
    Engine(plan, Machinery(cluster, effects, journal, NoLock(), clock, lambda _: 60.0, lambda _: None)).run()
    journal.close()
    assert cluster.finalized
    assert clock.time - 1_000_000 == pytest.approx(1.0, abs=0.5), "one second of soak was asked for, and waited"


def test_what_is_unseen_is_looked_for_again_and_then_an_answer() -> None:
    """Half a minute, whatever the wall clock does; a wait for something that comes is no part of it."""
    clock, lines = Jumping(), list[str]()
    wait = Wait("migration-mode/1", clock, 600.0, lambda name, **data: lines.append(f"{name}: {data['what']}"))
    began_at, looks = clock.time, 0
    while not wait.is_over(Unknown("broker 2 did not answer")):
        looks += 1
    assert clock.time - began_at == pytest.approx(UNSEEN_SECONDS)
    assert looks == UNSEEN_SECONDS
    assert lines == ["waiting: what cannot be seen: broker 2 did not answer"]
    other = Wait("migration-mode/1", clock, 600.0, lambda *_, **__: None)
    for number in range(100):
        assert not other.is_over(Unknown("now and then"))
        assert not other.is_over(NotYet("the ISR", "brokers", "nothing", progress=str(number)))


def test_the_systems_clock_counts_while_it_sleeps_and_names_its_boot() -> None:
    """CLOCK_BOOTTIME, and the kernel's own id."""
    clock = SystemClock()
    before = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.01
    assert clock.boot() == SystemClock().boot() != ""
