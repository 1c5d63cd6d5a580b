"""What the views say of themselves."""

from __future__ import annotations

import pytest

from migrate.model.views import majority


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_a_majority_is_more_than_half(voters: int, needed: int) -> None:
    """Half of four elects nobody: the other half could elect somebody else."""
    assert majority(voters) == needed
