"""How much is read of each kind of file and answer: one table, for the readers and for docs/limits.md.

A reader asks `most` for its kind before it reads, so that what is too large is refused before it fills memory.
`--limit KIND=SIZE` raises a limit for one command, where a cluster is larger than any that was seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20
UNITS: Final = {"": 1, "KiB": KIB, "MiB": MIB, "GiB": 2**30}
SIZE: Final = re.compile(r"([1-9][0-9]{0,11})(KiB|MiB|GiB)?")


@dataclass(frozen=True, slots=True)
class Limit:
    """`most` bytes of `what` are read; more ends in the error `then`.  `raised`: may a command line ask for more?"""

    what: str
    most: int
    then: str
    raised: bool = False


LIMITS: Final[dict[str, Limit]] = {
    "bundle": Limit(
        "a bundle, as it is packed: 200,000 partitions take about 5 MiB", 64 * MIB, "E-BUNDLE-01", raised=True
    ),
    "bundle-content": Limit(
        "what is in a bundle; above 96 MiB at most 50 times its file", 512 * MIB, "E-BUNDLE-01", raised=True
    ),
    "answer": Limit(
        "the answer of one command on a host, by ssh or sudo: 300,000 replica folders of one broker",
        128 * MIB,
        "E-HOST-30",
        raised=True,
    ),
    "collected": Limit("an answer that a person brings from a host", 128 * MIB, "E-COLLECT-01", raised=True),
    "evidence": Limit("an evidence file", 128 * MIB, "E-EVID-01", raised=True),
    "journal": Limit("the journal of a run", 128 * MIB, "E-RUN-01", raised=True),
    "plan": Limit("a saved plan", 32 * MIB, "E-PLAN-01", raised=True),
    "backup-line": Limit("one znode of a backup of ZooKeeper, in base64", 32 * MIB, "E-ZK-10", raised=True),
    "backup": Limit("what is in a backup, and at most 100 times its file", 4096 * MIB, "E-ZK-10", raised=True),
    "snapshot": Limit(
        "what is in a packed snapshot of ZooKeeper, and at most 50 times its file", 4096 * MIB, "E-ZKF-02", raised=True
    ),
    "batch": Limit("one batch of the metadata log: Kafka writes 8 MiB at most", 16 * MIB, "E-BATCH-01", raised=True),
    "configuration": Limit("a properties file, or another text of a node", 8 * MIB, "E-HOST-04"),
    "ansible": Limit(
        "an Ansible inventory, as `ansible-inventory --list` prints it", 32 * MIB, "E-ANS-01", raised=True
    ),
    "playbook": Limit("a playbook, an inventory or a fleet file", 256 * KIB, "E-PLAY-01"),
    "instruction": Limit("a file of an instruction for a person", MIB, "E-MAN-05"),
    "quorum-state": Limit("quorum-state of a metadata directory", MIB, "E-KRAFT-01"),
    "meta-properties": Limit("meta.properties of a directory", MIB, "finding"),
    "approval": Limit("an approval", 64 * KIB, "E-APPR-02"),
    "control": Limit("the control file of a run", 16 * KIB, "E-CTL-01"),
    "store": Limit("a keystore or truststore", 8 * MIB, "E-KAFKA-16"),
    "secret": Limit("a secret, by file or command", 64 * KIB, "E-HOST-05"),
}
_asked: dict[str, int] = {}


def most(kind: str) -> int:
    """Bytes that are read of that kind."""
    return _asked.get(kind, LIMITS[kind].most)


def ask(kind: str, size: str) -> None:
    """Read up to that size of the kind from now on; ValueError says why that is not possible."""
    found = SIZE.fullmatch(size)
    if kind not in LIMITS or not LIMITS[kind].raised:
        raise ValueError(f"{kind!r} is none of {', '.join(name for name, limit in LIMITS.items() if limit.raised)}")
    if found is None:
        raise ValueError(f"{size!r} is no size such as 512MiB or 2GiB")
    _asked[kind] = int(found[1]) * UNITS[found[2] or ""]


def shown(size: int) -> str:
    return next(f"{size // unit} {name}" for name, unit in reversed(UNITS.items()) if size % unit == 0)
