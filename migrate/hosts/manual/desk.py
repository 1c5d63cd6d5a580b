"""Instructions on disk: written once, awaited until their effect is seen, resumed after an interruption.

RUNS/manual/NN-node-effect/ holds README.txt, commands.txt, the files that go with them, and `instruction.json`;
`closed.json` says how it ended.  At most one is open.
"""

from __future__ import annotations

import importlib.resources
import json
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from migrate.errors import InstructionDamaged, PersonCouldNot
from migrate.hosts.collect_disks import Digest, keyed
from migrate.hosts.commands import quote
from migrate.hosts.files import read_no_follow, replace_file
from migrate.hosts.manual.commands import (
    CONTENT,
    Order,
    Proof,
    check_proof,
    collector_words,
    order_readme,
    readme,
)
from migrate.hosts.manual.reports import Answer, Inbox, Watched
from migrate.hosts.manual.witness import REFUSES, Witness
from migrate.model import limits, strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode, Inventory
from migrate.model.outcome import Unknown
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
TURNS: Final = ("stop", "start")
SHAPE: Final = {  # of RECORD
    **dict.fromkeys(("id", "effect", "what", "host", "since"), str),
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


def _pause() -> None:
    threading.Event().wait(POLL)


class Desk:
    """The instructions of one cluster."""

    def __init__(
        self, inventory: Inventory, witness: Witness | None = None, pause: Callable[[], None] = _pause
    ) -> None:
        self.inventory = inventory
        self.witness = witness or Witness(inventory)
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

    def last(self, node: NodeId, *effects: str) -> Instruction | None:
        """The last instruction for that node; of these effects, where some are named."""
        mine = [one for one in self.all() if one.node == node and (not effects or one.effect in effects)]
        return mine[-1] if mine else None

    def answer(self, node: NodeId) -> Answer | Unknown:
        """The answer to the node's last instruction: older ones do not show later changes."""
        last = self.last(node)
        return self.inbox.answer(node, "" if last is None else last.id)

    def last_turn(self, node: NodeId) -> str:
        """The last requested `stop` or `start` of the node, once seen; "" where it is open or was refused."""
        last = self.last(node, *TURNS)
        return last.effect if last is not None and last.closed == OBSERVED else ""

    def since_turn(self, node: NodeId) -> float:
        """Seconds since the last stop or start of that node was seen; infinite where none was."""
        last = self.last(node, *TURNS)
        return (
            time.time() - (last.folder / CLOSED).stat().st_mtime if last is not None and last.closed else float("inf")
        )

    def where(self, node: NodeId) -> str:
        """Host and node, in the words of instructions."""
        return f"{self.inventory.node(node).host}   (node {int(node)})"

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

    def _remember(self, instruction: Instruction) -> None:
        content, answer = instruction.folder / CONTENT, self.inbox.answer(instruction.node, instruction.id)
        assert not isinstance(answer, Unknown)  # a proof rests on it
        for proof in instruction.proofs if content.exists() else ():
            file = answer.watched.get(proof.path)
            if proof.kind in ("file", "shown") and file is not None and file.kind == "file":
                target = self.folder / "texts"
                target.mkdir(exist_ok=True, mode=0o700)
                replace_file(str(target / file.sha256), content.read_bytes())

    # -- asking ------------------------------------------------------------------------------------------------------
    def ask_to_look(self, node: NodeId) -> Path:
        """Write how to run the collector on a node's host, without an instruction; return the folder."""
        name = f"answer-{int(node)}.json"
        line = f"{quote(self._collector(node, '', ()))} > {name}"
        self.put(
            self.folder / f"look-{int(node)}", [line], {},
            readme("Look at this node: nothing is changed by it. Kafka's own user may do it.", self.where(node), [line],
                   f"{name} back, under that name, into {self.inbox.folder}"),
        )  # fmt: skip
        return self.folder / f"look-{int(node)}"

    def carry_out(self, order: Order) -> None:
        """Write the order and wait until all of it is seen; what is open comes first.

        Raises:
            PersonCouldNot: the operator reported it.
        """
        self.resume()
        self._wait(self._render(order))

    def resume(self) -> None:
        """Wait for the instruction that an interrupted run left open, if any."""
        waiting = self.open()
        if waiting is not None:
            self._wait(waiting)

    def _render(self, order: Order) -> Instruction:
        number = max((one.number for one in self.all()), default=0) + 1
        identity = f"{number:03}-{secrets.token_hex(6)}"
        name = f"{number:03}-{int(order.node)}-{order.effect}"
        collector = quote(self._collector(order.node, identity, order.watch))
        lines = [*order.commands, f"{collector} > answer-{identity}.json"]
        record: dict[str, Any] = {
            "number": number, "id": identity, "node": int(order.node), "effect": order.effect, "what": order.what,
            "host": self.inventory.node(order.node).host,
            "since": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()),
            "proofs": [asdict(proof) for proof in order.proofs],
        }  # fmt: skip
        text = order_readme(order, identity, self.where(order.node), lines, str(self.inbox.folder))
        rendered = self.folder / f".{name}"
        shutil.rmtree(rendered, ignore_errors=True)
        self.put(rendered, lines, {**order.files, RECORD: json.dumps(record, indent=1).encode()}, text)
        os.rename(rendered, self.folder / name)  # noqa: PTH104 - whole or not at all
        LOG.info("%s\n%s", self.folder / name, text)
        return _read(self.folder / name)

    def put(self, folder: Path, lines: Sequence[str], files: Mapping[str, bytes], text: str) -> None:
        """Write a folder to copy to a host: text, files, the collector, its key; the lines to act on come last."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        collector = importlib.resources.files("migrate.hosts").joinpath("collect_disks.py").read_bytes()
        commands = "".join(f"{line}\n" for line in lines).encode()
        every = {"collect_disks.py": collector, "key": self._key(), "README.txt": text.encode(), **files}
        for name, raw in (*sorted(every.items()), (COMMANDS, commands)):
            replace_file(str(folder / name), raw)

    def _collector(self, node: NodeId, identity: str, watch: Sequence[str]) -> tuple[str, ...]:
        entry = self.inventory.node(node)
        apart = (entry.metadata_directory,) if isinstance(entry, ControllerNode) else ()
        return collector_words(node, identity, entry.config, apart, (*apart, *watch))

    # -- waiting -----------------------------------------------------------------------------------------------------
    def seen(self, instruction: Instruction, proof: Proof) -> str:
        """Check a proof, by the answer that echoes its id or by the network: "" where it holds, else what was seen."""
        if proof.kind == "refuses":
            found = self.witness.connects(instruction.node)
            return "" if found == REFUSES else f"its address: {found}"
        if proof.kind == "unregistered":
            return self.witness.named_by(instruction.node)
        answer = self.inbox.answer(instruction.node, instruction.id)
        return answer.reason if isinstance(answer, Unknown) else check_proof(answer, proof)

    def wait_for(self, what: str, reached: Callable[[], bool], seconds: float) -> None:
        """Wait for an effect that needs no operator, and log it; after the time-out the operator is asked after all."""
        begun = time.monotonic()
        LOG.info("waiting for %s; the next instruction comes then", what)
        while not reached() and time.monotonic() - begun < seconds:
            self._pause()

    def _wait(self, instruction: Instruction) -> None:
        said, told = "", 0.0
        while missing := [text for proof in instruction.proofs if (text := self.seen(instruction, proof))]:
            if instruction.refusal.exists():
                self._refused(instruction)
            if missing[0] != said or time.monotonic() - told > TELL_AGAIN:
                said, told = missing[0], time.monotonic()
                LOG.info(
                    "waiting for manual action on %s: %s, since %s (instruction %s in %s): %s; the run then continues",
                    instruction.host, instruction.what, instruction.since, instruction.id, instruction.folder, said,
                )  # fmt: skip
            self._pause()
        self._remember(instruction)
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
