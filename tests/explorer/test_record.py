"""From logs and journals to a trace: when a process ended, who was elected, and what a kill leaves unknown."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

from migrate.run.journal import Journal
from tests.testing.explorer.follow import Follower
from tests.testing.explorer.record import NO_FLAG, Event, _outside, effects, own_log

STARTS: Final = (
    "INFO Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
)
SIGNAL: Final = "INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.LoggingSignalHandler)"
LEADER: Final = (
    "INFO [RaftManager id=3000] Completed transition to Leader(localReplicaKey=ReplicaKey(id=3000)) from Candi"
)
RESIGNED: Final = (
    "INFO [RaftManager id=3000] Completed transition to ResignedState(localId=3000, epoch=2) from Leader(id=3000)"
)
DRIVER: Final = (
    "INFO [KRaftMigrationDriver id=3000] 3000 transitioning from DUAL_WRITE to INACTIVE state (org.apache.kafka)"
)
FLAGLESS: Final = (
    "WARN [QuorumController id=3000] Performing controller activation. Loaded ZK migration state of MIGRATION. "
    "Completing the ZK migration since this controller was configured with 'zookeeper.metadata.migration.enable' set to"
)


def told(folder: Path, *said: tuple[int, str]) -> list[Event]:
    """What a log with these lines, each at its second of one minute, is read as; times from the first line on."""
    log = folder / "controller.log"
    log.write_text("".join(f"[2026-11-22 00:44:{second:02},000] {line}\n\tat a.stack.Trace\n" for second, line in said))
    events = list(own_log(3000, log))
    begin = events[0]["at"]
    return [{**event, "at": event["at"] - begin} for event in events]


def test_a_process_ends_with_its_last_line_not_with_its_signal(tmp_path: Path) -> None:
    """It may still be elected while it shuts down; what asked it to end was the signal."""
    events = told(tmp_path, (0, STARTS), (10, SIGNAL), (11, LEADER), (12, RESIGNED), (20, STARTS))
    assert [(event["event"], event.get("what"), event["at"]) for event in events] == [
        ("process", "starts", 0.0),
        ("elected", None, 11.0),
        ("process", "ends", 12.0),
        ("process", "starts", 20.0),
    ]
    assert events[2]["asked"] == 10.0 + events[0]["asked"]


def test_the_last_process_of_a_log_ends_as_well(tmp_path: Path) -> None:
    """Where it was asked to; one that was not asked may still live."""
    assert told(tmp_path, (0, STARTS), (3, SIGNAL), (4, DRIVER))[-1]["what"] == "ends"
    assert told(tmp_path, (0, STARTS), (4, DRIVER))[-1]["event"] == "driver"


def test_a_driver_that_stays_in_its_state_is_no_event(tmp_path: Path) -> None:
    """At TRACE the driver also says that it goes from INACTIVE to INACTIVE."""
    stays = DRIVER.replace("INFO", "TRACE").replace("DUAL_WRITE", "INACTIVE")
    assert [event["event"] for event in told(tmp_path, (0, STARTS), (4, stays), (5, DRIVER))] == ["process", "driver"]


def test_a_process_that_nobody_asked_to_end_is_lost_after_its_last_line(tmp_path: Path) -> None:
    """Killed, or dead by itself: when, between that and the next start, no line says."""
    events = told(tmp_path, (0, STARTS), (5, DRIVER), (30, STARTS))
    assert [(event.get("what"), event["at"]) for event in events if event["event"] == "process"] == [
        ("starts", 0.0),
        ("is lost", 5.0),
        ("starts", 30.0),
    ]


def test_who_completes_the_migration_had_no_flag_since_its_start(tmp_path: Path) -> None:
    """It says so as it is elected."""
    events = told(tmp_path, (0, STARTS), (5, LEADER), (6, FLAGLESS))
    assert [(event["event"], event.get("what"), event["at"]) for event in events] == [
        ("process", "starts", 0.0),
        ("elected", None, 5.0),
        ("process", NO_FLAG, 0.0),
    ]


def test_an_end_that_took_minutes_is_still_that_of_its_stop() -> None:
    """The stop and the signal belong together, however long the process took."""
    stop: Event = {"at": 100.0, "event": "effect", "effect": "stop", "node": 1, "step": "kraft-mode/1"}
    ends: Event = {"at": 400.0, "event": "process", "node": 1, "what": "ends", "asked": 100.5}
    assert list(_outside([stop, ends])) == [stop]
    assert list(_outside([stop, {**ends, "asked": 399.0}])) == [
        stop,
        {"at": 400.0, "event": "outside", "node": 1, "what": "ends"},
    ]


def test_a_start_without_the_flag_is_another_hands_where_the_start_was() -> None:
    """Finalize's own starts lack it too, and are effects."""
    start: Event = {"at": 1.0, "event": "effect", "effect": "start", "node": 3000, "step": "finalize/1-of-3"}
    ours: Event = {"at": 2.0, "event": "process", "node": 3000, "what": "starts", "asked": 2.0}
    theirs = {**ours, "at": 300.0, "asked": 300.0}
    assert list(_outside([start, ours, {**ours, "what": NO_FLAG}])) == [start]
    found = list(_outside([start, ours, theirs, {**theirs, "what": NO_FLAG}]))
    assert [event["what"] for event in found[1:]] == ["starts", NO_FLAG]


def journal(folder: Path, *written: tuple[str, str, str]) -> list[Event]:
    """The effects of a journal with these events: name, effect, path."""
    path = folder / "runs" / "one" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    with closing(Journal.begin(path, 0.0, {})) as kept:
        for number, (name, effect, detail) in enumerate(written):
            kept.append(
                float(number), name, {"step": "migration-mode/1", "effect": effect, "node": "1", "detail": detail}
            )
    return list(effects(path.parent.parent))


def test_an_intent_without_its_end_may_have_acted_or_not(tmp_path: Path) -> None:
    """It was killed there; the next run says its own intent."""
    found = journal(
        tmp_path, ("effect", "stop", ""), ("effected", "stop", ""), ("effect", "start", ""), ("effect", "start", "")
    )
    assert [(event["effect"], event.get("what")) for event in found] == [
        ("stop", None),
        ("start", "begun"),
        ("start", "begun"),
    ]


def test_a_disks_file_is_no_brokers_file(tmp_path: Path) -> None:
    """meta.properties is mended by the same effect that writes a configuration."""
    found = journal(
        tmp_path, ("effect", "write-config", "/d/meta.properties"), ("effected", "write-config", "/d/meta.properties")
    )
    assert [event["what"] for event in found] == ["a disk's"]


# -- what the follower makes of it -----------------------------------------------------------------------------------
def three() -> Follower:
    """Three flagged controllers that run, of which 3000 leads."""
    here = Follower((0, 1, 2), (3000, 3001, 3002))
    at = {"at": 0.0, "event": "effect"}
    for node in here.controllers:
        here.follow([{**at, "effect": "write-config", "node": node, "step": f"prepare/render-controller-{node}"}])
    for effect in ("format", "start"):
        here.follow([{**at, "effect": effect, "node": node, "step": "controllers/x"} for node in here.controllers])
    here.follow([{"at": 1.0, "event": "elected", "node": 3000}])
    return here


def test_a_leader_that_steps_down_is_followed_by_another_election() -> None:
    """Whether its own driver says so before or after the other one leads."""
    steps_down: Event = {"at": 2.0, "event": "driver", "node": 3000, "before": "WAIT_FOR_BROKERS", "after": "INACTIVE"}
    waits: Event = {"at": 2.0, "event": "driver", "node": 3000, "before": "INACTIVE", "after": "WAIT_FOR_BROKERS"}
    elected: Event = {"at": 2.0, "event": "elected", "node": 3001}
    for order in ([waits, steps_down, elected], [waits, elected, steps_down], [elected, waits, steps_down]):
        here = three()
        here.follow(order)
        assert here.leading == 3001


def test_only_a_driver_that_may_not_know_better_goes_on_without_leading() -> None:
    """Of a controller that has led until now: another one's cannot be followed."""
    here = three()
    here.follow([{"at": 2.0, "event": "elected", "node": 3001}])
    assert here.succeeded >= {3000}
    assert 3002 not in here.succeeded
