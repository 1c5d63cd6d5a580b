"""Files and log directories of this host, seen by this process, where a test is not about the host program."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from migrate.hosts import collect_disks
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.executors import executor_of
from migrate.hosts.files import read_no_follow, replace_file
from migrate.hosts.runner import Completed
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory


class LocalFiles:
    """`model.ports.Files` in which every node is on this host."""

    def read(self, node: NodeId, path: str) -> bytes:
        """The bytes."""
        return read_no_follow(path)

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Replace it."""
        replace_file(path, content)

    def exists(self, node: NodeId, path: str) -> bool:
        """A link, too."""
        return os.path.lexists(path)

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """Unless something is there."""
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "there is something at the new name", new)
        Path(old).rename(new)

    def remove(self, node: NodeId, path: str) -> None:
        """It."""
        Path(path).unlink()

    def make_directory(self, node: NodeId, path: str) -> None:
        """With those above it."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def names(self, node: NodeId, path: str) -> list[str]:
        """Sorted."""
        return sorted(os.listdir(path))  # noqa: PTH208 - names are all that is asked


class InProcess:
    """The host program's two verbs of the collector, answered by the collector's own functions."""

    host = "this host"

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 0) -> Completed:
        """As the program answers."""
        verb, node, *paths = words
        if verb == "collect":
            body = collect_disks.collect(None, paths, int(node), with_probe=True, key=None)
            return Completed(0, collect_disks.document(body).encode(), "")
        assert verb == "places"
        names = {path: sorted(os.listdir(path)) if Path(path).is_dir() else [] for path in paths}  # noqa: PTH208
        found = {path: {"real": os.path.realpath(path), "names": names[path]} for path in paths}
        return Completed(0, json.dumps(found).encode(), "")


def disks_here() -> CollectorDisks:
    """Log directories of nodes that are all on this host."""
    return CollectorDisks(defaultdict(InProcess))


def format_storage(inventory: Inventory, node: int, cluster_id: str, release: str) -> None:
    """kafka-storage format by the host program, as a run does it."""
    executor = executor_of(inventory)
    try:
        executor.services.format_storage(NodeId(node), cluster_id, release)
    finally:
        executor.close()
