"""Rollbacks as tests run them: seven entries by `lab demo --rollback-from`, and odd ones by hand."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.properties import parse
from migrate.lab import rollback_proofs
from migrate.lab.cluster import Lab
from migrate.lab.load import stop_load
from migrate.lab.load_check import check_load
from migrate.lab.rollback_proofs import hash_broker_files, prove_rollback
from migrate.model.history import LoadSummary
from migrate.run import journal as journals
from migrate.zookeeper import layout
from migrate.zookeeper.client import connect
from tests.lab.commands import kraft_migrate, to_its_end

ENTRIES: Final = (
    "controllers",
    "half-migration-mode",
    "migration-mode",
    "hybrid",
    "half-kraft-mode",
    "kraft-mode",
    "soak",
)


@dataclass(frozen=True)
class Rehearsed:
    """One rehearsal at its end."""

    directory: Path
    ended: subprocess.CompletedProcess[str]

    def story(self) -> Any:
        """The report of the whole story."""
        return json.loads((self.directory / "runs" / "rehearsal.json").read_text())

    def back_folder(self) -> Path:
        """The rollback's own run folder."""
        return Path(json.loads((self.directory / "demo.json").read_text())["plan_back"]).parent


def rehearse(directory: Path, entry: str, until: str = "cleanup", crash: str = "") -> Rehearsed:
    """`lab demo --rollback-from ENTRY`, to that crash point, or to its end past what Kafka's own fault costs."""
    words = ("lab", "demo", "--dir", str(directory), "--rollback-from", entry, "--until", until)
    return Rehearsed(directory, kraft_migrate(*words, crash=crash) if crash else to_its_end(directory, *words))


# -- the odd ones ------------------------------------------------------------------------------------------------
def lose_the_journal(lab: Lab) -> None:
    """Everything that the runs left here is gone; what lies on the hosts is not."""
    runs = Path(lab.inventory.runs)
    runs.rename(runs.with_name("runs-lost"))


def kill_the_active_controller(lab: Lab) -> None:
    """SIGKILL; the others elect."""
    ended = kraft_migrate("status", "--inventory", str(lab.inventory_path), "--output", "json")
    lab.supervisor.kill(f"controller-{json.loads(ended.stdout)['quorum']['leader']}")


def kill_a_broker(lab: Lab) -> None:
    """SIGKILL: its session in ZooKeeper lives on for a while."""
    lab.supervisor.kill("broker-1")


def make_states_anew(lab: Lab) -> None:
    """The same bytes in new znodes, whose versions begin at 0: as behind the metadata as dual write may leave them."""
    with connect(lab.inventory.zookeeper) as client:
        for topic in client.kazoo.get_children(layout.TOPICS):
            for number in client.kazoo.get_children(f"{layout.TOPICS}/{topic}/partitions"):
                path = f"{layout.TOPICS}/{topic}/partitions/{number}/state"
                data, _ = client.kazoo.get(path)
                transaction = client.kazoo.transaction()
                transaction.delete(path)
                transaction.create(path, data)
                assert not [answer for answer in transaction.commit() if isinstance(answer, Exception)]


EXTRA: Final = b"# by hand\nlog.cleaner.threads=2\n"


def change_files(lab: Lab) -> dict[str, str]:
    """Put back one broker's file of ZooKeeper mode under its process, and add an ordinary key to another one's.

    Answers the hash that the latter's file is to have at the end.
    """
    first, second = lab.topology.config("broker-1"), lab.topology.config("broker-2")
    first.write_bytes(Path(f"{first}{BACKUP_SUFFIX}").read_bytes())
    original = Path(f"{second}{BACKUP_SUFFIX}").read_bytes()
    second.write_bytes(second.read_bytes() + EXTRA)
    said = kraft_migrate("status", str(lab.playbook_path))
    assert said.returncode in (0, 3), said.stderr
    kraft = parse(second.read_bytes()).get("process.roles") == "broker"
    mode, origin, cost = ("KRaft", "kraft-mode", "2 rolls (6") if kraft else ("migration", "hybrid", "1 roll (3")
    for line in (
        f"broker 1 runs in {mode} mode; its file says ZooKeeper mode: it needs a restart",
        "rollback READY",  # with work where ZooKeeper was not compared with the metadata yet
        f", from: {origin}",
        f"rollback {cost} restarts)",
        "edited since the migration wrote it, and kept: log.cleaner.threads",
    ):
        assert line in said.stdout, said.stdout
    return {"2": hashlib.sha256(original + EXTRA).hexdigest()}


# the fault, and the stage in which it strikes; what it answers are files that are to end otherwise than they began
ODD: Final[dict[str, tuple[Callable[[Lab], dict[str, str] | None], str]]] = {
    "journal-lost": (lose_the_journal, "kraft-mode"),
    "active-controller-dead": (kill_the_active_controller, "kraft-mode"),
    "broker-down": (kill_a_broker, "hybrid"),
    "versions-behind": (make_states_anew, "hybrid"),
    "files-changed": (change_files, "hybrid"),
    "files-changed-in-kraft-mode": (change_files, "kraft-mode"),
}


@dataclass(frozen=True)
class RolledBack:
    """A lab after a fault and a rollback by hand: what speaks against it, what the load saw, how much was raised."""

    lab: Lab
    against: tuple[str, ...]
    load: LoadSummary
    raised: int
    said: dict[str, str]  # each planned step's actions, by its id


def roll_back_after(fault: str, directory: Path) -> RolledBack:
    """To the stage, the fault, `rollback plan`, `rollback apply`, and the lab's own proofs."""
    strike, stage = ODD[fault]
    demo("assess", directory)
    lab = Lab.open(directory)
    before = hash_broker_files(lab)
    demo(stage, directory)
    rollback_proofs.make_objects(lab, stage)
    before |= strike(lab) or {}
    planned = kraft_migrate("rollback", "plan", str(lab.playbook_path), "--output", "json")
    assert planned.returncode == 2, planned.stderr[-3000:]
    saved = json.loads(planned.stdout)
    fingerprint = saved["fingerprint"]
    folder = Path(lab.inventory.runs) / fingerprint[:8]
    applied = to_its_end(directory, "rollback", "apply", str(folder / "plan.json"), "--confirm", fingerprint)
    assert applied.returncode == 0, applied.stderr[-4000:]
    events = journals.read(folder / "journal.jsonl").events
    raised = [event.data["detail"] for event in events if event.name == "effected" and "raise" in event.data["effect"]]
    count, said = (
        sum(text.count("->") for text in raised),
        {step["id"]: " ".join(action["what"] for action in step["actions"]) for step in saved["plan"]["steps"]},
    )
    return RolledBack(lab, against(lab, stage, before, folder), judged(lab), count, said)


def demo(until: str, directory: Path) -> None:
    """`lab demo --until STAGE`, which must park there."""
    ended = to_its_end(directory, "lab", "demo", "--dir", str(directory), "--until", until)
    assert ended.returncode == 0, ended.stderr[-4000:]


def against(lab: Lab, stage: str, before: dict[str, str], folder: Path) -> tuple[str, ...]:
    """What the lab's proofs say against the end state."""
    events = journals.read(folder / "journal.jsonl").events
    epoch = int(journals.notes(events).get("rollback:kraft-epoch", "-1"))
    with connect(lab.inventory.zookeeper) as client:
        found = list(prove_rollback(lab, client, stage, before, folder, epoch))
    return tuple(f"{proof.text} {proof.against}" for proof in found if proof.against)


def judged(lab: Lab) -> LoadSummary:
    """The load stopped and read whole."""
    directory = Path(lab.topology.directory)
    stop_load(directory)
    return check_load(directory, lab.inventory, [])
