"""Rollbacks, and forward again, from states that other hands or bad luck made: each bent on a real lab under load.

| part | the state | the way out |
| --- | --- | --- |
| `copy-again` | the copy is done by the metadata, not by `/migration` | `rollback plan --copy-again` |
| `finish-dual-write` | controllers killed; ZooKeeper lacks a topic and a deletion | they write both, then back |
| `flag-back` | a finalize killed with one file without its flag, nobody started from it | the flag, then back |
| `early-finalize` | a controller without the flag was elected in the middle of the second roll | forward |
| `version-1` | a disk that `kafka-storage format` made under a KRaft broker | mended on the rollback |
| `dead-channel` | a broker's thread for ISR changes dies as control is handed back | its restart, then on |

Each part ends the stage of the cluster again; `again` migrates it to the end as well, which is dear.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient, NewTopic

from migrate.hosts.properties import edit, parse
from migrate.lab import ready, rollback_proofs, seed
from migrate.lab.cluster import Lab
from migrate.lab.proofs import quiet_clients, read_records, steady_producer, works_without_zookeeper, write_records
from migrate.lab.rollback_proofs import hash_broker_files
from migrate.lab.seed_data import SeedQuota
from migrate.model.broker_modes import FLAG
from migrate.model.history import LoadSummary
from migrate.model.views import Running
from migrate.zookeeper import layout
from migrate.zookeeper.client import connect
from migrate.zookeeper.write import ZookeeperWriter
from tests.lab.commands import kraft_migrate, to_its_end
from tests.lab.dead_channel import dead_channel, lost_request
from tests.lab.rollbacks import against, demo, judged

STOP: Final = 120.0
WAIT: Final = 120.0
LOST_QUOTA: Final = SeedQuota((("client-id", "made-lost"),), {"producer_byte_rate": 1048583.0})
UNWRITTEN: Final = ("made-unwritten-1", "made-unwritten-2")


@dataclass
class Story:
    """A lab under load, and what was seen on the way."""

    lab: Lab
    before: dict[str, str]
    told: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    load: LoadSummary | None = None

    def status(self) -> Any:
        """`status --output json`."""
        ended = kraft_migrate("status", str(self.lab.playbook_path), "--output", "json")
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    def until(self, what: str, reached: Callable[[Any], bool]) -> Any:
        """Ask for the status until it is so."""
        deadline = time.monotonic() + WAIT
        while not reached(found := self.status()):
            assert time.monotonic() < deadline, f"{what}: {json.dumps(found, indent=1)}"
        return found

    def planned(self, *words: str) -> tuple[Path, Any]:
        """A plan that has changes, and where it was saved; `words` begin with `plan` or `rollback plan`."""
        command = words[:2] if words[0] == "rollback" else words[:1]
        ended = kraft_migrate(*command, str(self.lab.playbook_path), *words[len(command) :], "--output", "json")
        assert ended.returncode in (0, 2), ended.stdout[-2000:] + ended.stderr[-3000:]  # a comparison changes nothing
        made = json.loads(ended.stdout)
        return Path(self.lab.inventory.runs) / made["fingerprint"][:8] / "plan.json", made

    def applied(self, *words: str, crash: str = "") -> Path:
        """Plan and apply; the run's folder.  With `crash`, killed there and left."""
        path, saved = self.planned(*words)
        command = ("rollback", "apply") if words[0] == "rollback" else ("apply",)
        confirm = ["--confirm", saved["fingerprint"]]
        if command == ("apply",):
            confirm += ["--confirm-cluster", saved["plan"]["cluster"]]
        began = time.monotonic()
        whole = (*command, str(path), *confirm)
        directory = Path(self.lab.topology.directory)
        ended = kraft_migrate(*whole, crash=crash) if crash else to_its_end(directory, *whole)
        wanted = -signal.SIGKILL if crash else 0
        assert ended.returncode == wanted, f"{words}: {ended.returncode} {ended.stderr[-4000:]}"
        self.seconds[" ".join(words)] = time.monotonic() - began
        return path.parent

    def refused(self, *words: str) -> str:
        """A command that must end with 3: what it said."""
        ended = kraft_migrate(*words)
        assert ended.returncode == 3, f"{words}: {ended.returncode} {ended.stdout[-2000:]} {ended.stderr[-2000:]}"
        return ended.stderr + ended.stdout

    def whole(self, *names: str) -> None:
        """Every broker agrees on every partition again."""
        ready.wait_until("the lab", lambda: ready.brokers_agree(self.lab.topology), self.lab.supervisor, list(names))

    def restart(self, name: str, content: bytes | None = None) -> None:
        """By hand, with another file where one is given."""
        self.lab.supervisor.stop(name, STOP)
        if content is not None:
            self.lab.topology.config(name).write_bytes(content)
        self.lab.supervisor.start(name)

    def back(self, stage: str) -> Path:
        """`rollback plan` and `rollback apply`, and what the lab's own proofs say."""
        folder = self.applied("rollback", "plan")
        assert against(self.lab, stage, self.before, folder) == ()
        return folder


def leader(status: Any) -> int:
    """Of the quorum; -1 where nobody knows."""
    return int(status["quorum"].get("leader", -1))


def begun(directory: Path) -> Story:
    """A seeded lab in ZooKeeper mode, its load running."""
    demo("assess", directory)
    lab = Lab.open(directory)
    return Story(lab, hash_broker_files(lab))


def steps_of(folder: Path, kind: str = "") -> list[str]:
    """Ids of the steps of that kind, or of all, in the plan's order."""
    steps = json.loads((folder / "plan.json").read_text())["plan"]["steps"]
    return [step["id"] for step in steps if kind in ("", step["kind"])]


# -- a copy that is stuck ------------------------------------------------------------------------------------------
def copy_again(story: Story) -> None:
    """The znode is what the killed controller would have left; every topic is there when the copy was made again."""
    lab = story.lab
    demo("hybrid", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "hybrid")
    for controller in lab.topology.controllers:
        lab.supervisor.stop(controller.name, STOP)
    remember_no_copy(lab)
    for controller in lab.topology.controllers:
        lab.supervisor.start(controller.name)
    story.until("a stuck copy", lambda found: leader(found) >= 0)
    text = kraft_migrate("status", str(lab.playbook_path)).stdout
    story.told["status"] = text
    assert "--copy-again" in text, text
    folder = story.applied("rollback", "plan", "--copy-again")
    assert len(steps_of(folder, "restart-in-migration-mode")) == len(lab.topology.brokers)
    story.until("the copy", lambda found: found.get("stage") == "copy" and not found["waiting"])
    story.applied("plan", "--stage", "hybrid")
    rollback_proofs.require_records(lab, "hybrid")


def remember_no_copy(lab: Lab) -> None:
    """/migration as it is before the offset of the copy is noted."""
    with connect(lab.inventory.zookeeper) as client:
        (znode,) = client.data([layout.MIGRATION])
        value = json.loads(znode.data)  # type: ignore[union-attr, arg-type]
        assert value["kraft_metadata_offset"] > 0
        value["kraft_metadata_offset"] = -1
        data = json.dumps(value, separators=(",", ":")).encode()
        ZookeeperWriter(client).set(layout.MIGRATION, data, znode.version)  # type: ignore[union-attr]


# -- what stopped controllers left unwritten -----------------------------------------------------------------------
def finish_dual_write(story: Story) -> None:
    """Topics are committed while ZooKeeper stands still, and the controllers die before it goes on.

    What was sent to it before they died it carries out as it goes on (seen); the next topic waits for that answer.  The
    deletion of a client id's last quota Kafka itself loses (`KRaftMigrationZkWriter.handleClientQuotasDelta`), and
    /migration passes it.  A plan that was made before both refuses to give control back over them.
    """
    lab = story.lab
    demo("hybrid", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "hybrid")
    seed.alter_quotas(lab.topology, (LOST_QUOTA,))
    story.until("dual write", lambda found: not found["waiting"])
    for controller in lab.topology.controllers:
        lab.supervisor.stop(controller.name, STOP)
    path, saved = story.planned("rollback", "plan")
    assert steps_of(path.parent)[:2] == ["hybrid/keep-zookeeper", "copy/raise-state-versions"]
    for controller in lab.topology.controllers:
        lab.supervisor.start(controller.name)
    story.until("a leader", lambda found: leader(found) >= 0 and not found["waiting"])
    seed.alter_quotas(lab.topology, (LOST_QUOTA,), remove=True)
    admin = AdminClient(quiet_clients(lab.inventory))
    with standing_still(lab, "zookeeper"):
        for topic in UNWRITTEN:
            admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(5)
        for controller in lab.topology.controllers:
            lab.supervisor.kill(controller.name)
    assert set(UNWRITTEN) - set(topics(lab))
    assert quota_in_zookeeper(lab), "dual write has lost the deletion"
    held = kraft_migrate("rollback", "apply", str(path), "--confirm", saved["fingerprint"])
    story.told["held"] = " ".join((held.stdout + held.stderr).split())
    assert held.returncode not in (0, 1), story.told["held"]
    for part in ("ONLY_ZK client-quota client-id=made-lost", "ONLY_KRAFT", "plan the rollback again at once"):
        assert part in story.told["held"], story.told["held"]
    assert kraft_owns(lab), "/controller was handed back over what would be lost"
    folder = story.back("hybrid")
    assert steps_of(folder)[0] == "hybrid/finish-dual-write"
    assert set(UNWRITTEN) <= set(topics(lab))
    assert not quota_in_zookeeper(lab)
    for topic in UNWRITTEN:
        write_records(steady_producer(quiet_clients(lab.inventory)), topic)
        assert read_records(quiet_clients(lab.inventory), topic) > 0


def quota_in_zookeeper(lab: Lab) -> bool:
    """Does ZooKeeper hold the quota that is deleted in dual write?"""
    ((_, name),) = LOST_QUOTA.entity
    with connect(lab.inventory.zookeeper) as client:
        (znode,) = client.data([f"{layout.CLIENT_CONFIGS}/{name}"])
    return b"producer_byte_rate" in (getattr(znode, "data", None) or b"")


def kraft_owns(lab: Lab) -> bool:
    """Is /controller a KRaft controller's?"""
    with connect(lab.inventory.zookeeper) as client:
        (znode,) = client.data([layout.CONTROLLER])
    return b"kraftControllerEpoch" in (getattr(znode, "data", None) or b"")


def topics(lab: Lab) -> tuple[str, ...]:
    """Those that ZooKeeper knows."""
    with connect(lab.inventory.zookeeper) as client:
        found = client.children([layout.TOPICS])[0]
    assert isinstance(found, tuple)
    return found


@contextmanager
def standing_still(lab: Lab, name: str) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end: shorter than a session's timeout."""
    state = lab.supervisor.state(name)
    assert isinstance(state, Running)
    os.kill(state.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(state.pid, signal.SIGCONT)


# -- a half-done finalize --------------------------------------------------------------------------------------------
def flag_back(story: Story) -> None:
    """Killed when the first controller's file had lost its flag and its process was stopped: nobody ran without."""
    lab = story.lab
    demo("soak", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "soak")
    chosen = min(c.id for c in lab.topology.controllers if c.id != leader(story.status()))
    story.applied("plan", "--stage", "finalize", crash=f"after:write-config:{chosen}")
    assert FLAG not in parse(lab.topology.config(f"controller-{chosen}").read_bytes())
    folder = story.back("soak")
    assert steps_of(folder)[0] == f"hybrid/flag-back-{chosen}"
    aside = lab.topology.config(f"controller-{chosen}")
    (kept,) = aside.parent.glob(f"{aside.name}.kraft-migrate-set-aside*")
    assert parse(kept.read_bytes())[FLAG] == "true"


# -- finalized too early -------------------------------------------------------------------------------------------
def early_finalize(story: Story) -> None:
    """One broker in KRaft mode, two not, when somebody restarts a controller without the flag, and it is elected."""
    lab = story.lab
    demo("hybrid", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "hybrid")
    half = story.applied("plan", "--stage", "kraft-mode", crash="before:stop:1")
    asked = str(lab.playbook_path)
    chosen = max(c.id for c in lab.topology.controllers if c.id != leader(story.status()))
    name = f"controller-{chosen}"
    story.restart(name, edit(lab.topology.config(name).read_bytes(), {}, [FLAG, "zookeeper.connect"]))
    story.until("the quorum", lambda found: voters_follow(found, 3))
    # known before it is elected: nothing goes on, forward or back, and the file is named
    story.told["flagless"] = story.refused("apply", str(half / "plan.json"))
    assert "B-MIG-07" in story.told["flagless"]
    assert str(lab.topology.config(name)) in story.told["flagless"]
    assert "E-PLAN-06" in story.refused("rollback", "plan", asked)
    elect(story, chosen)
    story.told["status"] = kraft_migrate("status", asked).stdout
    assert "finalized while brokers [1, 2] are in migration mode" in " ".join(story.told["status"].split())
    said = story.refused("rollback", "plan", asked)
    assert "E-PLAN-06" in said
    assert "no rollback is possible" in said
    assert "no rollback is possible" in story.refused("apply", str(half / "plan.json"))
    # a broker that somebody restarts now is lost until its own roll, which comes first
    story.restart("broker-2")
    story.until("the lost broker", lambda _: lost(lab, "broker-2"))
    folder = story.applied("plan")
    assert steps_of(folder, "roll-forward") == ["kraft-mode/2", "kraft-mode/1"]
    assert len(steps_of(folder, "finish-finalize")) == len(lab.topology.controllers)
    story.whole(*(broker.name for broker in lab.topology.brokers))
    lab.stop_zookeeper()
    works_without_zookeeper(lab)
    rollback_proofs.require_records(lab, "hybrid")


def voters_follow(found: Any, wanted: int) -> bool:
    """Have so many voters the leader's log?"""
    quorum = found["quorum"]
    high = quorum.get("high_watermark", 0)
    follow = [offset for offset in quorum.get("voters", {}).values() if offset >= high]
    return bool(high > 0 and len(follow) >= wanted)


def lost(lab: Lab, name: str) -> bool:
    """Do the controllers refuse it, whose migration is over?  Its registration of before stays, fenced (seen)."""
    return any("BROKER_ID_NOT_REGISTERED" in line for line in lab.supervisor.last_words(name, 20))


def elect(story: Story, wanted: int) -> None:
    """Make the wanted controller the only one that can win: one follower sleeps and falls behind, the leader dies.

    Restarting leaders in turn does not do it: one that stops in order names its successor, two of them may take turns
    for ever (seen).
    """
    found = story.until("a leader", lambda found: leader(found) >= 0 and voters_follow(found, 3))
    leads = leader(found)
    if leads == wanted:
        return
    (behind,) = [c.id for c in story.lab.topology.controllers if c.id not in (leads, wanted)]
    story.lab.supervisor.stop(f"controller-{behind}", STOP)
    end = int(story.status()["quorum"]["high_watermark"])
    story.until("newer records", lambda found: int(found["quorum"].get("high_watermark", 0)) > end)
    story.lab.supervisor.kill(f"controller-{leads}")
    story.lab.supervisor.start(f"controller-{behind}")
    story.until(f"controller {wanted} to lead", lambda found: leader(found) == wanted)
    story.lab.supervisor.start(f"controller-{leads}")


# -- a disk that kafka-storage formatted ---------------------------------------------------------------------------
def version_1(story: Story) -> None:
    """An empty disk in place of one, formatted as Kafka's book says: ZooKeeper mode would refuse it."""
    lab = story.lab
    demo("kraft-mode", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "kraft-mode")
    name, disk = replaceable(lab)
    with connect(lab.inventory.zookeeper) as client:
        (znode,) = client.data([layout.CLUSTER_ID])
        cluster = json.loads(znode.data)["id"]  # type: ignore[union-attr, arg-type]
    lab.supervisor.stop(name, STOP)
    shutil.rmtree(disk)
    disk.mkdir()
    format_as_a_person_would(lab, name, cluster)
    formatted = (disk / "meta.properties").read_bytes()
    assert parse(formatted)["version"] == "1"
    lab.supervisor.start(name)
    story.whole(name)
    folder = story.back("kraft-mode")
    plan = json.loads((folder / "plan.json").read_text())["plan"]
    said = [action["what"] for step in plan["steps"] for action in step["actions"] if "rewrite " in action["what"]]
    assert said == [f"rewrite {disk / 'meta.properties'}"]
    now, was = parse((disk / "meta.properties").read_bytes()), parse(formatted)
    assert now["version"] == "0"
    assert now["directory.id"] == was["directory.id"]
    copies = [path for path in disk.glob("meta.properties.kraft-migrate-backup*") if path.read_bytes() == formatted]
    assert len(copies) == 1


def format_as_a_person_would(lab: Lab, name: str, cluster: str) -> None:
    """kafka-storage with the broker's own file; only its controllers are described as what a run formats."""
    tool = lab.supervisor.spec(lab.topology.controllers[0].name)
    file = str(lab.topology.config(name))
    words = [f"--cluster-id={cluster}", "-c", file, "--release-version", "3.9", "--ignore-formatted"]
    run = subprocess.run(
        [*tool.format_argv, *words],
        cwd=tool.directory,
        env=tool.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def replaceable(lab: Lab) -> tuple[str, Path]:
    """A broker and a disk of it on which no partition has its only replica."""
    admin = AdminClient(quiet_clients(lab.inventory))
    topics = admin.list_topics(timeout=30).topics.values()
    only = {
        f"{topic.topic}-{number}"
        for topic in topics
        for number, partition in topic.partitions.items()
        if len(partition.replicas) == 1
    }
    for broker in reversed(lab.topology.brokers):
        for directory in map(Path, broker.log_dirs[1:]):
            if not only & {path.name for path in directory.iterdir()}:
                return broker.name, directory
    raise AssertionError("every disk has a partition's only replica")


PARTS: Final[dict[str, Callable[[Story], None]]] = {
    "copy-again": copy_again,
    "finish-dual-write": finish_dual_write,
    "flag-back": flag_back,
    "early-finalize": early_finalize,
    "version-1": version_1,
    "dead-channel": dead_channel,
    "lost-request": lost_request,
}
EACH_COMMIT: Final = ("copy-again", "finish-dual-write", "flag-back")  # the others are in the long tier alone
LED_OUT: Final = {  # the plan whose carrying out led out of it
    "copy-again": "rollback plan --copy-again",
    "finish-dual-write": "rollback plan",
    "flag-back": "rollback plan",
    "early-finalize": "plan",
    "version-1": "rollback plan",
    "dead-channel": "rollback plan",
    "lost-request": "rollback plan",
}
ENDED: Final = ("early-finalize",)  # at its end it is migrated


def tried(part: str, directory: Path, *, again: bool) -> Story:
    """The part of that name; with `again` the cluster is then migrated to its end, proven as any demo is."""
    story = begun(directory)
    PARTS[part](story)
    story.load = judged(story.lab)
    if again and part not in ENDED:
        demo("cleanup", directory)
    return story
