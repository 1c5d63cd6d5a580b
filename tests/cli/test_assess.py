"""`assess` looks only: 3 where a blocker was found, 1 where one may be hidden; a connect string is enough to begin."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import ChrootMissing
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Malformed, ZnodePart, whole_or_unknown
from migrate.model.world import World
from migrate.observe.bundle import write_bundle
from migrate.zookeeper.client import connect
from tests.cli.commands import Ended, dead_port, inventory_in, kraft_migrate, tree
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.kept import sources_of

Assess = Callable[..., Ended]


@pytest.fixture
def assess(monkeypatch: pytest.MonkeyPatch) -> Assess:
    """`assess` on a world."""
    importlib.import_module("migrate.observe.bundled")  # its class is made of the real sources

    def run(world: World, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        monkeypatch.setattr("migrate.zookeeper.lock.sessions", lambda _: Unknown("no such server"))
        return kraft_migrate("assess", *words)

    return run


def no_topic_id(world: World) -> World:
    """A topic without topic_id."""
    return worlds.with_zk(world, topics_without_id=("orders",))


@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.CONTROLLERS, Stage.COPY, Stage.SOAK, Stage.FINALIZE])
def test_a_healthy_cluster_has_no_blocker_at_any_stage(stage: Stage, assess: Assess, tmp_path: Path) -> None:
    """And nothing is written anywhere."""
    path = inventory_in(tmp_path)
    before = tree(tmp_path)
    answer = assess(whole(stage), "--inventory", path)
    assert (answer.code, answer.err) == (0, "")
    assert "0 blockers" in answer.out
    assert tree(tmp_path) == before


def test_a_blocker_is_3_with_its_code_evidence_and_fix(assess: Assess, tmp_path: Path) -> None:
    """In words and as JSON."""
    path = inventory_in(tmp_path)
    answer = assess(no_topic_id(whole(Stage.ASSESS)), "--inventory", path)
    assert answer.code == 3
    assert "B-ZKN-03" in answer.out
    assert "fix:" in answer.out
    as_json = assess(no_topic_id(whole(Stage.ASSESS)), "--inventory", path, "--output", "json")
    assert as_json.code == 3
    found = json.loads(as_json.out)
    assert found["schema"] == "kraft-migrate/findings/v2"
    assert "B-ZKN-03" in as_json.out


@pytest.mark.slow
def test_a_target_adds_what_the_next_upgrade_meets_and_no_exit_code(assess: Assess, tmp_path: Path) -> None:
    """Without one the answer is what it was; a bundle answers the same."""
    path, world = (
        inventory_in(tmp_path),
        worlds.with_values(whole(Stage.ASSESS), 1, log__message__format__version="3.0"),
    )
    before = assess(world, "--inventory", path)
    answer = assess(world, "--inventory", path, "--target", "4.3")
    assert (before.code, answer.code, answer.err) == (0, 0, "")
    assert "log.message.format.version" not in before.out
    assert "Kafka 4.3 ignores log.message.format.version" in answer.out
    bundle = str(tmp_path / "lab.tar.gz")
    write_bundle(bundle, world, 1_700_000_000)
    assert "Kafka 4.3 ignores" in assess(world, "--from-bundle", bundle, "--target", "4.3").out
    assert assess(world, "--inventory", path, "--target", "3.9").code == 64
    alone = assess(world, "--zookeeper", "zk1:2181/kafka", "--target", "4.0")
    assert "W-VER-20" in alone.out


def test_a_connect_string_alone_gives_a_useful_answer(assess: Assess) -> None:
    """What ZooKeeper knows is checked; what was not asked for makes it INCOMPLETE, with the way to complete it."""
    healthy = assess(whole(Stage.ASSESS), "--zookeeper", "zk1:2181/kafka")
    assert healthy.code == 1
    assert "INCOMPLETE" in healthy.out
    assert "`kraft-migrate assess --inventory FILE`" in healthy.out
    assert "the brokers' disks: not asked for" in healthy.out
    sick = assess(no_topic_id(whole(Stage.ASSESS)), "--zookeeper", "zk1:2181/kafka")
    assert sick.code == 3
    assert "B-ZKN-03" in sick.out


def test_one_unseen_view_makes_it_incomplete_and_1(assess: Assess, tmp_path: Path) -> None:
    """Never 0 and never 3: it is listed with the checks that could not be made."""
    world = worlds.with_live(whole(Stage.ASSESS), metadata={}, log_dirs={}, controllers={})
    answer = assess(world, "--inventory", inventory_in(tmp_path))
    assert answer.code == 1
    assert answer.out.splitlines()[1].strip().startswith("INCOMPLETE (")
    assert "READY" not in answer.out
    assert "checks could not be made" in answer.out


def kept(folder: Path, world: World) -> Path:
    """What was seen, as a bundle."""
    write_bundle(str(folder / "kept.bundle"), world, 1_700_000_000)
    return folder / "kept.bundle"


@pytest.mark.slow
def test_a_cluster_of_which_nothing_can_be_seen_is_not_ready(tmp_path: Path) -> None:
    """In words, JSON and HTML; the share of checks stands beside the verdict."""
    html = tmp_path / "a.html"
    bundle = kept(tmp_path, World(inventory=whole(Stage.ASSESS).inventory))
    words = ("assess", "--from-bundle", bundle, "--html", html)
    answer, as_json = kraft_migrate(*words), kraft_migrate(*words, "--output", "json")
    assert (answer.code, as_json.code) == (1, 1)
    found = json.loads(as_json.out)
    assert found["verdict"] == "INCOMPLETE"
    assert found["checks"]["made"] < 0.1 * found["checks"]["asked"]
    assert len(found["checks"]["not_made"]) == found["checks"]["asked"] - found["checks"]["made"]
    for text in (answer.out, html.read_text()):
        assert "READY" not in text
        assert f"{found['checks']['made']} of {found['checks']['asked']} checks made" in text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["zookeeper", "disks", "live", "configs"])
def test_no_part_that_decides_may_be_missing_where_ready_is_said(part: str, tmp_path: Path) -> None:
    """Each view alone."""
    lost: dict[str, Any] = {part: Unknown("the cable is cut")}
    answer = kraft_migrate("assess", "--from-bundle", kept(tmp_path, replace(whole(Stage.ASSESS), **lost)))
    assert answer.code == 1
    assert "the cable is cut" in answer.out


@pytest.mark.slow
def test_nothing_that_answers_is_no_cluster_that_is_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Real connections: no ZooKeeper, no broker, no file, no host."""
    monkeypatch.setattr("migrate.observe.sources.connect", functools.partial(connect, timeout=0.3))
    answer = kraft_migrate("assess", "--inventory", inventory_in(tmp_path), "--output", "json")
    found = json.loads(answer.out)
    assert (answer.code, found["verdict"]) == (1, "INCOMPLETE")
    assert {"B-ZKN-01", "B-DIR-01", "B-CFG-07", "B-NET-01"} <= set(found["checks"]["not_made"])


def test_a_wrong_chroot_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as an empty cluster."""
    missing = ChrootMissing("there is no /kafka", where="zk1:2181")
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.ASSESS), missing))
    answer = kraft_migrate("assess", "--zookeeper", "zk1:2181/kafka")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("E-ZK-03: there is no /kafka\n")


def test_a_tree_that_cannot_be_read_is_no_healthy_cluster(assess: Assess) -> None:
    """With nothing seen at all, 0 would be a pass."""
    answer = assess(replace(whole(Stage.ASSESS), zookeeper=Unknown("E-ZK-06 no Kafka there")), "--zookeeper", "zk:2181")
    assert (answer.code, answer.out) == (1, "")
    assert "E-VIEW-01: the cluster cannot be read: E-ZK-06 no Kafka there" in answer.err
    assert "where  zk:2181" in answer.err


@pytest.mark.slow
def test_a_port_where_nothing_listens_is_told_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real connection: refused, tried again for its time, then said."""
    monkeypatch.setattr("migrate.observe.sources.connect", functools.partial(connect, timeout=0.3))
    with dead_port() as port:
        answer = kraft_migrate("assess", "--zookeeper", f"127.0.0.1:{port}/kafka")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(
        f"E-ZK-02: no session within 0.3 s\n  where  127.0.0.1:{port}\n  why    127.0.0.1:{port} refuses"
    )


@pytest.mark.parametrize("text", ["", "nonsense:x", "host:99999", "/kafka", "a:1,b:2/k/"])
def test_what_is_no_connect_string_is_told_at_once(text: str) -> None:
    """Without a connection."""
    answer = kraft_migrate("assess", "--zookeeper", text)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("E-ZK-01: ")


def test_reports_put_the_verdict_first_and_show_every_directory(assess: Assess, tmp_path: Path) -> None:
    """HTML, beside the answer; of mode 0600."""
    path, html = inventory_in(tmp_path), tmp_path / "a.html"
    answer = assess(no_topic_id(whole(Stage.ASSESS)), "--inventory", path, "--html", html)
    assert answer.code == 3
    text = html.read_text()
    assert text.index("BLOCKED (1 blocker)") < text.index("B-ZKN-03") < text.index("/data/b2/d2")
    assert " checks made" in text
    assert html.stat().st_mode & 0o777 == 0o600
    nowhere = assess(whole(Stage.ASSESS), "--inventory", path, "--html", tmp_path / "no" / "a.html")
    assert (nowhere.code, nowhere.err.split(":")[0]) == (64, "E-USAGE")


def test_one_malformed_znode_is_a_blocker_and_the_others_are_still_judged(assess: Assess) -> None:
    """By a connect string alone too: the tree is not thrown away for one znode."""
    bad = Malformed("/brokers/topics/t9", "it is no JSON", ZnodePart.TOPIC)
    world = worlds.with_zk(whole(Stage.ASSESS), malformed=(bad,), topics_without_id=("orders",))
    answer = assess(replace(world, zookeeper=whole_or_unknown(worlds.zk(world))), "--zookeeper", "zk1:2181/kafka")
    assert answer.code == 3
    assert "B-ZKN-16" in answer.out
    assert "/brokers/topics/t9" in answer.out
    assert "B-ZKN-03" in answer.out
    assert "the malformed parts of ZooKeeper" in answer.out
