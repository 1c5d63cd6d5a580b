"""Files of this host: read without following a last link, replaced atomically, fsynced.

Files of nodes are the host program's.  The journal and the plans have writers of their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Final

from migrate.errors import FileNotReplaced
from migrate.model import limits

NEW_FILE_MODE: Final = 0o600
READ_LIMIT: Final = limits.most("configuration")


def read_no_follow(path: str, *, folder: int | None = None, limit: int = READ_LIMIT) -> bytes:
    """A regular file's bytes; OSError (ELOOP) for a link, EFBIG above `limit`, EINVAL for what is no regular file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # never hang on a FIFO
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
            raise OSError(code, "not a regular file", path)
        return _bounded(descriptor, path, limit)
    finally:
        os.close(descriptor)


def read_within(path: str | os.PathLike[str], kind: str) -> bytes:
    """A file's bytes, links followed; OSError (EFBIG) where it is larger than a file of that kind (`limits`)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _bounded(descriptor, os.fspath(path), limits.most(kind))
    finally:
        os.close(descriptor)


def _bounded(descriptor: int, path: str, limit: int) -> bytes:
    """Read an open file; a large one is refused by its size, before it is read."""
    if os.fstat(descriptor).st_size > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    found = bytearray()
    while len(found) <= limit and (part := os.read(descriptor, min(limit + 1 - len(found), 1 << 20))):
        found += part
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", path)
    return bytes(found)


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[int]:
    """Open a folder's descriptor, so that operations stay in it even when its path is swapped."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def replace_file(path: str, content: bytes, *, mode: int = NEW_FILE_MODE) -> None:
    """Replace one file atomically: its content is all old or all new, whatever happens.

    Keeps owner, group and mode; a new file gets `mode`, whatever the umask.

    Raises:
        FileNotReplaced: it is a link or no regular file, or the folder, owner or disk does not allow it.
    """
    _put(path, content, mode, over=True)


def create_file(path: str, content: bytes) -> bool:
    """Write a file that is not there yet, whole or not at all; False where something has that name, which stays.

    Raises:
        FileNotReplaced: the folder or disk does not allow it.
    """
    return _put(path, content, NEW_FILE_MODE, over=False)


def _put(path: str, content: bytes, mode: int, *, over: bool) -> bool:
    where, name = os.path.split(path)
    try:
        with open_folder(where) as folder:
            if not over and os.path.lexists(path):
                return False
            _replace_in(folder, name, content, mode, over=over)
    except OSError as error:
        if not over and isinstance(error, FileExistsError):
            return False
        raise FileNotReplaced(
            f"the file was not replaced: {error.strerror or error}",
            where=path,
            why="the old content is still there, whole",
        ) from error
    return True


def _replace_in(folder: int, name: str, content: bytes, mode: int, *, over: bool) -> None:
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None and stat.S_ISLNK(old.st_mode):
        raise OSError(errno.ELOOP, "it is a link: name the file that it points to", name)
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", name)
    temporary = f".{name}.{secrets.token_hex(6)}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, NEW_FILE_MODE, dir_fd=folder)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if old is not None:
                mine = os.fstat(descriptor)
                if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):  # refused: better no change than
                    os.fchown(descriptor, old.st_uid, old.st_gid)  # a file that Kafka cannot read
            os.fchmod(descriptor, mode if old is None else stat.S_IMODE(old.st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if over:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # fails where another process took the name meanwhile
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(temporary, dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)
