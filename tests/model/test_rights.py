"""The table of rights: about commands that there are, and read as Kafka means it."""

from __future__ import annotations

import pytest

from docs.generate import every_command
from migrate.model import rights
from migrate.model.rights import CLUSTER, TABLE, TOPICS, Side

COMMANDS = {path for path, _ in every_command()}


def test_every_command_of_the_table_is_one() -> None:
    """A right for a command that was renamed is granted for nothing."""
    assert {name for row in TABLE for name in row.commands} <= COMMANDS


def test_every_command_that_touches_a_cluster_is_in_the_table() -> None:
    """The others read files of ours alone, or make a lab, or ask for rights themselves."""
    named = {name for row in TABLE for name in row.commands}
    ours = ("lab ", "playbook ", "report ", "control ", "manual ", "explain", "help", "doctor")
    local = {"bundle show", "directories collector", "inventory init"}
    assert {name for name in COMMANDS if not name.startswith(ours)} - named == local & COMMANDS


def needed(side: Side, resource: str) -> set[str]:
    """What any command asks for there."""
    return {row.operation for row in TABLE if row.side is side and row.resource == resource}


def test_no_right_to_a_record_of_a_topic_is_ever_needed() -> None:
    """Nor to write anything but what a rescue needs."""
    assert needed(Side.BROKERS, TOPICS) == {"DESCRIBE"}
    assert needed(Side.BROKERS, CLUSTER) == {"DESCRIBE", "DESCRIBE_CONFIGS"}
    assert rights.needed_to_look(Side.BROKERS, CLUSTER) == {"DESCRIBE"}
    assert rights.needed_to_look(Side.CONTROLLERS, CLUSTER) == {"DESCRIBE", "CLUSTER_ACTION"}
    assert needed(Side.CONTROLLERS, CLUSTER) == {"DESCRIBE", "CLUSTER_ACTION", "ALTER"}


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (rights.NOT_TOLD, None),
        (0, frozenset()),
        (1 << 8, {"DESCRIBE"}),
        (1 << 8 | 1 << 9 | 1 << 7, {"DESCRIBE", "CLUSTER_ACTION", "ALTER"}),
        (1 << 2, frozenset()),  # ALL is told as its parts
    ],
)
def test_kafkas_answer_is_read_as_operations(bits: int, names: set[str] | None) -> None:
    """KIP-430: a bit an operation; the smallest number is: not told."""
    assert rights.operations(bits) == names
