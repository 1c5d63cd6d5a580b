"""The migration flag: which controllers lack it, by their file, their answer and their registration (pure).

A controller without the flag finalizes the migration as soon as it is elected, whatever mode the brokers are in
(KAFKA-20960).  The file decides the next start; the tag `ZkMigrationReady` in ApiVersions is what the process was
started with, and `RegisterControllerRecord.zkMigrationReady` what the metadata last heard.  Checks, steps and the
interlock each decide for themselves what an answer means; none of them has a rule of its own for what the answer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, ControllerRegistration, NodeAnswer, NoFile
from migrate.model.world import World

FLAG: Final = "zookeeper.metadata.migration.enable"


def truth(values: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """A boolean configuration as Kafka reads it (`ConfigDef.parseType`)."""
    text = values.get(name, "").strip().lower()
    return default if not text else text == "true"


def has_flag(values: Mapping[str, str]) -> bool:
    """Does a node that starts with this file have the flag?"""
    return truth(values, FLAG)


@dataclass(frozen=True, slots=True)
class ControllerFlag:
    """Whether one controller has the flag, by each source: True, False, or why it is not known.

    A file that does not exist is `NoFile`; a controller that the metadata does not know has no registration, None.
    """

    node: int
    file: bool | NoFile | Unknown
    path: str
    answer: bool | Unknown
    registered: bool | Unknown | None


def flag_of(world: World, node: int) -> ControllerFlag:
    """What each source says of one controller."""
    node_id = NodeId(node)
    unread = Unknown(f"the file of controller {node} was not read")
    file = world.configs if isinstance(world.configs, Unknown) else world.configs.get(node_id, unread)
    unasked = Unknown(f"controller {node} was not asked")
    answer = world.live if isinstance(world.live, Unknown) else world.live.controllers.get(node_id, unasked)
    entry = world.kraft if isinstance(world.kraft, Unknown) else world.kraft.controllers.get(node_id)
    return ControllerFlag(
        node=node,
        file=has_flag(file.values) if isinstance(file, ConfigFile) else file,
        path="" if isinstance(file, Unknown) else file.path,
        answer=answer.migration_flag if isinstance(answer, NodeAnswer) else answer,
        registered=entry.migration_ready if isinstance(entry, ControllerRegistration) else entry,
    )


def controller_flags(world: World) -> tuple[ControllerFlag, ...]:
    """Every controller of the inventory, in its order."""
    return tuple(flag_of(world, int(node.id)) for node in world.inventory.controllers)
