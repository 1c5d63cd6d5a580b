"""What each stage writes into a broker's file, byte for byte.  UPDATE_GOLDEN=1 writes the files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.steps import configuration
from tests.steps.test_configuration import BROKER, inventory
from tests.testing.golden import same_as_kept

FOLDER = Path(__file__).parent / "properties"
LINES = BROKER.splitlines(keepends=True)
GIVEN = {
    "whole": BROKER,
    "crlf": BROKER.replace(b"\n", b"\r\n"),
    "no-last-line-end": BROKER.rstrip(b"\n"),
    "spaces-around-equals": BROKER.replace(b"=", b" = "),
    "colons": BROKER.replace(b"=", b": ", 3),
    **{f"without-line-{number:02}": b"".join(LINES[:number] + LINES[number + 1 :]) for number in range(len(LINES))},
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_the_stages_write_is_what_was_kept(name: str) -> None:
    """Both rolls of a broker, one after the other."""
    asked = inventory()
    first = configuration.migration_mode(GIVEN[name], asked)
    second = configuration.kraft_mode(first, asked, asked.brokers[0])
    for stage, found in (("migration-mode", first), ("kraft-mode", second)):
        same_as_kept(FOLDER / f"{name}.{stage}", found)
