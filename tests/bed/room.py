"""A room of its own on this machine for each bed: namespaces that end, with all in them, when their holder ends.

The outer one has the bed's network and its /etc/hosts: commands of a test run there, and see the hosts by name.  The
inner one, a child of it, has the hosts' mounts and processes.  Of a bed whose owner was killed the namespaces are gone
or go when `sweep` finds its record; loop devices and cgroups are the machine's, and `sweep` gives them back.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.bed.rootfs import BedUnavailable

RECORDS: Final = Path("/run/kraft-migrate-bed")
CGROUPS: Final = Path("/sys/fs/cgroup")
LEFT_ALONE: Final = ("cpuset", "memory")  # hierarchies of version 1: no CPUs to begin with; this session's own limit
BRIDGE: Final = "bed0"
READY_SECONDS: Final = 30
INNER: Final = 'mkdir -p /run/systemd; mount -t tmpfs tmpfs /run/systemd; : >"$1"; while :; do sleep 1000; done'
OUTER: Final = """set -eu
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc.work" /etc
ip link set lo up
ip link add "$2" type bridge stp_state 0 forward_delay 0
ip address add "$3/24" dev "$2"
ip link set "$2" up
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc --propagation private \\
  sh -c "$4" sh "$1/ready" &
wait
"""


@dataclass(frozen=True, slots=True)
class Record:
    """A bed that was begun on this machine.

    `holder` is the process of the outer namespaces, `init` the first one of the inner ones; with `owner` the bed is to
    end, 0: it stays until `down`.
    """

    folder: str
    holder: int
    holder_start: str
    init: int
    init_start: str
    owner: int
    owner_start: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return RECORDS / f"{self.holder}.json"

    @property
    def wanted(self) -> bool:
        """Is there still somebody for it?"""
        return start_of(self.holder) == self.holder_start and (
            self.owner == 0 or start_of(self.owner) == self.owner_start
        )


def start_of(pid: int) -> str:
    """The kernel's start time of a process; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def records() -> list[Record]:
    """Every bed of this machine."""
    return [Record(**json.loads(path.read_text())) for path in sorted(RECORDS.glob("*.json"))]


def sweep() -> None:
    """Remove what killed runs left of their beds."""
    for record in records():
        if not record.wanted:
            remove(record)


@contextmanager
def alone() -> Iterator[None]:
    """No other process takes or gives back loop devices for a bed meanwhile: their names are used again at once."""
    RECORDS.mkdir(exist_ok=True)
    with (RECORDS / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove(record: Record) -> None:
    """End a bed by force and give back what is the machine's; its folder goes where a test owned it."""
    with alone():
        _remove(record)


def _remove(record: Record) -> None:
    for pid, start in ((record.init, record.init_start), (record.holder, record.holder_start)):
        if start_of(pid) == start:
            _kill(pid)
    for line in subprocess.run(
        ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        device, _, file = line.partition(" ")
        if file.strip().startswith(record.folder + "/"):
            subprocess.run(["losetup", "--detach", device], check=False)
    for place in cgroups(record.holder):
        for folder, _, _ in os.walk(place, topdown=False):
            _remove_group(Path(folder))
    if record.owner:
        shutil.rmtree(record.folder, ignore_errors=True)
    record.path.unlink(missing_ok=True)


def _kill(pid: int) -> None:
    """SIGKILL, and wait for the end: the kernel kills a namespace's processes before its first one is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], READY_SECONDS)
    finally:
        os.close(handle)


def _remove_group(group: Path) -> None:
    """An empty control group; the kernel lets go of it a moment after its last process ended."""
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            select.select([], [], [], 0.05)
        else:
            return


def cgroups(holder: int) -> list[Path]:
    """The bed's own control groups, one a hierarchy (version 1) or the one of all (version 2)."""
    name = f"kraft-migrate-bed-{holder}"
    if unified():
        return [CGROUPS / name]
    return [place / name for place in sorted(CGROUPS.iterdir()) if place.name not in (*LEFT_ALONE, "unified")]


def unified() -> bool:
    """Does this machine have control groups of version 2 alone?"""
    return (CGROUPS / "cgroup.controllers").exists()


class Room:
    """The namespaces of one bed."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.init = record.init

    @classmethod
    def begin(cls, folder: Path, address: str, *, owned: bool) -> Room:
        """Make them; what `folder/etc` has stands over /etc in them.  `owned`: they end with this process.

        Raises:
            BedUnavailable: this machine does not let us.
        """
        (folder / "etc.work").mkdir(exist_ok=True)
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        tied = ["setpriv", "--pdeathsig", "KILL"] if owned else []
        words = ["unshare", "--mount", "--net", "--propagation", "private", "bash", "-c", OUTER, "bed"]
        with (folder / "room.log").open("wb") as log:
            holder = subprocess.Popen(
                [*tied, *words, str(folder), BRIDGE, address, INNER],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(READY_SECONDS * 10):
            if ready.exists():
                break
            try:
                holder.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            raise BedUnavailable(f"no namespaces of our own: {(folder / 'room.log').read_text().strip()[-300:]}")
        owner = os.getpid() if owned else 0
        (between,) = _children(holder.pid)
        (init,) = _children(between)
        record = Record(
            str(folder), holder.pid, start_of(holder.pid), init, start_of(init), owner, start_of(owner) if owner else ""
        )
        RECORDS.mkdir(exist_ok=True)
        record.path.write_text(json.dumps(asdict(record)))
        holder.returncode = 0  # `Bed.down` waits for it by the record
        return cls(record)

    def outside(self, words: Sequence[str], folder: Path) -> list[str]:
        """The command line that runs `words` beside the hosts, in `folder`; its process is the one that is started."""
        script = 'cd "$1" && shift && exec "$@"'
        nsenter = ["nsenter", "--target", str(self.record.holder), "--mount", "--net", "--"]
        return [*nsenter, "sh", "-c", script, "bed", str(folder), *words]

    def inside(self, words: Sequence[str]) -> list[str]:
        """The command line that runs `words` where the hosts' mounts and processes are."""
        return ["nsenter", "--target", str(self.init), "--mount", "--net", "--pid", "--", *words]


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
