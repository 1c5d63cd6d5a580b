"""Log directories of brokers on other hosts: the collector's own text runs on the host's Python, from stdin.

Nothing is left on the host.  Its answer is decoded by the rules for the collector's files, and its hash is checked.
"""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import Mapping, Sequence
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.collected import decode_collected
from migrate.hosts.commands import Privilege
from migrate.hosts.new_directories import Told
from migrate.hosts.runner import Runner
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory

LOOK_SECONDS: Final = 120.0  # 10 s for a disk to store a block, and time to list some 100,000 folders
TELL_SECONDS: Final = 30.0
NO_PYTHON: Final = (126, 127)


def _script(name: str) -> bytes:
    return importlib.resources.files("migrate.hosts").joinpath(name).read_bytes()


class RemoteDisks:
    """`model.ports.Disks` over hosts; `looks_as` is the user that may list what the broker wrote."""

    def __init__(self, runners: Mapping[NodeId, Runner], looks_as: Privilege) -> None:
        self._runners = runners
        self._looks_as = looks_as
        self._text = _script("collect_disks.py")
        self.places = RemotePlaces(runners, looks_as)

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


class RemotePlaces:
    """`new_directories.Places` over hosts, asked as the user that looks at the disks there."""

    def __init__(self, runners: Mapping[NodeId, Runner], looks_as: Privilege) -> None:
        self._runners = runners
        self._looks_as = looks_as
        self._text = _script("tell_places.py")

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Each path's; Unknown where the host or its Python does not answer."""
        runner = self._runners[node]
        try:
            command = self._looks_as.words(commands.tell_places(tuple(paths)))
            done = runner.run(command, stdin=self._text, seconds=TELL_SECONDS)
        except MigrateError as error:
            return Unknown(f"{error.id} {error}")
        if done.code:
            return Unknown(f"where paths lead to on {runner.host} is unknown: {done.says or done.code}")
        try:
            return {path: _told(entry) for path, entry in json.loads(done.output).items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Unknown(f"{runner.host} gave no answer that can be read: {error!r}")


def _told(entry: Mapping[str, object]) -> Told:
    real, names = entry["real"], entry["names"]
    if not isinstance(real, str) or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = f"{entry!r} is no answer"
        raise TypeError(message)
    return Told(real, tuple(names))
