"""Faults at drawn moments on real hosts, there and back and to the end: about an hour and a half."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bed.conftest import hosts_or_skip
from tests.bed.evening import soak
from tests.bed.migration import begin
from tests.bed.shape import SHAPES

pytestmark = [pytest.mark.hosts, pytest.mark.kafka, pytest.mark.long]
MINUTES = float(os.environ.get("KRAFT_MIGRATE_EVENING_MINUTES", "75"))
BEDS = {"kafka's own files": replace(SHAPES["plain"], owner="kafka:kafka"), "kerberos": SHAPES["kerberos"]}
SEED = int(os.environ.get("KRAFT_MIGRATE_EVENING_SEED", "19"))


@pytest.mark.parametrize("shape", BEDS)
def test_after_every_fault_the_same_command_goes_on_to_its_end(shape: str, tmp_path: Path) -> None:
    """Each stop has its exit code and no traceback; the cluster serves after each command, every record is there."""
    print(f"seed {SEED}, {MINUTES:.0f} minutes")
    with hosts_or_skip(BEDS[shape]) as bed:
        operator = begin(bed, tmp_path)
        rows = soak(operator, MINUTES, SEED)
        assert len(rows) > 1
        operator.client("write", "after", "500")
        records = operator.client("read").split()
    assert sorted(records) == sorted(
        f"{word}-{n}" for word, count in (("before", 2000), ("after", 500)) for n in range(count)
    )
