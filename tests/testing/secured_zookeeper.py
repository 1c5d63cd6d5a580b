"""A real ZooKeeper with SASL identities, as brokers with zookeeper.set.acl use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kazoo.security import make_acl

from migrate.model.inventory import ZookeeperLogin
from migrate.zookeeper.client import ZookeeperClient, access_of, connect
from tests.testing.certificates import secret
from tests.testing.zookeeper_server import ZookeeperServer, running_server

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
PROVIDER = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"


@contextmanager
def sasl_server(folder: Path, users: Mapping[str, str]) -> Iterator[ZookeeperServer]:
    """A server that knows these users and passwords; who has no login comes as nobody."""
    folder.mkdir(parents=True, exist_ok=True)
    jaas = folder / "server-jaas.conf"
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    jaas.write_text(f"Server {{ {MODULE} required {known}; }};\n")
    with running_server(folder / "server", PROVIDER, [f"-Djava.security.auth.login.config={jaas}"]) as server:
        yield server


def login(folder: Path, user: str, password: str) -> ZookeeperLogin:
    """As that user."""
    return ZookeeperLogin(user, secret(folder, password, f"zookeeper-{user}-{password}"))


def session(server: ZookeeperServer, who: ZookeeperLogin, chroot: str = "") -> ZookeeperClient:
    """A session of that user."""
    return connect(server.address + chroot, timeout=10.0, session_timeout=6.0, access=access_of(who))


def closed(owner: str, *, readable: bool = True) -> Sequence[object]:
    """The ACL that brokers with zookeeper.set.acl give (ZkData.defaultAcls): theirs all, read for everybody or none."""
    own = [make_acl("sasl", owner, all=True)]
    return [*own, make_acl("world", "anyone", read=True)] if readable else own
