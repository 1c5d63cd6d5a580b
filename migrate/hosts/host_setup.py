"""What is installed on a host: the program, its configuration, one line for sudo, and the script that root runs there.

Everything here is pure: text from an inventory.  One configuration holds all nodes of a host.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
from pathlib import Path
from typing import Any, Final

from migrate.errors import UsageWrong
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory

PROGRAM: Final = "/usr/local/libexec/kraft-migrate/host"
CONFIGURATION: Final = "/etc/kraft-migrate/host.json"
SUDOERS: Final = "/etc/sudoers.d/kraft-migrate"
SOURCE: Final = "host_program.py"
BESIDE: Final = ("collect_disks.py", "tell_places.py")
FORMAT: Final = 1
# sudoers(5): a name in capitals is an alias, and % # + begin other things than users; others are quoted
ACCOUNT: Final = re.compile(r"(?=.*[a-z0-9._@-])[A-Za-z_][A-Za-z0-9_.@-]{0,63}")
# a metadata directory is renamed by a rollback: none of these is anybody's metadata directory
NEVER_METADATA: Final = re.compile(r"/|/[^/]+|/(etc|usr|var|lib|lib64|boot|dev|proc|run|sys|bin|sbin|root)(/[^/]+)?")


def released(name: str) -> bytes:
    """The text of one of the stand-alone programs, as this release has it."""
    return importlib.resources.files("migrate.hosts").joinpath(name).read_bytes()


def sums() -> dict[str, str]:
    """SHA-256 of each program of this release, as `about` tells them."""
    names = {"host": SOURCE, **{name: name for name in BESIDE}}
    return {name: hashlib.sha256(released(source)).hexdigest() for name, source in names.items()}


def installed_text(python: str, configuration: str) -> bytes:
    """The program as it is installed: for that interpreter, with that configuration (pure)."""
    _, _, rest = released(SOURCE).partition(b"\n")
    place = f"CONFIGURATION = {json.dumps(configuration)}".encode()
    text = re.sub(rb'(?m)^CONFIGURATION = ".*"$', lambda _line: place, rest, count=1)
    return f"#!{python} -IS\n".encode() + text


def nodes_of(inventory: Inventory, host: str) -> tuple[BrokerNode | ControllerNode, ...]:
    """The nodes on that host, named as the inventory does; UsageWrong where there is none."""
    found = tuple(node for node in inventory.nodes if node.host == host)
    if not found:
        known = ", ".join(dict.fromkeys(node.host for node in inventory.nodes))
        raise UsageWrong(f"no node is on a host {host!r}", next_step=f"name a host of the inventory: {known}")
    return found


def configuration(inventory: Inventory, host: str, account: str = "") -> dict[str, Any]:
    """What host.json says (pure).

    Raises:
        UsageWrong: no node is on that host, or what it names cannot be acted on.
    """
    return {
        "format": FORMAT,
        "account": account,
        "kafka_home": inventory.executor_options.get("kafka_home", ""),
        "nodes": [_entry(node) for node in nodes_of(inventory, host)],
        "programs": sums(),
    }


def _entry(node: BrokerNode | ControllerNode) -> dict[str, Any]:
    metadata = node.metadata_directory if isinstance(node, ControllerNode) else ""
    if metadata and NEVER_METADATA.fullmatch(metadata):
        raise UsageWrong(
            f"{metadata} is no place for a metadata directory",
            where=f"node {int(node.id)}",
            why="a rollback renames the metadata directory",
            next_step="give the controller a folder of its own, such as /srv/kafka/metadata",
        )
    role = "controller" if isinstance(node, ControllerNode) else "broker"
    return {
        "id": int(node.id),
        "role": role,
        "unit": node.unit,
        "config": node.config,
        "metadata_directory": metadata,
    }


def install(prefix: Path, found: dict[str, Any], python: str) -> Path:
    """Put the program and its configuration into a folder of ours, without root and sudo; the program's path.

    `found` may have a key `path`: a folder where stand-ins of systemctl and journalctl are looked for first.
    """
    prefix.mkdir(parents=True, exist_ok=True)
    contents = {
        "host": (installed_text(python, str(prefix / "host.json")), 0o755),
        "host.json": ((json.dumps(found, indent=1) + "\n").encode(), 0o644),
        **{name: (released(name), 0o644) for name in BESIDE},
    }
    for name, (content, mode) in contents.items():
        (prefix / name).write_bytes(content)
        (prefix / name).chmod(mode)
    prefix.chmod(0o755)
    return prefix / "host"


def sudo_line(account: str) -> str:
    """What sudo is told (pure): one program, whose arguments it checks itself.  UsageWrong for an odd account."""
    if not ACCOUNT.fullmatch(account):
        raise UsageWrong(f"{account!r} is no account that sudo can be given", next_step="log in as another user")
    quoted = account.replace("@", "\\@")
    return f"Defaults!{PROGRAM} !requiretty, !use_pty, env_reset, !setenv\n{quoted} ALL=(root) NOPASSWD: {PROGRAM}\n"
