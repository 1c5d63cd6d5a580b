"""A disk fails in each mode: what the broker does, what `status` says, that the next stage waits, and the way on.

The way on is the one that `status` prints, done word by word (`tests/lab/sick_broker.py`).  On each
commit a disk is gone in each mode; every other failure is `long`: one lab a mode suffers them one after the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from migrate.hosts.properties import edit
from migrate.lab.cluster import Lab
from migrate.lab.load import stop_load
from migrate.lab.load_check import check_load, complaints
from migrate.lab.load_watch import RestartInterval
from migrate.lab.topology import Shape
from migrate.model.disk_trouble import TIMEOUT
from tests.lab import faults
from tests.lab.accepted import named_replicas_are_accepted_and_the_disk_is_not
from tests.lab.commands import kraft_migrate
from tests.lab.faults import OLD, DiskFault, set_aside
from tests.lab.links import ProxiedLab
from tests.lab.loads import acknowledged
from tests.lab.sick_broker import BLOCKED, CHANGES, INCOMPLETE, ROOT, STOP, SickBroker
from tests.testing.sick_disks import broken_disks

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

# mode -> where the lab stands, and what is planned next
UNTIL: Final = {"zookeeper": "prepare", "migration": "hybrid", "kraft": "soak", "finalized": "finalize"}
NEXT: Final = {"zookeeper": (), "migration": ("--stage", "kraft-mode"), "kraft": ("--stage", "finalize")}
UNDER, DOWN = "under a running broker", "while the broker is down"
OLD_DISK, NEW_DISK = "old", "new"
MENDED_WITH: Final = {"zookeeper": OLD_DISK, "migration": NEW_DISK, "kraft": NEW_DISK}  # the others: `EVERY`
HALT_IN_MIGRATION: Final = "some log directory has failed during migration mode"
NO_META: Final = "No `meta.properties` found"
RECORDS: Final = 600  # of the load, acknowledged while the disk is dead: three seconds of it
UNEXPECTED_VERSION: Final = "unexpected version"
ALONE: Final = range(240, 400)  # seconds until a broker that stops itself and finds no controller is gone


@dataclass(frozen=True)
class Case:
    """One failure, and the way on; `disk` 0 holds a KRaft broker's copy of the metadata log."""

    fault: DiskFault
    when: str
    way: str
    disk: int = 1

    def __str__(self) -> str:
        """For the test's name."""
        when = "under" if self.when == UNDER else "down"
        return f"{self.fault}-{when}-{self.way}-disk" + ("" if self.disk else "-of-metadata")


EVERY: Final = (
    Case(DiskFault.GONE, UNDER, OLD_DISK),
    Case(DiskFault.GONE, UNDER, NEW_DISK),
    Case(DiskFault.GONE, DOWN, OLD_DISK),
    Case(DiskFault.READ_ONLY, UNDER, OLD_DISK),
    Case(DiskFault.FULL, UNDER, OLD_DISK),
    Case(DiskFault.UNREADABLE, DOWN, OLD_DISK),
    Case(DiskFault.EMPTIED, UNDER, OLD_DISK),
    Case(DiskFault.EMPTIED, DOWN, NEW_DISK),
    Case(DiskFault.REPLACED, DOWN, OLD_DISK),
    Case(DiskFault.GONE, UNDER, OLD_DISK, disk=0),
    Case(DiskFault.GONE, UNDER, NEW_DISK, disk=0),
)
NEEDS_ROOT: Final = pytest.mark.skipif(not ROOT, reason="a disk in memory that is read-only or full needs root")


def named(case: Case) -> ParameterSet:
    """The case as a parameter; one that cannot be made here is skipped aloud."""
    return pytest.param(
        case, id=str(case), marks=NEEDS_ROOT if case.fault in (DiskFault.READ_ONLY, DiskFault.FULL) else ()
    )


BY_ITSELF: Final = "by itself"  # the broker puts it right at its start: `status` has nothing to say afterwards
ANSWERS: Final = {
    ("zookeeper", DiskFault.EMPTIED, DOWN): BY_ITSELF,
    ("migration", DiskFault.EMPTIED, DOWN): BY_ITSELF,
    ("kraft", DiskFault.REPLACED, DOWN): BY_ITSELF,
    ("finalized", DiskFault.REPLACED, DOWN): BY_ITSELF,
}


def await_effect(sick: SickBroker, mode: str, case: Case) -> str:
    """What that broker does in this mode; in words, for the page."""
    noticed = case.fault in (DiskFault.GONE, DiskFault.READ_ONLY, DiskFault.FULL) or (
        case.fault is DiskFault.EMPTIED and case.when == UNDER  # by the log cleaner, within 15 s
    )
    if case.when == UNDER and noticed and (mode == "migration" or (case.disk == 0 and mode != "zookeeper")):
        sick.until_it_halts()
        assert case.disk == 0 or sick.said(HALT_IN_MIGRATION)
        return "halts"
    if noticed or case.fault is DiskFault.UNREADABLE:
        sick.until_offline()
        assert sick.runs()
        return "continues without it"
    if case.fault is DiskFault.EMPTIED and case.when == DOWN and mode in ("kraft", "finalized"):
        sick.until_it_halts()
        assert sick.said(NO_META)
        return "does not start"
    if case.fault is DiskFault.REPLACED and mode == "zookeeper":
        sick.until_it_halts()
        assert sick.said(UNEXPECTED_VERSION)
        return "does not start"
    if mode in ("kraft", "finalized"):
        sick.until("every partition has a leader again", sick.rescued)
    sick.until_whole()
    return "takes it for a new disk"


def suffer(lab: Lab, mode: str, case: Case, broker: int, meanwhile: Callable[[], None] = lambda: None) -> str:
    """One failure, from a healthy cluster to a healthy cluster; a line of what was seen, printed too.

    `meanwhile` is called when the failure has had its effect, and nothing is mended yet.
    """
    sick, began = SickBroker(lab, broker, case.disk), time.monotonic()
    before = sick.meta().version
    (sick.break_now if case.when == UNDER else sick.break_while_it_is_down)(case.fault)
    effect = await_effect(sick, mode, case)
    meanwhile()
    told, answer = sick.disks(), ANSWERS.get((mode, case.fault, case.when))
    if answer is BY_ITSELF:
        assert told == []
    else:
        trouble = sick.trouble()
        assert trouble["mode"].lower().startswith(mode.replace("finalized", "kraft mode, finalized"))
        assert mode == "finalized" or planned(lab, mode) in (BLOCKED, INCOMPLETE)
        sick.follow(trouble, case.way)
    the_new_one_stays(sick)
    assert sick.disks() == []
    assert mode == "finalized" or planned(lab, mode) == CHANGES
    version = sick.meta().version
    assert version == version_due(mode, case, before)
    words = "; ".join(f"{one['what']}: {' | '.join(one['do'])}" for one in told) or "nothing"
    line = f"{mode}: {case}: the broker {effect}; status: {words}; version {version} afterwards"
    print(f"{line} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return line


def version_due(mode: str, case: Case, before: int) -> int:
    """Of the file afterwards: what kafka-storage writes is version 1; behind finalize nothing makes it 0 again."""
    if mode == "finalized" and case.fault is not DiskFault.REPLACED and case.way == OLD_DISK:
        return before
    formatted = case.fault is DiskFault.REPLACED and mode in ("kraft", "finalized")
    return int(formatted or (mode == "finalized" and case.way == NEW_DISK))


def planned(lab: Lab, mode: str) -> int:
    """May the next stage be planned?  CHANGES; BLOCKED by a finding, or INCOMPLETE where one may be hidden."""
    return kraft_migrate("plan", str(lab.playbook_path), *NEXT[mode]).returncode


def the_new_one_stays(sick: SickBroker) -> None:
    """What stands in the place of a broken disk is the disk from now on."""
    if set_aside(sick.path).exists():
        set_aside(sick.path).rename(sick.path.with_name(f"{sick.path.name}{OLD}.{time.monotonic_ns()}"))


# -- labs --------------------------------------------------------------------------------------------------------
def at_mode(lab: Lab, mode: str, *, load: bool = False) -> None:
    """Bring the cluster there; with `load`, the demo's producer and consumer run all the way, and go on."""
    where = ("--dir", lab.topology.directory, "--until", UNTIL[mode])
    ended = kraft_migrate("lab", "demo", *where, *(() if load else ("--no-load",)))
    assert ended.returncode == 0, ended.stderr[-3000:]


def whole_again(lab: Lab) -> None:
    """Whatever a failed test has left."""
    for path in broken_disks(lab):
        sick = SickBroker(lab, int(path.parent.name.removeprefix("broker-")), int(path.name.removeprefix("disk")))
        lab.supervisor.stop(sick.name, STOP)
        faults.repair_disk(lab, sick.broker, sick.disk)
        lab.supervisor.start(sick.name)
        sick.until_whole()


@contextmanager
def lab_at(directory: Path, mode: str, *, load: bool = False) -> Iterator[Lab]:
    """A lab in that mode, stopped at the end with every disk in its place."""
    lab = Lab.create(directory, Shape(directories=2))
    try:
        at_mode(lab, mode, load=load)
        yield lab
    finally:
        stop_load(directory)
        lab.down()
        SickBroker(lab, 0).made_whole()


@pytest.fixture(scope="module")
def ward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Lab]]:
    """One lab a mode, for all its failures."""
    with lab_at(tmp_path_factory.mktemp(request.param) / "lab", request.param) as lab:
        yield request.param, lab


# -- tests -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", sorted(MENDED_WITH))
def test_a_disk_is_gone_the_next_stage_waits_and_mended_it_goes_on(mode: str, tmp_path: Path) -> None:
    """By `status`, by the plan's exit code, by the cluster's own state; in KRaft mode by the whole load besides."""
    with lab_at(tmp_path / "lab", mode, load=mode == "kraft") as lab:
        assert SickBroker(lab, 1).disks() == []
        load = UnderLoad(lab) if mode == "kraft" else None
        case = Case(DiskFault.GONE, UNDER, MENDED_WITH[mode])
        accepted = partial(named_replicas_are_accepted_and_the_disk_is_not, lab, 1)
        meanwhile = accepted if mode == "zookeeper" else load.works_on if load else lambda: None
        line = suffer(lab, mode, case, 1, meanwhile)
        assert line.startswith(f"{mode}: {DiskFault.GONE}")
        if load is not None:
            load.judge(1)


@dataclass
class UnderLoad:
    """The load of `lab demo` while a disk is dead and mended: every record that it was promised is read at the end."""

    lab: Lab
    began: float = field(default_factory=time.time)
    mended_from: float = 0.0

    @property
    def folder(self) -> Path:
        """The lab's."""
        return Path(self.lab.topology.directory)

    def works_on(self) -> None:
        """With the disk dead, further records are acknowledged: some seconds' worth of them."""
        before, deadline = acknowledged(self.folder), time.monotonic() + 60
        while acknowledged(self.folder) < before + RECORDS:
            assert time.monotonic() < deadline, acknowledged(self.folder)
        self.mended_from = time.time()

    def judge(self, broker: int) -> None:
        """Stopped, and every partition read whole: nothing acknowledged is lost or doubled, every gap is explained."""
        stop_load(self.folder)
        mend = RestartInterval(broker, self.mended_from, time.time())
        found = check_load(self.folder, self.lab.inventory, [mend])
        ours = tuple(one for one in found.leaderless if one[0] >= self.began)  # before: the rolls of the migration
        print(f"load: {found.acknowledged} acknowledged, {found.missing} lost, without leader: {ours}", file=sys.stderr)
        assert found.acknowledged > RECORDS
        assert complaints(replace(found, leaderless=ours)) == ()


@pytest.mark.long
@pytest.mark.parametrize("case", [named(case) for case in EVERY])
@pytest.mark.parametrize("ward", UNTIL, indirect=True)
def test_every_failure_in_every_mode_is_told_held_and_mended(ward: tuple[str, Lab], case: Case) -> None:
    """Gone, read-only, full, unreadable, emptied, replaced: from a healthy cluster to a healthy cluster."""
    mode, lab = ward
    try:
        assert suffer(lab, mode, case, EVERY.index(case) % 3).startswith(f"{mode}: {case}")
    finally:
        whole_again(lab)


@pytest.mark.long
def test_a_failure_that_no_controller_hears_of_stops_the_broker(tmp_path: Path) -> None:
    """After log.dir.failure.timeout.ms of its own file, which both rolls carried along, and `status` names.

    It stops itself in the clean way, which asks a controller: at once where one can be asked by then, else it lives for
    five minutes more (`KafkaBroker.shutdown`).
    """
    lab = ProxiedLab.made(tmp_path / "lab", Shape(directories=2))
    file = lab.topology.config("broker-1")
    file.write_bytes(edit(file.read_bytes(), {TIMEOUT: "4000"}, ()))
    try:
        at_mode(lab, "kraft")
        heard = until_it_stops_itself(SickBroker(lab, 1), heard_in_the_end=True)
        alone = until_it_stops_itself(SickBroker(lab, 1), heard_in_the_end=False)
        print(f"{TIMEOUT}: ended after {heard:.0f} s with a controller, {alone:.0f} s without", file=sys.stderr)
        assert heard < ALONE.start <= alone < ALONE.stop
    finally:
        lab.down()
        SickBroker(lab, 1).made_whole()


def until_it_stops_itself(sick: SickBroker, *, heard_in_the_end: bool) -> float:
    """Cut off from the controllers it loses a disk; from its word on to its end, in seconds, and mended afterwards."""
    faults.break_link(sick.lab, sick.broker)
    sick.break_now(DiskFault.GONE)
    sick.until("its word", lambda: sick.said("couldn't communicate offline log dir"))
    said = time.monotonic()
    assert sick.runs()
    assert f"{TIMEOUT}=4000" in sick.trouble()["effect"]
    if heard_in_the_end:
        faults.repair_link(sick.lab, sick.broker)
    sick.until_it_halts(ALONE.stop)
    ended = time.monotonic() - said
    if not heard_in_the_end:
        faults.repair_link(sick.lab, sick.broker)
    sick.follow(sick.trouble(), OLD_DISK)
    assert sick.disks() == []
    return ended
