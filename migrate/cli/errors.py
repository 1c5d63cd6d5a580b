"""Expected, interrupted, unexpected: each ends in one clear message on stderr and its own exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.screen import say, say_text
from migrate.errors import Defect, MigrateError, SystemRefused, UsageWrong
from migrate.report.wording import hanging

if TYPE_CHECKING:
    from migrate.cli.answers import Problem
    from migrate.model.findings import Word

INDENT: Final = " " * 9
EXIT_OK: Final = 0
EXIT_ERROR: Final = 1
EXIT_CHANGES: Final = 2
EXIT_BLOCKED: Final = 3
EXIT_WAITING: Final = 4
EXIT_PARKED: Final = 5
EXIT_STALE: Final = 6
EXIT_LOCKED: Final = 7
EXIT_LOCK_LOST: Final = 10
EXIT_USAGE: Final = 64
EXIT_INTERRUPTED: Final = 130
RUN_AGAIN: Final = "run the same command again to resume"


def exit_code_of(word: Word, *, ready: int = EXIT_OK) -> int:
    """The exit code of a verdict; `ready` is that of READY, with warnings or without."""
    from migrate.model.findings import Word

    return {Word.BLOCKED: EXIT_BLOCKED, Word.INCOMPLETE: EXIT_ERROR, Word.NO_CHANGES: EXIT_OK}.get(word, ready)


def render(error: MigrateError) -> str:
    """What is wrong, where, why it matters, what to do next."""
    lines = [f"{error.id}: {hanging(error.what, INDENT)}"]
    if error.where:
        lines.append(f"  where  {hanging(error.where, INDENT)}")
    if error.why:
        lines.append(f"  why    {hanging(error.why, INDENT)}")
    if error.next_step:
        lines.append(f"  next   {hanging(error.next_step, INDENT)}")
    return "\n".join(lines)


def as_ours(error: Exception) -> MigrateError:
    """The error with an id and an exit code: its own, or that of a system's refusal, a missing package or a defect."""
    if isinstance(error, MigrateError):
        return error
    if isinstance(error, OSError):
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        return SystemRefused(
            error.strerror or str(error),
            where=str(error.filename or ""),
            next_step="give a path that is there, or that can be made" if absent else "",
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        from migrate.model.requirements import package_missing

        if (missing := package_missing(error.name)) is not None:
            return missing
    return Defect(f"{type(error).__name__}: {error}")


def ended_by(error: BaseException) -> tuple[int, Problem | None]:
    """The exit code that an error leads to, and the error as values for programs; None where it is no error."""
    if isinstance(error, click.exceptions.Exit):  # `--help` and `--version` end so
        return error.exit_code, None
    if isinstance(error, SystemExit):
        return (error.code if isinstance(error.code, int) else EXIT_ERROR), None
    if isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
        return EXIT_INTERRUPTED, {"id": "", "what": "interrupted", "where": "", "why": "", "next": RUN_AGAIN}
    if isinstance(error, click.ClickException):
        from migrate.cli.mistakes import meant

        code = EXIT_USAGE if isinstance(error, click.UsageError) else error.exit_code
        said = meant(error, sys.argv[1:])
        return code, {"id": UsageWrong.id, "what": error.format_message(), "where": "", "why": "", "next": said}
    assert isinstance(error, Exception)
    ours = as_ours(error)
    return ours.exit_code, as_values(ours)


def as_values(error: MigrateError) -> Problem:
    """The parts of the error's text, for programs."""
    return {"id": error.id, "what": error.what, "where": error.where, "why": error.why, "next": error.next_step}


@contextmanager
def error_handler(*, verbose: bool) -> Iterator[None]:
    """Turn errors into a message and an exit code; a defect keeps its traceback, and is called one."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise  # who read our output has gone: click ends quietly
        ours = as_ours(error)
        if verbose or (ours is not error and isinstance(ours, Defect)):
            say_text(hanging(traceback.format_exc().rstrip(), INDENT), err=True)
        say_text(render(ours), err=True)
        sys.exit(ours.exit_code)
    except KeyboardInterrupt as interrupt:
        if not interrupt.args:  # one with words was told where it struck
            say(f"interrupted: {RUN_AGAIN}", err=True)
        sys.exit(EXIT_INTERRUPTED)
