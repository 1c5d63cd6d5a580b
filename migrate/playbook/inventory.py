"""`kind: Inventory`: where the cluster's processes are, how to speak to them, who starts and stops them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import yaml
from pydantic import Field, model_validator

from migrate.model.config_keys import QuorumKind
from migrate.model.inventory import (
    Access,
    AddedProperties,
    BrokerDefaults,
    BrokerNode,
    ControllerDefaults,
    ControllerNode,
    Inventory,
    OwnCommands,
    OwnExecutor,
    Secret,
    ZookeeperLogin,
)
from migrate.model.written import (
    ClusterId,
    FilePath,
    Flag,
    HostPath,
    ListenerName,
    Principal,
    Rate,
    ZookeeperConnect,
    keys_of,
)
from migrate.playbook.access import (
    AddedSection,
    ZookeeperAccessSection,
    access_faults,
    added,
    dumped,
    dumped_added,
    dumped_login,
    properties_faults,
    take_variables,
    zookeeper_faults,
)
from migrate.playbook.document import Document, Location, read_trusted
from migrate.playbook.fields import API_VERSION, Fault, Section, WholeFile, refuse, validate

HEADER: Final = "# Where the cluster is.  Relative paths are relative to this file; secrets are referred to.\n"


SHELLS: Final = ("sh", "bash", "dash", "ksh", "zsh", "busybox")
Located = tuple[str, int, BrokerNode | ControllerNode]  # brokers or controllers, the place in that list


def with_defaults(section: Any) -> Any:
    """The section with each node whole; a node's own commands stand for a unit."""
    given = {key: value for key in keys_of(type(section.defaults)) if (value := getattr(section.defaults, key))}
    nodes = [
        replace(
            node,
            **{
                key: value
                for key, value in given.items()
                if not getattr(node, key) and not (key == "unit" and node.service)
            },
        )
        for node in section.nodes
    ]
    return section.model_copy(update={"nodes": nodes})


class BrokersSection(Section):
    """All brokers; `address` of each is the listener that `access` opens."""

    access: Access = Access()
    principal: Principal | None = None  # as whom brokers call where nothing else says it
    properties: AddedSection = None  # Kafka properties that each gets at its first restart, or a file of them
    defaults: BrokerDefaults = BrokerDefaults()
    nodes: Annotated[list[BrokerNode], Field(min_length=1)]
    _whole = model_validator(mode="after")(with_defaults)


class ControllersSection(Section):
    """All controllers; `address` of each is its controller listener."""

    access: Access = Access()
    principal: Principal | None = None  # the same of controllers
    properties: AddedSection = None  # Kafka properties that each gets beyond what brokers have, or a file of them
    quorum: QuorumKind = QuorumKind.STATIC  # how its voters are known: by every file, or by the metadata log (KIP-853)
    defaults: ControllerDefaults = ControllerDefaults()
    nodes: Annotated[list[ControllerNode], Field(min_length=1)]
    _whole = model_validator(mode="after")(with_defaults)


class ExecutorSection(Section):
    """Who reads files, starts and stops processes.

    `local` and `ssh` work systemd units, or give nodes' own commands, by the host program,
    which `sudo -n` runs unless `sudo` is false; `manual` instructs people.
    """

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("services_as", "files_as", "disks_as", "format_as"),
        "take it out: one program on each host does all of it, and `kraft-migrate doctor --inventory FILE --host-setup "
        "HOST` prints the script that installs it there",
    )

    kind: Literal["local", "ssh", "manual"]
    inbox: FilePath | None = None  # manual: where the collector's answers are put
    kafka_home: HostPath | None = None
    ssh_config: FilePath | None = None
    host_program: HostPath | None = None  # where it is installed, if not at its own place
    sudo: Flag | None = None


PROGRAM: Final = ("host_program", "sudo")
NEAR: Final = ("inbox", "ssh_config")  # keys that are paths of this host
KEYS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {  # kind -> the key it must have, and those it may have
    "local": ("kafka_home", PROGRAM),
    "ssh": ("kafka_home", (*PROGRAM, "ssh_config")),
    "manual": ("inbox", ("kafka_home",)),
}


class ExpectSection(Section):
    """What the cluster must be."""

    cluster_id: ClusterId | None = None


class InventorySpec(Section):
    """The whole inventory."""

    zookeeper: ZookeeperConnect | None = None  # a KRaft cluster that never had one names none
    zookeeper_rate: Rate | None = None  # operations a second that we may ask of it
    zookeeper_access: ZookeeperAccessSection | None = None
    controller_listener: ListenerName
    executor: ExecutorSection
    password_encoder_secret: Secret | None = None
    password_encoder_old_secret: Secret | None = None  # while the brokers' secret is being replaced
    brokers: BrokersSection
    controllers: ControllersSection
    runs: FilePath = Field(default="runs", validate_default=True)
    expect: ExpectSection = ExpectSection()


class InventoryDocument(WholeFile):
    """Everything that is needed to find and to act on one cluster."""

    kind: Literal["Inventory"]
    spec: InventorySpec


def inventory_of(document: Document) -> Inventory:
    """The inventory that a document describes; raises DocumentInvalid with every problem."""
    refuse_gaps(document)
    parsed = validate(document, InventoryDocument)
    refuse(document, faults_of(parsed.spec))
    found = _value(parsed, document)
    take_variables(found)
    return replace(found, sha256=_sum_of(document, found))


def _sum_of(document: Document, inventory: Inventory) -> str:
    """One sum of all that says which hosts, units and paths are acted on, and how they are reached.

    Files of secrets are named in the inventory, and not read here.
    """
    whole = hashlib.sha256(document.sha256.encode())
    added = (inventory.broker_properties, inventory.controller_properties)
    whole.update(json.dumps([one and [one.path, dict(one.values)] for one in added], sort_keys=True).encode())
    if ssh_config := inventory.executor_options.get("ssh_config"):
        with contextlib.suppress(OSError):  # where it is missing, ssh itself says so
            whole.update(read_trusted(Path(ssh_config)))
    return whole.hexdigest()


def faults_of(spec: InventorySpec) -> Iterator[Fault]:
    """Rules over several keys: ids and addresses are disjoint, SASL has its user."""
    ids = Counter[int]()
    addresses = Counter[str]()
    nodes: list[Located] = [
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
                f"node id {node.id} appears twice",
                "brokers and controllers share one space of ids",
                "give each process an id of its own; controllers may be 3000 and up",
            )
        if addresses[node.address] > 1:
            yield Fault((*at, "address"), f"the address {node.address} appears twice", "a port has one listener")
        yield from _host_faults(spec.executor.kind, node, at)
        yield from _own_faults(spec, node, at)
    yield from _executor_faults(spec.executor)
    yield from _faults_of_one_host(spec.executor, nodes)
    if spec.password_encoder_old_secret and not spec.password_encoder_secret:
        yield Fault(
            ("spec", "password_encoder_old_secret"),
            "password_encoder_old_secret without password_encoder_secret",
            "the old secret is tried where the present one does not open a password",
        )
    yield from access_faults(spec.brokers.access, ("spec", "brokers", "access"))
    yield from access_faults(spec.controllers.access, ("spec", "controllers", "access"))
    yield from properties_faults(spec.brokers.properties, ("spec", "brokers", "properties"), brokers=True)
    yield from properties_faults(spec.controllers.properties, ("spec", "controllers", "properties"), brokers=False)
    yield from zookeeper_faults(spec.zookeeper_access, ("spec", "zookeeper_access"))


def _executor_faults(executor: ExecutorSection) -> Iterator[Fault]:
    needed, allowed = KEYS[executor.kind]
    at = ("spec", "executor")
    if getattr(executor, needed) is None:
        yield Fault(at, f"{'.'.join(at)}.{needed} is missing", f"executor {executor.kind} needs it")
    for name in executor.model_fields_set - {"kind", needed, *allowed}:
        yield Fault(
            (*at, name), f"{name} is not for executor {executor.kind}", f"it takes {', '.join((needed, *allowed))}"
        )
    for name in ("kafka_home", "host_program"):
        if not (getattr(executor, name) or "/").startswith("/"):
            yield Fault((*at, name), f"{name} is no absolute path", "it is a path on the nodes' hosts")


def _host_faults(kind: str, node: BrokerNode | ControllerNode, at: tuple[str | int, ...]) -> Iterator[Fault]:
    """Units or commands, and absolute paths, where files and processes are those of hosts."""
    if node.service is not None:
        yield from _service_faults(kind, node, node.service, (*at, "service"))
    if not node.unit and node.service is None and kind != "manual":
        yield Fault(
            at,
            f"node {node.id} has no unit",
            f"executor {kind} starts and stops systemd units, or gives commands of yours",
            "add `unit:` with the name that systemctl shows, such as kafka.service; or `service:` (docs/hosts.md)",
        )
    for name in ("config", "metadata_directory"):
        value = getattr(node, name, "/")
        if not value:
            how = f"add `{name}:` to it, or to `defaults` beside `nodes`, where it is the same for all"
            yield Fault(at, f"node {node.id} has no {name}", next_step=how)
        elif not value.startswith("/"):
            yield Fault((*at, name), f"{name} is no absolute path", "it is a path on that node's host")


def _service_faults(
    kind: str, node: BrokerNode | ControllerNode, service: OwnCommands, at: tuple[str | int, ...]
) -> Iterator[Fault]:
    if kind not in ("local", "ssh"):
        yield Fault(at, f"commands for executor {kind}", "the host program gives them: kinds local and ssh have one")
    if node.unit:
        yield Fault(at, f"node {node.id} has a unit and commands", "one of them starts and stops it", "take one out")
    given = {name: getattr(service, name) for name in ("start", "stop", "status")}
    paths = {name: command[0] for name, command in given.items()}
    paths |= {"java_home": service.java_home} if service.java_home else {}
    for name, path in paths.items():
        if not path.startswith("/") or os.path.normpath(path) != path:
            why = "it is a path on that node's host, and the same program each time"
            yield Fault((*at, name), f"{path} is no absolute path in its shortest form", why)
    for name, command in given.items():
        program = os.path.basename(command[0])  # noqa: PTH119 - a path of another host
        if program == "systemctl":
            yield Fault((*at, name), "systemctl is not given as a command", "it works units", "write `unit:` instead")
        elif program in SHELLS and any(re.fullmatch(r"-[a-z]*c", word) for word in command[1:]):
            why = "a command is a list of words, and no shell reads it"
            yield Fault((*at, name), "text for a shell is no command", why, "put it into a script of root's own")


def _own_faults(spec: InventorySpec, node: BrokerNode | ControllerNode, at: tuple[str | int, ...]) -> Iterator[Fault]:
    """What a node has for itself: only `local` and `ssh` are mixed, and a quorum's listener has one protocol."""
    kind, own = spec.executor.kind, node.executor
    if own is not None and kind not in ("local", "ssh"):
        what = f"node {node.id} has an executor of its own beside {kind}"
        why = f"{kind} works every node; only `local` and `ssh` can be mixed"
        yield Fault((*at, "executor"), what, why, "take it out")
    elif own is not None and (kind, own.kind) == ("local", "ssh"):
        how = "make spec.executor `kind: ssh`, and give the nodes of this host `executor: {kind: local}`"
        what = f"node {node.id} has ssh beside local"
        yield Fault((*at, "executor", "kind"), what, "local is the exception: the one host on which the tool runs", how)
    for name, path in (("kafka_home", node.kafka_home), ("host_program", own and own.host_program)):
        if not (path or "/").startswith("/"):
            where = (*at, name) if name == "kafka_home" else (*at, "executor", name)
            yield Fault(where, f"{name} is no absolute path", "it is a path on that node's host")
    if node.access is None:
        return
    yield from access_faults(node.access, (*at, "access"))
    if isinstance(node, ControllerNode) and node.access.protocol != spec.controllers.access.protocol:
        yield Fault(
            (*at, "access"),
            f"controller {node.id} has {node.access.protocol}, the controllers have {spec.controllers.access.protocol}",
            "brokers' and controllers' files name one protocol for the controllers' listener",
            "only user, mechanism and stores may be its own",
        )


def _faults_of_one_host(executor: ExecutorSection, nodes: Iterable[Located]) -> Iterator[Fault]:
    """One host program works all nodes of a host, so they have one way to it; `local` is one host."""
    ways: dict[str, tuple[int, object]] = {}
    here: dict[str, int] = {}
    for kind, index, node in nodes:
        own, at = node.executor or OwnExecutor(), ("spec", kind, "nodes", index, "executor")
        sudo = executor.sudo if own.sudo is None else own.sudo
        way = (own.kind or executor.kind, own.host_program or executor.host_program, sudo is not False)
        first, known = ways.setdefault("" if executor.kind == "local" else node.host, (node.id, way))
        if known != way:
            what = f"node {node.id} has another executor than node {first} of the same host {node.host}"
            yield Fault(at, what, "one host program works all nodes of a host", "give both the same `executor`")
        if executor.kind == "ssh" and own.kind == "local":
            here[node.host] = node.id
            if len(here) > 1:
                what = f"node {node.id} on {node.host} is local, and so is node {next(iter(here.values()))}"
                yield Fault(at, what, "local is the one host on which the tool runs", "make one of them `kind: ssh`")


def _value(parsed: InventoryDocument, document: Document) -> Inventory:
    spec = parsed.spec
    return Inventory(
        name=parsed.metadata.name,
        path=str(document.path.absolute()),
        zookeeper=spec.zookeeper or "",
        brokers=tuple(spec.brokers.nodes),
        controllers=tuple(spec.controllers.nodes),
        controller_listener=spec.controller_listener,
        quorum=spec.controllers.quorum,
        broker_access=spec.brokers.access,
        controller_access=spec.controllers.access,
        password_encoder_secret=spec.password_encoder_secret,
        executor=spec.executor.kind,
        executor_options=_options(spec.executor),
        expect_cluster_id=spec.expect.cluster_id,
        runs=spec.runs,
        zookeeper_rate=spec.zookeeper_rate,
        password_encoder_old_secret=spec.password_encoder_old_secret,
        zookeeper_login=ZookeeperLogin() if spec.zookeeper_access is None else spec.zookeeper_access.login,
        broker_principal=spec.brokers.principal or "",
        controller_principal=spec.controllers.principal or "",
        broker_properties=added(spec.brokers.properties, brokers=True),
        controller_properties=added(spec.controllers.properties),
    )


def _options(section: ExecutorSection) -> Mapping[str, str]:
    """What is set."""
    needed, allowed = KEYS[section.kind]
    values = {name: getattr(section, name) for name in (needed, *allowed) if name != "sudo"}
    found = {name: value for name, value in values.items() if value is not None}
    return found if section.sudo is None else {**found, "sudo": "yes" if section.sudo else "no"}


def dump_inventory(inventory: Inventory) -> str:
    """The inventory as YAML (pure): paths below the folder of `inventory.path` are written relative to it.

    Reading the text back from that path gives an equal value.
    """
    near = Path(inventory.path).parent

    def relative(text: str) -> str:
        path = Path(text)
        return str(path.relative_to(near)) if path.is_relative_to(near) else text

    def nodes(
        access: Access, who: str, added: AddedProperties | None, found: Iterable[BrokerNode | ControllerNode]
    ) -> dict[str, Any]:
        whole = {"protocol": access.protocol, **dumped(access, relative)}
        stated = {"principal": who} if who else {}
        return {
            "access": whole,
            **stated,
            **dumped_added(added, relative),
            "nodes": [dumped(one, relative) for one in found],
        }

    found = inventory.executor_options
    options: dict[str, object] = {name: relative(value) if name in NEAR else value for name, value in found.items()}
    options |= {"sudo": found["sudo"] == "yes"} if "sudo" in found else {}
    spec = {
        "zookeeper": inventory.zookeeper,
        "zookeeper_rate": inventory.zookeeper_rate,
        "zookeeper_access": dumped_login(inventory.zookeeper_login, relative),
        "controller_listener": inventory.controller_listener,
        "executor": {"kind": inventory.executor, **options},
        "password_encoder_secret": dumped(inventory.password_encoder_secret, relative),
        "password_encoder_old_secret": dumped(inventory.password_encoder_old_secret, relative),
        "brokers": nodes(
            inventory.broker_access, inventory.broker_principal, inventory.broker_properties, inventory.brokers
        ),
        "controllers": {
            **({"quorum": str(inventory.quorum)} if inventory.quorum is QuorumKind.DYNAMIC else {}),
            **nodes(
                inventory.controller_access,
                inventory.controller_principal,
                inventory.controller_properties,
                inventory.controllers,
            ),
        },
        "runs": relative(inventory.runs),
        "expect": inventory.expect_cluster_id and {"cluster_id": inventory.expect_cluster_id},
    }
    whole = {
        "apiVersion": API_VERSION,
        "kind": "Inventory",
        "metadata": {"name": inventory.name},
        "spec": {key: value for key, value in spec.items() if value},
    }
    return HEADER + yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


OPENING: Final = "<fill in"


def gap(what: str) -> str:
    return f"{OPENING}: {what}>"


def refuse_gaps(document: Document) -> None:
    """Raise DocumentInvalid with every gap that is left, each with its line and what belongs there."""
    why, how = "`inventory init` could not know it", "replace the text with the value"
    refuse(
        document,
        [
            Fault(at, f"{'.'.join(map(str, at))} is not filled in: {what}", why, how)
            for at, what in _gaps(document.data)
        ],
    )


def _gaps(value: object, at: Location = ()) -> Iterator[tuple[Location, str]]:
    """Where a gap is left, and what belongs there."""
    match value:
        case str():
            if value.lstrip().startswith(OPENING):
                yield at, value.strip().removeprefix(OPENING).strip(" :>") or "a value"
        case dict() | list():
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                yield from _gaps(entry, (*at, key))
