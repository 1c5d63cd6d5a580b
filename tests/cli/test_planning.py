"""A plan is written whole, read back as it was, and aimed at a stage that the playbook has."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate import checks
from migrate.cli.assessing import lasting_findings
from migrate.cli.given import load_plan
from migrate.cli.options import write_text
from migrate.cli.planning import keep, make_plan, save_plan, target_stage
from migrate.errors import MalformedPlan, PlanUnreadable, UsageWrong
from migrate.model.findings import Finding, Severity
from migrate.model.plan import Plan
from migrate.model.stage import MIGRATION, Stage
from migrate.model.views import PendingWork
from migrate.model.world import Need, World
from migrate.observe.world import ClusterObserver
from migrate.plan.build import build
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.kept import KeptSources
from tests.testing.simulated import FakeClock


def plan(target: Stage = Stage.CLEANUP) -> Plan:
    """A plan of the healthy world."""
    return build(whole(Stage.ASSESS), worlds.playbook(), target=target, only=False, created=1.0)


@pytest.mark.slow
def test_a_saved_plan_is_read_back_as_it_was(tmp_path: Path) -> None:
    """From the folder of its run."""
    inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    path = save_plan(inventory, plan())
    assert path == tmp_path / "runs" / plan().short / "plan.json"
    assert load_plan(path) == plan()
    assert load_plan(path.parent) == plan()  # a run's folder
    assert save_plan(inventory, plan()) == path


@pytest.mark.slow
def test_a_saved_plan_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same steps with another finding have a name of their own, pages too; the time alone makes no other plan."""
    inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    first = save_plan(inventory, plan())
    folder = first.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"plan.json", "plan.html", "plan.txt"}
    assert save_plan(inventory, replace(plan(), created=9.0)) == first
    other = replace(plan(), findings=(Finding("W-DIR-07", Severity.WARNING, "a disk", "is full"),))
    assert other.fingerprint == plan().fingerprint
    second = save_plan(inventory, other)
    assert second == folder / "plan-2.json"
    assert load_plan(second) == other
    assert save_plan(inventory, other) == second
    assert "is full" in (folder / "plan-2.txt").read_text()
    assert str(second) in (folder / "plan-2.html").read_text()
    third = replace(plan(), findings=(Finding("W-DIR-07", Severity.WARNING, "a disk", "is fuller"),))
    assert save_plan(inventory, third) == folder / "plan-3.json"
    assert {name: (folder / name).read_bytes() for name in before} == before
    capsys.readouterr()
    assert keep(inventory, plan(), None) == str(first)
    assert capsys.readouterr().err == ""
    assert keep(inventory, other, None) == str(second)
    assert capsys.readouterr().err.startswith(f"{first} stays as it is")


@pytest.mark.slow
def test_pages_that_a_kill_left_out_are_written_with_the_same_plan(tmp_path: Path) -> None:
    """The plan itself claims the name, first of the three."""
    inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    path = save_plan(inventory, plan())
    path.with_suffix(".html").unlink()
    assert save_plan(inventory, plan()) == path
    assert path.with_suffix(".html").exists()


@pytest.mark.slow
def test_a_file_that_has_the_name_is_no_plans_to_replace(tmp_path: Path) -> None:
    """Whatever it is: damaged, of another release, or of a person."""
    inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    path = save_plan(inventory, plan())
    path.write_text("{}")
    assert save_plan(inventory, plan()).name == "plan-2.json"
    assert path.read_text() == "{}"


@pytest.mark.slow
def test_plans_of_one_inventory_lie_side_by_side(tmp_path: Path) -> None:
    """None overwrites another."""
    inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    paths = {save_plan(inventory, plan(stage)) for stage in (Stage.PREPARE, Stage.CONTROLLERS, Stage.CLEANUP)}
    assert len(paths) == 3
    assert {load_plan(path).target for path in paths} == {Stage.PREPARE, Stage.CONTROLLERS, Stage.CLEANUP}


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    """A folder, a missing file, somebody else's file."""
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(PlanUnreadable) as caught:
            load_plan(path)
        assert caught.value.where in (str(path), str(path / "plan.json"))
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(MalformedPlan) as malformed:
        load_plan(tmp_path / "other.json")
    assert malformed.value.where == str(tmp_path / "other.json")
    assert malformed.value.why


def test_a_text_is_written_whole_or_not_at_all_and_for_its_owner_alone(tmp_path: Path) -> None:
    """A reader never sees half of it, and no part is left."""
    path = tmp_path / "report.html"
    write_text(path, "one")
    write_text(path, "größer")
    assert path.read_text(encoding="utf-8") == "größer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half \ud800")
    assert path.read_text(encoding="utf-8") == "größer"


@pytest.mark.parametrize("stage", MIGRATION[1:])
def test_a_target_is_named_as_on_the_command_line(stage: Stage) -> None:
    """And is the playbook's last where none is named."""
    assert target_stage(worlds.playbook(), stage.label) is stage
    assert target_stage(replace(worlds.playbook(), stages=(Stage.ASSESS, stage)), None) is max(Stage.ASSESS, stage)


@pytest.mark.parametrize("name", ["", "Copy ", "rollback", "migration_mode.", "11"])
def test_a_name_that_is_no_stage_is_a_usage_error(name: str) -> None:
    """With those that there are."""
    with pytest.raises(UsageWrong, match="migration-mode"):
        target_stage(worlds.playbook(), name)


def test_a_stage_that_the_playbook_leaves_out_is_a_usage_error() -> None:
    """It names the playbook."""
    with pytest.raises(UsageWrong) as caught:
        target_stage(replace(worlds.playbook(), stages=(Stage.ASSESS,)), "soak")
    assert caught.value.where == "/lab/playbook.yaml"


@pytest.mark.slow
def test_a_plan_tells_first_whether_the_rollback_is_open_now(tmp_path: Path) -> None:
    """From the stage of the cluster, with its cost; no backup was looked at here, and that bars it."""
    for stage, word in ((Stage.ASSESS, "READY: nothing to undo"), (Stage.COPY, "NOT READY from hybrid; broker 0: ")):
        inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
        sources = KeptSources(replace(whole(stage), inventory=inventory))
        observer = ClusterObserver(sources)
        made = make_plan(observer, worlds.playbook(), target=Stage.KRAFT_MODE, only=False, created=1.0)
        now, *stages = made.summary.rollback
        assert now["procedure"].startswith(word)
        assert now["stage"] == ("now (nothing was begun)" if stage is Stage.ASSESS else "now (hybrid)")
        assert now["rolls"] == ("0" if stage is Stage.ASSESS else "1")
        assert [row["stage"] for row in stages] == [row["stage"] for row in plan().summary.rollback]


def test_topics_in_deletion_are_looked_at_again_before_a_plan_or_an_assessment_tells_of_them() -> None:
    """One that is gone a second later is no finding; one that stays is."""
    world = whole(Stage.ASSESS)
    looks = [("gone", "stays"), ("stays", "new"), ("stays",), ("stays",)]
    seen = [worlds.with_zk(world, pending=PendingWork(deletions=names)) for names in looks]
    observer = Looks(iter(seen[1:]))
    clock = FakeClock()
    found = lasting_findings(observer, checks.run(seen[0], target=Stage.ASSESS), clock)
    assert [entry.about for entry in found if entry.code == "B-ZKN-06"] == ["/admin/delete_topics/stays"]
    assert clock.monotonic() >= 3
    quiet = checks.run(world, target=Stage.ASSESS)
    assert lasting_findings(Looks(iter(())), quiet, clock) == quiet, "nothing of the kind: no further look"


@dataclass
class Looks:
    """An observer of worlds in their order."""

    worlds: Iterator[World]

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The next one."""
        assert Need.ZOOKEEPER in needs
        assert not facts
        return next(self.worlds)
