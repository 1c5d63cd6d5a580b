"""Commands on a host and their results, the same for this host and for one reached by SSH."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from migrate.errors import (
    HostAnswerTooLong,
    HostCommandRefused,
    HostCommandUnknown,
    HostProgramMissing,
    HostUnreachable,
    MigrateError,
)
from migrate.hosts.commands import LOOKS, NOT_RIGHT, HostAccess, Words
from migrate.hosts.host_program import LOOKS as CHANGE_NOTHING
from migrate.hosts.host_program import NAME
from migrate.model import limits
from migrate.model.outcome import Awaited, Unknown

COMMAND_SECONDS: Final = 30.0
PIECE: Final = 1 << 18  # bytes that are read or written at once
ENDS_WITHIN: Final = 5.0  # seconds behind the end of its output
ERRORS_KEPT: Final = 1 << 16  # bytes at the end of what a command complains of


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command: the exit code is its own, not the connection's."""

    code: int
    output: bytes
    errors: str

    @property
    def says(self) -> str:
        """Its error output, in one line of visible characters."""
        return " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in self.errors).split())[-500:]


class Runner(Protocol):
    host: str

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end.

        Raises:
            HostCommandUnknown, or a class below it: nobody knows whether the command ran.
        """


class LocalRunner:
    """Commands of this host; a missing program ends with 127, as in a shell."""

    host = "this host"

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end; HostCommandUnknown where it takes longer."""
        try:
            return stream(words, f"{self.host}: {words[0]}", stdin, seconds, env=environment(), apart=True)
        except TimeoutError as error:
            raise HostCommandUnknown(f"no end after {seconds:.0f} s", where=f"{self.host}: {words[0]}") from error
        except FileNotFoundError:
            return Completed(127, b"", f"{words[0]}: command not found")
        except OSError as error:
            return Completed(126, b"", f"{words[0]}: {error.strerror or error}")

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Begin one that persists.  Raises HostCommandRefused."""
        try:
            return HeldCommand(words, self.host, environment())
        except OSError as error:
            raise HostCommandRefused(f"{words[0]} did not start: {error.strerror or error}", where=self.host) from error


def environment() -> dict[str, str]:
    """The variables that a command or ssh needs; secrets of this process do not reach children."""
    wanted = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "KRB5CCNAME", "TMPDIR")
    return {name: os.environ[name] for name in wanted if name in os.environ}


def stream(
    argv: Sequence[str],
    where: str,
    stdin: bytes,
    seconds: float,
    *,
    env: Mapping[str, str],
    apart: bool = False,
) -> Completed:
    """Run a program, and read its output as it comes; `apart`: in a session of its own, which ends with it.

    Raises:
        HostAnswerTooLong: it writes more than an answer has; it is ended at that moment, not when memory is full.
        TimeoutError: it takes longer; it is ended.
        OSError: it does not start.
    """
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(env), start_new_session=apart, bufsize=0,
    )  # fmt: skip
    try:
        output, errors = _exchange(process, where, stdin, time.monotonic() + seconds)
        code = process.wait(ENDS_WITHIN)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # what sudo runs is root's
            process.kill()
            if apart:
                os.killpg(process.pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):  # it closed what it wrote to, and lives on
            raise TimeoutError from error
        raise
    finally:
        _leave(process)
    return Completed(code, output, errors.decode(errors="replace"))


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Close its pipes, and wait for its end no longer than that takes: one that a dead disk holds cannot be killed."""
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ENDS_WITHIN)


def _exchange(process: subprocess.Popen[bytes], where: str, stdin: bytes, deadline: float) -> tuple[bytes, bytes]:
    """What it writes until it closes both streams, its input given meanwhile."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    most, output, errors, left = limits.most("answer"), bytearray(), bytearray(), memoryview(stdin)
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdin, selectors.EVENT_WRITE)
        ready.register(process.stdout, selectors.EVENT_READ)
        ready.register(process.stderr, selectors.EVENT_READ)
        while ready.get_map():
            found = ready.select(max(0.0, deadline - time.monotonic()))
            if not found:
                raise TimeoutError
            for key, _ in found:
                if key.fileobj is process.stdin:
                    left = _given(key.fd, left)
                    if not left:
                        ready.unregister(process.stdin)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, PIECE)
                if not piece:
                    ready.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors += piece
                    del errors[:-ERRORS_KEPT]
                else:
                    output += piece
                if len(output) > most:
                    raise HostAnswerTooLong(f"it answered with more than {most} bytes, and was ended", where=where)
    return bytes(output), bytes(errors)


def _given(descriptor: int, left: memoryview) -> memoryview:
    """The rest of the input; nothing once its reader is gone."""
    try:
        return left[os.write(descriptor, left[:PIECE]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


def unseen(error: MigrateError) -> Unknown:
    """The error as a value: Awaited for an unreachable host, which may come back, else Unknown."""
    reason = f"{error.id} {error}"
    if not isinstance(error, HostUnreachable):
        return Unknown(reason)
    after = f"start the host, its sshd or its link; test with `ssh {error.where} true`; the run then continues"
    return Awaited(reason, f"whoever runs {error.where}", after)


END_SECONDS: Final = 10.0
MOST_SESSIONS: Final = 3  # at once for looks at one host: sshd's MaxSessions is 10
FREE_SECONDS: Final = 10.0  # waited for one of them, which costs less than a login, sudo and Python
NOT_THERE: Final = (126, 127)  # a shell that finds no program, or may not run it
SUDO_SAYS: Final = re.compile(r"(^|\s)sudo: |may not run sudo|not allowed to execute")


class Holder(Runner, Protocol):
    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Start one; raises what `run` raises."""


class HeldCommand:
    """A command that runs on a host as long as this process does, and answers each line; or the client that reaches it.

    Its input is a pipe from us: when we end, however we end, the input ends, and with it the command.  What it holds
    there is free again then.  An answer is the proof that it lives, the connection to its host included.
    """

    def __init__(self, argv: Sequence[str], host: str, environment: Mapping[str, str]) -> None:
        self._host = host
        self._left = bytearray()
        self._process = subprocess.Popen(
            list(argv), bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, start_new_session=True,  # Ctrl-C is for us: what is held is given back when we are done
        )  # fmt: skip

    def answers(self, line: bytes, seconds: float) -> bool:
        """Does it echo that line?  False where it has ended, or answers otherwise.

        Raises:
            HostCommandUnknown: no answer in time: whether it lives is not known.
        """
        try:
            self.send(line)
            return self.line(time.monotonic() + seconds) == line
        except TimeoutError as error:
            raise HostCommandUnknown("what is held there does not answer", where=self._host) from error
        except EOFError:
            return False

    def send(self, line: bytes) -> None:
        """Write to its input.  Raises EOFError where it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except OSError as error:
            raise EOFError from error

    def line(self, deadline: float) -> bytes:
        """The next line of its output.  Raises EOFError, and TimeoutError at `deadline` (of the monotonic clock)."""
        while (end := self._left.find(b"\n")) < 0:
            self._more(deadline)
        return self._taken(end + 1)

    def piece(self, length: int, deadline: float) -> bytes:
        """So many bytes of its output; raises what `line` raises."""
        while len(self._left) < length:
            self._more(deadline)
        return self._taken(length)

    def _taken(self, length: int) -> bytes:
        found = bytes(self._left[:length])
        del self._left[:length]
        return found

    def _more(self, deadline: float) -> None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:  # select(2) takes no descriptor above 1023
            ready.register(self._process.stdout, selectors.EVENT_READ)
            if not ready.select(max(deadline - time.monotonic(), 0)):
                raise TimeoutError
        part = os.read(self._process.stdout.fileno(), PIECE)
        if not part:
            raise EOFError
        self._left += part

    def kill(self) -> None:
        """End it on this side, at once."""
        with contextlib.suppress(PermissionError):  # sudo is root's; it ends with its input
            self._process.kill()
        self.end_input()
        _leave(self._process)

    def end_input(self) -> None:
        """End its input, with which it ends, and wait for nothing."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.stdin = None  # communicate must not write to it

    def end(self) -> Completed:
        """End its input and wait for its end; if it does not end, kill it on this side, and wait for nothing more."""
        self.end_input()
        try:
            output, errors = self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return Completed(-signal.SIGKILL, b"", "")
        return Completed(self._process.returncode, output, errors.decode(errors="replace"))


class LookSessions:
    """Held `looks` commands of one host: each question is answered anew, without another login and process start.

    One thread uses one at a time.  Where none is to be had, or one ends within an answer, `ask` has no answer: the
    caller asks by a command of its own, which also finds out why.
    """

    def __init__(self, hold: Callable[[Words], HeldCommand]) -> None:
        self._hold = hold
        self._lock = threading.Condition()
        self._free: list[HeldCommand] = []
        self._used = 0
        weakref.finalize(self, _end_all, self._free)
        self._most = MOST_SESSIONS  # none where the first one has answered nothing

    def ask(self, questions: Sequence[Sequence[str]], where: str, seconds: float) -> list[Completed] | None:
        """The answers, in one round trip, as commands with these words give them one after another.

        None where there is no session for them.

        Raises:
            HostUnreachable, HostKeyNotTrusted, HostDenied, HostPrintsText, SshMissing: there is no connection.
            HostAnswerTooLong: it is ended.
            TimeoutError: no end of one of them in that time; it is ended.
        """
        line = json.dumps([list(words) for words in questions]).encode() + b"\n"
        for _ in range(2):  # one that has waited for long has perhaps ended
            session, is_new = self._take()
            if session is None:
                return None
            done = None
            try:
                session.send(line)
                done = [_answer(session, where, time.monotonic() + seconds) for _ in questions]
            except EOFError:
                if is_new:
                    self._most = 0
                    return None
            finally:
                self._give_back(session, whole=done is not None)
            if done is not None:
                return done
        return None

    def _take(self) -> tuple[HeldCommand | None, bool]:
        with self._lock:
            self._lock.wait_for(lambda: self._free or self._used < self._most or not self._most, FREE_SECONDS)
            if self._free:
                self._used += 1
                return self._free.pop(), False
            if self._used >= self._most:
                return None, False
            self._used += 1
        session = None
        try:
            session = self._hold(LOOKS)
        except HostCommandRefused:  # the program is not there; a command of its own says so
            return None, False
        finally:
            if session is None:
                with self._lock:
                    self._used -= 1
                    self._lock.notify()
        return session, True

    def _give_back(self, session: HeldCommand, *, whole: bool) -> None:
        with self._lock:
            self._used -= 1
            if whole:
                self._free.append(session)
            self._lock.notify()
        if not whole:
            session.kill()

    def close(self) -> None:
        """End them."""
        with self._lock:
            _end_all(self._free)


def _end_all(sessions: list[HeldCommand]) -> None:
    """End them side by side."""
    for session in sessions:
        session.end_input()
    while sessions:
        sessions.pop().end()


def _answer(session: HeldCommand, where: str, deadline: float) -> Completed:
    """The frames of one answer of `looks`."""
    most, output, errors = limits.most("answer"), bytearray(), bytearray()
    while True:
        kind, _, number = session.line(deadline).strip().partition(b" ")
        if kind not in (b"o", b"e", b"x") or not number.isdigit():
            raise EOFError  # a banner, or another program
        if kind == b"x":
            return Completed(int(number), bytes(output), errors.decode(errors="replace"))
        if len(output) + int(number) > most:
            raise HostAnswerTooLong(f"it answered with more than {most} bytes, and was ended", where=where)
        piece = session.piece(int(number), deadline)
        if kind == b"o":
            output += piece
        else:
            errors += piece
            del errors[:-ERRORS_KEPT]


class ProgramHolder:
    """The host program of one host: each command is a verb of `migrate.hosts.commands`."""

    def __init__(self, holder: Holder, access: HostAccess) -> None:
        self.holder, self.access = holder, access
        self.host = holder.host
        self._looks = LookSessions(self.hold)

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end; also raises HostProgramMissing where the program does not run there."""
        if words[0] in CHANGE_NOTHING and not stdin:
            found = self._asked([words], seconds)
            if found is not None:
                return found[0]
        return self.proven(self.holder.run(self.access.words(tuple(words)), stdin=stdin, seconds=seconds))

    def run_all(self, commands: Sequence[Sequence[str]], seconds: float) -> list[Completed]:
        found = self._asked(commands, seconds) if all(words[0] in CHANGE_NOTHING for words in commands) else None
        return [self.run(words, seconds=seconds) for words in commands] if found is None else found

    def _asked(self, commands: Sequence[Sequence[str]], seconds: float) -> list[Completed] | None:
        where = f"{self.host}: {commands[0][0]}"
        try:
            found = self._looks.ask(commands, where, seconds)
        except TimeoutError as error:
            raise HostCommandUnknown(f"no end after {seconds:.0f} s", where=where) from error
        return None if found is None else [self.proven(done) for done in found]

    def hold(self, words: Sequence[str]) -> HeldCommand:
        return self.holder.hold(self.access.words(tuple(words)))

    def close(self) -> None:
        """End what is held for looks; the next look begins it again."""
        self._looks.close()

    def proven(self, done: Completed) -> Completed:
        """Return the answer; HostProgramMissing where it is not the host program's.

        A program that ran has its name before what went wrong; sudo may have warned before that, and went on.
        """
        by_sudo = self.access.sudo and done.code == 1 and SUDO_SAYS.search(done.says) is not None
        by_sudo = by_sudo and NAME not in done.errors
        if by_sudo or done.code in (*NOT_THERE, NOT_RIGHT):
            raise HostProgramMissing(
                f"the host program does not run: {done.says or done.code}",
                where=f"{self.host}:{self.access.program}",
                why="everything that a run does on a host goes through it",
                next_step=set_up(self.host),
            )
        return done


def run_all(runner: Runner, commands: Sequence[Sequence[str]], seconds: float = COMMAND_SECONDS) -> Sequence[Completed]:
    """Run commands in their order; looks of a host program take one round trip together.  Raises what `run` raises."""
    if isinstance(runner, ProgramHolder) and commands:
        return runner.run_all(commands, seconds)
    return [runner.run(words, seconds=seconds) for words in commands]


def set_up(host: str) -> str:
    """The command that prints that host's setup script (pure)."""
    return f"`kraft-migrate doctor --inventory FILE --host-setup {host}` prints what root runs on that host"
