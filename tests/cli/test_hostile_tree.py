"""A real ZooKeeper in which somebody wrote to harm readers: names and values that act on terminals, shells, paths.

Every command that reads it ends by itself, shows each such character spelled out, forges no line, and writes nowhere
but where it was told to.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.cli.errors import render
from migrate.errors import LockHeld
from migrate.report.wording import hanging
from tests.cli.commands import Ended, kraft_migrate
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, load_tree, running_server

FORGED = "B-ZKN-99 forged"
ACTING = f"\x1b[2J\x1b]0;x\x07\r\n{FORGED}\n\u202e\u2028\x9b31m$(touch /tmp/hit)`id`;'\"<script>alert(1)</script>"
QUOTED = "".join(f"%{byte:02X}" for byte in ACTING.encode())  # as Kafka's Sanitizer writes a name
HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def damage() -> dict[str, bytes]:
    """Znodes whose names and values act."""
    config = {"version": 1, "config": {ACTING: ACTING, "retention.ms": ACTING}}
    endpoint = f"INTERNAL://{ACTING}:9092"
    broker = {
        "version": 5,
        "host": None,
        "port": -1,
        "jmx_port": -1,
        "timestamp": "1",
        "endpoints": [endpoint],
        "listener_security_protocol_map": {"INTERNAL": ACTING},
        "rack": ACTING,
        "features": {},
    }
    acl = {"version": 1, "acls": [{"principal": ACTING, "permissionType": "Allow", "operation": "Read", "host": "*"}]}
    found: dict[str, object] = {
        "/brokers/ids/77": broker,
        "/brokers/topics/;id\u202e": {"version": 3, "topic_id": ACTING, "partitions": {"0": [0]}},
        "/brokers/topics/$(id)": {"version": 3, "topic_id": "AAAAAAAAAAAAAAAAAAAAZQ", "partitions": {ACTING: [0]}},
        "/config/topics/t00": config,
        f"/config/users/{QUOTED}": {"version": 1, "config": {"producer_byte_rate": "1024"}},
        f"/config/clients/{QUOTED}": {"version": 1, "config": {"producer_byte_rate": ACTING}},
        "/config/brokers/0": config,
        "/kafka-acl/Topic/..%2F..%2Fetc": acl,
        "/kafka-acl/Topic/--help": {"version": 1, "acls": [{"principal": ACTING}]},
        "/admin/delete_topics/-rf": "",
        "/config/changes/config_change_0": ACTING,
        "/kraft-migrate/lock": {"version": 1, "owner": ACTING, "host": ACTING, "pid": 1, "since": ACTING},
    }
    return {path: b"" if value == "" else json.dumps(value).encode() for path, value in found.items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """A captured cluster with all of it."""
    with running_server(tmp_path_factory.mktemp("hostile")) as running:
        with running.client() as root:
            root.kazoo.create("/bad")
        with running.client("/bad") as client:
            load_tree(client, golden("zk-before"))
            for path, data in damage().items():
                client.kazoo.ensure_path(path)
                client.kazoo.set(path, data)
        yield running


def acting(text: str) -> set[str]:
    """Characters on which a terminal or a browser would act, but for the ends of lines."""
    return {char for char in text if unicodedata.category(char) in HIDDEN and char != "\n"}


def harmless(ended: Ended, *files: Path) -> None:
    """Nothing acts, and no line is forged; in pages no markup of theirs stands."""
    for text in (ended.out, ended.err, *(path.read_text(encoding="utf-8") for path in files)):
        assert acting(text) == set()
        assert not [line for line in text.splitlines() if line.startswith(FORGED)]
    assert not [path for path in files if path.suffix == ".html" and "<script>alert(1)" in path.read_text()]


@pytest.mark.zookeeper
@pytest.mark.parametrize("output", ["text", "json"])
def test_an_assessment_of_it_shows_everything_spelled_out(server: ZookeeperServer, tmp_path: Path, output: str) -> None:
    """Findings in every form, at full verbosity."""
    html = tmp_path / "a.html"
    asked = ("assess", "--zookeeper", f"{server.address}/bad", "--output", output)
    ended = kraft_migrate("-v", *asked, "--html", html)
    assert ended.code == 3, ended.err
    harmless(ended, html)
    assert FORGED in ended.out, "it is told, not dropped"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html"]


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    "words",
    [
        ("status", "--inventory", "inventory.yaml"),
        ("diff", "--inventory", "inventory.yaml"),
        ("unlock", "--inventory", "inventory.yaml"),
        ("doctor", "--rights", "--inventory", "inventory.yaml"),
        ("backup", "create", "b.jsonl.gz", "--inventory", "inventory.yaml"),
        ("backup", "restore", "b.jsonl.gz", "--inventory", "inventory.yaml", "--path", "/"),
        ("bundle", "create", "b.zip", "--inventory", "inventory.yaml"),
        ("inventory", "init", "--zookeeper", "SERVER"),
    ],
    ids=" ".join,
)
def test_every_command_that_reads_it_stays_harmless(
    server: ZookeeperServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Whether it ends well or with an error; files lie where they were asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory.yaml").write_text(INVENTORY.format(server=server.address))
    before = {path.name for path in tmp_path.iterdir()}
    if words[:2] == ("backup", "restore"):
        assert kraft_migrate("backup", "create", "b.jsonl.gz", "--inventory", "inventory.yaml").code == 0
    ended = kraft_migrate("-v", *(word.replace("SERVER", f"{server.address}/bad") for word in words))
    assert ended.code in (0, 1, 2, 3, 4), ended.err
    harmless(ended)
    made = {path.name for path in tmp_path.iterdir()} - before
    assert made <= {"b.jsonl.gz", "b.zip", "runs", "inventory.yaml"}, made
    assert not Path("/tmp/hit").exists()


INVENTORY = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {{name: bad}}
spec:
  zookeeper: {server}/bad
  controller_listener: CTL
  executor: {{kind: local, kafka_home: /none, sudo: false, host_program: /none/host}}
  brokers:
    nodes:
      - {{id: 0, host: 127.0.0.1, address: '127.0.0.1:1', config: /none/b0.properties, unit: b0.service}}
  controllers:
    nodes:
      - id: 3000
        host: 127.0.0.1
        address: 127.0.0.1:2
        config: /none/c0.properties
        metadata_directory: /none/c0
        unit: c0.service
"""


def test_an_error_cannot_forge_a_line() -> None:
    """What, where and why may come from a cluster; their later lines are indented."""
    text = render(LockHeld(f"held by {ACTING}", where=ACTING, why=ACTING, next_step=ACTING))
    assert acting(text) == set()
    ours = [line for line in text.split("\n") if not line.startswith(" " * 9)]
    assert [line.split()[0].rstrip(":") for line in ours] == [LockHeld.id, "where", "why", "next"]
    assert not [line for line in text.split("\n") if line.startswith(FORGED)]


def test_lines_of_ours_stay_lines() -> None:
    """What the tool itself writes in several lines is still read so."""
    assert hanging("one\ntwo\n  three", "  ") == "one\n  two\n  three"
    assert hanging("a\x1b[2Jb", "  ") == "a\\x1b[2Jb"
