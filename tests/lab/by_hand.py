"""A lab whose units only a person may touch, and a person who does exactly what each instruction's text says.

The folder of an instruction is copied to a folder that represents the host, /bin/sh runs each line of its commands.txt
there, and the answer is put into the inbox.  systemctl is the lab's stand-in (`migrate.lab.units`).

`python -m tests.lab.by_hand DIR STAGE [TURN]` is `lab demo --until STAGE [--rollback-from TURN]` on such a lab.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, Self

from migrate.cli.demo import Demo, DemoOptions
from migrate.cli.options import stage_named
from migrate.cli.progress import ProgressLines
from migrate.cli.rollback_demo import TURNS, RollbackDemo
from migrate.errors import LabNotReady
from migrate.hosts.manual.desk import CLOSED, COULD_NOT, FOLDER, Desk
from migrate.hosts.properties import parse
from migrate.hosts.runner import Completed, LocalRunner
from migrate.java.find import Java
from migrate.java.jars import KafkaJars
from migrate.lab.cluster import Lab
from migrate.lab.host import BIN, HOME
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import Topology
from migrate.lab.units import SUFFIX
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.stage import MIGRATION, Stage
from migrate.report.run_report import AT_BOOT
from migrate.report.run_values import Claim, Holds
from migrate.run.carry_out import RunFolder

HOST: Final = "host"
INBOX: Final = "inbox"
SECONDS: Final = 120.0
FILL: Final = re.compile(
    r"in the file `([^`]+)` replace the placeholder behind (\S+)= by that key's value in [^:]*:(\S+)"
)
# a person's `systemctl stop` waits for the end, and the stand-in knows the host program's words alone
SYSTEMCTL: Final = """#!/bin/sh
[ "$1 $2" = "stop --" ] || exec "{stand_in}" "$@"
PYTHONPATH="{package}" exec "{python}" -m tests.lab.by_hand stop "{state}" "$3"
"""


class LabByHand(Lab):
    """A lab with the executor `manual`."""

    @property
    def inventory(self) -> Inventory:
        """The nodes as units of one host, and no way to it."""
        found = super().inventory
        options = {"inbox": str(self.topology.folder(INBOX)), "kafka_home": str(self.topology.folder(HOST) / HOME)}
        return replace(found, executor="manual", executor_options=options)

    def describe(self, java: Java, jars: KafkaJars) -> None:
        """The programs of the simulated host, and the inbox."""
        super().describe(java, jars)
        self.topology.folder(INBOX).mkdir(mode=0o700, exist_ok=True)
        folder = self.topology.folder(HOST)
        stand_in = (folder / BIN / "systemctl").rename(folder / BIN / "stand-in")
        package, state = Path(__file__).parents[2], self.topology.processes
        text = SYSTEMCTL.format(stand_in=stand_in, package=package, python=sys.executable, state=state)
        (folder / BIN / "systemctl").write_text(text)
        (folder / BIN / "systemctl").chmod(0o755)


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


class DemoByHand(Demo):
    """The demo, by a person."""

    lab: ClassVar[type[Lab]] = LabByHand

    def run(self) -> int:
        """With the person at work."""
        with Person(self._lab.topology, self._lines.say):
            return super().run()

    def _begin(self) -> Playbook:
        playbook = super()._begin()
        if not self._state().get("looked"):
            ask_to_look_everywhere(self._lab.inventory)
            self._remember(looked=True)
        return playbook

    def _from_its_files(self) -> Claim:
        """Seen by the lab itself: no instruction brings an answer that knows what was created since."""
        by_hand, self._lab = self._lab, Lab.open(self._options.directory)
        try:
            return super()._from_its_files()
        finally:
            self._lab = by_hand

    def _last_claims(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        yield from super()._last_claims(folder, playbook)
        if self._options.until is Stage.CLEANUP:
            yield Claim(AT_BOOT, Holds.NOT_CLAIMED, "the lab's processes are no systemd units: no boot starts them")


class RollbackByHand(DemoByHand, RollbackDemo):
    """The rehearsal of a rollback, by a person."""


def main(directory: str, until: str, turn: str = "") -> int:
    """The exit code of the demo in that folder; without load where it ends before the copy."""
    stage = stage_named(until, MIGRATION)
    options = DemoOptions(
        Path(directory), None, stage, keep=False, load=stage > Stage.MIGRATION_MODE or bool(turn), executor="manual"
    )
    lines = ProgressLines()
    return RollbackByHand(options, lines, TURNS[turn]).run() if turn else DemoByHand(options, lines).run()


if __name__ == "__main__":
    if sys.argv[1] == "stop":
        Supervisor(sys.argv[2]).stop(sys.argv[3].removesuffix(SUFFIX), SECONDS)
    else:
        sys.exit(main(*sys.argv[1:]))
