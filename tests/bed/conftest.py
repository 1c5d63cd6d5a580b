"""Hosts for tests: booted, or the reason why there are none here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bed.bed import Bed, booted
from tests.bed.rootfs import BedUnavailable
from tests.bed.shape import Shape


@contextmanager
def hosts_or_skip(shape: Shape) -> Iterator[Bed]:
    """Hosts of that shape.  What keeps a bed from being prepared skips the test; what its hosts do later does not."""
    made = booted(shape)
    try:
        bed = made.__enter__()
    except BedUnavailable as error:
        pytest.skip(f"no bed of hosts here: {error}")
    try:
        yield bed
    finally:
        made.__exit__(None, None, None)
