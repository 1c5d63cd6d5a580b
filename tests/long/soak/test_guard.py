"""A driver that is killed leaves nothing behind: its guard puts the lab down."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.lab.cluster import Lab
from migrate.lab.topology import ZOOKEEPER
from migrate.model.views import Running, Stopped
from tests.long.soak.leaks import left
from tests.testing.memory_disks import MountRefused, is_mounted, mount_memory


@pytest.mark.zookeeper
def test_when_the_driver_dies_its_lab_is_put_down(tmp_path: Path) -> None:
    """Processes and the small disk; while the driver lives the guard does nothing, whoever signals it."""
    lab = Lab.create(tmp_path / "round-00-1" / "lab")
    runs = Path(lab.inventory.runs)
    with contextlib.suppress(MountRefused):  # not root
        mount_memory(runs, size_bytes=1 << 20)
    lab.supervisor.start(ZOOKEEPER)
    command = [sys.executable, "-m", "tests.long.soak.guard", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as guard:
        with pytest.raises(subprocess.TimeoutExpired):
            guard.wait(3)
        assert isinstance(lab.supervisor.state(ZOOKEEPER), Running)
        assert guard.stdin is not None
        guard.stdin.close()
        assert guard.wait(120) == 0
    assert isinstance(lab.supervisor.state(ZOOKEEPER), Stopped)
    assert not is_mounted(runs)
    assert left(tmp_path / "round-00-1", lab.topology, []) == []
