"""The whole tree of errors.

Two roots: `InputError` (an input is wrong) and `WorldError` (something could not be seen or done).  A bug is a
plain Python exception until the command line reports it as a `Defect`.  Every class has a stable `id`, the exit code of
the process and a `hint`; docs/errors.md is generated from them.  Only `Retryable` errors are retried.
"""

from __future__ import annotations

from typing import ClassVar


class MigrateError(Exception):
    """The base: what is wrong, where, why it matters, what to do next."""

    id: ClassVar[str] = "E-000"
    exit_code: ClassVar[int] = 1
    hint: ClassVar[str] = ""

    def __init__(self, what: str, *, where: str = "", why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.next_step = next_step or self.hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}"


class Retryable(MigrateError):
    """Mixin: a retry of the same call may succeed."""


class InputError(MigrateError):
    """An input (a file, a flag, a znode, a snapshot) is wrong."""

    id = "E-INPUT"
    hint = "correct the input named above and run the same command again; nothing was changed"


class WorldError(MigrateError):
    """Something could not be seen or done."""

    id = "E-WORLD"
    hint = "check the place named above; the same command resumes where it stopped"


class UnknownCode(InputError):
    """`explain` knows no such error id or finding code."""

    id = "E-CODE-01"
    hint = "`kraft-migrate explain --all` lists every code"


class UsageWrong(InputError):
    """The arguments of the command contradict each other."""

    id = "E-USAGE"
    exit_code = 64
    hint = "see --help of that command"


class NotVisible(WorldError):
    """What was requested cannot be seen now."""

    id = "E-VIEW-01"


class SystemRefused(WorldError):
    """The operating system refused something that every command needs: disk space, a folder, an open file."""

    id = "E-SYS-01"
    hint = "free disk space, or grant the missing permission; then run the same command again"


class PythonTooOld(WorldError):
    """The Python that runs kraft-migrate is earlier than 3.11."""

    id = "E-SYS-02"
    hint = "install kraft-migrate into a virtual environment of Python 3.11 or later; nothing was done"


class Defect(WorldError):
    """An unexpected failure: a defect of kraft-migrate, not of your cluster."""

    id = "E-DEFECT"
    hint = (
        "nothing was done after this point; run the same command again once, and report the defect with the lines"
        " above and the output of `kraft-migrate --version` to those who gave you this release"
    )
