"""KRaft brokers that do not report their directories: a first refusal is no stall, and a stall says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks import stuck
from migrate.checks.stuck import reports
from migrate.model.findings import Clues, Explanation, Report
from migrate.model.ids import MIGRATING, UNASSIGNED, NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from tests.steps.looks import registration, relook, whole
from tests.testing.worlds import kraft, with_kraft

BROKER = 1
AT = "[2026-03-01 21:04:{:02},123] "
MANAGER = "INFO [AssignmentsManager id=1] "
SENDING = MANAGER + "maybeSendAssignments: sending 6 assignments; invalidated 0 assignments prior to sending."
REFUSED = MANAGER + "handleResponse: 6 assignments failed; global error: Response-level error: {}. Retrying."
TIMEOUT = MANAGER + "handleResponse: 6 assignments failed; global error: Timeout. Retrying."
AGAIN = tuple(AT.format(second) + REFUSED.format("STALE_BROKER_EPOCH") for second in range(5))


def unreported(directory: str = str(MIGRATING)) -> World:
    """Broker 1 is in KRaft mode, in dual write, and the metadata knows none of its directories."""
    world = whole(Stage.KRAFT_MODE)
    rows = kraft(world).partitions
    directories = [
        [directory if broker == BROKER else here for broker, here in zip(replicas, listed, strict=True)]
        for replicas, listed in zip(rows.replicas, rows.directories, strict=True)
    ]
    return relook(with_kraft(world, partitions=replace(rows, directories=directories)))


def rows_of(world: World) -> int:
    """How many rows broker 1 has to report."""
    return len(reports.unreported(world, kraft(world))[BROKER])


def line(second: int, text: str) -> str:
    """A line of its log."""
    return AT.format(second) + text


def explained(world: World, report: Report | None) -> list[Explanation]:
    """What is told of broker 1."""
    clues = Clues() if report is None else Clues(reports={NodeId(BROKER): report})
    return [entry for entry in stuck.explain(world, clues) if entry.code == reports.CODE]


def stalled(world: World, *log: str, queued: int | Unknown = 6) -> Explanation:
    """The explanation where a second look found the same, and the log has these lines."""
    (found,) = explained(world, Report(queued, rows_of(world), log))
    return found


@pytest.mark.parametrize("directory", [str(MIGRATING), str(UNASSIGNED)])
def test_rows_that_a_kraft_broker_should_have_reported_are_looked_into(directory: str) -> None:
    """Its log, its queue and a second look are asked for; by themselves they are no fault yet."""
    world = unreported(directory)
    assert NodeId(BROKER) in stuck.wanted(world).reporters
    (found,) = explained(world, None)
    assert isinstance(found.cause, Unknown)
    assert stuck.because(world) == "", "the line of a wait names no cause that was not looked at"
    state = ReplicaState.MIGRATING if directory == str(MIGRATING) else ReplicaState.UNASSIGNED
    assert f"{rows_of(world)} replicas" in found.waits_for
    assert f"({state.value})" in found.waits_for


def test_a_cluster_that_reports_has_nothing_to_look_into() -> None:
    """Every row VERIFIED."""
    assert stuck.wanted(whole(Stage.KRAFT_MODE)).reporters == ()


@pytest.mark.parametrize(
    "bend",
    [registration(BROKER, migrating=True), registration(BROKER, log_dirs=frozenset())],
    ids=["in migration mode", "directories not registered"],
)
def test_rows_that_it_could_not_report_are_not_its_silence(bend: object) -> None:
    """In migration mode nobody reports; an unregistered directory is another fault."""
    world = relook(bend(unreported()))  # type: ignore[operator]
    assert BROKER not in reports.unreported(world, kraft(world))


def test_a_first_request_with_an_old_epoch_is_no_stall() -> None:
    """Every broker's first one is refused; the second look finds it further on, or done."""
    world = unreported()
    log = (line(1, SENDING), line(1, REFUSED.format("STALE_BROKER_EPOCH")), line(2, SENDING))
    for later in (0, rows_of(world) - 1):
        assert explained(world, Report(3, later, log)) == []


def test_a_request_without_an_answer_is_told_with_its_time() -> None:
    """The way to the controller holds it up; what was refused before is told too."""
    world = unreported()
    found = stalled(world, line(1, SENDING), line(1, REFUSED.format("STALE_BROKER_EPOCH")), line(2, SENDING))
    assert found.cause == (
        "it sent 6 at 2026-03-01 21:04:02 and has no answer, after 1 times STALE_BROKER_EPOCH: its way to the active "
        "controller holds it up"
    )
    assert found.evidence[0] == "QueuedReplicaToDirAssignments of broker 1 is 6"
    assert "directories assign 1 --yes" in found.next_step
    assert found.nodes == (BROKER,)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ((), "it has sent no request"),
        (
            tuple(line(n, REFUSED.format("STALE_BROKER_EPOCH")) for n in range(5)),
            "5 times STALE_BROKER_EPOCH, the last",
        ),
        ((line(3, REFUSED.format("UNSUPPORTED_VERSION")),), "answer with UNSUPPORTED_VERSION"),
        ((SENDING,), "it sent 6 and has no answer"),
        ((line(4, TIMEOUT),), "answer with Timeout (1 times Timeout, the last at 2026-03-01 21:04:04)"),
        ((line(4, TIMEOUT), line(4, SENDING)), "it sent 6 at 2026-03-01 21:04:04 and has no answer, after 1 times"),
    ],
)
def test_each_end_of_the_log_has_its_cause(log: tuple[str, ...], says: str) -> None:
    """Nothing sent, refused for ever, refused by name, without a time."""
    found = stalled(unreported(), *log)
    assert isinstance(found.cause, str)
    assert says in found.cause


def test_an_empty_queue_is_a_cause_of_its_own() -> None:
    """It believes that it has reported everything: sending again is not to be waited for."""
    found = stalled(unreported(), line(1, SENDING), queued=0)
    assert "its queue is empty" in str(found.cause)


def test_a_queue_that_nobody_offers_is_unknown_and_not_empty() -> None:
    """The log still tells."""
    found = stalled(unreported(), line(1, SENDING), queued=Unknown("the inventory gives no jmx address for it"))
    assert found.evidence[0].endswith("is unknown: the inventory gives no jmx address for it")
    assert "has no answer" in str(found.cause)


def test_a_second_look_that_saw_nothing_excuses_nothing() -> None:
    """Unknown is not further on; a log that cannot be read is no cause."""
    world = unreported()
    (found,) = explained(world, Report(6, Unknown("no controller answers"), Unknown("no rights")))
    assert found.cause == Unknown("its log cannot be read: no rights")


def test_the_lines_about_assignments_are_chosen() -> None:
    """Others are not; unprintable letters are shown as such."""
    lines = [line(1, SENDING), line(1, "INFO Kafka Server started"), line(2, REFUSED.format("X" * 5)) + "\x1b[2J"]
    found = reports.telling(lines)
    assert len(found) == 2
    assert "\x1b" not in "".join(found)
