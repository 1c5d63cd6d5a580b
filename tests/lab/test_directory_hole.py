"""Kafka unfences a broker whose replicas have no known directory; a disk that dies then takes partitions down silently.

On a real cluster in the middle of the second roll: AssignReplicasToDirs of one KRaft broker is held back by the lab's
proxy.  The gate does not let the next broker go; the disk is killed under the broker; assigned replicas fail over,
MIGRATING and UNASSIGNED ones hang; `directories rescue` frees them; mended, the run goes on to its end.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from migrate.kafka.controller import ActiveController, body_of
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.topology import Shape
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, NodeId, directory_name
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, LiveView
from migrate.model.world import World
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS as ASSIGN
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.run.drive import LOOK, Driver, to_send
from tests.lab import faults
from tests.lab.commands import kraft_migrate
from tests.lab.links import ProxiedLab

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ASSIGN_REPLICAS_TO_DIRS = 73
BROKER, DISK = 0, 1
DRIVEN = 2  # the broker that policy drive serves
SMALL = 25  # replicas in one of its requests
WRONGED = 1  # the broker whose replicas a foreign tool assigns
RANDOM = "AAAAAAAAAAEAAAAAAAAAZA"  # nobody's directory
EARLY, LATE = "early", "late"  # made before the roll, and under the KRaft broker
Partition = tuple[str, int]
HUNG = "_MSG_TIMED_OUT"
GIVE_UP = 8000  # ms
PATIENCE = "30s"  # of the stage whose wait never ends


@dataclass
class Story:
    """What was seen, in order."""

    lab: Lab
    observer: ClusterObserver
    wrong: Mapping[tuple[str, int], str] | None = (
        None  # (topic id, partition) of broker 1 -> what was sent from outside
    )
    recognised: Any = None
    corrected: Any = None
    afterwards: Any = None
    paced: Any = None
    applied: Any = None
    told: Any = None
    verified: Any = None
    states: Mapping[Partition, str] | None = None
    before: Mapping[Partition, str] | None = None
    after: Mapping[Partition, str] | None = None
    shown: Any = None
    sent: Any = None
    rescued: Mapping[Partition, str] | None = None
    again: Any = None
    finished: Any = None

    def world(self) -> World:
        """One look."""
        return self.observer.observe(LOOK, {})

    def until(self, reached: Callable[[World], bool], seconds: float = 90) -> World:
        """Wait for a state of the cluster."""
        deadline = time.monotonic() + seconds
        while not reached(world := self.world()):
            assert time.monotonic() < deadline
        return world

    def produce(self, partitions: Mapping[Partition, str]) -> dict[Partition, str]:
        """One record with acks=all to each: "ok", or why not."""
        results: dict[Partition, str] = {}
        settings = {"acks": "all", "message.timeout.ms": GIVE_UP, "log_level": 2, "linger.ms": 0}
        producer = Producer({**settings_for(self.lab.topology), **settings})
        for topic, partition in partitions:

            def told(error: Any, _: Any, key: Partition = (topic, partition)) -> None:
                results[key] = "ok" if error is None else error.name()

            producer.produce(topic, b"record", partition=partition, on_delivery=told)
        producer.flush(2 * GIVE_UP / 1000)
        return results


def metadata(world: World) -> KraftView:
    """The metadata, seen."""
    assert isinstance(world.kraft, KraftView), world.kraft
    return world.kraft


def offline(world: World) -> bool:
    """Has the broker noticed its disk?"""
    assert isinstance(world.live, LiveView)
    said = world.live.log_dirs[NodeId(BROKER)]
    return not isinstance(said, Unknown) and any(answer.error for answer in said)


def whole(world: World) -> bool:
    """Every partition, in every broker's eyes."""
    assert isinstance(world.live, LiveView)
    return all(not isinstance(answer, Unknown) and not answer.unhealthy for answer in world.live.metadata.values())


def led_from_the_disk(world: World) -> dict[Partition, str]:
    """Partitions of our topics that the broker leads from that disk: what the metadata calls their directory."""
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(BROKER)]
    assert not isinstance(disks, Unknown)
    replicas = disks.directories[DISK].replicas
    here = set(zip(replicas.topic, replicas.partition, strict=True))
    rows = metadata(world).partitions
    found = {}
    for index, (topic, partition) in enumerate(zip(rows.topic, rows.partition, strict=True)):
        if topic in (EARLY, LATE) and rows.leader[index] == BROKER and (topic, partition) in here:
            name = directory_name(rows.directories[index][rows.replicas[index].index(BROKER)])
            found[topic, partition] = name if name in ("MIGRATING", "UNASSIGNED") else "assigned"
    return found


def make(admin: AdminClient, topic: str, partitions: int) -> None:
    """A topic whose every partition has two replicas."""
    for future in admin.create_topics([NewTopic(topic, partitions, 2)]).values():
        future.result(30)


def command(*words: str) -> Any:
    """A command that answers as JSON."""
    ended = kraft_migrate(*words, "--output", "json")
    return json.loads(ended.stdout), ended.returncode


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once."""
    folder = tmp_path_factory.mktemp("hole") / "lab"
    lab = ProxiedLab.made(folder, Shape(directories=2, jmx=True))
    observer = ClusterObserver(Sources(lab.inventory, Unknown("none"), None))
    try:
        lab.up()
        text = lab.playbook_path.read_text()
        changed, count = re.subn(r"(- name: kraft-mode .*\n)", rf"\1      no_progress_timeout: {PATIENCE}\n", text)
        assert count == 1
        lab.playbook_path.write_text(changed)
        yield tell(Story(lab, observer))
    finally:
        observer.close()
        lab.down()


def tell(story: Story) -> Story:
    """The story from ZooKeeper mode to its end."""
    lab, inventory = story.lab, ("--inventory", str(story.lab.inventory_path))
    admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
    make(admin, EARLY, 36)
    hybrid = kraft_migrate("lab", "demo", "--dir", lab.topology.directory, "--until", "hybrid", "--no-load")
    assert hybrid.returncode == 0, hybrid.stderr[-3000:]
    story.wrong = send_wrong_values(story)
    story.until(whole)
    story.recognised = command("directories", "verify", *inventory)
    story.corrected = command("directories", "rescue", *inventory, "--yes")
    story.afterwards = command("directories", "verify", *inventory)
    story.paced = driven_in_small_requests(story)
    faults.break_link(lab, BROKER, frozenset({ASSIGN_REPLICAS_TO_DIRS}))
    seed_some(story)
    planned, _ = command("plan", str(lab.playbook_path), "--stage", "kraft-mode")
    plan = str(Path(lab.inventory.runs) / planned["fingerprint"][:8] / "plan.json")
    story.applied = kraft_migrate("apply", plan)
    story.told = command("status", *inventory)
    make(admin, LATE, 24)
    rows = metadata(story.until(whole)).partitions
    names: dict[str, list[int]] = {}
    for topic, partition, replicas in zip(rows.topic, rows.partition, rows.replicas, strict=True):
        if topic in (EARLY, LATE) and replicas[0] == BROKER:
            names.setdefault(topic, []).append(partition)
    ActiveController(lab.inventory).elect_leaders(names)
    story.until(lambda world: set(led_from_the_disk(world).values()) == {"assigned", "MIGRATING", "UNASSIGNED"})
    story.verified = command("directories", "verify", *inventory)
    story.states = led_from_the_disk(story.world())
    story.before = story.produce(story.states)
    faults.break_disk(lab, BROKER, DISK, faults.DiskFault.GONE)
    story.until(offline)
    moved = {key for key, state in story.states.items() if state == "assigned"}
    story.until(lambda world: not moved & leads(world))
    story.after = story.produce(story.states)
    story.shown = command("directories", "rescue", *inventory)
    story.sent = command("directories", "rescue", *inventory, "--yes")
    story.rescued = story.produce(story.states)
    story.again = command("directories", "rescue", *inventory)
    faults.repair_link(lab, BROKER)
    faults.repair_disk(lab, BROKER, DISK)
    lab.supervisor.stop(NodeId(BROKER), 60)
    lab.supervisor.start(NodeId(BROKER))
    story.until(lambda world: not offline_or_silent(world) and whole(world))
    story.finished = kraft_migrate("apply", plan)
    return story


def offline_or_silent(world: World) -> bool:
    """Is the broker not back yet, or not with all its disks?"""
    assert isinstance(world.live, LiveView)
    said = world.live.log_dirs[NodeId(BROKER)]
    return isinstance(said, Unknown) or any(answer.error for answer in said)


def leads(world: World) -> set[Partition]:
    """The partitions that the broker leads."""
    rows = metadata(world).partitions
    found = zip(rows.topic, rows.partition, rows.leader, strict=True)
    return {(topic, partition) for topic, partition, leader in found if leader == BROKER}


def seed_some(story: Story) -> None:
    """A third of the broker's replicas is assigned from outside, before its restart."""
    world = story.observer.observe(LOOK, {})
    part = {directory: rows[::3] for directory, rows in to_send(world.ledger, BROKER).items()}
    epoch = metadata(world).brokers[NodeId(BROKER)].epoch
    assert not any(ActiveController(story.lab.inventory).assign(NodeId(BROKER), epoch, part).values())


@dataclass
class Paced:
    """Policy drive in small requests: where the log and /migration stood, and how long each was waited for."""

    said: str = ""
    committed: list[int] = field(default_factory=list)  # end of the log when a request was answered
    passed: list[int] = field(default_factory=list)  # /migration when the next one was about to be sent
    seconds: list[float] = field(default_factory=list)  # from the one to the other


def driven_in_small_requests(story: Story) -> Paced:
    """Broker 2 in dual write, as policy drive does it; ZooKeeper is asked beside it."""
    paced, answered = Paced(), [0.0]
    controller = ActiveController(story.lab.inventory)
    client = KazooClient(story.lab.inventory.zookeeper)
    client.start(timeout=15)

    def reached(_label: str) -> None:
        paced.committed.append(controller.quorum().high_watermark)
        answered[0] = time.monotonic()

    def tell(_broker: NodeId, _text: str) -> None:
        if paced.committed:
            paced.passed.append(json.loads(client.get("/migration")[0])["kraft_metadata_offset"])
            paced.seconds.append(time.monotonic() - answered[0])

    try:
        driver = Driver(story.observer, controller, SystemClock(), lambda: None, reached, SMALL, tell)
        paced.said = driver.drive(NodeId(DRIVEN))
    finally:
        client.stop()
        client.close()
    print(f"pace: {paced.said}; seconds from an answer to the next request: {[round(s, 2) for s in paced.seconds]}")
    return paced


def test_migration_is_never_more_than_one_request_behind(story: Story) -> None:
    """When a request of policy drive goes out, dual write has passed every record of the one before."""
    assert len(story.paced.passed) == len(story.paced.committed) - 1 > 2, story.paced
    for end, passed in zip(story.paced.committed, story.paced.passed, strict=False):
        assert passed >= end - 1, story.paced
    assert story.paced.said.endswith(" 0 retried")


def send_wrong_values(story: Story) -> dict[tuple[str, int], str]:
    """What a foreign tool might send for replicas of broker 1, which is in migration mode: five values, none right."""
    world = story.world()
    view = metadata(world)
    proven = to_send(world.ledger, WRONGED)
    (own, here), *_ = sorted(proven.items(), key=lambda item: -len(item[1]))
    other = next(directory for directory in view.brokers[NodeId(WRONGED)].log_dirs if directory != own)
    foreign = min(view.brokers[NodeId(2)].log_dirs)
    values = (str(foreign), RANDOM, str(LOST), str(UNASSIGNED), str(other))
    early = view.partitions.topic_id[view.partitions.topic.index(EARLY)]
    sent = dict(zip([row for row in here if row[0] == early], values, strict=False))
    assert len(sent) == len(values)
    connection, _ = ActiveController(story.lab.inventory).connect()
    with connection:
        # not by `assign`, which refuses reserved ids
        rows = [(value, row) for row, value in sent.items()]
        answer = connection.call(ASSIGN, body_of(NodeId(WRONGED), view.brokers[NodeId(WRONGED)].epoch, rows))
    assert answer["errorCode"] == 0
    return sent


def rows_sent_wrong(story: Story, answer: Any) -> dict[str, Any]:
    """Value that was sent -> the ledger's row."""
    assert story.wrong is not None
    rows = {(row["topic_id"], row["partition"]): row for row in answer["replicas"] if row["broker"] == WRONGED}
    return {value: rows[replica] for replica, value in story.wrong.items()}


def test_wrong_values_from_outside_are_recognised_under_a_full_isr(story: Story) -> None:
    """Foreign, random, LOST, UNASSIGNED, the broker's own other directory: with the id that is to be sent."""
    answer, code = story.recognised
    assert code == 2
    rows = rows_sent_wrong(story, answer)
    states = {value: row["state"] for value, row in rows.items()}
    assert sorted(states.values()) == ["LOST", "MISMATCH", "MISMATCH", "MISMATCH", "UNASSIGNED"]
    assert all(row["in_metadata"] == value for value, row in rows.items())
    assert all(row["send"] == row["on_disk"] and row["mend"] for row in rows.values())


def test_wrong_values_from_outside_are_mended_by_the_rescue(story: Story) -> None:
    """A broker in migration mode never corrects them; UNASSIGNED is what it reports by itself later."""
    answer, code = story.corrected
    assert (code, answer["sent"]) == (0, True)
    assert {row["kind"] for row in answer["stranded"]} == {"wrong"}
    rows = rows_sent_wrong(story, story.afterwards[0])
    left = {value: row["state"] for value, row in rows.items() if row["state"] != "VERIFIED"}
    assert left == {str(UNASSIGNED): "UNASSIGNED"}


def test_the_gate_does_not_let_the_roll_come_that_far(story: Story) -> None:
    """The ledger says no: the run stops behind the first broker, with the rows, and restarts no other."""
    assert story.applied.returncode == 5, story.applied.stderr
    said = story.applied.stderr + story.applied.stdout
    assert "every replica of broker 0 to be VERIFIED" in said
    assert "MIGRATING" in said
    (journal,) = [path for path in Path(story.lab.inventory.runs).glob("*/journal.jsonl") if stopped(path)]
    started = {event.data["node"] for event in journals.read(journal).events[: stopped(journal)] if is_start(event)}
    assert started == {"0"}


def test_status_tells_the_stall_from_a_first_request_that_was_refused(story: Story) -> None:
    """Which broker, how many replicas, since when and why; and its queue, over JMX, is not empty."""
    answer, code = story.told
    assert code == 0
    (row,) = answer["waiting"]
    assert (row["code"], row["nodes"]) == ("S-STUCK-70", [BROKER])
    assert "report the directories of" in row["waits_for"]
    assert re.search(r"it sent \d+ at \d{4}-.* and has no answer", row["cause"]), row["cause"]
    (queue,) = [line for line in row["evidence"] if line.startswith("QueuedReplicaToDirAssignments")]
    left = int(re.search(r"of (\d+) replicas", row["waits_for"])[1])  # type: ignore[index] # it matches
    assert queue == f"QueuedReplicaToDirAssignments of broker {BROKER} is {left}"
    assert f"directories assign {BROKER}" in row["next"]


def test_the_broker_reports_exactly_what_nobody_seeded(story: Story) -> None:
    """A third was assigned before its restart; its own first request holds the other two, and none of the third."""
    (journal,) = [path for path in Path(story.lab.inventory.runs).glob("*/journal.jsonl") if stopped(path)]
    note = journals.notes(journals.read(journal).events)[f"assigned-before:{BROKER}"]
    assigned, replicas = map(int, re.match(r"(\d+) of (\d+) at", note).groups())  # type: ignore[union-attr] # it matches
    log = story.lab.topology.log(f"broker-{BROKER}").read_text()
    sent = re.findall(r"maybeSendAssignments: sending (\d+) assignments", log)
    assert 0 < assigned < replicas
    assert int(sent[0]) == replicas - assigned


def stopped(path: Path) -> int:
    """Where the journal says that the run stopped for want of progress; 0 where it did not."""
    events = journals.read(path).events
    return next((event.number for event in events if event.name == "stop" and "no progress" in str(event.data)), 0)


def is_start(event: Any) -> bool:
    """Is a node started by this?"""
    return bool(event.name == "effect" and event.data["effect"] == "start")


def test_verify_names_what_the_gate_saw_with_what_to_do(story: Story) -> None:
    """MIGRATING of a KRaft broker whose disk is well: send it, or look why the broker does not."""
    answer, code = story.verified
    assert code == 2
    rows = [row for row in answer["replicas"] if row["broker"] == BROKER and row["state"] == "MIGRATING"]
    assert rows
    assert all(row["send"] == row["on_disk"] and "directories assign 0" in row["mend"] for row in rows)


def test_the_hole_is_real(story: Story) -> None:
    """All produce before; with the disk dead, assigned ones moved and produce, the others hang with a full ISR."""
    assert story.states is not None
    assert story.before is not None
    assert story.after is not None
    assert set(story.before.values()) == {"ok"}
    for key, state in story.states.items():
        assert story.after[key] == ("ok" if state == "assigned" else HUNG), (key, state)


def test_rescue_shows_what_hangs_and_sends_nothing_unasked(story: Story) -> None:
    """Every partition that hung is named with the dead directory's proven id; exit code 2."""
    assert story.states is not None
    answer, code = story.shown
    assert (code, answer["sent"]) == (2, False)
    (dead,) = answer["dead"]
    assert dead["path"] == story.lab.topology.brokers[BROKER].log_dirs[DISK]
    assert dead["id"] in dead["proofs"][0], "by a ledger in a journal, or by the registration in the log"
    rows = {(row["topic"], row["partition"]): row for row in answer["stranded"]}
    hung = {key for key, state in story.states.items() if state != "assigned"}
    assert hung <= rows.keys()
    assert all(rows[key]["hangs"] and rows[key]["leads"] and rows[key]["send"]["id"] == dead["id"] for key in hung)
    assert {rows[key]["in_metadata"] for key in hung} == {str(MIGRATING), str(UNASSIGNED)}


def test_with_rescue_every_partition_produces_again(story: Story) -> None:
    """And nothing is left to send; what was done stands in a journal of its own."""
    answer, code = story.sent
    assert (code, answer["sent"]) == (0, True)
    assert story.rescued is not None
    assert set(story.rescued.values()) == {"ok"}
    left, code = story.again
    assert code == 0
    assert not [row for row in left["stranded"] if row["hangs"]]
    journal = max(Path(story.lab.inventory.runs).glob("rescue-*/rescue.jsonl"))
    names = [event.name for event in journals.read(journal).events]
    assert names == ["run", "effect", "effected", "rescued"]


def test_mended_the_run_goes_on_to_its_end(story: Story) -> None:
    """The same command: the broker reported the rest itself, the others are rolled."""
    assert story.finished.returncode == 0, story.finished.stderr[-3000:]
    answer, code = command("directories", "verify", "--inventory", str(story.lab.inventory_path))
    assert (code, set(answer["counts"])) == (0, {"VERIFIED"})
