"""A lock file on a node's host, held by that host's kernel for as long as the host program lives there.

What we send is written into the file and comes back; the first line says who holds the lock.  With our end, or that of
the connection, the program's input ends and the lock is free: nothing is left that somebody would have to judge and
remove.  It is the same lock as `flock` of a process on that host itself.
"""

from __future__ import annotations

from typing import Final

from migrate.errors import HostCommandRefused, RunLocked
from migrate.hosts import commands
from migrate.hosts.persistent_command import Holder
from migrate.hosts.remote_files import error_of
from migrate.hosts.runner import COMMAND_SECONDS, Runner
from migrate.model.ids import NodeId

LOCK_SUFFIX: Final = ".kraft-migrate-lock"  # behind the name of a broker's configuration file
ASKED: Final = b"\n"


class HostLock:
    """One file, locked."""

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
        """Host and path."""
        return f"{self._holder.host}:{self._path}"

    def still_there(self) -> bool:
        """Does the command live that holds it, and is the file the one that another run would lock?"""
        return self._answers(ASKED) and self._ours()

    def _answers(self, line: bytes) -> bool:
        return self._held.answers(line, COMMAND_SECONDS)

    def _ours(self) -> bool:
        done = self._holder.run(commands.read(self._node, self._path))
        return not done.code and done.output.startswith(self._owner)

    def release(self) -> None:
        """Give it back; the file stays."""
        self._held.end()


def owner_of(holder: Runner, node: NodeId, path: str) -> str:
    """What the file says of who held it last; "" where there is no file, or nothing in it; OSError otherwise."""
    done = holder.run(commands.read(node, path))
    if done.code:
        error = error_of(done, path)
        if isinstance(error, FileNotFoundError):
            return ""
        raise error
    return done.output.decode(errors="replace").partition("\n")[0].strip()


def is_held(holder: Runner, node: NodeId, path: str) -> bool:
    """Does somebody hold it?  It is tried, and given back at once; OSError where that cannot be tried."""
    done = holder.run(commands.try_lock(node, path))
    if done.code not in (0, commands.HELD_BY_ANOTHER):
        raise error_of(done, path)
    return done.code == commands.HELD_BY_ANOTHER
