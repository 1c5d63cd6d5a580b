"""Instructions on disk: written once, awaited until their effect is seen, resumed after an interruption.

RUNS/manual/NN-node-effect/ holds README.txt, commands.txt, the files that go with them, and `instruction.json`;
`closed.json` says how it ended.  At most one is open.

The operator also brings stopped controllers' metadata logs, only where one is needed: no controller runs, and the
collector saw a log.  The archive's name holds the id of the collector's answer that reported the stopped controller:
what is in the inbox from before a later instruction, or a later look, has another name, and is deleted unread.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.resources
import json
import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from migrate.errors import InstructionDamaged, MetadataAwaited, NotTold, PersonCouldNot
from migrate.hosts.collect_disks import Digest, keyed
from migrate.hosts.commands import path as host_path
from migrate.hosts.commands import quote
from migrate.hosts.files import read_no_follow, replace_file
from migrate.hosts.manual.commands import CONTENT, Order, Proof, collector_words, readme
from migrate.hosts.manual.reports import Answer, Inbox, Watched
from migrate.hosts.remote_files import PARTS, unpack_log
from migrate.model import limits, strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.plain_tar import NotPlainTar
from migrate.model.strict_json import Each

LOG: Final = logging.getLogger("migrate.manual")
FOLDER: Final = "manual"
TELL_AGAIN: Final = 60.0  # seconds
POLL: Final = 0.25
OBSERVED: Final = "observed"
COULD_NOT: Final = "could-not"
CLOSED: Final = "closed.json"
RECORD: Final = "instruction.json"
COMMANDS: Final = "commands.txt"
SHAPE: Final = {  # of RECORD
    **dict.fromkeys(("id", "effect", "what", "host", "key", "since"), str),
    "number": int,
    "node": int,
    "proofs": [Each(str)],
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """A written instruction; `closed` is "" while it is open."""

    folder: Path
    number: int
    id: str
    node: NodeId
    effect: str
    what: str
    host: str
    key: str
    since: str
    proofs: tuple[Proof, ...]
    closed: str

    @property
    def refusal(self) -> Path:
        """The file with the operator's reason for not carrying it out."""
        return self.folder / COULD_NOT

    def refuse(self, reason: str) -> None:
        """Record that the operator could not carry it out: the waiting run reads that."""
        replace_file(str(self.refusal), f"{reason}\n".encode())


Seen = Callable[[Instruction, Proof], str]  # "" where it is seen, else what is seen instead


def _pause() -> None:
    threading.Event().wait(POLL)


class Desk:
    """The instructions of one cluster."""

    def __init__(self, inventory: Inventory, pause: Callable[[], None] = _pause) -> None:
        self.inventory = inventory
        self.folder = Path(inventory.runs) / FOLDER
        self.inbox = Inbox(Path(inventory.executor_options["inbox"]))
        self._pause = pause

    # -- what is there -----------------------------------------------------------------------------------------------
    def all(self) -> list[Instruction]:
        if not self.folder.is_dir():
            return []
        return sorted((_read(path.parent) for path in self.folder.glob(f"*/{RECORD}")), key=lambda one: one.number)

    def open(self) -> Instruction | None:
        """The open instruction, which a run waits for."""
        return next((one for one in self.all() if not one.closed), None)

    def wanted(self, node: NodeId) -> str:
        """The id that an answer of that node must echo: older answers do not show later changes."""
        last = self.last(node)
        return last.id if last is not None else ""

    def answer(self, node: NodeId) -> Answer | Unknown:
        return self.inbox.latest(node, self.wanted(node))

    def last(self, node: NodeId) -> Instruction | None:
        mine = [one for one in self.all() if one.node == node]
        return mine[-1] if mine else None

    def last_turn(self, node: NodeId) -> str:
        """The last requested `stop` or `start` of the node, once seen; "" where it is open or was refused."""
        turns = [one for one in self.all() if one.node == node and one.effect in ("stop", "start")]
        return turns[-1].effect if turns and turns[-1].closed == OBSERVED else ""

    def since_turn(self, node: NodeId) -> float:
        """Seconds since the last stop or start of that node was seen; infinite where there was none."""
        done = [one for one in self.all() if one.node == node and one.effect in ("stop", "start") and one.closed]
        return time.time() - (done[-1].folder / CLOSED).stat().st_mtime if done else float("inf")

    def digest(self) -> Digest:
        """The digester of secrets, under the key that goes with every instruction."""
        return keyed(self._key())

    def _key(self) -> bytes:
        path = self.folder / "key"
        try:
            return path.read_bytes()
        except FileNotFoundError:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(str(path), secrets.token_hex(32).encode())
            return path.read_bytes()

    # -- texts that are known --------------------------------------------------------------------------------------
    def text_of(self, file: Watched) -> bytes:
        """A file's text as plans have it: as this tool wrote it if its SHA-256 proves so, else with secrets hidden."""
        try:
            return (self.folder / "texts" / file.sha256).read_bytes()
        except FileNotFoundError:
            return file.shown

    def _remember(self, instruction: Instruction, answer: Answer) -> None:
        content = instruction.folder / CONTENT
        if not content.exists():
            return
        target = self.folder / "texts"
        target.mkdir(exist_ok=True, mode=0o700)
        for proof in instruction.proofs:
            file = answer.watched.get(proof.path)
            if proof.kind in ("file", "shown") and file is not None and file.kind == "file":
                replace_file(str(target / file.sha256), content.read_bytes())

    # -- asking ------------------------------------------------------------------------------------------------------
    def ask_to_look(self, node: NodeId) -> Path:
        """Write how to run the collector on a node's host, without an instruction; return the folder."""
        folder = self.folder / f"look-{int(node)}"
        words = self._collector(node, "", ())
        text = f"{quote(words)} > answer-{int(node)}.json\n"
        self.put(folder, {COMMANDS: text.encode()}, _LOOK.format(self.inbox.folder, text))
        return folder

    def carry_out(self, order: Order, seen: Seen) -> None:
        """Write the order, or resume it, and wait until all of it is seen.

        Raises:
            PersonCouldNot: the operator reported it.
        """
        waiting = self.open()
        if waiting is not None and waiting.key != order.key:
            self._wait(waiting, seen)
            waiting = None
        self._wait(waiting or self._render(order), seen)

    def resume(self, seen: Seen) -> None:
        """Wait for the instruction that an interrupted run left open, if any."""
        waiting = self.open()
        if waiting is not None:
            self._wait(waiting, seen)

    def _render(self, order: Order) -> Instruction:
        number = max((one.number for one in self.all()), default=0) + 1
        identity = f"{number:03}-{secrets.token_hex(6)}"
        name = f"{number:03}-{int(order.node)}-{order.effect}"
        collector = quote(self._collector(order.node, identity, order.watch))
        lines = [*order.commands, f"{collector} > answer-{identity}.json"]
        since = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
        record: dict[str, Any] = {
            "number": number, "id": identity, "node": int(order.node), "effect": order.effect, "what": order.what,
            "host": order.host, "key": order.key, "since": since,
            "proofs": [asdict(proof) for proof in order.proofs],
        }  # fmt: skip
        text = readme(order, identity, lines, str(self.inbox.folder), since)
        rendered = self.folder / f".{name}"
        shutil.rmtree(rendered, ignore_errors=True)
        self.put(
            rendered,
            {
                **order.files,
                COMMANDS: "".join(f"{line}\n" for line in lines).encode(),
                RECORD: json.dumps(record, indent=1).encode(),
            },
            text,
        )
        os.rename(rendered, self.folder / name)  # noqa: PTH104 - whole or not at all
        LOG.info("%s\n%s", self.folder / name, text)
        return _read(self.folder / name)

    def put(self, folder: Path, files: dict[str, bytes], readme_text: str) -> None:
        """Write a folder to copy to a host: these files, the collector, its key; the file to act on comes last."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        collector = importlib.resources.files("migrate.hosts").joinpath("collect_disks.py").read_bytes()
        every = {"collect_disks.py": collector, "key": self._key(), "README.txt": readme_text.encode(), **files}
        for name, raw in sorted(every.items(), key=lambda entry: entry[0] == COMMANDS):
            replace_file(str(folder / name), raw)

    def _collector(self, node: NodeId, identity: str, watch: Sequence[str]) -> tuple[str, ...]:
        entry = self.inventory.node(node)
        apart = (entry.metadata_directory,) if isinstance(entry, ControllerNode) else ()
        return collector_words(node, identity, entry.config, apart, (*apart, *watch))

    def wait_for(self, what: str, reached: Callable[[], bool], seconds: float) -> None:
        """Wait for an effect that needs no operator, and log it; after the time-out the operator is asked after all."""
        told, begun = 0.0, time.monotonic()
        while not reached() and time.monotonic() - begun < seconds:
            if not told or time.monotonic() - told > TELL_AGAIN:
                told = time.monotonic()
                LOG.info("waiting for %s; the next instruction comes then", what)
            self._pause()

    # -- waiting -----------------------------------------------------------------------------------------------------
    def _wait(self, instruction: Instruction, seen: Seen) -> None:
        said, told = "", 0.0
        while missing := [text for proof in instruction.proofs if (text := seen(instruction, proof))]:
            if instruction.refusal.exists():
                self._refused(instruction)
            if missing[0] != said or time.monotonic() - told > TELL_AGAIN:
                said, told = missing[0], time.monotonic()
                LOG.info(
                    "waiting for manual action on %s: %s, since %s (instruction %s in %s): %s; the run then continues",
                    instruction.host, instruction.what, instruction.since, instruction.id, instruction.folder, said,
                )  # fmt: skip
            self._pause()
        answer = self.inbox.latest(instruction.node, instruction.id)
        assert not isinstance(answer, Unknown)  # a proof rests on it
        self._remember(instruction, answer)
        self._close(instruction, OBSERVED, "")
        LOG.info("seen: %s", instruction.what)

    def _close(self, instruction: Instruction, how: str, reason: str) -> None:
        replace_file(str(instruction.folder / CLOSED), json.dumps({"how": how, "reason": reason}).encode())

    def _refused(self, instruction: Instruction) -> None:
        reason = " ".join(instruction.refusal.read_text(encoding="utf-8", errors="replace").split())[:2000]
        self._close(instruction, COULD_NOT, reason)
        raise PersonCouldNot(
            f"instruction {instruction.id} ({instruction.what}) was not carried out: {reason or 'no reason given'}",
            where=f"{instruction.host}, node {int(instruction.node)}",
            why="what of it was done is known again once the collector's answer to it is in the inbox",
        )


_LOOK: Final = """Look at this node: nothing is changed by it.

1. Copy this folder to the node's host, and work in the copy.
2. Run the line of commands.txt as Kafka's own user.
3. Bring the answer back, into {} on the host that runs kraft-migrate.

    {}"""


def _read(folder: Path) -> Instruction:
    """The instruction in a folder.  Raises InstructionDamaged."""
    try:
        record = strict_json.mapping(_bytes(folder / RECORD), SHAPE, surrogates=True)
        closed = ""
        if (folder / CLOSED).exists():
            closed = strict_json.mapping(_bytes(folder / CLOSED), {"how": str})["how"]
        proofs = tuple(Proof(**entry) for entry in record.pop("proofs"))
        node = NodeId(record.pop("node"))
        return Instruction(folder=folder, node=node, proofs=proofs, closed=closed, **record)
    except (OSError, ValueError, TypeError) as error:  # a field too many is a TypeError
        raise InstructionDamaged(f"it is not what was rendered: {error}", where=str(folder)) from error


def _bytes(path: Path) -> bytes:
    return read_no_follow(str(path), limit=limits.most("instruction"))


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
        names = {one.name for one in wanted.values()}
        for path in self._desk.inbox.folder.glob(f"{PREFIX}-*.tar*"):  # earlier ones hold credentials, and are not used
            if path.name.removesuffix(SUM).removesuffix(".tar") not in names:
                path.unlink(missing_ok=True)
        missing = [(one, why) for one in wanted.values() if (why := self._missing(one))]
        if missing:
            for one, _ in missing:
                self._ask(one)
            nodes = ", ".join(f"{int(one.node)} at {one.host}" for one, _ in missing)
            raise MetadataAwaited(
                f"the metadata logs of the stopped controllers are needed (node {nodes}): {missing[0][1]}",
                where=", ".join(f"RUNS/manual/{one.name}" for one, _ in missing),
                why="what a stopped controller last wrote is checked before another one may start, "
                "and before a rollback",
                next_step="bring what each README.txt there asks for; a waiting run then continues",
            )
        with tempfile.TemporaryDirectory(prefix="kraft-migrate-metadata-") as kept:
            places = {node: Path(kept) / str(int(node)) for node in directories}
            for node, place in places.items():
                place.mkdir()
                if node in wanted:
                    self._unpack(wanted[node], place)
            yield places

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
        mark = answer.instruction or f"look-{answer.collected.taken}"
        return Wanted(node, self._desk.inventory.node(node).host, path, f"{PREFIX}-{int(node)}-{mark}")

    def state(self, directories: Mapping[NodeId, str]) -> object:
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
        tar = ("tar", "-C", host_path(one.path), "-cf", "-", "--", *PARTS)  # links are stored as links
        summed = ("sha256sum", f"{one.name}.tar")
        lines = (f"{quote(tar)} > {one.name}.tar", f"{quote(summed)} > {one.name}.tar{SUM}")
        text = _README.format(
            node=int(one.node), host=one.host, name=one.name, inbox=self._desk.inbox.folder,
            commands="\n".join(f"    {line}" for line in lines),
        )  # fmt: skip
        self._desk.put(folder, {"commands.txt": "".join(f"{line}\n" for line in lines).encode()}, text)
        LOG.info("%s\n%s", folder, text)


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
