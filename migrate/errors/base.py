"""The whole tree of errors.

Two roots: `InputError` (an input is wrong) and `WorldError` (something could not be seen or done).  A bug is a
plain Python exception until the command line reports it as a `Defect`.  Every class has a stable `id`, which its header
gives as `code`, the exit code of the process and a `hint`; docs/errors.md is generated from them.  Only `Retryable`
errors are retried.
"""

from __future__ import annotations

from typing import ClassVar


class MigrateError(Exception):
    """The base: what is wrong, where, why it matters, what to do next."""

    id: ClassVar[str] = "E-000"
    exit_code: ClassVar[int] = 1
    hint: ClassVar[str] = ""

    def __init_subclass__(cls, code: str = "", exit_code: int = 0) -> None:
        """`class LockHeld(WorldError, code="E-LOCK-01", exit_code=7)`: what is left out is the base class's."""
        super().__init_subclass__()
        if code:
            cls.id = code
        if exit_code:
            cls.exit_code = exit_code

    def __init__(self, what: str, *, where: str = "", why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.next_step = next_step or self.hint

    @property
    def advised(self) -> str:
        """The error in one line; where the next step is of this very error, not of its class, why and next step too."""
        if self.next_step == self.hint:
            return str(self)
        return f"{self}{f' ({self.why})' if self.why else ''}; next: {self.next_step}"

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}"


class Retryable(MigrateError):
    """Mixin: a retry of the same call may succeed."""


class InputError(MigrateError, code="E-INPUT"):
    """An input (a file, a flag, a znode, a snapshot) is wrong."""

    hint = "correct the input named above and run the same command again; nothing was changed"


class WorldError(MigrateError, code="E-WORLD"):
    """Something could not be seen or done."""

    hint = "check the place named above; the same command resumes where it stopped"


class UnknownCode(InputError, code="E-CODE-01"):
    """`explain` knows no such error id or finding code."""

    hint = "`kraft-migrate explain` lists every code"


class UsageWrong(InputError, code="E-USAGE", exit_code=64):
    """The arguments of the command contradict each other."""

    hint = "`kraft-migrate help COMMAND` has examples"


class NotVisible(WorldError, code="E-VIEW-01"):
    """What was requested cannot be seen now."""

    hint = "`kraft-migrate status` says where the cluster is and what is wrong; then give the same command again"


class SystemRefused(WorldError, code="E-SYS-01"):
    """The operating system refused something that every command needs: disk space, a folder, an open file."""

    hint = "free disk space, or grant the missing permission; then run the same command again"


class PythonTooOld(WorldError, code="E-SYS-02"):
    """The Python that runs kraft-migrate is earlier than 3.11."""

    hint = "install kraft-migrate into a virtual environment of Python 3.11 or later; nothing was done"


class PackageMissing(WorldError, code="E-SYS-03"):
    """A Python package that this command needs is not installed beside kraft-migrate."""

    hint = "install it into the virtual environment of kraft-migrate; `kraft-migrate doctor` names the packages"


class Defect(WorldError, code="E-DEFECT"):
    """An unexpected failure: a defect of kraft-migrate, not of your cluster."""

    hint = (
        "nothing was done after this point; run the same command again once, and report the defect with the lines"
        " above and the output of `kraft-migrate --version` to those who gave you this release"
    )
