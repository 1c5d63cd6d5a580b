"""Mistakes that people make, and what they read: what is wrong, where, and the command to give instead."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from migrate.errors import ZookeeperUnreachable
from migrate.lab.topology import free_ports
from migrate.zookeeper.client import connect
from tests.cli.commands import inventory_in, kraft_migrate, playbook_in
from tests.testing.answering import answering
from tests.testing.zookeeper_server import running_server

EXAMPLES = Path(__file__).parents[2] / "playbooks"
PLAYBOOK = EXAMPLES / "production-example.yaml"
INVENTORY = EXAMPLES / "inventory-example.yaml"
FLEET = EXAMPLES / "fleet-example.yaml"
ACCEPTED = EXAMPLES / "accepted-differences-example.yaml"

COMPOSE = "services:\n  kafka-1:\n    image: apache/kafka:3.9.2\n"
PLAYS = "- hosts: kafka\n  tasks: []\n"
HOSTS = "all:\n  children:\n    kafka:\n      hosts:\n        kafka-1:\n"
STRIMZI = "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata:\n  name: prod\n"
INIT = "kraft-migrate inventory init --zookeeper"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("aply",), 64, ["No such command 'aply'", "did you mean `kraft-migrate apply`?"]),
        (("statsu", PLAYBOOK), 64, ["No such command 'statsu'", "did you mean `kraft-migrate status`"]),
        (("rollback", "aply", PLAYBOOK), 64, ["No such command 'aply'"]),
        (("stauts",), 64, ["No such command 'stauts'", "`kraft-migrate status`"]),
        (("rolback",), 64, ["No such command 'rolback'", "`kraft-migrate rollback`"]),
        (("asess",), 64, ["No such command 'asess'", "`kraft-migrate assess`"]),
        (("lab", "dmo"), 64, ["'dmo'", "`kraft-migrate lab demo`"]),
        (("resume", PLAYBOOK), 64, ["No such command 'resume'", "`kraft-migrate apply` continues a run"]),
        (("abort",), 64, ["SIGTERM to its process, parks a run at the next safe point"]),
        (("control", "pause", PLAYBOOK), 64, ["parks a run at the next safe point"]),
        (("finalize", PLAYBOOK), 64, ["`kraft-migrate plan PLAYBOOK --stage finalize` plans that stage"]),
        (("init",), 64, ["`kraft-migrate inventory init --zookeeper"]),
        (("validate", PLAYBOOK), 64, ["`kraft-migrate playbook lint FILE`"]),
        (("verify",), 64, ["`kraft-migrate directories verify`"]),
        (("start",), 64, ["`kraft-migrate plan PLAYBOOK` makes the plan"]),
        (("logs",), 64, ["`kraft-migrate report write RUN`"]),
        (("approve", "plan.json"), 64, ["there are no approvals"]),
        (("retire-zookeeper",), 64, ["--stage cleanup"]),
        (("status", "--json"), 64, ["No such option '--json'", "`-o json`"]),
        (("directories", "show", "--broker", "1"), 64, ["all brokers are looked at"]),
        (("status", "--bootstrap-server", "b:9092"), 64, ["`--inventory FILE` names the cluster"]),
        (("undo",), 64, ["`kraft-migrate rollback plan PLAYBOOK` plans the rollback"]),
        (("plan", "--force"), 64, ["No such option '--force'", "accepted by name"]),
        (("apply", "--yes"), 64, ["the end of the plan has the command that applies it"]),
        (("status", "--watch"), 64, ["`watch kraft-migrate status PLAYBOOK`"]),
        (("backup", PLAYBOOK), 64, ["this is a playbook, not a command", "kraft-migrate backup create NAME.jsonl.gz"]),
        (
            ("directories", INVENTORY),
            64,
            ["this is an inventory, not a command", "directories show --inventory"],
        ),
        (("explain", "fenced"), 0, ["sends no heartbeat"]),
        (("explain", "under-replicated"), 0, ["ISR lacks a replica"]),
        (("explain", "READY", "WITH", "WORK"), 0, ["with the work that `needs` names"]),
        (("explain", "zombie"), 1, ["no code or word 'zombie'", "`kraft-migrate explain` lists every code"]),
        (("plan", "--dry-run"), 64, ["No such option '--dry-run'", "`kraft-migrate plan` is the dry run"]),
        (("status",), 64, ["neither a playbook nor an inventory was given", "--inventory FILE", "inventory init"]),
        (("assess", "--html", "/nope/x", PLAYBOOK), 64, ["there is no folder /nope", "make it, or give another name"]),
        (("apply", "nope.json"), 1, ["the plan cannot be read: No such file or directory", "where nope.json"]),
        (("plan", "nope.yaml"), 1, ["No such file or directory", "where nope.yaml"]),
        (("playbook", "lint", "nope.yaml"), 1, ["No such file or directory", "where nope.yaml"]),
        (("fleet", "assess", "nope.yaml"), 1, ["No such file or directory", "where nope.yaml"]),
        (("bundle", "show", "nope.tgz"), 1, ["No such file or directory", "where nope.tgz"]),
        (("assess", "--from-bundle", "nope.tgz"), 1, ["No such file or directory", "where nope.tgz"]),
        (("backup", "restore", "nope.gz", "--path", "/"), 1, ["No such file or directory", "where nope.gz"]),
        (("report", "write", "/nope"), 64, ["/nope"]),
        (("diff",), 64, ["neither a playbook nor an inventory was given", "--inventory FILE"]),
        (("assess",), 64, ["neither a playbook, an inventory nor a ZooKeeper", "--zookeeper HOST:PORT/CHROOT"]),
        (("diff", "--inventory", INVENTORY, "--spark-master", "sprak://x"), 64, ["'sprak://x' is none"]),
        (("lab", "demo", "--until", "hybird"), 64, ["there is no stage 'hybird'", "mean hybrid?"]),
        (("explain", "B-ZKN-0l"), 1, ["no code or word 'B-ZKN-0l'", "did you mean B-ZKN-"]),
        (("assess", "--zookeeper", "zk1:2181/kafka", "-i", INVENTORY), 64, ["give --zookeeper alone"]),
        (("assess", "--zookeeper", "zk1.invalid:2181/kafka"), 1, ["zk1.invalid:2181 does not resolve"]),
        (("lab", "up", "--dir", EXAMPLES), 1, [str(EXAMPLES), "empty"]),
        (("status", "--inventory", "nope.yaml"), 1, ["No such file or directory", "where nope.yaml"]),
        (("status", "--inventry", "x"), 64, ["--inventry", "--inventory"]),
        ((PLAYBOOK,), 64, ["this is a playbook, not a command", f"kraft-migrate plan {PLAYBOOK}"]),
        ((INVENTORY,), 64, ["this is an inventory, not a command", f"status --inventory {INVENTORY}"]),
        ((FLEET,), 64, ["this is a fleet, not a command", f"kraft-migrate fleet assess {FLEET}"]),
        (("-v", PLAYBOOK), 64, ["this is a playbook, not a command", f"kraft-migrate plan {PLAYBOOK}"]),
        (("rollback", PLAYBOOK), 64, ["this is a playbook", f"kraft-migrate rollback plan {PLAYBOOK}"]),
        (("apply", INVENTORY), 64, ["this is an inventory, not a saved plan", "kraft-migrate plan PLAYBOOK"]),
        (("rollback", "apply", INVENTORY), 64, ["this is an inventory", "kraft-migrate rollback plan PLAYBOOK"]),
        (("rollback", "plan", INVENTORY), 64, ["this is an inventory, and a playbook is needed"]),
        (("plan", INVENTORY), 64, ["this is an inventory, and a playbook is needed", "kraft-migrate plan "]),
        (("plan", FLEET), 1, ["this is a fleet, not a playbook", f"fleet assess {FLEET}"]),
        (("assess", "--inventory", PLAYBOOK), 64, ["this is a playbook, not an inventory", f"assess {PLAYBOOK}"]),
        (("fleet", "assess", INVENTORY), 1, ["this is an inventory, not a fleet"]),
        (("plan", ACCEPTED), 1, ["this is a list of accepted differences", "diff.accept"]),
    ],
)
def test_a_command_or_file_in_the_wrong_place_is_named(words: tuple[object, ...], code: int, parts: list[str]) -> None:
    """With the command that takes it; the command that was given is not the advice."""
    ended = kraft_migrate(*words)
    assert ended.code == code, ended.err
    said = " ".join((ended.out + ended.err).split())  # `lint` answers on stdout
    for part in parts:
        assert part in said
    assert "Errno" not in said


HERE = "playbook.yaml"
IN_A_FOLDER = [  # typed beside a playbook and its inventory
    ("inventory lint", ["`kraft-migrate playbook lint FILE` checks an inventory"]),
    ("directories list", ["`kraft-migrate directories show PLAYBOOK`"]),
    ("rollback status", ["`kraft-migrate status PLAYBOOK` says under `rollback`"]),
    ("fleet status", ["`kraft-migrate fleet assess FLEET`"]),
    ("playbook init", ["playbooks/production-example.yaml"]),
    ("metadata show", ["`kraft-migrate metadata dump PATH`"]),
    ("manual done", ["nothing is confirmed by hand"]),
    ("lab inventory", ["it has demo, down, seed, status, up"]),
    ("bundle write", ["did you mean `kraft-migrate report write`?"]),
    ("apply --stage hybrid", ["`kraft-migrate plan PLAYBOOK --stage STAGE`", "--until STAGE"]),
    ("plan -target hybrid", ["`--to STAGE` says where a plan ends"]),
    ("plan -full", ["two dashes: --full"]),
    ("directories show --zookeeper zk1:2181", ["inventory init --zookeeper HOST:PORT/CHROOT"]),
    ("plan --from hybrid", ["`--to STAGE` says where it ends"]),
    ("lab --dir X status", ["lab demo|down|seed|status|up --dir"]),
    ("rollback plan playbook.yaml --to hybrid", ["No such option '--to'.", "always plans it to ZooKeeper mode"]),
    ("diff --topic t", ["`kraft-migrate diff -o json` has a row for each difference"]),
    ("apply -i inventory.yaml", ["the argument may be an inventory"]),
    ("directories verify --full", ["it is an option of `kraft-migrate directories show`"]),
    ("unlock playbook.yaml --force", ["shows the lock with its owner and id", "`--id ID`"]),
    ("rollback plan", ["Missing argument 'PLAYBOOK'", "kraft-migrate rollback plan playbook.yaml"]),
    ("rollback apply", ["no plan of a rollback is below", "kraft-migrate rollback plan playbook.yaml"]),
    ("apply --confirm plan.json", ["--confirm takes the fingerprint", "kraft-migrate apply plan.json --confirm"]),
    ("apply", ["no plan is below", "kraft-migrate plan playbook.yaml"]),
    ("playbook lint", ["playbook lint, with one of playbook.yaml, inventory.yaml"]),
    ("fleet assess", ["Missing argument 'FLEET'", "kraft-migrate fleet assess fleet.yaml"]),
    ("directories assign", ["kraft-migrate directories assign 1 playbook.yaml"]),
    ("directories inspect", ["a log directory, or a copy of one, of this host"]),
    ("report write", ["RUN: a run's folder or id, or its playbook"]),
    ("bundle create", ["bundle create NAME.tar.gz playbook.yaml"]),
    ("backup create", ["backup create NAME.jsonl.gz playbook.yaml"]),
    ("manual could-not playbook.yaml", ["could-not --inventory", "inventory.yaml"]),
    ("inventory init zk1:2181", ["kraft-migrate inventory init --zookeeper zk1:2181"]),
    ("directories show 1", ["a broker's id", "kraft-migrate directories show playbook.yaml"]),
    ("directories show 1 playbook.yaml", ["all brokers are looked at: kraft-migrate directories show playbook.yaml"]),
    ("directories rescue 1 playbook.yaml", ["kraft-migrate directories rescue playbook.yaml"]),
    ("directories collector 1", ["all brokers are looked at", "kraft-migrate directories collector"]),
    ("lab status look", ["kraft-migrate lab status --dir look"]),
    ("plan playbook.yaml kraft-mode", ["kraft-migrate plan playbook.yaml --stage kraft-mode"]),
    ("plan playbook.yaml other.yaml", ["kraft-migrate plan [OPTIONS] [PLAYBOOK]"]),
    ("status kraft-mode", ["this is a stage", "kraft-migrate plan playbook.yaml --stage kraft-mode"]),
    ("status 8a30d380/plan.json", ["the plan cannot be read", "kraft-migrate plan playbook.yaml"]),
    ("bundle playbook.yaml", ["kraft-migrate bundle create NAME.tar.gz playbook.yaml"]),
    ("directories inventory.yaml", ["kraft-migrate directories show --inventory inventory.yaml"]),
    ("fleet fleet.yaml", ["kraft-migrate fleet assess fleet.yaml"]),
    ("bundle create inventory.yaml", ["bundle create NAME.tar.gz --inventory inventory.yaml"]),
    ("backup create playbook.yaml", ["backup create NAME.jsonl.gz playbook.yaml"]),
    ("doctor playbook.yaml", ["kraft-migrate doctor --inventory", "inventory.yaml"]),
    ("status -i fleet.yaml", ["this is a fleet, not an inventory"]),
    ("assess kafka-1:9092", ["this is an address", "assess --zookeeper HOST:2181/CHROOT"]),
    ("assess zk1:2181/kafka", ["assess --zookeeper zk1:2181/kafka"]),
    ("assess --zookeeper http://zk1:2181", ["leave out http://"]),
    ("plan hosts.ini", ["this is an Ansible file", INIT]),
    ("status -i hosts.ini", ["this is an Ansible file", INIT]),
    ("playbook lint hosts.ini", ["this is an Ansible file", INIT]),
    ("plan -f playbook.yaml", ["a file is given without an option"]),
    ("status -f playbook.yaml", ["`watch kraft-migrate status PLAYBOOK`"]),
    ("inventory init --bootstrap-server b:9092", ["`--zookeeper HOST:PORT/CHROOT`"]),
    ("lab start", ["`kraft-migrate lab up` starts a cluster"]),
    ("lab stop", ["`kraft-migrate lab down` stops it"]),
    ("lab demo --stage hybrid", ["`--until STAGE` stops it there"]),
    ("backup restore", ["FILE is a backup, such as runs/RUN/backup/zookeeper.jsonl.gz"]),
    ("bundle show", ["a bundle that `kraft-migrate bundle create` wrote"]),
    ("metadata dump", ["a .log, a .checkpoint or a metadata directory"]),
    ("unlock playbook.yaml 12", ["kraft-migrate unlock playbook.yaml --id 12"]),
    ("diff playbook.yaml inventory.yaml", ["a playbook names its inventory: kraft-migrate diff playbook.yaml"]),
    ("fleet assess inventory.yaml", ["name its cluster in a fleet, as playbooks/fleet-example.yaml"]),
    ("explain directory ids", ["did you mean directories?"]),
    ("explain offline", ["did you mean B-DIR-17?"]),
    ("explain log dir", ["no code or word 'log dir'", "did you mean directory"]),
    ("explain DIR-01 zombie", ["no code or word"]),
]


@pytest.mark.parametrize(("line", "parts"), IN_A_FOLDER, ids=[line for line, _ in IN_A_FOLDER])
def test_a_mistake_is_answered_with_the_command_that_does_it(
    line: str, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file that is here, where it is plain which one; for programs, too."""
    monkeypatch.chdir(tmp_path)
    for name, text in ((HERE, PLAYBOOK.read_text()), ("inventory.yaml", INVENTORY.read_text())):
        Path(name).write_text(text)
    Path("fleet.yaml").write_text(FLEET.read_text())
    Path("hosts.ini").write_text("; hosts\n[kafka]\nkafka-1 ansible_host=10.0.0.1\n")
    ended = kraft_migrate(*line.split())
    assert ended.code in (1, 64)
    said = " ".join((ended.out + ended.err).split())
    for part in parts:
        assert part in said


def test_programs_get_the_same_next_line() -> None:
    """An answer of JSON has it under `error`."""
    ended = kraft_migrate("diff", "--topic", "t", "-o", "json")
    assert "has a row for each" in json.loads(ended.out)["error"]["next"]


@pytest.mark.parametrize(
    ("text", "name", "advice"),
    [
        (COMPOSE, "a Docker Compose file", INIT),
        (PLAYS, "an Ansible file", INIT),
        (HOSTS, "an Ansible file", INIT),
        (STRIMZI, "a Strimzi resource", "kraft-migrate explain B-OPS-01"),
    ],
)
@pytest.mark.parametrize("words", [("status", "--inventory"), ("plan",), ("playbook", "lint"), ("apply",), ()])
def test_files_of_other_tools_are_named(
    words: tuple[str, ...], text: str, name: str, advice: str, tmp_path: Path
) -> None:
    """Whoever has one of them has no inventory yet, or another migration to use."""
    file = tmp_path / "file.yaml"
    file.write_text(text)
    ended = kraft_migrate(*words, file)
    assert ended.code in (1, 64)
    said = " ".join((ended.out + ended.err).split())  # `lint` answers on stdout
    assert f"this is {name}" in said
    assert advice in said


@pytest.mark.parametrize("text", ["", "a: 1\n", "kind: Deployment\napiVersion: apps/v1\n", "\t- x", "\0", "[" * 9999])
def test_a_file_of_no_known_kind_gets_the_usual_answer(text: str, tmp_path: Path) -> None:
    """It is no command; what it is stays open."""
    file = tmp_path / "file.yaml"
    file.write_text(text)
    ended = kraft_migrate(file)
    assert ended.code == 64
    assert "No such command" in ended.err


PLACE = "file.yaml"
HEAD = "apiVersion: kraft-migrate/v1\nkind: MigrationPlaybook\nmetadata: {name: p}\nspec:\n"
SPEC = f"{HEAD}  cluster: {{inventory: inventory.yaml}}\n"
ALLOW = "  windows: {w: {timezone: UTC, allow: [Mon 21:00-22:00]}}\n"
NODES = INVENTORY.read_text()


@pytest.mark.parametrize(
    ("text", "place", "parts"),
    [
        (f"{SPEC}  polcy: {{}}\n", "6:3", ["unknown key spec.polcy", "did you mean `policy`?"]),
        (f"{SPEC}  stages:\n    - name: hybird\n", "7:7", ["'hybird'", "did you mean hybrid?"]),
        (f"{SPEC}  stages:\n    - name: copy\n    - name: assess\n", "8:7", ["stage assess cannot follow copy"]),
        (f"{SPEC}  stages:\n    - name: copy\n    - name: copy\n", "8:7", ["after copy comes hybrid"]),
        (f"{SPEC}  cluster: {{}}\n", "6:3", ["the key 'cluster' appears twice", "it is in line 5 already"]),
        ("a: [1\n", "2:1", ["invalid YAML: did not find expected ',' or ']'"]),
        ("a:\n\t- b\n", "2:1", ["a tab in the indentation", "write spaces"]),
        ("", "1:1", ["the file is empty", "start from one of playbooks/"]),
        (b"\x89PNG\xff", "", ["the file is not UTF-8: byte 0"]),
        (f"{SPEC}  controllers: {{ids: ['3000']}}\n", "6:23", ["a whole number without quotes", "such as 3001"]),
        (f"{SPEC}  policy: {{hybrid_max_age: 24 hours}}\n", "6:12", ["'24 hours'", "such as 15m or 24h"]),
        (SPEC + ALLOW.replace("UTC", "Europe/Berlinn"), "6:17", ["Europe/Berlin"]),
        (SPEC + ALLOW.replace("21:00-22", "25:00-26"), "6:40", ["25:00 is no time of a day"]),
        (NODES.replace("kind: ssh", "kind: docker"), "", ["'docker'", "local, ssh or manual"]),
        (NODES.replace("{id: 2,", "{id: 1,"), "", ["node id 1 appears twice", "an id of its own"]),
        *(
            (f"{SPEC}  policy: {{remove_copies: {word}}}\n", "6:12", ["true or false is expected, without quotes"])
            for word in ("yes", "on", "1", "no", "True", "'true'")
        ),
    ],
)
def test_lint_says_where_a_file_is_wrong_and_what_is_right(
    text: str | bytes, place: str, parts: list[str], tmp_path: Path
) -> None:
    """By line and column; nobody is sent to the command that was just given."""
    file = tmp_path / PLACE
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = kraft_migrate("playbook", "lint", file)
    assert ended.code == 1
    said = " ".join(ended.out.split())
    for part in parts:
        assert part in said
    assert f"where {file}" + f":{place}" * bool(place) in said
    assert "playbook lint" not in said


@pytest.mark.parametrize("word", ["true", "false"])
def test_booleans_are_true_and_false_and_shown_so(word: str, tmp_path: Path) -> None:
    """As the file writes them."""
    file = tmp_path / PLACE
    file.write_text(f"{SPEC}  policy: {{remove_copies: {word}}}\n")
    assert kraft_migrate("playbook", "lint", file).code == 0
    shown = kraft_migrate("playbook", "show", file).out
    assert re.search(rf"policy\.remove_copies +{word} +\(line 6\)", shown)
    assert "False" not in shown
    assert "True" not in shown


def test_wrong_words_of_spark_are_refused_before_it_is_started() -> None:
    """The first thing that is said is what is wrong."""
    ended = kraft_migrate("diff", "--inventory", INVENTORY, "--spark-conf", "spark.my.secret=x")
    assert ended.code == 64
    assert ended.err.startswith("E-USAGE: spark.my.secret may be a secret")


def test_no_words_are_answered_with_the_help() -> None:
    """And with the exit code of wrong usage."""
    ended = kraft_migrate()
    assert ended.code == 64
    assert "Usage: kraft-migrate" in ended.err


@pytest.mark.slow
def test_doctor_says_that_the_cluster_was_not_asked(tmp_path: Path) -> None:
    """What this host has says nothing of ZooKeeper, brokers and controllers."""
    inventory = inventory_in(tmp_path)
    said = kraft_migrate("doctor", "--inventory", inventory, "--hosts").out
    assert "not asked: ZooKeeper, brokers, controllers; --rights asks them" in said
    found = json.loads(kraft_migrate("doctor", "--inventory", inventory, "-o", "json").out)["result"]
    assert found["not_asked"] == ["ZooKeeper", "brokers", "controllers"]
    assert json.loads(kraft_migrate("doctor", "-o", "json").out)["result"]["not_asked"] == []


@pytest.mark.slow
def test_a_cluster_of_which_nothing_is_seen_is_never_ready(tmp_path: Path) -> None:
    """Down, a wrong user, a wrong protocol or a missing password file: all of it is INCOMPLETE, and no success."""
    ended = kraft_migrate("assess", playbook_in(tmp_path), "-o", "json")
    found = json.loads(ended.out)
    assert (ended.code, found["result"]["verdict"]) == (1, "INCOMPLETE")


def test_lint_says_what_it_did_not_compare() -> None:
    """A playbook beside its inventory is compared with it; alone it is not, and that is said."""
    for name in ("production-example.yaml", "directories-example.yaml"):
        ended = kraft_migrate("playbook", "lint", EXAMPLES / name)
        assert ended.code == 0
        assert ended.out.startswith(
            f"{EXAMPLES / name}: ok by itself; not compared with its inventory, which is missing: "
        )
    assert kraft_migrate("playbook", "lint", INVENTORY).out == f"{INVENTORY}: ok\n"


def why(servers: str) -> str:
    """Why there is no session."""
    with pytest.raises(ZookeeperUnreachable, match="no session within") as raised:
        connect(servers, timeout=0.3)
    return raised.value.why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers, but is not a ZooKeeper server"),
        (b"", "answers, but is not a ZooKeeper server, or it expects TLS"),
        (b"This ZooKeeper instance is not currently serving requests\n", "is a ZooKeeper server without a quorum"),
        (None, "is silent"),
    ],
)
def test_what_a_server_does_instead_of_a_session_is_said(answer: bytes | None, said: str) -> None:
    """By its answer to the four-letter word; each server of the connect string is named."""
    (closed,) = free_ports(1)
    with answering(answer) as server:
        found = why(f"{server.address},127.0.0.1:{closed}/kafka")
    assert found.startswith(f"{server.address} {said}")
    assert found.endswith(f"; 127.0.0.1:{closed} refuses connections: nothing listens there")


@pytest.mark.slow
def test_a_name_that_does_not_resolve_is_said() -> None:
    """`.invalid` never does (RFC 2606)."""
    assert why("zk1.invalid:2181") == "zk1.invalid:2181 does not resolve: no such host name"


@pytest.mark.zookeeper
def test_a_forgotten_chroot_is_found(tmp_path: Path) -> None:
    """The cluster that is there is named in the answer, as a connect string."""
    with running_server(tmp_path) as server:
        with server.client() as root:
            for path in ("/kafka/brokers/ids", "/kafka/brokers/topics", "/kafka/cluster/id", "/other/brokers"):
                root.kazoo.create(path, makepath=True)
        ended = kraft_migrate("assess", "--zookeeper", server.address)
    assert ended.code == 1
    assert f"did you mean {server.address}/kafka?" in " ".join(ended.err.split())
