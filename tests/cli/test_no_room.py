"""A disk without room: what was in progress is told by an error of ours; nothing half-written stays or hides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.cli.apply import _tell_report
from migrate.cli.options import write_text
from migrate.cli.planning import save_plan
from migrate.errors import FileNotReplaced
from migrate.playbook.load import load_inventory
from migrate.run.carry_out import folder_of
from migrate.run.journal import Journal
from tests.cli.test_apply import make
from tests.testing.no_room import no_room


def test_a_file_without_room_keeps_its_old_content_and_leaves_no_draft(tmp_path: Path) -> None:
    """And the error names the file."""
    path = tmp_path / "report.html"
    write_text(path, "old")
    with no_room(), pytest.raises(FileNotReplaced) as raised:
        write_text(path, "new")
    assert raised.value.where == str(path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("report.html", "old")]


def test_a_plan_without_room_is_refused_by_name(tmp_path: Path) -> None:
    """`plan` ends with a line that says what to do, and no half plan lies there to be applied."""
    made, _ = make(tmp_path)
    inventory = load_inventory(tmp_path / "inventory.yaml")
    with no_room(), pytest.raises(FileNotReplaced):
        save_plan(inventory, made)
    assert list(folder_of(inventory, made).path.iterdir()) == []


def test_a_report_without_room_does_not_hide_how_the_run_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, with the command that writes it later; with room the report lies there."""
    made, _ = make(tmp_path)
    folder = folder_of(load_inventory(tmp_path / "inventory.yaml"), made)
    folder.path.mkdir(parents=True)
    Journal.begin(folder.journal, 1.0, {"plan": made.fingerprint}).close()
    with no_room():
        _tell_report(made, folder)
    said = capsys.readouterr().err
    assert said.startswith(
        f"no report was written: {folder.path / 'report.html'}: the file was not replaced: File too large"
    )
    assert "`kraft-migrate report write RUN`" in said
    _tell_report(made, folder)
    assert capsys.readouterr().err == f"report: {folder.path / 'report.html'}\n"
    assert (folder.path / "report.html").exists()
