"""A lab that was migrated to the end goes on with Kafka 4: its software changed, a log directory more, and back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from tests.lab.commands import kraft_migrate

BROKER = 1  # one alone gets a directory: each restart takes time
OTHERS = re.compile(rf"^ +[^{BROKER}]: \[data/.*\n", re.MULTILINE)


@dataclass
class Newer:
    """What each command said, and the broker's directories after it."""

    directory: Path
    said: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    directories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def lab(self) -> Lab:
        """As it is now."""
        return Lab.open(self.directory)

    def run(self, name: str, *words: str) -> None:
        """One command."""
        self.said[name] = kraft_migrate(*words)
        file = self.lab.topology.config(f"broker-{BROKER}")
        self.directories[name] = parse(file.read_bytes())["log.dirs"].split(",")

    def plan(self) -> tuple[str, str]:
        """The newest saved plan and its fingerprint."""
        path = max(Path(self.lab.inventory.runs).glob("*/plan.json"), key=lambda found: found.stat().st_mtime)
        return str(path), json.loads(path.read_text(encoding="utf-8"))["fingerprint"]


def go_on(directory: Path, release: str) -> Newer:
    """The whole of it."""
    told = Newer(directory)
    told.run("up", "lab", "up", "--kafka-version", release, "--dir", str(directory))
    inventory, playbook = str(told.lab.inventory_path), told.lab.playbook_path
    playbook.write_text(OTHERS.sub("", playbook.read_text()))
    told.run("status", "status", "--inventory", inventory)
    told.run("plan", "plan", str(playbook))
    told.run("apply", "apply", told.plan()[0])
    told.run("verify", "directories", "verify", "--inventory", inventory)
    told.run("back, planned", "rollback", "plan", str(playbook))
    path, fingerprint = told.plan()
    told.run("back", "rollback", "apply", path, "--confirm", fingerprint)
    return told
