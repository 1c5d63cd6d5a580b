"""Fixtures that more than one area uses; each starts what it needs when a test first asks for it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.testing.kraft_cluster import kraft_cluster, kraft_cluster_of_session
from tests.testing.spark_session import spark, spark_handle
from tests.testing.tiers import NOTES

# A run that was started with signals ignored (nohup, a shell's background job) hands that on to what its tests start.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Where nothing may be kept, each command that a test starts would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# `steady` tries the same examples each time, so that CI says the same twice; `explore` draws new ones, and more.
# No deadlines: the machine may be busy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

__all__ = ["REAL", "kraft_cluster", "kraft_cluster_of_session", "spark", "spark_handle"]
REAL = ("kafka", "zookeeper", "spark", "hosts", "explorer", "bench", "long")  # markers of what starts more than Python


@pytest.fixture(autouse=True)
def _umask_is_left_as_it_was() -> Iterator[None]:
    """A command sets the umask of its process: a test that runs one here must not change it for the next."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    after = os.umask(before)
    assert after == before, f"the test left umask {after:03o} (it was {before:03o}): use tests.cli.commands.kept_umask"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands the notes of a process of several to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["notes"] = NOTES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes it; one that died has said nothing."""
    NOTES.extend(line for line in getattr(node, "workeroutput", {}).get("notes", ()) if line not in NOTES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what died on the way."""
    for line in NOTES:
        terminalreporter.write_line(line)
