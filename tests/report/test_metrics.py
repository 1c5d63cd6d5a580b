"""A run's metrics are those of its journal, in a form that Prometheus takes; pages and rules name no others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from migrate.model.history import Event
from migrate.model.ledger import ReplicaState
from migrate.model.stage import Stage
from migrate.plan.parking import HYBRID_BEGINS, HYBRID_ENDS
from migrate.report.metrics import HELP, PREFIX, Metrics
from migrate.report.notices import RunState
from migrate.run.past_runs import READINESS
from tests.report import story
from tests.run.gated import HOUR, Gated, gated, parked_behind_broker_0
from tests.testing import worlds

ROOT = Path(__file__).parents[2]
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)+)\} (\d+\.\d+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
Read = dict[tuple[str, str], float]


def read(text: str) -> Read:
    """(name, value of its own label) -> number; each metric with its help and type before it, and once."""
    found: Read = {}
    head: list[str] = []
    for line in text.splitlines():
        if line.startswith("# "):
            head.append(line)
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name = match[1].removeprefix(PREFIX)
        assert head[-2:] == [f"# HELP {match[1]} {HELP[name]}", f"# TYPE {match[1]} gauge"]
        labels = dict(LABEL.findall(match[2]))
        own = " ".join(value for key, value in labels.items() if key not in ("cluster", "run"))
        assert (name, own) not in found
        found[name, own] = float(match[3])
    assert len(head) == len(set(head))
    return found


def at(run: Gated, events: Iterable[Event], now: float) -> Read:
    """The metrics behind those events."""
    return read(Metrics.of(RunState(run.planned()), events).text(now))


def one(found: Read, name: str) -> str:
    """Which of the states is 1; the others are 0."""
    values = {own: value for (metric, own), value in found.items() if metric == name}
    assert sorted(values.values()) == [0.0] * (len(values) - 1) + [1.0]
    return max(values, key=lambda own: values[own])


def test_a_whole_run_ends_with_all_steps_and_all_replicas(tmp_path: Path) -> None:
    """And was running, half rolled and waiting on its way there."""
    run = Gated(tmp_path, worlds.playbook(), node_seconds=HOUR, target=Stage.CLEANUP)
    events = run.session()
    plan = run.planned()
    half = next(e for e in events if e.name == "conclude" and e.data["step"] == "migration-mode/0")
    found = at(run, events[: half.number + 1], half.time + 60)
    assert one(found, "state") == "running"
    assert found["stage", ""] == Stage.MIGRATION_MODE
    assert found["half_rolled_seconds", ""] == pytest.approx(
        half.time + 60 - found["half_rolled_start_time_seconds", ""]
    )
    assert found["half_rolled_seconds", ""] > HOUR
    assert found["last_event_time_seconds", ""] == half.time
    assert found["written_time_seconds", ""] == half.time + 60
    found = at(run, events, events[-1].time)
    assert one(found, "state") == "ended"
    assert (found["stage", ""], found["step_info", "cleanup "]) == (Stage.CLEANUP, 1.0)
    assert found["steps", ""] == found["steps_done", ""] == len(plan.steps)
    assert ("half_rolled_start_time_seconds", "") not in found
    assert found["half_rolled_seconds", ""] == found["wait_seconds", ""] == 0.0
    assert {HYBRID_BEGINS, HYBRID_ENDS} <= {step.kind for step in plan.steps}


def test_a_session_that_stopped_says_how(tmp_path: Path) -> None:
    """A board over days shows what it needs."""
    for run, state in ((parked_behind_broker_0(tmp_path / "b"), "parked"),):
        found = at(run, run.events, run.clock.now() + 9 * HOUR)
        assert one(found, "state") == state
        assert found["wait_seconds", ""] == 0.0
    assert found["half_rolled_seconds", ""] > 8 * HOUR


def test_a_wait_counts_from_its_beginning(tmp_path: Path) -> None:
    """Whatever the step waits for by now."""
    run = gated(tmp_path)
    step = run.planned().steps[3].id
    wait = {"step": step, "what": "a", "owner": "o", "next": "n", "progress": ""}
    events = [
        Event(0, 1.0, "session", {"resumed": False}),
        Event(1, 10.0, "waiting", wait),
        Event(2, 20.0, "waiting", {**wait, "what": "b"}),
    ]
    found = at(run, events, 25.0)
    assert found["wait_seconds", ""] == 15.0
    assert found["step_info", f"{run.planned().steps[3].stage.label} {step}"] == 1.0


def test_replicas_are_those_of_the_newest_ledger(tmp_path: Path) -> None:
    """All states, also those that no replica is in; nothing before the first ledger."""
    run = gated(tmp_path)
    before = at(run, [Event(0, 1.0, "session", {"resumed": False})], 2.0)
    assert not [name for name, _ in before if name in ("replicas", "rollback_readiness")]
    ledgers = [event for event in story.journal() if event.name == "ledger"]
    found = at(run, ledgers, 2.0)
    assert {own for name, own in found if name == "replicas"} == set(ReplicaState)
    cells = ledgers[-1].data["cells"]
    for state in ReplicaState:
        assert found["replicas", state] == sum(cell["states"].get(state, 0) for cell in cells)
    assert found["replicas", "VERIFIED"] > 0


@pytest.mark.parametrize("word", ["READY", "READY WITH WORK", "NOT READY"])
def test_readiness_is_the_last_note_of_a_session(word: str, tmp_path: Path) -> None:
    """By its word alone."""
    note = Event(0, 1.0, "note", {"key": READINESS, "value": f"{word} from stage hybrid; READY; 2 rolls"})
    assert one(at(gated(tmp_path), [note], 2.0), "rollback_readiness") == word


def test_names_of_clusters_are_escaped() -> None:
    """A quote, a backslash and a new line end no label."""
    plan = story.plan(cluster='a"b\\c\nd')
    text = Metrics.of(RunState(plan), ()).text(1.0)
    assert 'cluster="a\\"b\\\\c\\nd"' in text
    assert read(text)["steps", ""] == len(plan.steps)


def test_the_reader_of_prometheus_own_library_takes_it(tmp_path: Path) -> None:
    """Where it is installed: an oracle for the few lines that write the format."""
    parser = pytest.importorskip("prometheus_client.parser")
    run = parked_behind_broker_0(tmp_path / "run")
    text = Metrics.of(RunState(run.planned()), run.events).text(run.clock.now())
    families = list(parser.text_string_to_metric_families(text))
    assert {(one.name, one.documentation, one.type) for one in families} <= {
        (PREFIX + name, help_line, "gauge") for name, help_line in HELP.items()
    }
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) == len(read(text))
    assert {sample.labels["cluster"] for sample in samples} == {run.planned().cluster}


def test_the_page_has_every_metric_with_its_help_line() -> None:
    """In the order of the file."""
    page = (ROOT / "docs" / "notifications.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{PREFIX}([a-z_]+)(?:\{{[a-z, ]+\}})?` \| (.*) \|$", page, re.MULTILINE)
    assert rows == list(HELP.items())


def test_the_help_line_of_the_stage_names_those_beside_a_migration() -> None:
    """A plan of theirs shows no number."""
    beside = [f"{stage} {stage.label}" for stage in Stage if stage > Stage.CLEANUP]
    assert HELP["stage"].endswith(f": 0 to {Stage.CLEANUP}, {', '.join(beside)}.")


def test_the_example_of_alert_rules_names_metrics_that_there_are() -> None:
    """And labels' values, too."""
    rules = (ROOT / "docs" / "alert-rules.yaml").read_text(encoding="utf-8")
    assert set(re.findall(rf"{PREFIX}([a-z_]+)", rules)) <= HELP.keys()
    assert len(re.findall(r"- alert: ", rules)) >= 5
