"""How much is read of each kind of file and answer: one table, for the readers and for docs/limits.md.

A reader asks `most` for its kind before it reads, so that what is too large is refused before it fills memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20
UNITS: Final = {"": 1, "KiB": KIB, "MiB": MIB, "GiB": 2**30}


@dataclass(frozen=True, slots=True)
class Limit:
    """`most` bytes of `what` are read; more ends in the error `then`."""

    what: str
    most: int
    then: str


LIMITS: Final[dict[str, Limit]] = {
    "bundle": Limit("a bundle, as it is packed: 200,000 partitions take about 5 MiB", 64 * MIB, "E-BUNDLE-01"),
    "bundle-content": Limit("what is in a bundle; above 96 MiB at most 50 times its file", 512 * MIB, "E-BUNDLE-01"),
    "answer": Limit(
        "the answer of one command on a host, by ssh or sudo: 300,000 replica folders of one broker",
        128 * MIB,
        "E-HOST-30",
    ),
    "collected": Limit("an answer that a person brings from a host", 128 * MIB, "E-COLLECT-01"),
    "journal": Limit("the journal of a run", 128 * MIB, "E-RUN-01"),
    "plan": Limit("a saved plan", 32 * MIB, "E-PLAN-01"),
    "backup-line": Limit("one znode of a backup of ZooKeeper, in base64", 32 * MIB, "E-ZK-10"),
    "backup": Limit("what is in a backup, and at most 100 times its file", 4096 * MIB, "E-ZK-10"),
    "batch": Limit("one batch of the metadata log: Kafka writes 8 MiB at most", 16 * MIB, "E-BATCH-01"),
    "configuration": Limit("a properties file, or another text of a node", 8 * MIB, "E-HOST-04"),
    "playbook": Limit("a playbook, an inventory or a fleet file", 256 * KIB, "E-PLAY-01"),
    "instruction": Limit("a file of an instruction for a person", MIB, "E-MAN-05"),
    "quorum-state": Limit("quorum-state of a metadata directory", MIB, "E-KRAFT-01"),
    "meta-properties": Limit("meta.properties of a directory", MIB, "finding"),
    "store": Limit("a keystore or truststore", 8 * MIB, "E-KAFKA-16"),
    "secret": Limit("a secret, by file or command", 64 * KIB, "E-HOST-05"),
}


def most(kind: str) -> int:
    """Bytes that are read of that kind."""
    return LIMITS[kind].most


def shown(size: int) -> str:
    return next(f"{size // unit} {name}" for name, unit in reversed(UNITS.items()) if size % unit == 0)
