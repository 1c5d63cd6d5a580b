"""What a round may have left behind on this host: processes, listening ports, files, mounts, descriptors of our own."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from migrate.lab.topology import Topology
from tests.long.soak.faults import never

SECONDS: Final = 20.0
LISTEN: Final = "0A"
DRAFTS: Final = (".new", ".partial", ".tmp", ".restoring")


def processes_of(folder: Path) -> list[tuple[int, str]]:
    """(pid, command) of every process that names the folder, or works in it; not ourselves."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            place = (entry / "cwd").readlink()
        except OSError:
            continue  # it has ended meanwhile
        # while a process is being made its command is empty for a moment, its place is not
        if f"{folder}/" in f"{command}/" or inside(place, folder):
            found.append((int(entry.name), command))
    return found


def inside(path: Path, folder: Path) -> bool:
    """Is it the folder, or below it?"""
    return path == folder or folder in path.parents


def listening() -> set[int]:
    """Every TCP port of this host on which somebody listens."""
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            ports |= ports_in(Path(table).read_text(encoding="ascii"))
    return ports


def ports_in(table: str) -> set[int]:
    """The listening ports of a text like /proc/net/tcp (pure)."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == LISTEN}


def drafts(folder: Path) -> Iterator[str]:
    """Files that were to be renamed, and never were."""
    for path in folder.rglob("*"):
        if path.suffix in DRAFTS and path.is_file() and ".kafka_cleanshutdown" not in path.name:
            yield str(path.relative_to(folder))


def descriptors() -> int:
    """How many this process has open, after what nobody holds any more is gone."""
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def left(folder: Path, topology: Topology, temporary: Sequence[Path]) -> list[str]:
    """What speaks against a round whose cluster was stopped; processes get some seconds to end."""
    deadline = time.monotonic() + SECONDS
    while (alive := processes_of(folder)) and time.monotonic() < deadline:
        never.wait(0.5)
    found = [f"process {pid} lives: {command[:160]}" for pid, command in alive]
    found += [
        f"port {port} of {topology.ports()[port]} is open" for port in sorted(listening() & set(topology.ports()))
    ]
    for place in temporary:
        if place.is_dir():
            found += [f"temporary file left: {path}" for path in sorted(place.iterdir())]
    found += [f"draft left: {name}" for name in drafts(folder)]
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    found += [f"mount left: {line.split()[1]}" for line in mounts if inside(Path(line.split()[1]), folder)]
    return found
