"""What every test of a command shares."""

from __future__ import annotations

import pytest

from migrate.zookeeper.client import connect
from tests.conftest import REAL


@pytest.fixture(autouse=True)
def _nothing_is_waited_for_in_vain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without processes of its own, a test has nothing that could appear later: no ZooKeeper, no other topic."""
    if not any(request.node.get_closest_marker(tier) for tier in REAL):
        monkeypatch.setattr(connect, "__kwdefaults__", {**(connect.__kwdefaults__ or {}), "timeout": 0.3})
        monkeypatch.setattr("migrate.cli.assessing.SECONDS_BETWEEN", 0.0)
