"""Many hosts at once, without systemd: `python -m tests.bed.many DIR [--hosts 30] [--delay 20] [--at-once N]` (root).

Each host is a root of its own (an overlay on the bed's file system) with OpenSSH's server, sudo, the host program as
root installs it, and twelve log directories of 500 replicas.  All are in one network namespace, an address each, behind
a wire that delays each frame.  What is looked at is what `tests.bed.gate` looks at.  systemctl is a stand-in.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts import executors, launches
from migrate.hosts.host_setup import configuration, set_up
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, Inventory
from migrate.model.world import Need
from migrate.observe import sources
from tests.bed.gate import timed
from tests.bed.rootfs import rootfs
from tests.testing.worlds import inventory, playbook

DISKS: Final = 12
REPLICAS: Final = 500  # a disk
FILES: Final = ("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex",
                "leader-epoch-checkpoint", "partition.metadata")  # fmt: skip
CLUSTER: Final = "aaaaaaaaaaaaaaaaaaaaaA"
CONFIG: Final = "/etc/kafka/server.properties"
ELSEWHERE: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.METADATA_LOGS, Need.REHEARSAL, Need.SESSIONS,
                              Need.STATES_BEHIND, Need.CONTROLLER_NAMES})  # fmt: skip
SYSTEMCTL: Final = """#!/bin/sh
case $1 in
is-enabled) echo enabled ;;
list-dependencies) echo kafka.service ;;
*) printf '%s\\n' LoadState=loaded ActiveState=active SubState=running MainPID=1 User=kafka Group=kafka \\
   ExecMainStartTimestampMonotonic=90000000000000 TimeoutStopUSec=10min WantedBy=multi-user.target NeedDaemonReload=no
esac
"""
NETWORK: Final = """set -e
ip link set lo up
unshare --net sleep infinity >/dev/null & echo $! >"$1/inner"
sleep 0.5
ip link add bed0 type bridge; ip address add 10.81.0.254/24 dev bed0; ip link set bed0 up
ip link add out0 type veth peer name in0; ip link set in0 netns $(cat "$1/inner")
ip link set out0 master bed0 up
nsenter --target $(cat "$1/inner") --net ip link set in0 up
for n in $(seq "$2"); do nsenter --target $(cat "$1/inner") --net ip address add 10.81.0.$n/24 dev in0; done
"""


def of_hosts(folder: Path, count: int) -> Inventory:
    """A broker a host."""
    nodes = [BrokerNode(NodeId(n), f"m{n}", f"m{n}:9092", CONFIG, unit="kafka.service") for n in range(1, count + 1)]
    options = {"kafka_home": "/opt/kafka", "ssh_config": str(folder / "ssh_config")}
    return replace(
        inventory(), brokers=tuple(nodes), controllers=(), executor="ssh", executor_options=options, runs=str(folder)
    )


def common(folder: Path) -> Path:
    """What all hosts have: the account, and log directories full of replicas."""
    root = folder / "common"
    if root.exists():
        return root
    for disk in range(1, DISKS + 1):
        for replica in range(REPLICAS):
            inside = root / f"srv/kafka/disk{disk}/topic-{disk}-{replica}"
            inside.mkdir(parents=True)
            for name in FILES:
                (inside / name).write_bytes(b"x")
    subprocess.run(["chown", "-R", "2000:2000", str(root / "srv/kafka")], check=True)
    return root


def lay_out(folder: Path, count: int) -> None:
    """Keys, and each host's own files."""
    key = folder / "key"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = Path(f"{key}.pub").read_text()
    lines, known = [], []
    for n in range(1, count + 1):
        up = folder / f"m{n}" / "up"
        lines.append(f"Host m{n}\n  HostName 10.81.0.{n}\n  User ops\n  IdentityFile {key}\n")
        known.append(f"10.81.0.{n} {public}")
        if up.exists():
            continue
        for name in ("work", "root", "up/etc/kafka", "up/usr/bin", "up/bed"):
            (folder / f"m{n}" / name).mkdir(parents=True)
        shutil.copy(key, up / "bed/key")
        (up / "bed/key.pub").write_text(public)
        (up / "usr/bin/systemctl").write_text(SYSTEMCTL)
        (up / "usr/bin/systemctl").chmod(0o755)
        dirs = [f"/srv/kafka/disk{disk}" for disk in range(1, DISKS + 1)]
        (up / "etc/kafka/server.properties").write_text(f"broker.id={n}\nlog.dirs={','.join(dirs)}\n")
        for disk, place in enumerate(dirs):
            (up / place[1:]).mkdir(parents=True)
            text = f"version=1\nbroker.id={n}\ncluster.id={CLUSTER}\ndirectory.id={f'h{n}d{disk}':_<21}A\n"
            (up / place[1:] / "meta.properties").write_text(text)
        subprocess.run(["chown", "-R", "2000:2000", str(up / "srv/kafka")], check=True)
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text(f"UserKnownHostsFile {folder}/known_hosts\n" + "".join(lines))


HOST: Final = """set -e
mount -t overlay overlay -o "lowerdir=$2:$3,upperdir=$1/up,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"; mount --rbind /dev "$1/root/dev"
chroot "$1/root" sh -c 'id ops >/dev/null 2>&1 || { useradd -u 2000 kafka; useradd -m ops; usermod -p "*" ops; }
mkdir -p /run/sshd; chmod 755 /bed; sh /bed/setup >/bed/setup.log 2>&1'
exec chroot "$1/root" /usr/sbin/sshd -D -e -h /bed/key -o ListenAddress=$4 -o AuthorizedKeysFile=/bed/key.pub \\
  -o StrictModes=no -o UsePAM=no
"""


@contextmanager
def running(folder: Path, count: int, delay: int) -> Iterator[list[int]]:
    """The hosts' servers, by process; they end with this."""
    base, root, known = common(folder), rootfs(), of_hosts(folder, count)
    lay_out(folder, count)
    subprocess.run(["sh", "-c", NETWORK, "sh", str(folder), str(count)], check=True)
    inner = (folder / "inner").read_text().strip()
    started: list[subprocess.Popen[bytes]] = []
    try:
        if delay:
            words = [sys.executable, "-m", "tests.bed.wire", "out0", "wire0", "bed0", str(delay)]
            started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        for n in range(1, count + 1):
            place = folder / f"m{n}"
            (place / "up/bed/setup").write_text(set_up(known, f"m{n}", "ops"))
            assert configuration(known, f"m{n}")
            enter = ["nsenter", "--target", inner, "--net", "unshare", "--mount", "--propagation", "private"]
            words = [*enter, "sh", "-c", HOST, "sh", str(place), str(base), str(root), f"10.81.0.{n}"]
            with (place / "log").open("wb") as log:
                started.append(subprocess.Popen(words, stdout=log, stderr=log))
        for n in range(1, count + 1):
            while b"Server listening" not in (folder / f"m{n}" / "log").read_bytes():
                time.sleep(0.1)  # noqa: TID251
        yield [process.pid for process in started[-count:]]
    finally:
        for process in started:
            process.kill()
            process.wait()
        os.kill(int(inner), signal.SIGKILL)


KEPT: Final = 'import time; time.sleep(0.4); print(open("/bed/answer").read(), end="")'


def keep_answers(folder: Path, count: int, servers: list[int]) -> None:
    """Let each host answer what its collector found, as with processors of its own."""
    for n in range(1, count + 1):
        enter = ["nsenter", "--target", str(servers[n - 1]), "--mount", "chroot", str(folder / f"m{n}" / "root")]
        dirs = " ".join(f"/srv/kafka/disk{disk}" for disk in range(1, DISKS + 1))
        place = "/usr/local/libexec/kraft-migrate/collect_disks.py"
        script = f"su -s /bin/sh kafka -c 'python3 {place} --probe --node {n} {dirs}' >/bed/answer && cat >{place}"
        subprocess.run([*enter, "sh", "-c", script], input=KEPT.encode(), check=True)


def cpu(pid: int) -> float:
    """Seconds of a process, of those that live below it, and of those that ended there."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu(int(child)) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def main() -> None:
    """Look at them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bed.many")
    parser.add_argument("dir", type=Path)
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--delay", type=int, default=20)
    parser.add_argument("--kept", action="store_true", help="collectors' answers come after 0.4 s, made before")
    parser.add_argument("--at-once", type=int, default=executors.HOSTS_AT_ONCE)
    told = parser.parse_args()
    folder = told.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if "MANY_INSIDE" not in os.environ:
        rootfs()  # made out here, if it is not there: in the namespace there is no mirror
        inside = {**os.environ, "MANY_INSIDE": "1"}
        os.execvpe("unshare", ["unshare", "--net", "--", sys.executable, "-m", "tests.bed.many", *sys.argv[1:]], inside)
    for module in (sources, launches, executors):
        module.HOSTS_AT_ONCE = told.at_once  # type: ignore[attr-defined]
    with running(folder, told.hosts, told.delay) as servers:
        if told.kept:
            keep_answers(folder, told.hosts, servers)
        found = sources.Sources(of_hosts(folder, told.hosts), playbook(), None)
        before = [cpu(pid) for pid in servers]
        own = time.process_time()
        try:
            for line in timed(found, ELSEWHERE):
                now = [cpu(pid) for pid in servers]
                spent = [after - begun for after, begun in zip(now, before, strict=True)]
                print(f"{line}; CPU of three looks: {sum(spent) / len(spent):.2f} s a host, "
                      f"{time.process_time() - own:.2f} s here; load {os.getloadavg()[0]:.0f}", flush=True)  # fmt: skip
                before, own = [cpu(pid) for pid in servers], time.process_time()
        finally:
            found.close()


if __name__ == "__main__":
    main()
