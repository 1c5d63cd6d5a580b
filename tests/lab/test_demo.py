"""The main job on real Kafka: a JBOD cluster from ZooKeeper to finalized KRaft, killed twice on the way.

One demo serves all claims here.  What it leaves behind is judged independently: by Kafka's own dump of the metadata
log, by the meta.properties files and by the folders on the disks.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from migrate.kafka.connection import Connection
from migrate.lab.cluster import Lab
from migrate.lab.load import find_load
from migrate.lab.seed_data import TOKENS
from migrate.model.views import Running, Stopped
from migrate.protocol.messages import DESCRIBE_DELEGATION_TOKEN
from tests.kraft.logs import rewritten
from tests.lab.commands import SECONDS, environment, kraft_migrate, stopped, to_its_end
from tests.lab.logged import (
    assignments_in_the_log,
    directories_in_the_log,
    directories_on_the_disks,
    dumped_by_kafka,
)
from tests.lab.moving import a_slow_move
from tests.lab.secrets_seen import Processes, holding
from tests.testing.explorer.follow import Follower
from tests.testing.explorer.record import record as record_trace

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
MOVED = "moved"  # the topic whose replica moves between directories
AT_ONCE = 50  # replicas in a request of policy drive
SENDING = r"maybeSendAssignments: sending (\d+) assignments"  # a KRaft broker's own report


def killed(*words: str, crash: str) -> str:
    """It dies by SIGKILL, and nobody cleans up after it; what it had said until then."""
    ended = kraft_migrate(*words, crash=crash)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]
    return ended.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The demo's folder; whatever lives in it at the end is stopped."""
    folder = tmp_path_factory.mktemp("demo") / "lab"
    yield folder
    stopped(folder)


@pytest.fixture(scope="module")
def processes(directory: Path) -> Iterator[Processes]:
    """Words and environments of every process, all the while."""
    with Processes(directory) as watching:
        yield watching


@dataclass(frozen=True)
class Parked:
    """The cluster in hybrid, reached by a run that was killed in the first roll."""

    directory: Path
    tokens: tuple[dict[str, Any], ...]  # of delegation, as a broker tells them

    def ask(self, *words: str) -> tuple[int, Any]:
        """A command's exit code and its JSON answer."""
        ended = kraft_migrate(*words, "--inventory", str(self.directory / "inventory.yaml"), "--output", "json")
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)


@dataclass(frozen=True)
class OnTheWay:
    """What was seen of the runs that did not get there."""

    interrupted: int  # exit code after Ctrl-C
    alive_after: list[str]  # processes of the lab that lived then
    refused: subprocess.CompletedProcess[str]  # the run without a topic id
    untouched: bool  # the third broker's process was the same after it


def interrupted(words: tuple[str, ...], at: str) -> int:
    """Ctrl-C as soon as a line with that text is said; the exit code."""
    command = [sys.executable, "-m", "migrate", *words]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if at in line:
                run.send_signal(signal.SIGINT)
                break
        run.communicate(timeout=SECONDS)
        return run.returncode


@contextmanager
def without_topic_id(lab: Lab, topic: str) -> Iterator[None]:
    """The topic's znode without its topic_id, as old controllers left it."""
    client = KazooClient(lab.inventory.zookeeper)
    client.start(timeout=15)
    try:
        path = f"/brokers/topics/{topic}"
        whole, _ = client.get(path)
        bare = {key: value for key, value in json.loads(whole).items() if key != "topic_id"}
        client.set(path, json.dumps(bare).encode())
        yield
        client.set(path, whole)
    finally:
        client.stop()
        client.close()


def alive(lab: Lab) -> list[str]:
    """The lab's processes that live."""
    return [name for name in lab.supervisor.specs() if isinstance(lab.supervisor.state(name), Running)]


@pytest.fixture(scope="module")
def on_the_way(directory: Path, processes: Processes) -> OnTheWay:
    """Ctrl-C after the first broker; killed with the second one stopped; killed again; refused without a topic id."""
    words = ("lab", "demo", "--dir", os.path.relpath(directory), "--until", "hybrid")  # as README's default: relative
    code = interrupted(words, "migration-mode/0: Verified")
    lab = Lab.open(directory)
    left = alive(lab)
    killed(*words, crash="after:stop:1")
    killed(*words, crash="proof:migration-mode/1")
    third = lab.supervisor.state("broker-2")
    with without_topic_id(lab, "events-00"):
        refused = kraft_migrate(*words)
    return OnTheWay(code, left, refused, third == lab.supervisor.state("broker-2"))


@pytest.fixture(scope="module")
def parked(directory: Path, on_the_way: OnTheWay) -> Parked:
    """The topic has its id again: the same command resumes and parks after hybrid."""
    assert on_the_way.refused.returncode != 0
    ended = to_its_end(directory, "lab", "demo", "--dir", str(directory), "--until", "hybrid")
    assert ended.returncode == 0, ended.stderr[-3000:]
    inventory = Lab.open(directory).inventory
    with Connection(inventory.brokers[1].address, inventory.broker_access) as connection:
        told = connection.call(DESCRIBE_DELEGATION_TOKEN, {"owners": None}, seconds=30)
    return Parked(directory, tuple(told["tokens"]))


def test_ctrl_c_stops_the_cluster_and_says_130(on_the_way: OnTheWay) -> None:
    """Nothing of it lives on; the same command resumes later."""
    assert on_the_way.interrupted == 130
    assert on_the_way.alive_after == []


def test_a_topic_without_id_stops_the_run_before_the_last_broker(on_the_way: OnTheWay) -> None:
    """The last broker's registration would start the copy by itself: all blockers are checked again before it."""
    assert on_the_way.refused.returncode == 3, on_the_way.refused.stderr[-2000:]
    assert "events-00" in on_the_way.refused.stderr
    assert on_the_way.untouched


def test_status_tells_where_the_cluster_stands(parked: Parked) -> None:
    """By the cluster's own words, and a journal's for the proof: hybrid, no broker is in KRaft mode."""
    code, answer = parked.ask("status")
    assert code == 0
    assert answer["stage"] == "hybrid"
    assert answer["half_done"] is None
    assert {row["registered"] for row in answer["processes"][:3]} == {"migration"}
    assert answer["unhealthy_partitions"] == 0


def test_zookeeper_and_kraft_are_equal_in_hybrid(parked: Parked) -> None:
    """Field by field, with no difference outside EXPECTED; all kinds that were seeded are among them."""
    code, answer = parked.ask("diff")
    assert (code, answer["unexcused"]) == (0, 0)
    seeded = {"partition", "topic", "topic-config", "broker-config", "client-quota", "scram", "acl", "delegation-token"}
    assert seeded <= set(answer["counts"])
    assert answer["counts"]["delegation-token"] == {"EQUAL": 6 * len(TOKENS)}
    assert answer["counts"]["partition"]["EQUAL"] >= 8 * 100


def test_every_replica_is_migrating_in_hybrid(parked: Parked) -> None:
    """The copy knows no directories: `verify` expects it now, says so row by row, and ends with 0."""
    code, answer = parked.ask("directories", "verify")
    assert code == 0
    assert len(answer["replicas"]) >= 300
    assert {row["state"] for row in answer["replicas"]} == {"MIGRATING"}
    assert all(row["on_disk"] for row in answer["replicas"])


def test_every_directory_is_healthy_and_registered(parked: Parked) -> None:
    """Nine directories, each with an id of its own that its broker registered."""
    _, answer = parked.ask("directories", "show")
    rows = answer["directories"]
    assert len(rows) == 9
    assert {row["health"] for row in rows} == {"healthy"}
    assert {row["registered"] for row in rows} == {"yes"}
    assert len({row["directory_id"] for row in rows}) == 9


def test_assess_finds_no_blocker(parked: Parked) -> None:
    """By the playbook; from a connect string alone no blocker is found, and READY is not said of it.

    The playbook accepts that a lab may lie in memory; without it that would block.
    """
    code, _ = parked.ask("assess", str(Lab.open(parked.directory).playbook_path))
    assert code == 0
    zookeeper = Lab.open(parked.directory).inventory.zookeeper
    ended = kraft_migrate("assess", "--zookeeper", zookeeper, "--output", "json")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert (found["verdict"], found["counts"]["blocker"]) == ("INCOMPLETE", 0)


@dataclass(frozen=True)
class Moving:
    """What was said while a replica moved between two directories of a broker, before the second roll."""

    broker: int
    source: Path
    target: Path
    refused: subprocess.CompletedProcess[str]  # the plan, where the playbook does not wait
    waited: str  # what the run said that waited
    code: int  # how that run ended


@dataclass(frozen=True)
class Finished:
    """The demo at its end."""

    directory: Path
    ended: subprocess.CompletedProcess[str]
    moving: Moving

    def run_folder(self) -> Path:
        """The folder of the run that went to the end."""
        plan = json.loads((self.directory / "demo.json").read_text())["plan"]
        return Path(plan).parent

    def report(self) -> Any:
        """The report as JSON."""
        return json.loads((self.run_folder() / "report.json").read_text())

    def events(self, name: str) -> list[Any]:
        """The events of that name in its journal."""
        lines = (self.run_folder() / "journal.jsonl").read_text().splitlines()
        events = [json.loads(line.split(" ", 2)[2]) for line in lines]
        return [event["data"] for event in events if event["event"] == name]

    def notes(self) -> list[dict[str, str]]:
        """The notes of its journal."""
        return self.events("note")


def said_until(words: tuple[str, ...], crash: str, at: str, then: Callable[[], None]) -> tuple[str, int]:
    """Run it to its end; as soon as a line with that text is said something is done.  What was said, and the code."""
    command, said = [sys.executable, "-m", "migrate", *words], ""
    with subprocess.Popen(
        command, env=environment(crash), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stderr is not None
        done = False
        for line in run.stderr:
            said += line
            if at in line and not done:
                done = True
                then()
        run.wait(timeout=SECONDS)
        return said, run.returncode


def moved_and_killed(lab: Lab, words: tuple[str, ...]) -> Moving:
    """A move holds the second roll; when it has ended, the run dies behind the first request of policy drive."""
    with a_slow_move(lab, MOVED) as move:
        refused = kraft_migrate("plan", str(lab.playbook_path), "--stage", "kraft-mode")
        text = lab.playbook_path.read_text()
        requests = f"moves: wait\n      assignments_per_request: {AT_ONCE}\n      accept_volatile:"
        lab.playbook_path.write_text(text.replace("accept_volatile:", requests, 1))
        waited, code = said_until(words, "sent:2:1", "between directories", move.let_go)
    return Moving(move.broker, move.source, move.target, refused, waited, code)


@pytest.fixture(scope="module")
def finished(parked: Parked) -> Finished:
    """Held by a move, killed in an assignment, killed with broker 2 stopped in the second roll, then to the end."""
    words = ("lab", "demo", "--dir", str(parked.directory))
    moving = moved_and_killed(Lab.open(parked.directory), words)
    killed(*words, crash="after:stop:2")
    return Finished(parked.directory, kraft_migrate(*words), moving)


def test_a_move_between_directories_holds_the_second_roll(finished: Finished) -> None:
    """Refused where the playbook does not wait, with the replica and both directories; nothing was planned."""
    moving = finished.moving
    said = " ".join((moving.refused.stdout + moving.refused.stderr).split())
    assert moving.refused.returncode == 3, said[-3000:]
    assert "B-DIR-12" in said
    assert f"{MOVED}-0 on broker {moving.broker} from {moving.source} to {moving.target}" in said


def test_a_move_is_waited_for_and_the_roll_goes_on_when_it_has_ended(finished: Finished) -> None:
    """Where the playbook says so: with what moves, and how far it is.  Then the replica lies where it was to go."""
    moving = finished.moving
    assert f"{MOVED}-0 on broker {moving.broker} from {moving.source} to {moving.target} (" in moving.waited
    assert (moving.target / f"{MOVED}-0").is_dir()
    assert not (moving.source / f"{MOVED}-0").exists()


def test_an_assignment_killed_behind_its_first_request_sends_no_replica_twice(finished: Finished) -> None:
    """The next process sends the rest alone; in the log each replica of broker 2 got its directory once."""
    assert finished.moving.code == -signal.SIGKILL, finished.moving.waited[-3000:]
    noted = [note["value"] for note in finished.notes() if note["key"] == "sending:2"]
    first, total = map(int, re.fullmatch(r"request 1 with (\d+) of (\d+) replicas", noted[0]).groups())  # type: ignore[union-attr] # it matches
    assert first == AT_ONCE < total
    note = next(note["value"] for note in finished.notes() if note["key"] == "assigned:2")
    assert note.startswith(f"{total - first} replicas in {-(-(total - first) // AT_ONCE)} requests")
    folder = Path(Lab.open(finished.directory).topology.controllers[0].metadata_directory, "__cluster_metadata-0")
    times = assignments_in_the_log(dumped_by_kafka(folder), 2)
    assert len(times) >= total
    assert set(times.values()) == {1}


def test_what_stood_in_the_log_before_each_registration_is_proven_in_the_run(finished: Finished) -> None:
    """Driven: every directory, and the broker sends nothing.  Observed: none, and it sends exactly those itself."""
    lab = Lab.open(finished.directory)
    for broker, driven in ((0, False), (1, False), (2, True)):
        (line,) = [
            line
            for event in finished.events("conclude")
            if event["step"] == f"kraft-mode/{broker}"
            for line in event["evidence"]
            if "before its KRaft registration" in line
        ]
        before, total = map(int, re.match(r"(\d+) of (\d+) directories", line).groups())  # type: ignore[union-attr] # it matches
        sent = [int(number) for number in re.findall(SENDING, lab.topology.log(f"broker-{broker}").read_text())]
        assert total > 100
        assert before == (total if driven else 0)
        # a broker on a busy host sends them in several requests; the driven one sends a later topic's alone
        assert sent[0] < 10 if driven else total in accumulate(sent)
        assert line.endswith("none was left" if driven else f"the other {total} came after it")


def test_a_stale_epoch_was_survived(finished: Finished) -> None:
    """Policy drive's first request carried an old epoch: the real controller refused it, and it was sent again."""
    said = next(note["value"] for note in finished.notes() if note["key"] == "assigned:2")
    assert said.endswith(" 1 retried")
    assert not said.startswith("0 replicas")


def test_the_demo_ends_proven(finished: Finished) -> None:
    """Exit code 0, and a report in two forms whose every claim holds."""
    assert finished.ended.returncode == 0, finished.ended.stderr[-4000:]
    report = finished.report()
    assert report["verdict"]["word"] == "PROVEN"
    assert {claim["holds"] for claim in report["claims"]} == {"holds"}
    assert report["load"]["missing"] == report["load"]["duplicated"] == 0
    assert report["load"]["acknowledged"] > 1000
    assert (finished.run_folder() / "report.html").stat().st_size > 1000


def test_delegation_tokens_are_among_the_proofs(finished: Finished, parked: Parked) -> None:
    """Asked of KRaft brokers at the end, held against what ZooKeeper's brokers told when they were made."""
    assert {(token["principalName"], token["tokenRequesterPrincipalName"]) for token in parked.tokens} == {
        ("bob@example.org", "admin"),
        ("admin", "admin"),
    }
    claims = {claim["text"]: claim for claim in finished.report()["claims"]}
    assert claims["Every delegation token is the one that ZooKeeper had."]["evidence"].startswith(
        f"{len(TOKENS)} tokens"
    )


def test_every_broker_and_controller_starts_again_from_its_files(finished: Finished) -> None:
    """All of them at once, with ZooKeeper stopped; proven again as the run's last step proved it, and written to."""
    claims = {claim["text"]: claim for claim in finished.report()["claims"]}
    said = claims["Every broker and controller starts again from its files, ZooKeeper stopped."]["evidence"]
    assert said.startswith("6 processes stopped in ")
    assert " replicas VERIFIED; no zookeeper.* key in any file; 50 records written and read" in said


def test_what_the_copy_had_to_hold_was_held_against_it(finished: Finished) -> None:
    """Killed on the way, by whichever session's look."""
    claims = {claim["text"]: claim for claim in finished.report()["claims"]}
    said = claims["Everything in ZooKeeper was copied, except what is listed."]["evidence"]
    assert "23 of 23 topic" in said
    assert "137 of 137 partition" in said


def test_nothing_of_the_lab_lives_on(finished: Finished) -> None:
    """`lab demo` without --keep ends with the lab down."""
    assert alive(Lab.open(finished.directory)) == []
    assert isinstance(find_load(finished.directory), Stopped)


def test_every_replicas_directory_on_disk_is_the_one_in_the_metadata(finished: Finished) -> None:
    """Read independently: Kafka's own dump, the files, the folders."""
    assert finished.ended.returncode == 0, finished.ended.stderr[-4000:]
    lab = Lab.open(finished.directory)
    folder = Path(lab.topology.controllers[0].metadata_directory, "__cluster_metadata-0")
    in_log = directories_in_the_log(dumped_by_kafka(folder))
    assert len(in_log) >= 300
    assert in_log == directories_on_the_disks(lab)


def test_our_dump_of_the_log_is_kafkas(finished: Finished) -> None:
    """Record by record, on a log that a whole migration wrote."""
    lab = Lab.open(finished.directory)
    folder = Path(lab.topology.controllers[0].metadata_directory, "__cluster_metadata-0")
    segments = [str(path) for path in sorted(folder.glob("*.log"))]
    ended = kraft_migrate("metadata", "dump", "--show-secrets", *segments)
    assert ended.returncode == 0, ended.stderr
    ours = [json.loads(line) for line in ended.stdout.splitlines()]
    plain = [{key: record[key] for key in ("type", "version", "data")} for record in ours if not record.get("control")]
    assert plain == dumped_by_kafka(folder)


def test_every_batch_of_the_controllers_is_written_again_byte_for_byte(finished: Finished) -> None:
    """Decoded and encoded, logs and snapshots: no byte of a whole migration is without meaning to us."""
    files = [
        path
        for controller in Lab.open(finished.directory).topology.controllers
        for pattern in ("*.checkpoint", "__cluster_metadata-0/*.checkpoint", "__cluster_metadata-0/*.log")
        for path in Path(controller.metadata_directory).glob(pattern)
    ]
    assert {path.suffix for path in files} == {".checkpoint", ".log"}
    for path in files:
        raw = path.read_bytes()
        assert rewritten(raw, str(path)) == raw


def test_the_model_can_follow_what_the_cluster_did(finished: Finished) -> None:
    """Every effect, election, registration and state of this very run, Ctrl-C and kills included."""
    assert finished.ended.returncode == 0, finished.ended.stderr[-4000:]
    lab = Lab.open(finished.directory)
    brokers = tuple(node.id for node in lab.topology.brokers)
    follower = Follower(brokers, tuple(node.id for node in lab.topology.controllers))
    events = record_trace(lab)
    follower.follow(events)
    assert follower.followed == len(events) > 80


def secrets_of(finished: Finished, parked: Parked) -> frozenset[str]:
    """Passwords and delegation tokens of the lab."""
    secrets = {path.read_text().strip() for path in (finished.directory / "secrets").iterdir()}
    assert len(secrets) > 1
    for token in parked.tokens:
        hmac = bytes(token["hmac"])
        secrets |= {token["tokenId"], hmac.hex(), base64.b64encode(hmac).decode()}
    return frozenset(secrets)


def test_no_secret_stands_in_what_the_run_wrote(finished: Finished, parked: Parked) -> None:
    """Plans, journals, reports, the load's files, process descriptions: none holds one, in whatever form."""
    secrets = secrets_of(finished, parked)
    written = [
        path
        for name in ("runs", "load", "processes", "spark")
        for path in (finished.directory / name).rglob("*")
        if path.is_file() and "backup" not in path.parts
    ]
    assert any(path.name == "journal.jsonl" for path in written)
    ours = ("demo.json", "inventory.yaml", "seeded.json", "tokens.json")
    for path in [*written, *(finished.directory / name for name in ours)]:
        assert not holding(path.read_bytes(), secrets), path


def test_no_secret_stands_in_words_or_environment_of_any_process(
    finished: Finished, parked: Parked, processes: Processes
) -> None:
    """Of Kafka, ZooKeeper, Spark, the load and our own commands, as anybody could read them in /proc."""
    for word in (b"kafka.Kafka", b"QuorumPeerMain", b"SparkSubmit", b"-m\0migrate"):
        assert processes.of(word), word
    secrets = secrets_of(finished, parked)
    for process, words, around in processes.seen:
        assert not holding(words + around, secrets), (process, words[:200])


def test_backups_are_for_their_owner_alone(finished: Finished) -> None:
    """They hold what the files held, passwords too."""
    kept = [path for path in finished.directory.rglob("backup/**/*") if path.is_file()]
    assert len(kept) >= 3 * 4 + 1
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
