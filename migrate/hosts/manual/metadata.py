"""The metadata logs of stopped controllers, which the operator brings: only where no controller runs and one is there.

The archive's name holds the id of the collector's answer that reported the stopped controller: what is in the inbox
from before a later instruction, or a later look, has another name, and is deleted unread.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import MetadataAwaited, NotTold
from migrate.hosts.commands import path as host_path
from migrate.hosts.commands import quote
from migrate.hosts.manual.commands import readme
from migrate.hosts.manual.desk import LOG, Desk
from migrate.hosts.remote_files import PARTS, unpack_log
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plain_tar import NotPlainTar

PREFIX: Final = "metadata"
SUM: Final = ".sha256"
NOTES: Final = (
    "   and remove both from the other host.",
    "",
    "The log holds credentials (SCRAM users, delegation tokens), as a backup of ZooKeeper does: carry it as one.",
    "It is read in the inbox, and deleted there by the first check after the next instruction for that node.",
    "Why it is needed: what the controllers have committed and ZooKeeper lacks would be lost in a rollback.",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A needed log: its node, its path on the host, and the archive in which it is brought."""

    node: NodeId
    path: str
    archive: Path

    def missing(self) -> str:
        """What is missing: "" where the archive is complete, by the checksum that was made on its host."""
        try:
            stated = self.archive.with_name(self.archive.name + SUM).read_text(encoding="ascii", errors="replace")
            with self.archive.open("rb") as file:
                told = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "not brought yet"
        whole = stated.split()[:1] == [told]
        return "" if whole else f"{self.archive.name} is not what its sum was made of: bring both again"


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
        wanted = self._wanted(directories)
        names = {one.archive.name for one in wanted}
        for path in self._desk.inbox.folder.glob(f"{PREFIX}-*.tar*"):  # earlier ones hold credentials, and are not used
            if path.name.removesuffix(SUM) not in names:
                path.unlink(missing_ok=True)
        missing = [(one, why) for one in wanted if (why := one.missing())]
        if missing:
            asked = [self._ask(one) for one, _ in missing]
            nodes = ", ".join(f"{int(one.node)} at {self._desk.inventory.node(one.node).host}" for one, _ in missing)
            raise MetadataAwaited(
                f"the metadata logs of the stopped controllers are needed (node {nodes}): {missing[0][1]}",
                where=", ".join(f"RUNS/manual/{folder.name}" for folder in asked),
                why="what a stopped controller last wrote is checked before another one may start, "
                "and before a rollback",
                next_step="bring what each README.txt there asks for; a waiting run then continues",
            )
        with tempfile.TemporaryDirectory(prefix="kraft-migrate-metadata-") as kept:
            places = {node: Path(kept) / str(int(node)) for node in directories}
            for place in places.values():
                place.mkdir()
            for one in wanted:
                self._unpack(one, places[one.node])
            yield places

    def state(self, directories: Mapping[NodeId, str]) -> object:
        archives = [one.archive for one in self._wanted(directories)]
        return [(path.name, path.exists() and (path.stat().st_size, path.stat().st_mtime_ns)) for path in archives]

    def _wanted(self, directories: Mapping[NodeId, str]) -> list[Wanted]:
        """The logs that the collector saw."""
        found = []
        for node, path in directories.items():
            answer = self._desk.answer(node)
            where = f"node {int(node)}: {path}"
            if isinstance(answer, Unknown):
                raise NotTold(answer.reason, where=where)
            if path in answer.absent:
                continue
            directory = answer.directory(path)
            if directory is None or directory.problem:
                raise NotTold("" if directory is None else f"it {directory.problem}", where=where)
            if directory.holds_metadata_log:
                mark = answer.instruction or f"look-{answer.collected.taken}"
                found.append(Wanted(node, path, self._desk.inbox.folder / f"{PREFIX}-{int(node)}-{mark}.tar"))
        return found

    def _unpack(self, one: Wanted, place: Path) -> None:
        try:
            with one.archive.open("rb") as archive:
                unpack_log(archive, place)
        except NotPlainTar as error:
            raise NotTold(
                f"{one.archive.name} is no archive of a metadata log: {error}",
                where=str(one.archive),
                why="half of a log would say that nothing is missing",
                next_step=f"bring both files again, as README.txt in {self._desk.folder / one.archive.stem} says",
            ) from error

    def _ask(self, one: Wanted) -> Path:
        """Write the request, once, and log it; its folder."""
        folder, name = self._desk.folder / one.archive.stem, one.archive.name
        if (folder / "README.txt").exists():
            return folder
        tar = ("tar", "-C", host_path(one.path), "-cf", "-", "--", *PARTS)  # links are stored as links
        lines = (f"{quote(tar)} > {name}", f"{quote(('sha256sum', name))} > {name}{SUM}")
        text = readme(
            f"Bring the metadata log of controller {int(one.node)}, which is stopped: nothing is changed by it.",
            self._desk.where(one.node), lines, f"{name} and {name}{SUM} back, into {one.archive.parent}", then=NOTES,
        )  # fmt: skip
        self._desk.put(folder, lines, {}, text)
        LOG.info("%s\n%s", folder, text)
        return folder
