"""The mutable image, and what each metadata record does to it: Kafka's own replay rules, record by record.

Source: `MD/image/*Delta.java`, `MD/metadata/PartitionRegistration.java` (MD = metadata/src/main/java/org/apache/kafka).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import quote

from migrate.errors import ReplayError
from migrate.model.columns import PartitionColumns
from migrate.model.config_keys import DEFAULT_ENTITY
from migrate.model.ids import MIGRATING, DirectoryId, NodeId
from migrate.model.secrets import Digester, is_password_config
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ControllerRegistration, Registration
from migrate.protocol import records
from migrate.protocol.loader import Struct, Values

NO_ELR: Final[tuple[list[int], list[int]]] = ([], [])


class PartitionRow(NamedTuple):
    """One partition; rows are replaced, never changed, so that views may share their lists."""

    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    leader: int
    leader_epoch: int
    recovery_state: int
    directories: list[str]
    partition_epoch: int
    elr: tuple[list[int], list[int]] = NO_ELR  # eligible leader replicas, and the last known ones (KIP-966)


class Topic(NamedTuple):
    """A topic's name and its partitions, by id; `where` is the TopicRecord."""

    name: str
    where: str
    partitions: dict[int, PartitionRow]


@dataclass(slots=True)
class State:
    """Everything that metadata records set.

    `settings` holds what becomes entity rows, by (kind, key) and name: (value, where).  The two counts of
    changes, to partition rows and to everything else, tell whether columns made before still hold.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    brokers: dict[int, tuple[Registration, str]] = field(default_factory=dict)
    controllers: dict[int, ControllerRegistration] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    settings: dict[tuple[str, str], dict[str, tuple[str, str]]] = field(default_factory=dict)
    acls: dict[str, tuple[str, str]] = field(default_factory=dict)
    migration_state: ZkMigrationState = ZkMigrationState.NONE
    kraft_version: int = 0
    partition_changes: int = 0
    entity_changes: int = 0

    def put(self, kind: str, key: str, name: str, value: str | None, where: str) -> None:
        """Set a setting, or remove it (None); an entity without settings is gone."""
        if value is not None:
            self.settings.setdefault((kind, key), {})[name] = (value, where)
            return
        names = self.settings.get((kind, key))
        if names is not None:
            names.pop(name, None)
            if not names:
                del self.settings[kind, key]


def partition_columns(state: State) -> PartitionColumns:
    columns = PartitionColumns()
    for name in sorted(state.topic_ids):
        topic_id = state.topic_ids[name]
        partitions = state.topics[topic_id].partitions
        for partition in sorted(partitions):
            row = partitions[partition]
            columns.topic.append(name)
            columns.topic_id.append(topic_id)
            columns.partition.append(partition)
            columns.replicas.append(row.replicas)
            columns.isr.append(row.isr)
            columns.adding.append(row.adding)
            columns.removing.append(row.removing)
            columns.leader.append(row.leader)
            columns.leader_epoch.append(row.leader_epoch)
            columns.recovery_state.append(row.recovery_state)
            columns.directories.append(row.directories)
            columns.revision.append(row.partition_epoch)
    return columns


TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

CONFIG_KINDS: Final = {
    TOPIC_RESOURCE: "topic-config",
    BROKER_RESOURCE: "broker-config",
    8: "broker-logger-config",
    16: "client-metrics-config",
    32: "group-config",
}
SCRAM_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
# the enums of Kafka's ACLs, by code (`org.apache.kafka.common.acl`, `org.apache.kafka.common.resource`)
_Resource = Enum("_Resource", "UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER", start=0)
_Pattern = Enum("_Pattern", "UNKNOWN ANY MATCH LITERAL PREFIXED", start=0)
_Operation = Enum(
    "_Operation",
    "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS"
    " IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT",
    start=0,
)
_Permission = Enum("_Permission", "UNKNOWN ANY DENY ALLOW", start=0)


def _named(names: type[Enum], code: int) -> str:
    """The enum's name; a code that Kafka 4.4 lacks stays visible as its number."""
    try:
        return names(code).name
    except ValueError:
        return f"UNKNOWN({code})"


def acl_key(values: Values) -> str:
    """`TOPIC|LITERAL|name|principal|host|READ|ALLOW` of an AccessControlEntryRecord."""
    return "|".join(
        (
            _named(_Resource, values["resourceType"]),
            _named(_Pattern, values["patternType"]),
            *(quote(values[name], safe="*:") for name in ("resourceName", "principal", "host")),
            _named(_Operation, values["operation"]),
            _named(_Permission, values["permissionType"]),
        )
    )


def quota_key(entity: Iterable[Values]) -> str:
    """`client-id=a/user=<default>` of a ClientQuotaRecord's entity: parts sorted by type, names quoted."""
    parts = sorted(
        ((part["entityType"], part["entityName"]) for part in entity), key=lambda part: (part[0], part[1] or "")
    )
    return "/".join(f"{kind}={DEFAULT_ENTITY if name is None else quote(name, safe='')}" for kind, name in parts)


def scram_mechanism(code: int) -> str:
    return SCRAM_MECHANISMS.get(code, f"SCRAM-UNKNOWN({code})")


def endpoint(values: Values) -> str:
    """`NAME://host:port` of a registration's endpoint; an IPv6 host stands in brackets, as in `listeners`."""
    host = f"[{values['host']}]" if ":" in values["host"] else values["host"]
    return f"{values['name']}://{host}:{values['port']}"


Rule = Callable[[State, Values, str, Digester], None]

_MIGRATING: Final = str(MIGRATING)
_KEEP_FLAG: Final = 0  # BrokerRegistrationFencingChange.NONE, BrokerRegistrationInControlledShutdownChange.NONE


# -- topics and partitions ---------------------------------------------------------------------------------------
def _topic_of(state: State, topic_id: str, where: str) -> Topic:
    topic = state.topics.get(topic_id)
    if topic is None:
        raise ReplayError(f"the topic {topic_id} is unknown", where=where)
    return topic


def _topic(state: State, values: Values, where: str, _: Digester) -> None:
    topic_id, name = values["topicId"], values["name"]
    if topic_id in state.topics or name in state.topic_ids:
        raise ReplayError(f"the topic {name} ({topic_id}) is created twice", where=where)
    state.topics[topic_id] = Topic(name, where, {})
    state.topic_ids[name] = topic_id


def _remove_topic(state: State, values: Values, where: str, _: Digester) -> None:
    topic = _topic_of(state, values["topicId"], where)
    del state.topics[values["topicId"]]
    del state.topic_ids[topic.name]
    drop_topic_settings(state, topic.name)


def drop_topic_settings(state: State, name: str) -> None:
    state.settings.pop((CONFIG_KINDS[TOPIC_RESOURCE], name), None)


def _directories(listed: list[str], replicas: list[int], where: str) -> list[str]:
    """One directory a replica; none, or MIGRATING for all, means MIGRATING for each replica."""
    if len(listed) == len(replicas):
        return listed
    if all(entry == _MIGRATING for entry in listed):
        return [_MIGRATING] * len(replicas)
    raise ReplayError(f"a partition has {len(replicas)} replicas and {len(listed)} directories", where=where)


def _elr(values: Values, before: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
    if "eligibleLeaderReplicas" not in values and "lastKnownElr" not in values:
        return before  # the same tuple for nearly all partitions
    return values.get("eligibleLeaderReplicas", before[0]), values.get("lastKnownElr", before[1])


def _partition(state: State, values: Values, where: str, _: Digester) -> None:
    topic = _topic_of(state, values["topicId"], where)
    topic.partitions[values["partitionId"]] = PartitionRow(
        replicas=values["replicas"],
        isr=values["isr"],
        adding=values["addingReplicas"],
        removing=values["removingReplicas"],
        leader=values["leader"],
        leader_epoch=values["leaderEpoch"],
        recovery_state=values.get("leaderRecoveryState", 0),
        directories=_directories(values.get("directories", []), values["replicas"], where),
        partition_epoch=values["partitionEpoch"],
        elr=_elr(values, NO_ELR),
    )


def _partition_change(state: State, values: Values, where: str, _: Digester) -> None:
    topic = _topic_of(state, values["topicId"], where)
    before = topic.partitions.get(values["partitionId"])
    if before is None:
        raise ReplayError(f"the partition {topic.name}-{values['partitionId']} is unknown", where=where)
    replicas = values.get("replicas", before.replicas)
    leader_named = "leader" in values  # NO_LEADER_CHANGE is the default, and never stands in the values
    topic.partitions[values["partitionId"]] = PartitionRow(
        replicas=replicas,
        isr=values.get("isr", before.isr),
        adding=values.get("addingReplicas", before.adding),
        removing=values.get("removingReplicas", before.removing),
        leader=values.get("leader", before.leader),
        leader_epoch=before.leader_epoch + leader_named,
        recovery_state=values.get("leaderRecoveryState", before.recovery_state),
        directories=_directories(values.get("directories", before.directories), replicas, where),
        partition_epoch=before.partition_epoch + 1,
        elr=_elr(values, before.elr),
    )


def _clear_elr(state: State, values: Values, where: str, _: Digester) -> None:
    """A partition that had any counts it as a change (`TopicDelta.maybeClearElr`)."""
    name = values["topicName"]  # empty: of all topics
    if name and name not in state.topic_ids:
        raise ReplayError(f"the topic {name} is unknown", where=where)
    topics = [state.topics[state.topic_ids[name]]] if name else list(state.topics.values())
    for partitions in (topic.partitions for topic in topics):
        for number, row in partitions.items():
            if any(row.elr):
                partitions[number] = row._replace(partition_epoch=row.partition_epoch + 1, elr=NO_ELR)


# -- brokers and controllers -------------------------------------------------------------------------------------
def _register_broker(state: State, values: Values, where: str, _: Digester) -> None:
    broker = NodeId(values["brokerId"])
    directories = frozenset(DirectoryId(entry) for entry in values.get("logDirs", ()))
    registration = Registration(
        id=broker,
        epoch=values["brokerEpoch"],
        incarnation=values["incarnationId"],
        migrating=values.get("isMigratingZkBroker", False),
        fenced=values["fenced"],
        in_controlled_shutdown=values.get("inControlledShutdown", False),
        log_dirs=directories,
        endpoints=tuple(sorted(endpoint(entry) for entry in values["endPoints"])),
        rack=values["rack"],
        at_start=directories,
    )
    state.brokers[broker] = (registration, where)


def _broker(state: State, broker: int, epoch: int, where: str) -> Registration:
    """The registration of that broker and epoch (`ClusterDelta.getBrokerOrThrow`)."""
    if broker not in state.brokers:
        raise ReplayError(f"the broker {broker} is not registered", where=where)
    registration, _ = state.brokers[broker]
    if registration.epoch != epoch:
        raise ReplayError(f"the broker {broker} has the epoch {registration.epoch}, not {epoch}", where=where)
    return registration


def _unregister_broker(state: State, values: Values, where: str, _: Digester) -> None:
    _broker(state, values["brokerId"], values["brokerEpoch"], where)
    del state.brokers[values["brokerId"]]


def _fence_broker(state: State, values: Values, where: str, _: Digester, *, fenced: bool = True) -> None:
    registration = _broker(state, values["id"], values["epoch"], where)
    state.brokers[values["id"]] = (replace(registration, fenced=fenced), where)


def _change_broker(state: State, values: Values, where: str, _: Digester) -> None:
    registration = _broker(state, values["brokerId"], values["brokerEpoch"], where)
    fenced, shutdown = values.get("fenced", _KEEP_FLAG), values.get("inControlledShutdown", _KEEP_FLAG)
    if fenced not in {-1, 0, 1} or shutdown not in {0, 1}:
        raise ReplayError(f"a broker's change has fenced {fenced} and inControlledShutdown {shutdown}", where=where)
    if fenced:
        registration = replace(registration, fenced=fenced > 0)
    if shutdown:
        registration = replace(registration, in_controlled_shutdown=True)
    if values.get("logDirs"):  # empty is unchanged, never "no directories"
        registration = replace(registration, log_dirs=frozenset(DirectoryId(entry) for entry in values["logDirs"]))
    state.brokers[values["brokerId"]] = (registration, where)


def _register_controller(state: State, values: Values, _where: str, _: Digester) -> None:
    controller = NodeId(values["controllerId"])
    state.controllers[controller] = ControllerRegistration(
        controller, values["incarnationId"], values["zkMigrationReady"]
    )


def _unregister_controller(state: State, values: Values, _where: str, _: Digester) -> None:
    state.controllers.pop(values["controllerId"], None)  # one that is not registered is no error to Kafka


# -- settings ----------------------------------------------------------------------------------------------------
def _config(state: State, values: Values, where: str, digester: Digester) -> None:
    resource, key, value = values["resourceType"], values["resourceName"], values["value"]
    if resource == BROKER_RESOURCE and not key:
        key = DEFAULT_ENTITY  # of all brokers
    if value is not None and is_password_config(values["name"]):
        value = digester.digest(value)
    state.put(CONFIG_KINDS.get(resource, f"config-{resource}"), key, values["name"], value, where)


def _client_quota(state: State, values: Values, where: str, _: Digester) -> None:
    value = None if values["remove"] else repr(values["value"])
    state.put("client-quota", quota_key(values["entity"]), values["key"], value, where)


def _producer_ids(state: State, values: Values, where: str, _: Digester) -> None:
    state.put("producer-ids", "", "next_producer_id", str(values["nextProducerId"]), where)


def _feature_level(state: State, values: Values, _where: str, _: Digester) -> None:
    if values["featureLevel"] == 0:
        state.features.pop(values["name"], None)
    else:
        state.features[values["name"]] = values["featureLevel"]


def _migration_state(state: State, values: Values, where: str, _: Digester) -> None:
    try:
        state.migration_state = ZkMigrationState(values["zkMigrationState"])
    except ValueError as error:
        raise ReplayError(f"the migration state {values['zkMigrationState']} is unknown", where=where) from error


# -- security ----------------------------------------------------------------------------------------------------
def _scram(state: State, values: Values, where: str, digester: Digester) -> None:
    mechanism, user = scram_mechanism(values["mechanism"]), values["name"]
    for name, source in (("salt", "salt"), ("stored_key", "storedKey"), ("server_key", "serverKey")):
        state.put("scram", user, f"{mechanism}.{name}", digester.digest(values[source]), where)
    state.put("scram", user, f"{mechanism}.iterations", str(values["iterations"]), where)


def _remove_scram(state: State, values: Values, where: str, _: Digester) -> None:
    mechanism = scram_mechanism(values["mechanism"])
    for name in ("salt", "stored_key", "server_key", "iterations"):
        state.put("scram", values["name"], f"{mechanism}.{name}", None, where)


def _token(state: State, values: Values, where: str, digester: Digester) -> None:
    key = digester.digest(values["tokenId"])
    rows = {
        "owner": values["owner"],
        "requester": values["requester"],
        "renewers": ",".join(sorted(values["renewers"])),
        "issue_timestamp": str(values["issueTimestamp"]),
        "max_timestamp": str(values["maxTimestamp"]),
        "expiration_timestamp": str(values["expirationTimestamp"]),
    }
    for name, value in rows.items():
        state.put("delegation-token", key, name, value, where)


def _remove_token(state: State, values: Values, _where: str, digester: Digester) -> None:
    state.settings.pop(("delegation-token", digester.digest(values["tokenId"])), None)


def _acl(state: State, values: Values, where: str, _: Digester) -> None:
    state.acls[values["id"]] = (acl_key(values), where)


def _remove_acl(state: State, values: Values, where: str, _: Digester) -> None:
    if state.acls.pop(values["id"], None) is None:
        raise ReplayError(f"the ACL {values['id']} is unknown", where=where)


RULES: Final[Mapping[Struct, Rule]] = {
    records.TOPIC: _topic,
    records.REMOVE_TOPIC: _remove_topic,
    records.PARTITION: _partition,
    records.PARTITION_CHANGE: _partition_change,
    records.CLEAR_ELR: _clear_elr,
    records.REGISTER_BROKER: _register_broker,
    records.UNREGISTER_BROKER: _unregister_broker,
    records.FENCE_BROKER: _fence_broker,
    records.UNFENCE_BROKER: partial(_fence_broker, fenced=False),
    records.BROKER_REGISTRATION_CHANGE: _change_broker,
    records.REGISTER_CONTROLLER: _register_controller,
    records.UNREGISTER_CONTROLLER: _unregister_controller,
    records.CONFIG: _config,
    records.CLIENT_QUOTA: _client_quota,
    records.PRODUCER_IDS: _producer_ids,
    records.FEATURE_LEVEL: _feature_level,
    records.ZK_MIGRATION_STATE: _migration_state,
    records.USER_SCRAM_CREDENTIAL: _scram,
    records.REMOVE_USER_SCRAM_CREDENTIAL: _remove_scram,
    records.DELEGATION_TOKEN: _token,
    records.REMOVE_DELEGATION_TOKEN: _remove_token,
    records.ACCESS_CONTROL_ENTRY: _acl,
    records.REMOVE_ACCESS_CONTROL_ENTRY: _remove_acl,
}


_PARTITION_TABLES: Final = frozenset({records.PARTITION, records.PARTITION_CHANGE, records.CLEAR_ELR})
_TOPIC_TABLES: Final = frozenset({records.TOPIC, records.REMOVE_TOPIC})


def apply_record(state: State, table: Struct, values: Values, where: str, digester: Digester) -> None:
    """Change the image as that record says; a NoOpRecord changes nothing.  Raises ReplayError."""
    if table is records.NO_OP:
        return
    if table not in RULES:
        raise ReplayError(f"{table.name} has no rule", where=where)
    try:
        RULES[table](state, values, where, digester)
    except ValueError as error:  # an identifier out of its range
        raise ReplayError(str(error), where=where) from error
    if table in _PARTITION_TABLES:
        state.partition_changes += 1
    else:
        state.entity_changes += 1
        state.partition_changes += table in _TOPIC_TABLES
