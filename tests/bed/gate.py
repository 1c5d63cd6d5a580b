"""How long looks of a run take: `python -m tests.bed.gate INVENTORY PLAYBOOK` where hosts have their names.

The look of a plan, the gates of both rolls and the health between two restarts, each by one observer, as a run keeps
it: the first one opens connections.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.cli.assessing import PLANNED_ON
from migrate.hosts.runner import Completed, LookSessions
from migrate.hosts.ssh import SshRunner
from migrate.model.outcome import Unknown
from migrate.model.world import NOT_ASKED, Need
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_inventory, load_playbook
from migrate.run.gatekeeper import HEALTH
from migrate.run.past_runs import ROLLBACK_NEEDS
from migrate.steps.forward import RollToKraft, RollToMigrationMode

COMPUTED: Final = {Need.SPARK_LEDGER, Need.DIFF, Need.LEDGER}  # from what is seen, not at hosts
NEEDS: Final = {
    "plan": PLANNED_ON | ROLLBACK_NEEDS,
    "gate of a roll to migration mode": RollToMigrationMode.needs,
    "gate of a roll to KRaft mode": RollToKraft.needs,
    "health between two restarts": HEALTH,
}


@dataclass
class Counted:
    """What the hosts are asked, by host: round trips of the held command, questions in them, commands of their own."""

    trips: dict[str, int] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    commands: dict[str, int] = field(default_factory=dict)

    def watch(self) -> None:
        """Count in this process from now on."""
        ask, run = LookSessions.ask, SshRunner.run

        def asked(
            looks: LookSessions, questions: Sequence[Sequence[str]], where: str, seconds: float
        ) -> list[Completed] | None:
            host = where.partition(":")[0]
            self.trips[host] = self.trips.get(host, 0) + 1
            self.questions[host] = self.questions.get(host, 0) + len(questions)
            return ask(looks, questions, where, seconds)

        def ran(ssh: SshRunner, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30.0) -> Completed:
            self.commands[ssh.host] = self.commands.get(ssh.host, 0) + 1
            return run(ssh, words, stdin=stdin, seconds=seconds)

        LookSessions.ask, SshRunner.run = asked, ran  # type: ignore[method-assign, assignment]

    def told(self) -> str:
        """The most of any host, and begin anew."""
        most = [max(found.values(), default=0) for found in (self.trips, self.questions, self.commands)]
        for found in (self.trips, self.questions, self.commands):
            found.clear()
        return f"{most[0]} round trips with {most[1]} questions and {most[2]} commands a host"


def timed(sources: Sources, without: frozenset[Need] = frozenset()) -> Iterator[str]:
    """A line a look: three of each kind."""
    counted = Counted()
    counted.watch()
    observer = ClusterObserver(sources)
    for name, needs in NEEDS.items():
        seen = []
        for _ in range(3):
            began = time.monotonic()
            world = observer.observe(frozenset(needs - COMPUTED - without), {})
            seen.append(f"{time.monotonic() - began:.2f}")
            for part in (world.disks, world.services, world.units, world.host_rights):
                if isinstance(part, Unknown):
                    assert part == NOT_ASKED, part
                    continue
                assert not [entry for entry in part.values() if isinstance(entry, Unknown)], part
            told = counted.told()
        yield f"{name}: {' s, '.join(seen)} s; {told}"


def main(inventory: str, playbook: str) -> None:
    """Look."""
    known = load_inventory(Path(inventory))
    sources = Sources(known, load_playbook(Path(playbook), known), None)
    try:
        for line in timed(sources):
            print(line, flush=True)
    finally:
        sources.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
