"""A canary for every kind of secret, and every command at full verbosity with its failures forced: none is ever told.

The inventory names stores, logins and properties files whose secrets are canaries; nothing answers at its addresses,
stores do not open, files are torn.  What is said and what is written is searched for every form of every canary.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.lab.secured import Authority
from tests.cli.commands import Ended, kraft_migrate
from tests.lab.secrets_seen import holding
from tests.testing.host_program import broker, controller, installed

KINDS = (
    "sasl-password",
    "truststore-password",
    "keystore-password",
    "key-passphrase",
    "zookeeper-password",
    "encoder-secret",
    "old-encoder-secret",
    "token-secret",
    "jaas-of-brokers",
    "jaas-of-controllers",
    "jaas-in-a-file",
    "scram-of-clients",
    "comment",
)
CANARY = {kind: f'Cn4ry+/"{kind}"=é%{number:02d}' for number, kind in enumerate(KINDS)}  # needs every kind of escape
SAFE = {kind: f"canary-{kind}-{number:02d}+/=" for number, kind in enumerate(KINDS)}  # may stand in a properties file
SECRETS = frozenset({*CANARY.values(), *SAFE.values()})
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Place:
    """A folder with an inventory, a playbook, nodes' files and secrets; `given` are the files that hold secrets."""

    folder: Path
    given: frozenset[Path]

    def run(self, *words: str) -> Ended:
        """At full verbosity."""
        return kraft_migrate("-v", *words)


FILE, VARIABLE, COMMAND = "file", "variable", "command"


def secret(folder: Path, kind: str, by: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reference to a secret."""
    path = folder / "secrets" / kind
    path.parent.mkdir(exist_ok=True)
    path.write_text(CANARY[kind] + "\n", encoding="utf-8")
    path.chmod(0o600)
    if by == VARIABLE:
        name = f"A_{kind.replace('-', '_')}"
        monkeypatch.setenv(name, CANARY[kind])
        return f"{{env: {name}}}"
    return f"{{file: secrets/{kind}}}" if by == FILE else f"{{command: [/bin/cat, '{path}']}}"


def node_file(node: str) -> str:
    """A node's file with every secret that stands in such files."""
    return f"""\
# the admin's password is {SAFE["comment"]}
{node}
listeners=INTERNAL://127.0.0.1:1
listener.security.protocol.map=INTERNAL:SASL_SSL,CTL:SSL
inter.broker.listener.name=INTERNAL
log.dirs=/nowhere/d0
zookeeper.connect=127.0.0.1:1/kafka
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:broker
password.encoder.secret={SAFE["encoder-secret"]}
password.encoder.old.secret={SAFE["old-encoder-secret"]}
delegation.token.secret.key={SAFE["token-secret"]}
ssl.keystore.location=/nowhere/keys.p12
ssl.keystore.password={SAFE["keystore-password"]}
ssl.key.password={SAFE["key-passphrase"]}
ssl.truststore.password={SAFE["truststore-password"]}
listener.name.internal.plain.sasl.jaas.config={PLAIN} username="broker" password="{SAFE["jaas-in-a-file"]}";
listener.name.client.scram-sha-512.sasl.jaas.config=x.Y required password='{SAFE["scram-of-clients"]}';
"""


INVENTORY = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {{name: bad}}
spec:
  zookeeper: 127.0.0.1:1/kafka
  controller_listener: CTL
  executor: {{kind: local, kafka_home: /opt/kafka, sudo: false, host_program: {folder}/program/host}}
  password_encoder_secret: {encoder}
  password_encoder_old_secret: {old}
  zookeeper_access:
    sasl: {{username: kafka, password: {zookeeper}}}
    tls: {{truststore: {{path: ca.pem, type: PEM}}, keystore: {{path: keys.p12, type: PKCS12, password: {keystore}}}}}
  brokers:
    access:
      protocol: SASL_SSL
      mechanism: SCRAM-SHA-512
      username: admin
      password: {sasl}
      truststore: {{path: {trust}, type: {kind}, password: {truststore}}}
    properties: added-to-brokers.properties
    nodes:
      - {{id: 0, host: 127.0.0.1, address: '127.0.0.1:1', config: {folder}/b0.properties, unit: node-0.service}}
      - {{id: 1, host: 127.0.0.1, address: '127.0.0.1:1', config: {folder}/b1.properties, unit: node-1.service}}
  controllers:
    access:
      protocol: SSL
      truststore: {{path: ca.pem, type: PEM}}
      keystore: {{path: key.pem, type: PEM, password: {passphrase}}}
    properties: added-to-controllers.properties
    nodes:
      - id: 3000
        host: 127.0.0.1
        address: 127.0.0.1:2
        config: {folder}/c0.properties
        metadata_directory: {folder}/c0
        unit: node-3000.service
"""
PLAYBOOK = """\
apiVersion: kraft-migrate/v1
kind: MigrationPlaybook
metadata: {name: bad, change: c}
spec:
  cluster: {inventory: inventory.yaml}
  stages:
    - name: assess
    - name: prepare
"""


@pytest.fixture(params=["stores that open", "a truststore that is none", "a truststore of Java's"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The folder; in two of three cases a store cannot be opened, and that is what goes wrong first.

    In each case the secrets are referred to in another way.
    """
    monkeypatch.chdir(tmp_path)
    authority = Authority.make("authority")
    issued = authority.issue("tool", ("localhost",))
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (tmp_path / "keys.p12").write_bytes(issued.pkcs12("another password"))
    (tmp_path / "key.pem").write_bytes(issued.pem)
    (tmp_path / "trust.p12").write_bytes(authority.issue("x", ("h",)).pkcs12(CANARY["truststore-password"]))
    (tmp_path / "none.p12").write_bytes(CANARY["comment"].encode())
    trust, kind, by = {
        "stores that open": ("trust.p12", "PKCS12", FILE),
        "a truststore that is none": ("none.p12", "PKCS12", COMMAND),
        "a truststore of Java's": ("none.p12", "JKS", VARIABLE),
    }[request.param]
    references = {kind: secret(tmp_path, kind, by, monkeypatch) for kind in KINDS}
    text = INVENTORY.format(
        folder=tmp_path,
        encoder=references["encoder-secret"],
        old=references["old-encoder-secret"],
        zookeeper=references["zookeeper-password"],
        keystore=references["keystore-password"],
        sasl=references["sasl-password"],
        truststore=references["truststore-password"],
        passphrase=references["key-passphrase"],
        trust=trust,
        kind=kind,
    )
    (tmp_path / "inventory.yaml").write_text(text)
    (tmp_path / "playbook.yaml").write_text(PLAYBOOK)
    brokers = [broker(node, tmp_path / f"b{node}.properties") for node in (0, 1)]
    installed(tmp_path / "program", brokers, [controller(3000, tmp_path / "c0.properties", tmp_path / "c0")])
    for name, node in (("b0", "broker.id=0"), ("b1", "broker.id=1"), ("c0", "node.id=3000\nprocess.roles=controller")):
        (tmp_path / f"{name}.properties").write_text(node_file(node))
    for who in ("brokers", "controllers"):
        path = tmp_path / f"added-to-{who}.properties"
        path.write_text(f'listener.name.ctl.plain.sasl.jaas.config={PLAIN} password="{SAFE[f"jaas-of-{who}"]}";\n')
        path.chmod(0o600)
    return Place(tmp_path, frozenset(path for path in tmp_path.rglob("*") if path.is_file()))


def nothing_told(place: Place, ended: Ended) -> None:
    """Not in what was said, and not in any file that was not given."""
    assert holding((ended.out + ended.err).encode(), SECRETS) == []
    for path in place.folder.rglob("*"):
        if path.is_file() and path not in place.given and "backup" not in path.parts:
            assert holding(path.read_bytes(), SECRETS) == [], path


COMMANDS = (
    ("assess", "playbook.yaml"),
    ("assess", "--inventory", "inventory.yaml", "--output", "json", "--html", "a.html"),
    ("plan", "playbook.yaml"),
    ("plan", "playbook.yaml", "--output", "json"),
    ("status", "playbook.yaml"),
    ("status", "--inventory", "inventory.yaml", "--output", "json"),
    ("diff", "playbook.yaml"),
    ("directories", "show", "playbook.yaml"),
    ("directories", "verify", "playbook.yaml"),
    ("directories", "assign", "0", "playbook.yaml"),
    ("rollback", "plan", "playbook.yaml"),
    ("bundle", "create", "b.tar.gz", "--inventory", "inventory.yaml"),
    ("backup", "create", "b.jsonl.gz", "--inventory", "inventory.yaml"),
    ("unlock", "playbook.yaml"),
    ("playbook", "lint", "playbook.yaml"),
    ("playbook", "lint", "inventory.yaml"),
    ("playbook", "show", "playbook.yaml"),
    ("doctor", "--inventory", "inventory.yaml", "--rights"),
)


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_tells_a_secret_whatever_fails(place: Place, words: tuple[str, ...]) -> None:
    """With tracebacks, in text, JSON, HTML, bundles and backups."""
    ended = place.run(*words)
    assert ended.code != 64, ended.err
    nothing_told(place, ended)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a secret that others may read": lambda folder: (folder / "secrets" / "sasl-password").chmod(0o644),
    "a secret that is no text": lambda folder: _write(folder / "secrets" / "sasl-password", b"\xff" + _raw("comment")),
    "a secret in the inventory itself": lambda folder: _replace(
        folder / "inventory.yaml", "{file: secrets/sasl-password}", json.dumps(SAFE["sasl-password"])
    ),
    "added properties that are none": lambda folder: _write(
        folder / "added-to-brokers.properties", b"a=\\u00zz" + _raw("jaas-of-brokers"), 0o600
    ),
    "added properties that others may read": lambda folder: (folder / "added-to-brokers.properties").chmod(0o644),
    "a node's file that Java refuses": lambda folder: _write(folder / "b0.properties", b"x=\\u00zz" + _raw("comment")),
    "an inventory that is no YAML": lambda folder: _write(folder / "inventory.yaml", b"a: [" + _raw("comment")),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", ["stores that open"], indirect=True)
def test_what_is_torn_or_open_is_refused_without_its_content(place: Place, damage: str) -> None:
    """The place, what is wrong, and nothing of it; where the inventory itself held it, too."""
    DAMAGES[damage](place.folder)
    for words in (("assess", "playbook.yaml"), ("plan", "playbook.yaml"), ("playbook", "lint", "inventory.yaml")):
        nothing_told(place, place.run(*words))


def _raw(kind: str) -> bytes:
    return SAFE[kind].encode()


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    path.write_bytes(content)
    path.chmod(mode)


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
