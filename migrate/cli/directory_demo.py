"""`lab demo --directories`: a KRaft cluster with one log directory per broker gets three each, under load.

Safe to run again with the same folder: it resumes after an interruption, as the other demos do.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import ClassVar

from migrate.cli.demo import Demo, DemoOptions
from migrate.cli.progress import ProgressLines
from migrate.lab import proofs
from migrate.lab.proofs import Spread, spread
from migrate.lab.topology import Shape
from migrate.model.inventory import Playbook
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.report.run_values import Claim, Holds
from migrate.run.carry_out import RunFolder


class DirectoryDemo(Demo):
    """One demo in one folder."""

    shape: ClassVar[Shape] = Shape(directories=1, kraft=True)

    def _run(self) -> int:
        playbook = self._begin()
        self._lay_disks(playbook)
        sources = Sources(self._lab.inventory, playbook, None)
        try:
            plan, folder = self._migrate(sources, playbook)
            if not self._state().get("spread"):
                self._lines.say("a topic is created: its replicas go where the fewest are")
                found = spread(self._lab, ClusterObserver(sources), playbook.new_directories)
                self._remember(spread=[found.replicas, found.in_new, found.against])
        finally:
            sources.close()
        return self._finish(plan, folder, playbook)

    def _lay_disks(self, playbook: Playbook) -> None:
        """What an operator does: mount empty disks."""
        for paths in playbook.new_directories.values():
            for path in paths:
                pathlib.Path(path).mkdir(mode=0o750, parents=True, exist_ok=True)

    def _first_claims(self) -> Iterator[Claim]:
        """What the cluster does with its new directories."""
        found = Spread(*self._state()["spread"])
        holds = Holds.NO if found.against or not found.in_new else Holds.YES
        evidence = found.against or f"{found.in_new} of {found.replicas} new replicas are in them, all VERIFIED"
        yield Claim("New replicas go into the new directories, and the metadata says which.", holds, evidence)

    def _last_claims(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:  # noqa: ARG002 - the demo's signature
        """What is on the disks in the end."""
        strays = proofs.strays(self._lab.topology)
        holds = Holds.NO if strays else Holds.YES
        yield Claim("No folder was set aside as stray.", holds, ", ".join(strays[:3]) or "all folders read")


def story(options: DemoOptions, lines: ProgressLines) -> Callable[[], int]:
    """The demo of a DirectoryPlaybook."""
    return DirectoryDemo(options, lines).run
