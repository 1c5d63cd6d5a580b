"""Prometheus' own tool takes the metrics that are written and the shipped alert rules, and the rules fire on them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from migrate.model.history import Event
from migrate.model.stage import Stage
from migrate.report.metrics import Metrics
from migrate.report.notices import RunState
from migrate.run.past_runs import READINESS
from tests.report import story
from tests.run.gated import parked_behind_broker_0

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (Prometheus) on this machine")
RULES: Final = Path(__file__).parents[2] / "docs" / "alert-rules.yaml"
PLAN: Final = story.plan()
MINUTE: Final = 60.0
BEGINS: Final = Event(0, 0.0, "session", {"resumed": False})


def promtool(*words: str, text: str = "") -> None:
    """It ends with 0 and has nothing to say on standard error, where its lint speaks."""
    ended = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr


@needs_promtool
def test_the_rules_are_valid() -> None:
    """Expressions, durations and templates."""
    promtool("check", "rules", str(RULES))


@needs_promtool
def test_the_written_metrics_pass_its_lint(tmp_path: Path) -> None:
    """Names, units, help and type of every metric: of a run that has ended, and of one half rolled; odd names, too."""
    ended = Metrics.of(RunState(story.plan(cluster='a"b\\c\nd')), story.journal()).text(story.START)
    run = parked_behind_broker_0(tmp_path / "run")
    noted = [*run.events, Event(len(run.events), run.clock.now(), "note", {"key": READINESS, "value": "READY"})]
    parked = Metrics.of(RunState(run.planned()), noted).text(run.clock.now())
    for text in (ended, parked):
        promtool("check", "metrics", text=text)


@dataclass(frozen=True)
class Case:
    """A run whose alert fires at that minute, and not yet at the one before."""

    alert: str
    minute: int
    summary: str
    events: Sequence[Event] = ()  # behind the session's beginning
    labels: Mapping[str, str] = field(default_factory=dict)
    killed: int = 10_000  # the minute of the last file


def at(minute: float, name: str, **data: Any) -> Event:
    """An event of the journal then."""
    return Event(1, minute * MINUTE, name, data)


FIRST_ROLL: Final = next(step for step in PLAN.steps if step.stage is Stage.MIGRATION_MODE)
WAITING: Final = {"step": PLAN.steps[0].id, "what": "broker 1", "owner": "o", "next": "n", "progress": ""}
CELLS: Final = [{"states": {"LOST": 2, "VERIFIED": 7}}, {"states": {"LOST": 1}}]
CASES: Final = (
    Case(
        "KraftMigrateStopped",
        3,
        "payments-eu1: run {run} has stopped; kraft-migrate status says why",
        [at(3, "stop", reason="of a test", code="E-RUN-04")],
        {"state": "stopped"},
    ),
    Case(
        "KraftMigrateWaits",
        22,
        "payments-eu1: a step has waited for 21m 0s",
        [at(1, "waiting", **WAITING)],
    ),
    Case(
        "KraftMigrateHalfRolled",
        2 + 12 * 60 + 1,
        "payments-eu1: half rolled or hybrid for 12h 1m 0s: continue, or roll back",
        [at(2, "intend", step=FIRST_ROLL.id, stage=FIRST_ROLL.stage.label, title="")],
    ),
    Case(
        "KraftMigrateGone",
        7,
        "payments-eu1: run {run} does not run any more; the same command resumes it",
        killed=4,
    ),
    Case(
        "KraftMigrateReplicasLost",
        11,
        "payments-eu1: 3 replicas are LOST",
        [at(1, "ledger", step="", cells=CELLS)],
        {"state": "LOST"},
    ),
    Case(
        "KraftMigrateNoRollback",
        2,
        "payments-eu1: a rollback is not ready; kraft-migrate status names what bars it",
        [at(2, "note", key=READINESS, value="NOT READY: of a test")],
        {"readiness": "NOT READY"},
    ),
)


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_on_what_is_written_and_not_before(case: Case, tmp_path: Path) -> None:
    """At its minute, with the labels and the text that a person reads."""
    summary = case.summary.format(run=PLAN.short)
    labels = {"cluster": PLAN.cluster, "run": PLAN.short, **case.labels}
    fires = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
    expected = [(case.minute - 1, []), (case.minute, [fires])]
    tried = {
        "interval": "1m",
        "input_series": list(_series(case)),
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": alerts} for minute, alerts in expected
        ],
    }
    path = tmp_path / "tests.yaml"
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [tried]}))
    promtool("test", "rules", str(path))


def test_every_alert_has_a_case() -> None:
    """None is shipped that was never seen to fire."""
    assert re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8")) == [case.alert for case in CASES]


def _series(case: Case) -> Iterator[dict[str, str]]:
    """Each series of the files, as a scrape a minute sees it; `_` where it is not there."""
    files = []
    for minute in range(case.minute + 1):
        now = min(minute, case.killed) * MINUTE
        heard = [event for event in (BEGINS, *case.events) if event.time <= now]
        lines = Metrics.of(RunState(PLAN), heard).text(now).splitlines()
        files.append(dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#")))
    for name in dict.fromkeys(name for file in files for name in file):
        yield {"series": name, "values": " ".join(file.get(name, "_") for file in files)}
