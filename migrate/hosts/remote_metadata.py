"""Controllers' metadata directories of other hosts, copied here while no controller runs, to be read as files.

Only what a log consists of is copied: `__cluster_metadata-0` and `meta.properties`, by one tar stream a host.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from migrate.errors import HostCommandRefused
from migrate.hosts import commands
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.runner import Runner
from migrate.model.ids import METADATA_TOPIC, NodeId
from migrate.model.plain_tar import NotPlainTar, members

COPY_SECONDS: Final = 600.0
LOG: Final = f"{METADATA_TOPIC}-0"
PARTS: Final = (META_PROPERTIES, LOG)
ABSENT: Final = "No such file or directory"


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
    """They are on the nodes' hosts."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners

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
                    pool.submit(self._copy, node, path, found[node], growing=growing)
                    for node, path in directories.items()
                ]:
                    done.result()
            yield found

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """Of each log's folder its change time, which moves with every file that is made or renamed in it."""
        with ThreadPoolExecutor(len(directories) or 1, thread_name_prefix="metadata") as pool:
            return list(pool.map(lambda node: self._status(node, directories[node]), directories))

    def _status(self, node: NodeId, path: str) -> tuple[int, bytes]:
        done = self._runners[node].run(commands.status(node, f"{path}/{LOG}"))
        return done.code, done.output

    def _copy(self, node: NodeId, path: str, target: Path, *, growing: bool) -> None:
        runner = self._runners[node]
        where = f"{runner.host}:{path}"
        if not self._is_there(node, f"{path}/{LOG}", where):
            return
        # whose log it is stands beside it alone: without that no log counts for a majority
        done = runner.run(commands.archive(node), seconds=COPY_SECONDS)
        if done.code and not (growing and done.code == commands.CHANGED):
            raise HostCommandRefused(f"archive: {done.says}", where=where)
        try:
            unpack_log(io.BytesIO(done.output), target)
        except NotPlainTar as error:
            raise HostCommandRefused(
                f"archive: what `tar` answered cannot be read: {error}",
                where=where,
                why="half of a log would say that nothing is missing",
            ) from error

    def _is_there(self, node: NodeId, path: str, where: str) -> bool:
        done = self._runners[node].run(commands.status(node, path))
        if done.code and not done.says.endswith(ABSENT):
            raise HostCommandRefused(f"the directory cannot be looked into: {done.says}", where=where)
        return not done.code


def unpack_log(archive: BinaryIO, target: Path) -> None:
    """Write a log's own files, and the file that says whose it is, into an empty folder; nothing else.

    Folders inside the log, which Kafka never makes, are passed over with what is in them.

    Raises:
        NotPlainTar: it is not what `tar` makes of the two parts (see `members`), or a part is missing.
    """
    seen = set[str]()
    for member in members(archive):
        part, _, inner = member.name.partition("/")
        if inner:
            fits = part == LOG and LOG in seen
        else:
            fits = part in PARTS and member.folder == (part == LOG)
            seen.add(part)
        if not fits:
            raise NotPlainTar(f"member {member.name!r} belongs in no archive of a log")
        if member.name == LOG:
            (target / LOG).mkdir(mode=0o700)
        elif not member.folder and "/" not in inner:
            with (target / member.name).open("xb") as file:
                member.copy(archive, file)
    if missing := set(PARTS) - seen:
        raise NotPlainTar(f"{' and '.join(sorted(missing))} is not in it")
