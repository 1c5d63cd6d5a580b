"""Compiled or plain."""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path

import pytest

from migrate.accelerated import choice
from tests.cli.commands import kraft_migrate

MODULE = "znode_columns"  # any that can be imported


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was loaded, tried or logged before, and nothing is compiled."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(choice, "_logged", set())
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_asked", Counter())


def test_what_is_small_is_read_in_plain_python_and_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's import costs more than small work."""
    monkeypatch.setattr(choice, "_load", lambda _: pytest.fail("loaded"))
    assert not choice.ready(MODULE, 99, least=100)


def test_what_is_large_is_read_by_compiled_loops() -> None:
    """From the size on at which it pays."""
    assert choice.ready(MODULE, 100, least=100)


def test_what_is_compiled_already_pays_for_a_quarter_of_the_size() -> None:
    """By an earlier process."""
    kept = choice.cache_folder() / "accelerated_0" / f"{MODULE}.scan-1.py311.nbi"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert not choice.ready(MODULE, 24, least=100)
    assert choice.ready(MODULE, 25, least=100)


def test_many_small_inputs_of_a_process_pay_together() -> None:
    """As of clusters that an executor of Spark's reads one after the other; what is loaded reads any size."""
    assert [choice.ready(MODULE, size, least=100) for size in (60, 39, 1, 1)] == [False, False, True, True]


@pytest.mark.parametrize("word", ["off", "OFF ", "0", "no", "false"])
def test_the_variable_asks_for_plain_python_and_the_log_says_so_once(
    word: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However it is spelled."""
    monkeypatch.setenv(choice.VARIABLE, word)
    with caplog.at_level(logging.INFO, "migrate.accelerated"):
        assert not any(choice.ready(MODULE, 100, least=100) for _ in range(3))
    assert [record.message for record in caplog.records] == [
        f"{MODULE}: plain Python is used, as KRAFT_MIGRATE_KERNELS=off asks"
    ]


def test_the_commands_flag_asks_for_plain_python_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """For this process and for all that it starts."""
    monkeypatch.setenv(choice.VARIABLE, "on")
    kraft_migrate("--no-kernels", "playbook", "show", "--help")
    assert os.environ[choice.VARIABLE] == "off"
    assert not choice.ready(MODULE, 100, least=100)


def test_a_module_that_cannot_be_loaded_is_tried_once_and_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Plain Python does the same work."""
    with caplog.at_level(logging.INFO, "migrate.accelerated"):
        assert not any(choice.ready("no_such_module", 100, least=100) for _ in range(3))
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(
        "no_such_module: plain Python is used, for the compiled loops cannot be loaded: ModuleNotFound"
    )


def test_the_caches_folder_changes_with_sources_and_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled of others is never loaded; numba itself looks at the processor."""
    name = choice._sources()
    assert len(name) == 20
    choice._sources.cache_clear()
    assert choice._sources() == name
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", lambda _: "0")
        choice._sources.cache_clear()
        assert choice._sources() != name
    choice._sources.cache_clear()
