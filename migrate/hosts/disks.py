"""Log directories of nodes, as the collector sees them: on this host, or on hosts through the host program.

One scanner for every executor that can look: the host program starts `collect_disks.py` as the unit's user, the lab
calls the same functions in this process.  Both answers are decoded by `collected.py`, which checks their hash.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from migrate.errors import MigrateError
from migrate.hosts import collect_disks, commands, tell_places
from migrate.hosts.collected import decode_collected
from migrate.hosts.new_directories import Told
from migrate.hosts.runner import Completed, LocalRunner, Runner
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.ports import Disks
from migrate.model.views import BrokerDisks, Directory

LOOK_SECONDS: Final = 120.0  # 10 s for a disk to store a block, and time to list some 100,000 folders
TELL_SECONDS: Final = 30.0


class CollectorDisks:
    """`model.ports.Disks` and `new_directories.Places`.  Without `runners` every node is on this host, as in a lab."""

    def __init__(self, runners: Mapping[NodeId, Runner] | None = None) -> None:
        self._runners = runners

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        """Every directory, healthy or not; Unknown where the host does not answer or denies access."""
        known = {os.path.normpath(path) for path in log_dirs}
        apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
        paths = tuple(dict.fromkeys((*log_dirs, *([apart] if apart else []))))
        try:
            host, done = self._collected(broker, paths)
            if done.code:
                return Unknown(f"the look at the disks of {host} ended with {done.code}: {done.says}")
            disks = decode_collected(done.output, f"{host}: the collector's answer").disks
        except MigrateError as error:
            return Unknown(f"{error.id} {error}")
        if isinstance(disks, Unknown):
            return disks
        found: Mapping[str, Directory] = {entry.path: entry for entry in disks.directories}
        if missing := [path for path in paths if path not in found]:
            return Unknown(f"{host} did not answer for {', '.join(missing)}")
        return BrokerDisks(broker, tuple(found[path] for path in log_dirs), found[apart] if apart else None)

    def _collected(self, node: NodeId, paths: tuple[str, ...]) -> tuple[str, Completed]:
        if self._runners is None:
            body = collect_disks.collect(None, list(paths), int(node), with_probe=True, key=None)
            return LocalRunner.host, Completed(0, collect_disks.document(body).encode(), "")
        runner = self._runners[node]
        return runner.host, runner.run(commands.collector(node, paths), seconds=LOOK_SECONDS)

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Where each path leads to, and what is in it; Unknown where the host does not answer."""
        if self._runners is None:
            return {path: _told(tell_places.told(path)) for path in paths}
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


def not_storing(disks: Disks, node: NodeId, paths: Sequence[str]) -> Mapping[str, str]:
    """Path -> why that directory does not store a block now; every path where the host cannot be asked.

    The check before a stopped broker starts: a disk that became read-only or full still shows its meta.properties.
    """
    found = disks.look(node, paths, None)
    if isinstance(found, Unknown):
        return dict.fromkeys(paths, f"cannot be looked at: {found.reason}")
    return {entry.path: entry.problem for entry in found.directories if entry.problem}
