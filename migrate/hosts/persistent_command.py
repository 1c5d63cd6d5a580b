"""A command that runs on a host as long as this process does, and echoes each line.

Its input is a pipe from us: when we end, however we end, the input ends, and with it the command.  What it holds there
is free again then.  An answer is the proof that it lives at that moment, the connection to its host included.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from migrate.errors import HostCommandRefused, HostCommandUnknown, HostProgramMissing
from migrate.hosts.commands import NOT_RIGHT, HostAccess
from migrate.hosts.runner import COMMAND_SECONDS, Completed, LocalRunner, Runner

END_SECONDS: Final = 10.0
PART: Final = 4096
NOT_THERE: Final = (126, 127)  # a shell that finds no program, or may not run it
SUDO_SAYS: Final = re.compile(r"(^|\s)sudo: |may not run sudo|not allowed to execute")


class Holder(Runner, Protocol):
    """Runs commands on one host, persistent ones too."""

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Start one; raises what `run` raises."""


class HeldCommand:
    """A persistent command, or the client that reaches it."""

    def __init__(self, argv: Sequence[str], host: str, environment: Mapping[str, str] | None = None) -> None:
        self._host = host
        self._left = b""
        self._process = subprocess.Popen(
            list(argv),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us: what is held is given back when we are done
        )

    def answers(self, line: bytes, seconds: float) -> bool:
        """Does it echo that line?  False where it has ended, or answers otherwise.

        Raises:
            HostCommandUnknown: no answer in time: whether it lives is not known.
        """
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), line)
        except OSError:
            return False
        return self._line(time.monotonic() + seconds) == line

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._left:
            ready, _, _ = select.select([output], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise HostCommandUnknown("what is held there does not answer", where=self._host)
            part = os.read(output, PART)
            if not part:
                return b""
            self._left += part
        line, _, self._left = self._left.partition(b"\n")
        return line + b"\n"

    def end(self) -> Completed:
        """End its input and wait for its end; if it does not end, kill it on this side, which ends its input."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.stdin = None  # communicate must not write to it
        try:
            output, errors = self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            output, errors = self._process.communicate()
        return Completed(self._process.returncode, output, errors.decode(errors="replace"))


class LocalHolder(LocalRunner):
    """Commands of this host, persistent ones too."""

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Begin one.

        Raises:
            HostCommandRefused: it did not begin.
        """
        try:
            return HeldCommand(words, self.host)
        except OSError as error:
            raise HostCommandRefused(f"{words[0]} did not start: {error.strerror or error}", where=self.host) from error


class ProgramHolder:
    """The host program of one host: each command is a verb of `migrate.hosts.commands`."""

    def __init__(self, holder: Holder, access: HostAccess) -> None:
        self.holder, self.access = holder, access
        self.host = holder.host

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end; also raises HostProgramMissing where the program does not run there."""
        return self.proven(self.holder.run(self.access.words(tuple(words)), stdin=stdin, seconds=seconds))

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Begin one."""
        return self.holder.hold(self.access.words(tuple(words)))

    def proven(self, done: Completed) -> Completed:
        """Return the answer; HostProgramMissing where it is not the host program's."""
        by_sudo = self.access.sudo and done.code == 1 and SUDO_SAYS.search(done.says) is not None
        if by_sudo or done.code in (*NOT_THERE, NOT_RIGHT):
            raise HostProgramMissing(
                f"the host program does not run: {done.says or done.code}",
                where=f"{self.host}:{self.access.program}",
                why="everything that a run does on a host goes through it",
                next_step=set_up(self.host),
            )
        return done


def set_up(host: str) -> str:
    """The command that prints that host's setup script (pure)."""
    return f"`kraft-migrate doctor --inventory FILE --host-setup {host}` prints what root runs on that host"
