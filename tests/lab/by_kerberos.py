"""A lab whose brokers and controllers know each other, and the tool, by Kerberos alone; clients have a password.

Everybody is at localhost, the one name of this machine that needs no entry in /etc/hosts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from migrate.hosts.files import replace_file
from migrate.hosts.properties import edit
from migrate.lab.cluster import Lab
from migrate.lab.supervisor import write_spec
from migrate.lab.topology import CLIENT, INTERNAL
from migrate.model.inventory import Access, AddedProperties
from migrate.playbook.inventory import dump_inventory
from tests.testing.kerberos import RunningKdc, section

NODE: Final = "kafka/localhost"
TOOL: Final = "migrator"
BROKERS_OWN: Final = {
    "listener.security.protocol.map": f"{INTERNAL}:SASL_PLAINTEXT,{CLIENT}:SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "super.users": f"User:kafka;User:{TOOL};User:admin",
}
MECHANISM: Final = {"sasl.mechanism.controller.protocol": "GSSAPI"}


def by_kerberos(lab: Lab, kdc: RunningKdc) -> Access:
    """Before its first start: INTERNAL and the controllers' listener by GSSAPI; how the tool logs in there."""
    topology, keytab = lab.topology, kdc.keytab(NODE)
    jaas = topology.folder("conf", "kafka.jaas")
    replace_file(str(jaas), (section("KafkaServer", keytab, NODE)).encode())
    options = (f"-Djava.security.auth.login.config={jaas}", f"-Djava.security.krb5.conf={kdc.kdc.client_file}")
    for name, spec in lab.supervisor.specs().items():
        if spec.node is not None:
            write_spec(topology.processes, replace(spec, argv=(spec.argv[0], *options, *spec.argv[1:]), name=name))
    for broker in topology.brokers:
        file = topology.config(broker.name)
        values = {
            **BROKERS_OWN,
            "advertised.listeners": f"{INTERNAL}://localhost:{broker.internal_port},{CLIENT}://127.0.0.1:{broker.client_port}",
        }
        replace_file(str(file), edit(file.read_bytes(), values, ()))
    access = kdc.access(TOOL)
    ports = {broker.id: broker.internal_port for broker in topology.brokers}
    inventory = replace(
        lab.inventory,
        brokers=tuple(replace(node, address=f"localhost:{ports[int(node.id)]}") for node in lab.inventory.brokers),
        broker_access=access,
        controller_access=access,
        broker_properties=AddedProperties("", MECHANISM),
        controller_properties=AddedProperties("", MECHANISM),
    )
    replace_file(str(lab.inventory_path), dump_inventory(inventory).encode())
    return access
