"""Log directories of brokers on other hosts: the collector's own text runs on the host's Python, from stdin.

Nothing is left on the host.  Its answer is decoded by the rules for the collector's files, and its hash is checked.
"""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Mapping, Sequence
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.collected import decode_collected
from migrate.hosts.commands import Privilege
from migrate.hosts.runner import Runner
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory

LOOK_SECONDS: Final = 120.0  # 10 s for a disk to store a block, and time to list some 100,000 folders
NO_PYTHON: Final = (126, 127)


class RemoteDisks:
    """`model.ports.Disks` over hosts; `looks_as` is the user that may list what the broker wrote."""

    def __init__(self, runners: Mapping[NodeId, Runner], looks_as: Privilege) -> None:
        self._runners = runners
        self._looks_as = looks_as
        self._text = importlib.resources.files("migrate.hosts").joinpath("collect_disks.py").read_bytes()

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        """Every directory, healthy or not; Unknown where the host or our rights there do not answer."""
        known = {os.path.normpath(path) for path in log_dirs}
        apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
        paths = tuple(dict.fromkeys((*log_dirs, *([apart] if apart else []))))
        runner = self._runners[broker]
        try:
            command = self._looks_as.words(commands.collector(None, paths, broker))
            done = runner.run(command, stdin=self._text, seconds=LOOK_SECONDS)
            if done.code in NO_PYTHON:
                return Unknown(f"{runner.host} has no python3 for the look at its disks: {done.says}")
            if done.code:
                return Unknown(f"the look at the disks of {runner.host} ended with {done.code}: {done.says}")
            disks = decode_collected(done.output, f"{runner.host}: the collector's answer").disks
        except MigrateError as error:
            return Unknown(f"{error.id} {error}")
        if isinstance(disks, Unknown):
            return disks
        found: Mapping[str, Directory] = {entry.path: entry for entry in disks.directories}
        if missing := [path for path in paths if path not in found]:
            return Unknown(f"{runner.host} did not answer for {', '.join(missing)}")
        return BrokerDisks(broker, tuple(found[path] for path in log_dirs), found[apart] if apart else None)
