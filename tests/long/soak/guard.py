"""Ends what a driver that died has left: `python -m tests.long.soak.guard DIR` waits for the end of its stdin."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from migrate.errors import MigrateError
from migrate.lab.cluster import Lab
from tests.long.soak.rounds import put_down
from tests.testing.memory_disks import is_mounted, unmount


def main(directory: str) -> None:
    """Wait, then put down every lab below that folder."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for place in sorted(Path(directory).glob("*/lab/lab.json")):
        try:
            lab = Lab.open(place.parent)
        except MigrateError:
            continue
        put_down(lab)
        runs = Path(lab.inventory.runs)
        if is_mounted(runs):
            unmount(runs)


if __name__ == "__main__":
    main(sys.argv[1])
