"""Each kind of znode: what Kafka writes is understood, anything else is a MalformedZnode that names the path."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import MalformedZnode
from migrate.model.secrets import Digester
from migrate.model.views import ControllerZnode, MigrationZnode, NullZnode
from migrate.zookeeper import decode, fields, lock
from migrate.zookeeper.fields import JsonZnode
from migrate.zookeeper.layout import Znode
from tests.testing.golden_trees import STAGES, TOPIC_ID, golden

PATH = "/some/7"
DIGESTER = Digester()


def raw(value: Any) -> bytes:
    """A value as a znode's data."""
    return json.dumps(value).encode()


def znode(data: bytes | None, *, owner: int = 0, version: int = 3) -> Znode:
    """A znode with that data."""
    return Znode(data, version, 11, 12, owner)


BROKER = {
    "version": 5,
    "host": "h",
    "port": 9092,
    "endpoints": ["SSL://h:9093", "PLAINTEXT://h:9092"],
    "jmx_port": -1,
    "timestamp": "1",
    "rack": "r1",
    "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"},
    "features": {},
}
TOPIC = {
    "version": 3,
    "topic_id": TOPIC_ID,
    "partitions": {"0": [1, 2, 3], "1": [2, 3]},
    "adding_replicas": {"0": [3]},
    "removing_replicas": {"0": [1]},
}
STATE = {"version": 1, "leader": 1, "leader_epoch": 5, "controller_epoch": 3, "isr": [1, 2]}
CONTROLLER = {"version": 2, "brokerid": 3000, "timestamp": "1", "kraftControllerEpoch": 7}
MIGRATION = {
    "version": 0,
    "kraft_controller_id": 3000,
    "kraft_controller_epoch": 2,
    "kraft_metadata_offset": 2**40,
    "kraft_metadata_epoch": 2,
}
CLUSTER = {"version": "1", "id": "REh233dFSJKhrlnVHSnalQ"}
FEATURE = {"version": 2, "status": 1, "features": {"f": {"max_version_level": 3}}}
PRODUCER = {"version": 1, "broker": 2, "block_start": "1000", "block_end": "1999"}
PENDING = {"version": 1, "partitions": [{"topic": "t", "partition": 3, "replicas": [1]}]}
CONFIG = {"version": 1, "config": {"retention.ms": "1"}}
QUOTA = {"version": 1, "config": {"producer_byte_rate": "1000"}}
SCRAM = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
USER = {"version": 1, "config": {"SCRAM-SHA-256": SCRAM, "producer_byte_rate": "1.5"}}
ACL_ENTRY = {"principal": "User:a", "permissionType": "Allow", "operation": "IdempotentWrite", "host": "*"}
ACL = {"version": 1, "acls": [ACL_ENTRY]}
TOKEN = {
    "version": 3,
    "owner": "User:alice",
    "tokenRequester": "User%3Abob",
    "renewers": ["User:z", "User:c"],
    "issueTimestamp": 1,
    "maxTimestamp": 3,
    "expiryTimestamp": 2,
    "tokenId": "token-id",
}
LOCK = {"version": 1, "owner": "o", "host": "h", "pid": 1, "since": "s", "plan": "p", "session_seconds": 10.0}


KINDS: dict[str, tuple[Any, Callable[[bytes | None], Any]]] = {
    "broker": (BROKER, lambda data: decode.broker(PATH, znode(data))),
    "topic": (TOPIC, lambda data: decode.topic(PATH, data)),
    "state": (STATE, lambda data: decode.partition_state(PATH, data, 9)),
    "controller": (CONTROLLER, lambda data: decode.controller(PATH, znode(data))),
    "migration": (MIGRATION, lambda data: decode.migration(PATH, znode(data))),
    "cluster": (CLUSTER, lambda data: decode.cluster_id(PATH, data)),
    "feature": (FEATURE, lambda data: decode.feature_levels(PATH, data)),
    "producer": (PRODUCER, lambda data: decode.next_producer_id(PATH, data)),
    "pending": (PENDING, lambda data: decode.partitions_named(PATH, data)),
    "config": (CONFIG, lambda data: fields.config(PATH, data)),
    "quota": (QUOTA, lambda data: list(fields.quotas(PATH, {"ip": "a"}, data))),
    "user": (USER, lambda data: list(fields.scrams(PATH, "u", data, DIGESTER))),
    "acl": (ACL, lambda data: list(fields.acls(PATH, "Topic", "LITERAL", "t", data))),
    "token": (TOKEN, lambda data: list(fields.token(PATH, str(TOKEN["tokenId"]), data, DIGESTER))),
    "lock": (LOCK, lambda data: lock.holder_of(PATH, znode(data))),
}
# kinds for which no data means something: an empty configuration, no ACL, no block yet, null data
MAY_BE_EMPTY = {"migration", "producer", "config", "quota", "user", "acl"}


# -- what Kafka writes ---------------------------------------------------------------------------------------------
def test_a_broker_has_its_czxid_as_epoch_and_sorted_endpoints() -> None:
    """Version 5, with a rack; the ephemeral owner is the session."""
    found = decode.broker("/brokers/ids/7", znode(raw(BROKER), owner=99))
    assert (found.id, found.epoch, found.rack, found.session) == (7, 11, "r1", 99)
    assert found.endpoints == ("PLAINTEXT://h:9092", "SSL://h:9093")


@pytest.mark.parametrize("name", ["2147483648", "00000000007", "99999999999", "7 ", "-7", ""])
def test_another_name_is_no_brokers_id(name: str) -> None:
    """As Kafka writes ids: digits, 32 bits, and no longer than these take."""
    with pytest.raises(MalformedZnode):
        decode.broker(f"/brokers/ids/{name}", znode(raw(BROKER)))
    assert decode.broker("/brokers/ids/2147483647", znode(raw(BROKER))).id == 2147483647


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("controller_epoch", (-1, 0, 2**31 - 1), (-2, 2**31)),
        ("leader", (-2, -1, 0, 2**31 - 1), (-3, 2**31)),
        ("leader_epoch", (0, 2**31 - 1), (-1, 2**31)),
        ("leader_recovery_state", (0, 1), (-1, 2)),
        ("isr", ([], [0], [2**31 - 1]), ([-1], [2**31], [1, 1], [True])),
        ("version", (1,), (0, 2)),
    ],
)
def test_both_ways_to_read_a_state_answer_the_same(field: str, good: Sequence[Any], bad: Sequence[Any]) -> None:
    """At the ends of each range; a letter that is written as an escape takes the strict one."""
    for extra in ({}, {"note": "\u00e9"}):
        for value in good:
            data = raw({**STATE, **extra, field: value})
            assert decode.partition_state(PATH, data, 9) == decode._strict_state(PATH, data, 9)
        for value in bad:
            with pytest.raises(MalformedZnode):
                decode.partition_state(PATH, raw({**STATE, **extra, field: value}), 9)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_topic_of_each_version_is_read(version: int) -> None:
    """Older ones know neither ids nor reassignments."""
    assert decode.topic(PATH, raw({"version": version, "partitions": {"0": [1]}})).replicas == {0: [1]}


def test_a_broker_of_version_1_has_one_plaintext_endpoint() -> None:
    """Before listeners existed, and without a rack."""
    found = decode.broker(PATH, znode(raw({"version": 1, "host": "h", "port": 1, "jmx_port": -1, "timestamp": "1"})))
    assert (found.endpoints, found.rack) == (("PLAINTEXT://h:1",), None)


@pytest.mark.parametrize(
    "endpoint", ["CLIENT://[::1]:9092", "C://[fe80::1%eth0]:9092", "A_B://:9092", "x://host.example:0"]
)
def test_an_endpoint_may_have_an_ipv6_address_or_no_host(endpoint: str) -> None:
    """What `EndPoint.createEndPoint` takes."""
    assert decode.broker(PATH, znode(raw({**BROKER, "endpoints": [endpoint]}))).endpoints == (endpoint,)


def test_a_topic_has_replicas_and_a_reassignment_under_way() -> None:
    """Version 3 as KIP-516 and KIP-455 write it."""
    found = decode.topic(PATH, raw(TOPIC))
    assert found == decode.TopicZnode(TOPIC_ID, {0: [1, 2, 3], 1: [2, 3]}, {0: [3]}, {0: [1]})


def test_an_old_topic_has_no_id() -> None:
    """Version 1 has partitions alone."""
    found = decode.topic(PATH, raw({"version": 1, "partitions": {"0": [1]}}))
    assert found == decode.TopicZnode("", {0: [1]}, {}, {})


def test_a_partition_state_keeps_the_order_of_the_isr_and_its_mzxid() -> None:
    """And leader_recovery_state stands only where it is not 0."""
    assert decode.partition_state(PATH, raw(STATE), 9) == (1, 5, [1, 2], 0, 9, 3)
    assert decode.partition_state(PATH, raw({**STATE, "leader_recovery_state": 1}), 9).recovery == 1
    assert decode.partition_state(PATH, raw({**STATE, "leader": -1, "isr": []}), 9) == (-1, 5, [], 0, 9, 3)
    assert decode.partition_state(PATH, raw({**STATE, "leader": -2}), 9).leader == -2, "LeaderDuringDelete"


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {
            "version": st.just(1),
            "leader": st.integers(-3, 5) | st.just(2**31) | st.booleans(),
            "leader_epoch": st.integers(-1, 5),
            "controller_epoch": st.integers(-1, 5),
            "isr": st.lists(st.integers(-1, 4), max_size=3) | st.none(),
        },
        optional={"leader_recovery_state": st.integers(-1, 2) | st.none(), "unknown": st.text(max_size=5)},
    )
)
def test_the_short_way_for_states_answers_as_the_strict_one(value: dict[str, Any]) -> None:
    """Both decode to the same, or both refuse."""

    def answer(function: Callable[[str, bytes, int], Any]) -> Any:
        try:
            return function(PATH, raw(value), 1)
        except MalformedZnode:
            return MalformedZnode

    assert answer(decode.partition_state) == answer(decode._strict_state)


WRITTEN: Final = (
    '{"controller_epoch":37,"leader":3,"version":1,"leader_epoch":12,"isr":[3,1]}',
    '{"controller_epoch":-1,"leader":-2,"version":1,"leader_epoch":0,"isr":[]}',
    ' {"isr" : [3, 1], "leader":3,"version":1,"leader_epoch":12,"controller_epoch":37}\n',
)
DOUBTS: Final = (
    *(("37", "NaN"), ("37", "-0"), ("37", "037"), ("37", "3.0"), ("37", "37e0"), ("37", "true"), ("37", '"37"')),
    *(("37", "9" * 400), ("37", "-2"), ("12", str(2**31)), ('"version":1', '"version":2'), ("[3,1]", "[3,3]")),
    *(("[3,1]", "[[3]]"), ("[3,1]", "[" * 200 + "]" * 200), ("[3,1]", "null"), ("[3,1]", "[3,1,]"), ("[3,1]", "[-1]")),
    *(('"leader":3', '"leader":3,"leader":4'), ('"leader":3', '"leader":3,"leader" :4'), ("{", '{"x":1,')),
    *(('"leader":3', '"le\\u0061der":3'), ('"leader":3', '"leader":3,"le\\u0061der":4'), ("}", "}}"), ("}", "")),
    *(("}", ',"leader_recovery_state":1}'), ("}", ',"leader_recovery_state":2}'), ("{", "\ufeff{"), ("3", "\u0663")),
)


@pytest.mark.parametrize("text", [*WRITTEN, *(WRITTEN[0].replace(*doubt, 1) for doubt in DOUBTS)])
def test_the_decoder_by_type_takes_nothing_that_the_strict_one_refuses(text: str) -> None:
    """Keys twice, however they are spelled, odd numbers, nesting, bytes: the same answer, word by word."""

    def answer(function: Callable[[str, bytes, int], Any], data: bytes) -> Any:
        try:
            return function(PATH, data, 1)
        except MalformedZnode as error:
            return str(error)

    for data in (text.encode(), text.encode() + b"\xff", text.encode()[:-1], text.encode() + b"\0"):
        assert answer(decode.partition_state, data) == answer(decode._strict_state, data)


def test_no_two_partitions_share_an_isr() -> None:
    """A list that somebody sorts in place must not change another partition."""
    written = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":1,"isr":[3,1,2]}'
    one, other = decode.partition_state(PATH, written, 1), decode.partition_state(PATH, written, 1)
    assert one.isr == other.isr == [3, 1, 2]
    assert one.isr is not other.isr


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.dictionaries(
        st.integers(-2, 40).map(str) | st.sampled_from(["00", "+1", "1_0", " 1", "\u0661", "", "9" * 5000, str(2**31)]),
        st.lists(st.integers(-1, 5) | st.just(2**31) | st.booleans() | st.none(), max_size=4) | st.none() | st.just({}),
        max_size=6,
    )
)
def test_an_assignment_is_read_where_every_entry_is_one(value: dict[str, Any]) -> None:
    """Partition numbers as Kafka spells them, and lists of broker ids, each once; all else is refused, by name."""
    numbers = [str(number) for number in range(41)]
    spelled = all(key in numbers for key in value)
    listed = all(
        isinstance(ids, list) and all(type(one) is int and 0 <= one < 2**31 for one in ids) and len({*ids}) == len(ids)
        for ids in value.values()
    )
    read = JsonZnode(PATH, {"partitions": value})
    if spelled and listed:
        assert read.assignment("partitions") == {int(key): ids for key, ids in value.items()}
    else:
        with pytest.raises(MalformedZnode):
            read.assignment("partitions")


NUMBERS = st.sampled_from(
    ["0", "1", "7", "999999999", "2147483647", "2147483648", "9999999999", "-1", "-0", "01", "+1", "1.0", "1e1", ""]
)


@pytest.mark.slow
@settings(max_examples=400)
@given(NUMBERS, NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=3), st.integers(0, 90), st.sampled_from(' ,]}"0x'))
def test_bytes_as_kafka_writes_them_answer_as_the_strict_way(
    controller: str, leader: str, epoch: str, isr: list[str], at: int, letter: str
) -> None:
    """Every odd number in every place, and one letter more anywhere: no state is read that the strict way refuses."""
    written = (
        f'{{"controller_epoch":{controller},"leader":{leader},"version":1,"leader_epoch":{epoch},'
        f'"isr":[{",".join(isr)}]}}'
    ).encode()

    def answer(function: Callable[[str, bytes, int], Any], data: bytes) -> Any:
        try:
            return function(PATH, data, 1)
        except MalformedZnode:
            return MalformedZnode

    for data in (written, written[:at] + letter.encode() + written[at:]):
        assert answer(decode.partition_state, data) == answer(decode._strict_state, data)


@pytest.mark.slow
def test_states_that_clusters_wrote_are_decoded_by_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real cluster's: before, in and after dual write."""
    for stage in STAGES:
        znodes = golden(stage).znodes.items()
        found = [znode.data for path, znode in znodes if path.endswith("/state") and isinstance(znode, Znode)]
        assert found
        monkeypatch.setattr(decode, "_strict_state", lambda *_: pytest.fail("the strict way"))
    assert all(decode.partition_state(PATH, data, 1).mzxid == 1 for data in found)


def test_a_controller_is_told_by_its_epoch_and_by_being_ephemeral() -> None:
    """A KRaft controller's claim is persistent; a ZooKeeper-mode broker's has -1, or is of version 1."""
    assert decode.controller(PATH, znode(raw(CONTROLLER))) == ControllerZnode(3000, 7, ephemeral=False, version=3)
    old = {"version": 1, "brokerid": 1, "timestamp": "1"}
    assert decode.controller(PATH, znode(raw(old), owner=5)) == ControllerZnode(1, -1, ephemeral=True, version=3)


def test_the_migration_znode_is_a_value_or_null() -> None:
    """KAFKA-19480: null data is a state of its own."""
    assert decode.migration(PATH, znode(raw(MIGRATION))) == MigrationZnode(2**40, 2, 3000, 2, 3)
    assert decode.migration(PATH, znode(None)) == NullZnode(version=3)
    fresh = {**MIGRATION, "kraft_controller_id": -1, "kraft_metadata_offset": -1, "kraft_metadata_epoch": -1}
    found = decode.migration(PATH, znode(raw(fresh)))
    assert isinstance(found, MigrationZnode)
    assert found.offset == -1


@pytest.mark.parametrize(("data", "epoch"), [(b"0", 0), (b"17", 17), (b"2147483647", 2**31 - 1)])
def test_the_controller_epoch_is_a_number_in_text(data: bytes, epoch: int) -> None:
    """No JSON there."""
    assert decode.controller_epoch(PATH, znode(data)) == epoch


@pytest.mark.parametrize("data", [None, b"", b"-1", b" 1", b"1\n", b"1.0", "\uff11".encode(), b"2147483648", b"\xff"])
def test_another_controller_epoch_is_refused(data: bytes | None) -> None:
    """Nothing is trimmed or guessed."""
    with pytest.raises(MalformedZnode):
        decode.controller_epoch(PATH, znode(data))


def test_small_znodes_are_decoded() -> None:
    """Cluster id, features, the producer id block (empty before the first), pending partitions."""
    assert decode.cluster_id(PATH, raw(CLUSTER)) == "REh233dFSJKhrlnVHSnalQ"
    assert decode.feature_levels(PATH, raw(FEATURE)) == {"f": 3}
    assert decode.feature_levels(PATH, raw({"version": 1, "status": 0, "features": {}})) == {}
    assert decode.next_producer_id(PATH, raw(PRODUCER)) == 2000
    assert decode.next_producer_id(PATH, b"") is None
    assert decode.partitions_named(PATH, raw(PENDING)) == ("t-3",)


# -- what Kafka does not write -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_are_good(kind: str) -> None:
    """So that the refusals below are for the damage alone."""
    value, function = KINDS[kind]
    assert function(raw(value)), "and none is empty"


@pytest.mark.parametrize("kind", sorted(set(KINDS) - MAY_BE_EMPTY))
@pytest.mark.parametrize("data", [None, b""])
def test_no_data_is_not_read_as_empty(kind: str, data: bytes | None) -> None:
    """A znode without data where Kafka always writes some."""
    with pytest.raises(MalformedZnode) as caught:
        KINDS[kind][1](data)
    assert caught.value.where == PATH


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b"{}",
        b"NaN",
        b'{"version":1,"version":1}',
        b'{"version":99}',
        b'{"version":true}',
        b'{"version":1.0}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"version":' + b"9" * 5000 + b"}",
    ],
    ids=lambda data: data[:12].decode("latin-1"),
)
def test_broken_data_names_the_znode(kind: str, data: bytes) -> None:
    """Broken JSON, other JSON, double keys, unknown versions, depth, size: one typed error."""
    with pytest.raises(MalformedZnode) as caught:
        KINDS[kind][1](data)
    assert caught.value.where == PATH
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_field_is_an_error_or_has_a_meaning(kind: str) -> None:
    """Each field that stands in the sample is needed, but for those that Kafka itself may leave out."""
    optional = {"rack", "jmx_port", "timestamp", "listener_security_protocol_map", "features", "host", "port"}
    optional |= {"topic_id", "adding_replicas", "removing_replicas", "controller_epoch", "leader_recovery_state"}
    value, function = KINDS[kind]
    for field in value:
        if field in optional and kind != "feature":
            continue
        with pytest.raises(MalformedZnode):
            function(raw({name: entry for name, entry in value.items() if name != field}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


def mutated(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """The value with one part, at any depth, replaced, taken away or doubled."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(value[key], draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        return [mutated(value[0], draw), *value, *value[:1]]
    if isinstance(value, dict) and value and draw(st.booleans()):
        gone = draw(st.sampled_from(sorted(value)))
        return {key: entry for key, entry in value.items() if key != gone}
    return draw(JSON)


def place_of_refusal(function: Callable[[bytes | None], Any], data: bytes) -> str:
    """The place that the refusal names; PATH too if the data is taken."""
    try:
        function(data)
    except MalformedZnode as error:
        return error.where
    return PATH


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.data())
def test_no_mutation_of_a_znode_gives_an_untyped_error(data: st.DataObject) -> None:
    """Any damage to the JSON: decoded, or MalformedZnode with the path."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    value, function = KINDS[kind]
    assert place_of_refusal(function, raw(mutated(value, data.draw))) == PATH


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.data())
def test_no_damage_to_the_bytes_gives_an_untyped_error(data: st.DataObject) -> None:
    """Cut, flipped, filled in: decoded, or MalformedZnode with the path."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    value, function = KINDS[kind]
    whole = raw(value)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    filling = data.draw(st.binary(max_size=4) | st.sampled_from([b'\\ud800"', b'"\\ud800', b"\\u0000", b"1e999", b"-"]))
    assert place_of_refusal(function, whole[:start] + filling + whole[end:]) == PATH


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("topic", {"topic_id": "short"}),
        ("topic", {"topic_id": 7}),
        ("topic", {"partitions": {"00": [1]}}),
        ("topic", {"partitions": {"-1": [1]}}),
        ("topic", {"partitions": {"2147483648": [1]}}),
        ("topic", {"partitions": {"\uff19": [1]}}),
        ("topic", {"partitions": {"0": [1, 1]}}),
        ("topic", {"partitions": {"0": [-1]}}),
        ("topic", {"partitions": {"0": ["1"]}}),
        ("topic", {"partitions": {"0": [True]}}),
        ("topic", {"adding_replicas": {"5": [1]}}),
        ("state", {"leader": -3}),
        ("state", {"leader_epoch": -1}),
        ("state", {"isr": [1, 1]}),
        ("state", {"leader_recovery_state": 2}),
        ("state", {"version": 2}),
        ("broker", {"endpoints": ["nothing"]}),
        ("broker", {"endpoints": "PLAINTEXT://h:1"}),
        ("broker", {"version": 6}),
        ("broker", {"rack": 5}),
        ("controller", {"brokerid": -1}),
        ("controller", {"version": 3}),
        ("migration", {"version": 1}),
        ("migration", {"kraft_metadata_offset": "5"}),
        ("migration", {"kraft_metadata_offset": 2**63}),
        ("cluster", {"version": 1}),
        ("cluster", {"id": ""}),
        ("feature", {"status": 2}),
        ("feature", {"features": {"f": {}}}),
        ("producer", {"block_end": "-1"}),
        ("producer", {"block_end": 999}),
        ("producer", {"block_end": str(2**63 - 1)}),
        ("pending", {"partitions": [{"topic": "t"}]}),
        ("token", {"tokenRequester": "a%zz"}),
        ("token", {"renewers": "User:a"}),
        ("token", {"expiryTimestamp": 2**63}),
        ("acl", {"acls": [{**ACL_ENTRY, "operation": "Fly"}]}),
        ("acl", {"acls": [{**ACL_ENTRY, "permissionType": "allow"}]}),
        ("config", {"config": {"a": 5}}),
        ("config", {"config": {"a": None}}),
        ("quota", {"config": {"a": "NaN"}}),
        ("quota", {"config": {"a": "1_000"}}),
        ("quota", {"config": {"a": "1e999"}}),
        ("user", {"config": {"SCRAM-SHA-256": "salt=AA==,stored_key=AA==,iterations=1"}}),
        ("user", {"config": {"SCRAM-SHA-256": SCRAM.replace("c2FsdA==", "???")}}),
        ("user", {"config": {"SCRAM-SHA-256": SCRAM.replace("4096", "-1")}}),
    ],
)
def test_a_value_outside_its_range_is_refused(kind: str, change: dict[str, Any]) -> None:
    """One field of a good znode changed."""
    value, function = KINDS[kind]
    with pytest.raises(MalformedZnode):
        function(raw({**value, **change}))


@pytest.mark.parametrize("name", ["x", "-1", "2147483648", "1.0", "", "\uff11"])
def test_a_broker_znode_must_be_named_by_an_id(name: str) -> None:
    """The name is the id."""
    with pytest.raises(MalformedZnode):
        decode.broker(f"/brokers/ids/{name}", znode(raw(BROKER)))


@pytest.mark.slow
def test_a_znode_above_zookeepers_default_size_is_read_as_it_is() -> None:
    """With jute.maxbuffer raised ZooKeeper holds such znodes, of ACLs or of topics with very many partitions."""
    wide = {"version": 3, "topic_id": "", "partitions": {str(number): [0, 1, 2] for number in range(70_000)}}
    data = raw(wide)
    assert len(data) > 1 << 20
    assert len(decode.topic("/brokers/topics/wide", data).replicas) == 70_000
