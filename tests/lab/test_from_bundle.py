"""From a bundle's views to the shape of a lab: what is kept, what is scaled, and that each difference is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml

from migrate.errors import LabFolderNotOurs, LabMissing
from migrate.hosts.files import replace_file
from migrate.lab.from_bundle import MOST_DIRECTORIES, MOST_ENTRIES, Bounds, BundleShape, free_memory, playbook_text
from migrate.lab.from_bundle import shape_of as made_of
from migrate.lab.seed_data import LOAD_TOPICS, Change, Seed, SeedTopic, keep_seed, seed_of
from migrate.lab.topology import SEED_FILE, Shape, Topology, claim, plan_topology
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Malformed, PartlyRead, ZnodePart
from migrate.model.world import World
from migrate.playbook.load import load_playbook, shipped
from tests.testing import worlds
from tests.testing.clusters import Partition, columns_of, uuid

ROOMY: Final = Bounds(5, 300, 64_000)
RARE: Final = "GROUP|PREFIXED|g|User:u|*|READ|ALLOW"
PLAIN: Final = worlds.world_at(Stage.ASSESS)


def shape_of(world: World, bounds: Bounds = ROOMY) -> BundleShape:
    """Within bounds that are wide enough for what is tested."""
    return made_of(world, bounds)


def with_topics(topics: Mapping[str, tuple[int, int]], world: World = PLAIN) -> World:
    """Name -> partitions and replicas, in the place of the topics; without any entity."""
    rows = [
        Partition(name, uuid(number), partition, [*range(factor)])
        for number, (name, (count, factor)) in enumerate(topics.items())
        for partition in range(count)
    ]
    return worlds.with_zk(world, partitions=columns_of(rows), entities=EntityColumns())


def with_brokers(*ids: int, world: World = PLAIN) -> World:
    """With other brokers, on whose disks nobody has looked."""
    nodes = tuple(BrokerNode(NodeId(one), f"h{one}", f"h{one}:9092", "/k.properties") for one in ids)
    world = replace(world, inventory=replace(world.inventory, brokers=nodes), disks=Unknown("no look"))
    return worlds.with_zk(replace(world, configs=Unknown("no look")), brokers={})


def theirs(shape: BundleShape) -> dict[str, tuple[int, int]]:
    """The bundle's topics: partitions and replicas."""
    return {
        topic.name: (topic.partitions, topic.replication)
        for topic in shape.seed.topics
        if topic.name not in LOAD_TOPICS
    }


def said(shape: BundleShape) -> list[str]:
    """Every difference, with all names."""
    return [change.text() for change in shape.seed.changes]


# -- topics --------------------------------------------------------------------------------------------------------
def test_what_fits_is_taken_as_it_is_and_nothing_is_said() -> None:
    """But for the topics of the load, which are added."""
    shape = shape_of(with_topics({"a": (7, 3), "b": (1, 2)}))
    assert theirs(shape) == {"a": (7, 3), "b": (1, 2)}
    assert shape.disks == (3, 3, 3)
    assert said(shape) == ["added, for the load of `lab demo`: load-orders, load-clicks"]


def test_large_topics_give_way_to_small_ones() -> None:
    """All partitions together, the load's six among them, are what the bound says."""
    shape = shape_of(with_topics({"vast": (5000, 3), "wide": (40, 3), "narrow": (3, 3)}), Bounds(5, 80, 64_000))
    assert theirs(shape) == {"vast": (36, 3), "wide": (35, 3), "narrow": (3, 3)}
    assert sum(topic.partitions for topic in shape.seed.topics) == 80
    assert [line for line in said(shape) if line.startswith("partitions: 74 of 5,043: vast 36 of 5,000, wide 35 of 40")]


def test_of_too_many_topics_one_of_each_kind_is_taken_first() -> None:
    """And every other one is named."""
    names = {f"t{number:03d}": (4, 3) for number in range(100)} | {"zz-single": (4, 1)}
    shape = shape_of(with_topics(names), Bounds(5, 16, 64_000))
    taken = theirs(shape)
    assert len(taken) == 10
    assert {"t000", "zz-single"} <= taken.keys()
    assert {count for count, _ in taken.values()} == {1}
    (gone,) = [change for change in shape.seed.changes if change.what.startswith("left out, as 10 partitions")]
    assert {*gone.about} == names.keys() - taken.keys()


def test_a_bundle_without_topics_makes_a_lab_with_those_of_the_load() -> None:
    """The demo's load needs them."""
    assert [topic.name for topic in shape_of(with_topics({})).seed.topics] == [*LOAD_TOPICS]


def test_a_topic_of_the_loads_name_is_the_bundles() -> None:
    """It is not made twice."""
    shape = shape_of(with_topics({LOAD_TOPICS[0]: (9, 2)}))
    assert [(topic.name, topic.partitions) for topic in shape.seed.topics] == [(LOAD_TOPICS[0], 9), (LOAD_TOPICS[1], 3)]


def test_kafkas_own_topics_are_left_to_the_brokers() -> None:
    """The lab's configuration says how large they are."""
    shape = shape_of(with_topics({"__consumer_offsets": (50, 3), "a": (1, 3)}))
    assert theirs(shape) == {"a": (1, 3)}
    assert "as the lab's brokers make them: __consumer_offsets" in said(shape)


@pytest.mark.parametrize("name", ["../../etc", "a b", "a\nb", "\x1b[2J", "", ".", "..", "x" * 250, "größe"])
def test_a_name_that_kafka_does_not_take_goes_no_further(name: str) -> None:
    """It is said, and no topic."""
    shape = shape_of(with_topics({name: (1, 3), "a": (1, 3)}))
    assert theirs(shape) == {"a": (1, 3)}
    assert [change.about for change in shape.seed.changes if "does not take" in change.what] == [(name,)]


def test_replication_is_bounded_by_brokers_and_min_insync_replicas_by_replication() -> None:
    """One replica may be down where one might; a topic that allowed none stays so."""
    world = with_topics({"a": (1, 3), "b": (1, 3), "c": (1, 1)}, PLAIN)
    for topic, least in (("a", "2"), ("b", "3"), ("c", "1")):
        world = worlds.with_entity(world, "topic-config", topic, "min.insync.replicas", least)
    shape = shape_of(world, Bounds(2, 300, 64_000))
    assert theirs(shape) == {"a": (1, 2), "b": (1, 2), "c": (1, 1)}
    own = {topic.name: topic.configs["min.insync.replicas"] for topic in shape.seed.topics}
    assert own == {"a": "1", "b": "2", "c": "1", "load-orders": "1", "load-clicks": "1"}
    assert "min.insync.replicas lowered, as there are fewer replicas: a 2 is 1, b 3 is 2" in said(shape)
    assert "replication factor 2, as there are no more brokers: a 3, b 3" in said(shape)


def test_a_reassignment_in_progress_counts_the_replicas_before_it() -> None:
    """Those that are being added are not there yet; a topic of mixed factors is named."""
    rows = [Partition("a", uuid(1), 0, [0, 1, 2], adding=[2]), Partition("a", uuid(1), 1, [0])]
    shape = shape_of(worlds.with_zk(PLAIN, partitions=columns_of(rows), entities=EntityColumns()))
    assert theirs(shape) == {"a": (2, 2)}
    assert "several replication factors in one topic, the largest is taken: a" in said(shape)


# -- brokers -------------------------------------------------------------------------------------------------------
def test_one_broker_makes_a_lab_of_one() -> None:
    """Every topic has one replica then."""
    shape = shape_of(with_topics({"a": (2, 3)}, with_brokers(7)))
    assert theirs(shape) == {"a": (2, 1)}
    assert len(shape.disks) == 1
    assert "ids of brokers: 7 is 0" in said(shape)


def test_five_hundred_brokers_become_five() -> None:
    """Their log directories are not known: said, not guessed."""
    shape = shape_of(with_brokers(*range(1, 501)))
    assert shape.disks == (1, 1, 1, 1, 1)
    assert "brokers: 5 of 500" in said(shape)
    assert "ids of brokers: 1 is 0, 2 is 1, 3 is 2, 4 is 3, 5 is 4" in said(shape)
    assert any(
        line.startswith("log directories not known, the lab has one: broker 1: no look,") for line in said(shape)
    )


@pytest.mark.parametrize(("free", "brokers"), [(100, 1), (2200, 2), (64_000, 3)])
def test_memory_bounds_the_brokers(free: int, brokers: int) -> None:
    """One is made whatever there is."""
    shape = shape_of(PLAIN, Bounds(5, 300, free))
    assert len(shape.disks) == brokers
    assert any(line.startswith("memory: ") for line in said(shape)) == (brokers < 3)


def test_memory_that_cannot_be_read_is_said() -> None:
    """The bound is the command's then."""
    assert any("not compared" in line for line in said(shape_of(PLAIN, Bounds(5, 300, Unknown("no proc")))))


def test_brokers_keep_their_numbers_of_directories() -> None:
    """By the disks, else by the file; a broker of each number comes first, and there is an upper bound."""
    world = replace(PLAIN, disks=Unknown("no look"))
    world = worlds.with_values(world, 0, log__dirs="/a, /b,")
    world = worlds.with_values(world, 1, log__dirs="/a,/b")
    world = worlds.with_values(world, 2, log__dirs=",".join(f"/d{number}" for number in range(100)))
    assert shape_of(world).disks == (2, 2, MOST_DIRECTORIES)
    assert f"log directories: {MOST_DIRECTORIES}: broker 2: 100" in said(shape_of(world))
    assert shape_of(world, Bounds(2, 300, 64_000)).disks == (2, MOST_DIRECTORIES)


# -- what is not known ---------------------------------------------------------------------------------------------
def test_without_zookeeper_the_lab_has_brokers_and_directories_alone() -> None:
    """The reason is said."""
    shape = shape_of(replace(PLAIN, zookeeper=Unknown("ZooKeeper was stopped")))
    assert shape.disks == (3, 3, 3)
    assert [topic.name for topic in shape.seed.topics] == [*LOAD_TOPICS]
    assert any(line.startswith("not known, and left out: topics") and "stopped" in line for line in said(shape))


def test_of_a_tree_with_malformed_znodes_the_rest_is_taken() -> None:
    """And what is missing is said, as are blind spots."""
    view = replace(worlds.zk(PLAIN), malformed=(Malformed("/brokers/topics/x", "no JSON", ZnodePart.TOPIC),))
    shape = shape_of(replace(PLAIN, zookeeper=PartlyRead("malformed znodes: /brokers/topics/x", view)))
    assert theirs(shape).keys() == {"t0", "t1"}
    assert "not known, and left out: what malformed znodes hold: malformed znodes: /brokers/topics/x" in said(shape)
    shape = shape_of(worlds.with_zk(PLAIN, blind_spots=("/config/users was not read",)))
    assert "not known, and left out: /config/users was not read" in said(shape)


# -- everything else -----------------------------------------------------------------------------------------------
def with_rows(*rows: tuple[str, str, str, str]) -> World:
    """A topic `a`, and these entities."""
    kinds, keys, names, values = map(list, zip(*rows, strict=True))
    return worlds.with_zk(
        with_topics({"a": (1, 3)}), entities=EntityColumns(kinds, keys, names, values, [""] * len(rows))
    )


def test_configurations_that_could_do_harm_are_left_out_by_name() -> None:
    """Listeners, classes, threads, memory, preallocated files, unknown keys; passwords are digests and stay behind."""
    shape = shape_of(
        with_rows(
            ("topic-config", "a", "retention.ms", "1000"),
            ("topic-config", "a", "preallocate", "true"),
            ("topic-config", "gone", "retention.ms", "1000"),
            ("topic-config", "a", "min.insync.replicas", "two"),
            ("broker-config", "<default>", "log.retention.ms", "5"),
            ("broker-config", "1", "message.max.bytes", "1300000"),
            ("broker-config", "1", "num.io.threads", "64"),
            ("broker-config", "1", "listeners", "SASL_SSL://h:1"),
            ("broker-config", "8", "message.max.bytes", "1300000"),
            ("broker-config", "1", "listener.name.x.ssl.keystore.password", "hmac:00"),
        )
    )
    assert shape.seed.topics[0] == SeedTopic("a", 1, 3, {"retention.ms": "1000"})
    assert [(one.name, one.key, one.value) for one in shape.seed.configs] == [
        ("", "log.retention.ms", "5"),
        ("1", "message.max.bytes", "1300000"),
    ]
    assert shape.seed.password
    lines = said(shape)
    assert "left out, topic configurations: preallocate of a, retention.ms of gone, min.insync.replicas of a" in lines
    assert "left out, broker configurations: num.io.threads of 1, listeners of 1, message.max.bytes of 8" in lines
    assert any("made up: listener.name.x.ssl.keystore.password of 1" in line for line in lines)


def test_quotas_users_acls_and_tokens_are_read_back_from_the_views_keys() -> None:
    """Defaults, quoted names, both patterns; a password is nowhere."""
    seed = shape_of(
        with_rows(
            ("client-quota", "client-id=<default>/user=bob%40x.y", "request_percentage", "1e+16"),
            ("client-quota", "ip=10.0.0.1", "connection_creation_rate", "50.0"),
            ("scram", "alice", "SCRAM-SHA-512.salt", "hmac:00"),
            ("scram", "alice", "SCRAM-SHA-512.iterations", "8192"),
            ("acl", "TRANSACTIONAL_ID|PREFIXED|b%7C-|User:bob|*|IDEMPOTENT_WRITE|DENY", "present", "true"),
            ("delegation-token", "hmac:1", "owner", "User:bob@x.y"),
            ("delegation-token", "hmac:1", "renewers", "User:alice,User:carol"),
        )
    ).seed
    assert [(one.entity, one.limits) for one in seed.quotas] == [
        ((("client-id", None), ("user", "bob@x.y")), {"request_percentage": 1e16}),
        ((("ip", "10.0.0.1"),), {"connection_creation_rate": 50.0}),
    ]
    assert seed.users == (("alice", "SCRAM-SHA-512", 8192),)
    assert [tuple(getattr(one, name) for name in one.__slots__) for one in seed.acls] == [
        ("transactional_id", "b|-", "prefixed", "User:bob", "*", "idempotent_write", "deny")
    ]
    assert [(token.owner, token.renewers) for token in seed.tokens] == [("bob@x.y", ("alice", "carol"))]
    assert not seed.password


def test_entries_that_no_client_of_the_lab_could_make_are_said() -> None:
    """Odd numbers and kinds, control characters, resources that librdkafka does not know, tokens twice."""
    rows = [
        ("client-quota", "user=a", "request_percentage", "nan"),
        ("client-quota", "team=a", "request_percentage", "1.0"),
        ("client-quota", "user=%1B%5B2J", "request_percentage", "1.0"),
        ("scram", "al\nice", "SCRAM-SHA-256.iterations", "4096"),
        ("scram", "bob", "SCRAM-SHA-256.iterations", "999999"),
        ("acl", "USER|LITERAL|a|User:bob|*|CREATE_TOKENS|ALLOW", "present", "true"),
        ("acl", "TOPIC|LITERAL|a%00|User:bob|*|READ|ALLOW", "present", "true"),
        *(("delegation-token", f"hmac:{number}", "owner", "User:bob") for number in range(2)),
        ("delegation-token", "hmac:3", "owner", "Group:x"),
    ]
    shape = shape_of(with_rows(*rows))
    assert (shape.seed.quotas, shape.seed.users, shape.seed.acls, len(shape.seed.tokens)) == ((), (), (), 1)
    assert (
        sum(len(change.about) for change in shape.seed.changes if change.what.startswith("left out")) == len(rows) - 1
    )


def test_each_kind_of_entry_has_an_upper_bound() -> None:
    """A lab is made in minutes whatever a bundle holds; of each kind one comes first."""
    keys = [*(f"TOPIC|LITERAL|t{number}|User:u|*|READ|ALLOW" for number in range(MOST_ENTRIES + 6)), RARE]
    shape = shape_of(with_rows(*(("acl", key, "present", "true") for key in keys)))
    assert len(shape.seed.acls) == MOST_ENTRIES
    assert any(acl.resource == "group" for acl in shape.seed.acls)
    (change,) = [change for change in shape.seed.changes if "ACLs beyond" in change.what]
    assert len(change.about) == 7
    assert change.text(1).endswith(f": topic t{MOST_ENTRIES - 1} literal User:u * read allow and 6 more")


def test_min_insync_replicas_of_the_brokers_is_bounded_too() -> None:
    """Kafka's own topics follow it."""
    shape = shape_of(with_rows(("broker-config", "<default>", "min.insync.replicas", "2")), Bounds(1, 300, 64_000))
    assert [entry.value for entry in shape.seed.configs] == ["1"]
    assert "min.insync.replicas lowered, as there are fewer brokers: <default> 2 is 1" in said(shape)


# -- the lab's files -----------------------------------------------------------------------------------------------
def bundled(folder: Path, brokers: int = 2) -> Topology:
    """A lab from a bundle, of which nothing is written yet."""
    return plan_topology(folder, Shape(brokers=brokers, disks=(2, 4, 1, 1, 1)[:brokers], bundled=True))


def test_a_seed_survives_the_disk(tmp_path: Path) -> None:
    """With every difference, whatever characters are in its names."""
    topology, seed = bundled(tmp_path), shape_of(with_topics({"\ud800\n": (1, 3), "a": (1, 3)})).seed
    keep_seed(topology, seed)
    assert seed_of(topology) == seed
    assert seed.changes[0] == Change("left out, names that Kafka does not take", ("\ud800\n",))


def test_a_lab_without_a_bundle_has_the_seed_of_every_lab(tmp_path: Path) -> None:
    """Whatever lies in its folder."""
    replace_file(str(tmp_path / SEED_FILE), b"{}")
    assert seed_of(plan_topology(tmp_path)) == Seed()


def test_a_seed_that_is_not_there_or_not_ours_is_never_replaced_by_another(tmp_path: Path) -> None:
    """Each ends with what is wrong."""
    with pytest.raises(LabMissing) as caught:
        seed_of(bundled(tmp_path))
    assert "--from-bundle" in caught.value.next_step
    (tmp_path / SEED_FILE).write_text('{"$": "Seed"}')
    with pytest.raises(LabFolderNotOurs):
        seed_of(bundled(tmp_path))


def test_a_kill_between_the_seed_and_the_lab_leaves_a_folder_that_may_be_used(tmp_path: Path) -> None:
    """The next run writes both, for the brokers that it decides on."""
    keep_seed(bundled(tmp_path), Seed())
    claim(tmp_path)
    (tmp_path / "other").touch()
    with pytest.raises(LabFolderNotOurs):
        claim(tmp_path)


def test_brokers_of_a_topology_have_their_own_numbers_of_directories(tmp_path: Path) -> None:
    """As the bundle's had."""
    assert [len(broker.log_dirs) for broker in bundled(tmp_path).brokers] == [2, 4]


@pytest.mark.parametrize("brokers", [1, 2, 3, 5])
def test_the_playbook_drives_a_broker_that_is_there_and_accepts_by_name(tmp_path: Path, brokers: int) -> None:
    """What a restart makes unavailable, and nothing else; names are matched as they are."""
    topology = bundled(tmp_path, brokers)
    seed = Seed(
        topics=(
            SeedTopic("a.b", 1, 1),
            SeedTopic("full", 1, 2, {"min.insync.replicas": "2"}),
            SeedTopic("spare", 1, 2, {"min.insync.replicas": "1"}),
        ),
        configs=(),
    )
    text = playbook_text(shipped("lab-demo.yaml").read_text(encoding="utf-8"), topology, seed)
    policy = yaml.safe_load(text)["spec"]["policy"]
    accepted = ["single-.*", "a[.]b", "full", *(["__consumer_offsets", "__transaction_state"] if brokers == 1 else [])]
    assert policy["availability"]["accept_unavailable"] == accepted
    assert policy["directories"]["brokers"] == {min(2, brokers - 1): "drive"}
    topology.folder("playbook.yaml").write_text(text)
    topology.folder("inventory.yaml").write_text("")
    assert load_playbook(topology.folder("playbook.yaml")).accept_unavailable == (*accepted,)


def test_free_memory_is_the_hosts_or_the_containers(tmp_path: Path) -> None:
    """The smaller of both; what cannot be read is unknown."""
    proc, group = tmp_path / "meminfo", tmp_path / "max"
    proc.write_text("MemTotal:  9999999 kB\nMemAvailable:    4096000 kB\n")
    assert free_memory(proc, group) == 4000
    group.write_text("max\n")
    assert free_memory(proc, group) == 4000
    group.write_text(f"{2**30}\n")
    assert free_memory(proc, group) == 1024
    proc.write_text("MemTotal:  9999999 kB\n")
    assert isinstance(free_memory(proc, group), Unknown)
    assert isinstance(free_memory(tmp_path / "none", group), Unknown)
