"""`status` tells of a run that is not ended, and sends nobody past it: neither into a new plan nor to a broker."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from migrate.cli.status import RunLeft, _command, describe, named, unended, with_run
from migrate.model.stage import Stage
from migrate.report.change_summary import next_command
from migrate.report.status import StatusAnswer, WaitingRow, as_text
from migrate.run.locks import LockFile
from tests.report import story
from tests.run.gated import parked_behind_broker_0
from tests.steps.looks import registration, whole
from tests.testing import worlds
from tests.testing.sick_disks import gone


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs with one that parked behind broker 0 of the first roll."""
    runs = tmp_path_factory.mktemp("runs")
    parked_behind_broker_0(runs / "run")
    return runs


def left(runs: Path) -> RunLeft:
    """The run that is not ended."""
    found = unended(runs)
    assert found is not None
    assert isinstance(found, RunLeft)
    return found


def half_rolled() -> StatusAnswer:
    """What status says there without the run: a new plan, and a broker to be rolled."""
    answer = describe(registration(0, migrating=False)(whole(Stage.MIGRATION_MODE)))
    row: WaitingRow = {
        "code": "S-STUCK-30",
        "waits_for": "broker 1",
        "driver": "",
        "nodes": [1],
        "owner": "the operator",
        "cause": "it is not rolled",
        "unknown": None,
        "evidence": [],
        "next": "Roll it.",
        "by_itself": "nothing",
    }
    return {**answer, "half_done": "migration-mode", "next": "plan PLAYBOOK --stage migration-mode", "waiting": [row]}


@pytest.mark.slow
def test_a_parked_run_goes_on_by_its_own_command(parked: Path) -> None:
    """No new plan: the run's own words of where it stands, and its own command."""
    run = left(parked).run
    assert run["next"] == f"apply {parked}/run/plan.json"
    assert "parked before migration-mode/1: Ctrl-C asked for it" in run["told"]
    assert left(parked).nodes == {1, 2}
    said = with_run(half_rolled(), left(parked))
    assert said["next"] == run["next"]
    text = as_text({**said, "waiting": []})
    assert "Ctrl-C asked for it; no process works on it\n" in text
    assert text.endswith(f"next     kraft-migrate apply {parked}/run/plan.json")


def test_a_run_whose_process_was_killed_is_interrupted_and_does_not_run(parked: Path) -> None:
    """It wrote no stop."""
    journal = parked / "run" / "journal.jsonl"
    kept = journal.read_text()
    journal.write_text("".join(itertools.takewhile(lambda line: '"stop"' not in line, kept.splitlines(keepends=True))))
    try:
        assert "done; interrupted" in left(parked).run["told"]
    finally:
        journal.write_text(kept)


def test_a_broker_that_the_run_has_yet_to_roll_is_nobody_elses(parked: Path) -> None:
    """Stopped half way or not begun: who starts it by hand starts it with the previous file."""
    found = left(parked)
    run = found.run
    (row,) = with_run(half_rolled(), found)["waiting"]
    assert (row["owner"], row["next"]) == (f"run {run['plan']}", f"`kraft-migrate {run['next']}` continues it.")
    elsewhere = half_rolled()
    elsewhere["waiting"][0]["nodes"] = [0]  # rolled by this run already: what is wrong with it is somebody's to mend
    assert with_run(elsewhere, found)["waiting"][0]["next"] == "Roll it."


def test_a_run_that_lives_is_looked_at_again(parked: Path) -> None:
    """A second `apply` would only be refused."""
    lock = LockFile(parked / "lock")
    try:
        found = left(parked)
        said = named(with_run(half_rolled(), found), Path("p.yaml"))
    finally:
        lock.release()
    run = found.run
    assert run["alive"] is True
    assert said["next"] == "status p.yaml"
    text = as_text({**said, "waiting": []})
    assert "; its process is running" in text
    assert run["doing"]
    assert all(line.split()[0] in text for line in run["doing"]), "what it does and waits for, and what comes then"


def test_a_cluster_that_went_on_without_the_run_is_not_sent_back_to_it(parked: Path) -> None:
    """Its steps left are of stages behind us, or all were undone: the run is told, the next command is not its."""
    run = left(parked)
    later: StatusAnswer = {**half_rolled(), "half_done": None, "next": "plan PLAYBOOK --stage finalize"}
    back: StatusAnswer = {**half_rolled(), "half_done": None, "next": "plan PLAYBOOK"}
    for answer in (later, back):
        said = with_run(answer, run)
        assert said["next"] == answer["next"]
        assert "next" in said["run"]
        assert said["run"]["next"] == ""
        assert said["waiting"] == answer["waiting"]


def test_without_a_run_nothing_is_told(parked: Path, tmp_path: Path) -> None:
    """No folder, no journal, a plan that cannot be read: `status` is about the cluster."""
    assert unended(tmp_path) is None
    assert unended(tmp_path / "missing") is None
    answer = half_rolled()
    assert with_run(answer, None) == answer
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "journal.jsonl").write_bytes((parked / "run" / "journal.jsonl").read_bytes())
    assert unended(tmp_path) is None


def test_a_broken_disk_comes_before_any_command() -> None:
    """Every plan would be refused as long as it is broken."""
    text = " ".join(as_text(describe(worlds.with_directory(whole(Stage.KRAFT_MODE), 1, 1, gone))).split())
    assert text.startswith("1 PROBLEM: broker 1: /data/b1/d1: ")
    assert text.endswith(
        "next repair or replace that disk: the lines `disk` have the commands; then give this command again"
    )


def test_the_point_of_no_return_is_handed_out_by_its_plan_alone() -> None:
    """`status` names the plan: whoever read that to its end has the fingerprint."""
    whole_way = story.plan(target=Stage.CLEANUP)
    assert whole_way.irreversible
    assert _command(whole_way, "/runs/a/plan.json") == ""
    assert f"--confirm {whole_way.fingerprint}" in next_command(whole_way, "/runs/a/plan.json")
