"""Stopped labs as archives, by stage: tests start from them instead of migrating up to there again."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path
from typing import Final

from migrate.errors import LabMissing, LabRuns
from migrate.hosts.supervisor import Supervisor
from migrate.lab.topology import LAB_FILE, Topology
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


def require_stopped(topology: Topology) -> None:
    """Raise LabRuns where a process of the lab lives, or may."""
    supervisor = Supervisor(topology.processes)
    alive = [name for name in supervisor.specs() if not isinstance(supervisor.state(name), Stopped)]
    if alive:
        raise LabRuns("the lab runs", where=topology.directory, why=", ".join(alive))


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
