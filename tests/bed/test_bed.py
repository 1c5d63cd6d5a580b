"""The bed itself: what its faults do is what they say, and nothing of a killed test's bed is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed import room
from tests.bed.bed import ROOT, Bed
from tests.bed.conftest import hosts_or_skip
from tests.bed.rootfs import BedUnavailable
from tests.bed.shape import Shape

pytestmark = pytest.mark.hosts
CONNECT = """import socket, sys, time
begun = time.monotonic()
socket.create_connection(("kafka-2", 22), 3).close()
print(time.monotonic() - begun)
"""
HOLD = """import sys, time
from pathlib import Path
from tests.bed.bed import Bed
from tests.bed.shape import Shape
Bed.make(Path(sys.argv[1]), Shape(hosts=1)).boot()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    """Two hosts; what Kafka does on them matters little here."""
    with hosts_or_skip(Shape(hosts=2)) as made:
        yield made


def connects(bed: Bed) -> float | None:
    """Seconds that a TCP connection to the second host takes; None: it does not come about."""
    done = bed.outside(sys.executable, "-c", CONNECT)
    return float(done.stdout) if done.returncode == 0 else None


def test_a_link_is_slow_silent_and_well_again(bed: Bed) -> None:
    """100 ms in each direction; then nothing passes; then all does."""
    bed.delay("h2", 100)
    slow = connects(bed)
    assert slow is not None
    assert slow >= 0.2
    assert bed.outside("ssh", "-F", str(bed.folder / "ssh_config"), "h2", "id -un").stdout == "ops\n"
    bed.speak("h2")
    for fault in (bed.silence, bed.unplug):
        fault("h2")
        assert connects(bed) is None
        bed.speak("h2")
    # over the slow link none is faster; over a well one on a busy machine many are not
    assert any(well is not None and well < 0.2 for well in (connects(bed) for _ in range(50)))


def test_a_disk_is_gone_comes_back_is_replaced_read_only_and_full(bed: Bed) -> None:
    """As programs on the host see it."""
    bed.must("h2", "systemctl stop kafka; echo kept >/srv/kafka/disk1/kept; sync")
    bed.disk_gone("h2", "disk1")
    gone = bed.root("h2", "echo more >/srv/kafka/disk1/more; sync -f /srv/kafka/disk1")
    # ext4 mounts it read-only where its own journal met the error first
    assert "Input/output error" in gone.stderr or "Read-only file system" in gone.stderr
    bed.root("h2", "umount /srv/kafka/disk1")
    bed.disk_back("h2", "disk1")
    assert bed.must("h2", "mount /srv/kafka/disk1; cat /srv/kafka/disk1/kept; umount /srv/kafka/disk1") == "kept\n"
    bed.disk_new("h2", "disk1")
    assert bed.root("h2", "mount /srv/kafka/disk1").returncode != 0
    assert bed.must("h2", "mkfs.ext4 -q /dev/bed/disk1; mount /srv/kafka/disk1; ls /srv/kafka/disk1") == "lost+found\n"
    bed.disk_read_only("h2", "disk2")
    assert "Read-only file system" in bed.root("h2", "touch /srv/kafka/disk2/file").stderr
    bed.disk_full("h2", "/srv/kafka/disk3")
    assert "No space left" in bed.root("h2", "head -c 100000 /dev/zero >/srv/kafka/disk3/file").stderr
    bed.disk_freed("h2", "/srv/kafka/disk3")
    bed.must("h2", "head -c 100000 /dev/zero >/srv/kafka/disk3/file")


def test_a_host_without_power_boots_with_what_it_had(bed: Bed) -> None:
    """Its units come up by themselves."""
    bed.must("h1", "echo kept >/home/ops/kept")
    bed.power_off("h1")
    bed.boot("h1")
    assert bed.must("h1", "cat /home/ops/kept; systemctl is-active kafka zookeeper") == "kept\nactive\nactive\n"


def test_nothing_of_a_killed_tests_bed_is_left() -> None:
    """Processes end with it; loop devices, control groups and the folder go when the next bed is made."""
    folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-bed-"))
    running = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with running:
        assert running.stdout is not None
        if running.stdout.readline() != b"up\n":
            pytest.skip("no bed of hosts here")
        running.send_signal(signal.SIGKILL)
    (record,) = [record for record in room.records() if record.folder == str(folder)]
    room.sweep()
    assert not room.start_of(record.init)
    assert str(folder) not in subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert not folder.exists()
    assert not [group for group in room.cgroups(record.holder) if group.exists()]


def test_without_root_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is skipped says why."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BedUnavailable, match="needs root"):
        Bed.make(Path("nowhere"), Shape())
