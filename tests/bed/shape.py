"""The shapes that hosts of a bed have: each option is something that hosts of other people have."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of hosts; the defaults are those of a plain Debian installation.

    `hosts`: brokers, each on a host of its own.  `controllers_apart`: three more hosts for the controllers, else they
    are beside the brokers of the first three hosts.  `login`: the account that SSH logs in as; `rights`: what sudo
    gives it before the host program is installed, `none`, or `all` for a person's.  `owner`, `file_mode`,
    `folder_mode`: of the configuration.  `unit`: the brokers'.  `start`: how a unit calls Kafka's start script;
    `override` gives it `--override` besides.  `linked_configuration` and `linked_disks`: /etc/kafka and the log
    directories are symbolic links; `linked_file`: the number of a host whose broker's file is one.  `python`: the whole
    one, Debian's python3-minimal, one in /usr/local/bin alone, or none.  `jump`: only the first host is reached
    directly.  `metadata`: the controllers' metadata directory is a mount point, a folder below one, or on the root
    file system.  `by_runit`: the host whose broker is no unit, but runit's.  `last_unlike`: the last broker's host has
    Kafka in another folder, and that broker's listener asks for a user, as no other's does.  `kerberos`: brokers,
    controllers and ZooKeeper log in by Kerberos, and ZooKeeper's znodes are the brokers' own; the KDC is the bed's.
    `quorum`: the controllers' kind, as an inventory says it.
    """

    hosts: int = 3
    controllers_apart: bool = False
    login: str = "ops"
    rights: Literal["none", "all"] = "none"
    owner: str = "root:kafka"
    file_mode: int = 0o640
    folder_mode: int = 0o750
    unit: str = "kafka.service"
    start: Literal["direct", "shell", "override"] = "direct"
    linked_configuration: bool = False
    linked_file: int = 0
    linked_disks: bool = False
    python: Literal["full", "minimal", "local", "none"] = "full"
    login_shell: str = "/bin/bash"
    banner: bool = False
    requiretty: bool = False
    use_pty: bool = False
    jump: bool = False
    metadata: Literal["mount", "below", "root"] = "below"
    stop_seconds: int = 360
    by_runit: int = 0
    last_unlike: bool = False
    kerberos: bool = False
    quorum: Literal["static", "dynamic"] = "static"

    def is_unlike(self, number: int) -> bool:
        """Is that host the one that is not as the others are?"""
        return self.last_unlike and number == self.hosts

    def home(self, number: int) -> str:
        """Where Kafka is on that host."""
        return "/srv/other-kafka" if self.is_unlike(number) else "/opt/kafka"

    @property
    def all_hosts(self) -> int:
        """Brokers' hosts, and those of controllers that are apart."""
        return self.hosts + (3 if self.controllers_apart else 0)

    @property
    def controllers(self) -> dict[int, int]:
        """Controller id -> number of its host."""
        first = self.hosts + 1 if self.controllers_apart else 1
        return {3000 + k: first + k for k in range(3)}

    @property
    def metadata_directory(self) -> str:
        """The controllers' metadata directory."""
        return {"mount": "/srv/kafka/metadata", "below": "/srv/kafka/metadata/kraft", "root": "/srv/kafka/kraft"}[
            self.metadata
        ]

    @property
    def disks(self) -> tuple[str, ...]:
        """Mount points of a broker's disks."""
        return tuple(f"/srv/kafka/disk{k}" for k in range(1, 4))

    @property
    def log_directories(self) -> tuple[str, ...]:
        """What `log.dirs` names."""
        return tuple(f"/var/lib/kafka/data{k}" for k in range(1, 4)) if self.linked_disks else self.disks

    def is_unit(self, n: int) -> bool:
        """Is the broker of host `n` a unit of systemd's?"""
        return n != self.by_runit

    def save(self, folder: Path) -> None:
        """Keep it with the bed."""
        (folder / "shape.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def of(cls, folder: Path) -> Shape:
        """The shape of the bed in that folder."""
        return cls(**json.loads((folder / "shape.json").read_text()))


SHAPES: Final = {
    "plain": Shape(),
    "mixed": Shape(by_runit=2, last_unlike=True, linked_file=1),
    "apart": Shape(controllers_apart=True, metadata="mount", login="deploy"),
    "template": Shape(unit="kafka@1.service", start="shell", use_pty=True, banner=True),
    "kerberos": Shape(kerberos=True, quorum="dynamic"),
    "links": Shape(linked_configuration=True, linked_disks=True, jump=True),
    "minimal": Shape(python="minimal", login_shell="/bin/dash", requiretty=True, metadata="root"),
    "local-python": Shape(python="local", login_shell="/bin/tcsh", start="override", owner="kafka:kafka"),
}
