"""Replay rules: what each record does to the image, and which contradictions are refused."""

from __future__ import annotations

import base64

import pytest

from migrate.errors import ReplayError
from migrate.kraft.image import Image
from migrate.model.ids import MIGRATING, DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView
from migrate.protocol import records
from tests.kraft.logs import D1, D2, D3, T1, T2, Entry, change, log, partition, register, topic

CHANGE = records.BROKER_REGISTRATION_CHANGE
DIGESTER = Digester(b"k" * 32)
SCRAM = {"name": "alice", "mechanism": 1, "salt": b"s", "storedKey": b"k", "serverKey": b"v", "iterations": 4096}
TOKEN = {
    "owner": "User:alice",
    "requester": "User:bob",
    "renewers": ["User:z", "User:a"],
    "issueTimestamp": 1,
    "maxTimestamp": 3,
    "expirationTimestamp": 2,
    "tokenId": "token-1",
}
ACL = {
    "id": T1,
    "resourceType": 2,
    "resourceName": "ä|*",
    "patternType": 3,
    "principal": "User:CN=x,O=y",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}


def view_of(*entries: Entry) -> KraftView:
    """The view after these records."""
    image = Image(DIGESTER)
    image.apply_batches(log(*entries), below=None)
    return image.view("cluster", Unknown("a test"), "a test")


def rows(view: KraftView, kind: str) -> dict[tuple[str, str], str]:
    """The entity rows of a kind: (key, name) -> value."""
    columns = view.entities
    found = zip(columns.kind, columns.key, columns.name, columns.value, strict=True)
    return {(key, name): value for entry, key, name, value in found if entry == kind}


class TestPartitions:
    """PartitionRecord, PartitionChangeRecord, TopicRecord, RemoveTopicRecord."""

    def test_a_partition_record_sets_every_column(self) -> None:
        """One row, as written."""
        values = {
            **partition(T1, 2, [1, 2], [D1, D2])[1],
            "isr": [2],
            "addingReplicas": [3],
            "removingReplicas": [1],
            "leaderRecoveryState": 1,
        }
        columns = view_of(topic("a", T1), (records.PARTITION, values)).partitions
        assert (columns.topic, columns.topic_id, columns.partition) == (["a"], [T1], [2])
        assert (columns.replicas, columns.isr) == ([[1, 2]], [[2]])
        assert (columns.adding, columns.removing) == ([[3]], [[1]])
        assert (columns.leader, columns.leader_epoch, columns.recovery_state) == ([1], [4], [1])
        assert (columns.directories, columns.revision) == ([[D1, D2]], [9])

    def test_a_version_0_partition_is_migrating_everywhere(self) -> None:
        """`PartitionRegistration.defaultToMigrating`: the copy from ZooKeeper writes these."""
        values = {**partition(T1, 0, [1, 2, 3], [])[1]}
        columns = view_of(topic("a", T1), (records.PARTITION, values, 0)).partitions
        assert columns.directories == [[str(MIGRATING)] * 3]

    def test_an_absent_field_of_a_change_is_unchanged(self) -> None:
        """Only the partition epoch rises."""
        columns = view_of(topic("a", T1), partition(T1, 0, [1, 2], [D1, D2]), change(T1, 0)).partitions
        assert (columns.replicas, columns.isr, columns.directories) == ([[1, 2]], [[1, 2]], [[D1, D2]])
        assert (columns.leader, columns.leader_epoch, columns.revision) == ([1], [4], [10])

    @pytest.mark.parametrize("leader", [1, 2, -1])
    def test_a_named_leader_raises_the_leader_epoch_even_if_it_is_the_same(self, leader: int) -> None:
        """-1 is no leader, -2 (absent) is no change."""
        columns = view_of(topic("a", T1), partition(T1, 0, [1, 2], [D1, D2]), change(T1, 0, leader=leader)).partitions
        assert (columns.leader, columns.leader_epoch, columns.revision) == ([leader], [5], [10])

    def test_a_change_sets_what_it_names(self) -> None:
        """Empty lists are values, not absences."""
        columns = view_of(
            topic("a", T1),
            partition(T1, 0, [1, 2], [D1, D2]),
            change(
                T1,
                0,
                isr=[2],
                replicas=[2, 3],
                directories=[D2, D3],
                addingReplicas=[3],
                removingReplicas=[],
                leaderRecoveryState=1,
            ),
            change(T1, 0, addingReplicas=[], leaderRecoveryState=0),
        ).partitions
        assert (columns.isr, columns.replicas, columns.directories) == ([[2]], [[2, 3]], [[D2, D3]])
        assert (columns.adding, columns.recovery_state, columns.revision) == ([[]], [0], [11])

    def test_directories_that_are_all_migrating_follow_the_replicas(self) -> None:
        """A reassignment of a partition that nobody has placed yet."""
        columns = view_of(
            topic("a", T1), (records.PARTITION, partition(T1, 0, [1], [])[1], 0), change(T1, 0, replicas=[1, 2, 3])
        ).partitions
        assert columns.directories == [[str(MIGRATING)] * 3]

    def test_a_change_never_alters_a_view_that_was_given_out(self) -> None:
        """Rows are replaced, never changed in place."""
        image = Image(DIGESTER)
        image.apply_batches(log(topic("a", T1), partition(T1, 0, [1, 2], [D1, D2])), below=None)
        before = image.view("c", 2, "s")
        image.apply_batches(log(change(T1, 0, isr=[1], directories=[D3, D2]), base=2), below=None)
        assert (before.partitions.isr, before.partitions.directories) == ([[1, 2]], [[D1, D2]])
        assert image.view("c", 3, "s").partitions.directories == [[D3, D2]]

    @pytest.mark.parametrize(
        ("named", "raised"), [("a", [11, 9, 10]), ("b", [10, 9, 11]), ("", [11, 9, 11])], ids=["a", "b", "all topics"]
    )
    def test_clearing_eligible_leaders_counts_as_a_change_where_there_are_any(
        self, named: str, raised: list[int]
    ) -> None:
        """KIP-966: of one topic or of all; partitions that have none are left as they are, and it is done once."""
        clear = (records.CLEAR_ELR, {"topicName": named})
        columns = view_of(
            topic("a", T1),
            topic("b", T2),
            (records.PARTITION, {**partition(T1, 0, [1, 2], [D1, D2])[1], "lastKnownElr": [2]}, 2),
            partition(T1, 1, [1, 2], [D1, D2]),
            partition(T2, 0, [1, 2], [D1, D2]),
            (records.PARTITION_CHANGE, {"partitionId": 0, "topicId": T1, "isr": [1]}, 2),  # keeps them
            (records.PARTITION_CHANGE, {"partitionId": 0, "topicId": T2, "eligibleLeaderReplicas": [2]}, 2),
            clear,
            clear,
        ).partitions
        assert list(zip(columns.topic, columns.partition, strict=True)) == [("a", 0), ("a", 1), ("b", 0)]
        assert columns.revision == raised

    def test_a_removed_topic_takes_its_partitions_and_configs_along(self) -> None:
        """And its name is free for another id."""
        config = (records.CONFIG, {"resourceType": 2, "resourceName": "a", "name": "retention.ms", "value": "5"})
        view = view_of(
            topic("a", T1),
            partition(T1, 0, [1], [D1]),
            config,
            (records.REMOVE_TOPIC, {"topicId": T1}),
            topic("a", T2),
        )
        assert len(view.partitions) == 0
        assert rows(view, "topic-config") == {}
        assert rows(view, "topic") == {("a", "topic_id"): T2}

    def test_rows_stand_by_topic_name_and_partition(self) -> None:
        """Whatever their order in the log."""
        columns = view_of(
            topic("b", T1),
            topic("a", T2),
            partition(T1, 10, [1], [D1]),
            partition(T1, 9, [1], [D1]),
            partition(T2, 0, [1], [D1]),
        ).partitions
        assert list(zip(columns.topic, columns.partition, strict=True)) == [("a", 0), ("b", 9), ("b", 10)]


class TestBrokers:
    """Registrations, fencing, changes, removal; controllers."""

    def test_a_registration_sets_everything(self) -> None:
        """Directories as a set, endpoints sorted, the rack where there is one."""
        extra = {"isMigratingZkBroker": True, "inControlledShutdown": True, "fenced": False, "rack": "r1"}
        view = view_of(register(1, 77, [D2, D1], **extra))
        found = view.brokers[NodeId(1)]
        assert (found.epoch, found.incarnation, found.rack) == (77, T1, "r1")
        assert (found.migrating, found.fenced, found.in_controlled_shutdown) == (True, False, True)
        assert found.log_dirs == {DirectoryId(D1), DirectoryId(D2)}
        assert found.endpoints == ("INTERNAL://127.0.0.1:9001",)
        assert rows(view, "broker") == {("1", "endpoints"): "INTERNAL://127.0.0.1:9001", ("1", "rack"): "r1"}

    def test_an_ipv6_endpoint_stands_in_brackets(self) -> None:
        """As listeners are written."""
        endpoints = [{"name": "B", "host": "::1", "port": 2}, {"name": "A", "host": "h", "port": 1}]
        assert view_of(register(1, 1, [], endPoints=endpoints)).brokers[NodeId(1)].endpoints == (
            "A://h:1",
            "B://[::1]:2",
        )

    def test_a_registration_replaces_the_one_before(self) -> None:
        """Nothing of it stays: no directory, no rack."""
        view = view_of(register(1, 1, [D1], rack="r1", isMigratingZkBroker=True), register(1, 2, [D2]))
        found = view.brokers[NodeId(1)]
        assert (found.epoch, found.rack, found.migrating) == (2, None, False)
        assert found.log_dirs == {DirectoryId(D2)}
        assert ("1", "rack") not in rows(view, "broker")

    @pytest.mark.parametrize(
        ("change_fields", "fenced", "shutdown", "log_dirs"),
        [
            ({}, True, False, {D1, D2}),
            ({"fenced": -1}, False, False, {D1, D2}),
            ({"fenced": 1}, True, False, {D1, D2}),
            ({"inControlledShutdown": 1}, True, True, {D1, D2}),
            ({"logDirs": [D1]}, True, False, {D1}),
            ({"logDirs": []}, True, False, {D1, D2}),
        ],
    )
    def test_a_change_changes_what_it_names(
        self, change_fields: dict[str, object], fenced: bool, shutdown: bool, log_dirs: set[str]
    ) -> None:
        """Empty logDirs is unchanged, never "no directories"."""
        record = (records.BROKER_REGISTRATION_CHANGE, {"brokerId": 1, "brokerEpoch": 5, **change_fields})
        found = view_of(register(1, 5, [D1, D2]), record).brokers[NodeId(1)]
        assert (found.fenced, found.in_controlled_shutdown) == (fenced, shutdown)
        assert found.log_dirs == log_dirs

    def test_old_fencing_records_work_too(self) -> None:
        """Written below metadata.version 3.3."""
        unfenced = view_of(register(1, 5, []), (records.UNFENCE_BROKER, {"id": 1, "epoch": 5}))
        fenced = view_of(register(1, 5, [], fenced=False), (records.FENCE_BROKER, {"id": 1, "epoch": 5}))
        assert not unfenced.brokers[NodeId(1)].fenced
        assert fenced.brokers[NodeId(1)].fenced

    def test_an_unregistered_broker_is_gone(self) -> None:
        """From both places where it stands."""
        view = view_of(register(1, 5, []), (records.UNREGISTER_BROKER, {"brokerId": 1, "brokerEpoch": 5}))
        assert dict(view.brokers) == {}
        assert rows(view, "broker") == {}

    def test_a_controller_says_whether_it_has_the_flag(self) -> None:
        """The last registration counts."""
        first = {"controllerId": 3000, "incarnationId": T1, "zkMigrationReady": True}
        view = view_of(
            (records.REGISTER_CONTROLLER, first),
            (records.REGISTER_CONTROLLER, {**first, "incarnationId": T2, "zkMigrationReady": False}),
        )
        found = view.controllers[NodeId(3000)]
        assert (found.incarnation, found.migration_ready) == (T2, False)

    def test_an_unregistered_controller_is_gone(self) -> None:
        """KIP-1312.  One that was never registered is no error to Kafka (`ClusterDelta.replay`)."""
        known = {"controllerId": 3000, "incarnationId": T1, "zkMigrationReady": False}
        gone = [(records.UNREGISTER_CONTROLLER, {"controllerId": node}) for node in (3000, 3001)]
        view = view_of((records.REGISTER_CONTROLLER, known), *gone)
        assert dict(view.controllers) == {}

    def test_cordoned_directories_change_nothing_else(self) -> None:
        """KIP-1066: a cordoned directory is still one of the broker's, and a change may name nothing but it."""
        plain = view_of(register(1, 5, [D1, D2], fenced=False))
        cordoned = view_of(
            register(1, 5, [D1, D2], fenced=False, cordonedLogDirs=[D2]),
            (CHANGE, {"brokerId": 1, "brokerEpoch": 5, "cordonedLogDirs": []}),
        )
        assert cordoned.brokers == plain.brokers


class TestSettings:
    """Configs, quotas, producer ids, features, the migration's state."""

    @pytest.mark.parametrize(
        ("resource", "name", "kind", "key"),
        [
            (2, "a", "topic-config", "a"),
            (4, "1", "broker-config", "1"),
            (4, "", "broker-config", "<default>"),
            (8, "1", "broker-logger-config", "1"),
            (16, "metrics", "client-metrics-config", "metrics"),
            (99, "new", "config-99", "new"),
        ],
    )
    def test_configs_stand_by_resource(self, resource: int, name: str, kind: str, key: str) -> None:
        """The empty broker name is the default of all brokers."""
        record = {"resourceType": resource, "resourceName": name, "name": "log.cleaner.threads", "value": "2"}
        view = view_of((records.CONFIG, record))
        assert rows(view, kind) == {(key, "log.cleaner.threads"): "2"}
        assert view.entities.where == ["offset 0"]

    def test_a_null_value_deletes_a_config(self) -> None:
        """And a second deletion is nothing."""
        record = {"resourceType": 2, "resourceName": "a", "name": "retention.ms", "value": "1"}
        gone = {**record, "value": None}
        view = view_of((records.CONFIG, record), (records.CONFIG, gone), (records.CONFIG, gone))
        assert rows(view, "topic-config") == {}

    def test_password_configs_stand_as_digests(self) -> None:
        """With and without a listener's prefix."""
        entries = [
            (records.CONFIG, {"resourceType": 4, "resourceName": "1", "name": name, "value": "secret"})
            for name in ("ssl.key.password", "listener.name.internal.ssl.keystore.password", "log.dirs")
        ]
        view = view_of(*entries)
        digest = DIGESTER.digest("secret")
        assert list(rows(view, "broker-config").values()).count(digest) == 2
        assert rows(view, "broker-config")["1", "log.dirs"] == "secret"

    def test_quotas_stand_by_sorted_quoted_parts(self) -> None:
        """A default entity is null in the record."""
        entity = [{"entityType": "user", "entityName": "b@x/y"}, {"entityType": "client-id", "entityName": None}]
        quota = {"entity": entity, "key": "producer_byte_rate", "value": 1e7, "remove": False}
        view = view_of((records.CLIENT_QUOTA, quota))
        key = ("client-id=<default>/user=b%40x%2Fy", "producer_byte_rate")
        assert rows(view, "client-quota") == {key: "10000000.0"}
        removed = view_of((records.CLIENT_QUOTA, quota), (records.CLIENT_QUOTA, {**quota, "remove": True}))
        assert rows(removed, "client-quota") == {}

    def test_a_client_called_default_is_not_the_default_client(self) -> None:
        """Quoting keeps the two apart."""
        entity = [{"entityType": "client-id", "entityName": "<default>"}]
        view = view_of((records.CLIENT_QUOTA, {"entity": entity, "key": "k", "value": 1.0}))
        assert rows(view, "client-quota") == {("client-id=%3Cdefault%3E", "k"): "1.0"}

    def test_producer_ids_keep_the_last_block(self) -> None:
        """One row."""
        entries = [(records.PRODUCER_IDS, {"brokerId": -1, "nextProducerId": number}) for number in (1000, 2000)]
        assert rows(view_of(*entries), "producer-ids") == {("", "next_producer_id"): "2000"}

    def test_a_feature_at_level_0_is_gone(self) -> None:
        """Others stay."""
        entries = [(records.FEATURE_LEVEL, {"name": name, "featureLevel": 3}) for name in ("metadata.version", "x")]
        view = view_of(*entries, (records.FEATURE_LEVEL, {"name": "x", "featureLevel": 0}))
        assert view.features == {"metadata.version": 3}

    @pytest.mark.parametrize("state", list(ZkMigrationState))
    def test_the_migration_state_is_read(self, state: ZkMigrationState) -> None:
        """All four."""
        assert view_of((records.ZK_MIGRATION_STATE, {"zkMigrationState": int(state)})).migration_state is state


class TestSecurity:
    """SCRAM, tokens, ACLs."""

    def test_scram_keys_stand_as_digests_of_their_bytes(self) -> None:
        """Iterations are plain text."""
        view = view_of((records.USER_SCRAM_CREDENTIAL, SCRAM))
        assert rows(view, "scram") == {
            ("alice", "SCRAM-SHA-256.salt"): DIGESTER.digest(b"s"),
            ("alice", "SCRAM-SHA-256.stored_key"): DIGESTER.digest(b"k"),
            ("alice", "SCRAM-SHA-256.server_key"): DIGESTER.digest(b"v"),
            ("alice", "SCRAM-SHA-256.iterations"): "4096",
        }

    def test_removing_one_mechanism_leaves_the_other(self) -> None:
        """A user may have both."""
        other = {**SCRAM, "mechanism": 2}
        view = view_of(
            (records.USER_SCRAM_CREDENTIAL, SCRAM),
            (records.USER_SCRAM_CREDENTIAL, other),
            (records.REMOVE_USER_SCRAM_CREDENTIAL, {"name": "alice", "mechanism": 1}),
        )
        assert {name.split(".")[0] for _, name in rows(view, "scram")} == {"SCRAM-SHA-512"}

    def test_a_token_stands_under_the_digest_of_its_id(self) -> None:
        """Renewers sorted; gone when removed."""
        view = view_of((records.DELEGATION_TOKEN, TOKEN))
        key = DIGESTER.digest("token-1")
        assert rows(view, "delegation-token") == {
            (key, "owner"): "User:alice",
            (key, "requester"): "User:bob",
            (key, "renewers"): "User:a,User:z",
            (key, "issue_timestamp"): "1",
            (key, "max_timestamp"): "3",
            (key, "expiration_timestamp"): "2",
        }
        removed = view_of((records.DELEGATION_TOKEN, TOKEN), (records.REMOVE_DELEGATION_TOKEN, {"tokenId": "token-1"}))
        assert rows(removed, "delegation-token") == {}

    def test_an_acl_is_spelled_with_kafkas_names(self) -> None:
        """Names, principals and hosts are quoted: a bar inside a name is no separator."""
        key = "TOPIC|LITERAL|%C3%A4%7C*|User:CN%3Dx%2CO%3Dy|*|READ|ALLOW"
        view = view_of((records.ACCESS_CONTROL_ENTRY, ACL))
        assert rows(view, "acl") == {(key, "present"): "true"}

    def test_an_acl_under_two_ids_is_one_row_until_both_are_removed(self) -> None:
        """Nothing but the id tells them apart."""
        twice = [(records.ACCESS_CONTROL_ENTRY, {**ACL, "id": key}) for key in (T1, T2)]
        gone = [(records.REMOVE_ACCESS_CONTROL_ENTRY, {"id": key}) for key in (T1, T2)]
        assert len(rows(view_of(*twice), "acl")) == 1
        assert len(rows(view_of(*twice, gone[0]), "acl")) == 1
        assert len(rows(view_of(*twice, *gone), "acl")) == 0

    def test_codes_that_kafka_lacks_stay_visible(self) -> None:
        """Never another name by accident."""
        odd = {**ACL, "operation": 99, "resourceType": -1}
        ((key, _),) = rows(view_of((records.ACCESS_CONTROL_ENTRY, odd)), "acl")
        assert key.startswith("UNKNOWN(-1)|")
        assert "|UNKNOWN(99)|" in key

    def test_no_secret_stands_in_a_view(self) -> None:
        """Neither in clear nor in base64."""
        secret = b"a-very-secret-salt"
        view = view_of(
            (records.USER_SCRAM_CREDENTIAL, {**SCRAM, "salt": secret}),
            (records.DELEGATION_TOKEN, {**TOKEN, "tokenId": secret.decode()}),
            (
                records.CONFIG,
                {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": secret.decode()},
            ),
        )
        shown = repr(view)
        assert secret.decode() not in shown
        assert base64.b64encode(secret).decode() not in shown


class TestContradictions:
    """Records that cannot follow those before them."""

    @pytest.mark.parametrize(
        ("entries", "says"),
        [
            ([topic("a", T1), topic("b", T1)], "created twice"),
            ([topic("a", T1), topic("a", T2)], "created twice"),
            ([partition(T1, 0, [1], [D1])], "topic .* is unknown"),
            ([(records.REMOVE_TOPIC, {"topicId": T1})], "topic .* is unknown"),
            ([topic("a", T1), change(T1, 0)], "partition a-0 is unknown"),
            ([topic("a", T1), (records.CLEAR_ELR, {"topicName": "b"})], "topic b is unknown"),
            ([topic("a", T1), partition(T1, 0, [1, 2], [D1])], "2 replicas and 1 directories"),
            (
                [topic("a", T1), partition(T1, 0, [1], [D1]), change(T1, 0, replicas=[1, 2])],
                "2 replicas and 1 directories",
            ),
            ([(records.UNREGISTER_BROKER, {"brokerId": 1, "brokerEpoch": 5})], "broker 1 is not registered"),
            ([register(1, 4, []), (records.UNREGISTER_BROKER, {"brokerId": 1, "brokerEpoch": 5})], "epoch 4, not 5"),
            ([register(1, 5, []), (records.FENCE_BROKER, {"id": 1, "epoch": 4})], "epoch 5, not 4"),
            ([(records.UNFENCE_BROKER, {"id": 1, "epoch": 4})], "not registered"),
            ([register(1, 5, []), (CHANGE, {"brokerId": 1, "brokerEpoch": 5, "fenced": 2})], "fenced 2"),
            (
                [register(1, 5, []), (CHANGE, {"brokerId": 1, "brokerEpoch": 5, "inControlledShutdown": -1})],
                "Shutdown -1",
            ),
            ([register(-1, 5, [])], "node id -1"),
            ([(records.ZK_MIGRATION_STATE, {"zkMigrationState": 9})], "migration state 9"),
            ([(records.REMOVE_ACCESS_CONTROL_ENTRY, {"id": T1})], "ACL .* is unknown"),
        ],
    )
    def test_each_is_an_error_with_its_offset(self, entries: list[Entry], says: str) -> None:
        """Kafka's own loader calls these faults too."""
        with pytest.raises(ReplayError, match=says) as caught:
            view_of(*entries)
        assert caught.value.where == f"offset {len(entries) - 1}"
