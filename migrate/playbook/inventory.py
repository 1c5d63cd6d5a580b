"""`kind: Inventory`: where the cluster's processes are, how to speak to them, who starts and stops them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import yaml
from pydantic import Field

from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, SecretFile
from migrate.playbook.document import Document
from migrate.playbook.fields import (
    API_VERSION,
    Address,
    ClusterId,
    FilePath,
    Host,
    ListenerName,
    Metadata,
    NodeNumber,
    Rate,
    SecretReference,
    Section,
    Text,
    ZookeeperConnect,
)
from migrate.playbook.gaps import refuse_gaps
from migrate.playbook.problems import Fault, refuse, validate

HEADER: Final = "# Where the cluster is.  Relative paths are relative to this file; secrets are files of mode 0600.\n"


class AccessSection(Section):
    """How to speak to a listener."""

    later: ClassVar[Mapping[str, str]] = {"truststore": "give a listener without TLS", "keystore": "see truststore"}
    protocol: Literal["PLAINTEXT", "SASL_PLAINTEXT"] = "PLAINTEXT"
    mechanism: Literal["PLAIN"] | None = None
    username: Text | None = None
    password: SecretReference | None = None


class BrokerSection(Section):
    """One broker."""

    id: NodeNumber
    host: Host
    address: Address
    config: FilePath
    rack: Text | None = None
    jmx: Address | None = None  # where it offers JMX without a password; read only where a broker reports nothing


class ControllerSection(Section):
    """One controller, planned or running."""

    id: NodeNumber
    host: Host
    address: Address
    config: FilePath
    metadata_directory: FilePath


class BrokersSection(Section):
    """All brokers; `address` of each is the listener that `access` opens."""

    access: AccessSection = AccessSection()
    nodes: Annotated[list[BrokerSection], Field(min_length=1)]


class ControllersSection(Section):
    """All controllers; `address` of each is its controller listener."""

    access: AccessSection = AccessSection()
    nodes: Annotated[list[ControllerSection], Field(min_length=1)]


class ExecutorSection(Section):
    """Who starts and stops processes."""

    kind: Literal["supervisor"]
    state: FilePath


class ExpectSection(Section):
    """What the cluster must be."""

    cluster_id: ClusterId | None = None


class InventorySpec(Section):
    """The whole inventory."""

    zookeeper: ZookeeperConnect | None = None  # a KRaft cluster that never had one names none
    zookeeper_rate: Rate | None = None  # operations a second that we may ask of it
    controller_listener: ListenerName
    executor: ExecutorSection
    password_encoder_secret: SecretReference | None = None
    password_encoder_old_secret: SecretReference | None = None  # while the brokers' secret is being replaced
    brokers: BrokersSection
    controllers: ControllersSection
    runs: FilePath = "runs"
    expect: ExpectSection = ExpectSection()


class InventoryDocument(Section):
    """Everything that is needed to find and to act on one cluster."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["Inventory"]
    metadata: Metadata
    spec: InventorySpec


def inventory_of(document: Document) -> Inventory:
    """The inventory that a document describes; raises DocumentInvalid with every problem."""
    refuse_gaps(document)
    parsed = validate(document, InventoryDocument)
    refuse(document, faults_of(parsed.spec))
    return _value(parsed, document.path)


def faults_of(spec: InventorySpec) -> Iterator[Fault]:
    """Rules over several keys: ids and addresses are disjoint, SASL has its user."""
    ids = Counter[int]()
    addresses = Counter[str]()
    nodes: list[tuple[str, int, BrokerSection | ControllerSection]] = [
        *(("brokers", index, node) for index, node in enumerate(spec.brokers.nodes)),
        *(("controllers", index, node) for index, node in enumerate(spec.controllers.nodes)),
    ]
    for kind, index, node in nodes:
        ids[node.id] += 1
        addresses[node.address] += 1
        at = ("spec", kind, "nodes", index)
        if ids[node.id] > 1:
            yield Fault(
                (*at, "id"),
                f"node id {node.id} stands twice",
                "brokers and controllers share one space of ids",
                "give each process an id of its own; controllers may be 3000 and up",
            )
        if addresses[node.address] > 1:
            yield Fault((*at, "address"), f"the address {node.address} stands twice", "a port has one listener")
    if spec.password_encoder_old_secret and not spec.password_encoder_secret:
        yield Fault(
            ("spec", "password_encoder_old_secret"),
            "password_encoder_old_secret without password_encoder_secret",
            "the old secret is tried where the present one does not open a password",
        )
    yield from _access_faults(spec.brokers.access, ("spec", "brokers", "access"))
    yield from _access_faults(spec.controllers.access, ("spec", "controllers", "access"))


def _access_faults(access: AccessSection, at: tuple[str, ...]) -> Iterator[Fault]:
    given = {name for name in ("mechanism", "username", "password") if getattr(access, name) is not None}
    if access.protocol == "SASL_PLAINTEXT":
        for name in ("mechanism", "username", "password"):
            if name not in given:
                yield Fault(at, f"{'.'.join(at)}.{name} is missing", "SASL needs mechanism, username and password")
    elif given:
        name = min(given)
        yield Fault((*at, name), f"{name} without SASL", f"protocol {access.protocol} asks for no user")


def _value(parsed: InventoryDocument, path: Path) -> Inventory:
    spec = parsed.spec
    near = path.absolute().parent

    def beside(text: str) -> str:
        return os.path.normpath(near / text)

    def access(section: AccessSection) -> Access:
        return Access(section.protocol, section.mechanism or "", section.username or "", file_of(section.password))

    def file_of(reference: SecretReference | None) -> SecretFile | None:
        return None if reference is None else SecretFile(beside(reference.file))

    return Inventory(
        name=parsed.metadata.name,
        path=str(path.absolute()),
        zookeeper=spec.zookeeper or "",
        brokers=tuple(
            BrokerNode(NodeId(node.id), node.host, node.address, beside(node.config), node.rack, node.jmx)
            for node in spec.brokers.nodes
        ),
        controllers=tuple(
            ControllerNode(
                NodeId(node.id), node.host, node.address, beside(node.config), beside(node.metadata_directory)
            )
            for node in spec.controllers.nodes
        ),
        controller_listener=spec.controller_listener,
        broker_access=access(spec.brokers.access),
        controller_access=access(spec.controllers.access),
        password_encoder_secret=file_of(spec.password_encoder_secret),
        executor=spec.executor.kind,
        executor_options={"state": beside(spec.executor.state)},
        expect_cluster_id=spec.expect.cluster_id,
        runs=beside(spec.runs),
        zookeeper_rate=spec.zookeeper_rate,
        password_encoder_old_secret=file_of(spec.password_encoder_old_secret),
    )


def dump_inventory(inventory: Inventory) -> str:
    """The inventory as YAML (pure): paths below the folder of `inventory.path` are written relative to it.

    Reading the text back from that path gives an equal value.
    """
    near = Path(inventory.path).parent

    def relative(text: str) -> str:
        path = Path(text)
        return str(path.relative_to(near)) if path.is_relative_to(near) else text

    def secret(reference: SecretFile) -> dict[str, str]:
        return {"file": relative(reference.path)}

    def access(value: Access) -> dict[str, Any]:
        found: dict[str, Any] = {"protocol": value.protocol}
        if value.mechanism:
            found |= {"mechanism": value.mechanism, "username": value.username}
        if value.password:
            found["password"] = secret(value.password)
        return found

    spec: dict[str, Any] = {
        **({"zookeeper": inventory.zookeeper} if inventory.zookeeper else {}),
        "controller_listener": inventory.controller_listener,
        "executor": {
            "kind": inventory.executor,
            **{name: relative(value) for name, value in inventory.executor_options.items()},
        },
    }
    if inventory.zookeeper_rate is not None:
        spec["zookeeper_rate"] = inventory.zookeeper_rate
    if inventory.password_encoder_secret:
        spec["password_encoder_secret"] = secret(inventory.password_encoder_secret)
    if inventory.password_encoder_old_secret:
        spec["password_encoder_old_secret"] = secret(inventory.password_encoder_old_secret)
    spec["brokers"] = {
        "access": access(inventory.broker_access),
        "nodes": [_broker(node, relative(node.config)) for node in inventory.brokers],
    }
    spec["controllers"] = {
        "access": access(inventory.controller_access),
        "nodes": [
            {
                "id": int(node.id),
                "host": node.host,
                "address": node.address,
                "config": relative(node.config),
                "metadata_directory": relative(node.metadata_directory),
            }
            for node in inventory.controllers
        ],
    }
    spec["runs"] = relative(inventory.runs)
    if inventory.expect_cluster_id:
        spec["expect"] = {"cluster_id": inventory.expect_cluster_id}
    whole = {"apiVersion": API_VERSION, "kind": "Inventory", "metadata": {"name": inventory.name}, "spec": spec}
    return HEADER + yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


def _broker(node: BrokerNode, config: str) -> dict[str, Any]:
    found: dict[str, Any] = {"id": int(node.id), "host": node.host, "address": node.address, "config": config}
    return found | ({"rack": node.rack} if node.rack else {}) | ({"jmx": node.jmx} if node.jmx else {})
