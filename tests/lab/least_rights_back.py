"""The same principal in ZooKeeper: the table's rights are granted to it one by one, and one is taken away at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from kazoo.security import ACL, make_acl

from migrate.model.inventory import SecretFile, ZookeeperLogin
from migrate.model.rights import SENSITIVE
from migrate.playbook.inventory import dump_inventory
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient, access_of, connect
from migrate.zookeeper.lock import LOCK_PATH
from tests.lab.least_rights import NEEDED, PATIENT, TOOL, Limited, becomes

PARENT: Final = LOCK_PATH.rpartition("/")[0]
FENCE: Final = f"{LOCK_PATH}-fence"
WRITES: Final[Mapping[str, tuple[str, ...]]] = {
    "/": ("DELETE",),
    layout.CONTROLLER_EPOCH: ("WRITE",),
    PARENT: ("CREATE", "DELETE"),
    FENCE: ("WRITE",),
}
TAKES: Final = (
    ("/", "DELETE", "needs DELETE on its parent"),
    (layout.CONTROLLER_EPOCH, "WRITE", "needs WRITE on it"),
    (PARENT, "CREATE", "needs CREATE on its parent"),
    (FENCE, "WRITE", "needs WRITE on it"),
)


def as_itself(limited: Limited) -> Limited:
    """The tool comes to ZooKeeper by a login of its own, too."""
    password = limited.inventory.broker_access.password
    assert isinstance(password, SecretFile)
    known = replace(limited.inventory, zookeeper_login=ZookeeperLogin(TOOL, password))
    Path(known.path).write_text(dump_inventory(known))
    return replace(limited, inventory=known)


def session(limited: Limited) -> ZookeeperClient:
    """As the brokers, to whom every znode belongs."""
    own = limited.lab.inventory
    return connect(own.zookeeper, access=access_of(own.zookeeper_login))


def under(client: ZookeeperClient, path: str) -> Iterator[str]:
    """A znode and all below it."""
    yield path
    for name in client.kazoo.get_children(path):
        yield from under(client, f"{path}/{name}")


def grant(client: ZookeeperClient, path: str, *operations: str) -> None:
    """Exactly these to the tool there; everybody else's stay as they are."""
    found, _ = client.kazoo.get_acls(path)
    others: list[ACL] = [entry for entry in found if entry.id.id != TOOL]
    mine = [make_acl("sasl", TOOL, **{name.lower(): True for name in operations})] if operations else []
    client.kazoo.set_acls(path, [*others, *mine])


def everything(client: ZookeeperClient, without: tuple[str, str] | None = None) -> None:
    """The table's rights, but for one."""
    for path, operations in WRITES.items():
        grant(client, path, *(name for name in operations if (path, name) != without))
    for path in states(client):
        grant(client, path, *(name for name in ("WRITE",) if (path, name) != without))
    for top in SENSITIVE:
        for path in under(client, top):
            grant(client, path, "READ")


def states(client: ZookeeperClient) -> list[str]:
    """Every partition's."""
    return [path for path in under(client, layout.TOPICS) if path.endswith("/state")]


def hidden(client: ZookeeperClient, path: str) -> None:
    """Nobody but the brokers may read it."""
    client.kazoo.set_acls(path, [make_acl("sasl", "kafka", all=True)])


def readable(client: ZookeeperClient, path: str) -> None:
    """As Kafka makes it."""
    client.kazoo.set_acls(path, [make_acl("sasl", "kafka", all=True), make_acl("world", "anyone", read=True)])


def znodes(client: ZookeeperClient) -> dict[str, tuple[int, int, int] | None]:
    """What a rollback changes, with what tells a change; the fence counts those who took the lock."""
    paths = (layout.CONTROLLER, layout.CONTROLLER_EPOCH, layout.MIGRATION)
    stats = {path: client.kazoo.exists(path) for path in paths}
    tops = {path: None if stat is None else (stat.czxid, stat.ephemeralOwner, 0) for path, stat in stats.items()}
    return tops | {"epoch": (int(client.kazoo.get(layout.CONTROLLER_EPOCH)[0]), 0, 0)}


def the_rollback_with_each_right_taken_away(limited: Limited) -> None:
    """The same rollback plan: each time E-ZK-05 names the right, nothing done; with all of them it is carried out."""
    limited = as_itself(limited)
    limited.grant(*NEEDED)
    becomes(limited.read_metadata, lambda answer: isinstance(answer, int))
    becomes(limited.topics, lambda answer: isinstance(answer, int) and answer > 0)
    with session(limited) as owner:
        everything(owner)
        found = limited.doctor()
        assert not [text for text in found.get("missing", []) if "zookeeper" in text], found
        hidden(owner, layout.TOPICS)
        ended = limited.planned("rollback", "plan", PATIENT)
        assert ended.returncode not in (0, 2), ended.stdout[-2000:]
        assert "E-ZK-05" in ended.stdout + ended.stderr
        assert layout.TOPICS in ended.stdout + ended.stderr
        readable(owner, layout.TOPICS)
        plan, before, stood = limited.plan("rollback", "plan", PATIENT), limited.processes(), znodes(owner)
        one = min(path for path in states(owner) if path.endswith("/0/state"))
        for path, operation, says in (*TAKES, (one, "WRITE", "needs WRITE on it")):
            everything(owner, (path, operation))
            told = limited.doctor()
            assert any(f"lacks {operation} on {path}" in text for texts in told.values() for text in texts), told
            code, said = limited.apply(plan, "rollback", "apply")
            assert code not in (0, 2, 5), said[-2000:]
            assert "E-ZK-05" in said, said[-3000:]
            assert says in said, said[-3000:]
            assert limited.effects(plan) == []
            assert limited.processes() == before
            assert znodes(owner) == stood
        everything(owner)
    code, said = limited.apply(plan, "rollback", "apply")
    assert code == 0, said[-4000:]
    with session(limited) as owner:
        assert owner.kazoo.exists(layout.MIGRATION) is None
        assert owner.kazoo.exists(layout.CONTROLLER).ephemeralOwner
