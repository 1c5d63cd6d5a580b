"""SEC: super users, secrets and SASL: what opens the cluster, and what takes it down.

Values of passwords are compared and parsed here, and never stand in a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from migrate.checks.config import Configs, inter_broker_listener, protocols
from migrate.checks.principals import (
    ANONYMOUS,
    JAAS,
    after_first_restart,
    authorizer,
    controller_listener,
    controller_principals,
    principal_to,
    super_users,
)
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import both, broker_configs, controller_configs, zookeeper
from migrate.hosts.collect_disks import DIGEST, HIDDEN
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.findings import CodeDoc
from migrate.model.flag import truth
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZookeeperView
from migrate.model.world import World

ACL_AUTHORIZERS: Final = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ENCODER_SECRET: Final = "password.encoder.secret"  # noqa: S105 - a configuration's name
TOKEN_SECRETS: Final = ("delegation.token.secret.key", "delegation.token.master.key")
EXTERNAL: Final = "${"  # a configuration provider resolves it on the node


@check(
    CodeDoc(
        "B-SEC-03",
        "the controller listener uses GSSAPI, or SCRAM among controllers",
        "SCRAM credentials live in the metadata that has no leader yet: the controllers never elect one, and "
        "--add-scram does not help. GSSAPI on the controller listener is not supported by this tool.",
        "The brokers' mechanism was copied to the controller listener.",
        "Use PLAIN or TLS among controllers; brokers may use SCRAM with credentials added at format time.",
        "seen on 3.9.2: 'invalid credentials' among controllers",
    ),
    sees=controller_configs,
    blocks_from=Stage.CONTROLLERS,
)
def controller_mechanism(configs: Configs, world: World) -> Result:
    """sasl.mechanism.controller.protocol, where the listener is SASL."""
    for node, file in configs.items():
        listener = controller_listener(file.values)
        mechanism = file.values.get("sasl.mechanism.controller.protocol", "GSSAPI").strip()
        is_sasl = protocols(file.values).get(listener.upper(), "").startswith("SASL")
        if is_sasl and (mechanism == "GSSAPI" or mechanism.startswith("SCRAM")):
            yield Hit(f"controller {node}: {file.path}", f"listener {listener} uses {mechanism}")


@check(
    CodeDoc(
        "B-SEC-04",
        "a node has not the brokers' password.encoder.secret",
        "Without it the controllers copy dynamic passwords as the ciphertext they are, and write new ones into "
        "ZooKeeper in clear text. With a wrong one the copy aborts and a controller dies holding /controller.",
        "The secret is missing in a file, or was rotated on some nodes only.",
        "Put one password.encoder.secret into every broker's and every controller's file.",
        "KAFKA-14801; PasswordEncoder; seen on 3.9.2",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
)
def encoder_secret(seen: tuple[Configs, Configs], world: World) -> Result:
    """Equality by digest, so that no value can reach a message."""
    brokers, controllers = seen
    known = {node: secret for node, file in brokers.items() if (secret := _encoder_secret(file.values))}
    yield from _one_secret(ENCODER_SECRET, known, (*brokers.items(), *controllers.items()), _encoder_secret)


def _encoder_secret(values: Mapping[str, str]) -> str:
    return values.get(ENCODER_SECRET, "").strip()


def _one_secret(
    name: str,
    known: Mapping[NodeId, str],
    files: Iterable[tuple[NodeId, ConfigFile]],
    secret_of: Callable[[Mapping[str, str]], str],
) -> Result:
    """Every file has the secret of the first broker that has one."""
    if not known:
        return
    first, wanted = next(iter(known.items()))
    digester = Digester()
    for node, file in files:
        value, about = secret_of(file.values), f"node {node}: {file.path}"
        if HIDDEN in (value, wanted) or (value and _key_of(value) != _key_of(wanted)):
            yield Blind(about, f"{name} was collected without a key that the other nodes' files have, too")
        elif value.startswith(EXTERNAL) or wanted.startswith(EXTERNAL):
            yield Blind(about, f"{name} is resolved by a configuration provider on the node")
        elif not value:
            yield Hit(about, f"{name} is missing, broker {first} has one")
        elif digester.digest(value) != digester.digest(wanted):
            yield Hit(about, f"{name} is not that of broker {first}")


def _key_of(value: str) -> str:
    """Which key a collected digest was made with, "" for a value in clear: only values of one key can be compared."""
    return value.partition(":")[0] if DIGEST.fullmatch(value) else ""


@check(
    CodeDoc(
        "B-SEC-06",
        "super.users of a controller lacks the brokers or the controllers",
        "Before the copy only super users are let in: brokers never register. In hybrid, as soon as such a "
        "controller becomes active, every migration-mode broker shuts down within a second: the whole cluster is "
        "down.",
        "super.users was not copied, or the controllers call themselves otherwise than the brokers do. "
        "allow.everyone.if.no.acl.found does not replace it.",
        "Add both principals to super.users in every controller's file. Once brokers were refused, correcting the "
        "controllers is not enough: restart each of those brokers.",
        "seen on 3.9.2: FetchResponse error 31, 'Unexpected error in raft IO thread'",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def controllers_let_in(seen: tuple[Configs, Configs], world: World) -> Result:
    """The principals of every broker and of every controller on the controller listener."""
    brokers, controllers = seen
    for node, file in controllers.items():
        if not authorizer(file.values):
            continue
        about = f"controller {node}: {file.path}"
        late = {other: after_first_restart(entry, world) for other, entry in brokers.items()}
        callers = [
            (f"broker {other}", principal_to(file, values, brokers[other].subjects)) for other, values in late.items()
        ]
        callers += [
            (f"controller {other}", principal_to(file, entry.values, entry.subjects))
            for other, entry in controllers.items()
        ]
        yield from _not_let_in(about, super_users(file.values), callers)


def _not_let_in(about: str, allowed: frozenset[str], callers: list[tuple[str, str | Blind]]) -> Result:
    missing: dict[str, list[str]] = {}
    for who, principal in callers:
        if isinstance(principal, Blind):
            yield Blind(f"the principal of {who}", principal.reason)
        elif principal not in allowed:
            missing.setdefault(principal, []).append(who)
    for principal, nodes in missing.items():
        yield Hit(about, f"super.users lacks {principal}, as which {', '.join(nodes)} call it")


@check(
    CodeDoc(
        "B-SEC-07",
        "super.users of a broker lacks the controllers",
        "The broker denies the controllers' LeaderAndIsr and UpdateMetadata: the migration goes on, the broker's "
        "clients hang.",
        "The controllers call brokers by a principal of their own.",
        "Add the controllers' principal to super.users in every broker's file.",
        "seen on 3.9.2: '[KafkaApi-N] Unexpected error handling request'",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.MIGRATION_MODE,
)
def brokers_let_in(seen: tuple[Configs, Configs], world: World) -> Result:
    """The controllers' principal on the inter-broker listener.

    The first restart adds a principal of a login: before it only ANONYMOUS and those of certificates are missed, which
    a person must add (to the inventory's brokers.properties).
    """
    brokers, controllers = seen
    for node, file in brokers.items():
        if authorizer(file.values):
            at_first = mode_of(file.values) is Mode.ZOOKEEPER
            callers = [
                (f"controller {other}", principal)
                for other, entry in controllers.items()
                for principal in controller_principals(entry, file)
                if not at_first or not _is_added(principal, file)
            ]
            allowed = super_users(after_first_restart(file, world))
            yield from _not_let_in(f"broker {node}: {file.path}", allowed, callers)


def _is_added(principal: str | Blind, broker: ConfigFile) -> bool:
    """Will the first restart let it in?"""
    listener = inter_broker_listener(broker.values)
    by_login = protocols(broker.values).get(listener.upper(), listener.upper()).startswith("SASL")
    return by_login and not isinstance(principal, Blind) and principal != ANONYMOUS


@check(
    CodeDoc(
        "W-SEC-09",
        "a dynamic sasl.jaas.config will be lost",
        "It is stored and copied, and never effective on a KRaft broker: from the second roll on the value of the"
        " file is used, while the log says that the configuration was updated.",
        "kafka-configs set listener.name.X.MECHANISM.sasl.jaas.config.",
        "Write the value into the brokers' files before the second roll.",
        "seen on 3.9.2; DynamicBrokerConfig",
    ),
    sees=zookeeper,
)
def dynamic_jaas(view: ZookeeperView, world: World) -> Result:
    """Each of them, by the broker or <default> that it is for."""
    for owner, name in dynamic_logins(view):
        yield Hit(f"/config/brokers/{owner}", f"{name} is set dynamically")


def dynamic_logins(view: ZookeeperView) -> Iterator[tuple[str, str]]:
    """(broker or <default>, name) of kind broker-config; encoded ones that were not read stand among blind spots."""
    rows = view.entities
    for kind, key, name in zip(rows.kind, rows.key, rows.name, strict=True):
        if kind == "broker-config" and name.endswith(JAAS):
            yield key, name
    for text in view.blind_spots:
        path, _, rest = text.partition(": ")
        name = rest.partition(" ")[0]
        if name.endswith(JAAS):
            yield path.rpartition("/")[2], name


@check(
    CodeDoc(
        "B-SEC-10",
        "a node has not the brokers' key for delegation tokens",
        "Without it the controllers copy the tokens and cannot publish them ('Invalid key to HMAC computation'), and"
        " no token can be made any more. With another one each node computes another HMAC: tokens are refused.",
        "delegation.token.secret.key is missing in a file, or was rotated on some nodes only.",
        "Put one delegation.token.secret.key into every broker's and every controller's file.",
        "DelegationTokenPublisher; DelegationTokenManager.createHmac; seen on 3.9.2",
    ),
    sees=both(zookeeper, both(broker_configs, controller_configs)),
    blocks_from=Stage.CONTROLLERS,
)
def token_key(seen: tuple[ZookeeperView, tuple[Configs, Configs]], world: World) -> Result:
    """Iff a broker has a key, or ZooKeeper holds a token."""
    view, (brokers, controllers) = seen
    known = {node: key for node, file in brokers.items() if (key := _token_secret(file.values))}
    tokens = "delegation-token" in view.entities.kind
    if not known and tokens:
        for node, file in controllers.items():
            if not _token_secret(file.values):
                yield Hit(f"controller {node}: {file.path}", f"{TOKEN_SECRETS[0]} is missing, ZooKeeper has tokens")
    yield from _one_secret(TOKEN_SECRETS[0], known, (*brokers.items(), *controllers.items()), _token_secret)


def _token_secret(values: Mapping[str, str]) -> str:
    """The key for tokens, by its newer name or its older one (KafkaConfig: the newer wins)."""
    return next((found for name in TOKEN_SECRETS if (found := values.get(name, "").strip())), "")


@check(
    CodeDoc(
        "W-SEC-11",
        "what the controllers create in ZooKeeper will be writable by everybody",
        "The brokers protect their znodes (zookeeper.set.acl) and the controllers do not: /migration, /controller"
        " and new topics are world-writable.",
        "zookeeper.set.acl is missing in a controller's file.",
        "Set zookeeper.set.acl=true there too, with a JAAS section Client of the brokers' identity.",
        "seen on 3.9.2; ZkData.defaultAcls",
    ),
    sees=both(broker_configs, controller_configs),
)
def znode_acls(seen: tuple[Configs, Configs], world: World) -> Result:
    """Iff a broker sets them."""
    brokers, controllers = seen
    if not any(truth(file.values, "zookeeper.set.acl") for file in brokers.values()):
        return
    for node, file in controllers.items():
        if not truth(file.values, "zookeeper.set.acl"):
            yield Hit(f"controller {node}: {file.path}", "zookeeper.set.acl is not set, the brokers set it")


@check(
    CodeDoc(
        "W-SEC-12",
        "users created in hybrid become readable by everybody in ZooKeeper",
        "Even with zookeeper.set.acl, /config/users/X and /config/brokers/N that KRaft creates get world READ: a "
        "SCRAM hash can be read anonymously.",
        "Kafka's own dual write; there is no remedy but care.",
        "Create no SCRAM users and no dynamic passwords between the copy and finalize.",
        "seen on 3.9.2; ZkConfigMigrationClient",
    ),
    sees=broker_configs,
)
def users_in_hybrid(configs: Configs, world: World) -> Result:
    """Iff a broker sets ACLs."""
    if any(truth(file.values, "zookeeper.set.acl") for file in configs.values()):
        yield Hit("/config/users", "create no users between the copy and finalize")


@check(
    CodeDoc(
        "B-SEC-13",
        "a controller lacks the mechanism or the login for the brokers' listener",
        "Without the mechanism its start fails. Without the login the copy runs and then hangs for ever in "
        "KRAFT_CONTROLLER_TO_BROKER_COMM.",
        "SASL settings of the inter-broker listener were not copied into the controller's file.",
        "Copy sasl.mechanism.inter.broker.protocol, listener.name.L.sasl.enabled.mechanisms and "
        "listener.name.L.MECHANISM.sasl.jaas.config (L: the brokers' listener) into every controller's file.",
        "seen on 3.9.2: \"Could not find a 'KafkaServer' or 'internal.KafkaServer' entry\"",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
)
def controllers_can_call(seen: tuple[Configs, Configs], world: World) -> Result:
    """Iff the inter-broker listener is SASL."""
    brokers, controllers = seen
    listeners = {inter_broker_listener(file.values) for file in brokers.values()}
    for node, file in controllers.items():
        for listener in sorted(listeners):
            if protocols(file.values).get(listener.upper(), "").startswith("SASL"):
                yield from _sasl_login(f"controller {node}: {file.path}", file.values, listener)


def _sasl_login(about: str, values: Mapping[str, str], listener: str) -> Result:
    prefix = f"listener.name.{listener.lower()}."
    mechanism = values.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip()
    enabled = values.get(f"{prefix}sasl.enabled.mechanisms") or values.get("sasl.enabled.mechanisms", "GSSAPI")
    if mechanism not in [name.strip() for name in enabled.split(",")]:
        yield Hit(about, f"{mechanism} is not among the enabled mechanisms of listener {listener}")
    if not values.get(f"{prefix}{mechanism.lower()}.{JAAS}", "").strip():
        yield Blind(about, f"no {prefix}{mechanism.lower()}.{JAAS} in the file; a JAAS file of the process may have it")
