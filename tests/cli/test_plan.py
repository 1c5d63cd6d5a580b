"""`plan` changes nothing but its own folder, and its exit code is the verdict of its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.findings import Word
from migrate.model.outcome import Unknown
from migrate.model.secrets import hidden
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from migrate.model.world import World
from migrate.report.plan_json import plan_from_json
from migrate.report.plan_verdict import judge
from tests.cli.commands import Ended, kraft_migrate, playbook_in, tree
from tests.steps.looks import service, whole
from tests.testing import worlds
from tests.testing.kept import sources_of

Plan = Callable[..., Ended]


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    """A playbook with every stage, and its inventory."""
    return playbook_in(tmp_path)


@pytest.fixture
def plan(playbook: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """`plan` on a world."""

    def run(world: World, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        return kraft_migrate("plan", playbook, *words)

    return run


def saved(folder: Path) -> Path:
    """The only plan in the folder of runs."""
    (found,) = (folder / "runs").glob("*/plan.json")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.CONTROLLERS, Stage.COPY, Stage.KRAFT_MODE, Stage.FINALIZE])
def test_changes_that_are_pending_are_2(stage: Stage, plan: Plan) -> None:
    """Blind spots that no planned stage needs block nothing: the comparison is made by the steps themselves."""
    answer = plan(whole(stage))
    assert (answer.code, answer.err) == (2, "")
    assert "Read-only run: nothing was changed." in answer.out


def test_a_stage_that_is_complete_is_0(plan: Plan) -> None:
    """Nothing to do."""
    answer = plan(whole(Stage.COPY), "--stage", "controllers")
    assert answer.code == 0
    assert "NO CHANGES" in answer.out


def no_topic_id(world: World) -> World:
    """A topic without topic_id."""
    return worlds.with_zk(world, topics_without_id=("orders",))


def unseen_disks(world: World) -> World:
    """Broker 1's disks are hidden."""
    assert not isinstance(world.disks, Unknown)
    return replace(world, disks={**world.disks, worlds.BROKERS[1]: Unknown("no mount")})


@pytest.mark.parametrize(
    ("world", "words", "says"),
    [
        (no_topic_id(whole(Stage.ASSESS)), (), "orders"),
        (no_topic_id(whole(Stage.CONTROLLERS)), ("--stage", "migration-mode"), "orders"),
    ],
    ids=["blocker on the way", "blocker of the stage"],
)
def test_what_blocks_is_3_and_the_plan_is_shown_all_the_same(
    world: World, words: tuple[str, ...], says: str, plan: Plan
) -> None:
    """With the verdict, the finding and its fix."""
    answer = plan(world, *words)
    assert answer.code == 3
    assert "BLOCKED" in answer.out
    assert says in answer.out


@pytest.mark.slow
def test_what_could_hide_a_blocker_is_1_and_the_plan_is_shown_all_the_same(plan: Plan) -> None:
    """INCOMPLETE, with what was not seen and the share of checks."""
    answer = plan(unseen_disks(whole(Stage.CONTROLLERS)), "--stage", "migration-mode")
    assert answer.code == 1
    assert "INCOMPLETE" in answer.out
    assert "READY" not in answer.out.partition("Rollback")[0]
    assert " checks made; " in answer.out
    assert "broker 1" in answer.out


def test_where_neither_store_can_be_read_is_1(plan: Plan, tmp_path: Path) -> None:
    """As `assess` says it: INCOMPLETE; nothing is planned, nothing is saved."""
    answer = plan(replace(whole(Stage.ASSESS), zookeeper=Unknown("no session"), kraft=Unknown("none answers")))
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(
        "1 PROBLEM: ZooKeeper cannot be read (no session)\nE-VIEW-01: INCOMPLETE: neither ZooKeeper (no session)"
    )
    assert not (tmp_path / "runs").exists()


def test_a_blocker_of_a_later_stage_does_not_block_an_earlier_one(plan: Plan) -> None:
    """It is shown."""
    answer = plan(no_topic_id(whole(Stage.ASSESS)), "--stage", "prepare")
    assert answer.code == 2
    assert "orders" in answer.out


@pytest.mark.slow
@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.COPY, Stage.FINALIZE])
@pytest.mark.parametrize("bend", [lambda world: world, no_topic_id, unseen_disks])
def test_exit_code_and_verdict_are_one(
    stage: Stage, bend: Callable[[World], World], plan: Plan, tmp_path: Path
) -> None:
    """A script and a person must not be told different things."""
    answer = plan(bend(whole(stage)))
    verdict = judge(plan_from_json(saved(tmp_path).read_text()))
    assert answer.code == {Word.BLOCKED: 3, Word.INCOMPLETE: 1, Word.NO_CHANGES: 0}.get(verdict.word, 2)


def test_where_the_cluster_stands_is_unknown_is_3(plan: Plan, tmp_path: Path) -> None:
    """Nothing is planned, nothing is saved."""
    hidden = replace(whole(Stage.COPY), kraft=Unknown("no controller answers"))
    answer = plan(hidden)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(
        "1 PROBLEM: no controller answers (S-STUCK-13)\nE-PLAN-04: the stage of the cluster is "
    )
    assert "no controller answers" in answer.err
    assert "`status` names the next stage" not in answer.err  # it says unknown, too
    assert "give the same command again; if it stays so, `status` says what" in " ".join(answer.err.split())
    assert not (tmp_path / "runs").exists()


def test_a_stage_before_its_time_is_3_and_says_what_comes_first(plan: Plan, tmp_path: Path) -> None:
    """The next steps are whole commands; prepare leaves no trace in the cluster: its cluster stands at assess."""
    for world in (whole(Stage.ASSESS), whole(Stage.PREPARE)):
        answer = plan(world, "--stage", "migration-mode")
        assert answer.code == 3
        path = tmp_path / "playbook.yaml"
        assert f"`kraft-migrate plan {path} --stage controllers` first" in answer.err
        assert f"`kraft-migrate plan {path} --to migration-mode`" in answer.err


def test_no_stage_comes_first_while_a_problem_stands(plan: Plan) -> None:
    """The way forward stands behind what is to be repaired."""
    answer = plan(service(1, Stopped())(whole(Stage.HYBRID)), "--stage", "finalize")
    assert answer.code == 3
    assert answer.err.startswith("1 PROBLEM: broker 1 is stopped on b1")
    assert "next   on b1: start broker 1; the log says why it ended; then `kraft-migrate plan " in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--stage", "christmas"), "there is no stage 'christmas': discover, assess"),
        (("--to", "CHRISTMAS"), "there is no stage"),
        (("--stage", "hybird"), "did you mean hybrid?"),
        (("--stage", "copy", "--to", "soak"), "give one of them"),
        (("--out", "/no/such/folder/p.json"), "there is no folder /no/such/folder"),
    ],
)
def test_wrong_words_are_64_before_anything_is_looked_at(words: tuple[str, ...], says: str, plan: Plan) -> None:
    """No cluster is asked for that."""
    answer = plan(whole(Stage.ASSESS), *words)
    assert (answer.code, answer.out) == (64, "")
    assert says in answer.err


@pytest.mark.slow
def test_a_stage_that_the_playbook_leaves_out_is_64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A playbook is intent: what is not in it is not wanted."""
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.ASSESS)))
    narrow = playbook_in(tmp_path, "assess", "prepare")
    answer = kraft_migrate("plan", narrow, "--to", "soak")
    assert answer.code == 64
    assert "stage soak is not in the playbook" in answer.err
    assert kraft_migrate("plan", narrow).code == 2


@pytest.mark.slow
def test_a_plan_is_saved_whole_for_its_owner_alone_and_nothing_else_changes(plan: Plan, tmp_path: Path) -> None:
    """JSON, text and HTML in a folder named by the fingerprint."""
    before = tree(tmp_path)
    answer = plan(whole(Stage.ASSESS), "--full")
    after = tree(tmp_path)
    short = saved(tmp_path).parent.name
    assert set(after) - set(before) == {f"runs/{short}/plan.{kind}" for kind in ("json", "txt", "html")}
    assert {name: after[name] for name in before} == before
    made = plan_from_json(saved(tmp_path).read_text())
    assert made.short == short
    assert answer.out == (saved(tmp_path).parent / "plan.txt").read_text()
    assert str(saved(tmp_path)) in answer.out
    assert (saved(tmp_path).stat().st_mode & 0o777, saved(tmp_path).parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.slow
def test_json_is_the_saved_plan_and_out_is_a_copy(plan: Plan, tmp_path: Path) -> None:
    """For scripts."""
    answer = plan(whole(Stage.ASSESS), "--output", "json", "--out", tmp_path / "copy.json")
    assert answer.code == 2
    text = saved(tmp_path).read_text()
    assert json.loads(answer.out)["result"] == json.loads(text) == json.loads((tmp_path / "copy.json").read_text())


@pytest.mark.slow
def test_out_refuses_a_file_with_another_plan(plan: Plan, tmp_path: Path) -> None:
    """It stays; the plan is saved in its folder, and the error says where.  The same plan is there already."""
    out = tmp_path / "copy.json"
    assert plan(whole(Stage.ASSESS), "--out", out).code == 2
    before = out.read_bytes()
    assert plan(whole(Stage.ASSESS), "--out", out).code == 2
    ended = plan(whole(Stage.ASSESS), "--to", "prepare", "--out", out)
    assert ended.code == 1
    assert ended.err.startswith("E-PLAN-07: there is another file")
    assert "the plan is saved as" in ended.err
    assert out.read_bytes() == before
    (tmp_path / "notes.txt").write_text("mine")
    ended = plan(whole(Stage.ASSESS), "--out", tmp_path / "notes.txt")
    assert (ended.code, "it is no plan" in ended.err) == (1, True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_inventory_is_the_one_that_the_playbook_names(plan: Plan, tmp_path: Path) -> None:
    """Nothing is planned where it is not there."""
    (tmp_path / "inventory.yaml").rename(tmp_path / "other.yaml")
    assert plan(whole(Stage.ASSESS)).code == 1


@pytest.mark.slow
def test_secrets_of_the_files_are_in_no_plan(plan: Plan, tmp_path: Path) -> None:
    """Neither on the screen nor in the folder."""
    answer = plan(whole(Stage.ASSESS))
    assert f"password.encoder.secret={hidden('a-secret-of-the-lab')}" in answer.out
    everything = answer.out.encode() + b"".join(tree(tmp_path / "runs").values())
    assert b"a-secret-of-the-lab" not in everything
