"""What the demo says of a lab that it leaves running; the demo itself is tests/lab/test_demo.py."""

from __future__ import annotations

from migrate.cli.demo import where_parked
from migrate.model.stage import Stage


def test_a_lab_is_parked_where_its_run_ended() -> None:
    """As it was asked for."""
    assert where_parked(Stage.HYBRID, Stage.HYBRID) == "parked after stage hybrid; the cluster is running"


def test_a_lab_that_went_further_is_not_said_to_stand_where_it_was_asked_to() -> None:
    """A finished demo in the same folder, and `--until hybrid` behind it: nothing is taken back."""
    said = where_parked(Stage.CLEANUP, Stage.HYBRID)
    assert said.startswith("parked after stage cleanup;")
    assert "further than hybrid" in said
