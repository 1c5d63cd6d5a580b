"""A bed of hosts by hand.  `python -m tests.bed up DIR [--shape NAME] [--hosts N]` (root), see README.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.bed.bed import ROOT, Bed
from tests.bed.evening import soak
from tests.bed.floor import floor, of_run
from tests.bed.migration import begin
from tests.bed.operator import Operator
from tests.bed.rootfs import BedUnavailable
from tests.bed.shape import SHAPES


def main() -> int:
    """Do what the words say."""
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description="real hosts in containers")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("up", "make the hosts, or the same ones again, and boot them"),
        ("down", "end them; their files stay"),
        ("run", "run a command where the hosts are reached by name"),
        ("root", "run a shell script as root on a host"),
        ("looks", "how long each command that looks takes, and a run's looks, with the hosts' delay as it is"),
        ("floor", "migrate by a plain shell script, for a run to be compared with (tests/bed/floor.py)"),
        ("evening", "seed the cluster; migrate it there and back under drawn faults (tests/bed/evening.py)"),
        *((name, f"Bed.{name}") for name in FAULTS),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("dir", type=Path)
        if name == "up":
            command.add_argument("--shape", choices=sorted(SHAPES), default="plain")
            command.add_argument("--hosts", type=int, default=3)
        elif name == "evening":
            command.add_argument("--minutes", type=float, default=30.0)
            command.add_argument("--seed", type=int, default=1)
        elif name == "floor":
            command.add_argument("--run", type=Path, help="tell the same of a run that ended: its folder")
        elif name not in ("down", "looks"):
            command.add_argument("words", nargs=argparse.REMAINDER)
    told = parser.parse_args()
    folder = told.dir.resolve()
    if told.command == "up":
        try:
            bed = Bed.make(folder, replace(SHAPES[told.shape], hosts=told.hosts), owned=False)
            bed.boot()
        except BedUnavailable as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{', '.join(bed.hosts)}: ssh_config is {folder}/ssh_config (hN, and hN-root)")
        print(f"reach them by: python -m tests.bed run {told.dir} COMMAND...")
        return 0
    bed = Bed.open(folder)
    if told.command == "down":
        bed.down()
    elif told.command == "evening":
        soak(begin(bed, folder / "operator"), told.minutes, told.seed)
    elif told.command == "floor":
        for line in of_run(bed, told.run) if told.run else floor(bed):
            print(line, flush=True)
    elif told.command == "looks":
        operator = Operator(bed, folder / "operator")
        if not (operator.folder / "inventory.yaml").exists():
            operator.seed()
            operator.inventory()
        operator.rights()
        for line in looks(operator):
            print(line, flush=True)
    elif told.command == "run":
        words = bed.room.outside(told.words, Path.cwd())
        os.execvp(words[0], words)
    elif told.command == "root":
        done = bed.root(told.words[0], " ".join(told.words[1:]))
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
        return done.returncode
    elif told.command == "delay":
        bed.delay(told.words[0], int(told.words[1]))
    else:
        getattr(bed, told.command)(*told.words)
    return 0


LOOKS = (
    ("status", "playbook.yaml"),
    ("directories", "verify", "--inventory", "inventory.yaml"),
    ("assess", "--inventory", "inventory.yaml"),
    ("plan", "playbook.yaml"),
)


def looks(operator: Operator) -> Iterator[str]:
    """A line a command, as an operator gives it: its wall time, in which Python's start and ZooKeeper's session are.

    Then the looks of a run (tests/bed/gate.py), three of each kind with connections that are kept.
    """
    for words in LOOKS:
        began = time.monotonic()
        operator.tool(*words, expect=(0, 2))
        yield f"{' '.join(words)}: {time.monotonic() - began:.1f} s"
    program = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.bed.gate")
    gate = (*program, "inventory.yaml", "playbook.yaml")
    done = operator.bed.outside(*gate, folder=operator.folder)
    assert done.returncode == 0, done.stderr
    yield from done.stdout.splitlines()


FAULTS = (
    *("boot", "power_off", "silence", "unplug", "delay", "speak"),
    *("disk_gone", "disk_back", "disk_new", "disk_read_only", "disk_full", "disk_freed"),
    *("kdc_gone", "kdc_back"),
)

if __name__ == "__main__":
    sys.exit(main())
