"""`bundle` keeps what was seen; commands answer from it, and from the collector's files, as they answer live."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts import collect_disks
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.observe import bundled
from migrate.observe.bundle import read_bundle, write_bundle
from migrate.report.wording import moment
from migrate.run.clock import SystemClock
from tests.cli.commands import Ended, inventory_in, kraft_migrate, playbook_in
from tests.hosts.test_disks import log_dir, replica
from tests.lab.commands import kraft_migrate as as_process
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.kept import sources_of

On = Callable[..., Ended]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> On:
    """A command on a world."""

    def run(world: World, *words: object) -> Ended:
        with monkeypatch.context() as here:
            here.setattr("migrate.observe.sources.Sources", sources_of(world))
            return kraft_migrate(*words)

    return run


def at(stage: Stage, folder: Path) -> tuple[World, Path]:
    """A world whose ZooKeeper needs no waiting for, and its playbook."""
    return whole(stage), playbook_in(folder)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.PREPARE, Stage.CONTROLLERS, Stage.KRAFT_MODE, Stage.FINALIZE])
def test_commands_answer_from_a_bundle_as_they_do_live(
    stage: Stage, on: On, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """assess, directories show and verify: the same words, the same exit code; no cluster is near."""
    world, playbook = at(stage, tmp_path)
    monkeypatch.setattr(bundled, "look_for_bundle", lambda observer: whole_world(world, observer))
    made = on(world, "bundle", "create", tmp_path / "b", playbook)
    assert (made.code, made.err) == (0, "")
    created = read_bundle(str(tmp_path / "b")).created
    monkeypatch.setattr(SystemClock, "now", lambda _: created)
    assert f"last look {moment(created)}" in kraft_migrate("assess", "--from-bundle", tmp_path / "b").out
    for words in (("assess",), ("directories", "show"), ("directories", "verify")):
        for output in ("text", "json"):
            live = on(world, *words, playbook, "-o", output)
            kept = kraft_migrate(*words, "--from-bundle", tmp_path / "b", "-o", output)
            assert (kept.code, answer_in(kept, output), kept.err) == (live.code, answer_in(live, output), live.err)


def answer_in(ended: Ended, output: str) -> object:
    """What was answered, without what a look cost: a bundle costs nothing."""
    return json.loads(ended.out)["result"] if output == "json" else ended.out.partition("ZooKeeper was read by")[0]


def whole_world(world: World, observer: object) -> World:
    """That world, under the inventory and playbook that the command loaded."""
    sources = observer.sources  # type: ignore[attr-defined]
    return replace(world, inventory=sources.inventory, playbook=sources.playbook)


@pytest.mark.slow
def test_a_plan_from_a_bundle_has_the_same_steps_and_is_not_saved(
    on: On, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be applied: files without secrets have other sums, which the fingerprint covers."""
    world, playbook = at(Stage.ASSESS, tmp_path)
    monkeypatch.setattr(bundled, "look_for_bundle", lambda observer: whole_world(world, observer))
    assert on(world, "bundle", "create", tmp_path / "b", playbook).code == 0
    kept = kraft_migrate("plan", "--from-bundle", tmp_path / "b", "-o", "json")
    assert not (tmp_path / "runs").exists()
    live = on(world, "plan", playbook, "-o", "json")
    assert kept.code == live.code == 2
    one, two = json.loads(live.out)["plan"], json.loads(kept.out)["plan"]
    assert [step["id"] for step in one["steps"]] == [step["id"] for step in two["steps"]]
    assert [step["title"] for step in one["steps"]] == [step["title"] for step in two["steps"]]
    assert "a-secret-of-the-lab" not in kept.out
    text = kraft_migrate("plan", "--from-bundle", tmp_path / "b").out
    assert "not saved" in text


@pytest.mark.slow
def test_show_tells_what_is_in_it_and_what_was_not_seen(
    on: On, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts with their sizes; unknown ones with the reason; create says the same."""
    world, playbook = at(Stage.KRAFT_MODE, tmp_path)
    world = replace(world, zookeeper=Unknown("it was stopped"))
    monkeypatch.setattr(bundled, "look_for_bundle", lambda observer: whole_world(world, observer))
    made = on(world, "bundle", "create", tmp_path / "b", playbook)
    shown = kraft_migrate("bundle", "show", tmp_path / "b")
    assert (shown.code, shown.out) == (0, made.out)
    assert "unknown: it was stopped" in shown.out
    parts = json.loads(kraft_migrate("bundle", "show", tmp_path / "b", "-o", "json").out)["parts"]
    assert parts["kraft"]["seen"].startswith("6 partitions")
    assert parts["disks"]["seen"] == "6 nodes"


def test_usage_and_damage_are_errors_with_ids(on: On, tmp_path: Path) -> None:
    """Over an existing file, from a damaged one, two sources at once, no playbook."""
    world, playbook = at(Stage.ASSESS, tmp_path)
    (tmp_path / "b").write_text("mine")
    again = on(world, "bundle", "create", tmp_path / "b", playbook)
    assert (again.code, again.err.split(":")[0]) == (1, "E-BUNDLE-03")
    for words in (("bundle", "show", tmp_path / "b"), ("assess", "--from-bundle", tmp_path / "b")):
        ended = kraft_migrate(*words)
        assert (ended.code, ended.err.split(":")[0]) == (1, "E-BUNDLE-01")
    both = kraft_migrate("assess", playbook, "--from-bundle", tmp_path / "b", "--disks", tmp_path / "b")
    assert both.code == 64
    assert kraft_migrate("assess", "--zookeeper", "x:1", "--from-bundle", tmp_path / "b").code == 64
    assert kraft_migrate("plan").code == 64
    assert (tmp_path / "b").read_text() == "mine"


@pytest.mark.slow
def test_disks_come_from_the_collectors_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen, and not healthy where nobody probed; a broker without a file is unknown; nothing here is looked at."""
    inventory = inventory_in(tmp_path)
    path = log_dir(tmp_path)
    replica(path, "orders-0")
    for name, words in (("probed", ["--probe"]), ("seen", [])):
        assert collect_disks.main(["--node", "1", *words, str(path)]) == 0
        (tmp_path / name).write_text(capsys.readouterr().out)
    answers = {}
    for name in ("probed", "seen"):
        ended = kraft_migrate("directories", "show", "--inventory", inventory, "--disks", tmp_path / name, "-o", "json")
        assert (ended.code, ended.err) == (2, "")  # of broker 0 nothing is known
        rows = {row["broker"]: row for row in json.loads(ended.out)["directories"]}
        assert rows[0]["health"] == "unknown: no file of the collector is of node 0"
        assert rows[1]["path"] == str(path)
        assert rows[1]["replicas"] == 1
        answers[name] = rows[1]["health"]
    assert answers["probed"] == "healthy"
    assert answers["seen"].startswith("unknown: ")
    (tmp_path / "probed").write_text("{}")
    ended = kraft_migrate("directories", "show", "--inventory", inventory, "--disks", tmp_path / "probed")
    assert (ended.code, ended.err.split(":")[0]) == (1, "E-COLLECT-01")


@pytest.mark.spark
def test_diff_compares_what_a_bundle_holds(tmp_path: Path) -> None:
    """Equal views are equal afterwards, a planted difference is found; nothing is waited for or read again.

    As a process of its own: one has one Spark session.
    """
    world = whole(Stage.COPY)
    write_bundle(str(tmp_path / "same"), world, 1)
    ended = as_process("diff", "--from-bundle", str(tmp_path / "same"), "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["unexcused"] == 0
    planted = worlds.with_entity(world, "topic-config", "t0", "plugin.secret", "canary")
    write_bundle(str(tmp_path / "other"), planted, 1)
    ended = as_process("diff", "--from-bundle", str(tmp_path / "other"), "-o", "json")
    assert ended.returncode == 2
    wrong = [row for row in json.loads(ended.stdout)["differences"] if row["class"] != "EXPECTED"]
    assert [(row["kind"], row["key"]) for row in wrong] == [("topic-config", "t0")]
    assert "canary" not in ended.stdout


def test_the_collector_prints_itself() -> None:
    """Byte by byte: what is read here is what runs there."""
    ended = kraft_migrate("directories", "collector")
    assert (ended.code, ended.out) == (0, Path(collect_disks.__file__).read_text(encoding="utf-8"))
