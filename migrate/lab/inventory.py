"""DIR/inventory.yaml and DIR/secrets: what every other command needs to find the lab."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts.files import replace_file
from migrate.lab import person, secured
from migrate.lab.configure import USERS
from migrate.lab.secured import ADMIN
from migrate.lab.ssh_access import HOST_NAME, unit_of
from migrate.lab.ssh_access import options as ssh_options
from migrate.lab.topology import CONTROLLER, HOST, Topology
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, SecretFile
from migrate.playbook.inventory import dump_inventory

ENCODER: Final = "encoder"  # password.encoder.secret
KEYSTORE: Final = "keystore"  # the password that the seed sets as a dynamic configuration
TOKENS: Final = "tokens"  # delegation.token.secret.key
SECRETS: Final = (ENCODER, KEYSTORE, TOKENS, ADMIN, *USERS)


def secret_path(topology: Topology, name: str) -> Path:
    """The file of a secret: `admin`, `encoder`, ..."""
    return topology.folder("secrets", name)


def make_secrets(topology: Topology) -> dict[str, str]:
    """The lab's secrets, made on the first call and kept; files of mode 0600."""
    secret_path(topology, "").mkdir(mode=0o700, parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for name in (*SECRETS, *(secured.SECRETS if topology.secured else ())):
        path = secret_path(topology, name)
        if not path.exists():
            replace_file(str(path), (secrets.token_urlsafe(18) + "\n").encode())
        found[name] = path.read_text(encoding="ascii").strip()
    return found


def client_access(topology: Topology) -> Access:
    """The CLIENT listener, as the administrator."""
    if topology.secured:
        return secured.access(topology)
    return Access("SASL_PLAINTEXT", "PLAIN", ADMIN, SecretFile(str(secret_path(topology, ADMIN))))


def inner_access(topology: Topology) -> Access:
    """The listeners of brokers and controllers among themselves."""
    return secured.access(topology) if topology.secured else Access()


def inventory_of(topology: Topology) -> Inventory:
    """The lab as any cluster is described."""
    on_hosts = topology.ssh_port > 0 or topology.manual
    kind, options = _executor(topology)
    inventory = Inventory(
        name="lab",
        path=str(topology.inventory),
        zookeeper=topology.zookeeper,
        brokers=tuple(
            BrokerNode(
                NodeId(broker.id),
                HOST_NAME if on_hosts else HOST,
                f"{HOST}:{broker.client_port}",
                str(topology.config(broker.name)),
                jmx=f"{HOST}:{broker.jmx_port}" if broker.jmx_port else None,
                unit=unit_of(broker.name) if on_hosts else "",
            )
            for broker in topology.brokers
        ),
        controllers=tuple(
            ControllerNode(
                NodeId(controller.id),
                HOST_NAME if on_hosts else HOST,
                f"{topology.controller_host}:{controller.port}",
                str(topology.config(controller.name)),
                controller.metadata_directory,
                unit_of(controller.name) if on_hosts else "",
            )
            for controller in topology.controllers
        ),
        controller_listener=CONTROLLER,
        broker_access=client_access(topology),
        controller_access=inner_access(topology),
        password_encoder_secret=SecretFile(str(secret_path(topology, ENCODER))),
        executor=kind,
        executor_options=options,
        runs=str(topology.folder("runs")),
    )
    if not topology.secured:
        return inventory
    return replace(
        inventory,
        zookeeper_login=secured.login(topology),
        broker_properties=secured.properties(topology, secured.BROKER),
        controller_properties=secured.properties(topology, secured.CONTROLLERS),
    )


def _executor(topology: Topology) -> tuple[str, dict[str, str]]:
    """Its kind, and what the inventory says of it (pure)."""
    if topology.manual:
        return "manual", person.options(topology)
    return ("ssh", ssh_options(topology)) if topology.ssh_port else ("supervisor", {"state": str(topology.processes)})


def write_inventory(topology: Topology) -> None:
    """Write DIR/inventory.yaml."""
    replace_file(str(topology.inventory), dump_inventory(inventory_of(topology)).encode())
