"""The error budget: what a probe wrote lately, and nothing that it wrote is never fine."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import ProbeSilent
from migrate.kafka import topic_probe
from migrate.model.history import Event
from migrate.model.inventory import Access, ErrorBudget, Inventory
from migrate.model.outcome import NotYet, Readiness, Ready, Unknown
from migrate.run import budget as budgets
from migrate.run.budget import clients_served, probed, within_budget
from tests.run.gated import probe_line
from tests.testing import worlds

NOW = 1_000_000.0


def asked(folder: Path, *lines: str, share: float = 0.1) -> Readiness:
    """The answer at NOW, of a budget over a minute."""
    path = folder / "probe.jsonl"
    path.write_text("".join(lines))
    return within_budget(ErrorBudget(str(path), share, 60.0), NOW)


def test_the_share_itself_is_within_the_budget_and_one_more_is_not(tmp_path: Path) -> None:
    """Of everything that the probe wrote in that time together."""
    assert asked(tmp_path, probe_line(NOW, 90, 10)) == Ready()
    found = asked(tmp_path, probe_line(NOW - 1, 40, 1), probe_line(NOW, 49, 10))
    assert isinstance(found, NotYet)
    assert found.progress == "11"
    assert asked(tmp_path, probe_line(NOW, 100, 0), share=0.0) == Ready()


def test_one_request_is_enough_and_all_of_them_may_have_failed(tmp_path: Path) -> None:
    """A probe that begins, and a cluster that serves nobody."""
    assert asked(tmp_path, probe_line(NOW, 1, 0)) == Ready()
    assert isinstance(asked(tmp_path, probe_line(NOW, 0, 1)), NotYet)
    assert asked(tmp_path, probe_line(NOW, 50, 50), share=0.5) == Ready()
    found = asked(tmp_path, probe_line(NOW, 20, 70), share=0.5)
    assert isinstance(found, NotYet)
    assert "70 of 90 failed" in found.next_step


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    """The probe goes on meanwhile; what it wrote before counts."""
    assert asked(tmp_path, probe_line(NOW, 100, 0), probe_line(NOW, 0, 100)[:20]) == Ready()
    assert asked(tmp_path, probe_line(NOW, 100, 0), "{") == Ready()


@pytest.mark.parametrize(("time", "counts"), [(-60.0, True), (-60.5, False), (1.0, True), (1.5, False), (0.0, True)])
def test_a_line_counts_for_as_long_as_the_budget_looks_back(tmp_path: Path, time: float, counts: bool) -> None:
    """A second into the future: the probe's clock may be ahead by that."""
    assert (asked(tmp_path, probe_line(NOW + time, 100, 0)) == Ready()) is counts


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no json\n"],
        [probe_line(NOW, 0, 0)],
        [probe_line(NOW, -1, 0)],
        [probe_line(NOW, 0, -1)],
        [probe_line(NOW, 100, 0), probe_line(NOW, 100, -1)],
        [probe_line(NOW, 0, 100), probe_line(NOW, -1, 100)],
        [probe_line(NOW, 100, 0).strip()],
        [probe_line(NOW, 100, 0), "{}\n"],
        ["[" * 100_000 + "\n"],
        ["[]\n"],
        [probe_line(NOW, 10**400, 0)],
        [f'{{"time": {NOW}, "ok": Infinity, "failed": 0}}\n'],
        [f'{{"time": {NOW}, "ok": "{"1" * 5000}", "failed": 0}}\n'],
    ],
    ids=[
        *("nothing", "no json", "no request", "negative", "negative failures", "less failures", "less passed"),
        *("half a line", "a line beside"),
        *("deep", "a list", "400 digits", "infinite", "5000 digits"),
    ],
)
def test_a_probe_that_says_nothing_is_unknown(tmp_path: Path, lines: list[str]) -> None:
    """Never fine."""
    assert isinstance(asked(tmp_path, *lines), Unknown)


def test_a_file_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    """The probe may never have begun."""
    spent = ErrorBudget(str(tmp_path / "none"), 0.1, 60.0)
    assert isinstance(within_budget(spent, NOW), Unknown)
    assert isinstance(clients_served(replace(worlds.playbook(), budget=spent), NOW), Unknown)


def test_without_a_budget_nobody_is_asked() -> None:
    """Nor where the playbook is unknown: other gates say that."""
    assert clients_served(replace(worlds.playbook(), budget=None), NOW) == Ready()
    assert clients_served(Unknown("no playbook"), NOW) == Ready()


def test_of_a_long_file_the_end_is_read_from_its_first_whole_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is cut by the look back is no damage; a file of just that length is read whole."""
    lines = [probe_line(NOW, 10, 0), probe_line(NOW, 20, 1)]
    monkeypatch.setattr(budgets, "TAIL", len(lines[1]) + 5)
    cut = asked(tmp_path, *lines, share=0.0)
    assert isinstance(cut, NotYet)
    assert "1 of 21 failed" in cut.next_step
    monkeypatch.setattr(budgets, "TAIL", len(lines[0]) + len(lines[1]))
    found = asked(tmp_path, *lines, share=0.0)
    assert isinstance(found, NotYet)
    assert "1 of 31 failed" in found.next_step


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
