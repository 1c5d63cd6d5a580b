"""Stopped labs as archives, by stage: tests start from them instead of migrating up to there again."""

from __future__ import annotations

import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.errors import LabMissing, LabRuns
from migrate.hosts.files import replace_file
from migrate.hosts.supervisor import Supervisor
from migrate.lab.topology import LAB_FILE, Topology, claim, free_ports, load_topology, save_topology
from migrate.model.views import Stopped

FOLDER: Final = "saved"
STAGE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
# what a cluster is; logs, process records and the jars' list belong to the moment
KEPT: Final = (
    "conf",
    "data",
    "secrets",
    "runs",
    "load",
    "inventory.yaml",
    "seeded.json",
    "tokens.json",
    "demo.json",
    "playbook.yaml",
    "links.json",
)


def archive_of(topology: Topology, stage: str) -> Path:
    """DIR/saved/STAGE.tar."""
    if not STAGE.fullmatch(stage):
        message = f"{stage!r} is no name of a stage"
        raise ValueError(message)
    return topology.folder(FOLDER, f"{stage}.tar")


def save(topology: Topology, stage: str) -> Path:
    """Write the stopped lab to DIR/saved/STAGE.tar (mode 0600: secrets are in it), replacing an older one.

    Raises:
        LabRuns: a process of the lab lives.
    """
    require_stopped(topology)
    archive = archive_of(topology, stage)
    archive.parent.mkdir(mode=0o700, exist_ok=True)
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    with tarfile.open(partial, "w") as tar:
        for name in (LAB_FILE, *KEPT):
            if topology.folder(name).exists():
                tar.add(topology.folder(name), arcname=name)
    return partial.rename(archive)


def restore(topology: Topology, stage: str) -> None:
    """Put the lab back to what DIR/saved/STAGE.tar holds; what is there now is gone.

    Raises:
        LabRuns: a process of the lab lives.
        LabMissing: no such archive.
    """
    require_stopped(topology)
    archive = archive_of(topology, stage)
    fresh = topology.folder(FOLDER, f"{stage}.restoring")
    _unpack(archive, fresh)
    for name in KEPT:
        _remove(topology.folder(name))
        if (fresh / name).exists():
            (fresh / name).rename(topology.folder(name))
    _remove(fresh)


def restore_elsewhere(archive: Path, directory: Path) -> Topology:
    """Unpack an archive into another, empty folder: paths and ports in its files are changed, its runs left out.

    Raises:
        LabFolderNotOurs: the folder is not empty.
        LabMissing: no such archive.
    """
    claim(directory)
    root = directory.resolve()
    _unpack(archive, root)
    for name in ("runs", "load", "demo.json"):
        _remove(root / name)  # plans and journals name the old paths
    text = (root / LAB_FILE).read_text(encoding="utf-8")
    old = re.search(r'"directory": "([^"]+)"', text)
    assert old is not None
    replace_file(str(root / LAB_FILE), text.replace(old[1], str(root)).encode())
    before = load_topology(root)
    after = _on_other_ports(before)
    moved = dict(zip(before.ports(), after.ports(), strict=True))
    for path in [*sorted((root / "conf").glob("*.properties")), root / "inventory.yaml"]:
        changed = relocated(path.read_text(encoding="utf-8"), old[1], str(root), moved)
        replace_file(str(path), changed.encode())
    save_topology(after)
    return after


def relocated(text: str, old: str, new: str, ports: dict[int, int]) -> str:
    """A configuration file for another folder and other ports (pure)."""

    def port(match: re.Match[str]) -> str:
        return match[1] + str(ports.get(int(match[2]), int(match[2])))

    return re.sub(
        r"(127\.0\.0\.1:|localhost:|^clientPort=)(\d+)", port, text.replace(old + "/", new + "/"), flags=re.MULTILINE
    )


def require_stopped(topology: Topology) -> None:
    """Raise LabRuns where a process of the lab lives, or may."""
    supervisor = Supervisor(topology.processes)
    alive = [name for name in supervisor.specs() if not isinstance(supervisor.state(name), Stopped)]
    if alive:
        raise LabRuns("the lab runs", where=topology.directory, why=", ".join(alive))


def _on_other_ports(topology: Topology) -> Topology:
    ports = iter(free_ports(len(topology.ports())))
    return replace(
        topology,
        zookeeper_port=next(ports),
        brokers=tuple(replace(b, internal_port=next(ports), client_port=next(ports)) for b in topology.brokers),
        controllers=tuple(replace(c, port=next(ports)) for c in topology.controllers),
    )


def _unpack(archive: Path, folder: Path) -> None:
    if not archive.is_file():
        raise LabMissing("no lab was saved under that name", where=str(archive))
    _remove(folder / LAB_FILE)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        # since Python 3.11.4; the archive is this user's own
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)  # noqa: S202 - filtered by the line above


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
