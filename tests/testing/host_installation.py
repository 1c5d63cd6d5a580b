"""The host program as it is installed, in a folder of the test's, with a stand-in for systemctl that says the user."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.hosts import host_setup
from migrate.hosts.runner import Completed

PYTHON = Path("/usr/bin/python3")  # one that every user may run
SYSTEMCTL = """\
#!/bin/sh
# systemctl VERB ... UNIT: what is in a file of the unit's name beside it; other verbs are written down
for unit; do :; done
case $1 in
show) cat "$(dirname "$0")/$unit" 2>/dev/null || printf 'LoadState=not-found\\nUser=\\nMainPID=0\\n' ;;
is-enabled) echo disabled; exit 1 ;;
*) echo "$*" >> "$(dirname "$0")/given" ;;
esac
"""


@dataclass(frozen=True)
class Installation:
    """One; `folder` is root's alone."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def program(self) -> Path:
        """What is called."""
        return self.folder / "host"

    def run(self, *words: str, stdin: bytes = b"", **environment: str) -> Completed:
        """One call."""
        done = subprocess.run(
            [str(self.program), *words],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
            env={**self.environment, **environment},
        )
        return Completed(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def must(self, *words: str, stdin: bytes = b"") -> bytes:
        """The same; what it says on stdout."""
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, done
        return done.output

    def write(self, node: str, path: Path, content: bytes) -> Completed:
        """A file's new content."""
        return self.run("write", node, str(path), hashlib.sha256(content).hexdigest(), stdin=content)

    def unit(self, name: str, user: str, **more: str) -> None:
        """Let systemd say that of a unit."""
        values = {"LoadState": "loaded", "User": user, "MainPID": "0", **more}
        (self.folder / "bin" / name).write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    @property
    def given(self) -> list[str]:
        """What systemctl was told to do."""
        file = self.folder / "bin" / "given"
        return file.read_text().splitlines() if file.exists() else []


def install(folder: Path, nodes: Sequence[Mapping[str, Any]], kafka_home: str = "/opt/kafka") -> Installation:
    """Put everything into that folder, as the script of `doctor --host-setup` does with PREFIX."""
    (folder / "bin").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "bin" / "systemctl").write_text(SYSTEMCTL)
    (folder / "bin" / "systemctl").chmod(0o755)
    found = {
        "format": host_setup.FORMAT, "account": "ops", "programs": host_setup.sums(), "path": str(folder / "bin"),
        "nodes": [{"kafka_home": kafka_home, **node} for node in nodes], "zookeeper": ["zookeeper.service"],
    }  # fmt: skip
    host_setup.install(folder, found, str(PYTHON))
    (folder / "bin").chmod(0o755)
    return Installation(folder, {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/root"})


def broker(config: Path, node: int = 1, unit: str = "kafka.service") -> dict[str, Any]:
    """A broker's entry."""
    return {"id": node, "role": "broker", "unit": unit, "config": str(config), "metadata_directory": ""}


def controller(
    config: Path, metadata: Path, node: int = 3000, unit: str = "kafka-controller.service"
) -> dict[str, Any]:
    """A controller's entry."""
    return {"id": node, "role": "controller", "unit": unit, "config": str(config), "metadata_directory": str(metadata)}
