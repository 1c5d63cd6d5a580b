"""Brokers whose channel for ISR changes is lost as control changes: Kafka's own faults, made to come every time.

Two channels of a broker that are remade at once may leave metrics of one of them without their sensor; a Java agent
(`OrphanedMetrics.java`) leaves exactly that behind.  The thread then dies by itself when `/controller` changes hands.

A channel that is remade while its request is in flight never ends that request, and the broker sends one at a time; an
agent (`LostRequest.java`) marks one as in flight.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from migrate.lab import rollback_proofs
from migrate.lab.cluster import Lab
from migrate.model.views import Running
from tests.lab.commands import kraft_migrate
from tests.lab.rollbacks import against, demo

if TYPE_CHECKING:
    from tests.lab.odd_entries import Story

CHANNEL: Final = "alter-partition"
PATIENCE: Final = "no_progress_timeout: 45s"


def load_agent(lab: Lab, name: str, agent: str) -> None:
    """Load that Java agent into that broker; its own count says that it met what it changes."""
    built = Path(lab.topology.folder("agent"))
    built.mkdir()
    seen = built / "count"
    manifest = built / "manifest"
    manifest.write_text(f"Agent-Class: {agent}\nCan-Redefine-Classes: true\n")
    run("javac", "--release", "11", "-d", str(built), str(Path(__file__).with_name(f"{agent}.java")))
    classes = [path.name for path in built.glob("*.class")]
    run("jar", "cfm", str(built / "agent.jar"), str(manifest), "-C", str(built), *classes)
    state = lab.supervisor.state(name)
    assert isinstance(state, Running)
    said = run("jcmd", str(state.pid), "JVMTI.agent_load", str(built / "agent.jar"), f'"{CHANNEL}={seen}"')
    assert seen.exists(), said
    assert int(seen.read_text()) > 0, said


def run(*words: str) -> str:
    """A tool of the JDK."""
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def dead_channel(story: Story) -> None:
    """The rollback stops at the next broker by name; the named broker's restart, and the same command, end it."""
    _stopped_and_resumed(story, "OrphanedMetrics", f"broker 1: its thread of channel {CHANNEL} has died")


def lost_request(story: Story) -> None:
    """As with a dead channel, without a word in any log: the partitions' one leader is named."""
    _stopped_and_resumed(story, "LostRequest", "broker 1 leads every one of these partitions")


def _stopped_and_resumed(story: Story, agent: str, reason: str) -> None:
    lab = story.lab
    demo("hybrid", Path(lab.topology.directory))
    rollback_proofs.make_objects(lab, "hybrid")
    load_agent(lab, "broker-1", agent)
    text = lab.playbook_path.read_text()
    lab.playbook_path.write_text(text.replace("no_progress_timeout: 3m", PATIENCE))
    path, saved = story.planned("rollback", "plan")
    words = ("rollback", "apply", str(path), "--confirm", saved["fingerprint"])
    ended = kraft_migrate(*words)
    assert ended.returncode == 5, f"{ended.returncode} {ended.stderr[-4000:]}"
    said = " ".join(ended.stderr.split())
    assert "E-RUN-06" in said
    assert reason in said
    assert "restart broker 1 with the current file" in said
    story.restart("broker-1")
    story.whole(*(broker.name for broker in lab.topology.brokers))
    began = time.monotonic()
    ended = kraft_migrate(*words)
    assert ended.returncode == 0, f"{ended.returncode} {ended.stderr[-4000:]}"
    story.seconds["rollback plan"] = time.monotonic() - began
    assert against(lab, "hybrid", story.before, path.parent) == ()
