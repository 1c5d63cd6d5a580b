"""Breaks parts of a running lab, and repairs them: a disk, a broker, a controller, the link to the controllers.

A disk is broken by renaming its folder to DIR.broken and putting something else in its place.  A running broker keeps
what it has open, and fails at the next file that it opens by path: at the latest the checkpoint of the high watermarks,
every five seconds.  A repair puts the old folder back, with everything in it; Kafka uses a directory that failed again
only when the broker starts.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from migrate.errors import LabRefused
from migrate.hosts.files import replace_file
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from migrate.lab.topology import LabBroker, Topology
from migrate.model.ids import KafkaUuid
from migrate.model.views import Running
from tests.lab.links import LINKS, PASS_ON, RULES_FILE, LinkRule, read_rules
from tests.testing.memory_disks import is_mounted, mount_memory, remount_read_only, unmount

SUFFIX: Final = ".broken"
OLD: Final = ".old"
ROOM: Final = 4 << 20  # bytes beside what a disk in memory holds
BALLAST: Final = "ballast"  # fills a disk
NO_DISK: Final = "this is no disk: the lab put it here in place of one that it broke\n"


class DiskFault(StrEnum):
    """How a disk is broken."""

    GONE = "gone"  # a file in its place: nothing can be read or written
    EMPTIED = "emptied"  # an empty folder
    REPLACED = "replaced"  # a new disk with a directory.id of its own, as kafka-storage format leaves it
    UNREADABLE = "unreadable"  # everything is there but its meta.properties cannot be read
    READ_ONLY = "read-only"  # root: a copy of it that nothing can be written to
    FULL = "full"  # root: a copy of it without a free byte


# -- disks -------------------------------------------------------------------------------------------------------
def disk_of(lab: Lab, broker: int, disk: int) -> Path:
    """A broker's log directory by its place in log.dirs, the first is 0; LabRefused where there is none."""
    found = _broker(lab, broker)
    if not 0 <= disk < len(found.log_dirs):
        raise LabRefused(f"broker {broker} has disks 0 to {len(found.log_dirs) - 1}", where=f"disk {disk}")
    return Path(found.log_dirs[disk])


def set_aside(folder: Path) -> Path:
    """Where the content of a broken disk is kept."""
    return folder.with_name(folder.name + SUFFIX)


def break_disk(lab: Lab, broker: int, disk: int, fault: DiskFault) -> Path:
    """Break a disk; return the folder that is broken now.

    Raises:
        LabRefused: there is no such disk, or it is broken already.
        MountRefused: that fault needs root; the disk is whole.
    """
    folder = disk_of(lab, broker, disk)
    if set_aside(folder).exists():
        raise LabRefused("this disk is broken already", where=str(folder))
    folder.rename(set_aside(folder))
    try:
        _IN_PLACE[fault](folder)
    except OSError:
        _put_back(folder)
        raise
    return folder


def repair_disk(lab: Lab, broker: int, disk: int) -> Path:
    """Put the old folder back; LabRefused where it is not broken."""
    folder = disk_of(lab, broker, disk)
    if not set_aside(folder).exists():
        raise LabRefused("this disk is not broken", where=str(folder))
    _put_back(folder)
    return folder


def new_disk(lab: Lab, broker: int, disk: int) -> Path:
    """Put a new, empty disk in the place of a broken one, which stays as DIR.old until the next one goes the same way.

    Raises:
        LabRefused: it is not broken.
    """
    folder = disk_of(lab, broker, disk)
    if not set_aside(folder).exists():
        raise LabRefused("this disk is not broken", where=str(folder))
    old = folder.with_name(folder.name + OLD)
    _remove(old)
    _remove(folder)
    folder.mkdir(mode=0o750)
    set_aside(folder).rename(old)
    return folder


def _put_back(folder: Path) -> None:
    _remove(folder)
    set_aside(folder).rename(folder)


def _remove(folder: Path) -> None:
    if is_mounted(folder):
        unmount(folder)
    if folder.is_dir():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def _gone(folder: Path) -> None:
    folder.write_text(NO_DISK, encoding="utf-8")


def _emptied(folder: Path) -> None:
    folder.mkdir(mode=0o750)


def _replaced(folder: Path) -> None:
    old = parse((set_aside(folder) / META_PROPERTIES).read_bytes())
    node = old.get("node.id", old.get("broker.id", ""))
    identity = KafkaUuid.from_bytes(bytes([1]) + secrets.token_bytes(15))
    folder.mkdir(mode=0o750)
    lines = (f"cluster.id={old['cluster.id']}", f"directory.id={identity}", f"node.id={node}", "version=1")
    replace_file(str(folder / META_PROPERTIES), "".join(f"{line}\n" for line in lines).encode())


def _unreadable(folder: Path) -> None:
    """A folder in place of the file: this needs no privileges, and root cannot read it either."""
    _copy(folder)
    (folder / META_PROPERTIES).unlink(missing_ok=True)
    (folder / META_PROPERTIES).mkdir()


def _read_only(folder: Path) -> None:
    _in_memory(folder)
    remount_read_only(folder)


def _full(folder: Path) -> None:
    _in_memory(folder)
    with (folder / BALLAST).open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def _in_memory(folder: Path) -> None:
    size = sum(path.stat().st_size for path in set_aside(folder).rglob("*") if path.is_file())
    folder.mkdir(mode=0o750)
    mount_memory(folder, size_bytes=2 * size + ROOM)
    _copy(folder)


def _copy(folder: Path) -> None:
    shutil.copytree(set_aside(folder), folder, dirs_exist_ok=True)


_IN_PLACE: Final[Mapping[DiskFault, Callable[[Path], None]]] = {
    DiskFault.GONE: _gone,
    DiskFault.EMPTIED: _emptied,
    DiskFault.REPLACED: _replaced,
    DiskFault.UNREADABLE: _unreadable,
    DiskFault.READ_ONLY: _read_only,
    DiskFault.FULL: _full,
}


# -- processes ---------------------------------------------------------------------------------------------------
def break_process(lab: Lab, name: str) -> None:
    """Kill it, as a power failure of its host would; LabRefused where it does not run."""
    if not isinstance(lab.supervisor.state(name), Running):
        raise LabRefused(f"{name} does not run", where=lab.topology.directory)
    lab.supervisor.kill(name)


def repair_process(lab: Lab, name: str) -> None:
    """Start it again; LabRefused where it runs."""
    if isinstance(lab.supervisor.state(name), Running):
        raise LabRefused(f"{name} runs", where=lab.topology.directory)
    lab.supervisor.start(name)


def broker_name(lab: Lab, broker: int) -> str:
    """The process of a broker; LabRefused where there is no such broker."""
    return _broker(lab, broker).name


def controller_name(lab: Lab, controller: int) -> str:
    """The process of a controller; LabRefused where there is no such controller."""
    for found in lab.topology.controllers:
        if found.id == controller:
            return found.name
    raise LabRefused(f"there is no controller {controller}", where=lab.topology.directory)


def _broker(lab: Lab, broker: int) -> LabBroker:
    for found in lab.topology.brokers:
        if found.id == broker:
            return found
    raise LabRefused(f"there is no broker {broker}", where=lab.topology.directory)


# -- links -------------------------------------------------------------------------------------------------------
def break_link(lab: Lab, broker: int, hold: frozenset[int] = frozenset()) -> None:
    """Hold those requests of a broker to the controllers; without any, cut the link.

    Raises:
        LabRefused: there is no such broker, or the lab was made without a proxy.
    """
    _set_rule(lab, broker, LinkRule(hold=hold, cut=not hold))


def repair_link(lab: Lab, broker: int) -> None:
    """Forward everything again, held requests first; LabRefused as above."""
    _set_rule(lab, broker, PASS_ON)


def write_rules(topology: Topology, rules: Mapping[int, LinkRule]) -> None:
    """Replace the rules; the proxy follows within a tenth of a second."""
    data = {
        str(broker): {"hold": sorted(rule.hold), "cut": rule.cut} for broker, rule in rules.items() if rule != PASS_ON
    }
    replace_file(str(topology.folder(RULES_FILE)), (json.dumps(data) + "\n").encode())


def _set_rule(lab: Lab, broker: int, rule: LinkRule) -> None:
    _broker(lab, broker)
    if LINKS not in lab.supervisor.specs():
        raise LabRefused(
            "this lab has no proxy between its brokers and controllers",
            where=lab.topology.directory,
        )
    write_rules(lab.topology, {**read_rules(lab.topology), broker: rule})
