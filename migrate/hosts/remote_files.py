"""Files of hosts by the host program: the same promises as for this host's files.

A file is replaced by rename once its content is on disk; no link is followed; owner, mode and SELinux context stay.
Where a command's outcome is unknown, an error says so, and the old or the new content is there whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.errors import FileNotReplaced, HostCommandUnknown
from migrate.hosts import commands
from migrate.hosts.commands import READ_LIMIT, Words
from migrate.hosts.runner import Completed, Runner
from migrate.model.ids import NodeId

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
    """A command's complaint as the error it stands for (pure): EIO where it is none of the known."""
    last = done.says.rpartition(": ")[2]
    code = _ERRNO.get(last, errno.EIO)
    return OSError(code, last if code != errno.EIO else done.says or f"ended with {done.code}", place)


def parse_status(output: bytes) -> FileStatus:
    """The answer of `commands.status` (pure); ValueError where it is none."""
    kind, size, mode, owner, changed = output.decode().rstrip("\n").split("\n")
    return FileStatus(kind, int(size), mode, owner, float(changed))


def _nothing(_label: str) -> None:
    """Before a write, where nobody asks for a crash."""


class RemoteFiles:
    """`model.ports.Files` over hosts: the files of every node are on its own host."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners
        self.between: Callable[[str], None] = _nothing

    def _must(self, node: NodeId, command: Words, place: str, stdin: bytes = b"") -> bytes:
        done = self._runners[node].run(command, stdin=stdin)
        if done.code:
            raise error_of(done, place)
        return done.output

    def status(self, node: NodeId, path: str) -> FileStatus:
        """What is at that path; FileNotFoundError or another OSError."""
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
        try:
            self.between(f"unsynced:{os.path.basename(path)}")  # noqa: PTH119 - a path of another host
            written = parse_status(self._must(node, commands.write(node, path, content), path, content))
        except OSError as error:
            raise FileNotReplaced(
                f"the file was not replaced: {error.strerror or error}",
                where=f"{host}:{path}",
                why="the old content is still there, whole",
            ) from error
        except ValueError as error:
            raise HostCommandUnknown("the host program gave no file status", where=f"{host}:{path}") from error
        if written.size != len(content) or self.read(node, path) != content:
            raise HostCommandUnknown(
                "what is there now is not what was written", where=f"{host}:{path}",
                why="another program may have written it at the same moment",
            )  # fmt: skip

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """Rename a file or folder, durably; FileExistsError if `new` is there."""
        self._must(node, commands.rename(node, old, new), old)

    def remove(self, node: NodeId, path: str) -> None:
        """Remove a copy, durably; the host program removes nothing else."""
        self._must(node, commands.remove(node, path), path)

    def make_directory(self, node: NodeId, path: str) -> None:
        """Make a folder and its parents, durably; nothing if it is there."""
        self._must(node, commands.make_directory(node, path), path)

    def names(self, node: NodeId, path: str) -> list[str]:
        """The names in a folder, sorted; OSError if it cannot be listed."""
        found = self._must(node, commands.names(node, path), path)
        return sorted(name.decode(errors="surrogateescape") for name in found.split(b"\0") if name)
