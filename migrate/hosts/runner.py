"""Commands on a host and their results, the same for this host and for one reached by SSH."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from migrate.errors import HostAnswerTooLong, HostCommandUnknown, HostUnreachable, MigrateError
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
    """Runs commands on one host."""

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
            return stream(words, f"{self.host}: {words[0]}", stdin, seconds, apart=True)
        except TimeoutError as error:
            raise HostCommandUnknown(f"no end after {seconds:.0f} s", where=f"{self.host}: {words[0]}") from error
        except FileNotFoundError:
            return Completed(127, b"", f"{words[0]}: command not found")
        except OSError as error:
            return Completed(126, b"", f"{words[0]}: {error.strerror or error}")


def stream(
    argv: Sequence[str],
    where: str,
    stdin: bytes,
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    apart: bool = False,
) -> Completed:
    """Run a program, and read its output as it comes; `apart`: in a session of its own, which ends with it.

    Raises:
        HostAnswerTooLong: it writes more than an answer has; it is ended at that moment, not when memory is full.
        TimeoutError: it takes longer; it is ended.
        OSError: it does not start.
    """
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=None if env is None else dict(env), start_new_session=apart, bufsize=0,
    ) as process:  # fmt: skip
        try:
            output, errors = _exchange(process, where, stdin, time.monotonic() + seconds)
            code = process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired as error:  # it closed what it wrote to, and lives on
            process.kill()
            raise TimeoutError from error
        except BaseException:
            process.kill()
            if apart:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    return Completed(code, output, errors.decode(errors="replace"))


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
    after = (
        f"start the host, its sshd or its link; test with `ssh {error.where} true`; the run then continues by itself"
    )
    return Awaited(reason, f"whoever runs {error.where}", after)
