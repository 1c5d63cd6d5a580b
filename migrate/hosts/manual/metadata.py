"""Stopped controllers' metadata logs on manually operated hosts: the operator is asked to bring them.

A log is asked for only where one is needed: no controller runs, and the collector saw one.  The archive's name holds
the id of the collector's answer that reported the stopped controller: what is in the inbox from before a later
instruction, or a later look, has another name, counts for nothing, and is deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import MetadataAwaited, NotTold
from migrate.hosts.commands import quote
from migrate.hosts.manual import commands
from migrate.hosts.manual.instructions import Desk
from migrate.hosts.manual.reports import Answer
from migrate.hosts.remote_files import PARTS, unpack_log
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plain_tar import NotPlainTar

LOGGER: Final = logging.getLogger("migrate.manual")
PREFIX: Final = "metadata"
SUM: Final = ".sha256"
PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """A needed log: its node, its path on the host, and the name under which to bring it."""

    node: NodeId
    host: str
    path: str
    name: str

    def commands(self) -> tuple[str, ...]:
        """The commands to run on the host, in the request's folder."""
        return (
            f"{quote(commands.archive(self.path, PARTS))} > {self.name}.tar",
            f"{quote(('sha256sum', f'{self.name}.tar'))} > {self.name}.tar{SUM}",
        )


class ManualMetadata:
    """Implements `MetadataCopies`: folders of this host, filled from the brought archives."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @contextlib.contextmanager
    def folders(self, directories: Mapping[NodeId, str], *, growing: bool = False) -> Iterator[Mapping[NodeId, Path]]:  # noqa: ARG002 - nobody brings a log that grows
        """Yield the folders while the context lasts; empty where the collector saw no log.

        Raises:
            NotTold: the collector's answer does not tell of a directory.
            MetadataAwaited: a log is there and was not brought; a person is asked for it.
        """
        found = (self._log_of(node, path) for node, path in directories.items())
        wanted = {one.node: one for one in found if one is not None}
        self._delete_others({one.name for one in wanted.values()})
        missing = [(one, why) for one in wanted.values() if (why := self._missing(one))]
        if missing:
            for one, _ in missing:
                self._ask(one)
            raise _awaited(missing)
        with tempfile.TemporaryDirectory(prefix="kraft-migrate-metadata-") as kept:
            places = {node: Path(kept) / str(int(node)) for node in directories}
            for node, place in places.items():
                place.mkdir()
                if node in wanted:
                    self._unpack(wanted[node], place)
            yield places

    def requests(self) -> list[Path]:
        """Folders of requested logs that are still missing, by the newest answers alone."""
        found = []
        for node in self._desk.inventory.controllers:
            with contextlib.suppress(NotTold):
                one = self._log_of(node.id, node.metadata_directory)
                if one is not None and (self._desk.folder / one.name).is_dir() and self._missing(one):
                    found.append(self._desk.folder / one.name)
        return found

    def _log_of(self, node: NodeId, path: str) -> Wanted | None:
        """The node's log; None where the collector saw that there is none."""
        answer = self._desk.answer(node)
        where = f"node {int(node)}: {path}"
        if isinstance(answer, Unknown):
            raise NotTold(answer.reason, where=where)
        if path in answer.absent:
            return None
        directory = answer.directory(path)
        if directory is None or directory.problem:
            raise NotTold("" if directory is None else f"it {directory.problem}", where=where)
        if not directory.holds_metadata_log:
            return None
        return Wanted(node, self._desk.inventory.node(node).host, path, f"{PREFIX}-{int(node)}-{_mark(answer)}")

    def state(self, directories: Mapping[NodeId, str]) -> object:
        """The wanted logs, and the brought archives."""
        found = [one for node, path in directories.items() if (one := self._log_of(node, path)) is not None]
        archives = [self._archive(one) for one in found]
        times = [(path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None for path in archives]
        return [(one.name, time) for one, time in zip(found, times, strict=True)]

    def _archive(self, one: Wanted) -> Path:
        return self._desk.inbox.folder / f"{one.name}.tar"

    def _missing(self, one: Wanted) -> str:
        """What is missing: "" where the archive is complete, by the checksum that was made on its host."""
        archive = self._archive(one)
        try:
            stated = archive.with_name(archive.name + SUM).read_text(encoding="ascii", errors="replace").split()
            with archive.open("rb") as file:
                told = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "not brought yet"
        return "" if stated[:1] == [told] else f"{archive.name} is not what its sum was made of: bring both again"

    def _unpack(self, one: Wanted, place: Path) -> None:
        path = self._archive(one)
        try:
            with path.open("rb") as archive:
                unpack_log(archive, place)
        except NotPlainTar as error:
            raise NotTold(
                f"{path.name} is no archive of a metadata log: {error}",
                where=str(path),
                why="half of a log would say that nothing is missing",
                next_step=f"bring both files again, as README.txt in {self._desk.folder / one.name} says",
            ) from error

    def _ask(self, one: Wanted) -> None:
        """Write the request, once, and log it."""
        folder = self._desk.folder / one.name
        if (folder / "README.txt").exists():
            return
        lines = one.commands()
        text = _README.format(
            node=int(one.node), host=one.host, name=one.name, inbox=self._desk.inbox.folder,
            commands="\n".join(f"    {line}" for line in lines),
        )  # fmt: skip
        self._desk.put(folder, {"commands.txt": "".join(f"{line}\n" for line in lines).encode()}, text)
        LOGGER.info("%s\n%s", folder, text)

    def _delete_others(self, names: set[str]) -> None:
        """Delete earlier archives: they contain credentials and are not used any more."""
        for path in self._desk.inbox.folder.glob(f"{PREFIX}-*.tar*"):
            if path.name.removesuffix(SUM).removesuffix(".tar") not in names:
                path.unlink(missing_ok=True)


def _mark(answer: Answer) -> str:
    return answer.instruction or f"look-{answer.collected.taken}"


def _awaited(missing: list[tuple[Wanted, str]]) -> MetadataAwaited:
    nodes = ", ".join(f"{int(one.node)} at {one.host}" for one, _ in missing)
    return MetadataAwaited(
        f"the metadata logs of the stopped controllers are needed (node {nodes}): {missing[0][1]}",
        where=", ".join(f"RUNS/manual/{one.name}" for one, _ in missing),
        why="what a stopped controller last wrote is checked before another one may start, and before a rollback",
        next_step="bring what each README.txt there asks for; a waiting run then continues by itself",
    )


_README: Final = """Bring the metadata log of controller {node}, which is stopped: nothing is changed by it.

host:  {host}   (node {node})

1. Copy this folder to that host, and work in the copy.
2. Run each line of commands.txt in this order, as a user who may read the controller's files:

{commands}

3. Bring {name}.tar and {name}.tar.sha256 back, into {inbox}
   on the host that runs kraft-migrate, and remove both from the other host.

The log holds credentials (SCRAM users, delegation tokens), as a backup of ZooKeeper does: carry it as one.
It is read in the inbox, and deleted there by the first check after the next instruction for that node.
Why it is needed: what the controllers have committed and ZooKeeper lacks would be lost in a rollback.
"""
