"""Where a rehearsal turns back, and that a folder keeps one story."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from migrate.cli.rollback_demo import TURNS, Planting, RollbackDemo
from migrate.model.config_keys import QuorumKind
from migrate.model.history import Event
from migrate.model.plan import Direction, Plan
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.run.carry_out import folder_of
from tests.cli.commands import kraft_migrate
from tests.report import story
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.worlds import playbook


def plan_from(stage: Stage, target: Stage) -> Plan:
    """A plan of the healthy cluster."""
    return build(whole(stage), playbook(), target=target, only=False, created=1.0)


@pytest.mark.parametrize(
    ("turn", "step"),
    [
        ("controllers", ""),
        ("half-migration-mode", "migration-mode/1"),
        ("migration-mode", "migration-mode/2"),
        ("hybrid", ""),
        ("half-kraft-mode", "kraft-mode/1"),
        ("kraft-mode", ""),
        ("soak", ""),
    ],
)
def test_each_turn_leaves_the_first_run_where_its_name_says(turn: str, step: str) -> None:
    """Half of a roll is two of three brokers; a whole stage ends by itself."""
    here = TURNS[turn]
    plan = plan_from(Stage.ASSESS, here.target)
    assert here.park_at(plan) == step
    assert not step or step in [one.id for one in plan.steps]
    assert plan.steps[-1].stage <= here.target


def test_every_entry_of_the_rollback_has_its_turn() -> None:
    """The seven, and only one of them holds the copy open."""
    assert len(TURNS) == 7
    assert [turn.name for turn in TURNS.values() if turn.held] == ["migration-mode"]
    assert all(turn.target.reversible for turn in TURNS.values())


def test_where_no_story_turns_is_wrong_usage(tmp_path: Path) -> None:
    """Nothing is made for a name that is none."""
    ended = kraft_migrate("lab", "demo", "--dir", tmp_path / "x", "--rollback-from", "finalize")
    assert (ended.code, "half-kraft-mode" in ended.err) == (64, True)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"rollback_from": "soak"}, "with --rollback-from soak"),
        ({"plan": "runs/x/plan.json"}, "without --rollback-from"),
    ],
)
def test_a_folder_keeps_its_story(
    state: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one is refused before a process is started."""

    class Lab:
        """A lab of which only its executor is asked."""

        inventory = worlds.inventory()

        class topology:  # noqa: N801 - as Lab has it
            """Its folder."""

            directory = str(tmp_path)
            manual = False
            quorum = QuorumKind.STATIC

        @classmethod
        def create(cls, *_: object, **__: object) -> type[Lab]:
            """No files, no processes."""
            return cls

        @classmethod
        def require(cls, *_: object, **__: object) -> None:
            """It is of the wanted kind."""

    monkeypatch.setattr("migrate.cli.demo.Demo.lab", Lab)
    (tmp_path / "demo.json").write_text(json.dumps(state))
    ended = kraft_migrate("lab", "demo", "--dir", tmp_path, "--rollback-from", "hybrid")
    assert (ended.code, told in ended.err) == (64, True)
    assert json.loads((tmp_path / "demo.json").read_text()) == state


def event(name: str, step: str) -> Event:
    """One of the engine's."""
    return Event(0, 1.0, name, {"step": step})


def test_the_dead_id_goes_in_once_when_the_last_broker_is_waited_for() -> None:
    """Not before its step began, and not in another's; a run that was killed after that plants it in its first wait."""
    last = "migration-mode/2"
    told = [("waiting", last), ("intend", "migration-mode/1"), ("waiting", "migration-mode/1"), ("intend", last)]
    planting = Planting(last, wanted=True, begun=False)
    assert not any(planting.due(event(*one)) for one in told)
    assert planting.due(event("waiting", last))
    assert not planting.due(event("waiting", last))
    assert Planting(last, wanted=True, begun=True).due(event("waiting", last))
    assert not Planting(last, wanted=False, begun=True).due(event("waiting", last))
    assert not Planting(last, wanted=True, begun=True).due(Event(0, 1.0, "session", {}))


def test_the_rollbacks_report_is_written_again_with_its_part_of_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load is judged at the end of the whole story; until then no report of a part has one."""
    plan = replace(story.plan(), direction=Direction.BACK, target=Stage.ASSESS)
    lab = SimpleNamespace(inventory=replace(worlds.inventory(), runs=str(tmp_path)))
    demo = SimpleNamespace(_lab=lab, _kept_plan=lambda _: plan)
    monkeypatch.setattr("migrate.playbook.load.load_inventory", lambda _: lab.inventory)
    folder = folder_of(lab.inventory, plan).path
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("")
    monkeypatch.setattr("migrate.run.journal.read", lambda _: SimpleNamespace(events=story.journal(), torn=False))
    RollbackDemo._leg(demo, "rollback", "plan_back", story.load())  # type: ignore[arg-type]
    text = (folder / "report.html").read_text()
    assert "24,090 acknowledged, 24,097 read, 0 missing" in text
    assert "counted once, at the end of the whole rehearsal" in text
