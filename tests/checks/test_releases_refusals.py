"""What the tool refuses is said whole: a list that ends in dots would hide the very thing that a reader looks for."""

from __future__ import annotations

from migrate.checks.registry import MESSAGE_LIMIT, Hit, shown
from migrate.checks.releases import REFUSALS, refusals
from migrate.model.stage import Stage
from tests.testing import worlds


def test_every_refusal_is_told_in_full() -> None:
    """Each with what to do instead, within what a finding may hold."""
    (hit,) = refusals(worlds.inventory(), worlds.world_at(Stage.ASSESS))
    assert isinstance(hit, Hit)
    told = hit.fix
    assert shown(told) == told, f"longer than {MESSAGE_LIMIT} characters"
    for what, instead in REFUSALS.items():
        assert f"{what}: {instead}" in told
