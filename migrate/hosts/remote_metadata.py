"""Controllers' metadata directories of other hosts, copied here while no controller runs, to be read as files.

Only what a log consists of is copied: `__cluster_metadata-0` and `meta.properties`, by one tar stream a host.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from migrate.errors import HostCommandRefused
from migrate.hosts import commands
from migrate.hosts.commands import Privilege, Words
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.runner import Runner
from migrate.model.ids import METADATA_TOPIC, NodeId

COPY_SECONDS: Final = 600.0
LOG: Final = f"{METADATA_TOPIC}-0"
PARTS: Final = (META_PROPERTIES, LOG)
CHANGED: Final = 1  # GNU tar: some files changed while they were read; what it may not read ends in 2


class Reading(NamedTuple):
    """The commands that read the log of one metadata directory: these, and no others."""

    log: Words
    names: Words
    folder: Words
    tree: Words


def reading(path: str) -> Reading:
    """Those of that directory; `doctor` and sudo are told of the same."""
    log, tree = commands.status(f"{path}/{LOG}"), commands.archive(path, PARTS)
    return Reading(log, commands.names(path), commands.status(path), tree)


class MetadataCopies(Protocol):
    """Where the metadata directories can be read as folders of this host."""

    def folders(
        self, directories: Mapping[NodeId, str], *, growing: bool = False
    ) -> AbstractContextManager[Mapping[NodeId, Path]]:
        """The folders, as long as the context lasts; raises a MigrateError where one cannot be had.

        With `growing` a controller may write on meanwhile: what is had then proves that it can be read, and no more.
        """

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """A value that is another one once a controller has written there; raises a MigrateError or OSError.

        A controller that starts writes a new quorum-state (`FileQuorumStateStore`: a new file under the old name).
        """


class LocalMetadata:
    """They are here."""

    @contextlib.contextmanager
    def folders(self, directories: Mapping[NodeId, str], *, growing: bool = False) -> Iterator[Mapping[NodeId, Path]]:  # noqa: ARG002 - read in place
        """As they are."""
        yield {node: Path(path) for node, path in directories.items()}

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """Name, inode, size and time of each file."""
        return [
            (file.name, status.st_ino, status.st_size, status.st_mtime_ns)
            for path in directories.values()
            for folder in (Path(path), Path(path) / LOG)
            if folder.is_dir()
            for file in sorted(folder.iterdir())
            for status in [file.stat()]
        ]


class RemoteMetadata:
    """They are on the nodes' hosts; `reads_as` may read what the controllers wrote."""

    def __init__(self, runners: Mapping[NodeId, Runner], reads_as: Privilege) -> None:
        self._runners = runners
        self._reads_as = reads_as

    @contextlib.contextmanager
    def folders(self, directories: Mapping[NodeId, str], *, growing: bool = False) -> Iterator[Mapping[NodeId, Path]]:
        """Copies in a folder that only we can read, removed at the end: a log holds credentials.

        Raises:
            HostCommandUnknown: a host does not answer.
            HostCommandRefused: it has the directory, and its content cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="kraft-migrate-metadata-") as kept:
            found = {node: Path(kept) / str(int(node)) for node in directories}
            for target in found.values():
                target.mkdir()
            with ThreadPoolExecutor(len(found) or 1, thread_name_prefix="metadata") as pool:
                for done in [
                    pool.submit(self._copy, self._runners[node], path, found[node], growing=growing)
                    for node, path in directories.items()
                ]:
                    done.result()
            yield found

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """Of each log's folder its change time, which moves with every file that is made or renamed in it."""
        with ThreadPoolExecutor(len(directories) or 1, thread_name_prefix="metadata") as pool:
            return list(pool.map(lambda node: self._status(node, directories[node]), directories))

    def _status(self, node: NodeId, path: str) -> tuple[int, bytes]:
        done = self._runners[node].run(self._reads_as.words(reading(path).log))
        return done.code, done.output

    def _copy(self, runner: Runner, path: str, target: Path, *, growing: bool) -> None:
        asked = reading(path)
        if runner.run(self._reads_as.words(asked.log)).code:
            if not runner.run(self._reads_as.words(asked.names)).code:
                return  # the directory can be listed, and holds no log
            if runner.run(self._reads_as.words(asked.folder)).says.endswith("No such file or directory"):
                return
            raise HostCommandRefused("the directory cannot be looked into", where=f"{runner.host}:{path}")
        # whose log it is stands beside it alone: without that no log counts for a majority
        done = runner.run(self._reads_as.words(asked.tree), seconds=COPY_SECONDS)
        # sudo ends with 1 too, and sends nothing
        if done.code and not (growing and done.code == CHANGED and done.output):
            raise HostCommandRefused(f"tar: {done.says}", where=f"{runner.host}:{path}")
        with tarfile.open(fileobj=io.BytesIO(done.output), mode="r:") as archive:
            archive.extractall(target, filter="data")
