"""Fixtures that more than one area uses; each starts what it needs when a test first asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.testing.kraft_cluster import kraft_cluster
from tests.testing.rotating import PICKED
from tests.testing.spark_session import spark, spark_handle

# `steady` tries the same examples each time, so that CI says the same twice; `explore` draws new ones, and more.
# No deadlines: the machine may be busy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

__all__ = ["kraft_cluster", "spark", "spark_handle"]


@pytest.fixture(autouse=True)
def _umask_is_left_as_it_was() -> Iterator[None]:
    """A command sets the umask of its process: a test that runs one here must not change it for the next."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    after = os.umask(before)
    assert after == before, f"the test left umask {after:03o} (it was {before:03o}): use tests.cli.commands.kept_umask"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the rotating parts that this run was for."""
    for line in PICKED:
        terminalreporter.write_line(line)
