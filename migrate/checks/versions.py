"""VER: what the software and its protocol version must be."""

from __future__ import annotations

from typing import Final

from migrate.checks.registry import UNTIL_FINALIZED, Hit, Result, check
from migrate.checks.sight import broker_configs, inventory
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from migrate.model.world import World

IBP: Final = "inter.broker.protocol.version"
WANTED: Final = ("3.9", "3.9-IV0")
METADATA_VERSION_3_9: Final = 21  # MetadataVersion.IBP_3_9_IV0.featureLevel()

Configs = dict[NodeId, ConfigFile]


def zookeeper_mode(configs: Configs) -> Configs:
    """The brokers whose files still run them on ZooKeeper, with or without the flag."""
    return {node: file for node, file in configs.items() if mode_of(file.values) is not Mode.KRAFT}


@check(
    CodeDoc(
        "I-VER-01",
        "the brokers' software release is not visible over the protocol",
        "Several log directories can be migrated from 3.9 on; mixed releases are not supported.",
        "No request answers with the release of a broker's software.",
        "See that every broker and controller runs one 3.9.x build, 3.9.2 or later at best.",
        "fixed before 3.9: KAFKA-16082, 16162, 16297; in 3.9.2: KAFKA-19480",
    ),
    sees=inventory,
    when=UNTIL_FINALIZED,
)
def release(seen: Inventory, world: World) -> Result:
    """Said once, so that nobody takes silence for a pass."""
    yield Hit(seen.name or seen.zookeeper, "see for yourself that every process runs one build of 3.9.x")


@check(
    CodeDoc(
        "B-VER-02",
        "inter.broker.protocol.version is not 3.9",
        "A broker with several log directories registers for migration from 3.7-IV2 on, and the controllers' "
        "metadata.version must equal the brokers' protocol version exactly; this tool migrates at 3.9 only.",
        "The protocol version was not raised after the last upgrade of the software.",
        "Set inter.broker.protocol.version=3.9 in every broker's file and restart the brokers one by one; this "
        "tool never raises it by itself.",
        "KIP-858; KAFKA-15450; ClusterControlManager.registerBroker; KafkaServer.scala",
    ),
    sees=broker_configs,
    blocks_from=Stage.CONTROLLERS,
)
def protocol_version(configs: Configs, world: World) -> Result:
    """The value, where there is one."""
    for node, file in zookeeper_mode(configs).items():
        value = file.values.get(IBP, "").strip()
        if value and value not in WANTED:
            yield Hit(f"broker {node}: {file.path}", f"{IBP} is {value}, not 3.9", value)


@check(
    CodeDoc(
        "B-VER-03",
        "inter.broker.protocol.version is not written down",
        "Without the line a broker speaks the newest protocol of its software: the next upgrade would raise it "
        "silently, in the middle of a migration, and the controllers would refuse that broker.",
        "The line was taken out, or never stood there.",
        "Write inter.broker.protocol.version=3.9 into every broker's file and restart the brokers one by one.",
        "KafkaConfig.scala: interBrokerProtocolVersion defaults to the latest production version",
    ),
    sees=broker_configs,
    blocks_from=Stage.CONTROLLERS,
)
def protocol_version_explicit(configs: Configs, world: World) -> Result:
    """The key is there."""
    for node, file in zookeeper_mode(configs).items():
        if not file.values.get(IBP, "").strip():
            yield Hit(f"broker {node}: {file.path}", f"{IBP} is not set")


@check(
    CodeDoc(
        "B-VER-04",
        "the brokers' files differ in inter.broker.protocol.version",
        "The controllers accept one version; brokers with another never register, and the copy waits for ever.",
        "A rolling upgrade was not finished.",
        "Finish it: the same value in every broker's file, then one rolling restart.",
        "ClusterControlManager.registerBroker: the finalized metadata.version must lie in the broker's range",
    ),
    sees=broker_configs,
    blocks_from=Stage.CONTROLLERS,
)
def protocol_version_equal(configs: Configs, world: World) -> Result:
    """One value in all files that have one."""
    values: dict[str, list[int]] = {}
    for node, file in zookeeper_mode(configs).items():
        value = file.values.get(IBP, "").strip()
        if value:
            values.setdefault("3.9" if value in WANTED else value, []).append(int(node))
    if len(values) > 1:
        told = "; ".join(f"{value} on brokers {nodes}" for value, nodes in sorted(values.items()))
        yield Hit("the brokers' files", f"{IBP} differs: {told}", told)


@check(
    CodeDoc(
        "I-VER-14",
        "from the second roll on, a newly formatted log directory blocks the last step of a rollback",
        "kafka-storage format writes meta.properties of version 1, which a ZooKeeper-mode broker refuses.",
        "KAFKA-20762, open in every 3.9 release.",
        "After replacing a disk during the migration, write its meta.properties with version=0, broker.id, "
        "cluster.id and directory.id; B-RBK-03 finds such files.",
        "KAFKA-20762; MetaPropertiesEnsemble",
    ),
    sees=inventory,
    when=UNTIL_FINALIZED,
)
def replaced_disks(seen: Inventory, world: World) -> Result:
    """A known limitation, said before it hurts."""
    if seen.brokers:
        yield Hit("every broker", "do not format a replaced disk with kafka-storage without reading this code's text")
