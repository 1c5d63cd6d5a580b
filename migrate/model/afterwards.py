"""What comes after a migration, in the same words wherever it is told: the upgrade to Kafka 4."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from migrate.model.detect import AFTERWARDS_PAGE

TRAP: Final = (
    "Next comes Kafka 4: `kafka-features upgrade --release-version 4.x` raises several features at once, makes a "
    "static quorum dynamic for good, and deletes min.insync.replicas of single brokers (KAFKA-21426); raise "
    "metadata.version alone"
)


@dataclass(frozen=True, slots=True)
class Afterwards:
    """A sentence, the command that names what this cluster has of it, and the page with the safe order."""

    text: str
    command: str
    page: str

    @property
    def line(self) -> str:
        return f"{self.text}. Before it: `{self.command}`, and {self.page}."


def after_the_migration(playbook: str) -> Afterwards:
    return Afterwards(TRAP, f"kraft-migrate assess {shlex.quote(playbook)} --target 4.3", AFTERWARDS_PAGE)
