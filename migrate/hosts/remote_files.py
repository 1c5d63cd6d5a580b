"""Files of hosts by commands: the same promises as for this host's, kept by coreutils instead of by system calls.

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
from migrate.hosts.commands import Privilege, Words
from migrate.hosts.runner import Completed, Runner
from migrate.model.ids import NodeId

READ_LIMIT: Final = commands.READ_LIMIT_MIB * 2**20
_ERRNO: Final[Mapping[str, int]] = {  # the C locale's texts, which is what SSH's sessions are given
    os.strerror(code): code
    for code in (
        errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENOTDIR,
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

    @property
    def is_file(self) -> bool:
        """A regular file, empty ones too."""
        return self.kind in ("regular file", "regular empty file")


def error_of(done: Completed, place: str) -> OSError:
    """A command's complaint as the error it stands for (pure): EIO where it is none of the known."""
    last = done.says.rpartition(": ")[2]
    code = _ERRNO.get(last, errno.EIO)
    return OSError(code, last if code != errno.EIO else done.says or f"ended with {done.code}", place)


def parse_status(output: bytes) -> FileStatus:
    """The answer of `commands.status` (pure); ValueError where it is none."""
    kind, size, mode, owner, changed = output.decode().rstrip("\n").split("\n")
    return FileStatus(kind, int(size), mode, owner, float(changed))


class HostFiles:
    """The files of one host."""

    def __init__(self, runner: Runner, privilege: Privilege = Privilege()) -> None:  # noqa: B008 - a value
        self.runner = runner
        self._privilege = privilege

    def _run(self, command: Words, stdin: bytes = b"") -> Completed:
        return self.runner.run(self._privilege.words(command), stdin=stdin)

    def _must(self, command: Words, place: str, stdin: bytes = b"") -> Completed:
        done = self._run(command, stdin)
        if done.code:
            raise error_of(done, place)
        return done

    def status(self, path: str) -> FileStatus:
        """What is at that path; FileNotFoundError or another OSError."""
        done = self._must(commands.status(path), path)
        try:
            return parse_status(done.output)
        except ValueError as error:
            raise OSError(errno.EIO, "stat gave an answer that is none", path) from error

    def read(self, path: str) -> bytes:
        """A regular file's bytes; ELOOP for a link, EISDIR, EINVAL, EFBIG as for this host's files."""
        found = self.status(path)
        if not found.is_file:
            code = {"symbolic link": errno.ELOOP, "directory": errno.EISDIR}.get(found.kind, errno.EINVAL)
            raise OSError(code, os.strerror(code), path)
        content = self._must(commands.read(path), path).output
        if len(content) > READ_LIMIT:
            raise OSError(errno.EFBIG, f"larger than {READ_LIMIT} bytes", path)
        return content

    def exists(self, path: str) -> bool:
        """Is there anything at that path?  OSError where that cannot be seen."""
        try:
            self.status(path)
        except FileNotFoundError:
            return False
        return True

    def write(self, path: str, content: bytes, between: Callable[[str], None]) -> None:
        """Replace the file; see the module's words."""
        try:
            self._write(path, content, between)
        except OSError as error:
            self._run(commands.remove(path))
            raise FileNotReplaced(
                f"the file was not replaced: {error.strerror or error}",
                where=f"{self.runner.host}:{path}",
                why="the old content is still there, whole",
            ) from error

    def _write(self, path: str, content: bytes, between: Callable[[str], None]) -> None:
        old = self._regular(path)
        new = commands.new_name(path)
        self._must(commands.put_new(path), path, content)
        for command in commands.like_old(path) if old is not None else (commands.own_like(new, os.path.dirname(path)),):  # noqa: PTH120
            self._must(command, path)
        context = "" if old is None else self._context(path)
        if context:
            self._must(commands.context_like_old(path), path)
        between(f"unsynced:{os.path.basename(path)}")  # noqa: PTH119 - a path of another host
        self._must(commands.sync(new), path)
        self._must(commands.move(new, path), path)
        self._must(commands.sync(os.path.dirname(path)), path)  # noqa: PTH120
        self._prove(path, content, old, context)

    def _context(self, path: str) -> str:
        """The SELinux context, "" where the host has none."""
        done = self._run(commands.context(path))
        return "" if done.code else done.output.decode(errors="replace").strip("?\n")

    def _prove(self, path: str, content: bytes, old: FileStatus | None, context: str) -> None:
        here = self.status(path)
        kept = old is None or ((here.mode, here.owner) == (old.mode, old.owner) and self._context(path) == context)
        if not kept or self.read(path) != content:
            raise HostCommandUnknown(
                "what stands there now is not what was written", where=f"{self.runner.host}:{path}",
                why="another hand may have written it at the same moment",
            )  # fmt: skip

    def _regular(self, path: str) -> FileStatus | None:
        try:
            found = self.status(path)
        except FileNotFoundError:
            return None
        if found.kind == "symbolic link":
            raise OSError(errno.ELOOP, "it is a link: name the file that it points to", path)
        if not found.is_file:
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return found

    def rename(self, old: str, new: str) -> None:
        """Set a file or folder aside, durably; FileExistsError if `new` is there."""
        if self.exists(new):
            raise FileExistsError(errno.EEXIST, "there is something at the new name", new)
        self._must(commands.move_where_nothing_is(old, new), old)
        if self.exists(old):
            raise FileExistsError(errno.EEXIST, "there is something at the new name", new)
        for folder in sorted({os.path.dirname(old), os.path.dirname(new)}):  # noqa: PTH120
            self._must(commands.sync(folder), old)

    def make_directory(self, path: str) -> None:
        """Make a folder and its parents, durably, the folder owned as its first parent that was there."""
        parent = os.path.dirname(path)  # noqa: PTH120
        while parent != "/" and not self.exists(parent):
            parent = os.path.dirname(parent)  # noqa: PTH120
        if self.exists(path):
            return
        self._must(commands.make_folder(path), path)
        self._must(commands.own_like(path, parent), path)
        self._must(commands.sync(os.path.dirname(path)), path)  # noqa: PTH120

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted; OSError if it cannot be listed."""
        found = self._must(commands.names(path), path).output
        return sorted(name.decode(errors="surrogateescape") for name in found.split(b"\0") if name)


def _nothing(_label: str) -> None:
    """Between a write and its fsync, where nobody asks for a crash."""


class RemoteFiles:
    """`model.ports.Files` over hosts: every node's files lie on its own."""

    def __init__(self, hosts: Mapping[NodeId, HostFiles]) -> None:
        self._hosts = hosts
        self.between: Callable[[str], None] = _nothing

    def read(self, node: NodeId, path: str) -> bytes:
        """The file's bytes; OSError if it cannot be read, ELOOP if the path ends in a link."""
        return self._hosts[node].read(path)

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Replace the file atomically, fsynced, keeping owner, mode and context; FileNotReplaced."""
        self._hosts[node].write(path, content, self.between)

    def exists(self, node: NodeId, path: str) -> bool:
        """Is there anything at that path, a broken link too?"""
        return self._hosts[node].exists(path)

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """Set a file or folder aside, durably; FileExistsError if `new` is there."""
        self._hosts[node].rename(old, new)

    def make_directory(self, node: NodeId, path: str) -> None:
        """Make a folder and its parents, durably; nothing if it is there."""
        self._hosts[node].make_directory(path)

    def names(self, node: NodeId, path: str) -> list[str]:
        """The names in a folder, sorted; OSError if it cannot be listed."""
        return self._hosts[node].names(path)
