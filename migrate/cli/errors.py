"""Expected, interrupted, unexpected: each ends in one clear message on stderr and its own exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from migrate.cli.screen import say, say_page
from migrate.errors import Defect, MigrateError, SystemRefused
from migrate.model.findings import Word
from migrate.report.wording import hanging

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


def exit_code_of(word: Word, *, ready: int = EXIT_OK) -> int:
    """The exit code of a verdict; `ready` is that of READY, with warnings or without."""
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


@contextmanager
def error_handler(*, verbose: bool) -> Iterator[None]:
    """Turn errors into a message and an exit code; a defect keeps its traceback, and is called one."""
    try:
        yield
    except MigrateError as error:
        if verbose:
            say_page(hanging(traceback.format_exc().rstrip(), INDENT), err=True)
        say_page(render(error), err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # who read our output has gone: click ends quietly
        refused = SystemRefused(error.strerror or str(error), where=str(error.filename or ""))
        if verbose:
            say_page(hanging(traceback.format_exc().rstrip(), INDENT), err=True)
        say_page(render(refused), err=True)
        sys.exit(refused.exit_code)
    except Exception as error:  # noqa: BLE001 - the last place where one can be told
        say_page(hanging(traceback.format_exc().rstrip(), INDENT), err=True)
        say_page(render(Defect(f"{type(error).__name__}: {error}")), err=True)
        sys.exit(Defect.exit_code)
    except KeyboardInterrupt as interrupt:
        if not interrupt.args:  # one with words was told where it struck
            say("interrupted: run the same command again to resume", err=True)
        sys.exit(EXIT_INTERRUPTED)
