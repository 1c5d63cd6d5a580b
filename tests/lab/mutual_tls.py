"""A secured lab whose brokers and controllers know each other, and the tool, by certificates alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts.files import replace_file
from migrate.hosts.properties import edit
from migrate.lab import secured
from migrate.lab.cluster import Lab
from migrate.lab.configure import KEYSTORE, make_secrets
from migrate.lab.secured import Authority
from migrate.lab.topology import CLIENT, CONTROLLER, HOST, INTERNAL
from migrate.model.inventory import Access, Store
from migrate.playbook.access import added
from migrate.playbook.inventory import dump_inventory

WHO: Final = "RULE:^CN=([^,]+).*$/$1/"  # the name in a certificate is the principal: super.users hold as they are
CALLER: Final = f"User:{secured.CONTROLLERS}"
BROKERS_OWN: Final[dict[str, str | None]] = {
    "listener.security.protocol.map": f"{INTERNAL}:SSL,{CLIENT}:SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": None,
    "listener.name.internal.sasl.enabled.mechanisms": None,
    "listener.name.internal.plain.sasl.jaas.config": None,
    "listener.name.internal.ssl.client.auth": "required",
    "ssl.principal.mapping.rules": WHO,
}


def by_certificates(lab: Lab) -> Access:
    """Before its first start: INTERNAL and the controllers' listener ask for a certificate alone; ours."""
    topology = lab.topology
    word = make_secrets(topology)[KEYSTORE]
    authority = Authority.make("kraft-migrate lab, mutual")
    for who in (secured.BROKER, secured.CONTROLLERS):
        store = authority.issue(who, ("localhost", HOST)).pkcs12(word)
        replace_file(str(secured.store_path(topology, f"{who}.p12")), store)
    trusted, ours = secured.store_path(topology, secured.AUTHORITY), secured.store_path(topology, "admin.pem")
    replace_file(str(trusted), authority.pem)
    replace_file(str(ours), authority.issue(secured.ADMIN, ("localhost", HOST)).pem)
    for broker in topology.brokers:
        _changed(topology.config(broker.name), BROKERS_OWN)
    file = secured.added_path(topology, secured.CONTROLLERS)
    listener = f"listener.name.{CONTROLLER.lower()}"
    _changed(
        file,
        {
            "sasl.mechanism.controller.protocol": None,
            f"{listener}.sasl.enabled.mechanisms": None,
            f"{listener}.plain.sasl.jaas.config": None,
            "listener.name.internal.plain.sasl.jaas.config": None,
            f"{listener}.ssl.client.auth": "required",
            "super.users": CALLER,  # whose certificate it is nobody can tell before the controllers' files are there
        },
    )
    login = secured.added_path(topology, secured.BROKER)
    replace_file(str(login), f"super.users={CALLER}\n".encode())
    access = Access("SSL", truststore=Store(str(trusted), "PEM"), keystore=Store(str(ours), "PEM"))
    inventory = replace(
        lab.inventory,
        controller_access=access,
        broker_properties=added(str(login)),
        controller_properties=added(str(file)),
    )
    replace_file(str(lab.inventory_path), dump_inventory(inventory).encode())
    return access


def _changed(file: Path, changes: dict[str, str | None]) -> None:
    set_ = {key: value for key, value in changes.items() if value is not None}
    replace_file(str(file), edit(file.read_bytes(), set_, changes.keys() - set_.keys()))
