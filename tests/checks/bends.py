"""Ways to bend a healthy world, one thing at a time, for a check to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace

from migrate import checks
from migrate.checks.next_release import NEXT_RELEASE
from migrate.model.columns import EntityColumns, ReplicaColumns
from migrate.model.difference import Difference, DifferenceClass, DiffReport, IdleAcceptance, IdleReason
from migrate.model.ensemble import Ensemble, EnsembleServer
from migrate.model.findings import Finding
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.inventory import AcceptedDifference, Access, OwnCommands
from migrate.model.launch import STOP_SECONDS, Launch, Listening, Unit
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.listeners import StoreFile
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights, Refused
from migrate.model.stage import Stage
from migrate.model.views import (
    ConfigFile,
    Directory,
    Malformed,
    MetadataAnswer,
    MetaMissing,
    PartitionHealth,
    PendingWork,
    Stopped,
    ZnodeAcl,
    ZnodePart,
    whole_or_unknown,
)
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.clusters import topic_id, uuid
from tests.testing.worlds import (
    with_directory,
    with_folder,
    with_kraft,
    with_live,
    with_values,
    with_zk,
)

Bend = Callable[[World], World]

TLS_MAP = "PLAINTEXT:PLAINTEXT,TLS:SSL"


def of(world: World, code: str) -> list[Finding]:
    """The findings of one code."""
    return [entry for entry in checks.run(world, target=Stage.CLEANUP) if entry.code == code]


def same(world: World) -> World:
    """Nothing is bent: the code informs about a healthy world too."""
    return world


def served(*servers: EnsembleServer, strangers: tuple[str, ...] = ()) -> Bend:
    """ZooKeeper beside a migrated cluster; one server without clients where none is given."""
    found = servers or (EnsembleServer("zk1:2181", listens=True, role="standalone"),)
    return lambda world: replace(world, ensemble=Ensemble(found, strangers))


def many_entities(count: int, kind: str, key: str, name: str = "present", value: str = "true") -> Bend:
    """Many rows of one kind, keys numbered, with the znode of an ACL on every topic."""

    def bend(world: World) -> World:
        rows = EntityColumns(*map(list, astuple(worlds.zk(world).entities)))
        for number in range(count):
            tail = "|*|READ|ALLOW" if kind == "acl" else ""
            rows.add(kind, f"{key}{number:040}{tail}", name, value, "/kafka-acl/Topic/*" if kind == "acl" else "")
        return with_zk(world, entities=rows)

    return bend


def pending(**work: tuple[str, ...]) -> Bend:
    """Administrative work in progress."""
    return lambda world: with_zk(world, pending=PendingWork(**work))


def values(node: int, **changed: str | None) -> Bend:
    """Keys of a node's file (`__` for a dot)."""
    return lambda world: with_values(world, node, **changed)


def linked(node: int) -> Bend:
    """A node's file is a link that its host allows."""

    def bend(world: World) -> World:
        assert not isinstance(world.configs, Unknown)
        file = world.configs[NodeId(node)]
        assert isinstance(file, ConfigFile)
        return replace(
            world, configs={**world.configs, NodeId(node): replace(file, target="/opt/kafka/one.properties")}
        )

    return bend


def written_twice(node: int, key: str) -> Bend:
    """A second line of a key that stands in the node's file already, with the same value."""

    def bend(world: World) -> World:
        assert not isinstance(world.configs, Unknown)
        file = world.configs[NodeId(node)]
        assert isinstance(file, ConfigFile)
        raw = file.raw + f"{key}={file.values[key]}\n".encode()
        return replace(world, configs={**world.configs, NodeId(node): worlds.config_file(file.node, file.path, raw)})

    return bend


def launched(node: int, **changed: object) -> Bend:
    """Fields of how a broker was started."""

    def bend(world: World) -> World:
        assert not isinstance(world.launches, Unknown)
        found = world.launches[NodeId(node)]
        assert isinstance(found, Launch)
        return replace(world, launches={**world.launches, NodeId(node): replace(found, **changed)})  # type: ignore[arg-type]

    return bend


def refused_on_host(node: int, *reasons: str) -> Bend:
    """The nodes' hosts are reached over SSH; there all is allowed but, on one, commands of a run."""

    def bend(world: World) -> World:
        nodes = {entry.id: HostRights(entry.host) for entry in world.inventory.nodes}
        refused = tuple(Refused(reason, "install the host program") for reason in reasons)
        nodes[NodeId(node)] = replace(nodes[NodeId(node)], refused=refused)
        return replace(world, inventory=replace(world.inventory, executor="ssh"), host_rights=nodes)

    return bend


def towards(release: str, *bends: Bend) -> Bend:
    """The next upgrade shall lead to that release, in a world that is bent like this."""

    def bend(world: World) -> World:
        return then(*bends)(replace(world, facts={**world.facts, NEXT_RELEASE: release}))

    return bend


def unit_of(node: int, **changed: object) -> Bend:
    """The nodes are systemd units that wait long enough and start at boot; one is otherwise."""

    def bend(world: World) -> World:
        found: dict[NodeId, Unit | Unknown] = {
            entry.id: Unit(entry.host, f"kafka-{int(entry.id)}.service", STOP_SECONDS, "enabled", starts_at_boot=True)
            for entry in world.inventory.nodes
        }
        one = found[NodeId(node)]
        assert isinstance(one, Unit)
        found[NodeId(node)] = replace(one, **changed)  # type: ignore[arg-type]
        return replace(world, inventory=replace(world.inventory, executor="ssh"), units=found)

    return bend


def users_of_a_host(world: World) -> World:
    """A controller beside a broker, as another user."""
    bent = unit_of(3000, host="host-1", user="kraft")(world)
    assert not isinstance(bent.units, Unknown)
    broker = bent.units[NodeId(0)]
    assert isinstance(broker, Unit)
    return replace(bent, units={**bent.units, NodeId(0): replace(broker, host="host-1", user="kafka")})


def by_ssh(world: World) -> World:
    """The nodes are units of hosts, and nothing is known of them."""
    return replace(world, inventory=replace(world.inventory, executor="ssh"))


def commanded(world: World) -> World:
    """The first broker has commands in place of a unit."""
    own = OwnCommands("kafka", ("/opt/ops/start",), ("/opt/ops/stop",), ("/opt/ops/status",), STOP_SECONDS)
    first, *others = world.inventory.brokers
    inventory = replace(world.inventory, executor="ssh", brokers=(replace(first, service=own), *others))
    return replace(world, inventory=inventory)


def commented(node: int, comment: str) -> Bend:
    """The nodes are on hosts, and the file of one begins with that line."""

    def bend(world: World) -> World:
        assert not isinstance(world.configs, Unknown)
        file = world.configs[NodeId(node)]
        assert isinstance(file, ConfigFile)
        return by_ssh(
            replace(
                world,
                configs={**world.configs, NodeId(node): replace(file, raw=f"{comment}\n".encode() + file.raw)},
            )
        )

    return bend


def by_people(world: World) -> World:
    """Nobody but people works the hosts."""
    return replace(world, inventory=replace(world.inventory, executor="manual"))


def placed(node: int, **changed: str) -> Bend:
    """Where a controller is planned."""

    def bend(world: World) -> World:
        nodes = tuple(replace(at, **changed) if at.id == node else at for at in world.inventory.controllers)  # type: ignore[arg-type]
        return replace(world, inventory=replace(world.inventory, controllers=nodes))

    return bend


def bound(node: int, address: str, port: int) -> Bend:
    """A socket that listens on the host of a controller that does not run, where nothing else is known of it."""

    def bend(world: World) -> World:
        assert not isinstance(world.ports, Unknown)
        assert not isinstance(world.services, Unknown)
        services = {NodeId(node): Stopped(), **world.services}
        return replace(world, ports={**world.ports, NodeId(node): (Listening(address, port),)}, services=services)

    return bend


KEYSTORE = "listener.name.tls.ssl.keystore.location"


def store(node: int, ends: str | Unknown, fault: str | Unknown = "", begins: str = "", key: str = KEYSTORE) -> Bend:
    """A broker of a TLS listener, with such a key store (or another file), on 1 January 2026; it runs as user kafka."""

    def bend(world: World) -> World:
        tls = values(
            node,
            listeners="PLAINTEXT://:9092,TLS://:9093",
            listener__security__protocol__map=TLS_MAP,
            listener__name__tls__ssl__keystore__location="/tls/b.p12",
        )(world)
        found = StoreFile(key, "/tls/b.p12", ends, fault, begins)
        units = {NodeId(node): Unit("h", "u", None, "enabled", True, user="kafka")}
        return replace(tls, stores={NodeId(node): (found,)}, units=units, today="2026-01-01")

    return bend


def entity(kind: str, key: str, name: str, value: str) -> Bend:
    """One more row of ZooKeeper's entities."""
    return lambda world: worlds.with_entity(world, kind, key, name, value)


def kraft_has(kind: str, key: str) -> Bend:
    """One more entity of the metadata, which ZooKeeper has not."""

    def bend(world: World) -> World:
        rows = worlds.kraft(world).entities
        found = EntityColumns(*map(list, (rows.kind, rows.key, rows.name, rows.value, rows.where)))
        found.add(kind, key, "present", "true", "offset 400")
        return with_kraft(world, entities=found)

    return bend


def directory(node: int, index: int, **changed: object) -> Bend:
    """Fields of a log directory."""

    def bend(entry: Directory) -> Directory:
        return replace(entry, **changed)  # type: ignore[arg-type]

    return lambda world: with_directory(world, node, index, bend)


def new_directory(node: int, **changed: object) -> Bend:
    """A directory that a DirectoryPlaybook gives that broker, empty and healthy but for these fields."""
    bare = Directory(f"/new/b{node}", "", MetaMissing(), ReplicaColumns(), False)
    entry = NewDirectory(replace(bare, **changed), bare.path, ())  # type: ignore[arg-type]
    return lambda world: replace(world, new_directories={NodeId(node): (entry,)})


def metadata_apart(meta: MetaMissing) -> Bend:
    """metadata.log.dir of broker 1 in a place of its own."""

    def bend(world: World) -> World:
        assert not isinstance(world.disks, Unknown)
        disks = world.disks[NodeId(1)]
        assert not isinstance(disks, Unknown)
        apart = replace(disks.directories[0], path="/meta", meta=meta)
        return replace(world, disks={**world.disks, NodeId(1): replace(disks, metadata_directory=apart)})

    return bend


def column(name: str, row: int, value: object) -> Bend:
    """One cell of ZooKeeper's partitions."""

    def bend(world: World) -> World:
        table = worlds.zk(world).partitions
        cells = list(getattr(table, name))
        cells[row] = value
        return with_zk(world, partitions=replace(table, **{name: cells}))

    return bend


def endpoints(node: int, *found: str) -> Bend:
    """A broker's registered endpoints."""

    def bend(world: World) -> World:
        brokers = dict(worlds.zk(world).brokers)
        brokers[NodeId(node)] = replace(brokers[NodeId(node)], endpoints=found)
        return with_zk(world, brokers=brokers)

    return bend


def acls(found: dict[str, tuple[ZnodeAcl, ...]]) -> Bend:
    """ACLs of the znodes that controllers write."""
    return lambda world: with_zk(world, acls=found)


OPEN_READ = ZnodeAcl(1, "world", "anyone")


def malformed(path: str, part: ZnodePart) -> Bend:
    """A znode that is there and cannot be read."""

    def bend(world: World) -> World:
        view = replace(worlds.zk(world), malformed=(Malformed(path, "it is no JSON", part),))
        return replace(world, zookeeper=whole_or_unknown(view))

    return bend


def then(*bends: Bend) -> Bend:
    """One bend after another."""

    def bend(world: World) -> World:
        for each in bends:
            world = each(world)
        return world

    return bend


def volatile(*kinds: str) -> Bend:
    """The playbook accepts directories on file systems of these types."""

    def bend(world: World) -> World:
        assert not isinstance(world.playbook, Unknown)
        return replace(world, playbook=replace(world.playbook, accept_volatile=kinds))

    return bend


def waiting_for_moves(world: World) -> World:
    """The playbook waits for moves between directories."""
    assert not isinstance(world.playbook, Unknown)
    return replace(world, playbook=replace(world.playbook, wait_for_moves=True))


def accepting(broker: str, path: str, day: str = "2026-06-30") -> Bend:
    """On that day the playbook accepts that folder of that broker as stray, until 2027."""

    def bend(world: World) -> World:
        assert not isinstance(world.playbook, Unknown)
        entry = AcceptedDifference("W-DIR-07", "broker", broker, path, "known", "CHG1", "2027-01-01")
        return replace(world, today=day, playbook=replace(world.playbook, accepted_differences=(entry,)))

    return bend


def lagging(broker: int, day: str = "2026-06-30", isr: tuple[int, ...] = (1, 0), *, leader: int = 1) -> Bend:
    """t0-0 with three replicas lacks one; on that day the playbook accepts that broker's, until 2027."""
    entry = AcceptedDifference("W-HLT-03", "partition", "t0-0", str(broker), "its disk is slow", "CHG1", "2027-01-01")

    def bend(world: World) -> World:
        assert not isinstance(world.playbook, Unknown)
        sick = metadata(unhealthy=(PartitionHealth("t0", 0, leader, isr, (0, 1, 2)),))(world)
        return replace(sick, today=day, playbook=replace(world.playbook, accepted_differences=(entry,)))

    return bend


def registration(node: int, **changed: object) -> Bend:
    """Fields of a broker's registration."""

    def bend(world: World) -> World:
        found = dict(worlds.kraft(world).brokers)
        found[NodeId(node)] = replace(found[NodeId(node)], **changed)  # type: ignore[arg-type]
        return with_kraft(world, brokers=found)

    return bend


def another_broker(node: int, **changed: object) -> Bend:
    """A registration that the inventory does not have, otherwise as that of broker 1."""

    def bend(world: World) -> World:
        found = dict(worlds.kraft(world).brokers)
        found[NodeId(node)] = replace(found[NodeId(1)], id=NodeId(node), **changed)  # type: ignore[arg-type]
        return with_kraft(world, brokers=found)

    return bend


def answers(part: str, node: int, answer: object) -> Bend:
    """One node's part of the live view."""
    return lambda world: with_live(world, **{part: {**getattr(worlds.live(world), part), NodeId(node): answer}})


def metadata(**changed: object) -> Bend:
    """Broker 1's Metadata answer."""
    return answers("metadata", 1, replace(MetadataAnswer((0,), (0, 1, 2), 6, ()), **changed))  # type: ignore[arg-type]


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
KNOWN = ' user_broker="p" user_controller="p"'


def login(node: int, user: str, password: str) -> Bend:
    """As whom a node calls the controllers."""
    return values(
        node, listener__name__ctl__plain__sasl__jaas__config=f'{PLAIN} username="{user}" password="{password}";'
    )


def called_back(node: int, password: str) -> Bend:
    """SASL/PLAIN on the brokers' listener, with the password that this node uses there."""
    user = "controller" if node >= 3000 else "broker"
    return values(
        node,
        listener__security__protocol__map="INTERNAL:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
        sasl__mechanism__inter__broker__protocol="PLAIN",
        listener__name__internal__plain__sasl__jaas__config=f'{PLAIN} username="{user}" password="{password}"{KNOWN};',
    )


def secured(node: int, *, controller: bool) -> Bend:
    """SASL/PLAIN on the controller listener: brokers call it as User:broker, controllers as User:controller."""
    user = "controller" if controller else "broker"
    login = f'{PLAIN} username="{user}" password="p"{KNOWN if controller else ""};'
    changed = {
        "listener__security__protocol__map": "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
        "sasl__mechanism__controller__protocol": "PLAIN",
        "listener__name__ctl__plain__sasl__jaas__config": login,
    }
    return values(node, **changed)


def by_kerberos(node: int, **changed: str | None) -> Bend:
    """Kerberos on the controller listener: a node calls it as User:kafka."""
    found = {
        "listener__security__protocol__map": "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
        "sasl__mechanism__controller__protocol": "GSSAPI",
        "sasl__kerberos__service__name": "kafka",
        "listener__name__ctl__gssapi__sasl__jaas__config": f'{KRB5} principal="kafka/b{node}.x@REALM";',
        "super__users": "User:kafka;User:ANONYMOUS",
    }
    return values(node, **(found | changed))


def spoken_to_controllers(mechanism: str) -> Bend:
    """The inventory's word of how controllers are called."""
    access = Access("SASL_PLAINTEXT", mechanism)
    return lambda world: replace(world, inventory=replace(world.inventory, controller_access=access))


def kerberized(**changed: str | None) -> Bend:
    """Every node by Kerberos, started in its default realm; node 3000 with those changes."""
    nodes = (0, 1, 2, 3001, 3002)
    realms = (launched(node, realm="REALM") for node in (*nodes, 3000))
    return then(*map(by_kerberos, nodes), by_kerberos(3000, **changed), *realms, spoken_to_controllers("GSSAPI"))


SECURED = then(
    *(secured(node, controller=False) for node in (0, 1, 2)),
    *(secured(node, controller=True) for node in (3000, 3001, 3002)),
)
CALLED_BACK = then(SECURED, *(called_back(node, "p") for node in (0, 1, 2, 3000, 3001, 3002)))
UNSECURED = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecured"


def tokens_taken(node: int, listener: str, handler: str | None = None) -> Bend:
    """OAUTHBEARER on a listener of a node, with that handler on its server's side."""
    prefix = f"listener__name__{listener.lower()}__"
    return values(
        node,
        listener__security__protocol__map=f"INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT,CTL:PLAINTEXT,{listener}:SASL_SSL",
        **{f"{prefix}sasl__enabled__mechanisms": "SCRAM-SHA-512, OAUTHBEARER"},
        **{f"{prefix}oauthbearer__sasl__server__callback__handler__class": handler},
    )


FLAG = "zookeeper__metadata__migration__enable"
LEDGER = Ledger((LedgerRow("t0", topic_id(0), 0, 1, ReplicaState.MIGRATING, "d", "m"),), 400, "pure")
DIFF = DiffReport(400, 0, {}, (Difference("topic-config", "t0", "retention.ms", DifferenceClass.DIFFERS, "1", "2"),))
IDLE = IdleAcceptance(
    AcceptedDifference("DIFFERS", "topic-config", "t0", "retention.ms", "old", "CHG1", "2026-01-01"), IdleReason.EXPIRED
)
MOVES: Bend = lambda w: with_folder(w, 0, 2, ("t0", 0, topic_id(0), "future"))  # noqa: E731 - a case's bend
STRAYED: Bend = lambda w: with_folder(w, 1, 2, ("gone", 4, uuid(98), "current"))  # noqa: E731 - a case's bend
STRANGER = DirectoryId(uuid(4711))
