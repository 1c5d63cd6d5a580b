"""Hosts that boot: containers with systemd as first process, an address on the bed's bridge, disks on loop devices."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.errors import LabRefused
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.lab.kdc import Kdc
from tests.bed import host_files, room
from tests.bed.rootfs import BedUnavailable, install, rootfs
from tests.bed.shape import Shape

WATCHES: Final = Path("/proc/sys/fs/inotify/max_user_instances")  # systemd of each host takes some of root's
WATCHES_WANTED: Final = 1024
DISK_BYTES: Final = 400 << 20
ROOT: Final = Path(__file__).parent.parent.parent
COMMAND_SECONDS: Final = 120
BOOT_SECONDS: Final = 90
TOOL_SECONDS: Final = 1800
LOOP_GET_STATUS64: Final = 0x4C05
LOOP_SET_STATUS64: Final = 0x4C04
LOOP_INFO_BYTES: Final = 232  # struct loop_info64
LOOP_SIZE_LIMIT: Final = 32  # the offset of lo_sizelimit in it

Completed = subprocess.CompletedProcess[str]


class Bed:
    """Hosts `h1`, `h2` and so on in a folder.  What is done to them is done from outside, as to real machines."""

    def __init__(self, folder: Path, held: room.Room) -> None:
        self.folder = folder
        self.shape = Shape.of(folder)
        self.room = held
        self.hosts = tuple(f"h{n}" for n in range(1, self.shape.all_hosts + 1))

    # --- beginning and end

    @classmethod
    def make(cls, folder: Path, shape: Shape, *, owned: bool = True) -> Bed:
        """Hosts of that shape, not booted; over a folder that has some already they are the same hosts again.

        Raises:
            BedUnavailable: this machine cannot have a bed; the text says why.
        """
        install()
        root = rootfs()
        room.sweep()
        if int(WATCHES.read_text()) < WATCHES_WANTED:
            WATCHES.write_text(str(WATCHES_WANTED))
        fresh = not (folder / "shape.json").exists()
        if fresh:
            folder.mkdir(parents=True, exist_ok=True)
            shape.save(folder)
            _keys(folder, shape)
        own = Path("/etc/hosts").read_text(encoding="utf-8")
        (folder / "etc").mkdir(exist_ok=True)
        (folder / "etc" / "hosts").write_text(host_files.names_and_own(Shape.of(folder), own))
        if Shape.of(folder).kerberos:
            _kerberos(folder)
        bed = cls(folder, room.Room.begin(folder, f"{host_files.NETWORK}.1", owned=owned))
        if bed.shape.kerberos:
            bed.kdc_back()
        for host in bed.hosts:
            bed._assemble(host, root, fresh=fresh)
        return bed

    @classmethod
    def open(cls, folder: Path) -> Bed:
        """The bed that is up in that folder."""
        (record,) = [record for record in room.records() if record.folder == str(folder)]
        return cls(folder, room.Room(record))

    def down(self) -> None:
        """Power off what runs; end the namespaces; give back loop devices."""
        room.remove(self.room.record)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.room.record.holder, 0)

    def _assemble(self, host: str, root: Path, *, fresh: bool) -> None:
        """The host's root file system and disks, in the bed's mount namespace."""
        place, n = self.folder / host, int(host[1:])
        for name in ("up", "work", "root", "dev"):
            (place / name).mkdir(parents=True, exist_ok=True)
        if fresh:
            host_files.write(place / "up", self.shape, n)
            (place / "up" / "bed").mkdir()
            shutil.copy(self.folder / "id_ed25519.pub", place / "up" / "bed" / "key.pub")
            for name in ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"):
                shutil.copy(place / name, place / "up" / "etc" / "ssh" / name)
            if self.shape.kerberos:
                host_files.write_logins(place / "up", place, self.shape, n, self._kdc.client_file)
            java = place / "up" / "usr" / "bin" / "java"
            java.parent.mkdir(parents=True, exist_ok=True)
            java.symlink_to(find_java().home / "bin" / "java")
        layers = f"lowerdir={root},upperdir={place}/up,workdir={place}/work"
        self._must(self.inside("mount", "-t", "overlay", "overlay", "-o", layers, f"{place}/root"), prepares=True)
        for disk in self._disks():
            image = place / f"{disk}.img"
            if not image.exists():
                make_disk(image)
            with room.alone():
                device = self._must(["losetup", "--find", "--show", str(image)], prepares=True).stdout.strip()
            (place / disk).write_text(device)
        if fresh:
            script = host_files.prepare(self.shape, n)
            self._must(self.inside("chroot", f"{place}/root", "sh", "-c", script), prepares=True)

    def _disks(self) -> list[str]:
        return [mount.rpartition("/")[2] for mount in host_files.mounts(self.shape)]

    # --- hosts

    def boot(self, *hosts: str) -> None:
        """Power on, and wait until each of them has booted and lets root in by SSH.

        Raises:
            BedUnavailable: no host of this bed has ever booted, and this one does not.
        """
        for host in hosts or self.hosts:
            self._power_on(host)
        for host in hosts or self.hosts:
            said = self._lets_in(host)
            if said:  # a killed container's end of its link may go only after the new one has come: once more, then
                print(f"{host} did not boot: {said}; {self._seen_of(host)}")
                self.power_off(host)
                self._power_on(host)
                said = self._lets_in(host)
            if said:
                raise BedUnavailable(f"{host} does not boot: {said}; {self._seen_of(host)}")

    def _lets_in(self, host: str) -> str:
        """Wait until it has booted; "", or what ssh says of it in the end."""
        script = f"for _ in $(seq {BOOT_SECONDS}); do ssh -F {self.folder}/ssh_config -o ConnectTimeout=2 "
        script += (
            f'{host}-root "systemctl is-system-running --wait" 2>&1; [ $? -le 1 ] && exit 0; sleep 1; done; exit 1'
        )
        said = self.outside("sh", "-c", script, seconds=BOOT_SECONDS * 5)
        return (said.stdout.strip()[-300:] or "nothing") if said.returncode else ""

    def _seen_of(self, host: str) -> str:
        """Its console, its link, and what its units say of the network, for whoever reads a failure."""
        console = (self.folder / host / "console").read_text(errors="replace")[-1000:]
        link = run(self.inside("ip", "-brief", "link", "show"), COMMAND_SECONDS).stdout
        asked = "systemctl list-jobs --no-pager; systemctl --failed --no-pager; ip -brief address"
        try:
            units = self.root(host, asked, seconds=COMMAND_SECONDS).stdout[-2000:]
        except (AssertionError, IndexError, OSError, subprocess.SubprocessError) as error:
            units = f"nothing can be asked in it: {error}"
        return f"console: {console}; links: {link}; units: {units}"

    def _power_on(self, host: str) -> None:
        place = self.folder / host
        java, home = find_java().home, self.shape.home(int(host[1:]))
        binds = {str(java): str(java), str(Path(kafka_jars().classpath[0]).parent): f"{home}/libs"}
        binds |= {str(path): str(path) for path in _linked_from(java)}
        words = [
            *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--machine={host}"),
            *(f"--directory={place}/root", f"--network-bridge={room.BRIDGE}", "--resolv-conf=off", "--timezone=off"),
            *("--link-journal=no", "--console=pipe", "--kill-signal=SIGRTMIN+4"),
            *(f"--bind-ro={source}:{target}" for source, target in binds.items()),
            *(f"--bind={self.device(host, disk)}:/dev/bed/{disk}" for disk in self._disks()),
        ]
        groups = [group / host for group in room.cgroups(self.room.record.holder)]
        for group in groups:
            group.mkdir(parents=True, exist_ok=True)
        joined = "; ".join(f"echo $$ >{group}/cgroup.procs" for group in groups)
        started = f'{joined}; exec "$@"'
        kept = f'exec >{place}/console 2>&1 </dev/null; "$@" & echo $! >{place}/pid'
        hierarchy = f"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY={int(room.unified())}"
        self._must(
            ["sh", "-c", started, "sh", *self.inside("env", hierarchy, "setsid", "sh", "-c", kept, "sh", *words)]
        )

    def power_off(self, *hosts: str) -> None:
        """As if the plug was pulled: every process of the host ends at once."""
        for host in hosts or self.hosts:
            pid = (self.folder / host / "pid").read_text().strip()
            script = f"first=$(cat /proc/{pid}/task/{pid}/children); kill -KILL $first {pid}; "  # the host's init, too
            script += f"for one in $first {pid}; do while kill -0 $one 2>/dev/null; do sleep 0.1; done; done; "
            script += f"ip link delete vb-{host} 2>/dev/null; :"  # a container that is killed leaves its end behind
            self._must(self.inside("sh", "-c", script))

    def root(self, host: str, script: str, *, seconds: float = COMMAND_SECONDS) -> Completed:
        """Run a shell script as root on the host, past its network and its sshd."""
        pid = (self.folder / host / "pid").read_text().strip()
        leader = self._must(self.inside("cat", f"/proc/{pid}/task/{pid}/children")).stdout.split()[0]
        enter = ["nsenter", "--target", leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--"]
        clean = [
            "env",
            "-i",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "sh",
            "-c",
            f"cd /; {script}",
        ]
        return run(self.inside(*enter, *clean), seconds)

    def must(self, host: str, script: str, *, seconds: float = COMMAND_SECONDS) -> str:
        """What the script says, which must succeed."""
        done = self.root(host, script, seconds=seconds)
        assert done.returncode == 0, f"{host}: {script}: {done.returncode}: {done.stdout[-1000:]} {done.stderr[-1000:]}"
        return done.stdout

    # --- links

    def silence(self, host: str) -> None:
        """Nothing gets to the host or from it, and nobody is told: its link is out of the bridge."""
        self._must(self.inside("ip", "link", "set", f"vb-{host}", "nomaster"))

    def delay(self, host: str, milliseconds: int) -> None:
        """Every frame to the host and from it is that much late: a round trip takes twice as long."""
        words = [sys.executable, "-m", "tests.bed.wire", f"vb-{host}", f"wire-{host}", room.BRIDGE, str(milliseconds)]
        place = self.folder / host
        kept = f'cd {ROOT}; "$@" >{place}/wire.log 2>&1 </dev/null & echo $! >{place}/wire; '
        kept += f"for _ in $(seq 200); do grep -q ready {place}/wire.log && exit 0; sleep 0.1; done; "
        kept += f"cat {place}/wire.log; exit 1"
        self._must(self.inside("setsid", "sh", "-c", kept, "sh", *words))

    def speak(self, host: str) -> None:
        """End what `silence`, `unplug` and `delay` began."""
        wire = self.folder / host / "wire"
        if wire.exists():
            pid = wire.read_text().strip()
            self._must(
                self.inside("sh", "-c", f"kill -KILL {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.1; done")
            )
            wire.unlink()
        self._must(self.inside("ip", "link", "set", f"vb-{host}", "master", room.BRIDGE, "up"))

    def unplug(self, host: str) -> None:
        """The host's link is down, and the host sees it."""
        self._must(self.inside("ip", "link", "set", f"vb-{host}", "down"))

    # --- the KDC

    @property
    def _kdc(self) -> Kdc:
        return host_files.kdc_of(self.folder)

    def kdc_gone(self) -> None:
        """Nobody gets a ticket any more; those that were given stay."""
        self._must(self.inside("sh", "-c", f"kill -KILL $(cat {self.folder}/kdc/pid); rm {self.folder}/kdc/pid"))

    def kdc_back(self) -> None:
        """It answers, from the bed's own address."""
        settings = [f"{key}={value}" for key, value in self._kdc.environment.items()]
        kept = f'"$@" >>{self.folder}/kdc/out 2>&1 </dev/null & echo $! >{self.folder}/kdc/pid; '
        kept += f"for _ in $(seq 200); do ss -ltn | grep -q '{self._kdc.host}:88 ' && exit 0; sleep 0.1; done; exit 1"
        self._must(self.inside("env", *settings, "setsid", "sh", "-c", kept, "sh", *self._kdc.argv))

    # --- disks

    def device(self, host: str, disk: str) -> str:
        """The loop device of a disk (`disk1`, `disk2`, `disk3`, `metadata`); in the host it is /dev/bed/DISK."""
        return (self.folder / host / disk).read_text()

    def disk_gone(self, host: str, disk: str) -> None:
        """Every read and write of the device fails from now on (EIO), as of a drive that was pulled."""
        _limit(self.device(host, disk), 512)

    def disk_back(self, host: str, disk: str) -> None:
        """The device answers again, with what was on it; the host still has to unmount and mount it."""
        _limit(self.device(host, disk), 0)

    def disk_new(self, host: str, disk: str) -> None:
        """Another drive in its place: empty and without a file system.  Raises AssertionError while it is mounted."""
        device = self.device(host, disk)
        _limit(device, 0)
        self._must(["wipefs", "--all", "--quiet", device])

    def disk_read_only(self, host: str, disk: str) -> None:
        """The kernel saw an error in the file system and made it read-only, under whatever writes there."""
        Path("/sys/fs/ext4", Path(self.device(host, disk)).name, "trigger_fs_error").write_text("1")

    def disk_full(self, host: str, mount: str) -> None:
        """No byte is left on the file system that is mounted there."""
        self.must(host, f"dd if=/dev/zero of={mount}/full bs=64k 2>/dev/null; sync -f {mount}; :")

    def disk_freed(self, host: str, mount: str) -> None:
        """End what `disk_full` began."""
        self.must(host, f"rm -f {mount}/full")

    # --- commands

    def inside(self, *words: str) -> list[str]:
        """The command line for the namespace that has the hosts' mounts and processes."""
        return self.room.inside(words)

    def outside(self, *words: str, folder: Path | None = None, seconds: float = COMMAND_SECONDS) -> Completed:
        """Run a command of this machine where the hosts are reached by their names."""
        return run(self.room.outside(words, folder or self.folder), seconds)

    def tool(self, *words: str, folder: Path, seconds: float = TOOL_SECONDS) -> Completed:
        """`kraft-migrate` as its operator calls it, in the folder of the inventory."""
        return self.outside(sys.executable, "-m", "migrate", *words, folder=folder, seconds=seconds)

    def _must(self, words: Sequence[str], *, prepares: bool = False) -> Completed:
        done = run(words, COMMAND_SECONDS)
        if done.returncode and prepares:
            raise BedUnavailable(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout[-1000:]} {done.stderr[-1000:]}"
        return done


def run(words: Sequence[str], seconds: float) -> Completed:
    """Run to the end."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL)


def make_disk(image: Path) -> None:
    """An empty ext4 file system of user kafka's, without lost+found: Kafka takes no strange folder."""
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    made = run(["mkfs.ext4", "-q", "-m", "0", "-E", "root_owner=2000:2000", str(image)], COMMAND_SECONDS)
    if made.returncode == 0:
        made = run(["debugfs", "-w", "-R", "rmdir lost+found", str(image)], COMMAND_SECONDS)
    if made.returncode:
        raise BedUnavailable(f"no file system for a disk: {made.stderr[-300:]}")


@contextmanager
def booted(shape: Shape) -> Iterator[Bed]:
    """Hosts of that shape that have booted, in a folder of their own; all of it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-bed-"))
    bed: Bed | None = None
    try:
        bed = Bed.make(folder, shape)
        bed.boot()
        yield bed
    finally:
        if bed is not None:
            bed.down()
        shutil.rmtree(folder, ignore_errors=True)


def _keys(folder: Path, shape: Shape) -> None:
    """The client's key, each host's, and what the client knows of them."""
    known: list[str] = []
    _key(folder / "id_ed25519")
    for n in range(1, shape.all_hosts + 1):
        (folder / f"h{n}").mkdir(exist_ok=True)
        _key(folder / f"h{n}" / "ssh_host_ed25519_key")
        known.append(f"kafka-{n} {(folder / f'h{n}' / 'ssh_host_ed25519_key.pub').read_text().strip()}\n")
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text(host_files.ssh_config(folder, shape))


def _kerberos(folder: Path) -> None:
    """The KDC's files and all keytabs; commands of this machine find it, too."""
    found = host_files.kdc_of(folder)
    try:
        found.make(host_files.keytabs(folder, Shape.of(folder)))
    except LabRefused as error:
        raise BedUnavailable(str(error)) from error
    shutil.copy(found.client_file, folder / "etc" / "krb5.conf")


def _key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def _linked_from(java: Path) -> set[Path]:
    """Folders outside of it that a Java's links lead to: Debian's has its configuration in /etc."""
    links = [path for path in java.rglob("*") if path.is_symlink() and path.exists()]
    targets = {link.resolve() for link in links}
    tops = {Path(*target.parts[:3]) for target in targets if target.parts[1] == "etc"}
    certificates = {Path("/etc/ssl/certs/java")} if Path("/etc/ssl") in tops else set()
    return {top for top in tops if top != Path("/etc/ssl")} | certificates


def _limit(device: str, size: int) -> None:
    """The loop device's size, in bytes; 0: that of its file."""
    info = bytearray(LOOP_INFO_BYTES)
    descriptor = os.open(device, os.O_RDWR)
    try:
        fcntl.ioctl(descriptor, LOOP_GET_STATUS64, info)
        struct.pack_into("=Q", info, LOOP_SIZE_LIMIT, size)
        fcntl.ioctl(descriptor, LOOP_SET_STATUS64, bytes(info))
    finally:
        os.close(descriptor)
