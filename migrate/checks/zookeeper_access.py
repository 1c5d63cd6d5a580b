"""SEC: who may do what in ZooKeeper by the ACLs of znodes, and as whom controllers will call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.checks.registry import BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.sight import Configs, both, broker_configs, controller_launches, of_node, readable_zookeeper
from migrate.checks.zookeeper import sample
from migrate.model.ids import NodeId
from migrate.model.kafka_values import truth
from migrate.model.kerberos_names import in_zookeeper, with_realm
from migrate.model.launch import Launch, NoZookeeperClient, ZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZnodeAcl, ZookeeperView
from migrate.model.world import World

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
NEEDED: Final = READ | WRITE | CREATE | DELETE
ANYONE: Final = "world:anyone"
SASL: Final = "sasl:"
X509: Final = "x509:"  # `X509AuthenticationProvider`: the subject of the certificate, or a name that it is told to take


def writers(acl: tuple[ZnodeAcl, ...]) -> frozenset[str]:
    """The identities (scheme:name) that may read, write, create and delete there; several entries add up."""
    rights: dict[str, int] = {}
    for entry in acl:
        who = f"{entry.scheme}:{entry.identity}"
        rights[who] = rights.get(who, 0) | entry.permissions
    everybody = rights.get(ANYONE, 0)
    return frozenset(who for who, bits in rights.items() if (bits | everybody) & NEEDED == NEEDED)


def closed(acls: Mapping[str, tuple[ZnodeAcl, ...]]) -> dict[str, frozenset[str]]:
    """Znode -> who may write it, of those that not everybody may write."""
    found = {path: writers(acl) for path, acl in acls.items()}
    return {path: who for path, who in found.items() if ANYONE not in who}


def stranger(view: ZookeeperView, world: World) -> str | Blind | None:
    """How our own login differs from who may write every closed znode; None where it does not, or none is closed."""
    if isinstance(view.acls, Unknown):
        return Blind("the ACLs of ZooKeeper's znodes", view.acls.reason)
    found, login = closed(view.acls), world.inventory.zookeeper_login
    if not found:
        return None
    common = frozenset.intersection(*found.values())
    if any(who.startswith(X509) for who in common) and login.keystore is not None:
        return Blind("our identity in ZooKeeper", "it comes from a TLS certificate")
    names = frozenset({login.username})
    if login.kerberos is not None:
        names = frozenset({view.caller}) if isinstance(view.caller, str) else known_as(login.kerberos.principal, world)
        if len({f"sasl:{name}" in common for name in names}) != 1:
            return Blind("our identity in ZooKeeper", _unnamed(login.kerberos.principal, names))
    if f"sasl:{min(names)}" in common:
        return None
    mine = f"sasl:{min(names)}" if names != {""} else "nobody (no login)"
    return f"the tool's identity is {mine}; {', '.join(sorted(common)) or 'nobody'} may write"


def known_as(principal: str, world: World) -> frozenset[str]:
    """As whom ZooKeeper may know that principal, by what it made of ours and of the brokers'; empty where none fits."""
    view, login = world.zookeeper, world.inventory.zookeeper_login.kerberos
    if isinstance(view, Unknown) or isinstance(view.acls, Unknown):
        return frozenset(in_zookeeper(principal).values())
    seen = [] if login is None or isinstance(view.caller, Unknown) else [(login.principal, frozenset({view.caller}))]
    found = closed(view.acls)
    writers = (
        frozenset(who.removeprefix(SASL) for who in frozenset.intersection(*found.values()) if who.startswith(SASL))
        if found
        else frozenset()
    )
    for node in world.inventory.brokers if writers else ():
        launch = of_node(world.launches, node.id)
        if isinstance(launch, Unknown) or isinstance(launch.logins, Unknown):
            continue
        for one in launch.logins.get(launch.zookeeper_section, ()):
            theirs = with_realm(one.principal, launch.realm)
            if one.principal and not isinstance(theirs, Unknown):
                seen.append((theirs, writers))
    return frozenset(
        name
        for kept, name in in_zookeeper(principal).items()
        if all(in_zookeeper(whose)[kept] in known for whose, known in seen)
    )


def _unnamed(principal: str, names: frozenset[str]) -> str:
    """Why it is not known as whom ZooKeeper knows a principal."""
    if names:
        return f"{principal} may be {' or '.join(sorted(names))} by kerberos.removeHostFromPrincipal and its like"
    return f"ZooKeeper makes its names by other rules of principals such as {principal} (auth_to_local)"


@check(
    "B-SEC-05",
    "no one identity may write every znode that the controllers write",
    "The KRaft controllers log in to ZooKeeper as one identity. What it may not write stops the copy or the dual write "
    "with NoAuth. Old znodes keep their ACLs when zookeeper.set.acl is switched or the brokers' identity changes.",
    "Run zookeeper-security-migration.sh with the brokers' identity (with --enable.path.check), so that all znodes "
    "have the same ACLs; then check again.",
    "ZkSecurityMigrator; ZkData.defaultAcls; KAFKA-19480 for /migration",
).sees(readable_zookeeper, blocks_from=Stage.CONTROLLERS, when=UNTIL_FINALIZED)
def no_common_writer(view: ZookeeperView, world: World) -> Result:
    if isinstance(view.acls, Unknown):
        yield Blind("the ACLs of ZooKeeper's znodes", view.acls.reason)
        return
    found = closed(view.acls)
    if found and not frozenset.intersection(*found.values()):
        told = [f"{path} ({', '.join(sorted(who)) or 'nobody'})" for path, who in sorted(found.items())]
        yield Hit("ZooKeeper's ACLs", f"no identity may write all of: {sample(told)}", "; ".join(told))


@check(
    "W-SEC-14",
    "only one identity may write ZooKeeper's znodes",
    "With zookeeper.set.acl=true on the brokers the controllers must log in to ZooKeeper as that identity. A "
    "properties file does not show how: the login is in a JAAS file or in a TLS certificate.",
    "Give each controller's process the brokers' ZooKeeper login (java.security.auth.login.config with the section "
    "Client, or the zookeeper.ssl.* keys with that certificate) before it is started.",
    "zookeeper.set.acl; ZkData.defaultAcls",
).sees(readable_zookeeper, when=BEFORE_COPY)
def one_writer(view: ZookeeperView, world: World) -> Result:
    if isinstance(view.acls, Unknown):
        yield Blind("the ACLs of ZooKeeper's znodes", view.acls.reason)
        return
    found = closed(view.acls)
    common = frozenset.intersection(*found.values()) if found else frozenset()
    if common:
        who = ", ".join(sorted(common))
        yield Hit("ZooKeeper's ACLs", f"{len(found)} of the controllers' znodes may be written by {who} alone", who)


@check(
    "B-SEC-15",
    "an encoded password is not opened by password.encoder.secret",
    "Controllers with this secret would copy that configuration as garbage, and the broker cannot read it after its "
    "second restart. password.encoder.old.secret may still be in use. Another cipher or key factory than Kafka's "
    "default (AES/CBC/PKCS5Padding; PBKDF2WithHmacSHA512 or PBKDF2WithHmacSHA1) is not verified.",
    "Compare the inventory's password_encoder_secret with the brokers' files; restart the broker where "
    "password_encoder_old_secret opens it; set the configuration again where it was encoded with a lost secret or "
    "another algorithm.",
    "KAFKA-14801; PasswordEncoder.decode",
).sees(readable_zookeeper, blocks_from=Stage.CONTROLLERS, when=UNTIL_FINALIZED)
def password_not_opened(view: ZookeeperView, world: World) -> Result:
    """As the reader tried them; without a secret nothing was tried, and that is W-ZKN-15."""
    for where in view.undecodable:
        path, _, name = where.partition(" ")
        yield Hit(path, f"{name} cannot be decoded with the given secret")


SET_ACL: Final = "zookeeper.set.acl"
KEYSTORE: Final = "zookeeper.ssl.keystore.location"
Seen = tuple[ZookeeperView, tuple[Configs, dict[NodeId, Launch]]]


@check(
    "B-SEC-21",
    "a controller's process has not the login with which ZooKeeper may be written",
    "With zookeeper.set.acl and without a login the controller dies at its start. As somebody else, or with another "
    "password, it keeps running and retries indefinitely (NoAuth): no /migration, no line that says what it waits for.",
    "Start each controller with -Djava.security.auth.login.config=FILE whose section Client is the brokers'; it is "
    "needed until finalize.",
    "seen on 3.9.2: 'zookeeper.set.acl is true, but ... verification of the JAAS login file failed'; NoAuthException "
    "for /consumers",
).sees(
    both(readable_zookeeper, both(broker_configs, controller_launches)),
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
        own = of_node(world.configs, node)  # before it is there: a broker's, of which it will be rendered
        file = own if isinstance(own, ConfigFile) else next(iter(brokers.values()))
        if not found and not truth(file.values, SET_ACL):
            continue
        about, keystore = f"controller {node}", file.values.get(KEYSTORE, "").strip()
        by_login = list(_check_login(about, launch, writers if found else None, world))
        if not keystore or not by_login:  # a session has both identities: either will do
            yield from by_login
        elif any(who.startswith(X509) for who in writers):
            yield from _check_certificate(
                about, file.subjects.get(keystore, Unknown(f"{keystore} was not looked at")), writers
            )
        elif found:
            yield from by_login


def _check_certificate(about: str, subject: str | Unknown, writers: frozenset[str]) -> Result:
    known = sorted(who for who in writers if who.startswith(X509))
    if isinstance(subject, Unknown):
        yield Blind(f"the ZooKeeper certificate of {about}", subject.reason)
    elif X509 + subject in writers:
        return
    elif any("=" not in who for who in known):
        yield Blind(f"the ZooKeeper certificate of {about}", f"ZooKeeper calls certificates by other names: {known[0]}")
    else:
        yield Hit(about, f"it will come as {X509}{subject}, and {', '.join(sorted(writers))} may write")


def _check_login(about: str, launch: Launch, writers: frozenset[str] | None, world: World) -> Result:
    """`writers` None: no znode is closed yet, any login will do."""
    client = launch.zookeeper_client
    names = frozenset[str]()
    if isinstance(client, ZookeeperClient):
        names = known_as(client.principal, world) if client.principal else frozenset({client.username})
    if isinstance(client, Unknown):
        yield Blind(f"the ZooKeeper login of {about}", client.reason)
    elif isinstance(client, NoZookeeperClient):
        yield Hit(about, f"its process has no login for ZooKeeper: {client.reason}", launch.jaas_file or "")
    elif writers is not None and len(fits := {SASL + name in writers for name in names}) != 1:
        yield Blind(f"the ZooKeeper login of {about}", _unnamed(client.principal, names))
    elif writers is not None and not all(fits):
        told = ", ".join(sorted(writers)) or "nobody"
        yield Hit(about, f"it will connect as {SASL}{min(names)}, and {told} may write", launch.jaas_file or "")
    elif client.principal:  # its key is read on its host alone, when it starts
        return
    elif isinstance(client.accepted, Unknown):
        yield Blind(f"whether ZooKeeper accepts {about}", client.accepted.reason)
    elif not client.accepted:
        yield Hit(about, f"ZooKeeper refuses the password of its user {client.username}", launch.jaas_file or "")
