"""QRM: the controllers' files and the quorum they form."""

from __future__ import annotations

from typing import Final

from migrate.checks.config import Configs, number
from migrate.checks.phase import no_quorum_yet
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import controller_configs, inventory, kraft, live_quorum, node_configs
from migrate.model.broker_modes import Mode, mode_of, roles_of
from migrate.model.findings import CodeDoc
from migrate.model.flag import FLAG, has_flag
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import KraftView, Quorum
from migrate.model.world import World

VOTERS: Final = "controller.quorum.voters"
BEHIND: Final = 1000  # records that a voter may lag without a word
SAFE_QUORUM: Final = 3


def voters_of(text: str) -> dict[int, str]:
    """controller.quorum.voters: id -> host:port; what is malformed is left out."""
    found: dict[int, str] = {}
    for entry in text.split(","):
        node, at, address = entry.strip().partition("@")
        value = number(node)
        if at and value is not None:
            found[value] = address.strip()
    return found


@check(
    CodeDoc(
        "B-QRM-01",
        "nodes disagree on the quorum's voters",
        "Each node counts votes by its own list: with different lists there is no majority that all agree on.",
        "A file was edited apart from the others.",
        "Write one controller.quorum.voters into every file; with static voters it never changes.",
        "controller.quorum.voters; QuorumConfig",
    ),
    sees=node_configs,
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def one_list_of_voters(configs: Configs, world: World) -> Result:
    """Every file that has the key, and every one that needs it, against the inventory."""
    wanted = voters_of(world.inventory.voters)
    for node, file in configs.items():
        text = file.values.get(VOTERS, "").strip()
        if not text and mode_of(file.values) is Mode.ZOOKEEPER:
            continue
        if voters_of(text) != wanted:
            about = f"node {node}: {file.path}"
            yield Hit(about, f"{VOTERS} is {text or 'missing'}, the inventory gives {world.inventory.voters}")


@check(
    CodeDoc(
        "B-QRM-02",
        "the quorum is dynamic",
        "Migration is tested with static voters only; a dynamic quorum cannot be made static again.",
        "controller.quorum.bootstrap.servers is set, or the controllers were formatted with kraft.version 1. Whoever "
        "follows the sample files of Kafka 3.9's own migration page gets this: they have "
        "controller.quorum.bootstrap.servers, and `kafka-storage.sh format --standalone` makes a dynamic quorum.",
        "Before the first roll: stop the controllers, delete /migration if its offset is not above 0, set the metadata "
        "directories aside, write controller.quorum.voters in place of controller.quorum.bootstrap.servers, and format "
        "them without --standalone and --initial-controllers; or leave controllers that hold nothing yet to this tool, "
        "which renders their files and formats them. After the copy, roll back first.",
        "KIP-853; kafka-storage format; Kafka 3.9 documentation, ZooKeeper to KRaft Migration: Provisioning the KRaft "
        "controller quorum",
    ),
    sees=node_configs,
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def static_quorum(configs: Configs, world: World) -> Result:
    """The files, and the finalized kraft.version."""
    for node, file in configs.items():
        if file.values.get("controller.quorum.bootstrap.servers", "").strip():
            yield Hit(f"node {node}: {file.path}", "controller.quorum.bootstrap.servers is set")
    if isinstance(world.kraft, Unknown):
        if not no_quorum_yet(world):
            yield Blind("the KRaft metadata", world.kraft.reason)
    elif world.kraft.features.get("kraft.version", 0) > 0:
        yield Hit("the KRaft metadata", f"kraft.version is {world.kraft.features['kraft.version']}")


@check(
    CodeDoc(
        "B-QRM-03",
        "a controller's file lacks the migration flag",
        "A controller that starts without it makes an empty log NONE for ever, and ends a running migration as "
        "soon as it is elected.",
        "The file was written by hand or by configuration management.",
        "Put zookeeper.metadata.migration.enable=true into that file before its process starts again.",
        "KRaftMigrationDriver; ActivationRecordsGenerator; KAFKA-20960; seen on 3.9.2",
    ),
    sees=controller_configs,
    blocks_from=Stage.CONTROLLERS,
)
def flag_in_files(configs: Configs, world: World) -> Result:
    """Until finalize begins, every controller's file has the flag."""
    for node, file in configs.items():
        if not has_flag(file.values):
            yield Hit(f"controller {node}: {file.path}", f"{FLAG} is {file.values.get(FLAG) or 'missing'}")


@check(
    CodeDoc(
        "B-QRM-04",
        "a controller's file is not a controller's",
        "The process would start as something else.",
        "The inventory names the wrong file.",
        "Write process.roles=controller and node.id=N, or correct the path.",
        "process.roles, node.id",
    ),
    sees=controller_configs,
    blocks_from=Stage.CONTROLLERS,
    when=ALWAYS,
)
def controller_files(configs: Configs, world: World) -> Result:
    """process.roles and node.id."""
    for node, file in configs.items():
        about, roles = f"controller {node}: {file.path}", roles_of(file.values)
        if "controller" not in roles:
            yield Hit(about, f"process.roles is {file.values.get('process.roles') or 'missing'}")
        if not file.values.get("node.id", "").strip():
            yield Hit(about, "node.id is missing")


@check(
    CodeDoc(
        "B-QRM-05",
        "the living quorum's voters are not the inventory's controllers",
        "The tool would watch and restart other processes than those that vote.",
        "The inventory was changed after the controllers were started.",
        "Bring the inventory back to the voters that run; they are chosen once.",
        "DescribeQuorum",
    ),
    sees=live_quorum,
    blocks_from=Stage.MIGRATION_MODE,
    when=ALWAYS,
)
def voters_are_ours(quorum: Quorum, world: World) -> Result:
    """Ids of DescribeQuorum."""
    there, ours = {int(voter.id) for voter in quorum.voters}, {int(node.id) for node in world.inventory.controllers}
    if there != ours:
        yield Hit("the quorum", f"its voters are {sorted(there)}, the inventory has {sorted(ours)}")


@check(
    CodeDoc(
        "I-QRM-06",
        "the quorum does not survive the loss of a controller",
        "While /controller belongs to KRaft, brokers have no controller when the quorum has no majority.",
        "Fewer than three controllers.",
        "Use three controllers on three hosts.",
        "KIP-595",
    ),
    sees=inventory,
)
def small_quorum(seen: Inventory, world: World) -> Result:
    """Fewer than three."""
    if 0 < len(seen.controllers) < SAFE_QUORUM:
        yield Hit(
            f"{len(seen.controllers)} controllers", "the loss of one of them leaves the cluster without a controller"
        )


@check(
    CodeDoc(
        "W-QRM-07",
        "the metadata keeps a registration of a node that is not in the inventory",
        "Stale registrations block later upgrades of metadata.version, and the copy waits for every registered id.",
        "A node was renumbered or taken away.",
        "Unregister it (kafka-cluster unregister --id N) once you are sure that it will not come back.",
        "KAFKA-20295, KAFKA-20395; strimzi-kafka-operator #11039",
    ),
    sees=kraft,
    when=ALWAYS,
)
def stale_registrations(view: KraftView, world: World) -> Result:
    """Brokers and controllers of the image."""
    known = {int(broker.id) for broker in world.inventory.brokers}
    known |= {int(controller.id) for controller in world.inventory.controllers}
    for kind, found in (("broker", view.brokers), ("controller", view.controllers)):
        for node in found:
            if int(node) not in known:
                yield Hit(f"{kind} {node}", "it is registered in the metadata and not in the inventory")


@check(
    CodeDoc(
        "W-QRM-08",
        "a controller lags behind its leader",
        "It could not take over now without losing time, and one more loss could stop the quorum.",
        "It was restarted, its disk is slow, or it is down.",
        "Wait until it has caught up; look at its log if it does not.",
        "DescribeQuorum: logEndOffset",
    ),
    sees=live_quorum,
    when=ALWAYS,
)
def lagging_voter(quorum: Quorum, world: World) -> Result:
    """By its log end offset."""
    for voter in quorum.voters:
        behind = quorum.high_watermark - voter.log_end_offset
        if behind > BEHIND:
            yield Hit(f"controller {voter.id}", f"it is {behind} records behind the high watermark")
