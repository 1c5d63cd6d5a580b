"""What each command answers in a degraded cluster, a row each: what it must name, and what it must never print.

The answers are those that are kept byte for byte of worlds (`tests/golden`); numbers are those of a tired operator's
list.  The same rows on a real cluster: `tests/lab/test_degraded_table.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

KEPT: Final = Path(__file__).parents[1] / "golden" / "commands"
DOWN, DISK, NO_ZK, NO_CTRL = (
    "23-broker-down",
    "22-dead-disk-in-kraft-mode",
    "24-zookeeper-down",
    "14-controllers-stopped",
)
SILENT, UNSEEN, HALF, BACK = (
    "26-no-controller-answers",
    "27-unseen-disks",
    "07-half-to-kraft-mode",
    "13-half-back-to-migration-mode",
)
OLD_DISK, ROLLED_DISK, NO_ZK_YET = (
    "20-dead-disk-in-zookeeper-mode",
    "21-dead-disk-in-hybrid",
    "25-zookeeper-down-before-all",
)
END: Final = "12-cleaned-up"
BOTH: Final = "23-broker-and-its-disk-down"
START: Final = "on b1: start broker 1; the log says why it ended; then"
READABLE: Final = "let this host reach, and the user of this tool read"
FORWARD: Final = re.compile(r"\bnext:? +`?kraft-migrate (?:plan|apply)\b", re.IGNORECASE)
NEVER: Final = ("MigrationZnode(", "Errno", "make the plan again", "--help", "E-DEFECT")
Row = tuple[str, str, str, int, tuple[str, ...], tuple[str, ...]]
ROWS: Final[tuple[Row, ...]] = (  # number, world, command, exit code, what it names, what it never says
    (
        "81",
        DOWN,
        "status",
        3,
        ("1 stopped migration migration", START, "6 partitions under-replicated"),
        ("READY, from",),
    ),
    ("83", DOWN, "plan", 3, ("BLOCKED (1 blocker)", START, "it is fenced in the metadata"), ("READY WITH WARNINGS",)),
    ("84", DOWN, "rollback-plan", 2, ("READY WITH WORK", "needs: broker 1: it is down", START), ("Verdict: READY C",)),
    ("85", DOWN, "diff", 0, ("broker 1 is stopped on b1",), ()),
    ("85b", DOWN, "directories-show", 0, ("broker 1 is stopped on b1", "broker 1 mmm 6"), ()),
    ("85c", DOWN, "directories-verify", 0, ("broker 1 is stopped on b1",), ("NOT ON DISK",)),
    (
        "92",
        NO_ZK,
        "status",
        3,
        ("next bring ZooKeeper back", "33 s without a controller"),
        ("never without", "ledger 0"),
    ),
    ("94", NO_ZK, "diff", 1, ("cannot be compared: ZooKeeper is unknown", "status"), ("0 differences",)),
    ("94b", NO_ZK, "directories-verify", 1, ("the ledger is unknown", "1 PROBLEM"), ("VERIFIED",)),
    ("94c", NO_ZK, "directories-show", 0, ("18 replicas: 18 UNKNOWN", "broker 0 ??? 6"), ("no replica states",)),
    ("95", NO_ZK, "rollback-plan", 3, ("next bring ZooKeeper back",), ("plan that one",)),
    ("96", NO_ZK, "plan", 1, ("INCOMPLETE", "Next: bring ZooKeeper back; then"), ("READY",)),
    (
        "96b",
        NO_ZK_YET,
        "status",
        3,
        ("stage unknown", "from: unknown", "next bring ZooKeeper back"),
        ("nothing was begun",),
    ),
    ("96c", NO_ZK_YET, "rollback-plan", 3, ("next bring ZooKeeper back",), ("nothing to roll back",)),
    (
        "97",
        DISK,
        "status",
        3,
        ("repair or replace that disk: the lines `disk` have the commands", "meta.properties"),
        ("kraft-migrate status",),
    ),
    ("97b", ROLLED_DISK, "status", 3, ("rollback NOT READY", "stop broker 0 first"), ("rollback READY",)),
    ("97c", OLD_DISK, "status", 3, ("do not run kafka-storage format", "broker 2: /data/b2/d2"), ()),
    ("97d", OLD_DISK, "rollback-plan", 3, ("there is nothing to roll back",), ("plan that one",)),
    (
        "98",
        ROLLED_DISK,
        "rollback-plan",
        3,
        ("Verdict: NOT READY", "one disk is one broker in migration mode"),
        ("fits in",),
    ),
    ("100", DISK, "plan", 3, ("BLOCKED (1 blocker)", "4 findings behind it", "/data/b1/d2"), ("error 56", "Wait for")),
    (
        "100b",
        BOTH,
        "plan",
        3,
        ("BLOCKED (1 blocker)", "5 findings behind it", "broker 1 is stopped on b1"),
        ("start b",),
    ),
    (
        "100c",
        BOTH,
        "status",
        3,
        ("broker 1 (stopped): /data/b1/d2", "the lines `disk` have the commands"),
        ("on b1: start broker 1",),
    ),
    (
        "101",
        DISK,
        "directories-show",
        2,
        ("1 not known to be healthy", "2 NOT ON DISK", "VVD", "registered yes"),
        ("VVV 6 0 B ? 2",),
    ),
    ("101b", DISK, "directories-verify", 2, ("directories rescue", "/data/b1/d2 of broker 1 is broken"), ()),
    (
        "63",
        UNSEEN,
        "status",
        3,
        ("node 2: its disks were not seen: ssh to b2", READABLE, "UNKNOWN 6"),
        ("broker 2: VERIFIED",),
    ),
    (
        "63b",
        UNSEEN,
        "directories-show",
        2,
        ("1 broker not seen", "broker 2 ? 6", "registered ?"),
        ("registered no", "missing"),
    ),
    (
        "63c",
        UNSEEN,
        "directories-verify",
        2,
        ("broker 2: 6 replicas UNKNOWN: disks: ssh to b2: no route to host",),
        ("t0-0 @",),
    ),
    ("63d", UNSEEN, "plan", 1, ("the disks of broker 2: ssh to b2: no route to host", READABLE), ("READY",)),
    ("63e", UNSEEN, "rollback-plan", 3, ("Verdict: NOT READY", "make its log directories readable"), ()),
    (
        "controllers",
        NO_CTRL,
        "status",
        3,
        ("3 of 3 controllers are stopped", "on c3000: start controller 3000"),
        ("copy,",),
    ),
    (
        "controllers 2",
        NO_CTRL,
        "plan",
        3,
        ("never formatted again", "copied up to metadata offset 500"),
        ("INCOMPLETE",),
    ),
    ("controllers 3", NO_CTRL, "diff", 1, ("the metadata is unknown",), ("0 differences",)),
    (
        "controllers 4",
        NO_CTRL,
        "directories-verify",
        2,
        ("no metadata that could be read: 18 UNKNOWN",),
        ("before the copy",),
    ),
    ("controllers 5", NO_CTRL, "directories-show", 0, ("broker 0 ??? 6", "6 UNKNOWN"), ("registered no",)),
    ("silent", SILENT, "status", 3, ("no controller answers", "stage unknown"), ("nothing is copied",)),
    ("silent 2", SILENT, "plan", 3, ("the stage of the cluster is unknown",), ("READY",)),
    ("silent 3", SILENT, "directories-verify", 2, ("18 UNKNOWN", "kraft: no controller answers"), ("before the copy",)),
    ("at its end", END, "status", 0, ("rollback not possible any more", "no controller has the flag"), ("[]",)),
    (
        "at its end 2",
        END,
        "plan",
        2,
        ("now: not possible any more: the migration is finalized",),
        ("hybrid: stop", "[]"),
    ),
    ("at its end 3", END, "rollback-plan", 3, ("`kraft-migrate status` has its next step",), ("roll every broker",)),
    ("at its end 4", END, "diff", 1, ("the migration is finalized", "nothing is left to compare"), ("same command",)),
    ("mid-roll", HALF, "status", 0, ("kraft-mode half done", "plan playbook.yaml --stage kraft-mode"), ("PROBLEM",)),
    ("mid-roll 2", HALF, "directories-verify", 0, ("MIGRATING: expected until its restart",), ("PROBLEM",)),
    ("mid-roll down", BACK, "status", 3, (START, "half of kraft-mode", "hybrid, kraft-mode half done"), ()),
    ("mid-roll down 2", BACK, "rollback-plan", 2, (START, "broker 1: it is down"), ()),
    ("mid-roll down 3", BACK, "plan", 3, (START, "BLOCKED"), ("READY",)),
)


def said(world: str, command: str) -> str:
    """The answer in one line; it wraps at 80 columns."""
    return " ".join((KEPT / world / f"{command}.txt").read_text().split())


@pytest.mark.parametrize(
    ("world", "command", "code", "names", "never"), [pytest.param(*row[1:], id=row[0]) for row in ROWS]
)
def test_the_answer_names_what_is_wrong_and_never_what_misleads(
    world: str, command: str, code: int, names: tuple[str, ...], never: tuple[str, ...]
) -> None:
    """By row."""
    told = said(world, command)
    assert told.endswith(f"exit code {code}")
    for part in names:
        assert part.lower() in told.lower()
    for part in never:
        assert part not in told


@pytest.mark.parametrize("world", [path.parent.name for path in KEPT.glob("2[0-7]*/plan.txt")])
def test_a_plan_that_is_in_trouble_fits_forty_lines(world: str) -> None:
    """One dead disk, its broker running or stopped; a broker, ZooKeeper or disks that are gone."""
    assert len((KEPT / world / "plan.txt").read_text().splitlines()) <= 40


@pytest.mark.parametrize("world", sorted(path.parent.name for path in KEPT.glob("*/status.txt")))
def test_no_answer_leads_forward_while_a_problem_stands(world: str) -> None:
    """Whatever is asked says the problem first; none hands out a forward step or a fingerprint, or speaks Python."""
    if not re.match(r"\d+ PROBLEM", said(world, "status")):
        return
    for file in sorted((KEPT / world).glob("*.txt")):
        told = said(world, file.stem)
        assert not FORWARD.search(told), (file.name, told[:300])
        assert [word for word in NEVER if word in told] == [], file.name
        may = file.stem == "rollback-plan" and "Verdict: READY WITH WORK" in told  # at its end: it starts what is down
        assert "--confirm" not in told or may, file.name
        if file.stem != "assess":
            assert re.match(r"(--- stderr )?\d+ PROBLEM", told), file.name
