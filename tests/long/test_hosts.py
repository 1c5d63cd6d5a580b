"""A whole migration, there and back and there, on hosts of every shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.conftest import hosts_or_skip
from tests.bed.migration import there_and_back_and_there
from tests.bed.shape import SHAPES

pytestmark = [pytest.mark.hosts, pytest.mark.kafka, pytest.mark.long]


@pytest.mark.parametrize("name", sorted(set(SHAPES) - {"mixed"}))  # the mixed one: tests/bed/test_hosts.py
def test_there_and_back_and_there_and_after_a_power_cut_the_cluster_serves(name: str, tmp_path: Path) -> None:
    """No stop that was not announced; files byte for byte as before; every unit comes up by itself."""
    with hosts_or_skip(SHAPES[name]) as bed:
        there_and_back_and_there(bed, tmp_path)
