"""NET: who sees whom."""

from __future__ import annotations

from typing import Final

from migrate.checks.phase import lost_at_the_end
from migrate.checks.quorum import voters_of
from migrate.checks.registry import ALWAYS, Hit, Result, check
from migrate.checks.sight import inventory, metadata_answers
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.stage import Stage
from migrate.model.views import MetadataAnswer
from migrate.model.world import World

LOOPBACK: Final = ("localhost", "127.", "::1", "[::1]")
ANY: Final = ("0.0.0.0", "[::]", "::")  # noqa: S104 - compared, never bound


@check(
    CodeDoc(
        "B-NET-01",
        "a broker does not see every broker",
        "A rejected or unregistered broker says 'started' and sees no others: rolling on would take the next one too.",
        "It is cut off, is denied by the controller, or has just started.",
        "Look at that broker's log and at its way to the controller; a broker that was refused needs a restart.",
        "Metadata; seen on 3.9.2: a rejected registration is retried for ever",
    ),
    sees=metadata_answers,
    blocks_from=Stage.MIGRATION_MODE,
    when=ALWAYS,
)
def sees_every_broker(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    """The brokers of each Metadata answer against the inventory."""
    lost = lost_at_the_end(world)
    wanted = {int(node.id) for node in world.inventory.brokers} - lost
    for node, answer in answers.items():
        hidden = sorted(wanted - set(answer.brokers))
        if hidden and int(node) not in lost:
            yield Hit(f"broker {node}", f"it does not see brokers {hidden}", f"it sees {sorted(answer.brokers)}")


@check(
    CodeDoc(
        "B-NET-02",
        "a controller's address cannot be reached from other hosts",
        "controller.quorum.voters is read on every node: a loopback or wildcard address means another process on each.",
        "The inventory gives controllers the address that they listen on, not the one they are called at.",
        "Give each controller a host name or address that every node can reach.",
        "KRaft refuses to advertise 0.0.0.0 (3.9); strimzi-kafka-operator #10714",
    ),
    sees=inventory,
    blocks_from=Stage.PREPARE,
)
def reachable_voters(seen: Inventory, world: World) -> Result:
    """Loopback is fine where everything is on one host."""
    hosts = {broker.host for broker in seen.brokers} | {controller.host for controller in seen.controllers}
    for node_id, address in voters_of(seen.voters).items():
        host = address.rpartition(":")[0]
        if host in ANY:
            yield Hit(f"controller {node_id}", f"{address} is no address that can be called")
        elif len(hosts) > 1 and host.lower().startswith(LOOPBACK):
            yield Hit(f"controller {node_id}", f"{address} is another process on each of the {len(hosts)} hosts")
