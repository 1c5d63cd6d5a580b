"""Files, locks and metadata logs of hosts, through the host program.

A file is replaced by rename once its content is on disk; owner, mode and SELinux context stay.  No link is followed
but that of a node's file which root's setup script found: the link stays, and what it leads to is replaced.
Where a command's outcome is unknown, an error says so, and the old or the new content is there whole.

Of metadata directories only `__cluster_metadata-0` and `meta.properties` are copied, by one tar stream per host, while
no controller runs there.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from migrate.errors import FileNotReplaced, HostCommandRefused, HostCommandUnknown, RunLocked
from migrate.hosts import commands
from migrate.hosts.commands import READ_LIMIT, Words
from migrate.hosts.host_program import NOT_PROVEN
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.runner import COMMAND_SECONDS, Completed, Holder, Runner, run_all
from migrate.model.ids import METADATA_TOPIC, NodeId
from migrate.model.plain_tar import NotPlainTar, members

_ERRNO: Final[Mapping[str, int]] = {  # texts of the C locale, which the program uses
    os.strerror(code): code
    for code in (
        errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.EBUSY,
        errno.EROFS, errno.ENOSPC, errno.EIO, errno.ENXIO, errno.ESTALE, errno.EEXIST, errno.EDQUOT,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`kind` as stat(1) names it; `changed`: the inode's change time, seconds since 1970 on the host's clock."""

    kind: str
    size: int
    mode: str
    owner: str
    changed: float


def error_of(done: Completed, place: str) -> OSError:
    """Translate a command's error message into an OSError (pure): EIO for an unknown one."""
    last = done.says.rpartition(": ")[2]
    code = _ERRNO.get(last, errno.EIO)
    if code == errno.ELOOP:  # which link, and what is wrong with it
        last = done.says.partition(": ")[2]
    return OSError(code, last if code != errno.EIO else done.says or f"ended with {done.code}", place)


def parse_status(output: bytes) -> FileStatus:
    """Parse the answer of `commands.status` (pure); ValueError where it is malformed."""
    kind, size, mode, owner, changed = output.decode().rstrip("\n").split("\n")
    return FileStatus(kind, int(size), mode, owner, float(changed))


def _nothing(_label: str) -> None:
    """Before a write, where nobody asks for a crash."""


class RemoteFiles:
    """`model.ports.Files` over hosts: the files of every node are on its own host."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners
        self._targets: dict[NodeId, tuple[str, ...]] = {}  # only root's script changes them
        self.between: Callable[[str], None] = _nothing

    def target(self, node: NodeId, path: str) -> str:
        """What a node's own file leads to, where it is a link that the host program knows; else "".  OSError."""
        if node not in self._targets:
            told = self._must(node, commands.target(node), path).decode(errors="surrogateescape")
            self._targets[node] = tuple(told.split("\0"))
        config, *target = self._targets[node]
        return target[0] if target and config == path else ""

    def _must(self, node: NodeId, command: Words, place: str, stdin: bytes = b"") -> bytes:
        done = self._runners[node].run(command, stdin=stdin)
        if done.code:
            raise error_of(done, place)
        return done.output

    def status(self, node: NodeId, path: str) -> FileStatus:
        """Return the status of that path; FileNotFoundError or another OSError."""
        answer = self._must(node, commands.status(node, path), path)
        try:
            return parse_status(answer)
        except ValueError as error:
            raise OSError(errno.EIO, "the host program gave no file status", path) from error

    def read(self, node: NodeId, path: str) -> bytes:
        """A regular file's bytes; ELOOP for a link, EISDIR, EINVAL, EFBIG as for this host's files."""
        content = self._must(node, commands.read(node, path), path)
        if len(content) > READ_LIMIT:
            raise OSError(errno.EFBIG, f"larger than {READ_LIMIT} bytes", path)
        return content

    def read_all(self, node: NodeId, paths: Sequence[str]) -> dict[str, bytes | OSError]:
        """Read files in one round trip: each one's bytes, or the error that `read` raises."""
        found: dict[str, bytes | OSError] = {}
        for path, done in zip(
            paths, run_all(self._runners[node], [commands.read(node, path) for path in paths]), strict=True
        ):
            found[path] = error_of(done, path) if done.code else done.output
            if len(done.output) > READ_LIMIT:
                found[path] = OSError(errno.EFBIG, f"larger than {READ_LIMIT} bytes", path)
        return found

    def keep(self, node: NodeId, copies: Mapping[str, tuple[str, bytes]]) -> None:
        """Copy files on their host by one command, path -> (copy, content), each as `write` writes it.

        Raises:
            FileNotReplaced: a file has another content now, or something else has the copy's name; not all are made.
            HostCommandUnknown: nobody knows which were made, or what is there is not what was copied.
        """
        host = self._runners[node].host
        for copy, _ in copies.values():
            self.between(f"unsynced:{os.path.basename(copy)}")  # noqa: PTH119 - a path of another host
        done = self._runners[node].run(commands.keep(node, copies))
        if done.code:
            raise FileNotReplaced(
                f"not every file was copied: {done.says}", where=f"{host}:{', '.join(copies)}",
                why="no file was changed, and nothing was put over an older copy",
            )  # fmt: skip
        found = self.read_all(node, [copy for copy, _ in copies.values()])
        for copy, content in copies.values():
            if found[copy] != content:
                raise HostCommandUnknown(
                    "what is there now is not what was copied", where=f"{host}:{copy}",
                    why="another program may have written it at the same moment",
                )  # fmt: skip

    def exists(self, node: NodeId, path: str) -> bool:
        """Is there anything at that path, a broken link too?  OSError where that cannot be seen."""
        try:
            self.status(node, path)
        except FileNotFoundError:
            return False
        return True

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Replace the file atomically, fsynced, keeping owner, mode and context; FileNotReplaced.

        A new file has the owner and mode of the file that it is a copy of, or of a broker's file on that host.

        Raises:
            FileNotReplaced: the old content is still there.
            HostCommandUnknown: nobody knows which content is there, or it is neither.
        """
        host = self._runners[node].host
        self.between(f"unsynced:{os.path.basename(path)}")  # noqa: PTH119 - a path of another host
        done = self._runners[node].run(commands.write(node, path, content), stdin=content)
        if done.code not in (0, NOT_PROVEN):
            raise FileNotReplaced(
                f"the file was not replaced: {error_of(done, path).strerror}",
                where=f"{host}:{path}",
                why="the old content is still there, whole",
            )
        try:
            written = parse_status(done.output)
        except ValueError as error:
            said = done.says or "the host program gave no file status"
            raise HostCommandUnknown(f"it is not proven that it was written: {said}", where=f"{host}:{path}") from error
        if written.size != len(content) or self.read(node, path) != content:
            raise HostCommandUnknown(
                "what is there now is not what was written", where=f"{host}:{path}",
                why="another program may have written it at the same moment",
            )  # fmt: skip

    def rename(self, node: NodeId, old: str, new: str) -> None:
        self._must(node, commands.rename(node, old, new), old)

    def remove(self, node: NodeId, path: str) -> None:
        """Remove a copy, durably; the host program refuses anything else."""
        self._must(node, commands.remove(node, path), path)

    def make_directory(self, node: NodeId, path: str) -> None:
        self._must(node, commands.make_directory(node, path), path)

    def names(self, node: NodeId, path: str) -> list[str]:
        found = self._must(node, commands.names(node, path), path)
        return sorted(name.decode(errors="surrogateescape") for name in found.split(b"\0") if name)


COPY_SECONDS: Final = 600.0
LOG: Final = f"{METADATA_TOPIC}-0"
PARTS: Final = (META_PROPERTIES, LOG)
ABSENT: Final = "No such file or directory"


class MetadataCopies(Protocol):
    """Makes metadata directories readable as folders of this host."""

    def folders(
        self, directories: Mapping[NodeId, str], *, growing: bool = False
    ) -> AbstractContextManager[Mapping[NodeId, Path]]:
        """Yield the folders while the context lasts; raises a MigrateError where one is unavailable.

        With `growing` a controller may write on meanwhile: what is had then proves that it can be read, and no more.
        """

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """Return a value that changes when a controller writes there; raises a MigrateError or OSError.

        A controller that starts writes a new quorum-state (`FileQuorumStateStore`: a new file under the old name).
        """


class RemoteMetadata:
    """Metadata directories of the nodes' hosts."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners

    @contextlib.contextmanager
    def folders(self, directories: Mapping[NodeId, str], *, growing: bool = False) -> Iterator[Mapping[NodeId, Path]]:
        """Yield copies in a folder of mode 0700, removed at the end: a log contains credentials.

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
        """The change time of each log's folder, which every created or renamed file updates."""
        with ThreadPoolExecutor(len(directories) or 1, thread_name_prefix="metadata") as pool:
            answers = pool.map(
                lambda node: self._runners[node].run(commands.status(node, f"{directories[node]}/{LOG}")), directories
            )
            return [(done.code, done.output) for done in answers]

    def _copy(self, node: NodeId, path: str, target: Path, *, growing: bool) -> None:
        runner = self._runners[node]
        where = f"{runner.host}:{path}"
        done = runner.run(commands.status(node, f"{path}/{LOG}"))
        if done.code and done.says.endswith(ABSENT):
            return
        if done.code:
            raise HostCommandRefused(f"the directory cannot be looked into: {done.says}", where=where)
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


def unpack_log(archive: BinaryIO, target: Path) -> None:
    """Write a log's files and its meta.properties into an empty folder; nothing else.

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


LOCK_SUFFIX: Final = ".kraft-migrate-lock"  # behind the name of a broker's configuration file
ASKED: Final = b"\n"


class HostLock:
    """A lock file on a node's host, held by that host's kernel while the host program runs there.

    The owner's line is written into the file.  When this process or the connection ends, the program's input ends and
    the lock is free: nothing is left to remove.  It is the same lock as `flock` of a process on that host.
    """

    def __init__(self, holder: Holder, node: NodeId, path: str, owner: str) -> None:
        """Lock it, and write the owner's line into it; the folder must be there.

        Raises:
            RunLocked: another process holds it.
            HostCommandRefused: the file cannot be opened there, or the program does not run.
            HostCommandUnknown, or a class below it: the host does not answer.
        """
        self._holder, self._node, self._path = holder, node, path
        self._owner = owner.encode() + b"\n"
        self._held = holder.hold(commands.hold_lock(node, path))
        try:
            if self._answers(self._owner) and self._answers(ASKED) and self._ours():
                return
        except BaseException:
            self._held.end()
            raise
        done = self._held.end()
        if done.code in (commands.HELD_BY_ANOTHER, 0):  # 0: it was deleted or replaced before it was ours
            by = owner_of(holder, node, path) or "unknown"
            raise RunLocked(f"another process holds this run: {by}", where=self.where)
        raise HostCommandRefused(f"the lock file cannot be held: {done.says or done.code}", where=self.where)

    @property
    def where(self) -> str:
        return f"{self._holder.host}:{self._path}"

    def still_there(self) -> bool:
        """Does the holding command run, and is the file still the one that another run would lock?"""
        return self._answers(ASKED) and self._ours()

    def _answers(self, line: bytes) -> bool:
        return self._held.answers(line, COMMAND_SECONDS)

    def _ours(self) -> bool:
        done = self._holder.run(commands.read(self._node, self._path))
        return not done.code and done.output.startswith(self._owner)

    def release(self) -> None:
        self._held.end()


def owner_of(holder: Runner, node: NodeId, path: str) -> str:
    """Return the last owner's line; "" where there is no file, or nothing in it; OSError otherwise."""
    done = holder.run(commands.read(node, path))
    if done.code:
        error = error_of(done, path)
        if isinstance(error, FileNotFoundError):
            return ""
        raise error
    return done.output.decode(errors="replace").partition("\n")[0].strip()


def is_held(holder: Runner, node: NodeId, path: str) -> bool:
    """Is the lock held?  It is tried and released at once; OSError where that cannot be tried."""
    done = holder.run(commands.try_lock(node, path))
    if done.code not in (0, commands.HELD_BY_ANOTHER):
        raise error_of(done, path)
    return done.code == commands.HELD_BY_ANOTHER
