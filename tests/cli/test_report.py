"""`report` writes the report of a run again, from its plan and its journal alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.given import load_plan
from migrate.cli.report import JUDGED, Judged, write_reports
from migrate.model.history import LoadSummary
from migrate.model.plan import Direction
from migrate.report.plan_json import plan_to_json
from migrate.report.run_values import Claim, Holds
from migrate.run.carry_out import RunFolder
from tests.cli.commands import kraft_migrate
from tests.cli.test_changed_journal import CHANGED, changed
from tests.cli.whole_runs import whole_run


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that took a simulated cluster through everything."""
    folder = tmp_path_factory.mktemp("run")
    path, _, _ = whole_run(folder)
    return path


@pytest.mark.slow
def test_it_is_written_in_both_forms_beside_the_journal(ran: Path) -> None:
    """And again, whenever it is asked for: the same."""
    first = kraft_migrate("report", ran)
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [str(ran / f"report.{kind}") for kind in ("html", "json")]
    before = {kind: (ran / f"report.{kind}").read_bytes() for kind in ("html", "json")}
    assert kraft_migrate("report", ran).out == first.out
    assert {kind: (ran / f"report.{kind}").read_bytes() for kind in before} == before
    assert "<html" in (ran / "report.html").read_text()


def test_the_reports_json_says_what_was_done(ran: Path, tmp_path: Path) -> None:
    """Every stage of it, in the run's folder."""
    copy = tmp_path / "copy"
    shutil.copytree(ran, copy)
    assert kraft_migrate("report", copy).code == 0
    text = json.dumps(json.loads((copy / "report.json").read_text()))
    for stage in ("prepare", "migration-mode", "kraft-mode", "finalize", "cleanup"):
        assert stage in text


@pytest.mark.slow
def test_what_a_lab_judged_of_a_run_stays_in_every_later_report(ran: Path, tmp_path: Path) -> None:
    """Its load, claims and blind spots; a damaged file of them is an error, not a report without them."""
    copy = tmp_path / "copy"
    shutil.copytree(ran, copy)
    load = LoadSummary(10, 9, 9, 0, 0, ((1.0, 2.5, "orders-1"),), ())
    judged = Judged(load, (Claim("No folder is lost.", Holds.YES, "all read"),), ("counted whole",))
    write_reports(load_plan(copy / "plan.json"), RunFolder(copy), judged)
    first = json.loads((copy / "report.json").read_text())
    assert kraft_migrate("report", copy).code == 0
    assert json.loads((copy / "report.json").read_text()) == first
    assert first["load"]["acknowledged"] == 9
    assert "No folder is lost." in json.dumps(first["claims"])
    (copy / JUDGED).write_text('{"load": 3}')
    ended = kraft_migrate("report", copy)
    assert ended.code == 1
    assert str(copy / JUDGED) in ended.err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw[:200] + b"X" + raw[201:], "its length or checksum does not fit"),
        (changed, f"line {CHANGED + 1}: it does not follow the line before it"),
    ],
    ids=["a byte", "a line, its checksum right"],
)
def test_a_damaged_journal_is_said_in_the_report(
    damage: Callable[[bytes], bytes], said: str, ran: Path, tmp_path: Path
) -> None:
    """Nothing is proven by it."""
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "plan.json").write_bytes((ran / "plan.json").read_bytes())
    (copy / "journal.jsonl").write_bytes(damage((ran / "journal.jsonl").read_bytes()))
    assert kraft_migrate("report", copy).code == 0
    report = json.loads((copy / "report.json").read_text())
    assert report["verdict"]["word"] != "PROVEN"
    assert said in json.dumps(report)


def test_of_a_rollback_that_never_ran_the_command_that_carries_it_out_is_named(ran: Path, tmp_path: Path) -> None:
    """`apply` refuses a rollback; and the path is one word."""
    (folder := tmp_path / "two words").mkdir()
    plan = replace(load_plan(ran / "plan.json"), direction=Direction.BACK)
    (folder / "plan.json").write_text(plan_to_json(plan))
    answer = kraft_migrate("report", folder)
    assert f"kraft-migrate rollback apply '{folder / 'plan.json'}'" in " ".join(answer.err.split())


@pytest.mark.parametrize("name", ["plan.json", "journal.jsonl"])
def test_a_folder_without_its_files_is_an_error_with_a_place(name: str, ran: Path, tmp_path: Path) -> None:
    """Not a traceback."""
    for present in ("plan.json", "journal.jsonl"):
        if present != name:
            (tmp_path / present).write_bytes((ran / present).read_bytes())
    answer = kraft_migrate("report", tmp_path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("E-")
    assert str(tmp_path / name) in answer.err
