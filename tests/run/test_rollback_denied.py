"""A rollback whose identity may not give control back in a real ZooKeeper ends before it has stopped anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.security import make_acl

from migrate.errors import MigrateError
from migrate.model.stage import Stage
from migrate.observe.sources import Sources
from migrate.plan import rollback
from migrate.run.carry_out import Options, carry_out, folder_of
from migrate.run.journal import read
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.secured_zookeeper import login, sasl_server, session
from tests.testing.zookeeper_server import ZookeeperServer

pytestmark = pytest.mark.zookeeper
LOCKS = "/kraft-migrate"
ALL = {
    "/": ("DELETE",),
    layout.CONTROLLER_EPOCH: ("WRITE",),
    LOCKS: ("CREATE", "DELETE"),
    f"{LOCKS}/lock-fence": ("WRITE",),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """It knows the brokers' identity and the tool's."""
    with sasl_server(tmp_path_factory.mktemp("denied"), {"kafka": "k", "tool": "t"}) as found:
        yield found


@pytest.fixture(scope="module")
def owner(server: ZookeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperClient]:
    """As the brokers, with the znodes of a taken over cluster that a rollback changes."""
    who = login(tmp_path_factory.mktemp("owner"), "kafka", "k")
    with session(server, who) as root:
        root.kazoo.create("/kafka", b"")
    with session(server, who, "/kafka") as client:
        for path in (layout.CONTROLLER, layout.CONTROLLER_EPOCH, layout.MIGRATION, LOCKS, f"{LOCKS}/lock-fence"):
            client.kazoo.create(path, b"1")
        yield client


def grant(client: ZookeeperClient, without: tuple[str, str] | None = None) -> None:
    """What a rollback needs of the tool's own identity, but for one right."""
    for path, operations in ALL.items():
        rights = {name.lower(): (path, name) != without for name in operations}
        mine = [make_acl("sasl", "tool", **rights)] if any(rights.values()) else []
        theirs = [make_acl("sasl", "kafka", all=True), make_acl("world", "anyone", read=True)]
        client.kazoo.set_acls(path, [*theirs, *mine])


@pytest.mark.parametrize(
    ("path", "operation", "where"),
    [
        ("/", "DELETE", layout.CONTROLLER),
        (layout.CONTROLLER_EPOCH, "WRITE", layout.CONTROLLER_EPOCH),
        (LOCKS, "CREATE", f"{LOCKS}/lock"),
        (f"{LOCKS}/lock-fence", "WRITE", f"{LOCKS}/lock-fence"),
    ],
    ids=str,
)
def test_a_right_that_is_missing_ends_the_rollback_before_its_first_effect(
    path: str, operation: str, where: str, server: ZookeeperServer, owner: ZookeeperClient, tmp_path: Path
) -> None:
    """E-ZK-05 names it; no step began, and every znode is as it was."""
    grant(owner, (path, operation))
    known = replace(
        worlds.inventory(),
        zookeeper=f"{server.address}/kafka",
        zookeeper_login=login(tmp_path, "tool", "t"),
        runs=str(tmp_path / "runs"),
    )
    plan = rollback.build(whole(Stage.CONTROLLERS), worlds.playbook(), created=1.0)
    assert "hand-back-control" in {step.kind for step in plan.steps}
    before = {name: owner.kazoo.exists(name) for name in (layout.CONTROLLER, layout.CONTROLLER_EPOCH, layout.MIGRATION)}
    sources = Sources(known, worlds.playbook(), None)
    try:
        with pytest.raises(MigrateError) as caught:
            carry_out(plan, sources, Options(confirm=plan.fingerprint))
    finally:
        sources.close()
    assert (caught.value.id, caught.value.where) == ("E-ZK-05", where)
    assert f"needs {operation}" in caught.value.what
    assert [event.name for event in read(folder_of(known, plan).journal).events] == ["run"]
    assert {name: owner.kazoo.exists(name) for name in before} == before
    owner.sync("/")
    assert owner.kazoo.exists(f"{LOCKS}/lock") is None, "the lock is given back"
