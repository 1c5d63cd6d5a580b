"""Disks fail on real hosts: what `status` says to do is typed as it is printed, by the login user, and helps."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.bed.bed import Bed
from tests.bed.conftest import hosts_or_skip
from tests.bed.operator import Operator
from tests.bed.shape import Shape
from tests.testing.tiers import parts

pytestmark = pytest.mark.hosts
FAULTS: Final = ("gone", "read-only", "full", "inodes", "unmounted")
HOST: Final = "h2"
DISK: Final = "/srv/kafka/disk2"
SECONDS: Final = 120
TAKE_INODES: Final = """import os
number = 0
try:
    while True:
        os.close(os.open(f"/srv/kafka/disk2/taken-{number}", os.O_CREAT | os.O_WRONLY))
        number += 1
except OSError:
    pass
"""
# (what the sentence says, what a hand does that no command of it does)
BY_HAND: Final = {
    "unmount it, check it": f"sudo umount {DISK}; sudo fsck -y /dev/bed/disk2; sudo mount {DISK}",
    "make room on it": f"sudo find {DISK} -maxdepth 1 -name 'taken-*' -delete; sudo rm -f {DISK}/full",
}


class Person:
    """The login user, who knows what `status` says and no more."""

    def __init__(self, bed: Bed, operator: Operator) -> None:
        self.bed = bed
        self.operator = operator

    def break_disk(self, fault: str) -> None:
        """Under the second broker."""
        bed = self.bed
        match fault:
            case "gone":
                bed.disk_gone(HOST, "disk2")
            case "read-only":
                bed.disk_read_only(HOST, "disk2")
            case "full":
                bed.disk_full(HOST, DISK)
            case "inodes":
                bed.must(HOST, f"python3 -c '{TAKE_INODES}'; df -i {DISK}", seconds=SECONDS)
            case "unmounted":  # a boot that did not mount it, over a folder that the broker may write
                again = f"umount {DISK}; chown kafka: {DISK}; systemctl start kafka"
                bed.must(HOST, f"systemctl stop kafka; {again}", seconds=SECONDS)

    def told(self) -> list[dict[str, Any]]:
        """What `status` says of disks."""
        found: list[dict[str, Any]] = json.loads(
            self.operator.tool("status", *INVENTORY, "--output", "json", expect=(0, 3)).stdout
        )["disks"]
        return found

    def findings(self, code: str) -> list[dict[str, Any]]:
        """What `assess` finds under that code."""
        done = self.operator.tool("assess", *INVENTORY, "--output", "json", expect=(0, 1, 2, 3))
        found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return [one for one in found if one["code"] == code]

    def until_told(self) -> dict[str, Any]:
        """The one row, of that broker and that disk; the cluster is at work meanwhile."""
        deadline = time.monotonic() + SECONDS
        while not (rows := self.told()):
            assert time.monotonic() < deadline, "status says nothing of the disk"
        (row,) = rows
        assert (row["broker"], row["path"]) == (2, DISK)
        print(f"{row['mode']}: {row['what']}\n  {row['effect']}\n  {row['do']}")
        return row

    def types(self, command: str) -> None:
        """As the login user, over SSH; it must succeed."""
        done = self.bed.outside("ssh", "-F", str(self.bed.folder / "ssh_config"), HOST, command, seconds=SECONDS)
        assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout[-1000:]} {done.stderr[-1000:]}"

    def follows(self, row: dict[str, Any]) -> None:
        """The way with the old disk, word by word."""
        sentence = row["do"][0]
        for part in re.split(r"(`[^`]*`)", sentence):
            for words, command in BY_HAND.items():
                if words in part:
                    self.types(command)
            if part.startswith("`sudo ") and "remount" not in part:
                self.types(part.strip("`"))
        if "look at `status` again" in sentence:
            again = self.told()
            for one in again:
                self.follows(one)
            if not again:
                self.types("sudo systemctl start kafka.service")

    def mends(self, fault: str) -> None:
        """From the failure to the whole cluster, with what `status` says, and `status` silent afterwards."""
        begun = time.monotonic()
        self.break_disk(fault)
        row = self.until_told()
        if fault == "gone":
            self.bed.disk_back(HOST, "disk2")
        self.follows(row)
        self.operator.serving()
        deadline = time.monotonic() + SECONDS
        while rows := self.told():
            assert time.monotonic() < deadline, rows
        print(f"{row['mode']}, {fault}: whole after {time.monotonic() - begun:.0f} s")


INVENTORY: Final = ("--inventory", "inventory.yaml")


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    """A cluster in ZooKeeper mode on three hosts, with records."""
    with hosts_or_skip(Shape(rights="all", owner="kafka:kafka")) as bed:
        operator = Operator(bed, bed.folder / "operator")
        operator.seed()
        operator.inventory()
        operator.rights()
        yield Person(bed, operator)


@pytest.mark.parametrize("fault", parts(FAULTS, each_commit=["gone"]))
def test_a_printed_remedy_is_typed_as_it_stands_and_the_cluster_is_whole(person: Person, fault: str) -> None:
    """In ZooKeeper mode; the other modes are those of the long test."""
    person.mends(fault)


@pytest.mark.long
def test_printed_remedies_help_in_every_later_mode(person: Person) -> None:
    """Migration mode, where a broker halts and systemd starts it again over the dead disk; KRaft mode; finalized."""
    operator = person.operator
    (found,) = [
        one for one in person.findings("W-OPS-11") if one["about"] == f"broker 2 on {HOST}"
    ]  # the other brokers keep units that start them again
    person.types(found["fix"].removeprefix(f"on {HOST}: "))
    assert not [one for one in person.findings("W-OPS-11") if "broker 2 " in one["about"]]
    for stage, faults in (("hybrid", FAULTS), ("kraft-mode", FAULTS[:3]), ("cleanup", FAULTS[:3])):
        plan, fingerprint = operator.plan("--to", stage)
        operator.apply("apply", str(plan), "--confirm", fingerprint, "--confirm-cluster", "prod")
        operator.serving()
        for fault in faults:
            person.mends(fault)
    said = operator.client("read").split()
    assert sum(word.startswith("before-") for word in said) == 2000
