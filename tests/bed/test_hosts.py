"""An operator's evening on real hosts, part of every run of the tests; other shapes are in `tests/long`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.conftest import hosts_or_skip
from tests.bed.migration import there_and_back_and_there
from tests.bed.shape import SHAPES

pytestmark = [pytest.mark.hosts, pytest.mark.kafka]


def test_there_and_back_and_there_and_after_a_power_cut_the_cluster_serves(tmp_path: Path) -> None:
    """Under exactly the rights that are printed; files byte for byte as before; every node comes up by itself.

    The second broker is no unit, but runit's.  On the third host Kafka is elsewhere, and its broker's listener asks for
    a user.
    """
    with hosts_or_skip(SHAPES["mixed"]) as bed:
        there_and_back_and_there(bed, tmp_path)
