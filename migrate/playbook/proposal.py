"""An inventory from the cluster's own answers (pure): what ZooKeeper tells is written, what it cannot tell is a gap.

A gap is a value that begins with `<fill in`; `inventory_of` refuses a file that has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.errors import UsageWrong
from migrate.model.inventory import ZookeeperLogin
from migrate.model.views import ZkBroker, ZookeeperView
from migrate.model.written import ADDRESS
from migrate.playbook.access import dumped_login
from migrate.playbook.fields import API_VERSION
from migrate.playbook.inventory import gap

SPOKEN: Final = ("PLAINTEXT", "SASL_PLAINTEXT")  # what is chosen without being asked; TLS needs stores to be named
NO_LOGIN: Final = ZookeeperLogin()
CONTROLLERS: Final = 3
FIRST_CONTROLLER: Final = 3000
LISTENER: Final = "CONTROLLER"
PORT: Final = 9093  # of controllers in Kafka's own examples


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller knows, written in place of gaps; "" and () for nothing.  `controllers` are hosts or host:port."""

    config: str = ""
    unit: str = ""
    listener: str = ""
    controllers: tuple[str, ...] = ()


NOTHING: Final = Given()
HEADER: Final = (
    "# Where the cluster is: written from ZooKeeper's own answers.  Values that begin with <fill in mark",
    "# what ZooKeeper does not know; every command refuses this file until each of them is replaced.",
    "# Relative paths are relative to this file; secrets are files of mode 0600.",
)


def propose_inventory(
    view: ZookeeperView,
    name: str,
    executor: str = "ssh",
    login: ZookeeperLogin = NO_LOGIN,
    given: Given = NOTHING,
) -> str:
    """The YAML text.  Addresses are of the one listener that all brokers have and that can be spoken, else a gap.

    `login`: how ZooKeeper let us in, written as it was given; `executor`: who will work the hosts.

    Raises:
        UsageWrong: not every broker has the listener that is given, or not with one protocol.
    """
    brokers = [view.brokers[node] for node in sorted(view.brokers)]
    listener = common_listener(brokers)
    if given.listener:
        listener = given.listener
        if len({broker.protocols.get(listener, "") for broker in brokers} - {""}) != 1 or any(
            listener not in _endpoints(broker) for broker in brokers
        ):
            raise UsageWrong(f"not every broker has listener {listener} with one protocol", where=view.connect)
    protocol = "" if listener is None else brokers[0].protocols[listener]
    lines = [
        *HEADER,
        f"apiVersion: {API_VERSION}",
        "kind: Inventory",
        f"metadata: {{ name: {_text(name)} }}",
        "spec:",
        f"  zookeeper: {_text(view.connect)}",
        *_login(login),
        f"  controller_listener: {_controller_listener(brokers)}",
        "  executor:",
        f"    kind: {executor}",
        *_executor(executor),
        "  # password_encoder_secret: { file: ... }   # if password.encoder.secret is in the brokers' files",
        "  # password_encoder_old_secret: { file: ... }   # if password.encoder.old.secret is there too",
        "  brokers:",
        *_access(protocol, listener, brokers),
        "    defaults:   # of every node below; a node may say otherwise",
        f"      config: {_text(given.config) if given.config else _gap('path of server.properties on the hosts')}",
        *_unit(executor, given.unit, "kafka.service"),
        "    nodes:" if brokers else "    nodes: []  # no broker is registered now: start them and write this again",
    ]
    for broker in brokers:
        lines += _broker(broker, listener)
    for number in unregistered(view):
        lines += _unregistered(number)
    own = given.config.replace("server.properties", "controller.properties")
    lines += [
        "  controllers:",
        *_controller_access(brokers),
        "    defaults:",
        f"      config: {_text(own) if own != given.config else _gap('path of the properties file to be written')}",
        f"      metadata_directory: {_gap('metadata.log.dir, on a disk of its own at best')}",
        *_unit(executor, "", "kafka-controller.service"),
        "    nodes:",
    ]
    places = given.controllers or ("",) * CONTROLLERS
    free = not any(end.endswith(f":{PORT}") for broker in brokers for end in broker.endpoints)
    for number, place in zip(controller_ids(view, len(places)), places, strict=True):
        lines += _controller(number, f"{place}:{PORT}" if place and free and not ADDRESS.fullmatch(place) else place)
    lines += ["  runs: runs", "  expect:", f"    cluster_id: {_text(view.cluster_id)}"]
    return "\n".join(lines) + "\n"


def common_listener(brokers: Sequence[ZkBroker]) -> str | None:
    """The listener that every broker has, with one protocol that we speak; None for none or several."""
    shared = [set(_endpoints(broker)) for broker in brokers]
    names = set.intersection(*shared) if shared else set()
    spoken = [
        name
        for name in sorted(names)
        if len({broker.protocols.get(name) for broker in brokers}) == 1 and brokers[0].protocols.get(name) in SPOKEN
    ]
    return spoken[0] if len(spoken) == 1 else None


def controller_ids(view: ZookeeperView, wanted: int = CONTROLLERS) -> list[int]:
    """So many ids that no broker has: a proposal, to be changed before anything is formatted."""
    taken = {int(node) for node in view.brokers}
    taken |= {replica for replicas in view.partitions.replicas for replica in replicas}
    free = (number for number in range(FIRST_CONTROLLER, FIRST_CONTROLLER + len(taken) + wanted))
    return [number for number in free if number not in taken][:wanted]


def unregistered(view: ZookeeperView) -> list[int]:
    """Ids that hold replicas and are in no /brokers/ids: brokers that are down, or in KRaft mode already."""
    holding = {int(replica) for replicas in view.partitions.replicas for replica in replicas}
    return sorted(holding - {int(node) for node in view.brokers})


def _endpoints(broker: ZkBroker) -> dict[str, str]:
    return {name: address for name, _, address in (entry.partition("://") for entry in broker.endpoints)}


def _login(login: ZookeeperLogin) -> Iterator[str]:
    if login != NO_LOGIN:
        yield f"  zookeeper_access: {json.dumps(dumped_login(login, str), ensure_ascii=True)}"


def _executor(kind: str) -> Iterator[str]:
    if kind == "manual":
        yield f"    inbox: {_gap('a folder of this host, into which the answers of the collector are brought')}"
        yield "    # kafka_home: /opt/kafka   # on the nodes' hosts"
    else:
        yield f"    kafka_home: {_gap('where Kafka is on the hosts, with bin/kafka-storage.sh in it')}"
        yield "    # sudo: false   # where root logs in: the host program runs without sudo"
        yield "    # each host needs the host program: doctor --inventory FILE --host-setup HOST prints its set-up"
        yield "    # a node may have its own kafka_home, access, and executor: { kind: local, sudo: false }"


def _unit(executor: str, given: str, example: str) -> Iterator[str]:
    if given:
        yield f"      unit: {_text(given)}"
    elif executor in ("local", "ssh"):
        yield f"      unit: {_gap(f'the systemd unit on the hosts, such as {example}')}"
    elif executor == "manual":
        yield f"      # unit: {example}   # named in instructions, where it is systemd that starts it"


def _controller_listener(brokers: Sequence[ZkBroker]) -> str:
    """A proposal: no broker has that name."""
    if any(name.upper() == LISTENER for broker in brokers for name in _endpoints(broker)):
        return _gap("a new listener name for the controllers, unlike every broker listener")
    return f"{LISTENER}   # a proposal: no broker has a listener of that name"


def _access(protocol: str, listener: str | None, brokers: Sequence[ZkBroker]) -> Iterator[str]:
    if listener is not None:
        yield f"    # listener {listener}"
    else:
        known: Mapping[str, str] = {name: entry for broker in brokers for name, entry in broker.protocols.items()}
        told = ", ".join(f"{name} ({entry})" for name, entry in sorted(known.items())) or "none reported"
        yield f"    # choose one listener for all brokers; theirs are: {told.encode('unicode_escape').decode()}"
    yield "    access:"
    yield f"      protocol: {protocol or _gap('PLAINTEXT, SASL_PLAINTEXT, SSL or SASL_SSL')}"
    if not protocol:
        yield "      # SASL: mechanism, username, password: { file: ... }; TLS: truststore: { path: ..., type: ... }"
    if protocol.startswith("SASL"):
        yield "      mechanism: PLAIN"
        yield f"      username: {_gap('a user that may DESCRIBE the cluster and every topic')}"
        yield f"      password: {{ file: {_gap('its password, a file of mode 0600')} }}"


def _broker(broker: ZkBroker, listener: str | None) -> Iterator[str]:
    found = _endpoints(broker)
    address = found.get(listener or "", "")
    hosts = {entry.rpartition(":")[0] for entry in found.values()}
    host = address.rpartition(":")[0] or (hosts.pop() if len(hosts) == 1 else "")
    yield f"      - id: {int(broker.id)}"
    yield f"        host: {_text(host.strip('[]') or gap('its host'))}"
    if address and not address.startswith(":"):
        yield f"        address: {_text(address)}"
    else:
        yield f"        address: {_gap('host:port, one of ' + ', '.join(broker.endpoints))}"
    if broker.rack:
        yield f"        rack: {_text(broker.rack)}"


def _unregistered(number: int) -> Iterator[str]:
    yield f"      - id: {number}   # holds replicas, and is not registered in ZooKeeper: down, in KRaft mode, or gone"
    yield f"        host: {_gap('its host')}"
    yield f"        address: {_gap('host:port of the listener that `access` opens')}"


def _controller_access(brokers: Sequence[ZkBroker]) -> Iterator[str]:
    plain = {entry for broker in brokers for entry in broker.protocols.values()} == {"PLAINTEXT"}
    yield "    access:"
    if plain:
        yield "      protocol: PLAINTEXT   # a proposal: as every listener of the brokers"
    else:
        yield f"      protocol: {_gap('PLAINTEXT, SASL_PLAINTEXT, SSL or SASL_SSL, of the controllers new listener')}"


def _controller(number: int, place: str) -> Iterator[str]:
    host = place.rpartition(":")[0].strip("[]") or place
    yield f"      - id: {number}   # a proposal: free now; never changed after the controller is formatted"
    yield f"        host: {_text(host) if host else _gap('where this controller will run')}"
    yield f"        address: {_text(place) if ':' in place else _gap('host:port of its controller listener')}"


def _gap(what: str) -> str:
    return _text(gap(what))


def _text(text: str) -> str:
    """A double-quoted YAML scalar: JSON's spelling is one."""
    return json.dumps(text, ensure_ascii=True)
