"""The playbooks of one roll beside the migration: `kind: DirectoryPlaybook` and `kind: ProtocolPlaybook`.

The one says which brokers of a KRaft cluster get which log directories; the other raises inter.broker.protocol.version
before a migration.  Relative paths are relative to the file, as everywhere in a playbook; on real hosts absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.stage import Stage
from migrate.model.written import HostPath, Text
from migrate.playbook.document import Document, Location
from migrate.playbook.fields import Fault, Section, WholeFile
from migrate.playbook.schema import (
    Lock,
    RollPolicies,
    RollSpec,
    brokers_faults,
    expected_faults,
    id_faults,
    zookeeper_faults,
)

BROKERS: Final = ("spec", "directories", "brokers")


def _log_dir(path: str) -> str:
    if "," in path or path != path.strip() or "\\" in path:
        raise ValueError("log.dirs is a list with commas: a path in it has none, and no space around it")
    return path


LogDir = Annotated[HostPath, AfterValidator(_log_dir)]


class NewDirectories(Section):
    """The directories: `add` for every broker, or a list of its own for one; `[]` leaves a broker as it is."""

    add: list[LogDir] = Field(default_factory=list)
    brokers: dict[Text, list[LogDir]] = Field(default_factory=dict)
    accept_volatile: list[Literal["tmpfs", "ramfs", "overlay"]] = Field(default_factory=list)


class ProtocolPolicies(RollPolicies):
    """The same, with the lock of the migration that follows."""

    lock: Lock = Lock()


class DirectorySpec(RollSpec):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        **RollSpec.later,
        "controllers": "they keep their one metadata directory",
        "remove": "`kraft-migrate rollback plan` with this playbook takes the directories away again",
    }
    directories: NewDirectories

    def faults(self) -> Iterator[Fault]:
        """No directory twice, ids are ids, something is asked for."""
        add, brokers = self.directories.add, self.directories.brokers
        lists: dict[Location, list[str]] = {("spec", "directories", "add"): add}
        for at, paths in (lists | {(*BROKERS, text): paths for text, paths in brokers.items()}).items():
            plain = [os.path.normpath(path) for path in paths]
            for index, path in enumerate(paths):
                if plain[index] in plain[:index]:
                    yield Fault((*at, index), f"the directory {path} appears twice")
        yield from id_faults(BROKERS, brokers)
        if not add and not any(brokers.values()):
            hint = "name them under `add`, or for single brokers"
            yield Fault(("spec", "directories"), "no directory is named", next_step=hint)
        yield from super().faults()

    def faults_between(self, inventory: Inventory) -> Iterator[Fault]:
        """Brokers that are not in the inventory, and a cluster that is not the expected one."""
        yield from brokers_faults(BROKERS, self.directories.brokers, inventory)
        yield from expected_faults(self.cluster.expect, inventory)


class ProtocolSpec(RollSpec):
    """The whole intent: the version is always 3.9, the one that a migration begins with."""

    later: ClassVar[Mapping[str, str]] = {
        **RollSpec.later,
        "version": "it is 3.9, the one that a migration begins with",
    }
    policy: ProtocolPolicies = ProtocolPolicies()

    def faults_between(self, inventory: Inventory) -> Iterator[Fault]:
        """An inventory without ZooKeeper, and a cluster that is not the expected one."""
        why = "a KRaft cluster has metadata.version in the place of inter.broker.protocol.version"
        yield from zookeeper_faults(inventory, why)
        yield from expected_faults(self.cluster.expect, inventory)


class DirectoryPlaybook(WholeFile):
    """Gives the brokers of a KRaft cluster more log directories, one broker at a time."""

    kind: Literal["DirectoryPlaybook"]
    spec: DirectorySpec

    def playbook(self, document: Document, inventory: Inventory) -> Playbook:
        """The playbook as every part of a run knows one: `add` is for every broker of the inventory."""
        wanted = {node.id: self._wanted(node.id, document) for node in inventory.brokers}
        return replace(
            self.spec.playbook(document, self.metadata, Stage.DIRECTORIES),
            inventory=inventory.path,
            accept_volatile=tuple(self.spec.directories.accept_volatile),
            new_directories={node: paths for node, paths in wanted.items() if paths},
        )

    def _wanted(self, broker: NodeId, document: Document) -> tuple[str, ...]:
        section = self.spec.directories
        return tuple(map(document.beside, section.brokers.get(str(int(broker)), section.add)))


class ProtocolPlaybook(WholeFile):
    """Raises inter.broker.protocol.version of a ZooKeeper-mode cluster to 3.9, one broker at a time."""

    kind: Literal["ProtocolPlaybook"]
    spec: ProtocolSpec

    def playbook(self, document: Document, inventory: Inventory) -> Playbook:
        """The playbook as every part of a run knows one."""
        found = self.spec.playbook(document, self.metadata, Stage.PROTOCOL)
        return replace(found, inventory=inventory.path, lock_path=self.spec.policy.lock.path)
