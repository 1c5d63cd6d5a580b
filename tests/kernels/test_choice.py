"""Kernel or reference."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from migrate.kernels import choice
from tests.cli.commands import kraft_migrate


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was loaded, tried or told before."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_told", set())
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_loaded", {})
    monkeypatch.setattr(choice, "_not_kept", set())


def test_what_is_small_is_the_references_and_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's import costs more than small work."""
    monkeypatch.setattr(choice, "_load", lambda _: pytest.fail("loaded"))
    assert not choice.ready("compiled", 99, least=100)


def test_what_is_large_is_the_kernels() -> None:
    """From the size on at which it pays."""
    assert choice.ready("compiled", 100, least=100)


def looked_for(monkeypatch: pytest.MonkeyPatch, kept: Callable[[str], object]) -> list[str]:
    """The kernels whose code was looked for, as it is."""
    asked: list[str] = []

    def look(name: str) -> object:
        asked.append(name)
        return kept(name)

    monkeypatch.setattr(choice, "_from_kept_code", look)
    return asked


def test_a_kernel_whose_code_is_kept_pays_for_a_quarter_of_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled for it; from then on it is loaded, for whatever is as large."""
    code = object()
    asked = looked_for(monkeypatch, lambda _: code)
    monkeypatch.setattr(choice, "_load", lambda _: pytest.fail("compiled"))
    assert [choice.ready("some", size, least=100) for size in (24, 25, 99, 100)] == [False, True, True, True]
    assert asked == ["some"]
    assert choice.kernels("some") is code


@pytest.mark.parametrize("kept", [lambda _: None, lambda _: 1 / 0], ids=["none", "unreadable"])
def test_a_kernel_that_nobody_has_compiled_yet_does_not_pay_for_less(
    kept: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for once; what is large enough compiles it."""
    asked = looked_for(monkeypatch, kept)
    assert not any(choice.ready("some", size, least=100) for size in (25, 99, 50))
    assert asked == ["some"]
    monkeypatch.setattr(choice, "_load", lambda name: choice._failed.update({name: ""}))
    assert choice.ready("some", 100, least=100)
    assert choice.ready("some", 25, least=100), "it is loaded now"


def test_kept_code_is_not_even_looked_for_where_references_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off is off."""
    monkeypatch.setenv(choice.VARIABLE, "off")
    monkeypatch.setattr(choice, "_from_kept_code", lambda _: pytest.fail("looked for"))
    assert not choice.ready("some", 99, least=100)


@pytest.mark.parametrize("word", ["off", "OFF ", "0", "no", "false"])
def test_the_variable_asks_for_references_and_the_log_says_so_once(
    word: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However it is spelled."""
    monkeypatch.setenv(choice.VARIABLE, word)
    with caplog.at_level(logging.INFO, "migrate.kernels"):
        assert not any(choice.ready("compiled", 100, least=100) for _ in range(3))
    assert [record.message for record in caplog.records] == [
        "compiled: the reference is used, as KRAFT_MIGRATE_KERNELS=off asks"
    ]


def test_the_commands_flag_asks_for_references_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """For this process and for all that it starts."""
    monkeypatch.setenv(choice.VARIABLE, "on")
    kraft_migrate("--no-kernels", "playbook", "show", "--help")
    assert os.environ[choice.VARIABLE] == "off"
    assert not choice.ready("compiled", 100, least=100)


def test_a_kernel_that_cannot_be_loaded_is_its_references_work(caplog: pytest.LogCaptureFixture) -> None:
    """Tried once, told once, never raised."""
    with caplog.at_level(logging.INFO, "migrate.kernels"):
        assert not any(choice.ready("no_such_kernel", 100, least=100) for _ in range(3))
    (line,) = [record.message for record in caplog.records]
    assert line.startswith("no_such_kernel: the reference is used, for the kernel cannot be loaded: ModuleNotFound")


def test_without_numba_references_are_used() -> None:
    """As on a machine for which there is none."""
    script = """
import sys
sys.modules["numba"] = None
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
from migrate.kernels.choice import ready
sys.exit(ready("compiled", 100, 100))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "compiled: the reference is used, for the kernel cannot be loaded: ModuleNotFoundError" in done.stderr
