"""From files to values: playbooks, fleets, inventories, accepted differences.  The door of this package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from migrate.errors import DocumentInvalid, DocumentUnreadable
from migrate.kafka.secrets import read_secret
from migrate.model.inventory import URI, AcceptedDifference, Fleet, Inventory, Member, Playbook, Target
from migrate.model.written import HostPath, Text, ZookeeperConnect
from migrate.playbook.directories import DirectoryPlaybook, ProtocolPlaybook
from migrate.playbook.document import Document, kind_of_file, read_deciding, read_document
from migrate.playbook.fields import Fault, Section, WholeFile, refuse, validate
from migrate.playbook.inventory import InventoryDocument, dump_inventory, inventory_of
from migrate.playbook.schema import AcceptedDifferences, MigrationPlaybook
from migrate.playbook.windows import long_hours

SECRET: Final = re.compile(r"(secret|password|token|_key)[^=&]*=", re.IGNORECASE)
TARGETS: Final = tuple(str(target) for target in Target)


class MemberSection(Section):
    """One cluster: a name, and one of inventory, zookeeper and bundle."""

    name: Text
    inventory: HostPath | None = None
    zookeeper: ZookeeperConnect | None = None
    bundle: HostPath | None = None

    @property
    def named_by(self) -> list[tuple[Target, str]]:
        """What the cluster is named by; exactly one entry where the section is right."""
        values = ((target, getattr(self, target)) for target in Target)
        return [(target, value) for target, value in values if value is not None]


class FleetSpec(Section):
    """All clusters."""

    clusters: Annotated[list[MemberSection], Field(min_length=1)]


class FleetDocument(WholeFile):
    """Many clusters, assessed or compared by one command."""

    kind: Literal["Fleet"]
    spec: FleetSpec


def load_fleet(path: str | Path) -> Fleet:
    """The fleet of that file; paths in it are relative to it.

    Raises DocumentUnreadable, YamlRefused or DocumentInvalid, each with file:line:column.
    """
    return fleet_of(read_deciding(Path(path)))


def fleet_of(document: Document) -> Fleet:
    """The fleet that a document describes; raises DocumentInvalid with every problem."""
    parsed = validate(document, FleetDocument)
    refuse(document, _fleet_faults(parsed.spec))
    members = tuple(_member(section, document) for section in parsed.spec.clusters)
    return Fleet(parsed.metadata.name, str(document.path.absolute()), members)


def _member(section: MemberSection, document: Document) -> Member:
    ((target, value),) = section.named_by
    is_place = target is Target.ZOOKEEPER or URI in value
    return Member(section.name, target, value if is_place else document.beside(value))


def _fleet_faults(spec: FleetSpec) -> Iterator[Fault]:
    names = Counter[str]()
    for index, section in enumerate(spec.clusters):
        at = ("spec", "clusters", index)
        names[section.name] += 1
        if names[section.name] > 1:
            yield Fault((*at, "name"), f"the cluster {section.name!r} appears twice", "answers are distinguished by it")
        found = section.named_by
        yield from _uri_faults(at, section)
        if len(found) != 1:
            said = " and ".join(str(target) for target, _ in found) or "nothing"
            yield Fault(
                at,
                f"the cluster {section.name!r} is named by {said}",
                "each of them identifies its cluster",
                f"give it exactly one of {', '.join(TARGETS)}",
            )


def _uri_faults(at: tuple[str | int, ...], section: MemberSection) -> Iterator[Fault]:
    """A bundle may be in an object store; whatever else is named is read where the command runs."""
    if URI in (section.inventory or ""):
        yield Fault((*at, "inventory"), "a path is expected, not a URI", "bundles alone may be in an object store")
    if section.bundle and URI in section.bundle and (said := _login_in(section.bundle)):
        yield Fault((*at, "bundle"), said, "credentials belong into the environment of what reads it")


def _login_in(uri: str) -> str:
    """What a URI says of a login, "" for nothing; Azure's `abfs://CONTAINER@ACCOUNT` is none."""
    place, _, query = uri.partition("?")
    scheme, _, rest = place.partition(URI)
    login, at, _ = rest.partition("@")
    if at and (":" in login or not scheme.startswith("abfs")):
        return "a URI names a user"
    return "a URI has a secret" if SECRET.search(query) else ""


__all__ = [
    "KINDS",
    "dump_inventory",
    "json_schema",
    "kind_of",
    "lint",
    "load_accepted",
    "load_fleet",
    "load_inventory",
    "load_playbook",
    "load_playbook_with_inventory",
    "read_secret",
]

AnyPlaybook = MigrationPlaybook | DirectoryPlaybook | ProtocolPlaybook
PLAYBOOKS: Final[dict[str, type[AnyPlaybook]]] = {
    "MigrationPlaybook": MigrationPlaybook,
    "DirectoryPlaybook": DirectoryPlaybook,
    "ProtocolPlaybook": ProtocolPlaybook,
}
KINDS: Final[dict[str, type[Section]]] = {
    **PLAYBOOKS,
    "Inventory": InventoryDocument,
    "AcceptedDifferences": AcceptedDifferences,
    "Fleet": FleetDocument,
}


def load_playbook(path: str | Path, inventory: Inventory | None = None) -> Playbook:
    """The playbook of that file, of any kind, with the acceptances it names.

    One of a single roll is about every broker of `inventory`; without one, of the inventory that it names itself.
    Raises DocumentUnreadable, YamlRefused, DocumentInvalid or NotSupportedYet, each with file:line:column.
    """
    document = read_deciding(Path(path))
    parsed = _parsed(document)
    if isinstance(parsed, MigrationPlaybook):
        return parsed.playbook(document, load_accepted)
    return parsed.playbook(document, _compared(document, parsed, inventory))


def load_inventory(path: str | Path) -> Inventory:
    """The inventory of that file; raises as load_playbook does."""
    return inventory_of(read_deciding(Path(path)))


def load_playbook_with_inventory(path: str | Path) -> tuple[Playbook, Inventory]:
    """The playbook and the inventory it names, held against each other; raises as load_playbook does."""
    document = read_deciding(Path(path))
    parsed = _parsed(document)
    inventory = _compared(document, parsed)
    if isinstance(parsed, MigrationPlaybook):
        return parsed.playbook(document, load_accepted), inventory
    return parsed.playbook(document, inventory), inventory


def lint(path: str | Path) -> tuple[str, ...]:
    """Raise DocumentInvalid with every problem of a file of ours; a playbook is compared with its inventory.

    What is right and may not be meant: an inventory that is missing, hours of a window.
    """
    kind = kind_of(path)
    if kind not in PLAYBOOKS:
        {"Inventory": load_inventory, "AcceptedDifferences": load_accepted, "Fleet": load_fleet}[kind](path)
        return ()
    document = read_deciding(Path(path))
    parsed = _parsed(document)
    if isinstance(parsed, MigrationPlaybook):
        parsed.playbook(document, load_accepted)
    told = tuple(long_hours(parsed.spec.windows))
    named = parsed.spec.cluster.inventory
    if not Path(named).exists():
        return (f"not compared with its inventory, which is missing: {named}", *told)
    _compared(document, parsed)
    return told


def _parsed(document: Document) -> AnyPlaybook:
    """The playbook as its file says it; raises DocumentInvalid with every problem of the file alone."""
    parsed = validate(document, PLAYBOOKS.get(document.kind, MigrationPlaybook))
    refuse(document, parsed.spec.faults())
    return parsed


def _compared(document: Document, parsed: AnyPlaybook, inventory: Inventory | None = None) -> Inventory:
    """The inventory, by default the one that the playbook names; raises DocumentInvalid where the two do not agree."""
    known = load_inventory(parsed.spec.cluster.inventory) if inventory is None else inventory
    refuse(document, parsed.spec.faults_between(known))
    return known


def load_accepted(path: str | Path) -> tuple[AcceptedDifference, ...]:
    """The acceptances of that file; raises as load_playbook does."""
    parsed = validate(read_deciding(Path(path)), AcceptedDifferences)
    return tuple(
        AcceptedDifference(**dict(entry.selector), **entry.model_dump(exclude={"selector"}))
        for entry in parsed.spec.accept
    )


def kind_of(path: str | Path) -> str:
    """The file's `kind`; DocumentInvalid if it is none of ours."""
    document = read_document(Path(path))
    found = document.kind
    if found not in KINDS:
        if (other := kind_of_file(document)) is not None:
            raise DocumentInvalid(
                f"this is {other.name}", where=str(document.path), why=other.why, next_step=other.used(document.path)
            )
        raise DocumentInvalid(
            f"kind is {found!r}" if found else "kind is missing",
            where=document.where(("kind",)),
            next_step=f"write one of: {', '.join(KINDS)}",
        )
    return found


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind, for editors; KeyError for a kind that is none of ours."""
    found = KINDS[kind].model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


PACKAGE: Final = Path(__file__).parents[1]
FOLDERS: Final = (PACKAGE / "playbooks", PACKAGE.parent / "playbooks")  # setup.py maps the second onto the first


def shipped(name: str) -> Path:
    """The path of a shipped file, such as `lab-demo.yaml`; DocumentUnreadable if the installation lacks it."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise DocumentUnreadable(
        f"the installation has no playbook {name}", where=str(FOLDERS[0]), next_step="install the package again"
    )
