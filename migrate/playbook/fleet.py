"""`kind: Fleet`: the clusters that one `fleet` command is about, each named as its own command would be."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from migrate.model.fleet import FilePair, Fleet, Member, Target
from migrate.playbook.document import Document, read_deciding
from migrate.playbook.fields import Fault, FilePath, Metadata, Section, Text, ZookeeperConnect, refuse, validate

TARGETS: Final = tuple(str(target) for target in Target)


class FilesSection(Section):
    """A cluster's files, for a comparison alone: ZooKeeper's, and a metadata directory."""

    zookeeper: FilePath
    zookeeper_log: Annotated[FilePath | None, Field(alias="zookeeperLog")] = None
    chroot: Annotated[str, Field(pattern=r"^/\S*[^/\s]$")] | None = None
    metadata: FilePath


class MemberSection(Section):
    """One cluster: a name, and one of inventory, playbook, zookeeper, bundle and files."""

    name: Text
    inventory: FilePath | None = None
    playbook: FilePath | None = None
    zookeeper: ZookeeperConnect | None = None
    bundle: FilePath | None = None
    files: FilesSection | None = None

    @property
    def named_by(self) -> list[tuple[Target, str | FilesSection]]:
        """What the cluster is named by; exactly one entry where the section is right."""
        values = ((target, getattr(self, target)) for target in Target)
        return [(target, value) for target, value in values if value is not None]


class FleetSpec(Section):
    """All clusters."""

    clusters: Annotated[list[MemberSection], Field(min_length=1)]


class FleetDocument(Section):
    """Many clusters, assessed or compared by one command."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec


def load_fleet(path: str | Path) -> Fleet:
    """The fleet of that file; paths in it are relative to it.

    Raises DocumentUnreadable, YamlRefused or DocumentInvalid, each with file:line:column.
    """
    return fleet_of(read_deciding(Path(path)))


def fleet_of(document: Document) -> Fleet:
    """The fleet that a document describes; raises DocumentInvalid with every problem."""
    parsed = validate(document, FleetDocument)
    refuse(document, _faults(parsed.spec))
    near = document.path.absolute().parent
    return Fleet(
        parsed.metadata.name,
        str(document.path.absolute()),
        tuple(_member(section, near) for section in parsed.spec.clusters),
    )


def _member(section: MemberSection, near: Path) -> Member:
    ((target, value),) = section.named_by
    if isinstance(value, FilesSection):
        folders = [value.zookeeper, *([value.zookeeper_log] if value.zookeeper_log else [])]
        metadata = os.path.normpath(near / value.metadata)
        pair = FilePair(tuple(os.path.normpath(near / one) for one in folders), metadata, value.chroot or "")
        return Member(section.name, target, metadata, pair)
    where = value if target is Target.ZOOKEEPER else os.path.normpath(near / value)
    return Member(section.name, target, where)


def _faults(spec: FleetSpec) -> Iterator[Fault]:
    names = Counter[str]()
    for index, section in enumerate(spec.clusters):
        at = ("spec", "clusters", index)
        names[section.name] += 1
        if names[section.name] > 1:
            yield Fault((*at, "name"), f"the cluster {section.name!r} appears twice", "answers are distinguished by it")
        found = section.named_by
        if len(found) != 1:
            said = " and ".join(str(target) for target, _ in found) or "nothing"
            yield Fault(
                at,
                f"the cluster {section.name!r} is named by {said}",
                "each of them says by itself which cluster it is",
                f"give it exactly one of {', '.join(TARGETS)}",
            )
