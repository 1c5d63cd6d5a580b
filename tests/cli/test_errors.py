"""Expected errors are one clear message, interruptions are 130, and a defect keeps its traceback."""

from __future__ import annotations

import errno

import click
import pytest

from migrate import errors
from migrate.checks.pages import error_docs
from migrate.cli import main as module
from migrate.cli.errors import error_handler, render
from migrate.errors import MigrateError, NotConfirmed, PlanIsStale, RunLocked, UsageWrong, WorldError
from migrate.run.carry_out import TOLD
from tests.cli.commands import kept_umask

CLASSES = sorted(
    {entry for entry in vars(errors).values() if isinstance(entry, type) and issubclass(entry, MigrateError)},
    key=lambda entry: entry.__name__,
)


def ended(error: BaseException, capsys: pytest.CaptureFixture[str], *, verbose: bool = False) -> tuple[object, str]:
    """Exit code and message."""
    with pytest.raises(SystemExit) as caught, error_handler(verbose=verbose):
        raise error
    said = capsys.readouterr()
    assert said.out == ""
    return caught.value.code, said.err


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_what_where_why_and_what_next(
    cls: type[MigrateError], capsys: pytest.CaptureFixture[str]
) -> None:
    """With its id first, and the exit code of its class."""
    error = cls("it is broken", where="/conf/b1.properties", why="it matters", next_step="mend it")
    code, text = ended(error, capsys)
    assert text == (f"{cls.id}: it is broken\n  where  /conf/b1.properties\n  why    it matters\n  next   mend it\n")
    assert code == cls.exit_code


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_without_a_next_step_of_its_own_has_the_one_of_its_class(cls: type[MigrateError]) -> None:
    """What is not known is left out; lines are never empty."""
    lines = render(cls("it is broken")).splitlines()
    assert lines[0] == f"{cls.id}: it is broken"
    assert lines[1:] == ([f"  next   {cls.hint}"] if cls.hint else [])


@pytest.mark.slow
def test_every_error_that_can_be_raised_has_a_next_step_and_is_explained() -> None:
    """By `explain`, under its id."""
    concrete = [cls for cls in CLASSES if cls.id in error_docs()]
    assert all(cls.hint for cls in concrete)
    assert {cls.id for cls in CLASSES} - set(error_docs()) <= {"E-000", "E-INPUT", "E-WORLD"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WorldError("x"), 1),
        (NotConfirmed("x"), 4),
        (PlanIsStale("x"), 6),
        (RunLocked("x"), 7),
        (UsageWrong("x"), 64),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes_are_the_promised_ones(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts go by them."""
    found, text = ended(error, capsys)
    assert found == code
    assert text
    assert "Traceback" not in text


def test_an_interrupt_that_was_told_where_it_struck_is_not_told_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that was stopped by a second Ctrl-C has said what is half done, and that the same command resumes."""
    code, text = ended(KeyboardInterrupt(TOLD), capsys)
    assert (code, text) == (130, "")
    code, text = ended(KeyboardInterrupt(), capsys)
    assert (code, text) == (130, "interrupted: run the same command again to resume\n")


def test_verbose_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    """For those who mend it."""
    _, text = ended(WorldError("x"), capsys, verbose=True)
    assert "Traceback" in text
    assert text.endswith("E-WORLD: x\n  next   " + WorldError.hint + "\n")


def test_a_defect_keeps_its_traceback_and_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody should look for its cause in the cluster; what it shows is escaped like everything else."""
    code, text = ended(ZeroDivisionError("a\x1b[2Jb"), capsys)
    assert code == 1
    assert "Traceback" in text
    assert "E-DEFECT: ZeroDivisionError: a\\x1b[2Jb" in text
    assert "\x1b" not in text


def test_what_the_system_refuses_is_an_error_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk, a folder that is not ours: no traceback, unless it is asked for."""
    error = OSError(errno.ENOSPC, "No space left on device", "/run/plan.json")
    code, text = ended(error, capsys)
    assert (code, text.splitlines()[:2]) == (1, ["E-SYS-01: No space left on device", "  where  /run/plan.json"])
    assert "Traceback" in ended(error, capsys, verbose=True)[1]


def test_a_reader_that_goes_away_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """As in `kraft-migrate findings | head`."""
    with pytest.raises(BrokenPipeError), error_handler(verbose=False):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
    assert capsys.readouterr().err == ""


def test_clicks_abort_is_an_interruption(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C at a prompt, or where click catches it first."""

    def aborted(**_: object) -> None:
        raise click.exceptions.Abort

    monkeypatch.setattr(module.cli, "main", aborted)
    with kept_umask(), pytest.raises(SystemExit) as caught:
        module.main()
    assert caught.value.code == 130
    assert "run the same command again" in capsys.readouterr().err
