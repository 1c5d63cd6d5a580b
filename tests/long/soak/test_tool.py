"""The soak's person does what an error's next step says."""

from __future__ import annotations

import pytest

from migrate.run.last_words import next_step
from tests.testing.last_words import told_to_restart


@pytest.mark.parametrize("nodes", [(2,), (0, 2)])
def test_brokers_whose_thread_died_are_restarted_as_the_error_says(nodes: tuple[int, ...]) -> None:
    """In the words of the tool itself."""
    said = next_step(dict.fromkeys(nodes, ("alter-partition",)))
    assert told_to_restart(f"E-RUN-06: x\n  next   {said}\n") == list(nodes)


def test_other_errors_restart_nobody() -> None:
    """What comes by itself is waited for."""
    assert told_to_restart("E-RUN-06: x\n  next   usually nothing; look at that broker's log") == []
    assert told_to_restart("") == []
