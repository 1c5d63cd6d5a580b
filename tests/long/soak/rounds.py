"""One round: a fresh lab under load goes there, is used, comes back, is compared, is used, and goes all the way."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError
from migrate.lab import proofs, rollback_proofs, tokens
from migrate.lab.cluster import Lab
from migrate.lab.load import find_load, start_load, stop_load
from migrate.lab.load_check import check_load
from migrate.lab.rollback_proofs import hash_broker_files
from migrate.lab.seed_data import LOAD_TOPICS
from migrate.lab.topology import Shape
from migrate.model.views import Running, Stopped
from migrate.zookeeper.backup import Standing, compare, load_backup, write_backup
from migrate.zookeeper.client import connect
from tests.lab.links import ProxiedLab
from tests.lab.rollbacks import against as against_rollback
from tests.long.soak import leaks
from tests.long.soak.account import Leg, RoundSeen
from tests.long.soak.draw import Round, stages_to
from tests.long.soak.faults import Fault
from tests.long.soak.tool import Caller, NotCarriedOut
from tests.long.soak.znodes import unexplained
from tests.testing.memory_disks import is_mounted, mount_memory, unmount

RATE: Final = 100.0  # records a second
RUNS_BYTES: Final = 64 << 20
SHAPE: Final = Shape()
IN_DUAL_WRITE: Final = "in-dual-write"
AFTER_ROLLBACK: Final = "after-rollback"


@dataclass
class RoundRun:
    """A round in progress.  `tell` is called whenever the account has grown."""

    drawn: Round
    seen: RoundSeen
    folder: Path
    say: Callable[[str], None]
    tell: Callable[[], None]

    def __post_init__(self) -> None:
        self.directory = self.folder / "lab"
        self.scratch = self.folder / "tmp"
        for path in (self.scratch, self.folder / "logs"):
            path.mkdir(parents=True)
        self.lab = ProxiedLab.made(self.directory, SHAPE)
        self.runs = Path(self.lab.inventory.runs)
        mount_memory(self.runs, size_bytes=RUNS_BYTES)  # a disk of its own, so that it can be full
        self.caller = Caller(self.lab, self.scratch, self.folder / "logs", self.runs / "ballast", self.say)

    # -- the whole ---------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """To its end, or to what stops it; either way nothing of it lives afterwards."""
        began, open_before = time.monotonic(), leaks.descriptors()
        try:
            self._begin()
            self._there()
            self._use_and_compare()
            self._back()
            self._again()
            self._prove()
        except (MigrateError, NotCarriedOut, AssertionError, OSError) as error:
            self.seen.against.append(f"{type(error).__name__}: {error}")
        finally:
            try:
                self._judge_load()
            except MigrateError as error:
                self.seen.against.append(f"the load could not be judged: {error}")
            self.end()
        self.seen.against += leaks.left(self.folder, self.lab.topology, self._temporary())
        if (more := leaks.descriptors() - open_before) > 0:
            self.seen.notes.append(f"{more} descriptors more than before are open in the driver")
        self.seen.seconds, self.seen.ended = time.monotonic() - began, True
        self.tell()

    def end(self) -> None:
        """Stop what lives, keep the runs, take the mount away: also in the middle of a round that is broken off."""
        if self.caller.current is not None:
            self.caller.current.kill()
        put_down(self.lab)
        if is_mounted(self.runs):
            shutil.copytree(self.runs, self.folder / "runs", dirs_exist_ok=True, symlinks=True)
            unmount(self.runs)

    def _temporary(self) -> list[Path]:
        return [self.scratch, self.directory / "spark", *sorted((self.folder / "runs").glob("*/spark"))]

    def _begin(self) -> None:
        self.lab.up(lambda _: None)
        self.lab.seed(lambda _: None)
        start_load(self.directory, self.lab.inventory, LOAD_TOPICS, rate=RATE)
        self.before = hash_broker_files(self.lab)
        with connect(self.lab.inventory.zookeeper) as client:
            write_backup(client, str(self.folder / "before.jsonl.gz"))
        self.say(f"round {self.seen.number}, seed {self.drawn.seed}: a lab under load; there to {self.drawn.goal}")

    # -- the legs ----------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _leg(self, name: str) -> Iterator[tuple[Leg, Fault]]:
        strike = self.drawn.strikes[name]
        target = f"broker {strike.broker}, disk {strike.disk}"
        drawn = (
            f"{strike.stage or 'whole plan'}, {strike.share:.0%} of it, {strike.delay} s in, {strike.hold} s, {target}"
        )
        leg, began = Leg(name, strike.fault, drawn), time.monotonic()
        self.seen.legs.append(leg)
        try:
            yield leg, Fault(strike)
            leg.done = True
        finally:
            leg.seconds = time.monotonic() - began
            self.tell()
        self._require_load()

    def _there(self) -> None:
        """With one plan, or with one for each stage; then one of them is struck."""
        with self._leg("there") as (leg, fault):
            if not self.drawn.by_stages:
                self.caller.carry_out(lambda: self.caller.plan("plan", "--to", self.drawn.goal), ("apply",), leg, fault)
                return
            for stage in stages_to(self.drawn.goal):
                struck = fault if stage == fault.drawn.stage else None
                self.caller.carry_out(partial(self.caller.plan, "plan", "--stage", stage), ("apply",), leg, struck)

    def _use_and_compare(self) -> None:
        """Things of every kind are made in dual write; then ZooKeeper and KRaft are compared once more."""
        self._whole("in dual write")
        rollback_proofs.make_objects(self.lab, IN_DUAL_WRITE)
        compared = self.caller.ask("diff", str(self.lab.playbook_path))
        if compared.returncode:
            self.seen.against.append(f"diff in dual write ended with {compared.returncode}: {compared.stdout[-600:]}")
        if self.drawn.goal != "hybrid":
            self._verify()

    def _back(self) -> None:
        """To ZooKeeper; then everything is held against what was before."""
        with self._leg("back") as (leg, fault):
            plan = self.caller.carry_out(
                lambda: self.caller.plan("rollback", "plan"), ("rollback", "apply"), leg, fault
            )
        self._whole("after the rollback")
        self.seen.against += against_rollback(self.lab, IN_DUAL_WRITE, self.before, plan.parent)
        with connect(self.lab.inventory.zookeeper) as client:
            found = compare(load_backup(str(self.folder / "before.jsonl.gz")), client)
        wrong = unexplained(found, rollback_proofs.name_of(IN_DUAL_WRITE))
        same = sum(entry.standing is Standing.SAME for entry in found)
        self.seen.znodes = {"same": same, "of": len(found), "unexplained": len(wrong)}
        self.seen.against += [f"after the rollback: {text}" for text in wrong[:10]]

    def _again(self) -> None:
        """Used in ZooKeeper mode, and migrated to the end with one plan."""
        rollback_proofs.make_objects(self.lab, AFTER_ROLLBACK)
        with self._leg("again") as (leg, fault):
            self.caller.carry_out(lambda: self.caller.plan("plan"), ("apply",), leg, fault)

    # -- the proofs --------------------------------------------------------------------------------------------------
    def _prove(self) -> None:
        self._whole("at the end")
        self._verify()
        self.seen.notes.append(proofs.works_without_zookeeper(self.lab))
        for stage in (IN_DUAL_WRITE, AFTER_ROLLBACK):
            rollback_proofs.require_records(self.lab, stage)
        self.seen.against += [f"set aside: {path}" for path in proofs.set_aside(self.lab)[:3]]
        due, wrong = tokens.compared(self.lab.topology, int(time.time() * 1000))
        self.seen.against += [f"delegation tokens: {wrong}"] if wrong else []
        self.seen.notes.append(f"{due} delegation tokens the same")

    def _whole(self, when: str) -> None:
        for _ in range(5):
            if not (missing := self.caller.settle()):
                return
        self.seen.against.append(f"the cluster is not whole {when}: {missing}")

    def _verify(self) -> None:
        ended = self.caller.ask("directories", "verify", str(self.lab.playbook_path))
        if ended.returncode:
            self.seen.against.append(f"directories verify ended with {ended.returncode}: {ended.stdout[-600:]}")

    def _require_load(self) -> None:
        if not isinstance(find_load(self.directory), Running):
            self.seen.against.append("the load died")

    def _judge_load(self) -> None:
        """Stopped and read whole, against a cluster that lives."""
        stop_load(self.directory)
        if not self.seen.legs:
            return
        found = check_load(self.directory, self.lab.inventory, [])
        longest = max((seconds for _, seconds, _ in found.gaps), default=0.0)
        self.seen.load = {
            "acknowledged": found.acknowledged,
            "missing": found.missing,
            "duplicated": found.duplicated,
            "unexpected": found.unexpected,
            "missing_single": found.missing_single,
            "longest_wait": round(longest),
        }
        bad = ("missing", "duplicated", "unexpected")
        self.seen.against += [f"{self.seen.load[name]} records {name}" for name in bad if self.seen.load[name]]
        if not found.acknowledged:
            self.seen.against.append("no record was acknowledged")


def put_down(lab: Lab) -> None:
    """Nothing of the lab lives afterwards; what does not stop is killed."""
    directory = Path(lab.topology.directory)
    with contextlib.suppress(MigrateError):
        stop_load(directory)
    with contextlib.suppress(MigrateError):
        lab.down(lambda _: None)
    for name in lab.supervisor.specs():
        if not isinstance(lab.supervisor.state(name), Stopped):
            with contextlib.suppress(MigrateError):
                lab.supervisor.kill(name)
