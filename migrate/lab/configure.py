"""A lab's files: the inventory, secrets, ZooKeeper's and brokers' configuration, and how each process is run.

Controllers have no configuration here: the `prepare` stage writes theirs, as for any cluster.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts.files import replace_file
from migrate.java.find import Java
from migrate.java.jars import KafkaJars
from migrate.java.run import java_argv
from migrate.lab import host, secured, ssh_access
from migrate.lab.secured import ADMIN, listener_lines, login_options, rights_line
from migrate.lab.supervisor import ProcessSpec
from migrate.lab.topology import CLIENT, CONTROLLER, HOST, INTERNAL, ZOOKEEPER, LabBroker, LabController, Topology
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, SecretFile
from migrate.playbook.inventory import dump_inventory

ZOOKEEPER_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
KAFKA_MAIN: Final = "kafka.Kafka"
STORAGE_MAIN: Final = "kafka.tools.StorageTool"
# principals that hold no right but what the seed's ACLs give them
USERS: Final = ("alice", "bob", "carol")

LOG4J: Final = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.file=${lab.log}
log4j.appender.file.append=true
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d{ISO8601}] %p %m (%c)%n
# what is said a thousand times a roll
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.kafka.utils.Log4jControllerRegistration$=WARN
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.kafka.common.utils.AppInfoParser=WARN
log4j.logger.kafka.log=WARN
log4j.logger.kafka.log.LogManager=INFO
log4j.logger.org.apache.kafka.storage=WARN
log4j.logger.kafka.cluster.Partition=WARN
log4j.logger.kafka.coordinator=WARN
log4j.logger.state.change.logger=WARN
log4j.logger.org.apache.zookeeper=WARN
# why a migration waits, and which writes to ZooKeeper failed (I-MIG-16)
log4j.logger.org.apache.kafka.metadata.migration=TRACE
"""
ZOOKEEPER_SASL: Final = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
SHORT_NAMES: Final = "kerberos.removeHostFromPrincipal=true\nkerberos.removeRealmFromPrincipal=true\n"
TOOL_LOG4J: Final = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%p %m (%c)%n
"""

LOG_FILES: Final = {
    "log4j.properties": LOG4J,
    "tool-log4j.properties": TOOL_LOG4J,
}


def zookeeper_file(topology: Topology) -> str:
    return f"""\
# ZooKeeper of the lab: one server, loopback only.
dataDir={topology.folder("data", ZOOKEEPER)}
clientPort={topology.zookeeper_port}
clientPortAddress={HOST}
tickTime=2000
maxClientCnxns=0
preAllocSize=1024
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,stat,mntr
{ZOOKEEPER_SASL if topology.secured else ""}{SHORT_NAMES if topology.kdc_port else ""}"""


def broker_file(topology: Topology, broker: LabBroker, passwords: dict[str, str]) -> str:
    """A ZooKeeper-mode broker's server.properties (pure).  `passwords`: `encoder`, `tokens`, one of each user."""
    if topology.secured:
        listeners, admitted = listener_lines(topology, broker, passwords, (ADMIN, *USERS)), rights_line(topology)
        rights = "brokers and the administrator; the migration adds the controllers"
    else:
        listeners, admitted = _listeners(broker, passwords), f"User:ANONYMOUS;User:{ADMIN}"
        rights = f"whoever comes over {INTERNAL} has no name, and is a broker or a controller"
    return f"""\
# Broker {broker.id} of the lab, in ZooKeeper mode.
# The migration edits this file in place; comments, order and unknown keys stay as they are.
broker.id={broker.id}
inter.broker.protocol.version=3.9

# -- ZooKeeper
zookeeper.connect={topology.zookeeper}
zookeeper.session.timeout.ms=6000

{listeners}
# -- rights: {rights}
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users={admitted}
allow.everyone.if.no.acl.found=false
password.encoder.secret={passwords["encoder"]}
delegation.token.secret.key={passwords["tokens"]}
# a lab may stand parked for days
delegation.token.expiry.time.ms=604800000

# -- several log directories (JBOD)
log.dirs={",".join(broker.log_dirs)}
num.recovery.threads.per.data.dir=1

# -- small enough for seven processes on one host
num.network.threads=2
num.io.threads=4
background.threads=2
log.index.size.max.bytes=1048576
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
controlled.shutdown.retry.backoff.ms=500
offsets.topic.num.partitions=6
offsets.topic.replication.factor={min(3, len(topology.brokers))}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={min(3, len(topology.brokers))}
transaction.state.log.min.isr=1

# -- a stop of a migrating broker waits for heartbeats; metadata snapshots are to exist soon
broker.heartbeat.interval.ms=250
metadata.log.max.record.bytes.between.snapshots=20000
"""


def _listeners(broker: LabBroker, passwords: dict[str, str]) -> str:
    users = " ".join(f'user_{name}="{passwords[name]}"' for name in (ADMIN, *USERS))
    return f"""\
# -- listeners: brokers among themselves in clear text, clients with a password
listeners={INTERNAL}://{HOST}:{broker.internal_port},{CLIENT}://{HOST}:{broker.client_port}
listener.security.protocol.map={INTERNAL}:PLAINTEXT,{CLIENT}:SASL_PLAINTEXT
inter.broker.listener.name={INTERNAL}
listener.name.client.sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""


def jmx_options(port: int) -> tuple[str, ...]:
    """JMX on that loopback port, without authentication (pure)."""
    name = "com.sun.management.jmxremote"
    found = {f"{name}.port": port, f"{name}.rmi.port": port, f"{name}.host": HOST, "java.rmi.server.hostname": HOST}
    return tuple(
        f"-D{key}={value}" for key, value in {**found, f"{name}.authenticate": "false", f"{name}.ssl": "false"}.items()
    )


def process_specs(topology: Topology, java: Java, jars: KafkaJars, environment: dict[str, str]) -> list[ProcessSpec]:
    jmx = {broker.name: jmx_options(broker.jmx_port) for broker in topology.brokers if broker.jmx_port}

    def spec(name: str, main: str, node: int | None, heap: str, format_argv: tuple[str, ...] = ()) -> ProcessSpec:
        options = (
            *jmx.get(name, ()),
            *(login_options(topology, name) if topology.secured else ()),
            f"-Xmx{heap}",
            f"-Dlab.log={topology.log(name)}",
            f"-Dlog4j.configuration=file:{topology.folder('conf', 'log4j.properties')}",
        )
        config = str(topology.config(name))
        return ProcessSpec(
            name=name,
            node=node,
            argv=java_argv(java, jars.classpath, main, (config,), options),
            directory=topology.directory,
            log=str(topology.log(name)),
            output=str(topology.folder("logs", f"{name}.out")),
            config=config,
            environment=environment,
            format_argv=format_argv,
        )

    tool_log = f"-Dlog4j.configuration=file:{topology.folder('conf', 'tool-log4j.properties')}"
    tool_options = ("-Xmx128m", tool_log)
    storage = java_argv(java, jars.classpath, STORAGE_MAIN, ("format",), tool_options)
    nodes: list[LabBroker | LabController] = [*topology.brokers, *topology.controllers]
    return [
        spec(ZOOKEEPER, ZOOKEEPER_MAIN, None, "128m"),
        *(
            spec(node.name, KAFKA_MAIN, node.id, "256m", storage)  # a broker's later directories are formatted too
            for node in nodes
        ),
    ]


ENCODER: Final = "encoder"  # password.encoder.secret
KEYSTORE: Final = "keystore"  # the password that the seed sets as a dynamic configuration
TOKENS: Final = "tokens"  # delegation.token.secret.key
SECRETS: Final = (ENCODER, KEYSTORE, TOKENS, ADMIN, *USERS)


def secret_path(topology: Topology, name: str) -> Path:
    return topology.folder("secrets", name)


def make_secrets(topology: Topology) -> dict[str, str]:
    """The lab's secrets, created on the first call; files of mode 0600."""
    secret_path(topology, "").mkdir(mode=0o700, parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for name in (*SECRETS, *(secured.SECRETS if topology.secured else ())):
        path = secret_path(topology, name)
        if not path.exists():
            replace_file(str(path), (secrets.token_urlsafe(18) + "\n").encode())
        found[name] = path.read_text(encoding="ascii").strip()
    return found


def client_access(topology: Topology) -> Access:
    if topology.secured:
        return secured.access(topology)
    return Access("SASL_PLAINTEXT", "PLAIN", ADMIN, SecretFile(str(secret_path(topology, ADMIN))))


def clients_inventory(topology: Topology) -> Inventory:
    """The lab as its clients see it: by the administrator's password, where librdkafka's wheel has no Kerberos."""
    found = inventory_of(topology)
    return replace(found, broker_access=secured.access(topology, "PLAIN")) if topology.kdc_port else found


def inner_access(topology: Topology) -> Access:
    return secured.access(topology) if topology.secured else Access()


def inventory_of(topology: Topology) -> Inventory:
    over_ssh = topology.ssh_port > 0
    host_name = ssh_access.HOST_NAME if over_ssh else HOST
    inventory = Inventory(
        name="lab",
        path=str(topology.inventory),
        zookeeper=topology.zookeeper,
        brokers=tuple(
            BrokerNode(
                NodeId(broker.id),
                host_name,
                f"{topology.host}:{broker.client_port}",
                str(topology.config(broker.name)),
                jmx=f"{HOST}:{broker.jmx_port}" if broker.jmx_port else None,
                unit=host.unit_of(broker.name),
            )
            for broker in topology.brokers
        ),
        controllers=tuple(
            ControllerNode(
                NodeId(controller.id),
                host_name,
                f"{topology.controller_host}:{controller.port}",
                str(topology.config(controller.name)),
                controller.metadata_directory,
                host.unit_of(controller.name),
            )
            for controller in topology.controllers
        ),
        controller_listener=CONTROLLER,
        broker_access=client_access(topology),
        controller_access=inner_access(topology),
        password_encoder_secret=SecretFile(str(secret_path(topology, ENCODER))),
        executor="ssh" if over_ssh else "local",
        executor_options=host.options(topology) | (ssh_access.options(topology) if over_ssh else {}),
        runs=str(topology.folder("runs")),
        quorum=topology.quorum,
    )
    if not topology.secured:
        return inventory
    return replace(
        inventory,
        zookeeper_login=secured.login(topology),
        broker_principal=f"User:{secured.BROKER}" if topology.issuer_port else "",
        controller_principal=f"User:{secured.CONTROLLERS}" if topology.issuer_port else "",
        broker_properties=secured.properties(topology, secured.BROKER),
        controller_properties=secured.properties(topology, secured.CONTROLLERS),
    )


def write_inventory(inventory: Inventory) -> None:
    replace_file(inventory.path, dump_inventory(inventory).encode())
