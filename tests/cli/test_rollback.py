"""`rollback plan` says how the rollback goes and changes nothing; `rollback apply` wants the plan's fingerprint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.apply import after_rollback
from migrate.model.outcome import Unknown
from migrate.model.plan import Direction
from migrate.model.stage import ZkMigrationState
from migrate.model.views import MigrationZnode
from migrate.model.world import World
from migrate.report.plan_json import plan_from_json, plan_to_json
from tests.cli.commands import Ended, kraft_migrate, playbook_in, tree
from tests.steps.rollback.test_gates import ALL, hybrid
from tests.steps.rollback.test_steps import half
from tests.testing.kept import sources_of
from tests.testing.simulated_back import two_way
from tests.testing.worlds import with_kraft, with_zk

Way = Callable[..., Ended]


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    """A playbook with every stage, and its inventory."""
    return playbook_in(tmp_path)


@pytest.fixture
def plan(playbook: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    """`rollback plan` on a world."""

    def run(world: World, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        return kraft_migrate("rollback", "plan", playbook, *words)

    return run


@pytest.mark.slow
def test_the_rollback_is_shown_whole(plan: Way) -> None:
    """From where, to where, every file's change, the znodes, the cost, and the command that carries it out."""
    answer = plan(half())
    assert (answer.code, answer.err) == (2, "")
    for text in (
        "rollback plan",
        "ZooKeeper mode, as before the migration",
        "half of the second roll",
        "Back from stage 7 kraft-mode",
        "-zookeeper.metadata.migration.enable=true",
        "/controller",
        "/migration",
        "Cost of the rollback",
        "nothing was changed",
        "kraft-migrate rollback apply",
        "--confirm",
    ):
        assert text in answer.out, text
    assert "a-secret-of-the-lab" not in answer.out


@pytest.mark.slow
def test_the_plan_is_saved_as_json_text_and_html_of_a_rollback(plan: Way, tmp_path: Path) -> None:
    """`--out` is a copy of the saved one; the page says what it is."""
    answer = plan(hybrid(), "--out", tmp_path / "back.json", "--output", "json")
    made = plan_from_json(answer.out)
    assert made.direction is Direction.BACK
    folder = tmp_path / "runs" / made.short
    assert (folder / "plan.json").read_text() == (tmp_path / "back.json").read_text() == plan_to_json(made)
    assert "Rollback plan: " in (folder / "plan.html").read_text()
    assert "Back from stage 4 migration-mode" in (folder / "plan.txt").read_text()


@pytest.mark.slow
def test_a_plan_changes_nothing_but_its_own_folder(plan: Way, tmp_path: Path) -> None:
    """Looking is all it does."""
    before = tree(tmp_path)
    plan(half())
    assert {path: raw for path, raw in tree(tmp_path).items() if not path.startswith("runs/")} == before


def test_with_nothing_to_undo_it_is_0(plan: Way) -> None:
    """A cluster that never began."""
    answer = plan(two_way().observe(ALL, {}))
    assert answer.code == 0
    assert "NO CHANGES" in answer.out


def test_a_finalized_cluster_is_3_with_the_way_forward(plan: Way) -> None:
    """There is no rollback."""
    answer = plan(with_kraft(half(), migration_state=ZkMigrationState.POST_MIGRATION))
    assert answer.code == 3
    assert "E-PLAN-06" in answer.err
    assert "way forward" in answer.err


def test_without_copies_it_is_3_and_nothing_is_saved(plan: Way, tmp_path: Path) -> None:
    """A configuration is never made up."""
    answer = plan(replace(half(), backups=Unknown("permission denied")))
    assert answer.code == 3
    assert "permission denied" in answer.err
    assert not (tmp_path / "runs").exists()


def test_a_copy_that_is_not_stuck_is_3(plan: Way) -> None:
    """And says where to look."""
    answer = plan(hybrid(), "--copy-again")
    assert answer.code == 3
    assert "not stuck" in answer.err


def test_out_of_a_stuck_copy(plan: Way) -> None:
    """The plan is called by its end."""
    answer = plan(with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 3)), "--copy-again")
    assert answer.code == 2
    assert "the copy again, with a fresh quorum" in answer.out
    assert "a copy that is stuck" in answer.out


@pytest.mark.slow
def test_behind_a_rollback_the_next_command_is_named(plan: Way) -> None:
    """Migrate again from the beginning; behind a copy that was made again, compare it."""
    back = plan_from_json(plan(half(), "--output", "json").out)
    again = plan(with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 3)), "--copy-again", "--output", "json")
    path = back.playbook
    assert after_rollback(back) == f"kraft-migrate plan {path}; earlier plans are no longer valid"
    assert after_rollback(plan_from_json(again.out)) == f"kraft-migrate plan {path} --stage hybrid"


def test_a_folder_for_out_that_is_not_there_is_64(plan: Way, tmp_path: Path) -> None:
    """Before anything is looked at."""
    assert plan(half(), "--out", tmp_path / "nowhere" / "plan.json").code == 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("confirm", "said"),
    [((), "the command with its fingerprint is at its end"), (("--confirm", "12345678"), "'12345678'")],
)
def test_apply_wants_the_whole_fingerprint(plan: Way, tmp_path: Path, confirm: tuple[str, ...], said: str) -> None:
    """Exit code 4; where to read it is told, never the fingerprint, and nothing is begun."""
    made = plan_from_json(plan(half(), "--out", tmp_path / "back.json", "-o", "json").out)
    before = tree(tmp_path)
    answer = kraft_migrate("rollback", "apply", tmp_path / "back.json", *confirm)
    assert answer.code == 4
    assert said in answer.err
    assert made.fingerprint not in answer.err
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_each_apply_takes_its_own_direction(plan: Way, tmp_path: Path) -> None:
    """A rollback is not applied by accident, and a way forward is no rollback."""
    text = plan(half(), "--out", tmp_path / "back.json", "-o", "json").out
    answer = kraft_migrate("apply", tmp_path / "back.json")
    assert (answer.code, "rollback apply" in answer.err) == (64, True)
    made = replace(plan_from_json(text), direction=Direction.FORWARD)
    (tmp_path / "forward.json").write_text(plan_to_json(made))
    answer = kraft_migrate("rollback", "apply", tmp_path / "forward.json")
    assert (answer.code, "goes forward" in answer.err) == (64, True)


@pytest.mark.slow
def test_an_edited_direction_is_no_plan(plan: Way, tmp_path: Path) -> None:
    """The fingerprint covers it."""
    body = json.loads(plan(half(), "--out", tmp_path / "back.json", "-o", "json").out)
    body["plan"]["direction"] = "forward"
    (tmp_path / "back.json").write_text(json.dumps(body))
    answer = kraft_migrate("apply", tmp_path / "back.json")
    assert "E-PLAN-01" in answer.err
    body["plan"]["direction"] = "sideways"
    (tmp_path / "back.json").write_text(json.dumps(body))
    assert "E-REPORT-01" in kraft_migrate("apply", tmp_path / "back.json").err
