"""For each code one bend of a healthy world after which it must fire, and the object that it must name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from migrate.checks.oauth import VALIDATOR
from migrate.checks.releases import REPORTER
from migrate.model.columns import PartitionColumns
from migrate.model.config_keys import QuorumKind
from migrate.model.difference import DiffReport
from migrate.model.disk_trouble import NO_REPLICA
from migrate.model.ensemble import EnsembleServer
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.inventory import Access
from migrate.model.launch import JAAS_FILE, NoZookeeperClient, UnitNotes, ZookeeperClient
from migrate.model.listeners import DENIED, GONE, PROTOCOL_MAP
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    ControllerRegistration,
    ControllerZnode,
    LogDirAnswer,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    MigrationZnode,
    NodeAnswer,
    NoZnode,
    NullZnode,
    PartitionHealth,
    Quorum,
    Voter,
    ZnodeAcl,
    ZnodePart,
    ZookeeperSession,
)
from migrate.model.world import World
from tests.checks.bends import (
    CALLED_BACK,
    DIFF,
    FLAG,
    IDLE,
    LEDGER,
    MOVES,
    OPEN_READ,
    SECURED,
    STRANGER,
    STRAYED,
    UNSECURED,
    Bend,
    accepting,
    acls,
    another_broker,
    answers,
    bound,
    by_people,
    by_ssh,
    called_back,
    column,
    commanded,
    commented,
    directory,
    endpoints,
    entity,
    kerberized,
    kraft_has,
    lagging,
    launched,
    linked,
    login,
    malformed,
    many_entities,
    metadata,
    metadata_apart,
    new_directory,
    pending,
    placed,
    refused_on_host,
    registration,
    same,
    served,
    spoken_to_controllers,
    store,
    then,
    tokens_taken,
    towards,
    unit_of,
    users_of_a_host,
    values,
    volatile,
    waiting_for_moves,
    written_twice,
)
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, directory_id, topic_id, uuid
from tests.testing.worlds import (
    with_entity,
    with_folder,
    with_kraft,
    with_live,
    with_zk,
)

ZK, PREPARED, PRE, HALF, HYBRID, KRAFT, FINAL = (
    Stage.ASSESS,
    Stage.PREPARE,
    Stage.CONTROLLERS,
    Stage.MIGRATION_MODE,
    Stage.HYBRID,
    Stage.SOAK,
    Stage.FINALIZE,
)


@dataclass(frozen=True, slots=True)
class Case:
    """`about` is part of the finding's object."""

    code: str
    stage: Stage
    about: str
    bend: Bend
    note: str = ""

    @property
    def name(self) -> str:
        """For pytest's list."""
        return f"{self.code} {self.note}".strip()


VERSIONS = (
    Case("I-VER-01", ZK, "lab", same),
    Case("I-VER-14", ZK, "every broker", same),
    Case("B-VER-02", ZK, "broker 1", values(1, inter__broker__protocol__version="3.6")),
    Case("B-VER-03", ZK, "broker 2", values(2, inter__broker__protocol__version=None)),
    Case("B-VER-05", ZK, "brokers [1]", answers("brokers", 1, NodeAnswer(False, {}, {1: 16}))),
    Case("B-VER-06", ZK, "software", answers("brokers", 1, NodeAnswer(False, {}, {1: 17, 3: 13}))),
    Case("B-VER-15", PRE, "controller 3001", answers("controllers", 3001, NodeAnswer(True, {}, {1: 16}))),
    Case("B-VER-15", PRE, "controller 3001", launched(3001, release="4.0.0"), "class path"),
    Case("W-VER-16", PRE, "the nodes' software", then(launched(0, release="3.9.2"), launched(3001, release="3.9.1"))),
    Case("I-VER-10", PREPARED, "KAFKA-19480", same),
    Case("I-VER-11", ZK, "KAFKA-20960", same),
    Case("B-VER-04", HALF, "the brokers' files", values(1, inter__broker__protocol__version="3.8")),
)
CONFIG = (
    Case(
        "B-CFG-01",
        ZK,
        "controller 3000",
        lambda w: with_zk(w, brokers={**worlds.zk(w).brokers, NodeId(3000): worlds.zk(w).brokers[NodeId(0)]}),
    ),
    Case("B-CFG-02", PREPARED, "node 3001", values(3001, process__roles="broker,controller")),
    Case("B-CFG-03", ZK, "broker 0", values(0, broker__id=None)),
    Case("B-CFG-03", ZK, "broker 0", values(0, broker__id="-1"), "generated"),
    Case("B-CFG-04", ZK, "broker 1", values(1, broker__id="1001")),
    Case("B-CFG-05", KRAFT, "broker 1", values(1, control__plane__listener__name="CP")),
    Case("W-CFG-15", ZK, "broker 1", values(1, control__plane__listener__name="CP")),
    Case("B-CFG-06", PREPARED, "controller 3002", values(3002, inter__broker__listener__name="CLIENT")),
    Case(
        "B-CFG-06", PREPARED, "controller 3002", values(3002, listener__security__protocol__map="CTL:PLAINTEXT"), "map"
    ),
    Case("B-CFG-06", PREPARED, "the brokers' files", values(1, inter__broker__listener__name="CLIENT"), "brokers"),
    Case("B-CFG-07", ZK, "node 2", values(2, broker__id="1")),
    Case("B-CFG-07", PREPARED, "node 3000", values(3000, node__id="3001"), "controller"),
    Case(
        "B-CFG-08",
        ZK,
        "broker 2",
        lambda w: with_zk(w, brokers={n: b for n, b in worlds.zk(w).brokers.items() if n != 2}),
    ),
    Case(
        "B-CFG-08",
        ZK,
        "broker 9",
        lambda w: with_zk(w, brokers={**worlds.zk(w).brokers, NodeId(9): worlds.zk(w).brokers[NodeId(0)]}),
        "stranger",
    ),
    Case("W-CFG-16", PREPARED, "controller 3001", values(3001, min__insync__replicas="1")),
    Case("W-CFG-16", PREPARED, "controller 3002", values(3002, min__insync__replicas=None), "missing"),
    Case("W-CFG-17", ZK, "the brokers' files", values(1, super__users="User:ANONYMOUS")),
    Case("W-CFG-17", ZK, "the brokers' files", values(2, num__partitions="3"), "one alone"),
    Case("B-CFG-18", ZK, "node 1", written_twice(1, "zookeeper.connect")),
    Case("B-CFG-18", PREPARED, "node 3000", written_twice(3000, "zookeeper.metadata.migration.enable"), "controller"),
    Case("I-CFG-19", ZK, "/config/brokers/1", entity("broker-config", "1", "log.cleaner.threads", "2")),
    Case("I-CFG-19", ZK, "/config/brokers/<default>", entity("broker-config", "<default>", "a", "2"), "default"),
    Case("I-CFG-19", ZK, "/config/brokers/1", entity("broker-config", "1", "log.cleaner.threads", "x"), "ignored"),
    Case("W-CFG-20", ZK, "/config/brokers/1", entity("broker-config", "1", "advertised.listeners", "A://b:1")),
    Case("B-CFG-21", ZK, "node 0", values(0, log__dirs="${file:/etc/kafka/dirs:log.dirs}")),
    Case("B-CFG-23", ZK, "broker 1", launched(1, overrides={"log.dirs": "/x"})),
    Case("W-CFG-24", ZK, "broker 1", launched(1, overrides={"num.io.threads": "9"})),
    Case(
        "W-OPS-05",
        ZK,
        "node 3000",
        refused_on_host(3000, "E-HOST-28 c0: the host program does not run: sudo: a password is required"),
    ),
    Case("W-CFG-25", ZK, "broker 2", launched(2, zookeeper_properties=("zookeeper.client.secure",))),
    Case("W-CFG-25", ZK, "broker 2", launched(2, files={JAAS_FILE: "/etc/kafka/jaas.conf"}), "JAAS"),
    Case("B-CFG-26", ZK, "broker 0", launched(0, environment=("KAFKA_CFG_LOG_DIRS",))),
    Case("B-CFG-27", ZK, "broker 0", launched(0, config="/opt/kafka/config/server.properties")),
    Case("B-CFG-27", ZK, "broker 0", launched(0, config=None), "none"),
    Case("I-CFG-28", ZK, "broker 0", launched(0, unit=UnitNotes(("/etc/default/kafka",), ()))),
    Case("I-CFG-35", ZK, "node 0: /conf/b0.properties", linked(0)),
    Case("B-CFG-29", ZK, "node 0", unit_of(0, reload_due=True)),
    Case("B-CFG-29", ZK, "node 3000", unit_of(3000, reload_due=True), "controller"),
    Case("B-CFG-30", ZK, "broker 1", values(1, listeners="INTERNAL://b1:9092,CTL://b1:9091")),
    Case("B-CFG-30", ZK, "broker 1", values(1, listeners="INTERNAL://b1:9092,ctl://b1:9091"), "lower case"),
    Case("B-CFG-30", ZK, "broker 2", values(2, advertised__listeners="INTERNAL://b2:9092, CTL://b2:1"), "advertised"),
    Case("B-CFG-30", ZK, "broker 0", values(0, control__plane__listener__name="CTL"), "control plane"),
    Case(
        "B-CFG-30", HALF, "broker 0", values(0, listener__security__protocol__map="INTERNAL:PLAINTEXT,CTL:SSL"), "map"
    ),
    Case("B-CFG-26", ZK, "broker 0", launched(0, main_class=None, container="docker"), "container"),
    Case("W-CFG-31", ZK, "broker 1", launched(1, jute_maxbuffer=8388608)),
    Case("B-CFG-32", PRE, "controller 3000", launched(1, jute_maxbuffer=8388608)),
    Case(
        "B-CFG-32",
        PRE,
        "controller 3001",
        then(launched(1, jute_maxbuffer=8388608), launched(3001, jute_maxbuffer=4194304)),
        "less",
    ),
    Case("W-CFG-33", ZK, "broker 1", values(1, client__quota__callback__class="com.example.Quotas")),
    Case("B-CFG-37", ZK, "class com.example.Quotas", values(1, client__quota__callback__class="com.example.Quotas")),
    Case("B-CFG-37", ZK, "class a.B", values(1, metric__reporters="a.B, a.C", a__url="b"), "list"),
    Case(
        "B-CFG-37",
        ZK,
        "class a.B",
        values(1, listener__name__x__plain__sasl__server__callback__handler__class="a.B"),
        "handler",
    ),
    Case("B-SEC-27", ZK, "broker 1", values(1, authorizer__zookeeper__url="zkacl:2181/acl")),
    Case("B-CFG-37", ZK, "class a.B", entity("broker-config", "<default>", "metric.reporters", "a.B"), "dynamic"),
    Case("W-CFG-34", ZK, "broker 2", values(2, controlled__shutdown__enable="false")),
    Case("W-CFG-22", ZK, "broker 2", values(2, ssl__key__password="${env:KEY_PASSWORD}")),
    Case("W-CFG-09", ZK, "brokers [1]", values(1, alter__config__policy__class__name="a.B")),
    Case("B-CFG-10", HALF, "broker 0", values(0, controller__quorum__voters=None)),
    Case("B-CFG-10", HALF, "broker 0", values(0, controller__listener__names=None), "listener"),
    Case("B-CFG-11", ZK, "broker 0", values(0, controller__listener__names="CTL")),
    Case("B-CFG-11", ZK, "broker 0", values(0, zookeeper__metadata__migration__enable="true"), "flag"),
    Case("B-CFG-11", ZK, "broker 0", values(0, process__roles="broker"), "role"),
    Case("B-CFG-11", PRE, "broker 0", values(0, process__roles="broker"), "role before the copy"),
    Case("I-CFG-36", ZK, "broker 0", values(0, controller__quorum__voters="1@localhost:9093"), "replaced"),
    Case("I-CFG-36", ZK, "broker 0", values(0, metadata__log__dir="/data/b0/meta"), "kept"),
    Case("I-CFG-36", ZK, "broker 0", values(0, listener__name__ctl__ssl__truststore__location="/old.jks"), "caller"),
    Case("I-CFG-36", ZK, "broker 0", values(0, group__coordinator__new__enable="true"), "coordinator"),
    Case("I-CFG-36", ZK, "broker 0", values(0, log__dir__failure__timeout__ms="1"), "failure"),
    Case("B-CFG-12", KRAFT, "broker 2", values(2, **{FLAG: "true"})),
    Case("B-CFG-13", ZK, "node 1", values(1, zookeeper__connect="zk1:2181")),
)
OPERATIONS = (
    Case("B-OPS-06", ZK, "node 3000", unit_of(3000, patience=300.0)),
    Case("B-OPS-06", ZK, "node 1", unit_of(1, patience=Unknown("'TimeoutStopUSec'")), "unknown"),
    Case("W-OPS-07", ZK, "node 1", unit_of(1, word="disabled", starts_at_boot=False)),
    Case("W-OPS-07", FINAL, "node 3000", unit_of(3000, word="disabled", starts_at_boot=False), "final"),
    Case("B-OPS-17", ZK, "node 3000", unit_of(3000, word="disabled", starts_at_boot=False)),
    Case("B-OPS-17", HYBRID, "node 3001", unit_of(3001, word="masked", starts_at_boot=False), "masked"),
    Case("I-OPS-08", ZK, "hosts", by_people),
    Case("B-OPS-09", ZK, "node 3001", unit_of(3001, faults=("KillMode=none: its process lives on",))),
    Case("B-OPS-09", ZK, "node 0", unit_of(0, faults=("systemd says that this unit is masked",)), "masked"),
    Case("W-OPS-10", ZK, "host-1", users_of_a_host),
    Case("W-OPS-11", ZK, "broker 1", unit_of(1, restarts_halted=True)),
    Case("W-OPS-16", ZK, "node 0", commanded),
    Case("B-OPS-12", ZK, "node 3000", unit_of(3000, access=(("user kafka cannot read it", "chmod g+r"),))),
    Case(
        "B-OPS-12", ZK, "node 1", unit_of(1, view=(("PrivateTmp", "yes"), ("TemporaryFileSystem", "/data"))), "=/data"
    ),
    Case("I-OPS-13", ZK, "the nodes' hosts", by_ssh),
    Case("I-OPS-13", ZK, "Ansible", commented(1, "# Ansible managed: do not edit"), "ansible"),
    Case("I-OPS-13", ZK, "Puppet", commented(1, "# This file is managed by Puppet"), "puppet"),
    Case("I-OPS-13", ZK, "the nodes' hosts", commented(1, "# the salt is managed elsewhere"), "no tool"),
    Case("W-OPS-07", ZK, "node 2", unit_of(2, word="masked", starts_at_boot=False), "masked"),
    Case("B-OPS-01", ZK, "broker 1", endpoints(1, "TLS://kafka-1.kafka-brokers.prod.svc:9093")),
    Case("B-OPS-01", ZK, "broker 1", endpoints(1, "TLS://kafka-1.kafka.svc.cluster.local:9093"), "long name"),
    Case("B-OPS-02", ZK, "broker 0", values(0, confluent__license__topic="_c")),
    Case("B-OPS-02", ZK, "broker 0", values(0, metric__reporters="io.confluent.Reporter"), "class"),
    Case("B-OPS-02", ZK, "broker 1", values(1, metric__reporters=f"{REPORTER},io.confluent.telemetry.T"), "another"),
    Case("B-OPS-02", ZK, "broker 1", values(1, authorizer__class__name="x.Y, io.confluent.Z"), "authorizer"),
    Case("B-OPS-02", ZK, "broker 2", values(2, confluent__of__tomorrow="1"), "unknown key"),
    Case("W-OPS-14", ZK, "broker 1", values(1, metric__reporters=f"org.x.Jmx, {REPORTER}")),
    Case("W-OPS-14", ZK, "broker 1", values(1, confluent__metrics__reporter__bootstrap__servers="b:9092"), "key"),
    Case("W-OPS-14", ZK, "broker 0", values(0, confluent__support__metrics__enable="false"), "support"),
    Case("B-OPS-15", ZK, "broker 1", launched(1, release="7.9.0-ce")),
    Case("B-OPS-15", ZK, "broker 2", values(2, confluent__support__metrics__enable="false"), "no jar"),
    Case("W-OPS-03", ZK, "1 topic", column("topic", 0, "_confluent-command")),
    Case("I-OPS-04", ZK, "this tool", same),
    Case("W-ZKN-20", ZK, "10.0.0.9", lambda w: with_zk(w, clients=(ZookeeperSession("10.0.0.9", 77),))),
)
ZOOKEEPER = (
    Case("B-ZKN-01", ZK, "/migration", lambda w: with_zk(w, migration=MigrationZnode(90, 1, 3000, 1, 1))),
    Case("B-ZKN-01", PRE, "/migration", lambda w: with_zk(w, migration=MigrationZnode(90, 1, 3000, 1, 1)), "fresh log"),
    Case("B-ZKN-02", ZK, "/migration", lambda w: with_zk(w, migration=NullZnode(0))),
    Case("B-ZKN-03", HALF, "/brokers/topics/t1", lambda w: with_zk(w, topics_without_id=("t1",))),
    Case(
        "B-ZKN-04",
        ZK,
        "/brokers/topics/t-1/partitions/2/state",
        lambda w: with_zk(w, partitions_without_state=("t-1-2",)),
    ),
    Case("B-ZKN-05", ZK, "broker 7", column("replicas", 1, [0, 7])),
    Case("B-ZKN-06", ZK, "/admin/delete_topics/t0", pending(deletions=("t0",))),
    Case("B-ZKN-07", ZK, "partition t0-1", pending(reassignments=("t0-1",))),
    Case("B-ZKN-07", ZK, "partition t0-2", column("adding", 2, [1]), "in the topic"),
    Case("W-ZKN-24", Stage.CLEANUP, "zk1:2181", served(EnsembleServer("zk1:2181", True, "leader", 1))),
    Case("W-ZKN-24", Stage.CLEANUP, "ZooKeeper's tree", served(strangers=("/solr",))),
    Case("I-ZKN-25", Stage.CLEANUP, "ZooKeeper's servers", served()),
    Case("W-ZKN-08", ZK, "preferred_replica_election", pending(elections=("t0-1",))),
    Case("B-ZKN-09", ZK, "/controller_epoch", lambda w: with_zk(w, controller_epoch=NoZnode())),
    Case("W-ZKN-23", ZK, "/config/topics", many_entities(18_500, "topic-config", "t", "a", "1")),
    Case("W-ZKN-23", ZK, "/kafka-acl/Topic/*", many_entities(9_000, "acl", "TOPIC|LITERAL|*|User%3A"), "ACLs"),
    Case(
        "B-ZKN-10",
        ZK,
        "alice",
        lambda w: with_entity(w, "acl", "TOPIC|LITERAL|t|alice|*|READ|ALLOW", "present", "true"),
    ),
    Case(
        "B-ZKN-13", ZK, "/cluster/id", lambda w: replace(w, inventory=replace(w.inventory, expect_cluster_id=uuid(1)))
    ),
    Case("B-CFG-38", ZK, "broker 1", entity("broker-config", "1", "num.io.threads", "17")),
    Case("B-CFG-38", ZK, "broker 2", entity("broker-config", "<default>", "log.cleaner.threads", "3"), "default"),
    Case(
        "B-CFG-38",
        ZK,
        "broker 0",
        entity("broker-config", "0", "listener.name.client.num.network.threads", "7"),
        "listener",
    ),
    Case("B-ZKN-26", ZK, "/config/topics/t0", entity("topic-config", "t0", "retention.ms", "abc")),
    Case("B-ZKN-27", ZK, "ip=a.example", entity("client-quota", "ip=a.example", "connection_creation_rate", "1.0")),
    Case("B-ZKN-27", ZK, "user=u", entity("client-quota", "user=u", "foo", "1.0"), "key"),
    Case("B-ZKN-16", ZK, "/brokers/topics/t0", malformed("/brokers/topics/t0", ZnodePart.TOPIC)),
    Case("B-ZKN-12", ZK, "/config/clients/app", malformed("/config/clients/app", ZnodePart.QUOTA)),
    Case("B-ZKN-17", ZK, "/config/users/u", malformed("/config/users/u", ZnodePart.SCRAM)),
    Case("B-ZKN-18", ZK, "/config/brokers/one", malformed("/config/brokers/one", ZnodePart.BROKER_CONFIG)),
    Case(
        "B-ZKN-11",
        ZK,
        "topics a, b",
        then(
            lambda w: with_entity(w, "topic", "a", "topic_id", topic_id(77)),
            lambda w: with_entity(w, "topic", "b", "topic_id", topic_id(77)),
        ),
    ),
    Case("B-ZKN-19", ZK, "/brokers/topics", lambda w: with_zk(w, partitions=PartitionColumns())),
    Case(
        "W-ZKN-21", ZK, "/config/topics/ghost", lambda w: with_entity(w, "topic-config", "ghost", "retention.ms", "1")
    ),
    Case("W-ZKN-14", ZK, "/log_dir_event_notification", pending(log_dir_events=("log_dir_event_0",))),
)
DIRECTORIES = (
    Case("B-DIR-01", HALF, "broker 1: /data/b1/d2", directory(1, 2, problem="cannot be written: I/O error")),
    Case("B-DIR-01", ZK, "broker 0: /data/b0/d0", directory(0, 0, meta=MetaBroken("no number")), "meta"),
    Case("B-DIR-17", ZK, "broker 2: /data/b2/d0", answers("log_dirs", 2, (LogDirAnswer("/data/b2/d0", 56, 0, ()),))),
    Case(
        "B-DIR-02",
        HYBRID,
        "/data/b2/d1",
        directory(2, 1, meta=MetaProperties(0, CLUSTER_ID, 2, directory_id(0, 0))),
        "twin",
    ),
    Case(
        "B-DIR-02",
        HYBRID,
        "/data/b2/d1",
        directory(2, 1, meta=MetaProperties(0, CLUSTER_ID, 2, DirectoryId("AAAAAAAAAAAAAAAAAAAAAQ"))),
        "reserved",
    ),
    Case("B-DIR-03", ZK, "/data/b0/d1", directory(0, 1, meta=MetaProperties(0, CLUSTER_ID, 1, None)), "node"),
    Case("B-DIR-03", ZK, "/data/b0/d1", directory(0, 1, meta=MetaProperties(0, uuid(7), 0, None)), "cluster"),
    Case("B-DIR-04", HYBRID, "/data/b1/d1", directory(1, 1, meta=MetaProperties(0, None, None, None)), "empty file"),
    Case("B-DIR-04", HYBRID, "/meta", metadata_apart(MetaMissing()), "metadata.log.dir"),
    Case("B-DIR-24", ZK, "/data/b1/d1", directory(1, 1, meta=MetaMissing())),
    Case("B-DIR-24", HYBRID, "/data/b1/d1", directory(1, 1, meta=MetaMissing()), "migration mode"),
    Case("B-DIR-05", HYBRID, "/data/b1/d1", directory(1, 1, holds_metadata_log=True)),
    Case("B-DIR-06", HALF, "/t0-0", lambda w: with_folder(w, 0, 2, ("t0", 0, uuid(99), "current"))),
    Case("B-DIR-06", HALF, "/t0-0", lambda w: with_folder(w, 0, 2, ("t0", 0, "?", "current")), "cannot be read"),
    Case("B-DIR-06", ZK, "/gone-0", lambda w: with_folder(w, 0, 2, ("gone", 0, "?", "stray")), "set aside, and torn"),
    Case("B-DIR-07", ZK, "/gone-4", lambda w: with_folder(w, 1, 2, ("gone", 4, "", "current")), "nothing assigns it"),
    Case("B-DIR-07", HALF, "/t0-0", lambda w: with_folder(w, 0, 2, ("t0", 0, "", "current"))),
    Case("B-DIR-21", ZK, "/gone-4", STRAYED),
    Case("B-DIR-21", ZK, "/gone-4", then(STRAYED, accepting("1", "/data/b1/d2/gone-4", day="")), "no day"),
    Case("B-DIR-21", ZK, "/gone-4", then(STRAYED, accepting("1", "/data/b1/d2/gone-4", day="2027-01-01")), "expired"),
    Case("B-DIR-21", ZK, "/gone-4", then(STRAYED, accepting("2", "/data/b1/d2/gone-4")), "another broker"),
    Case("B-DIR-21", ZK, "/gone-4", then(STRAYED, accepting("1", "/data/b1/d2/gone-5")), "another folder"),
    Case("B-DIR-21", ZK, "/gone-4", lambda w: with_folder(w, 1, 2, ("gone", 4, uuid(9), "future")), "a future copy"),
    Case("W-DIR-07", ZK, "/gone-4", then(STRAYED, accepting("1", "/data/b1/d2/gone-4"))),
    Case("W-DIR-22", ZK, "/data/b1/d2/gone-5", accepting("1", "/data/b1/d2/gone-5"), "unused"),
    Case("W-DIR-22", ZK, "/gone-4", then(STRAYED, accepting("1", "/data/b1/d2/gone-4", day="2027-01-01")), "expired"),
    Case("B-DIR-08", KRAFT, "broker 1: t0-0", lambda w: replace(w, ledger=LEDGER)),
    Case("B-DIR-09", ZK, "broker 1", directory(1, 0, filesystem="tmpfs")),
    Case("B-DIR-09", HYBRID, "controller 3000", directory(3000, 0, filesystem="overlay"), "metadata"),
    Case("B-DIR-09", ZK, "broker 1", then(directory(1, 0, filesystem="tmpfs"), volatile("overlay")), "another type"),
    Case("W-DIR-09", ZK, "broker 1", then(directory(1, 0, filesystem="tmpfs"), volatile("tmpfs"))),
    Case("B-DIR-10", HYBRID, "broker 1", registration(1, log_dirs=frozenset({STRANGER}))),
    Case("B-DIR-11", ZK, "broker 0: t0-0", lambda w: with_folder(w, 0, 2, ("t0", 0, topic_id(0), "current"))),
    Case("B-DIR-12", ZK, "/t0-0", MOVES),
    Case("W-DIR-23", ZK, "/t0-0", then(MOVES, waiting_for_moves)),
    Case("W-DIR-19", ZK, "broker 0: /data", answers("log_dirs", 0, (LogDirAnswer("/data", 0, 1, ("t0-0",)),))),
    Case("B-DIR-13", ZK, "broker 0: t9-0", then(column("topic", 0, "t9"))),
    Case("B-DIR-20", ZK, "broker 2", answers("log_dirs", 2, (LogDirAnswer("/data/b2/d0", 0, 2, ()),)), "too few"),
    Case(
        "B-DIR-20",
        HYBRID,
        "broker 1",
        answers("log_dirs", 1, tuple(LogDirAnswer(f"/data/b1/d{n}", 0, 2, ()) for n in range(4))),
        "too many",
    ),
    Case("W-DIR-14", ZK, "/t0-0", lambda w: with_folder(w, 0, 2, ("t0", 0, topic_id(0), "stray"))),
    Case("B-DIR-26", ZK, "/data/b0/d0", directory(0, 0, oddities=(f"{NO_REPLICA}lost+found",))),
    Case("W-DIR-18", ZK, "/data/b0/d0", directory(0, 0, oddities=("link, not followed: x",))),
    Case("W-DIR-25", ZK, "broker 1", then(directory(1, 0, mount="/d"), directory(1, 2, mount="/d"))),
    Case("W-DIR-25", KRAFT, "broker 1", then(directory(1, 0, mount="/d"), new_directory(1, mount="/d")), "new"),
)
CALLED_BACK_WRONGLY = then(CALLED_BACK, called_back(3000, "mistyped"))
TOKEN_KEY = "delegation__token__secret__key"
TOKENS_SIGNED = then(*(values(node, **{TOKEN_KEY: "hush"}) for node in (0, 1, 2, 3000, 3001, 3002)))


def dynamic(name: str, value: str) -> Bend:
    """Broker 1 has that value in ZooKeeper, and TLS on its clients' listener."""
    tls = values(1, listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:SASL_SSL")
    return then(tls, entity("broker-config", "1", name, value))


DYNAMIC_LOGIN = "listener.name.client.plain.sasl.jaas.config"
CLOSED = acls({"/config": (OPEN_READ, ZnodeAcl(31, "sasl", "kafka"))})
SETS_ACL = then(*(values(node, zookeeper__set__acl="true") for node in (0, 1, 2)))
NO_LOGIN = NoZookeeperClient("no -Djava.security.auth.login.config is among its words")
STRANGE_LOGIN = ZookeeperClient("stranger", accepted=True)
REFUSED_LOGIN = ZookeeperClient("kafka", accepted=False)
STRANGE_PRINCIPAL = ZookeeperClient("", Unknown("not tried"), "stranger/c1.x@REALM")
SECURITY = (
    Case("B-SEC-01", PREPARED, "controller 3001", values(3001, authorizer__class__name=None)),
    Case(
        "B-SEC-02",
        PREPARED,
        "controller 3001",
        values(3001, authorizer__class__name="kafka.security.authorizer.AclAuthorizer"),
    ),
    Case(
        "B-SEC-02",
        KRAFT,
        "broker 1",
        values(1, authorizer__class__name="kafka.security.authorizer.AclAuthorizer"),
        "broker",
    ),
    Case(
        "B-SEC-03",
        PREPARED,
        "controller 3000",
        then(SECURED, values(3000, sasl__mechanism__controller__protocol="SCRAM-SHA-256")),
    ),
    Case("B-SEC-04", PREPARED, "node 3002", values(3002, password__encoder__secret=None)),
    Case("B-SEC-04", PREPARED, "node 3002", values(3002, password__encoder__secret="another-secret"), "differs"),
    Case("B-SEC-06", PREPARED, "controller 3000", values(3000, super__users="User:admin")),
    Case("B-SEC-06", PREPARED, "controller 3000", then(SECURED, values(3000, super__users="User:broker")), "sasl"),
    Case("B-SEC-07", PREPARED, "broker 1", values(1, super__users="User:admin")),
    Case(
        "W-SEC-09",
        ZK,
        "/config/brokers/1",
        lambda w: with_entity(w, "broker-config", "1", "listener.name.client.plain.sasl.jaas.config", "hmac:0"),
    ),
    Case("B-SEC-10", PREPARED, "node 3001", then(TOKENS_SIGNED, values(3001, **{TOKEN_KEY: "other"})), "differs"),
    Case("B-SEC-10", PREPARED, "node 3001", then(TOKENS_SIGNED, values(3001, **{TOKEN_KEY: None})), "missing"),
    Case("B-SEC-10", PREPARED, "node 2", then(TOKENS_SIGNED, values(2, **{TOKEN_KEY: "other"})), "brokers"),
    Case(
        "B-SEC-10",
        PREPARED,
        "controller 3000",
        lambda w: with_entity(w, "delegation-token", "hmac:1", "owner", "User:a"),
    ),
    Case(
        "B-SEC-05",
        ZK,
        "ZooKeeper's ACLs",
        acls({"/brokers/topics": (ZnodeAcl(31, "sasl", "kafka"),), "/config": (ZnodeAcl(31, "sasl", "old"),)}),
    ),
    Case("B-SEC-05", ZK, "ZooKeeper's ACLs", acls({"/config": (ZnodeAcl(1, "world", "anyone"),)}), "nobody"),
    Case("W-SEC-14", ZK, "ZooKeeper's ACLs", acls({"/config": (OPEN_READ, ZnodeAcl(31, "sasl", "kafka"))})),
    Case("W-SEC-14", ZK, "ZooKeeper's ACLs", acls({"/config": (OPEN_READ, ZnodeAcl(14, "x509", "CN=k"))}), "added up"),
    Case("W-SEC-23", PREPARED, "the network", SECURED, "between nodes"),
    Case(
        "W-SEC-23",
        ZK,
        "the network",
        lambda w: replace(w, inventory=replace(w.inventory, broker_access=Access("SASL_PLAINTEXT", "PLAIN", "tool"))),
        "of this tool",
    ),
    Case("I-SEC-24", ZK, "the network", same),
    Case("B-SEC-15", ZK, "/config/brokers/1", lambda w: with_zk(w, undecodable=("/config/brokers/1 ssl.key",))),
    Case("W-SEC-11", PREPARED, "controller 3001", values(0, zookeeper__set__acl="true")),
    Case("W-SEC-12", ZK, "/config/users", values(0, zookeeper__set__acl="true")),
    Case(
        "B-SEC-13",
        PREPARED,
        "controller 3001",
        values(
            3001,
            listener__security__protocol__map="INTERNAL:SASL_PLAINTEXT,CTL:PLAINTEXT",
            sasl__mechanism__inter__broker__protocol="PLAIN",
        ),
    ),
    Case("B-SEC-16", PREPARED, "broker 1", then(SECURED, values(1, sasl__mechanism__controller__protocol=None))),
    Case("B-SEC-17", PREPARED, "controller 3000", then(SECURED, login(1, "broker", "mistyped")), "broker's password"),
    Case("B-SEC-17", PREPARED, "controller 3001", then(SECURED, login(2, "stranger", "x")), "unknown broker"),
    Case("B-SEC-17", PREPARED, "broker 2", CALLED_BACK_WRONGLY, "controller's password"),
    Case("B-SEC-19", PREPARED, "controller 3001", values(3001, authorizer__class__name="org.Other"), "another"),
    Case("B-SEC-19", PREPARED, "controller 3000", values(1, authorizer__class__name=None), "one side alone"),
    Case("B-SEC-20", HYBRID, "broker 1", entity("broker-config", "1", DYNAMIC_LOGIN, "hmac:0")),
    Case("B-SEC-20", ZK, "broker 1", dynamic("listener.name.client.ssl.keystore.location", "/new.pem"), "store"),
    Case("B-SEC-20", ZK, "broker 1", dynamic("listener.name.client.ssl.client.auth", "required"), "clients"),
    Case("B-SEC-20", ZK, "broker 1", dynamic("listener.name.client.ssl.keystore.key", "hmac:0"), "key"),
    Case("B-SEC-20", ZK, "broker 1", dynamic("listeners", "INTERNAL://b1:9092,NEW://b1:9093"), "listener"),
    Case("B-SEC-20", ZK, "broker 1", dynamic(PROTOCOL_MAP, "INTERNAL:PLAINTEXT,CLIENT:SASL_SSL"), "as the file"),
    Case("B-SEC-25", ZK, "broker 1", store(1, "", GONE), "gone"),
    Case("B-SEC-25", ZK, "broker 1", store(1, "", DENIED), "closed"),
    Case(
        "B-SEC-25",
        ZK,
        "broker 1",
        lambda world: unit_of(1, view=(("ProtectHome", "tmpfs"), ("TemporaryFileSystem", "/tls")))(store(1, "")(world)),
        "=/tls",
    ),
    Case("B-SEC-25", ZK, "broker 1", store(1, "", GONE, key=JAAS_FILE), f"{JAAS_FILE} names /tls/b.p12, which does"),
    Case("B-SEC-25", HYBRID, "broker 1", store(1, "2025-12-31"), "ended"),
    Case("B-SEC-25", ZK, "broker 1", store(1, "2027-12-31", begins="2026-01-05"), "not valid before 2026-01-05"),
    Case("W-SEC-26", ZK, "broker 1", store(1, "2026-01-08")),
    Case("B-SEC-21", ZK, "controller 3000", then(CLOSED, launched(3000, zookeeper_client=NO_LOGIN)), "none"),
    Case("B-SEC-21", ZK, "controller 3001", then(SETS_ACL, launched(3001, zookeeper_client=NO_LOGIN)), "dies"),
    Case("B-SEC-21", ZK, "controller 3001", then(CLOSED, launched(3001, zookeeper_client=STRANGE_LOGIN)), "stranger"),
    Case("B-SEC-21", ZK, "controller 3002", then(CLOSED, launched(3002, zookeeper_client=REFUSED_LOGIN)), "refused"),
    Case(
        "B-SEC-22",
        PREPARED,
        "controller 3001",
        lambda w: replace(w, inventory=replace(w.inventory, controller_access=Access("SASL_SSL", "PLAIN", "ops"))),
    ),
    Case("B-SEC-28", PREPARED, "controller 3001", tokens_taken(3001, "CTL"), "controller"),
    Case("B-SEC-28", ZK, "broker 1", tokens_taken(1, "CLIENT"), "broker"),
    Case("B-SEC-28", HYBRID, "broker 1", tokens_taken(1, "CLIENT", f"{UNSECURED}ValidatorCallbackHandler"), "named"),
    Case(
        "B-SEC-21", ZK, "controller 3001", then(CLOSED, launched(3001, zookeeper_client=STRANGE_PRINCIPAL)), "principal"
    ),
    Case("B-SEC-29", PREPARED, "controller 3000", kerberized(sasl__kerberos__service__name=None), "no sasl.kerberos"),
    Case(
        "B-SEC-29",
        PREPARED,
        "controller 3000",
        kerberized(controller__quorum__voters="3000@10.0.0.1:9093,3001@c3001:9093"),
        "names 10.0.0.1",
    ),
    Case(
        "B-SEC-29",
        PREPARED,
        "controller 3001",
        then(kerberized(), launched(0, files={"-Djava.security.krb5.conf": "/k"})),
        "krb5.conf",
    ),
    Case("B-SEC-30", PREPARED, "controller 3001", tokens_taken(3001, "CTL", VALIDATOR), "no keys of the issuer"),
    Case(
        "B-SEC-30",
        PREPARED,
        "broker 1",
        then(
            SECURED,
            values(1, sasl__mechanism__controller__protocol="OAUTHBEARER"),
            spoken_to_controllers("OAUTHBEARER"),
        ),
        "no handler for the login",
    ),
    Case("W-SEC-18", ZK, "ZooKeeper's ACLs", acls({"/config": (OPEN_READ, ZnodeAcl(31, "sasl", "kafka"))})),
)
NETWORK = (
    Case("B-NET-03", ZK, "controller 3001", placed(3001, host="b1", address="b1:9092")),
    Case("B-NET-03", ZK, "controller 3000", placed(3001, host="c3000", jmx="c3000:9090"), "JMX"),
    Case("B-NET-03", ZK, "controller 3002", placed(3002, host="zk1", address="zk1:2181"), "ZooKeeper"),
    Case("B-NET-04", PREPARED, "controller 3000", bound(3000, "0.0.0.0", 9090)),
    Case("B-NET-01", PRE, "broker 1", metadata(brokers=(0, 1))),
    Case(
        "B-NET-02",
        ZK,
        "controller 3000",
        lambda w: replace(
            w,
            inventory=replace(
                w.inventory,
                controllers=(
                    replace(w.inventory.controllers[0], address="127.0.0.1:9090"),
                    *w.inventory.controllers[1:],
                ),
            ),
        ),
    ),
)
AVAILABILITY = (
    Case("I-HLT-01", ZK, "1 topic", then(column("replicas", 0, [0]), column("topic", 0, "single-1"))),
    Case("B-HLT-02", HYBRID, "topic t0", column("replicas", 0, [0])),
    Case(
        "B-HLT-02",
        ZK,
        "topic t0",
        lambda w: with_entity(w, "topic-config", "t0", "min.insync.replicas", "3"),
        "min ISR",
    ),
    Case("W-HLT-05", ZK, "partition t0-0", lagging(2)),
    Case("W-HLT-06", ZK, "partition t0-0", lagging(2, "2027-01-01"), "expired"),
    Case("W-HLT-06", ZK, "partition t0-0", lagging(1), "another broker"),
    Case("W-HLT-03", ZK, "1 partition", lagging(2, "2027-01-01"), "expired"),
    Case("W-HLT-03", ZK, "1 partition", lagging(2, isr=(1,)), "one more"),
    Case("W-HLT-03", ZK, "1 partition", lagging(2, leader=-1), "no leader"),
    Case("B-HLT-07", ZK, "broker 0", lagging(2)),
    Case("W-HLT-03", ZK, "1 partition", metadata(unhealthy=(PartitionHealth("t0", 0, 1, (1,), (1, 2)),))),
    Case("W-HLT-04", ZK, "1 partition", column("leader", 0, -1)),
)
STRANGE = {"controller__quorum__voters": None, "controller__quorum__bootstrap__servers": "c3000:9090"}


def said_dynamic(world: World) -> World:
    """With an inventory that says so, beside files and metadata of a static quorum."""
    return replace(world, inventory=replace(world.inventory, quorum=QuorumKind.DYNAMIC))


def misplaced(*, observed: bool) -> Quorum:
    """A dynamic quorum; the process of 3001 fetches under another directory id than its dead voter has."""
    end = worlds.OFFSET + 1
    ids = [str(DirectoryId.from_bytes(bytes([9]) * 15 + bytes([number]))) for number in range(4)]
    voters = [Voter(node, end, 0, ids[at]) for at, node in enumerate(worlds.CONTROLLERS)]
    if not observed:
        return Quorum(voters[0].id, 1, end, tuple(voters))
    voters[1] = replace(voters[1], log_end_offset=-1, caught_up_ms=-1)
    return Quorum(voters[0].id, 1, end, tuple(voters), (Voter(voters[1].id, end, 20, ids[3]),))


def unfinished() -> Quorum:
    """A dynamic quorum to which 3002 was not added yet."""
    found = misplaced(observed=False)
    return replace(found, voters=found.voters[:2])


def on_disk(world: World) -> World:
    """The voter's directory id is not the one in the controller's metadata directory."""
    meta = MetaProperties(1, CLUSTER_ID, 3001, DirectoryId.from_bytes(bytes([8]) * 16))
    return directory(3001, 0, meta=meta)(with_live(world, quorum=misplaced(observed=False)))


QUORUM = (
    Case("B-QRM-01", PREPARED, "node 3001", values(3001, controller__quorum__voters="3001@c3001:9090")),
    Case("B-QRM-01", HALF, "node 0", values(0, controller__quorum__voters="3001@c3001:9090"), "broker"),
    Case("B-QRM-02", PREPARED, "node 3000", values(3000, controller__quorum__bootstrap__servers="c3000:9090")),
    Case("B-QRM-02", PREPARED, "node 3000", values(3000, **STRANGE), "a controller's file of the other kind"),
    Case("B-QRM-02", PRE, "the quorum", lambda w: with_kraft(w, kraft_version=1), "it is dynamic"),
    Case("B-QRM-02", PRE, "the quorum", said_dynamic, "it is static"),
    Case("B-QRM-03", PREPARED, "controller 3001", values(3001, **{FLAG: None})),
    Case("B-QRM-03", HYBRID, "controller 3001", values(3001, **{FLAG: "false"}), "in hybrid"),
    Case("B-QRM-04", PREPARED, "controller 3001", values(3001, process__roles="broker")),
    Case(
        "B-QRM-05",
        PRE,
        "the quorum",
        lambda w: with_live(w, quorum=Quorum(NodeId(3000), 1, 9, (Voter(NodeId(3000), 9),))),
    ),
    Case("B-QRM-05", PRE, "controller 3001", lambda w: with_live(w, quorum=misplaced(observed=True)), "an observer"),
    Case("B-QRM-05", PRE, "controller 3001", on_disk, "its directory id on disk"),
    Case("B-QRM-05", PRE, "controller 3002", lambda w: with_live(w, quorum=unfinished()), "no voter yet"),
    Case("W-QRM-09", PRE, "the KRaft metadata", lambda w: with_kraft(w, features={"kraft.version": 1})),
    Case(
        "I-QRM-06",
        ZK,
        "1 controllers",
        lambda w: replace(w, inventory=replace(w.inventory, controllers=w.inventory.controllers[:1])),
    ),
    Case(
        "W-QRM-07",
        HYBRID,
        "controller 3009",
        lambda w: with_kraft(
            w,
            controllers={
                **worlds.kraft(w).controllers,
                NodeId(3009): ControllerRegistration(NodeId(3009), uuid(2), migration_ready=True),
            },
        ),
    ),
    Case(
        "W-QRM-08",
        PRE,
        "controller 3001",
        lambda w: with_live(
            w,
            quorum=Quorum(
                NodeId(3000), 1, 9000, tuple(Voter(node, 10 if node == 3001 else 9000) for node in worlds.CONTROLLERS)
            ),
        ),
    ),
)
MIGRATION = (
    Case("B-MIG-01", HYBRID, "/migration", lambda w: with_zk(w, migration=MigrationZnode(-1, -1, -1, -1, 1))),
    Case("B-MIG-02", PRE, "the KRaft metadata", lambda w: with_kraft(w, migration_state=ZkMigrationState.NONE)),
    Case("B-MIG-17", KRAFT, "the KRaft metadata", lambda w: with_kraft(w, migration_state=ZkMigrationState.NONE)),
    Case("W-MIG-03", FINAL, "broker 1", registration(1, migrating=True)),
    Case("B-MIG-04", KRAFT, "broker 9", another_broker(9, migrating=True)),
    Case("B-MIG-05", KRAFT, "broker 1", registration(1, fenced=True)),
    Case("B-MIG-06", HYBRID, "topic-config t0", lambda w: replace(w, diff=DIFF)),
    Case("W-MIG-11", HYBRID, "topic-config t0", lambda w: replace(w, diff=DiffReport(400, 0, {}, (), idle=(IDLE,)))),
    Case(
        "W-MIG-12",
        HYBRID,
        "topic-config t0",
        lambda w: replace(w, diff=DiffReport(400, 0, {}, (), unsettled=DIFF.differences)),
    ),
    Case("B-MIG-07", HYBRID, "controller 3001", answers("controllers", 3001, NodeAnswer(False, {}))),
    Case(
        "B-MIG-07",
        HYBRID,
        "controller 3002",
        lambda w: with_kraft(
            w,
            controllers={
                **worlds.kraft(w).controllers,
                NodeId(3002): ControllerRegistration(NodeId(3002), uuid(2), migration_ready=False),
            },
        ),
        "registration",
    ),
    Case("I-MIG-08", PRE, "the KRaft metadata", same),
    Case("B-MIG-14", HYBRID, "ACL of GROUP a/b (LITERAL)", kraft_has("acl", "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW")),
    Case("B-MIG-14", KRAFT, "client-metrics-config sub", kraft_has("client-metrics-config", "sub"), "client-metrics"),
    Case("I-MIG-15", ZK, "the time from the copy to finalize", same),
    Case("I-MIG-16", PREPARED, "controllers 3000, 3001, 3002", same),
    Case(
        "W-MIG-09", HYBRID, "the KRaft metadata", lambda w: with_kraft(w, high_watermark=Unknown("one directory alone"))
    ),
    Case("W-MIG-10", HYBRID, "/migration", lambda w: with_kraft(w, offset=5000, high_watermark=5001)),
)
ROLLBACK = (
    Case("I-RBK-02", HYBRID, "/controller_epoch", lambda w: with_zk(w, controller=ControllerZnode(3000, 9, False, 0))),
    Case(
        "B-RBK-03",
        HYBRID,
        "/data/b1/d1",
        directory(1, 1, meta=MetaProperties(1, CLUSTER_ID, 1, directory_id(1, 1))),
    ),
    Case(
        "W-RBK-03",
        KRAFT,
        "/data/b1/d1",
        directory(1, 1, meta=MetaProperties(1, CLUSTER_ID, 1, directory_id(1, 1))),
    ),
    Case("B-RBK-04", PRE, "the KRaft metadata", lambda w: with_kraft(w, features={"metadata.version": 20})),
    Case(
        "W-RBK-05",
        HYBRID,
        "broker 2",
        lambda w: with_kraft(w, brokers={n: b for n, b in worlds.kraft(w).brokers.items() if n != 2}),
    ),
)
SMALL_SEGMENTS = entity("topic-config", "t0", "segment.bytes", "16384")
JWKS = "listener__name__client__oauthbearer__sasl__oauthbearer__jwks__endpoint__url"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
NEXT_RELEASE = (
    Case("W-VER-20", ZK, "broker 1", towards("4.0", values(1, log__message__format__version="3.0"))),
    Case("W-VER-20", KRAFT, "broker 2", towards("4.3", values(2, zookeeper__connect="z:1")), "left behind"),
    Case("W-VER-20", FINAL, "controller 3001", towards("4.4", values(3001, zookeeper__connect="z:1")), "controller"),
    Case("W-VER-20", ZK, "topic t0", towards("4.3", entity("topic-config", "t0", "message.format.version", "3.0"))),
    Case(
        "W-VER-20",
        ZK,
        "all brokers",
        towards("4.3", entity("broker-config", "<default>", "log.message.timestamp.difference.max.ms", "9")),
        "dynamic",
    ),
    Case("W-VER-20", ZK, "broker 1", towards("4.3", launched(1, overrides={"metrics.jmx.blacklist": "x"})), "words"),
    Case("W-VER-21", ZK, "broker 1", towards("4.3", values(1, log__dirs="/data/b1/d0,/data/b1/d1,")), "comma"),
    Case("W-VER-21", ZK, "broker 1", towards("4.0", values(1, log__segment__bytes="1048575"))),
    Case(
        "W-VER-21",
        ZK,
        "broker 1",
        towards("4.0", values(1, remote__log__manager__copier__thread__pool__size="-1")),
        "pool",
    ),
    Case("W-VER-21", ZK, "broker 1", towards("4.0", values(1, **{JWKS: "https://idp/jwks"})), "URL"),
    Case(
        "W-VER-21",
        ZK,
        "broker 1",
        towards(
            "4.3", values(1, **{JWKS: "https://idp/jwks"}), launched(1, kafka_properties={ALLOWED: "https://idp/j"})
        ),
        "another URL",
    ),
    Case("W-VER-21", ZK, "topic t0", towards("4.1", SMALL_SEGMENTS), "topic"),
    Case("W-VER-21", ZK, "broker 2", towards("4.3", entity("broker-config", "2", "num.replica.fetchers", "0"))),
    Case("W-VER-22", ZK, "broker 1", towards("4.0", values(1, metric__reporters="com.example.Reporter"))),
    Case(
        "W-VER-22", ZK, "broker 1", towards("4.0", entity("broker-config", "1", "metric.reporters", "a.B")), "dynamic"
    ),
    Case("I-VER-23", ZK, "log.message.timestamp.after.max.ms", towards("4.0")),
)
CASES = (
    *VERSIONS,
    *NEXT_RELEASE,
    *CONFIG,
    *OPERATIONS,
    *ZOOKEEPER,
    *DIRECTORIES,
    *SECURITY,
    *NETWORK,
    *AVAILABILITY,
    *QUORUM,
    *MIGRATION,
    *ROLLBACK,
)
