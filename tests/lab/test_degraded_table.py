"""A real cluster in hybrid, degraded step by step: what each command answers, and what it must never print.

The rows of `tests/cli/test_degraded_table.py` that need processes, disks and runs that are real; one lab for all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pytest

from migrate.lab.cluster import Lab
from tests.lab.commands import kraft_migrate, stopped
from tests.lab.faults import DiskFault, break_disk, break_process, repair_disk, repair_process

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

FORWARD: Final = re.compile(r"\bnext:? +`?kraft-migrate (?:plan|apply)\b", re.IGNORECASE)
LOOKS: Final = ("status", "plan", "rollback plan", "directories show", "directories verify")
Row = tuple[str, int, tuple[str, ...], tuple[str, ...]]
DOWN: Final = "systemctl start broker-1.service; the log says why it ended"


@contextmanager
def killed(lab: Lab, *names: str) -> Iterator[None]:
    """These processes are gone, as by a power failure."""
    for name in names:
        break_process(lab, name)
    yield
    for name in names:
        repair_process(lab, name)


@contextmanager
def dead_disk(lab: Lab) -> Iterator[None]:
    """A file in the place of one of broker 1's disks: in migration mode the broker halts."""
    break_disk(lab, 1, 2, DiskFault.GONE)
    yield
    repair_disk(lab, 1, 2)
    repair_process(lab, "broker-1")


STATES: Final[dict[str, tuple[Callable[[Lab], AbstractContextManager[None]], str, tuple[Row, ...]]]] = {
    "broker down": (  # how, what status says first when it has come about, and the rows
        lambda lab: killed(lab, "broker-1"),
        "broker 1 is stopped",
        (
            ("status", 3, (DOWN, "rollback READY WITH WORK"), ("READY, from",)),
            ("plan", 3, ("BLOCKED", DOWN), ("READY",)),
            ("rollback plan", 2, ("needs: broker 1: it is down", DOWN), ("Verdict: READY Rollback",)),
            ("directories show", 0, ("broker 1 is stopped",), ("NOT HEALTHY",)),
            ("directories verify", 2, ("broker 1 does not report its log directories",), ("NOT ON DISK",)),
        ),
    ),
    "ZooKeeper down": (
        lambda lab: killed(lab, "zookeeper"),
        "ZooKeeper cannot be read",
        (
            ("status", 3, ("next bring ZooKeeper back", "ledger unknown", "NOT READY"), ("never without",)),
            ("plan", 1, ("INCOMPLETE", "Next: bring ZooKeeper back"), ("READY",)),
            ("rollback plan", 3, ("next bring ZooKeeper back",), ("plan that one",)),
            ("directories show", 0, ("UNKNOWN", "broker 0 ???"), ("no replica states",)),
            ("directories verify", 1, ("the ledger is unknown",), ("VERIFIED",)),
        ),
    ),
    "controllers down": (
        lambda lab: killed(lab, "controller-3000", "controller-3001", "controller-3002"),
        "3 of 3 controllers are stopped",
        (
            ("status", 3, ("systemctl start controller-3000.service", "stage unknown"), ("MigrationZnode",)),
            ("plan", 3, ("never formatted again",), ("READY",)),
            (
                "rollback plan",
                2,
                ("3 of 3 controllers are stopped", "roll back as it is"),
                (),
            ),  # by the controllers' files
            ("directories show", 0, ("broker 0 ???",), ("registered no",)),
            ("directories verify", 2, ("no metadata that could be read",), ("before the copy",)),
        ),
    ),
    "dead disk": (
        dead_disk,
        "broker 1 (stopped)",
        (
            ("status", 3, ("lines `disk` have the commands", "is no folder", "NOT READY"), ("kraft-migrate status",)),
            ("plan", 3, ("BLOCKED", "findings behind it", "repair or replace that disk"), ("error 56", "READY")),
            ("rollback plan", 3, ("Verdict: NOT READY", "one disk is one broker"), ("--confirm",)),
            ("directories show", 2, ("1 not known to be healthy", "NOT ON DISK", "mmD"), ("registered no", "missing")),
            ("directories verify", 2, ("NOT ON DISK",), ()),
        ),
    ),
}


class Desk:
    """Where the operator sits: a lab, and its playbook."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.playbook = folder, str(folder / "playbook.yaml")
        ended = kraft_migrate("lab", "demo", "--dir", str(folder), "--until", "hybrid")
        assert ended.returncode == 0, ended.stderr[-3000:]
        self.lab = Lab.open(folder)

    def asked(self, command: str, *words: str) -> tuple[int, str]:
        """The exit code, and all that was said, in one line."""
        ended = kraft_migrate(*command.split(), self.playbook, *words)
        return ended.returncode, " ".join((ended.stdout + ended.stderr).split())

    def waits(self, first: str) -> None:
        """Until status begins with that; with "" until nothing is wrong."""
        said, end = "", time.monotonic() + 180
        while time.monotonic() < end:
            code, said = self.asked("status")
            if (first in said.partition(" cluster ")[0]) if first else code == 0:
                return
        raise AssertionError(said[:2000])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One for the whole table."""
    folder = tmp_path_factory.mktemp("desk") / "lab"
    try:
        yield Desk(folder)
    finally:
        stopped(folder)


@pytest.mark.parametrize("state", STATES)
def test_no_answer_misleads_in_a_degraded_cluster(state: str, desk: Desk) -> None:
    """Every row in that state; all wrong rows are told at once."""
    degrade, first, rows = STATES[state]
    desk.waits("")
    wrong: list[str] = []
    with degrade(desk.lab):
        desk.waits(first)
        for command, code, names, never in rows:
            found, said = desk.asked(command)
            lacks = [part for part in names if part not in said]
            has = [part for part in never if part in said] + FORWARD.findall(said)
            may = command == "rollback plan" and "Verdict: READY" in said
            has += ["--confirm"] if "--confirm" in said and not may else []
            if found != code or lacks or has or " PROBLEM" not in said:
                wrong.append(f"{command}: exit {found}, lacks {lacks}, has {has}: {said[:600]}")
    desk.waits("")
    assert wrong == [], "\n".join(wrong)


def test_a_run_that_was_killed_in_a_roll_is_continued_by_its_own_command(desk: Desk) -> None:
    """A broker is down between stop and start: no command hands out anything but the run itself."""
    desk.waits("")
    assert desk.asked("plan", "--stage", "kraft-mode")[0] in (0, 2)
    plan = max(desk.folder.glob("runs/*/plan*.json"), key=lambda path: path.stat().st_mtime)
    ended = kraft_migrate("apply", str(plan), crash="before:start:0")
    assert ended.returncode < 0, ended.stderr[-2000:]
    code, said = desk.asked("status")
    assert code == 3
    assert f"broker 0 is stopped: run {plan.parent.name} stopped it and has not ended" in said
    assert "interrupted; no process works on it" in said
    assert f"next kraft-migrate apply {plan}" in said
    code, said = desk.asked("rollback plan")
    assert (code, f"continue run {plan.parent.name}" in said) == (2, True)
    assert kraft_migrate("apply", str(plan)).returncode == 0
    desk.waits("")
