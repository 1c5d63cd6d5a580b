"""Kernel or reference."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from migrate.kernels import choice
from tests.cli.commands import kraft_migrate


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was loaded, tried or told before."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_told", set())
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_spent", {})


def test_what_is_small_is_the_references_and_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's import costs more than small work."""
    monkeypatch.setattr(choice, "_load", lambda _: pytest.fail("loaded"))
    assert not choice.ready("compiled", 99, least=100)


def test_what_is_large_is_the_kernels() -> None:
    """From the size on at which it pays."""
    assert choice.ready("compiled", 100, least=100)


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


def test_work_that_comes_again_gets_its_kernel_when_that_is_repaid() -> None:
    """What was done without it counts; from then on each that is large enough for itself."""
    sizes = [40, 40, 5, 40, 40, 9, 10]
    assert [choice.repaid("compiled", size, least=100, warm=10) for size in sizes] == [
        *(False, False, False),
        *(True, True, False, True),
    ]


def test_many_small_works_do_not_load_it_for_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one that gains by it does."""
    monkeypatch.setattr(choice, "_load", lambda _: pytest.fail("loaded"))
    assert not any(choice.repaid("compiled", 9, least=50, warm=10) for _ in range(20))


def test_nothing_repays_it_where_references_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much there was."""
    monkeypatch.setenv(choice.VARIABLE, "off")
    assert not any(choice.repaid("compiled", 1_000, least=100, warm=10) for _ in range(3))


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
