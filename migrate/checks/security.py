"""SEC: authorizers, super users, secrets and SASL: what opens the cluster, and what takes it down.

Values of passwords are compared and parsed here, and never stand in a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.principals import (
    ACL_AUTHORIZERS,
    ANONYMOUS,
    AUTHORIZER,
    after_first_restart,
    authorizer,
    caller,
    controller_listener,
    controller_principals,
    in_kraft_mode,
    not_looked_for,
    principal_to,
    successor,
    super_users,
    without_login,
)
from migrate.checks.registry import ALWAYS, BEFORE_COPY, Blind, Hit, Result, check, placed
from migrate.checks.sight import (
    Configs,
    both,
    both_configs,
    broker_configs,
    controller_configs,
    entities,
    zookeeper,
)
from migrate.hosts.collect_disks import DIGEST, HIDDEN
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.config_keys import is_at_start
from migrate.model.kafka_values import REFERENCE, connect_string, truth
from migrate.model.listeners import (
    BROKER_MECHANISM,
    CONTROLLER_MECHANISM,
    JAAS,
    inter_broker_listener,
    mechanisms,
    protocols,
)
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import Stage
from migrate.model.views import ZookeeperView
from migrate.model.world import World

ENCODER_SECRET: Final = "password.encoder.secret"  # noqa: S105 - a configuration's name
TOKEN_SECRETS: Final = ("delegation.token.secret.key", "delegation.token.master.key")  # KafkaConfig: the newer wins


@check(
    "B-SEC-03",
    "the controller listener uses SCRAM among controllers",
    "SCRAM credentials live in the metadata that has no leader yet: the controllers never elect one, and --add-scram "
    "does not help.",
    "Use PLAIN, GSSAPI or TLS among controllers; brokers may use SCRAM with credentials added at format time.",
    "seen on 3.9.2: 'invalid credentials' among controllers",
).sees(controller_configs, blocks_from=Stage.CONTROLLERS)
def controller_mechanism(configs: Configs, world: World) -> Result:
    for about, file in placed("controller", configs):
        listener = controller_listener(file.values)
        mechanism = file.values.get(CONTROLLER_MECHANISM, "GSSAPI").strip()
        is_sasl = protocols(file.values).get(listener, "").startswith("SASL")
        if is_sasl and mechanism.startswith("SCRAM"):
            yield Hit(about, f"listener {listener} uses {mechanism}")


@check(
    "B-SEC-04",
    "a node has not the brokers' password.encoder.secret",
    "Without it the controllers copy dynamic passwords as the ciphertext they are, and write new ones into ZooKeeper "
    "in clear text. With a wrong one the copy aborts and a controller ends while it owns /controller.",
    "Put one password.encoder.secret into every broker's and every controller's file.",
    "KAFKA-14801; PasswordEncoder; seen on 3.9.2",
).sees(both_configs, blocks_from=Stage.CONTROLLERS)
def encoder_secret(seen: tuple[Configs, Configs], world: World) -> Result:
    return _one_secret(seen, ENCODER_SECRET)


def _secret(values: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((found for name in names if (found := values.get(name, "").strip())), "")


def _one_secret(seen: tuple[Configs, Configs], *names: str) -> Result:
    """Every file has the secret of the first broker that has one: equality by digest, so that no value is shown."""
    brokers, controllers = seen
    known = [(node, secret) for node, file in brokers.items() if (secret := _secret(file.values, names))]
    if not known:
        return
    (first, wanted), name = known[0], names[0]
    digester = Digester()
    for node, file in (*brokers.items(), *controllers.items()):
        value, about = _secret(file.values, names), f"node {node}: {file.path}"
        if HIDDEN in (value, wanted) or (value and _key_of(value) != _key_of(wanted)):
            yield Blind(about, f"{name} was collected without a key that the other nodes' files have, too")
        elif value.startswith(REFERENCE) or wanted.startswith(REFERENCE):
            yield Blind(about, f"{name} is resolved by a configuration provider on the node")
        elif not value:
            yield Hit(about, f"{name} is missing, broker {first} has one")
        elif digester.digest(value) != digester.digest(wanted):
            yield Hit(about, f"{name} is not that of broker {first}")


def _key_of(value: str) -> str:
    """Which key a collected digest was made with, "" for a value in clear: only values of one key can be compared."""
    return value.partition(":")[0] if DIGEST.fullmatch(value) else ""


@check(
    "B-SEC-06",
    "super.users of a controller lacks the brokers or the controllers",
    "Before the copy only super users are authorized: brokers never register. In hybrid, as soon as such a controller "
    "becomes active, every migration-mode broker shuts down within a second: the whole cluster is down. "
    "allow.everyone.if.no.acl.found does not replace it.",
    "Add both principals to super.users in every controller's file. Once brokers were refused, correcting the "
    "controllers is not enough: restart each of those brokers.",
    "seen on 3.9.2: FetchResponse error 31, 'Unexpected error in raft IO thread'",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def controllers_let_in(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    for about, file in placed("controller", controllers):
        if not authorizer(file.values):
            continue
        late = {other: after_first_restart(entry, world) for other, entry in brokers.items()}
        callers = [
            (f"broker {other}", principal_to(file, values, brokers[other].subjects, world, other))
            for other, values in late.items()
        ]
        callers += [
            (f"controller {other}", principal_to(file, entry.values, entry.subjects, world, other))
            for other, entry in controllers.items()
        ]
        yield from _not_let_in(about, super_users(file.values), callers, world)


def _not_let_in(about: str, allowed: frozenset[str], callers: list[tuple[str, str | Blind]], world: World) -> Result:
    missing: dict[str, list[str]] = {}
    for who, principal in callers:
        if isinstance(principal, Blind):
            if not_looked_for(principal, world):
                continue
            yield Blind(f"the principal of {who}", principal.reason)
        elif principal not in allowed:
            missing.setdefault(principal, []).append(who)
    for principal, nodes in missing.items():
        yield Hit(about, f"super.users lacks {principal}, as which {', '.join(nodes)} call it")


@check(
    "B-SEC-07",
    "super.users of a broker lacks the controllers",
    "The broker denies the controllers' LeaderAndIsr and UpdateMetadata: the migration continues, the broker's clients "
    "hang.",
    "Add the controllers' principal to super.users in every broker's file.",
    "seen on 3.9.2: '[KafkaApi-N] Unexpected error handling request'",
).sees(both_configs, blocks_from=Stage.MIGRATION_MODE)
def brokers_let_in(seen: tuple[Configs, Configs], world: World) -> Result:
    """The controllers' principal on the inter-broker listener.

    The first restart adds what the files alone say (`steps.configuration`); any other principal a person must add, to
    the inventory's brokers.properties: ANONYMOUS, that of a certificate, of Kerberos, of a process's JAAS file.
    """
    brokers, controllers = seen
    for about, file in placed("broker", brokers):
        if authorizer(file.values):
            callers = [
                (f"controller {other}", principal)
                for other, entry in controllers.items()
                for principal in controller_principals(entry, file, world)
            ]
            allowed = super_users(after_first_restart(file, world))
            if mode_of(file.values) is Mode.ZOOKEEPER:
                listener = inter_broker_listener(file.values)
                protocol, stated = protocols(file.values).get(listener, listener), world.inventory.controller_principal
                files = (entry.values for entry in controllers.values())
                added = {caller(one, listener, protocol, BROKER_MECHANISM, stated=stated) for one in files}
                allowed |= {one for one in added if isinstance(one, str) and one != ANONYMOUS}
            yield from _not_let_in(about, allowed, callers, world)


@check(
    "W-SEC-09",
    "a dynamic sasl.jaas.config will be lost",
    "It is stored and copied, and never effective on a KRaft broker: from the second roll on the value of the file is "
    "used, while the log says that the configuration was updated.",
    "Write the value into the brokers' files before the second roll.",
    "seen on 3.9.2; DynamicBrokerConfig",
).sees(zookeeper)
def dynamic_jaas(view: ZookeeperView, world: World) -> Result:
    for owner, name, _ in dynamic_at_start(view):
        if name.endswith(JAAS):
            yield Hit(f"/config/brokers/{owner}", f"{name} is set dynamically")


def dynamic_at_start(view: ZookeeperView) -> Iterator[tuple[str, str, str]]:
    """(broker, name, value); "" for an encoded one that was not read and stands among blind spots."""
    for key, name, value, _ in entities(view, "broker-config"):
        if is_at_start(key, name):
            yield key, name, value or ""
    for text in view.blind_spots:
        path, _, rest = text.partition(": ")
        key, name = path.rpartition("/")[2], rest.partition(" ")[0]
        if is_at_start(key, name):
            yield key, name, ""


@check(
    "B-SEC-10",
    "a node has not the brokers' key for delegation tokens",
    "Without it the controllers copy the tokens and cannot publish them ('Invalid key to HMAC computation'), and no "
    "token can be made any more. With another one each node computes another HMAC: tokens are refused.",
    "Put one delegation.token.secret.key into every broker's and every controller's file.",
    "DelegationTokenPublisher; DelegationTokenManager.createHmac; seen on 3.9.2",
).sees(both(zookeeper, both_configs), blocks_from=Stage.CONTROLLERS)
def token_key(seen: tuple[ZookeeperView, tuple[Configs, Configs]], world: World) -> Result:
    """Iff a broker has a key, or ZooKeeper holds a token."""
    view, (brokers, controllers) = seen
    known = any(_secret(file.values, TOKEN_SECRETS) for file in brokers.values())
    if not known and "delegation-token" in view.entities.kind:
        for about, file in placed("controller", controllers):
            if not _secret(file.values, TOKEN_SECRETS):
                yield Hit(about, f"{TOKEN_SECRETS[0]} is missing, ZooKeeper has tokens")
    yield from _one_secret(seen[1], *TOKEN_SECRETS)


@check(
    "W-SEC-11",
    "what the controllers create in ZooKeeper will be writable by everybody",
    "The brokers protect their znodes (zookeeper.set.acl) and the controllers do not: /migration, /controller and new "
    "topics are world-writable.",
    "Set zookeeper.set.acl=true there too, with a JAAS section Client of the brokers' identity.",
    "seen on 3.9.2; ZkData.defaultAcls",
).sees(both_configs)
def znode_acls(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    if not any(truth(file.values, "zookeeper.set.acl") for file in brokers.values()):
        return
    for about, file in placed("controller", controllers):
        if not truth(file.values, "zookeeper.set.acl"):
            yield Hit(about, "zookeeper.set.acl is not set, the brokers set it")


@check(
    "W-SEC-12",
    "users created in hybrid become readable by everybody in ZooKeeper",
    "Even with zookeeper.set.acl, /config/users/X and /config/brokers/N that KRaft creates get world READ: a SCRAM "
    "hash can be read anonymously. Kafka's own dual write does it.",
    "Create no SCRAM users and no dynamic passwords between the copy and finalize.",
    "seen on 3.9.2; ZkConfigMigrationClient",
).sees(broker_configs)
def users_in_hybrid(configs: Configs, world: World) -> Result:
    if any(truth(file.values, "zookeeper.set.acl") for file in configs.values()):
        yield Hit("/config/users", "create no users between the copy and finalize")


@check(
    "B-SEC-13",
    "a controller lacks the mechanism or the login for the brokers' listener",
    "Without the mechanism its start fails. Without the login the copy runs and then hangs in "
    "KRAFT_CONTROLLER_TO_BROKER_COMM.",
    "Copy sasl.mechanism.inter.broker.protocol, listener.name.L.sasl.enabled.mechanisms and "
    "listener.name.L.MECHANISM.sasl.jaas.config (L: the brokers' listener) into every controller's file.",
    "seen on 3.9.2: \"Could not find a 'KafkaServer' or 'internal.KafkaServer' entry\"",
).sees(both_configs, blocks_from=Stage.CONTROLLERS)
def controllers_can_call(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    listeners = {inter_broker_listener(file.values) for file in brokers.values()}
    for about, file in placed("controller", controllers):
        for listener in sorted(listeners):
            values = file.values
            if not protocols(values).get(listener, "").startswith("SASL"):
                continue
            mechanism = values.get(BROKER_MECHANISM, "GSSAPI").strip()
            if mechanism not in mechanisms(values, listener):
                yield Hit(about, f"{mechanism} is not among the enabled mechanisms of listener {listener}")
            yield from without_login(about, file, listener, mechanism, world, of=values)


@check(
    "B-SEC-01",
    "the brokers have an authorizer and a controller has none",
    "From the copy on the controllers decide what brokers forward, and without an authorizer nobody checks it: a "
    "principal without any right can create and delete topics and change configurations. No log says so.",
    "Write authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer into every controller's file.",
    "seen on 3.9.2; ControllerApis.scala",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def controllers_authorize(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    has = sorted(int(node) for node, file in brokers.items() if authorizer(file.values))
    for about, file in placed("controller", controllers):
        if has and not authorizer(file.values):
            yield Hit(about, f"{AUTHORIZER} is missing, brokers {has} have one")


@check(
    "B-SEC-02",
    "AclAuthorizer is set in a KRaft node's file",
    "It keeps its ACLs in ZooKeeper: on a controller, new ACLs go nowhere else and it dies when ZooKeeper's keys go; "
    "on a KRaft broker it exits at its start, or keeps using ACLs that are no longer updated.",
    "Write org.apache.kafka.metadata.authorizer.StandardAuthorizer in its place.",
    "seen on 3.9.2; cp-ansible #1805",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def no_acl_authorizer_in_kraft(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    for about, file in placed("controller", controllers):
        if authorizer(file.values) in ACL_AUTHORIZERS:
            yield Hit(about, f"{AUTHORIZER} is AclAuthorizer")
    for about, file in placed("broker", brokers):
        if mode_of(file.values) is Mode.KRAFT and authorizer(file.values) in ACL_AUTHORIZERS:
            yield Hit(about, f"{AUTHORIZER} is AclAuthorizer in KRaft mode")


@check(
    "B-SEC-19",
    "a controller decides about rights by another class than the brokers",
    "From the copy on controllers decide what brokers forward. Where the brokers let in everybody and a controller "
    "asks for rights, topics can be made no more; where the brokers have a class of their own, its decisions end.",
    "Give the controllers the brokers' class (authorizer.class.name, and the class's own keys), or the one that the "
    "playbook's policy.authorizer.kraft names, its jars on their class path. Or none where the brokers have none.",
    "ControllerApis.scala; AclAuthorizer and StandardAuthorizer decide alike",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def one_authorizer(seen: tuple[Configs, Configs], world: World) -> Result:
    """Kafka's own two count as one; a missing one is B-SEC-01."""
    (brokers, controllers), kraft = seen, successor(world)
    theirs = {in_kraft_mode(file.values, kraft).get(AUTHORIZER, ""): node for node, file in brokers.items()}
    if kraft is not None and "" in theirs:
        yield Hit(f"broker {theirs['']}", f"policy.authorizer.kraft is {kraft.name}, and it has no {AUTHORIZER}")
    for about, file in placed("controller", controllers):
        own = in_kraft_mode(file.values, None).get(AUTHORIZER, "")
        for other, broker in theirs.items():
            if own and other and own != other and isinstance(world.playbook, Unknown):
                yield Blind(about, f"whether {own} is to follow {other}: {world.playbook.reason}")
            elif own and own != other:
                yield Hit(about, f"{AUTHORIZER} is {own}, broker {broker} has {other or 'none'} for KRaft mode")


@check(
    "B-SEC-27",
    "the brokers' ACLs are in another ZooKeeper than the one that is copied",
    "Kafka copies the ACLs of zookeeper.connect. With authorizer.zookeeper.url brokers read theirs elsewhere: from the "
    "copy on, nobody would have the rights that he has now, or everybody.",
    "Copy the ACLs to the ZooKeeper of zookeeper.connect (kafka-acls --list there and here shows what is missing), "
    "take authorizer.zookeeper.url out of the brokers' files, and restart the brokers one by one.",
    "AclAuthorizer.configure: ZkUrlProp; ControllerServer: the migration's client uses zookeeper.connect",
).sees(broker_configs, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def acls_are_here(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        url, connect = (file.values.get(key, "") for key in ("authorizer.zookeeper.url", "zookeeper.connect"))
        if url and url != connect and _ensemble(url) != _ensemble(connect):
            yield Hit(about, f"authorizer.zookeeper.url is {url}, zookeeper.connect {connect}")


def _ensemble(text: str) -> tuple[frozenset[str], str] | None:
    try:
        found = connect_string(text)
    except ValueError:
        return None
    return frozenset(found.servers), found.chroot
