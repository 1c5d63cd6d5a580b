"""A lab whose disks fail: what the broker did, what `status` says, and the mend, done word by word as it is printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from migrate.hosts.meta_properties import decode
from migrate.lab.cluster import Lab
from migrate.lab.ready import brokers_agree
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import LiveView, MetaProperties, Running, Stopped
from migrate.observe.sources import Sources
from tests.lab import faults
from tests.lab.commands import kraft_migrate
from tests.lab.faults import DiskFault
from tests.testing.sick_disks import broken_disks

SECONDS: Final = 120.0
STOP: Final = 90.0
ROOT: Final = os.geteuid() == 0
INCOMPLETE, CHANGES, BLOCKED = 1, 2, 3  # exit codes of `plan`


@dataclass
class SickBroker:
    """A broker of a lab, one of its disks, and what `status` says of it."""

    lab: Lab
    broker: int
    disk: int = 1

    @property
    def name(self) -> str:
        """Its process."""
        return f"broker-{self.broker}"

    @property
    def path(self) -> Path:
        """The disk's folder."""
        return faults.disk_of(self.lab, self.broker, self.disk)

    # -- breaking ------------------------------------------------------------------------------------------------
    def break_now(self, fault: DiskFault) -> None:
        """Under the broker, whatever it does."""
        faults.break_disk(self.lab, self.broker, self.disk, fault)

    def break_while_it_is_down(self, fault: DiskFault) -> None:
        """Stopped, broken, started."""
        self.lab.supervisor.stop(self.name, STOP)
        self.break_now(fault)
        self.lab.supervisor.start(self.name)

    # -- seeing --------------------------------------------------------------------------------------------------
    def until(self, what: str, reached: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, f"{what}: {brokers_agree(self.lab.topology)}\n{self.last_words()}"

    def until_it_halts(self, seconds: float = SECONDS) -> None:
        """Its process ends."""
        self.until("the broker halts", lambda: isinstance(self.lab.supervisor.state(self.name), Stopped), seconds)

    def until_offline(self) -> None:
        """It says itself that the directory is offline."""
        self.until("the broker calls it offline", self.offline)

    def until_whole(self) -> None:
        """Every broker sees all brokers and every partition whole, and no directory is offline."""
        self.until("the cluster is whole", lambda: not brokers_agree(self.lab.topology) and not self.offline())

    def offline(self) -> bool:
        """Does the broker call a directory offline?"""
        sources = Sources(self.lab.inventory, Unknown("none"), None)
        try:
            live = sources.live()
        finally:
            sources.close()
        said = live.log_dirs.get(NodeId(self.broker)) if isinstance(live, LiveView) else None
        return isinstance(said, tuple) and any(answer.error for answer in said)

    def runs(self) -> bool:
        """Does its process live?"""
        return isinstance(self.lab.supervisor.state(self.name), Running)

    def said(self, words: str) -> bool:
        """Do these words stand in its log, since it was last started?"""
        text = self.lab.topology.log(self.name).read_text(errors="replace")
        return words in text[max(text.rfind("Registered kafka:type=kafka.Log4jController MBean"), 0) :]

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.lab.supervisor.last_words(self.name, 40))

    def meta(self) -> MetaProperties:
        """What the disk says it is."""
        found = decode((self.path / "meta.properties").read_bytes())
        assert isinstance(found, MetaProperties), found
        return found

    # -- asking --------------------------------------------------------------------------------------------------
    def status(self) -> Any:
        """The whole of `status --output json`."""
        ended = kraft_migrate("status", "--inventory", str(self.lab.inventory_path), "--output", "json")
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    def disks(self) -> list[dict[str, Any]]:
        """What `status` says of disks."""
        found: list[dict[str, Any]] = self.status()["disks"]
        return found

    def trouble(self) -> dict[str, Any]:
        """The one disk that `status` names, which is ours."""
        (found,) = self.disks()
        assert (found["broker"], found["path"]) == (self.broker, str(self.path))
        return found

    # -- mending, by the words -----------------------------------------------------------------------------------
    def follow(self, trouble: dict[str, Any], way: str) -> None:
        """Do what `do` says, for the "old" disk, or for a "new" one: a hand at the rack, a shell, a process."""
        sentence = next(words for words in trouble["do"] if ("with a new disk" in words) is (way == "new"))
        command = trouble["command"] if f"`{trouble['command']}`" in sentence else ""
        verbs = re.findall(r"\b(stop|restart|start) broker \d+", sentence.lower())
        if verbs[:1] == ["stop"]:
            self.lab.supervisor.stop(self.name, STOP)
        if way == "new":
            faults.new_disk(self.lab, self.broker, self.disk)
        elif not command:
            faults.repair_disk(self.lab, self.broker, self.disk)
        if command:
            self.shell(command)
        if verbs[:1] == ["restart"]:
            assert self.runs(), sentence
            self.lab.supervisor.stop(self.name, STOP)
        if verbs == ["stop"]:
            assert "look at `status` again before you start the broker" in sentence
            for again in self.disks():
                print(f"then: {again['what']}: {again['do']}", file=sys.stderr, flush=True)
                return self.follow(again, way)
        if verbs:
            self.lab.supervisor.start(self.name)
        if "`directories rescue`" in sentence:
            self.until("every partition has a leader again", self.rescued)
        return self.until_whole()

    def rescued(self) -> bool:
        """`directories rescue --yes`, where a partition has no leader; is the cluster whole?"""
        if not brokers_agree(self.lab.topology):
            return True
        ended = kraft_migrate("directories", "rescue", "--inventory", str(self.lab.inventory_path), "--yes")
        assert ended.returncode in (0, 2, 3), ended.stderr
        return not brokers_agree(self.lab.topology)

    def shell(self, command: str) -> None:
        """As it is printed, with Kafka's own tool on the PATH."""
        spec = self.lab.supervisor.spec(self.lab.topology.controllers[0].name)
        tools = self.lab.topology.folder("tools")
        tools.mkdir(exist_ok=True)
        tool = tools / "kafka-storage"
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(spec.format_argv[:-1])} "$@"\n')
        tool.chmod(0o755)
        ended = subprocess.run(
            ["sh", "-c", command],
            env={"PATH": f"{tools}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert ended.returncode == 0, (command, ended.stdout, ended.stderr)

    def made_whole(self) -> None:
        """Whatever a failed test has left."""
        for path in broken_disks(self.lab):
            broker, disk = int(path.parent.name.removeprefix("broker-")), int(path.name.removeprefix("disk"))
            with suppress(OSError):
                faults.repair_disk(self.lab, broker, disk)
