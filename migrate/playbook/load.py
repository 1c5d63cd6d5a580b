"""From files to values: playbooks, fleets, inventories, accepted differences.  The door of this package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from migrate.errors import DocumentInvalid, DocumentUnreadable
from migrate.kafka.secrets import read_secret
from migrate.model.ids import NodeId
from migrate.model.inventory import (
    URI,
    AcceptedDifference,
    Fleet,
    Inventory,
    Member,
    Pace,
    Playbook,
    RollOrder,
    Target,
)
from migrate.model.stage import DirectoryPolicy, Stage
from migrate.model.written import HostPath, Text, ZookeeperConnect
from migrate.playbook.directories import (
    DirectoryPlaybook,
    ProtocolPlaybook,
    RollPlaybook,
    faults_of,
    roll_playbook,
    shared_playbook,
)
from migrate.playbook.document import Document, Location, kind_of_file, read_deciding, read_document
from migrate.playbook.fields import Fault, Metadata, Section, refuse, validate
from migrate.playbook.inventory import InventoryDocument, dump_inventory, inventory_of
from migrate.playbook.schema import (
    STAGE_KEYS,
    AcceptedDifferences,
    MigrationPlaybook,
    Spec,
    StageSection,
    brokers_faults,
    expected_faults,
    id_faults,
    override_faults,
    overrides_by_controller,
)
from migrate.playbook.windows import closed_faults, window_faults

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
    "load_accepted",
    "load_fleet",
    "load_inventory",
    "load_playbook",
    "load_playbook_with_inventory",
    "read_secret",
]

KINDS: Final[dict[str, type[Section]]] = {
    "MigrationPlaybook": MigrationPlaybook,
    "DirectoryPlaybook": DirectoryPlaybook,
    "ProtocolPlaybook": ProtocolPlaybook,
    "Inventory": InventoryDocument,
    "AcceptedDifferences": AcceptedDifferences,
    "Fleet": FleetDocument,
}
ROLLS: Final[dict[str, type[RollPlaybook]]] = {
    "DirectoryPlaybook": DirectoryPlaybook,
    "ProtocolPlaybook": ProtocolPlaybook,
}
BROKERS: Final = ("spec", "policy", "directories", "brokers")
DEFAULT_SOAK: Final = 7 * 86400.0


def load_playbook(path: str | Path, inventory: Inventory | None = None) -> Playbook:
    """The playbook of that file, of any kind, with the acceptances it names.

    One of a single roll is about every broker of `inventory`; without one, of the inventory that it names itself.
    Raises DocumentUnreadable, YamlRefused, DocumentInvalid or NotSupportedYet, each with file:line:column.
    """
    document = read_deciding(Path(path))
    if document.kind in ROLLS:
        return _of_roll(document, inventory)[0]
    return _playbook(document, validate(document, MigrationPlaybook))


def load_inventory(path: str | Path) -> Inventory:
    """The inventory of that file; raises as load_playbook does."""
    return inventory_of(read_deciding(Path(path)))


def load_playbook_with_inventory(path: str | Path) -> tuple[Playbook, Inventory]:
    """The playbook and the inventory it names, held against each other; raises as load_playbook does."""
    document = read_deciding(Path(path))
    if document.kind in ROLLS:
        return _of_roll(document, None)
    parsed = validate(document, MigrationPlaybook)
    playbook = _playbook(document, parsed)
    inventory = load_inventory(playbook.inventory)
    refuse(document, _faults_between(parsed.spec, inventory))
    return playbook, inventory


def load_accepted(path: str | Path) -> tuple[AcceptedDifference, ...]:
    """The acceptances of that file; raises as load_playbook does."""
    parsed = validate(read_deciding(Path(path)), AcceptedDifferences)
    return tuple(
        AcceptedDifference(
            rule=entry.rule,
            kind=entry.selector.kind,
            name=entry.selector.name,
            field=entry.selector.field,
            reason=entry.reason,
            ticket=entry.ticket,
            expires=entry.expires,
        )
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


def _of_roll(document: Document, inventory: Inventory | None) -> tuple[Playbook, Inventory]:
    parsed = validate(document, ROLLS[document.kind])
    named = parsed.spec.cluster.inventory
    known = load_inventory(named) if inventory is None else inventory
    return roll_playbook(document, parsed, known), known


def lint_roll_playbook(path: str | Path) -> None:
    """Raise DocumentInvalid with every problem; against the inventory too, where that is there."""
    document = read_document(Path(path))
    parsed = validate(document, ROLLS[document.kind])
    if Path(parsed.spec.cluster.inventory).exists():
        _of_roll(document, None)
    else:
        refuse(document, faults_of(parsed.spec))


def named_inventory(path: str | Path) -> str:
    """The path of the inventory that a valid playbook of any kind names; "" for any other file of ours."""
    document = read_document(Path(path))
    kind = document.kind
    if kind == "MigrationPlaybook":
        named = validate(document, MigrationPlaybook).spec.cluster.inventory
    elif kind in ROLLS:
        named = validate(document, ROLLS[kind]).spec.cluster.inventory
    else:
        return ""
    return named


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind, for editors; KeyError for a kind that is none of ours."""
    found = KINDS[kind].model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _playbook(document: Document, parsed: MigrationPlaybook) -> Playbook:
    spec = parsed.spec
    refuse(document, _faults(spec))
    stages = {section.stage: section for section in spec.stages}
    hybrid, soak = (stages.get(stage) for stage in (Stage.HYBRID, Stage.SOAK))
    accepted = hybrid.diff.accept if hybrid and hybrid.diff else None
    directories, rollout = spec.policy.directories, spec.policy.rollout
    patience = {stage: section.no_progress_timeout for stage, section in stages.items()}
    return replace(
        shared_playbook(document, parsed, tuple(stages)),
        default_policy=DirectoryPolicy[directories.default.upper()],
        broker_policies={
            NodeId(number): DirectoryPolicy[policy.upper()] for number, policy in directories.brokers.items()
        },
        accept_volatile=tuple(directories.accept_volatile),
        own_classes=tuple(spec.policy.own_classes),
        wait_for_moves=directories.moves == "wait",
        assignments_per_request=directories.assignments_per_request,
        accepted_differences=load_accepted(accepted) if accepted else (),
        stage_patience={stage: seconds for stage, seconds in patience.items() if seconds is not None},
        soak_seconds=DEFAULT_SOAK if soak is None or soak.duration is None else soak.duration,
        lock_path=spec.policy.lock.path,
        stage_windows={stage: section.window for stage, section in stages.items() if section.window is not None},
        pace=Pace(rollout.node_estimate, spec.policy.hybrid_max_age),
        roll_order=RollOrder(rollout.order),
        canary_soak=rollout.canary_soak,
        remove_copies=spec.policy.remove_copies,
        controller_overrides=overrides_by_controller(spec.controllers),
    )


def _faults(spec: Spec) -> Iterator[Fault]:
    for index, (before, section) in enumerate(zip([None, *spec.stages], spec.stages, strict=False)):
        yield from _stage_faults(index, before, section)
    yield from acting_faults(spec)
    yield from override_faults(spec.controllers)
    yield from id_faults(BROKERS, spec.policy.directories.brokers)
    for where, ids in (
        (("spec", "cluster", "expect", "brokers"), spec.cluster.expect.brokers),
        (("spec", "controllers", "ids"), spec.controllers.ids if spec.controllers else None),
    ):
        for index, number in enumerate(ids or ()):
            if number in (ids or ())[:index]:
                yield Fault((*where, index), f"node id {number} appears twice")


def _stage_faults(index: int, before: StageSection | None, section: StageSection) -> Iterator[Fault]:
    at = ("spec", "stages", index)
    if before is not None and section.stage != before.stage + 1:
        expected = Stage(before.stage + 1).label if before.stage < Stage.CLEANUP else "no further stage"
        yield Fault(
            (*at, "name"),
            f"stage {section.name} follows {before.name}",
            f"after {before.name} comes {expected}: stages may start late or end early, but none is skipped or moved",
        )
    for key, stage in STAGE_KEYS.items():
        if getattr(section, key) is not None and section.stage is not stage:
            yield Fault((*at, key), f"stage {section.name} takes no `{key}`", f"it belongs to stage {stage.label}")


def _faults_between(spec: Spec, inventory: Inventory) -> Iterator[Fault]:
    if not inventory.zookeeper:
        yield Fault(
            ("spec", "cluster", "inventory"),
            "the inventory names no ZooKeeper",
            "a MigrationPlaybook takes a cluster away from it",
            f"write `zookeeper` into {inventory.path}, or use a DirectoryPlaybook",
        )
    yield from brokers_faults(BROKERS, spec.policy.directories.brokers, inventory)
    yield from expected_faults(spec.cluster.expect, inventory)
    controllers = {int(node.id) for node in inventory.controllers}
    if spec.controllers is not None and set(spec.controllers.ids) != controllers:
        yield Fault(
            ("spec", "controllers", "ids"),
            f"the controllers are {sorted(spec.controllers.ids)}",
            f"{inventory.path} has {sorted(controllers)}; ids are chosen once and never changed",
        )


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


def acting_faults(spec: Spec) -> Iterator[Fault]:
    """Windows that are not there or never open."""
    yield from closed_faults(spec)
    for index, stage in enumerate(spec.stages):
        at: Location = ("spec", "stages", index)
        if stage.stage is Stage.COPY and stage.window:
            yield Fault(
                (*at, "window"),
                "stage copy takes no window",
                "it starts with the registration of the last broker, and the same run waits for it",
                "put it on migration-mode",
            )
        yield from window_faults(spec, at, stage.window)
    yield from window_faults(spec, ("spec", "rollback"), spec.rollback.window)
