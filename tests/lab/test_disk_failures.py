"""A disk fails in each mode: what the broker does, what `status` says, that the next stage waits, and the way on.

A disk that is gone, in one mode a commit (`tests/testing/rotating.py`); `KRAFT_MIGRATE_ROTATE=disks=all` for each mode.
The other failures are marked `long`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts.supervisor import Supervisor
from migrate.lab import breaking
from migrate.lab.breaking import DiskFault
from migrate.lab.cluster import Lab
from migrate.lab.ready import brokers_agree
from migrate.lab.topology import Shape
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import LiveView, Stopped
from migrate.observe.sources import Sources
from tests.lab.commands import kraft_migrate
from tests.testing.rotating import DISKS, rotated

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MODES: dict[str, tuple[str, ...]] = {
    "zookeeper": (),
    "migration": ("--stage", "kraft-mode"),
    "kraft": ("--stage", "finalize"),
}  # planned next
UNTIL = {"migration": "hybrid", "kraft": "soak"}
ROOT = os.geteuid() == 0
FAULTS = [fault for fault in DiskFault if ROOT or fault not in (DiskFault.READ_ONLY, DiskFault.FULL)]
EACH_COMMIT = tuple(f"{mode}-{DiskFault.GONE}" for mode in MODES)  # one of them
OTHERS = tuple(f"{mode}-{fault}" for mode in MODES for fault in FAULTS if fault is not DiskFault.GONE)
CHANGES, BLOCKED = 2, 3  # exit codes of `plan`
BROKER, DISK = 1, 1
# a running broker notices these by its next checkpoint; the others at its next start
AT_RUN_TIME = (DiskFault.GONE, DiskFault.READ_ONLY, DiskFault.FULL)
# a broker that writes its own meta.properties takes an empty folder for a new disk
HEALS_ITSELF = {
    ("zookeeper", DiskFault.EMPTIED),
    ("migration", DiskFault.EMPTIED),
    ("migration", DiskFault.REPLACED),
}
STOPS_THE_START = {("kraft", DiskFault.EMPTIED), ("zookeeper", DiskFault.REPLACED)}


@dataclass
class Broken:
    """A lab with one broken disk."""

    lab: Lab
    mode: str
    fault: DiskFault

    @property
    def name(self) -> str:
        """The broker's process."""
        return f"broker-{BROKER}"

    def until(self, what: str, reached: Callable[[], bool], seconds: float = 120) -> None:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, what

    def break_it(self) -> None:
        """While the broker runs, or while it is stopped, by what can be noticed when."""
        if self.fault not in AT_RUN_TIME:
            self.lab.supervisor.stop(self.name, 90)
        breaking.break_disk(self.lab, BROKER, DISK, self.fault)
        if self.fault not in AT_RUN_TIME:
            self.lab.supervisor.start(self.name)

    def await_its_effect(self) -> None:
        """What that broker does in this mode."""
        halts = self.mode == "migration" and self.fault in AT_RUN_TIME
        if halts or (self.mode, self.fault) in STOPS_THE_START:
            self.until("the broker halts", lambda: isinstance(self.lab.supervisor.state(self.name), Stopped))
        elif self.fault in AT_RUN_TIME or self.fault is DiskFault.UNREADABLE:
            self.until("the broker calls it offline", self.offline)
        else:
            self.until("the broker is back", lambda: not brokers_agree(self.lab.topology))

    def offline(self) -> bool:
        """Does the broker call the directory offline?"""
        sources = Sources(self.lab.inventory, Unknown("none"), None)
        try:
            live = sources.live()
        finally:
            sources.close()
        said = live.log_dirs.get(NodeId(BROKER)) if isinstance(live, LiveView) else None
        return isinstance(said, tuple) and any(answer.error for answer in said)

    def status(self) -> list[dict[str, Any]]:
        """What `status` says of disks."""
        ended = kraft_migrate("status", "--inventory", str(self.lab.inventory_path), "--output", "json")
        assert ended.returncode == 0, ended.stderr
        return list(json.loads(ended.stdout)["disks"])

    def planned(self) -> int:
        """May the next stage be planned?  CHANGES, or BLOCKED by a finding."""
        return kraft_migrate("plan", str(self.lab.playbook_path), *MODES[self.mode]).returncode

    def mend(self) -> None:
        """The old disk back, the broker started again."""
        breaking.mend_disk(self.lab, BROKER, DISK)
        self.lab.supervisor.stop(self.name, 90)
        self.lab.supervisor.start(self.name)
        self.until("the cluster is whole", lambda: not brokers_agree(self.lab.topology))


def at_mode(lab: Lab, mode: str) -> None:
    """Bring the cluster there."""
    if mode == "zookeeper":
        lab.up()
        ended = kraft_migrate("lab", "demo", "--dir", lab.topology.directory, "--until", "prepare", "--no-load")
    else:
        where = ("--dir", lab.topology.directory, "--until", UNTIL[mode])
        ended = kraft_migrate("lab", "demo", *where, "--no-load")
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab, stopped at the end with every disk in its place."""
    found = Lab.create(tmp_path / "lab", Shape(directories=2))
    yield found
    found.down()
    for path in breaking.broken_disks(found):
        broker, disk = int(path.parent.name.removeprefix("broker-")), int(path.name.removeprefix("disk"))
        with suppress(OSError):
            breaking.mend_disk(found, broker, disk)
    assert isinstance(found.supervisor, Supervisor)


@pytest.mark.parametrize("part", [part for part in rotated("disks", DISKS) if part in EACH_COMMIT])
def test_a_disk_is_gone_the_next_stage_waits_and_mended_it_goes_on(part: str, lab: Lab) -> None:
    """By `status`, by the plan's exit code, by the cluster's own state."""
    fail_and_mend(part, lab)


@pytest.mark.long
@pytest.mark.parametrize("part", OTHERS)
def test_a_disk_fails_in_another_way(part: str, lab: Lab) -> None:
    """Emptied, replaced, unreadable, read-only, full."""
    fail_and_mend(part, lab)


def fail_and_mend(part: str, lab: Lab) -> None:
    """One failure in one mode, from a healthy cluster to a healthy cluster."""
    mode, _, fault = part.partition("-")
    broken = Broken(lab, mode, DiskFault(fault))
    at_mode(lab, mode)
    assert broken.status() == []
    assert broken.planned() == CHANGES
    broken.break_it()
    broken.await_its_effect()
    told = broken.status()
    if (mode, broken.fault) in HEALS_ITSELF:
        assert told == []
        return
    (trouble,) = told
    path = str(breaking.disk_of(lab, BROKER, DISK))
    assert (trouble["broker"], trouble["path"]) == (BROKER, path)
    assert trouble["mode"].lower().startswith(mode)
    assert trouble["do"]
    assert broken.planned() == BLOCKED
    broken.mend()
    assert broken.status() == []
    assert broken.planned() == CHANGES
