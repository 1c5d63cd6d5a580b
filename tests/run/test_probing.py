"""A run with a probe of its own: it works before anything begins, and never stands in the way of a half-done step."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import ProbeSilent
from migrate.kafka import topic_probe
from migrate.model.history import Event
from migrate.model.inventory import Access, ErrorBudget, Inventory
from migrate.run.probing import probed
from tests.testing import worlds

BEGUN = Event(1, 1.0, "intend", {"step": "migration-mode/0"})
ENDED = Event(2, 2.0, "conclude", {"step": "migration-mode/0", "outcome": "Verified"})


def nobody() -> Inventory:
    """Brokers at addresses where nobody answers."""
    known = worlds.inventory()
    brokers = tuple(replace(node, address="127.0.0.1:1") for node in known.brokers)
    return replace(known, brokers=brokers, broker_access=Access("PLAINTEXT"))


def threads() -> int:
    """Those that run."""
    return threading.active_count()


@pytest.mark.parametrize("topic", [None, ""])
def test_without_a_topic_nothing_is_probed(topic: str | None, tmp_path: Path) -> None:
    """It is off unless the playbook names one; a file of the operator's own probe is only read."""
    budget = None if topic is None else ErrorBudget(str(tmp_path / "p"), 0.1, 60.0, topic)
    before = threads()
    with probed(nobody(), replace(worlds.playbook(), budget=budget), ()):
        assert threads() == before
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("events", [(), (BEGUN, ENDED)], ids=["new", "between two steps"])
def test_a_probe_that_does_not_work_ends_the_run_before_its_next_step(
    events: tuple[Event, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was changed."""
    monkeypatch.setattr(topic_probe, "PATIENCE", 0.3)
    playbook = replace(worlds.playbook(), budget=ErrorBudget(str(tmp_path / "p"), 0.1, 60.0, "probe"))
    with pytest.raises(ProbeSilent, match="does not answer"), probed(nobody(), playbook, events):
        pytest.fail("it went on")


def test_a_half_done_step_is_finished_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """To leave a broker down would be worse; the silence holds the next restart."""
    monkeypatch.setattr(topic_probe, "PATIENCE", 0.3)
    playbook = replace(worlds.playbook(), budget=ErrorBudget(str(tmp_path / "p"), 0.1, 60.0, "probe"))
    went_on = False
    with probed(nobody(), playbook, (BEGUN,)):
        went_on = True
    assert went_on
    assert "what is half done is finished" in caplog.text
