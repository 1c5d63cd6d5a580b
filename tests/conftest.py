"""Fixtures that more than one area uses; each starts what it needs when a test first asks for it."""

from __future__ import annotations

import os

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the rotating parts that this run was for."""
    for line in PICKED:
        terminalreporter.write_line(line)
