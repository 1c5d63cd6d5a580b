"""A private mount namespace with real sudo: its own /etc and /usr/local, an account, and Kafka's user.

Nothing of it is seen outside, and it is gone with its process.  systemd is stood in for by a program over systemctl.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate.hosts.runner import COMMAND_SECONDS, Completed, HeldCommand, environment
from tests.testing.host_installation import SYSTEMCTL

OPS, KAFKA = 64001, 64002
ACCOUNTS = f"ops:x:{OPS}:{OPS}:ops@:/:/bin/sh\nkafka:x:{KAFKA}:{KAFKA}::/:/bin/sh\n"
TOOLS = ("sudo", "visudo", "unshare", "nsenter", "setpriv", "systemctl")
LAYOUT = """
set -eu
mount -t tmpfs -o mode=755 tmpfs "$1"
cp -a /etc "$1/etc"; mkdir -p "$1/local" "$1/srv"; chmod 755 "$1/local" "$1/srv"
mount --bind "$1/etc" /etc; mount --bind "$1/local" /usr/local; mount --bind "$1/srv" /srv
mkdir "$1/units"; cp "$2" "$1/units/systemctl"; chmod 755 "$1/units" "$1/units/systemctl"
mount --bind "$1/units/systemctl" "$(command -v systemctl)"
rm -rf /etc/sudoers.d; mkdir -m 750 /etc/sudoers.d
printf 'root ALL=(ALL:ALL) ALL\\n@includedir /etc/sudoers.d\\n' >/etc/sudoers; chmod 440 /etc/sudoers
echo ready
exec sleep 600
"""


def missing() -> str:
    """What this machine lacks for it; "" where nothing does."""
    if os.geteuid() != 0:
        return "a mount namespace needs root"
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not on this machine: {', '.join(lacking)}" if lacking else ""


@dataclass
class Room:
    """One; `folder` is its tmpfs, which only processes in it see."""

    folder: Path
    pid: int
    host: str = "room"

    def argv(self, words: Sequence[str], user: int) -> list[str]:
        """How a command is run in it."""
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        return ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--wd=/", "--", *drop, *words]

    def run_as(
        self, user: int, words: Sequence[str], stdin: bytes = b"", seconds: float = COMMAND_SECONDS
    ) -> Completed:
        """Run it to its end."""
        argv = self.argv(words, user)
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=seconds)
        return Completed(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """As the account that logs in."""
        return self.run_as(OPS, words, stdin, seconds)

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Begin a command that stays, as that account."""
        return HeldCommand(self.argv(words, OPS), self.host, environment())

    def must(self, script: str, user: int = 0, stdin: bytes = b"") -> str:
        """A line of shell, as root where no other user is named."""
        done = self.run_as(user, ("sh", "-euc", script), stdin)
        assert done.code == 0, (script, done)
        return done.output.decode()


@contextlib.contextmanager
def room() -> Iterator[Room]:
    """One."""
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-room-") as kept:
        folder, standing = Path(kept) / "room", Path(kept) / "systemctl"
        folder.mkdir()
        standing.write_text(SYSTEMCTL.replace('"$(dirname "$0")', f'"{folder}/units'))
        with subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", LAYOUT, "sh", str(folder), str(standing)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                line = process.stdout.readline()
                assert line == "ready\n", process.stderr.read()
                found = Room(folder, process.pid)
                found.must("cat >> /etc/passwd", stdin=ACCOUNTS.encode())
                found.must("cat >> /etc/shadow", stdin=b"ops:*:19000::::::\nkafka:*:19000::::::\n")
                found.must("cat >> /etc/group", stdin=f"ops:x:{OPS}:\nkafka:x:{KAFKA}:\n".encode())
                yield found
            finally:
                os.killpg(process.pid, signal.SIGKILL)
