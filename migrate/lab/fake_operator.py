"""A simulated operator for a lab with the manual executor: does exactly what each instruction's text says.

The folder of an instruction is copied to a folder that represents the host, /bin/sh runs each line of its commands.txt
there, and the answer is put into the inbox.  systemctl is the lab's stand-in (`migrate.lab.fake_systemd`).
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from migrate.errors import LabNotReady
from migrate.hosts.manual.instructions import CLOSED, COULD_NOT, FOLDER, Desk
from migrate.hosts.properties import parse
from migrate.hosts.runner import Completed, LocalRunner
from migrate.hosts.supervisor import ProcessSpec
from migrate.lab.ssh_access import BIN, HOME, lay_programs
from migrate.lab.topology import Topology
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown

HOST: Final = "host"
INBOX: Final = "inbox"
SECONDS: Final = 120.0
FILL: Final = re.compile(
    r"in the file `([^`]+)` replace the placeholder behind (\S+)= by that key's value in [^:]*:(\S+)"
)


def options(topology: Topology) -> dict[str, str]:
    return {"inbox": str(topology.folder(INBOX)), "kafka_home": str(topology.folder(HOST) / HOME)}


def lay_out(topology: Topology, specs: dict[str, ProcessSpec]) -> None:
    """Write the programs of the simulated host, and the inbox."""
    topology.folder(INBOX).mkdir(mode=0o700, exist_ok=True)
    lay_programs(topology, topology.folder(HOST), specs)


def ask_to_look_everywhere(inventory: Inventory) -> None:
    """Have the collector run for every node, and wait for its answers.

    Raises:
        LabNotReady: the person could not.
    """
    desk = Desk(inventory)
    folders = [desk.ask_to_look(node.id) for node in inventory.nodes]
    while any(isinstance(desk.answer(node.id), Unknown) for node in inventory.nodes):
        if refused := next((folder for folder in folders if (folder / COULD_NOT).exists()), None):
            raise LabNotReady("the collector could not be run", where=str(refused / COULD_NOT))
        threading.Event().wait(0.2)


class Person:
    """Carries out instructions while the context lasts; `say` gets failures."""

    def __init__(self, topology: Topology, say: Callable[[str], None]) -> None:
        self._topology = topology
        self._orders = topology.folder("runs") / FOLDER
        self._desk = topology.folder(HOST) / "instructions"
        self._say = say
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="person", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._end.wait(0.1):
            for folder in sorted(self._orders.glob("[!.]*/")):
                if (folder / "commands.txt").exists() and not (folder / CLOSED).exists():
                    try:
                        self.do(folder)
                    except Exception as error:  # noqa: BLE001 - else nobody works, and the run waits for ever
                        self._say(f"{folder.name}: {error!r}")
                        (folder / COULD_NOT).write_text(repr(error))
                        (self._desk / folder.name / "done").touch()

    def do(self, folder: Path) -> None:
        """Carry out one instruction, once: a complete copy of it marks it as done."""
        copy = self._desk / folder.name
        if (copy / "done").exists():
            return
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        self._fill(copy)
        for line in (copy / "commands.txt").read_text().splitlines():
            done = self._run(line, copy)
            if done.code:
                self._say(f"{folder.name}: {line}: {done.says}")
                (folder / COULD_NOT).write_text(f"{line}: {done.says}")
                break
        (copy / "done").touch()
        for answer in sorted([*copy.glob("answer-*.json"), *copy.glob("metadata-*.tar*")]):
            self._bring(answer)

    def _fill(self, copy: Path) -> None:
        for name, key, source in FILL.findall((copy / "README.txt").read_text()):
            value = parse(Path(source).read_bytes(), source)[key]
            lines = (copy / name).read_text().splitlines(keepends=True)
            filled = [f"{key}={value}\n" if line.partition("=")[0].strip() == key else line for line in lines]
            (copy / name).write_text("".join(filled))

    def _run(self, line: str, folder: Path) -> Completed:
        path = f"{self._topology.folder(HOST) / BIN}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        words = ("env", "-C", str(folder), f"PATH={path}", "LC_ALL=C", "/bin/sh", "-c", line)
        return LocalRunner().run(words, seconds=SECONDS)

    def _bring(self, answer: Path) -> None:
        inbox = self._topology.folder(INBOX)
        shutil.copy(answer, inbox / f".{answer.name}")
        os.replace(inbox / f".{answer.name}", inbox / answer.name)  # noqa: PTH105 - whole or not at all
