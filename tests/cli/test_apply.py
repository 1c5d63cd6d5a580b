"""`apply` takes the plan that was shown, confirmed, for this playbook, and for nobody else's moment."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate import __version__
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.playbook.load import load_inventory, load_playbook
from migrate.report.plan_json import plan_to_json
from migrate.run.carry_out import folder_of
from migrate.run.journal import Journal
from migrate.run.locks import LockFile
from migrate.zookeeper.client import connect
from tests.cli.commands import dead_port, inventory_in, kraft_migrate, playbook_in, process, tree
from tests.steps.looks import whole


def make(folder: Path, target: Stage = Stage.CONTROLLERS) -> tuple[Plan, Path]:
    """A plan of the healthy world for the playbook in that folder, saved."""
    if not (folder / "playbook.yaml").exists():
        playbook_in(folder)
    playbook, inventory = load_playbook(folder / "playbook.yaml"), load_inventory(folder / "inventory.yaml")
    world = replace(whole(Stage.ASSESS), inventory=inventory, playbook=playbook)
    made = build(world, playbook, target=target, only=False, created=1.0)
    path = folder / "plan.json"
    path.write_text(plan_to_json(made), encoding="utf-8")
    return made, path


Edit = Callable[[dict[str, Any]], None]


def first_change(body: dict[str, Any]) -> dict[str, Any]:
    """The plan's first step with a parameter."""
    found: dict[str, Any] = next(step for step in body["plan"]["steps"] if step["params"])
    return found


def other_broker(body: dict[str, Any]) -> None:
    """A step made to be about another broker."""
    first_change(body)["params"] = {"broker": "2"}


def other_bind(body: dict[str, Any]) -> None:
    """A file that lies there now put in for the one that was planned on."""
    step = next(step for step in body["plan"]["steps"] if step["binds"])
    step["binds"] = dict.fromkeys(step["binds"], "0" * 64)


def step_left_out(body: dict[str, Any]) -> None:
    """A backup skipped."""
    body["plan"]["steps"] = body["plan"]["steps"][1:]


def other_fingerprint(body: dict[str, Any]) -> None:
    """The fingerprint itself."""
    body["fingerprint"] = "0" * 64


def other_target(body: dict[str, Any]) -> None:
    """Further than was planned."""
    body["plan"]["target"] = "cleanup"


@pytest.mark.parametrize("edit", [other_broker, other_bind, step_left_out, other_fingerprint, other_target])
def test_an_edited_plan_is_refused_before_anything(edit: Edit, tmp_path: Path) -> None:
    """E-PLAN-01, with the file and what to do."""
    _, path = make(tmp_path)
    body = json.loads(path.read_text())
    edit(body)
    path.write_text(json.dumps(body))
    before = tree(tmp_path)
    answer = kraft_migrate("apply", path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("E-PLAN-01: ")
    assert f"where  {path}" in answer.err
    assert "kraft-migrate plan" in answer.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "E-REPORT-01"),
        (b"not a plan", "E-REPORT-01"),
        (b"[]", "E-REPORT-01"),
        (b'{"schema": "kraft-migrate/plan/v99"}', "E-REPORT-01"),
        (b"[" * 100_000, "E-REPORT-01"),
        (b"\xff\xfe", "E-PLAN-01"),
        (None, "E-PLAN-01"),
    ],
    ids=["empty", "text", "list", "version", "deep", "no UTF-8", "missing"],
)
def test_what_is_no_plan_is_told_with_its_file(raw: bytes | None, code: str, tmp_path: Path) -> None:
    """A cut-off download, another file, a later release's plan."""
    path = tmp_path / "plan.json"
    if raw is not None:
        path.write_bytes(raw)
    answer = kraft_migrate("apply", path)
    assert answer.code == 1
    assert answer.err.startswith(code)
    assert str(path) in answer.err
    assert "next " in answer.err


@pytest.mark.slow
def test_a_plan_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    """Half a plan is no plan."""
    _, path = make(tmp_path)
    whole_plan = path.read_text()
    for length in range(0, len(whole_plan) - 2, max(1, len(whole_plan) // 40)):
        path.write_text(whole_plan[:length])
        assert kraft_migrate("apply", path).code == 1, length


# -- confirmation ------------------------------------------------------------------------------------------------------
def test_the_point_of_no_return_without_its_fingerprint_is_4_and_nothing_is_done(tmp_path: Path) -> None:
    """No folder, no lock, no journal, no report."""
    made, path = make(tmp_path, Stage.FINALIZE)
    before = tree(tmp_path)
    answer = kraft_migrate("apply", path)
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.startswith("E-PLAN-03: ")
    assert "the command with its fingerprint is at its end" in answer.err
    assert made.fingerprint not in answer.err
    assert tree(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("target", [Stage.CONTROLLERS, Stage.FINALIZE])
@pytest.mark.parametrize("given", ["yes", "0" * 64, 8, 63])
def test_another_fingerprint_binds_no_plan_to_it(given: str | int, target: Stage, tmp_path: Path) -> None:
    """Of a plan that needs none, too: it is another plan than the one that was approved.  Nothing is begun."""
    made, path = make(tmp_path, target)
    before = tree(tmp_path)
    confirm = given if isinstance(given, str) else made.fingerprint[:given]
    answer = kraft_migrate("apply", path, "--confirm", confirm, "--confirm-cluster", made.cluster)
    assert (answer.code, answer.out) == (4, "")
    begins = "only the beginning of" if isinstance(given, int) else "another fingerprint than"
    assert answer.err.startswith(f"E-PLAN-03: --confirm has {begins} this plan's")
    assert made.fingerprint not in answer.err  # nobody pastes it from here
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_exit_codes_of_a_process_are_the_same(tmp_path: Path) -> None:
    """What a script sees."""
    _, path = make(tmp_path, Stage.FINALIZE)
    answer = process("apply", path)
    assert (answer.code, answer.out) == (4, "")
    assert "Traceback" not in answer.err


# -- playbook and lock -------------------------------------------------------------------------------------------------
def test_an_inventory_that_changed_since_is_6(tmp_path: Path) -> None:
    """Other hosts and units than those that were reviewed, or a command that would be run for a secret."""
    made, plan = make(tmp_path)
    assert made.inventory_sha256
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(inventory.read_text() + "\n# another hand\n")
    ended = kraft_migrate("apply", plan)
    assert (ended.code, ended.err.split(":")[0]) == (6, "E-PLAN-02")
    assert "inventory" in ended.err


@pytest.mark.slow
def test_files_that_others_may_write_decide_nothing(tmp_path: Path) -> None:
    """The plan, its inventory, its playbook: each is refused by name."""
    _, plan = make(tmp_path)
    for file, code in ((plan, "E-PLAN-01"), (tmp_path / "inventory.yaml", "E-PLAY-05")):
        file.chmod(0o666)
        ended = kraft_migrate("apply", plan)
        assert (ended.code, ended.err.split(":")[0]) == (1, code)
        assert "everybody may write it" in ended.err
        file.chmod(0o600)


@pytest.mark.slow
def test_a_playbook_that_changed_since_is_6(tmp_path: Path) -> None:
    """Any byte of it; the plan must be created again."""
    _, path = make(tmp_path)
    playbook = tmp_path / "playbook.yaml"
    playbook.write_text(playbook.read_text() + "# a word\n")
    before = tree(tmp_path)
    answer = kraft_migrate("apply", path)
    assert answer.code == 6
    assert answer.err.startswith("E-PLAN-02: the playbook")
    assert f"where  {playbook}" in answer.err
    assert tree(tmp_path) == before


def test_a_playbook_or_inventory_that_is_gone_is_1(tmp_path: Path) -> None:
    """By name."""
    _, path = make(tmp_path)
    (tmp_path / "inventory.yaml").unlink()
    answer = kraft_migrate("apply", path)
    assert answer.code == 1
    assert "E-PLAY-01" in answer.err
    assert "inventory.yaml" in answer.err


@pytest.mark.slow
def test_while_another_run_holds_the_lock_file_it_is_7(tmp_path: Path) -> None:
    """In this process and in another; who holds it is said."""
    made, path = make(tmp_path)
    lock = LockFile(tmp_path / "runs" / "lock")
    try:
        for answer in (kraft_migrate("apply", path), process("apply", path)):
            assert answer.code == 7
            assert answer.err.startswith("E-RUN-03: another process holds this run: ")
            assert "pid " in answer.err
    finally:
        lock.release()
    journal = folder_of(load_inventory(tmp_path / "inventory.yaml"), made).journal
    assert not journal.exists()


@pytest.mark.slow
def test_a_refused_run_leaves_the_report_of_the_one_that_acts_as_it_is(tmp_path: Path) -> None:
    """It did nothing, so it has nothing to report: neither a file nor a word of one."""
    made, path = make(tmp_path)
    folder = folder_of(load_inventory(tmp_path / "inventory.yaml"), made)
    folder.path.mkdir(parents=True)
    Journal.begin(folder.journal, 1.0, {"plan": made.fingerprint, "tool": __version__}).close()
    (folder.path / "report.html").write_text("of the first run")
    lock = LockFile(tmp_path / "runs" / "lock")
    try:
        answer = kraft_migrate("apply", path)
    finally:
        lock.release()
    assert answer.code == 7
    assert "report:" not in answer.err
    assert (folder.path / "report.html").read_text() == "of the first run"
    assert not (folder.path / "report.json").exists()


@pytest.mark.slow
def test_a_plan_of_another_version_is_stale(tmp_path: Path) -> None:
    """Its steps may mean something else here: refused before the first file."""
    made, path = make(tmp_path)
    path.write_text(plan_to_json(replace(made, tool_version="0.0.1")), encoding="utf-8")
    answer = kraft_migrate("apply", path)
    assert answer.code == 6
    assert "0.0.1" in answer.err
    assert "make a new plan" in answer.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_without_zookeeper_there_is_no_lock_and_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where nothing listens: said with its address; the report says that nothing was done."""
    monkeypatch.setattr("migrate.observe.sources.connect", functools.partial(connect, timeout=0.3))
    with dead_port() as port:
        playbook_in(tmp_path)
        inventory_in(tmp_path, zookeeper=f"127.0.0.1:{port}/kafka")
        made, path = make(tmp_path)
        answer = kraft_migrate("apply", path)
    assert (answer.code, answer.out) == (1, "")
    assert "E-ZK-02: no session within 0.3 s" in answer.err
    assert f"where  127.0.0.1:{port}" in answer.err
    folder = folder_of(load_inventory(tmp_path / "inventory.yaml"), made).path
    assert f"report: {folder / 'report.html'}" in answer.err
    report = json.loads((folder / "report.json").read_text())
    assert "PROVEN" not in json.dumps(report["verdict"]).replace("NOT PROVEN", "")
