"""Commands on a host: what is run, and what came of it.  This host and one reached by SSH answer alike."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from migrate.errors import HostCommandUnknown, HostUnreachable, MigrateError
from migrate.model.outcome import Awaited, Unknown

ANSWER_LIMIT: Final = 256 * 2**20  # bytes of one answer: half a million replica folders as the collector tells them
COMMAND_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that came to its end: its exit code is its own, not the connection's."""

    code: int
    output: bytes
    errors: str

    @property
    def says(self) -> str:
        """What it complained of, in one line of visible characters."""
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
    """Commands of this host; a program that is not there ends with 127, as a shell has it."""

    host = "this host"

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end; HostCommandUnknown where it takes longer."""
        try:
            done = subprocess.run(
                list(words), input=stdin, capture_output=True, timeout=seconds, check=False, start_new_session=True
            )
        except subprocess.TimeoutExpired as error:
            raise HostCommandUnknown(f"no end after {seconds:.0f} s", where=f"{self.host}: {words[0]}") from error
        except FileNotFoundError:
            return Completed(127, b"", f"{words[0]}: command not found")
        except OSError as error:
            return Completed(126, b"", f"{words[0]}: {error.strerror or error}")
        return Completed(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def unseen(error: MigrateError) -> Unknown:
    """What an error leaves unseen: a host that is off or cut off comes back, or somebody brings it back."""
    reason = f"{error.id} {error}"
    if not isinstance(error, HostUnreachable):
        return Unknown(reason)
    after = f"start the host, its sshd or its link; to try it: `ssh {error.where} true`; the run goes on by itself"
    return Awaited(reason, f"whoever runs {error.where}", after)
