"""A playbook, an inventory, a run's id, its folder or its plan: each command finds by any of them what it needs."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from shlex import quote

import pytest

from migrate.cli.given import cluster_given, plan_given, playbook_given, run_given
from migrate.cli.planning import save_plan
from migrate.errors import UsageWrong
from migrate.model.findings import Finding, Severity
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.observe.bundle import write_bundle
from migrate.playbook.document import BACKUP, BUNDLE, JOURNAL, SAVED_PLAN, read_kind
from migrate.playbook.load import load_inventory
from migrate.run.journal import Journal
from migrate.zookeeper import backup
from tests.cli.commands import inventory_in, kraft_migrate
from tests.cli.test_apply import make
from tests.steps.looks import whole

FORMS = ("playbook", "inventory", "id", "folder", "plan")


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, Path]:
    """A plan in its run's folder below the present one; nothing was carried out."""
    plan, loose = make(tmp_path)
    loose.unlink()
    monkeypatch.chdir(tmp_path)
    return plan, save_plan(load_inventory(tmp_path / "inventory.yaml"), plan)


def word(form: str, plan: Plan, path: Path) -> Path:
    """The same cluster's plan in that form."""
    top = path.parents[2]
    forms = {"playbook": top / "playbook.yaml", "inventory": top / "inventory.yaml", "id": Path(plan.short)}
    return forms.get(form, path.parent if form == "folder" else path)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_form_finds_plan_run_and_cluster(form: str, saved: tuple[Plan, Path]) -> None:
    """One resolver, so that no command takes less than another."""
    plan, path = saved
    given, top = word(form, plan, path), path.parents[2]
    assert plan_given(given, back=False).resolve() == path
    assert playbook_given(given) == top / "playbook.yaml"
    found = (None, top / "inventory.yaml") if form == "inventory" else (top / "playbook.yaml", None)
    assert cluster_given(given, None) == found
    (path.parent / "journal.jsonl").touch()
    assert run_given(given).resolve() == path.parent


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("apply",), "E-"),  # refused for what it finds there, no more for what it was given
        (("report",), "there is no journal: this plan was never carried out"),
        (("rollback", "apply"), "this plan goes forward"),
    ],
)
def test_commands_take_each_form(form: str, words: tuple[str, ...], said: str, saved: tuple[Plan, Path]) -> None:
    """Through the command line; nothing of this cluster is there."""
    plan, path = saved
    if form in ("playbook", "inventory") and words != ("apply",):
        said = "no "  # no rollback is planned, and no run begun
    ended = kraft_migrate(*words, word(form, plan, path))
    assert ended.code != 0
    assert said in ended.err
    assert "not a saved plan" not in ended.err or words == ("rollback", "apply")


@pytest.mark.slow
def test_a_plan_is_not_chosen_among_several(saved: tuple[Plan, Path], tmp_path: Path) -> None:
    """Both are named, with how far they go."""
    further = replace(saved[0], target=Stage.COPY)
    save_plan(load_inventory(tmp_path / "inventory.yaml"), further)
    with pytest.raises(UsageWrong, match="2 plans of it are not carried out") as refused:
        plan_given(tmp_path / "playbook.yaml", back=False)
    assert "up to controllers, not begun" in refused.value.why
    assert further.short in refused.value.why
    found = Finding("B-HLT-02", Severity.BLOCKER, "broker 1", "it is down", blocks_from=1)
    save_plan(load_inventory(tmp_path / "inventory.yaml"), replace(further, target=Stage.HYBRID, findings=(found,)))
    with pytest.raises(UsageWrong, match="3 plans") as refused:
        plan_given(tmp_path / "playbook.yaml", back=False)
    assert "up to hybrid, not begun, BLOCKED" in refused.value.why
    assert refused.value.next_step == "kraft-migrate apply, with the one of them that you have read"
    (saved[1].parent / "journal.jsonl").touch()
    with pytest.raises(UsageWrong, match="3 plans") as refused:
        plan_given(tmp_path / "playbook.yaml", back=False)
    assert refused.value.next_step == f"kraft-migrate apply {saved[1]} continues the run that was begun"
    for folder in (saved[0].short, further.short):
        (tmp_path / "runs" / folder / "plan.json").unlink()
    save_plan(load_inventory(tmp_path / "inventory.yaml"), replace(further, target=Stage.SOAK, findings=(found,)))
    with pytest.raises(UsageWrong, match="2 plans") as refused:
        plan_given(tmp_path / "playbook.yaml", back=False)
    assert refused.value.next_step.startswith("none of them can begin: mend what blocks them")


@pytest.mark.slow
def test_a_plan_of_an_edited_playbook_is_none_of_it(saved: tuple[Plan, Path], tmp_path: Path) -> None:
    """`apply` would refuse it as stale: it is planned again."""
    playbook = tmp_path / "playbook.yaml"
    playbook.write_text(playbook.read_text() + "# edited\n")
    with pytest.raises(UsageWrong, match="no plan of it as it is now is left") as refused:
        plan_given(playbook, back=False)
    assert refused.value.next_step == f"kraft-migrate plan {playbook}"


@pytest.mark.slow
def test_a_run_of_two_folders_is_not_chosen(saved: tuple[Plan, Path], tmp_path: Path) -> None:
    """The id is the plan's fingerprint, which a copied folder has as well."""
    shutil.copytree(saved[1].parents[1], tmp_path / "copy" / "runs")
    with pytest.raises(UsageWrong, match="more than one run has that id"):
        run_given(Path(saved[0].short))


def test_an_unknown_id_names_the_runs_that_are_there(saved: tuple[Plan, Path]) -> None:
    """A typo in eight digits is found by comparing them."""
    with pytest.raises(UsageWrong, match="no run of that id") as refused:
        plan_given(Path("deadbeef"), back=False)
    assert saved[0].short in refused.value.why


@pytest.mark.slow
def test_a_folder_that_is_no_runs_names_the_playbook_in_it(saved: tuple[Plan, Path], tmp_path: Path) -> None:
    """As `status look`, where look/playbook.yaml was meant."""
    assert saved
    ended = kraft_migrate("status", tmp_path)
    assert ended.code == 64
    assert f"did you mean {tmp_path / 'playbook.yaml'}?" in " ".join(ended.err.split())


def test_each_next_step_is_a_line_that_a_shell_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path in it is one word, though its folder has a space in its name."""
    (folder := tmp_path / "two words").mkdir()
    inventory, playbook = inventory_in(folder), folder / "playbook.yaml"
    make(folder)[1].unlink()
    monkeypatch.chdir(tmp_path)
    named = "'two words/playbook.yaml'"
    for words, next_step in (
        (("plan",), f"kraft-migrate plan {named}"),
        ((named.strip("'"),), f"kraft-migrate plan {named}"),
        (("rollback", named.strip("'")), f"kraft-migrate rollback plan {named}"),
        (("assess", "two words"), f"did you mean {named}?"),
        (("rollback", "plan", inventory), f"kraft-migrate rollback plan {quote(str(playbook))}"),
        (("bundle", "show", playbook), f"kraft-migrate bundle create NAME.tar.gz {quote(str(playbook))}"),
    ):
        assert next_step in " ".join(kraft_migrate(*words).err.split()), words


def test_an_inventory_without_plans_asks_for_the_playbook(tmp_path: Path) -> None:
    """`rollback plan` needs what the playbook says."""
    with pytest.raises(UsageWrong, match="a playbook is needed"):
        playbook_given(inventory_in(tmp_path))


def test_files_that_the_tool_wrote_are_told_apart(saved: tuple[Plan, Path], tmp_path: Path) -> None:
    """By their first bytes, however large they are."""
    write_bundle(str(tmp_path / "bundle"), whole(Stage.ASSESS), 1)
    Journal.opened(tmp_path / "journal", 1.0, {"plan": "x"})
    head = backup._line({"format": backup.FORMAT, "connect": "zk1:2181/kafka"})
    (tmp_path / "tree").write_bytes(gzip.compress(head + b"x" * 300_000))
    assert read_kind(saved[1]) == SAVED_PLAN
    assert read_kind(tmp_path / "bundle") == BUNDLE
    assert read_kind(tmp_path / "journal") == JOURNAL
    assert read_kind(tmp_path / "tree") == BACKUP
