"""`status` says the state of the migration and what comes next, without Spark, whatever cannot be seen."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.status import BROKERS_RESTART, describe, named
from migrate.hosts.properties import parse
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.ensemble import Ensemble, EnsembleServer
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, MigrationZnode, Quorum, Stopped
from migrate.model.world import World
from migrate.report.status import as_text
from migrate.zookeeper.client import connect
from tests.cli.commands import dead_port, inventory_in, kraft_migrate, playbook_in, process
from tests.steps.looks import registration, service, unhealthy, whole, without
from tests.steps.test_finalize import finalized, started
from tests.steps.test_gates import being_moved
from tests.testing import worlds
from tests.testing.kept import sources_of


def half_final(world: World) -> World:
    """One controller without the flag was elected; one still has it."""
    bent = finalized(started(world), 3000, 3001)
    answers = {**worlds.live(bent).controllers}
    for node in (3000, 3001):
        answer = answers[NodeId(node)]
        assert not isinstance(answer, Unknown)
        answers[NodeId(node)] = replace(answer, migration_flag=False)
    state = worlds.kraft(whole(Stage.FINALIZE)).migration_state
    return worlds.with_live(worlds.with_kraft(bent, migration_state=state), controllers=answers)


def quorum_of(world: World) -> Quorum:
    """Its quorum, seen."""
    quorum = worlds.live(world).quorum
    assert isinstance(quorum, Quorum)
    return quorum


@pytest.mark.parametrize(
    ("world", "stage", "half", "after"),
    [
        (whole(Stage.ASSESS), "assess", None, "plan PLAYBOOK"),
        (whole(Stage.CONTROLLERS), "controllers", None, "plan PLAYBOOK --stage migration-mode"),
        (whole(Stage.MIGRATION_MODE), "controllers", "migration-mode", "plan PLAYBOOK --stage migration-mode"),
        (whole(Stage.COPY), "copy", None, "plan PLAYBOOK --stage hybrid"),
        (
            registration(0, migrating=False)(whole(Stage.COPY)),
            "hybrid",
            "kraft-mode",
            "plan PLAYBOOK --stage kraft-mode",
        ),
        (whole(Stage.KRAFT_MODE), "kraft-mode", None, "plan PLAYBOOK --stage soak"),
        (half_final(whole(Stage.SOAK)), "soak", "finalize", "plan PLAYBOOK --stage finalize"),
        (whole(Stage.FINALIZE), "finalize", None, "plan PLAYBOOK --stage cleanup"),
    ],
)
def test_each_stage_and_each_half_has_its_next_step(world: World, stage: str, half: str | None, after: str) -> None:
    """A half-done stage is done first: the one after it could not be planned."""
    found = describe(world)
    assert (found["stage"], found["half_done"], found["next"]) == (stage, half, after)
    text = as_text(found)
    assert f"next     kraft-migrate {after}" in text
    assert (f"{half} half done" in text) is (half is not None)


@pytest.mark.slow
def test_the_next_step_can_be_planned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The words that status gives are words that plan takes, from the stage of the cluster."""
    playbook = playbook_in(tmp_path)
    for stage in (Stage.ASSESS, Stage.CONTROLLERS, Stage.MIGRATION_MODE, Stage.COPY, Stage.KRAFT_MODE, Stage.FINALIZE):
        words = describe(whole(stage))["next"].replace("PLAYBOOK", str(playbook)).split()
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(stage)))
        assert kraft_migrate(*words).code in (0, 2), words


def test_processes_quorum_ledger_and_partitions_are_told() -> None:
    """As plain values, and in lines."""
    found = describe(service(1, Stopped())(unhealthy(whole(Stage.COPY))))
    assert found["processes"][1] == {
        "node": 1,
        "state": "stopped",
        "pid": None,
        "file": "migration",
        "registered": "migration",
    }
    assert [row["file"] for row in found["processes"]] == ["migration"] * 3 + ["controller"] * 3
    assert found["quorum"] == {
        "leader": 3000,
        "epoch": 1,
        "high_watermark": 501,
        "voters": {"3000": 501, "3001": 501, "3002": 501},
    }
    brokers = {str(node): {"MIGRATING": 6} for node in range(3)}
    assert found["ledger"] == {"offset": 500, "copied": True, "brokers": brokers}
    assert found["unhealthy_partitions"] == 1
    lines = as_text(found).splitlines()
    assert "ledger   brokers 0-2: MIGRATING 18" in lines
    nodes = lines[lines.index("node       process   file         registered") + 1 :][:3]
    assert nodes == [
        "1          stopped   migration    migration",
        "0, 2       running   migration    migration",
        "3000-3002  running   controller   -",
    ], "what does not run first, then brokers, then controllers"
    assert "quorum   leader 3000, epoch 1, high watermark 501" in lines


@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.CONTROLLERS, Stage.MIGRATION_MODE])
def test_before_the_copy_no_replica_is_called_migrating(stage: Stage) -> None:
    """Nothing of KRaft has a directory yet: the replicas are ZooKeeper's alone."""
    found = describe(whole(stage))
    assert "unknown" not in found["ledger"]
    assert found["ledger"]["copied"] is False
    text = as_text(found)
    assert "ledger   18 replicas in ZooKeeper alone: nothing is copied to KRaft yet" in text
    assert "MIGRATING" not in text.partition("ledger")[2].partition("\n")[0]


def test_behind_the_cleanup_nothing_comes_next() -> None:
    """By the journals' word, which the cluster itself does not have: without it the stage is finalize."""
    world = whole(Stage.CLEANUP)
    assert describe(world)["next"] == "plan PLAYBOOK --stage cleanup"
    found = describe(replace(world, facts={CLEANUP_PROVEN: "run 1234abcd"}))
    assert (found["stage"], found["half_done"]) == ("cleanup", None)
    assert "cleanup was proven by run 1234abcd" in found["how"]
    assert "next" not in found
    assert "next     " not in as_text(found)


def test_the_playbook_is_named_in_the_next_steps_of_waits_as_well() -> None:
    """S-STUCK-30 tells what to plan: with the path that was given, ready to be pasted."""
    found = named(describe(whole(Stage.CONTROLLERS)), Path("/etc/my night.yaml"))
    assert [row["code"] for row in found["waiting"]] == ["S-STUCK-30"]
    assert "kraft-migrate plan '/etc/my night.yaml' --stage migration-mode" in found["waiting"][0]["next"]
    assert "PLAYBOOK" not in as_text(found)
    assert "PLAYBOOK" in as_text(named(describe(whole(Stage.CONTROLLERS)), None))


def test_a_copy_that_is_stuck_for_ever_has_its_way_out_as_the_next_step() -> None:
    """No stage can be planned over it."""
    stuck = worlds.with_zk(whole(Stage.COPY), migration=MigrationZnode(-1, -1, -1, -1, 3))
    world = worlds.with_live(stuck, quorum=replace(quorum_of(stuck), leader_epoch=9))
    found = describe(world)
    assert "S-STUCK-04" in [row["code"] for row in found["waiting"]]
    assert "next     `kraft-migrate rollback plan p.yaml --copy-again`" in as_text(named(found, Path("p.yaml")))


def test_what_cannot_be_seen_is_said_and_never_a_number() -> None:
    """Each part by itself."""
    hidden = worlds.with_live(without("kraft")(whole(Stage.COPY)), quorum=Unknown("no leader"), metadata={})
    found = describe(without("ledger")(hidden))
    assert "no controller's metadata" in found["unknown"]
    assert found["quorum"] == {"unknown": "no leader"}
    assert found["ledger"] == {"unknown": "ledger hidden"}
    assert found["unhealthy_partitions"] is None
    assert "next" not in found
    assert describe(without("live")(hidden))["quorum"] == {"unknown": "live hidden"}
    assert describe(without("live")(hidden))["unhealthy_partitions"] is None
    assert {row["state"] for row in describe(without("services")(hidden))["processes"]} == {"unknown"}
    text = as_text(found)
    assert "stage    unknown: " in text
    assert "quorum   unknown: no leader" in text


def test_before_controllers_have_files_there_is_no_quorum_to_be_unknown() -> None:
    """A person at the first look: nothing is wrong."""
    first = worlds.with_live(whole(Stage.ASSESS), quorum=Unknown("no controller has a configuration file yet"))
    assert "quorum   none yet: no controller has a configuration file" in as_text(describe(first))
    later = worlds.with_live(whole(Stage.COPY), quorum=Unknown("no controller answers"))
    assert "quorum   unknown: no controller answers" in as_text(describe(later))


def test_json_has_a_schema_and_ends_with_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By playbook and by inventory; nothing on stderr."""
    playbook = playbook_in(tmp_path)
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.COPY)))
    for words in ((playbook,), ("--inventory", tmp_path / "inventory.yaml")):
        answer = kraft_migrate("status", *words, "--output", "json")
        assert (answer.code, answer.err) == (0, "")
        found = json.loads(answer.out)
        assert (found["schema"], found["cluster"], found["stage"]) == ("kraft-migrate/status/v1", "lab", "copy")
        assert kraft_migrate("status", *words).out.startswith("cluster lab\nstage    copy\n")


@pytest.mark.slow
def test_with_nothing_reachable_it_answers_with_every_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real connections, to ports where nothing listens: an answer, no error."""
    monkeypatch.setattr("migrate.observe.sources.connect", functools.partial(connect, timeout=0.3))
    with dead_port() as zookeeper, dead_port() as one:
        brokers = tuple(replace(node, address=f"127.0.0.1:{one}") for node in worlds.inventory().brokers[:1])
        path = inventory_in(tmp_path, zookeeper=f"127.0.0.1:{zookeeper}/kafka", brokers=brokers)
        answer = kraft_migrate("status", "--inventory", path)
    assert (answer.code, answer.err) == (3, "")
    for part in (f"E-ZK-02 127.0.0.1:{zookeeper}: no session", "E-KAFKA-07 lab: no controller can be reached"):
        assert part in answer.out
    assert "partitions without full ISR or leader: unknown" in answer.out


@pytest.mark.slow
def test_it_imports_nothing_heavy(tmp_path: Path) -> None:
    """From its own process, through every view that it looks at."""
    code = """
import functools, json, sys
from migrate.observe import sources
from migrate.cli.main import main
sources.connect = functools.partial(sources.connect, timeout=0.3)
sys.argv = ["kraft-migrate", "status", "--output", "json", "--inventory", sys.argv[1]]
try:
    main()
except SystemExit as ended:
    assert ended.code == 3
heavy = ("pyspark", "pyarrow", "numpy", "py4j", "cryptography", "bcrypt", "rich", "jinja2", "migrate.diff")
print(json.dumps([name for name in sys.modules if name.startswith(heavy)]), file=sys.stderr)
"""
    with dead_port() as port:
        answer = process(inventory_in(tmp_path, zookeeper=f"127.0.0.1:{port}/kafka"), code=code)
    assert answer.code == 0
    assert json.loads(answer.out)["exit_code"] == 3
    assert json.loads(answer.err) == []


def test_rollback_readiness_is_part_of_every_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As JSON and as text, with its word, its reasons and its cost; here no backup lies beside any file."""
    inventory = inventory_in(tmp_path)
    for stage, word in ((Stage.ASSESS, "READY"), (Stage.COPY, "NOT READY"), (Stage.FINALIZE, "NOT READY")):
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(stage)))
        found = json.loads(kraft_migrate("status", "--inventory", inventory, "--output", "json").out)["rollback"]
        assert found["readiness"] == word
        assert found["gone"] is (stage is Stage.FINALIZE)
        said = "rollback not possible any more" if found["gone"] else f"rollback {word}, from: {found['from']}"
        assert said in kraft_migrate("status", "--inventory", inventory).out
        if stage is Stage.COPY:
            assert [entry["about"] for entry in found["reasons"] if entry["name"] == "backup-unknown"] == [
                "broker 0",
                "broker 1",
                "broker 2",
            ]
            assert (found["cost"]["rolls"], found["cost"]["restarts"]) == (1, 3)


def test_the_next_command_names_the_playbook_that_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """To be copied; without a playbook its place is kept.  Controllers have no mode to be registered in."""
    playbook = playbook_in(tmp_path)
    monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(whole(Stage.SOAK)))
    said = kraft_migrate("status", playbook).out
    assert said.splitlines()[-1] == f"next     kraft-migrate plan {playbook} --stage soak"
    unnamed = kraft_migrate("status", "--inventory", tmp_path / "inventory.yaml", "--output", "json")
    answer = json.loads(unnamed.out)
    assert answer["next"] == "plan PLAYBOOK --stage soak"
    assert [row["registered"] for row in answer["processes"]][-3:] == ["-", "-", "-"]


# -- behind the migration --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", [Stage.SOAK, Stage.FINALIZE])
def test_the_upgrade_to_kafka_4_is_told_once_the_migration_is_final(stage: Stage) -> None:
    """With its trap, the command and the page; before it nobody needs that."""
    found = describe(whole(stage))
    told = stage is Stage.FINALIZE
    assert ("afterwards" in found) is told
    assert ("KAFKA-21426" in as_text(found)) is told
    if told:
        command = named(found, Path("my play.yaml"))["afterwards"].command
        assert command == "kraft-migrate assess 'my play.yaml' --target 4.3"


def test_nothing_comes_after_the_cleanup_and_who_uses_zookeeper_is_told() -> None:
    """Each server by itself; before that nobody asks them."""
    cleaned = replace(whole(Stage.FINALIZE), facts={CLEANUP_PROVEN: "run 3f2a9c01"})
    assert "next" not in describe(cleaned)
    assert "zookeeper" not in describe(cleaned)
    servers = (
        EnsembleServer("zk1:2181", True, "follower", 2, ("10.0.0.7",)),
        EnsembleServer("zk2:2181", listens=False),
    )
    found = describe(replace(cleaned, ensemble=Ensemble(servers, ())))
    assert found["zookeeper"]["use"] == "used"
    text = as_text(found)
    assert "zookeeper somebody still uses it: do not stop its servers" in text
    assert "         zk1:2181: follower, 2 clients, from 10.0.0.7\n         zk2:2181: stopped" in text
    unseen = describe(replace(cleaned, ensemble=Unknown("no answer")))
    assert unseen["zookeeper"]["use"] == "unknown"
    assert "not known: ZooKeeper's servers: no answer" in as_text(unseen)


def test_a_protocol_playbook_has_each_brokers_version() -> None:
    """As the running broker says it, and what is wanted where it is another."""
    said: dict[NodeId, str | Unknown] = {
        NodeId(0): "3.8",
        NodeId(1): "3.9-IV0",
        NodeId(2): Unknown("connection refused"),
    }
    playbook = replace(worlds.playbook(), stages=(Stage.PROTOCOL,))
    found = describe(replace(whole(Stage.ASSESS), protocols=said, playbook=playbook))
    assert [row["version"] for row in found["protocols"]] == ["3.8", "3.9", None]
    text = as_text(found)
    assert "version  broker 0: inter.broker.protocol.version 3.8 (wanted: 3.9)" in text
    assert "version  broker 1: inter.broker.protocol.version 3.9\n" in text
    assert "connection refused (wanted: 3.9)" in text
    assert "protocols" not in describe(whole(Stage.ASSESS))


def test_a_reassignment_is_named_with_its_owner_and_no_broker_is_to_be_restarted_meanwhile() -> None:
    """Its partitions, whose they are, and each advice to restart a broker only behind its end."""
    found = describe(being_moved(whole(Stage.SOAK)))
    [moved] = found["moves"]["partitions"]
    assert f"waits    for 1 partition to end its reassignment: {moved}" in as_text(found)
    assert "owner: whoever moves those replicas (kafka-reassign-partitions, Cruise Control)" in as_text(found)
    assert "restart no broker for it" in found["moves"]["next"]
    assert "moves" not in describe(whole(Stage.SOAK))


def test_a_broker_that_runs_with_another_mode_is_restarted_behind_the_reassignments() -> None:
    """Now it would be a restart in the middle of a move."""
    world = being_moved(whole(Stage.SOAK))
    assert not isinstance(world.configs, Unknown)
    file = world.configs[NodeId(1)]
    assert isinstance(file, ConfigFile)
    raw = file.raw.replace(b"process.roles=broker", b"zookeeper.metadata.migration.enable=true")
    changed = replace(file, raw=raw, sha256="f" * 64, values=parse(raw))
    found = describe(replace(world, configs={**world.configs, NodeId(1): changed}))
    assert found["contradictions"]
    assert all(
        line.endswith("it needs a restart, once the reassignments have ended") for line in found["contradictions"]
    )
    waits = [row["next"] for row in found["waiting"] if BROKERS_RESTART.search(row["next"])]
    assert all(text.startswith("once the reassignments have ended: ") for text in waits)


def test_no_step_comes_next_before_a_broker_that_is_down() -> None:
    """What to type stands before the next command; a run that is not ended starts its broker itself."""
    assert describe(whole(Stage.HYBRID))["problems"] == []
    answer = describe(service(1, Stopped())(whole(Stage.HYBRID)))
    said = " ".join(as_text(answer).split())
    assert said.startswith("1 PROBLEM: broker 1 is stopped on b1 cluster lab")
    assert "next on b1: start broker 1; the log says why it ended; then give this command again" in said
    assert "kraft-migrate plan PLAYBOOK" not in said
