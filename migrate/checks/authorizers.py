"""SEC: which class decides about rights on each node: what opens the cluster silently, and what dies at its start."""

from __future__ import annotations

from migrate.checks.config import Configs
from migrate.checks.principals import AUTHORIZER, authorizer
from migrate.checks.registry import ALWAYS, Hit, Result, check
from migrate.checks.security import ACL_AUTHORIZERS, STANDARD_AUTHORIZER
from migrate.checks.sight import both, broker_configs, controller_configs
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.findings import CodeDoc
from migrate.model.stage import Stage
from migrate.model.world import World


@check(
    CodeDoc(
        "B-SEC-01",
        "the brokers have an authorizer and a controller has none",
        "From the copy on the controllers decide what brokers forward, and without an authorizer nobody checks "
        "it: a principal without any right can create and delete topics and change configurations. No log says "
        "so.",
        "authorizer.class.name is missing in a controller's file.",
        "Write authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer into every "
        "controller's file.",
        "seen on 3.9.2; ControllerApis.scala",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def controllers_authorize(seen: tuple[Configs, Configs], world: World) -> Result:
    """Iff any broker has one."""
    brokers, controllers = seen
    has = sorted(int(node) for node, file in brokers.items() if authorizer(file.values))
    for node, file in controllers.items():
        if has and not authorizer(file.values):
            yield Hit(f"controller {node}: {file.path}", f"{AUTHORIZER} is missing, brokers {has} have one")


@check(
    CodeDoc(
        "B-SEC-02",
        "AclAuthorizer stands in a KRaft node's file",
        "It keeps its ACLs in ZooKeeper: on a controller, new ACLs go nowhere else and it dies when ZooKeeper's "
        "keys go; on a KRaft broker it dies at its start, or goes on deciding by ACLs that nobody updates.",
        "The brokers' authorizer was copied into the file.",
        "Write org.apache.kafka.metadata.authorizer.StandardAuthorizer in its place.",
        "seen on 3.9.2; cp-ansible #1805",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def no_acl_authorizer_in_kraft(seen: tuple[Configs, Configs], world: World) -> Result:
    """Controllers, and brokers with process.roles."""
    brokers, controllers = seen
    for node, file in controllers.items():
        if authorizer(file.values) in ACL_AUTHORIZERS:
            yield Hit(f"controller {node}: {file.path}", f"{AUTHORIZER} is AclAuthorizer")
    for node, file in brokers.items():
        if mode_of(file.values) is Mode.KRAFT and authorizer(file.values) in ACL_AUTHORIZERS:
            yield Hit(f"broker {node}: {file.path}", f"{AUTHORIZER} is AclAuthorizer in KRaft mode")


@check(
    CodeDoc(
        "B-SEC-19",
        "a controller decides about rights by another class than the brokers",
        "From the copy on controllers decide what brokers forward. Where the brokers let in everybody and a controller "
        "asks for rights, topics can be made no more; where the brokers have a class of their own, its decisions end.",
        "An authorizer was added to the controllers alone, or the brokers' class is neither AclAuthorizer nor "
        "StandardAuthorizer and a rendered controller has Kafka's own.",
        "Give the controllers the brokers' class (authorizer.class.name in the inventory's controllers.properties; its "
        "jars must be on their class path), or none where the brokers have none.",
        "ControllerApis.scala; AclAuthorizer and StandardAuthorizer decide alike",
    ),
    sees=both(broker_configs, controller_configs),
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def one_authorizer(seen: tuple[Configs, Configs], world: World) -> Result:
    """Kafka's own two count as one; a missing one is B-SEC-01."""
    brokers, controllers = seen
    theirs = {_as_kraft(authorizer(file.values)): node for node, file in brokers.items()}
    for node, file in controllers.items():
        own = _as_kraft(authorizer(file.values))
        for other, broker in theirs.items():
            if own and own != other:
                yield Hit(
                    f"controller {node}: {file.path}",
                    f"{AUTHORIZER} is {own}, broker {broker} has {other or 'none'}",
                )


def _as_kraft(name: str) -> str:
    return STANDARD_AUTHORIZER if name in ACL_AUTHORIZERS else name
