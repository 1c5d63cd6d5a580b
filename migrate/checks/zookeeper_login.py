"""SEC: as whom the controllers' processes will call ZooKeeper; no properties file and no log says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.checks.config import Configs
from migrate.checks.registry import UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.sight import Sight, both, broker_configs, controller_launches, readable_zookeeper
from migrate.checks.zookeeper_access import closed
from migrate.model.findings import CodeDoc
from migrate.model.flag import truth
from migrate.model.ids import NodeId
from migrate.model.launch import Launch, NoZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZookeeperView
from migrate.model.world import World

SET_ACL: Final = "zookeeper.set.acl"
KEYSTORE: Final = "zookeeper.ssl.keystore.location"
X509: Final = "x509:"  # `X509AuthenticationProvider`: the subject of the certificate, or a name that it is told to take
Seen = tuple[ZookeeperView, tuple[Configs, dict[NodeId, Launch]]]


def _seen(world: World) -> Sight[Seen]:
    return both(readable_zookeeper, both(broker_configs, controller_launches))(world)


@check(
    CodeDoc(
        "B-SEC-21",
        "a controller's process has not the login with which ZooKeeper may be written",
        "With zookeeper.set.acl and without a login the controller dies at its start. As somebody else, or with another"
        " password, it stays up and tries for ever (NoAuth): no /migration, no line that says what it waits for.",
        "The controllers' processes are started without the brokers' java.security.auth.login.config, or its section"
        " Client has another user or password.",
        "Start each controller with -Djava.security.auth.login.config=FILE whose section Client is the brokers'; it is"
        " needed until finalize.",
        "seen on 3.9.2: 'zookeeper.set.acl is true, but ... verification of the JAAS login file failed';"
        " NoAuthException for /consumers",
    ),
    sees=_seen,
    blocks_from=Stage.CONTROLLERS,
    when=UNTIL_FINALIZED,
    proof=True,
)
def controllers_may_write(seen: Seen, world: World) -> Result:
    """Where znodes are closed, or are to be: by a login, or by the certificate with which it calls ZooKeeper."""
    view, (brokers, launches) = seen
    if isinstance(view.acls, Unknown):
        yield Blind("the ACLs of ZooKeeper's znodes", view.acls.reason)
        return
    found = closed(view.acls)
    writers = frozenset.intersection(*found.values()) if found else frozenset()
    for node, launch in launches.items():
        file = _file(world, node, brokers)
        if not found and not truth(file.values, SET_ACL):
            continue
        about, keystore = f"controller {node}", file.values.get(KEYSTORE, "").strip()
        by_login = list(_judged(about, launch, writers if found else None))
        if not keystore or not by_login:  # a session has both identities: either will do
            yield from by_login
        elif any(who.startswith(X509) for who in writers):
            yield from _certified(about, file.subjects.get(keystore, Unknown(f"{keystore} was not looked at")), writers)
        elif found:
            yield from by_login


def _file(world: World, node: NodeId, brokers: Configs) -> ConfigFile:
    """The controller's own file; a broker's, of which it will be rendered, before it is there."""
    own = world.configs.get(node) if isinstance(world.configs, Mapping) else None
    return own if isinstance(own, ConfigFile) else next(iter(brokers.values()))


def _certified(about: str, subject: str | Unknown, writers: frozenset[str]) -> Result:
    """Is the certificate that its file names one of those who may write?"""
    known = sorted(who for who in writers if who.startswith(X509))
    if isinstance(subject, Unknown):
        yield Blind(f"the ZooKeeper certificate of {about}", subject.reason)
    elif X509 + subject in writers:
        return
    elif any("=" not in who for who in known):
        yield Blind(f"the ZooKeeper certificate of {about}", f"ZooKeeper calls certificates by other names: {known[0]}")
    else:
        yield Hit(about, f"it will come as {X509}{subject}, and {', '.join(sorted(writers))} may write")


def _judged(about: str, launch: Launch, writers: frozenset[str] | None) -> Result:
    """`writers` None: no znode is closed yet, any login will do."""
    client = launch.zookeeper_client
    if isinstance(client, Unknown):
        yield Blind(f"the ZooKeeper login of {about}", client.reason)
    elif isinstance(client, NoZookeeperClient):
        yield Hit(about, f"its process has no login for ZooKeeper: {client.reason}", launch.jaas_file or "")
    elif writers is not None and f"sasl:{client.username}" not in writers:
        told = ", ".join(sorted(writers)) or "nobody"
        yield Hit(about, f"it will come as sasl:{client.username}, and {told} may write", launch.jaas_file or "")
    elif isinstance(client.accepted, Unknown):
        yield Blind(f"whether ZooKeeper lets in {about}", client.accepted.reason)
    elif not client.accepted:
        yield Hit(about, f"ZooKeeper refuses the password of its user {client.username}", launch.jaas_file or "")
