"""A controller that ended by Kafka's race at the first election is started once more, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import MigrateError, NoProgress, PlanStopped, ProcessSpecUnreadable
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.views import Running, ServiceState, Stopped
from migrate.run import journal as journals
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery
from migrate.run.journal import Journal
from migrate.run.last_words import KEY, STEP, died_of_it, last_words_told, rerun_after_election_race
from tests.run.test_engine import NoLock, plan_for
from tests.testing.open_gate import OpenGate
from tests.testing.simulated import FakeClock, KillAt, SimulatedCluster

BEGIN: Final = (
    "[2026-11-22 00:31:40,001] INFO Registered signal handlers for TERM, INT, HUP (o.a.k.LoggingSignalHandler)"
)
FATAL: Final = "[x] ERROR Encountered fatal fault: exception while completing controller activation (o.a.k.s.f.Handler)"
RACE: Final = (
    "java.lang.RuntimeException: Should not have ZK migrations enabled on a cluster running metadata.version 3.0-IV1"
)
OTHER: Final = RACE.replace("3.0-IV1", "3.3-IV3")
DIED: Final = (BEGIN, FATAL, RACE, "\tat org.apache.kafka.controller.ActivationRecordsGenerator.x(A.java:157)")
STOPPED: Final = PlanStopped("failed: the process of controller 3002 has ended", where=f"step {STEP}")


@dataclass
class Racing(SimulatedCluster):
    """Controller 3002 ends behind its own start, as often as told, and says why."""

    ends: list[Sequence[str]] = field(default_factory=list)  # what it says, each time that it ends
    said: Sequence[str] = ()

    def start(self, node: NodeId) -> None:
        """As any start; the one that ends is gone before anybody looks."""
        SimulatedCluster.start(self, node)
        if int(node) == 3002 and self.ends:
            self.said = self.ends.pop(0)
            del self.running[3002]

    def last_words(self, node: NodeId, lines: int) -> list[str]:
        """The end of its log."""
        return list(self.said) if int(node) == 3002 else [BEGIN]


def carried_out(cluster: Racing, folder: Path, plan: Plan | None = None) -> None:
    """The whole plan, as `carry_out` runs it, from wherever its journal stands."""
    plan, clock = plan or plan_for(cluster), FakeClock()
    path = folder / "journal.jsonl"
    journal = Journal.resume(path) if path.exists() else Journal.begin(path, 0.0, {"plan": plan.fingerprint})
    hands = Hands(cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing)
    effects = JournaledEffects(hands, journal, NoLock(), clock, folder, KillAt())  # type: ignore[arg-type] # never kills
    machinery = Machinery(cluster, effects, journal, NoLock(), clock, lambda _: 60.0, lambda _: None, OpenGate())
    try:
        with last_words_told(journal, cluster, clock):
            rerun_after_election_race(Engine(plan, machinery).run, journal, cluster, clock)
    finally:
        journal.close()


def racing(*ends: Sequence[str]) -> Racing:
    """Three brokers in ZooKeeper mode; 3002's first processes end so."""
    cluster = Racing.in_zookeeper_mode()
    cluster.ends = list(ends)
    return cluster


def notes(folder: Path) -> dict[str, str]:
    """Of its journal."""
    return journals.notes(journals.read(folder / "journal.jsonl").events)


def starts(cluster: Racing) -> list[str]:
    """Of controllers with the flag, in order."""
    return [entry for entry in cluster.done if entry.startswith("start 300") and entry.endswith(" controller")]


@pytest.mark.slow
def test_a_controller_that_ended_by_the_race_is_started_once_more_and_the_run_goes_to_its_end(tmp_path: Path) -> None:
    """No controller that lives is touched, and the journal tells it."""
    cluster = racing(DIED)
    carried_out(cluster, tmp_path)
    assert cluster.finalized
    assert starts(cluster) == [*(f"start {node} controller" for node in (3000, 3001, 3002)), "start 3002 controller"]
    assert "started once more" in notes(tmp_path)[f"{KEY}:3002"]


@pytest.mark.slow
def test_a_second_time_nobody_starts_it(tmp_path: Path) -> None:
    """It may be no race then; its own lines stand in the error.  The same command starts it, and once alone."""
    cluster = racing(DIED, DIED, DIED)
    plan = plan_for(cluster)
    with pytest.raises(PlanStopped) as caught:
        carried_out(cluster, tmp_path, plan)
    assert starts(cluster).count("start 3002 controller") == 2
    assert "controller 3002 does not run (its process on c3002): it ended after the start" in caught.value.what
    assert f"node 3002 said: {RACE}" in caught.value.why
    assert "node 3000 said" not in caught.value.why
    assert "the same command again" in caught.value.next_step
    with pytest.raises(PlanStopped):
        carried_out(cluster, tmp_path, plan)
    assert starts(cluster).count("start 3002 controller") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        (BEGIN, FATAL, OTHER),
        (BEGIN, "[x] ERROR Address already in use"),
        (*DIED, BEGIN, "[x] INFO starting"),
        (),
        (BEGIN, f"[x] INFO a client says {RACE} by itself"),
    ],
    ids=["an old version", "another reason", "of an earlier life", "nothing", "quoted by others"],
)
def test_an_end_of_any_other_kind_is_told_at_once(said: Sequence[str], tmp_path: Path) -> None:
    """No wait, no second start, no note."""
    cluster = racing(said)
    with pytest.raises(PlanStopped) as caught:
        carried_out(cluster, tmp_path)
    assert not isinstance(caught.value, NoProgress)
    assert starts(cluster).count("start 3002 controller") == 1
    assert not any(key.startswith(KEY) for key in notes(tmp_path))


# -- by its parts ----------------------------------------------------------------------------------------------------
@dataclass
class Services:
    """States and logs by node; a log that is missing cannot be read."""

    states: dict[int, ServiceState]
    logs: dict[int, Sequence[str]]

    def state(self, node: NodeId) -> ServiceState:
        """As told."""
        return self.states[int(node)]

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        """As told."""
        if int(node) not in self.logs:
            raise ProcessSpecUnreadable(f"no process of node {int(node)} is described")
        return self.logs[int(node)]


UP: Final = Running(1, 1.0, None)


def begun(folder: Path, step: str) -> Journal:
    """A journal in which that step has started three controllers."""
    journal = Journal.begin(folder / "journal.jsonl", 0.0, {"plan": "p"})
    journal.append(0.0, "intend", {"step": step, "stage": "x", "title": "x"})
    for node in (3000, 3001, 3002):
        journal.append(0.0, "effect", {"step": step, "effect": "start", "node": str(node), "detail": ""})
    return journal


@pytest.mark.parametrize(
    ("states", "logs", "found"),
    [
        ({3000: UP, 3001: UP, 3002: Stopped(1)}, {3002: DIED}, (3002,)),
        ({3000: UP, 3001: Stopped(1), 3002: Stopped(1)}, {3001: DIED, 3002: DIED}, (3001, 3002)),
        ({3000: UP, 3001: Stopped(1), 3002: Stopped(1)}, {3001: (BEGIN,), 3002: DIED}, ()),
        ({3000: Unknown("no answer"), 3001: UP, 3002: Stopped(1)}, {3002: DIED}, ()),
        ({3000: UP, 3001: UP, 3002: Stopped(1)}, {}, ()),
        ({3000: UP, 3001: UP, 3002: UP}, {3002: DIED}, ()),
    ],
    ids=["one", "two", "another reason beside it", "one cannot be seen", "an unread log", "all live"],
)
def test_all_that_ended_must_have_ended_so(
    states: dict[int, ServiceState], logs: dict[int, Sequence[str]], found: tuple[int, ...], tmp_path: Path
) -> None:
    """What cannot be seen is neither alive nor dead, and a silent death is none of this kind."""
    journal = begun(tmp_path, STEP)
    assert tuple(map(int, died_of_it(STOPPED, journal.events, Services(states, logs)))) == found  # type: ignore[arg-type]
    journal.append(1.0, "note", {"key": f"{KEY}:3002", "value": "x"})
    assert died_of_it(STOPPED, journal.events, Services(states, logs)) == () or 3002 not in found  # type: ignore[arg-type]
    journal.close()


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("finalize/1-of-3", PlanStopped("x", where="step finalize/1-of-3")),
        ("hybrid/finish-dual-write", PlanStopped("x", where="step hybrid/finish-dual-write")),
        (STEP, PlanStopped("x", where="step migration-mode/0")),
    ],
)
def test_only_the_first_start_of_the_quorum_is_made_again(step: str, error: PlanStopped, tmp_path: Path) -> None:
    """Later the log holds a metadata.version, and such an end means another thing."""
    journal = begun(tmp_path, step)
    services = Services({3000: UP, 3001: UP, 3002: Stopped(1)}, {3002: DIED})
    assert died_of_it(error, journal.events, services) == ()  # type: ignore[arg-type] # all that is asked of it
    journal.close()


@pytest.mark.parametrize("error", [NoProgress("x", where=f"step {STEP}"), MigrateError("x", where=f"step {STEP}")])
def test_another_error_goes_through_untouched(error: MigrateError, tmp_path: Path) -> None:
    """Nothing is run again."""
    journal, runs = begun(tmp_path, STEP), list[int]()
    services = Services({3000: UP, 3001: UP, 3002: Stopped(1)}, {3002: DIED})
    with pytest.raises(type(error)):
        rerun_after_election_race(raising(error, runs), journal, services, FakeClock())  # type: ignore[arg-type]
    assert runs == [1]
    journal.close()


def raising(error: MigrateError, runs: list[int]) -> Callable[[], None]:
    """A run that ends so."""

    def run() -> None:
        runs.append(1)
        raise error

    return run
