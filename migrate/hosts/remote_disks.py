"""Log directories of brokers on other hosts: the host program runs the collector as the unit's user.

Its answer is decoded by the rules for the collector's files, and its hash is checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.collected import decode_collected
from migrate.hosts.new_directories import Told
from migrate.hosts.runner import Runner
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory

LOOK_SECONDS: Final = 120.0  # 10 s for a disk to store a block, and time to list some 100,000 folders
TELL_SECONDS: Final = 30.0


class RemoteDisks:
    """`model.ports.Disks` over hosts."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners
        self.places = RemotePlaces(runners)

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        """Every directory, healthy or not; Unknown where the host or our rights there do not answer."""
        known = {os.path.normpath(path) for path in log_dirs}
        apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
        paths = tuple(dict.fromkeys((*log_dirs, *([apart] if apart else []))))
        runner = self._runners[broker]
        try:
            done = runner.run(commands.collector(broker, paths), seconds=LOOK_SECONDS)
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
    """`new_directories.Places` over hosts, asked as the unit's user."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Each path's; Unknown where the host does not answer."""
        runner = self._runners[node]
        try:
            done = runner.run(commands.tell_places(node, tuple(paths)), seconds=TELL_SECONDS)
        except MigrateError as error:
            return Unknown(f"{error.id} {error}")
        if done.code:
            return Unknown(f"where paths lead to on {runner.host} is unknown: {done.says or done.code}")
        try:
            found = strict_json.mapping(done.output, surrogates=True)
            return {path: _told(entry) for path, entry in found.items()}
        except ValueError as error:
            return Unknown(f"{runner.host} gave no answer that can be read: {error}")


def _told(entry: Any) -> Told:
    problem = strict_json.unlike(entry, {"real": str, "names": [str]})
    if problem or not entry["real"].startswith("/"):
        raise ValueError(problem or f"{entry['real'][:80]!r} is no absolute path")
    return Told(entry["real"], tuple(entry["names"]))
