"""Where a run stops behind a process that it has started, that process's own lines stand beside the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from migrate.errors import NoProgress, PlanIsStale, PlanStopped, ProcessSpecUnreadable
from migrate.model.ids import NodeId
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from migrate.model.views import Running, ServiceState, Stopped
from migrate.run import journal as journals
from migrate.run.journal import Journal
from migrate.run.last_words import SHOWN, dead, last_words_told, next_step, started, told, why
from tests.testing.simulated import FakeClock

START = (
    "[2026-11-21 22:00:00,001] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController$)"
)
OLD = "[2026-11-21 21:00:00,001] ERROR of an earlier life (kafka.server.KafkaServer)"
FATAL = "[2026-11-21 22:00:01,001] ERROR [KafkaServer id=1] Fatal error during startup. (kafka.server.KafkaServer)"
CAUSE = (
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092: Address already in use."
)
AFTER = "[2026-11-21 22:00:02,001] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
DEAD = (
    "[2026-11-21 22:00:03,001] ERROR [zk-broker-1-to-controller-alter-partition-channel-manager]: Error due to "
    "(kafka.server.NodeToControllerRequestThread)"
)
LOG = (OLD, START, "[x] INFO starting", FATAL, CAUSE, "\tat kafka.network.Acceptor.openServerSocket(A.scala:1)", AFTER)


class Services:
    """Logs by node; one that has none cannot be asked."""

    def __init__(self, logs: dict[int, Sequence[str]], ended: Sequence[int] = ()) -> None:
        self.logs = logs
        self.ended = ended
        self.asked: list[int] = []
        self.depths: list[int] = []

    def state(self, node: NodeId) -> ServiceState:
        """Running, but for those that have ended."""
        return Stopped(1) if int(node) in self.ended else Running(1, 1.0, None)

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        """The end of its log."""
        assert lines in (LOG_LINES, LOG_LINES_DEEP)
        self.depths.append(lines)
        self.asked.append(int(node))
        if int(node) not in self.logs:
            raise ProcessSpecUnreadable(f"no process of node {int(node)} is described")
        return self.logs[int(node)]


def begun(folder: Path, step: str, *nodes: int) -> Journal:
    """A journal in which a step has started those nodes, behind one that has started node 9."""
    journal = Journal.begin(folder / "journal.jsonl", 0.0, {"plan": "p"})
    for name, acted in (("migration-mode/0", (9,)), (step, nodes)):
        journal.append(0.0, "intend", {"step": name, "stage": "x", "title": "x"})
        for node in acted:
            journal.append(0.0, "effect", {"step": name, "effect": "start", "node": str(node), "detail": ""})
    return journal


def stopped(journal: Journal, services: Services, error: Exception, *brokers: int) -> Exception:
    """The error as it comes out."""
    told_by = last_words_told(journal, services, FakeClock(), map(NodeId, brokers))  # type: ignore[arg-type]
    with pytest.raises(type(error)) as caught, told_by:
        raise error
    journal.close()
    return caught.value


def test_the_errors_of_the_last_start_are_told_and_nothing_of_an_earlier_life() -> None:
    """Stack traces have no room, and what the process said while it went down is no cause."""
    assert told(LOG) == (FATAL, CAUSE)


def test_without_an_error_the_end_is_told() -> None:
    """A slow recovery says what it is at."""
    lines = [START, *(f"[x] INFO Recovering unflushed segment {number}" for number in range(20))]
    assert told(lines) == tuple(lines[-SHOWN:])
    assert told([]) == ()


def test_what_systemd_says_of_a_start_that_failed_is_told_and_not_the_life_before() -> None:
    """A unit whose ExecStartPre fails never gets as far as Kafka: its last life has errors of its own."""
    control = "kafka.service: Control process exited, code=exited, status=1/FAILURE"
    result = "kafka.service: Failed with result 'exit-code'."
    again = "kafka.service: Scheduled restart job, restart counter is at 3."
    lines = [OLD, START, FATAL, "Stopped kafka.service", again, "Starting kafka.service", control, result]
    assert told(lines) == (control, result)


def test_no_line_is_longer_than_a_message_has_room_for_nor_moves_a_terminal() -> None:
    """Logs are others' text."""
    (line,) = told(["ERROR \x1b[2J" + "x" * 1000])
    assert len(line) == 300
    assert "\x1b" not in line


@pytest.mark.parametrize("kind", [PlanStopped, NoProgress])
def test_a_stop_behind_a_started_broker_has_its_own_lines(kind: type[PlanStopped], tmp_path: Path) -> None:
    """In the error, and in the journal for whoever comes later."""
    journal, services = begun(tmp_path, "migration-mode/1", 1), Services({1: LOG})
    error = stopped(journal, services, kind("refused: node 1 is not running", where="step migration-mode/1", why="x"))
    assert isinstance(error, kind)
    assert error.why.split("\n         ") == ["x", f"node 1 said: {FATAL}", f"node 1 said: {CAUSE}"]
    assert services.asked == [1]
    notes = journals.notes(journals.read(tmp_path / "journal.jsonl").events)
    assert notes == {"last-words:1": f"{FATAL}\n{CAUSE}"}


def test_of_several_started_those_that_ended_are_asked(tmp_path: Path) -> None:
    """Whoever lives has nothing to say about it; where all live, all are asked."""
    journal, services = begun(tmp_path, "controllers/start", 3000, 3001), Services({3000: (START,), 3001: LOG}, [3001])
    error = stopped(journal, services, PlanStopped("x", where="step controllers/start"))
    assert services.asked == [3001]
    assert isinstance(error, PlanStopped)
    assert "node 3001 said: " in error.why
    assert "node 3000" not in error.why


def test_a_log_that_cannot_be_read_hides_no_reason(tmp_path: Path) -> None:
    """The stop is still the stop."""
    error = stopped(
        begun(tmp_path, "controllers/start", 3000), Services({}), PlanStopped("x", where="step controllers/start")
    )
    assert isinstance(error, PlanStopped)
    assert error.what == "x"
    assert "node 3000 said: its log cannot be read: no process of node 3000" in error.why


@pytest.mark.parametrize(
    ("error", "nodes"),
    [
        (PlanStopped("a gate", where="step migration-mode/2"), (1,)),
        (PlanStopped("nothing was started yet", where="step migration-mode/1"), ()),
        (PlanIsStale("another error", where="step migration-mode/1"), (1,)),
    ],
)
def test_nobody_is_asked_where_no_start_of_that_step_came_before(
    error: PlanStopped, nodes: tuple[int, ...], tmp_path: Path
) -> None:
    """A gate of the next broker has nothing to do with the last one's log."""
    services = Services({1: LOG})
    found = stopped(begun(tmp_path, "migration-mode/1", *nodes), services, error)
    assert isinstance(found, type(error))
    assert found.why == ""
    assert services.asked == []


def test_the_last_step_that_acted_and_what_it_started(tmp_path: Path) -> None:
    """A step that was begun again counts from its last beginning."""
    journal = begun(tmp_path, "controllers/start", 3000, 3001)
    assert started(journal.events) == ("controllers/start", (3000, 3001))
    journal.append(0.0, "intend", {"step": "controllers/start", "stage": "x", "title": "x"})
    assert started(journal.events) == ("controllers/start", ())
    journal.close()
    assert started(()) == ("", ())


def test_a_wait_that_stood_still_names_the_broker_that_cannot_speak_to_the_controller(tmp_path: Path) -> None:
    """It is another one than the step's own; one whose log cannot be read hides nothing."""
    services = Services({0: (START,), 1: (START, DEAD)})
    error = NoProgress("no progress", where="step migration-mode/back-0", why="x", next_step="nothing")
    found = stopped(begun(tmp_path, "migration-mode/back-0", 0), services, error, 0, 1, 2)
    assert isinstance(found, NoProgress)
    assert "broker 1: its thread of channel alter-partition has died" in found.why
    assert "broker 0: its thread" not in found.why
    assert found.next_step == "restart broker 1 with the current file, then give the same command again"
    assert services.depths[:3] == [LOG_LINES_DEEP] * 3  # such a broker's log is flooded


@pytest.mark.parametrize("log", [(START, AFTER), (START, DEAD, START, AFTER)])
def test_a_thread_that_died_in_an_earlier_life_is_no_reason(log: Sequence[str], tmp_path: Path) -> None:
    """A restart makes it anew."""
    error = NoProgress("no progress", where="step migration-mode/back-0", why="x", next_step="look")
    found = stopped(begun(tmp_path, "migration-mode/back-0"), Services({1: log}), error, 1)
    assert isinstance(found, NoProgress)
    assert (found.why, found.next_step) == ("x", "look")


def test_a_refusal_asks_no_broker_for_its_channels(tmp_path: Path) -> None:
    """It has a reason of its own."""
    services = Services({1: (START, DEAD)})
    stopped(begun(tmp_path, "migration-mode/1"), services, PlanStopped("a gate", where="step migration-mode/1"), 1)
    assert services.asked == []


LINE = "[2026-11-21 22:00:03,001] ERROR [zk-broker-1-to-controller-{}-channel-manager]: Error due to (kafka.server.X)"


@pytest.mark.parametrize("channel", ["alter-partition", "forwarding", "quorum"])
def test_each_channel_of_a_broker_is_known_by_its_thread(channel: str) -> None:
    """Each of them is a NodeToControllerRequestThread."""
    assert dead(["x", LINE.format(channel), "java.lang.IllegalArgumentException: A metric"]) == (channel,)


def test_several_are_told_in_order_and_each_once() -> None:
    """A log may say a line twice."""
    lines = [LINE.format(name) for name in ("forwarding", "alter-partition", "forwarding")]
    assert dead(lines) == ("forwarding", "alter-partition")


@pytest.mark.parametrize(
    "line",
    [
        "[x] INFO [zk-broker-1-to-controller-alter-partition-channel-manager]: Recorded new ZK controller",
        "[x] INFO [zk-broker-1-to-controller-alter-partition-channel-manager]: Shutdown completed",
        "[x] ERROR [ReplicaFetcher replicaId=1, leaderId=0, fetcherId=0] Error due to (x)",
        "",
    ],
)
def test_other_lines_are_not_taken_for_it(line: str) -> None:
    """Neither what the thread says while it lives, nor another thread's end."""
    assert dead([line]) == ()


def test_who_has_none_is_not_told() -> None:
    """Where nobody has one, nothing is said and nothing advised."""
    found = {0: (), 1: ("alter-partition",)}
    (line,) = why(found)
    assert line.startswith("broker 1: ")
    assert next_step(found).startswith("restart broker 1 with the current file")
    assert "brokers [0, 1], one by one," in next_step({0: ("forwarding",), 1: ("alter-partition",)})
    assert why({0: ()}) == ()
    assert next_step({0: ()}) == ""


def test_no_secret_of_a_log_is_told() -> None:
    """The lines go into the journal and the report."""
    (line,) = told(["[1] ERROR Invalid value hunter2 for configuration my.api.token: too short"])
    assert "hunter2" not in line
