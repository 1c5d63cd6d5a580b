"""Files of a secured lab as a person might leave them: each is found by `plan` before a controller is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kazoo.security import make_acl

from migrate.hosts.properties import edit, parse
from migrate.lab import secured
from migrate.lab.cluster import Lab
from migrate.lab.topology import Topology
from migrate.zookeeper import layout
from migrate.zookeeper.client import access_of, connect
from tests.lab.commands import kraft_migrate

SUPER, MAP = "super.users", "listener.security.protocol.map"
MISTYPED = ('password="', 'password="mistyped')
Place = Callable[[Topology], Path]


def controller(topology: Topology) -> Path:
    """The last controller's file, as it was rendered."""
    return topology.config(topology.controllers[-1].name)


def for_brokers(topology: Topology) -> Path:
    """What is added to brokers."""
    return secured.added_path(topology, secured.BROKER)


@dataclass(frozen=True)
class Wrong:
    """Keys of a file set to another value (None: taken out; a pair: one text for another), and the code that tells."""

    code: str
    file: Place
    changed: dict[str, str | tuple[str, str] | None]


WRONG: Final = (
    Wrong("B-SEC-06", controller, {SUPER: "User:controller;User:admin"}),
    Wrong("B-SEC-06", controller, {SUPER: "User:broker;User:admin", "allow.everyone.if.no.acl.found": "true"}),
    Wrong("B-SEC-22", controller, {SUPER: "User:broker;User:controller"}),
    Wrong("B-SEC-01", controller, {"authorizer.class.name": None}),
    Wrong("B-SEC-02", controller, {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}),
    Wrong("B-SEC-03", controller, {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"}),
    Wrong("B-SEC-04", controller, {"password.encoder.secret": None}),
    Wrong("B-SEC-10", controller, {"delegation.token.secret.key": None}),
    Wrong("B-SEC-13", controller, {"sasl.mechanism.inter.broker.protocol": None}),
    Wrong("B-SEC-17", controller, {"listener.name.internal.plain.sasl.jaas.config": MISTYPED}),
    Wrong("B-CFG-06", controller, {MAP: ("INTERNAL:SASL_SSL,", "")}),
    Wrong("B-SEC-16", for_brokers, {"sasl.mechanism.controller.protocol": None}),
    Wrong("B-SEC-17", for_brokers, {"listener.name.ctl.plain.sasl.jaas.config": MISTYPED}),
)


@contextmanager
def bent(path: Path, content: bytes) -> Iterator[None]:
    """The file with that content, and afterwards as it was."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def changed(path: Path, wrong: Wrong) -> bytes:
    """The file's bytes with the keys changed."""
    raw = path.read_bytes()
    values = parse(raw)
    put: dict[str, str] = {}
    for key, value in wrong.changed.items():
        if isinstance(value, tuple):
            assert value[0] in values[key], key
            put[key] = values[key].replace(*value)
        elif value is not None:
            put[key] = value
    return edit(raw, put, [key for key, value in wrong.changed.items() if value is None])


def found_before_the_start(lab: Lab) -> None:
    """Behind `prepare`: the plan of the next two stages is blocked by exactly what is wrong, and tells no password."""
    prepared(lab)
    assert not told(lab), "the files as they were rendered are right"
    for wrong in WRONG:
        path = wrong.file(lab.topology)
        with bent(path, changed(path, wrong)):
            assert wrong.code in told(lab), wrong
    login = secured.jaas_path(lab.topology, secured.BROKER)
    for text in (b"", login.read_bytes().replace(b'password="', b'password="mistyped')):
        with bent(login, text):
            assert "B-SEC-21" in told(lab)
    own = lab.inventory
    with connect(own.zookeeper, access=access_of(own.zookeeper_login)) as client:
        others = [make_acl("sasl", "another", all=True), make_acl("world", "anyone", read=True)]
        client.kazoo.set_acls(layout.CLIENT_CONFIGS, others)
        assert "B-SEC-05" in told(lab)
    for node in lab.topology.controllers:
        assert not Path(lab.topology.log(node.name)).exists(), "no controller was ever started"


def prepared(lab: Lab) -> None:
    """Stage prepare is planned and carried out."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--stage", "prepare", "--output", "json")
    assert ended.returncode == 2, ended.stdout[-2000:] + ended.stderr[-2000:]
    fingerprint = json.loads(ended.stdout)["fingerprint"]
    ended = kraft_migrate("apply", str(Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"))
    assert ended.returncode == 0, ended.stderr[-3000:]


def told(lab: Lab) -> str:
    """What a plan to the first roll is blocked by, or what hides a blocker; "" where neither is."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--to", "migration-mode")
    assert ended.returncode in (1, 2, 3), ended.stderr[-3000:]
    assert "mistyped" not in ended.stdout + ended.stderr
    return "" if ended.returncode == 2 else ended.stdout + ended.stderr
