"""On real Kafka: a cluster, its bundle, a smaller lab in its shape, and the same playbook on that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.lab.cluster import Lab
from migrate.lab.seed_data import LOAD_TOPICS
from migrate.lab.topology import Shape
from migrate.model.outcome import Unknown
from migrate.model.views import ZookeeperView
from migrate.observe.bundle import read_bundle
from tests.cli.commands import Ended, kraft_migrate

pytestmark = [pytest.mark.kafka, pytest.mark.long]
PARTITIONS = 60
INTERNAL = ("__consumer_offsets", "__transaction_state")
LEAST = "min.insync.replicas"
LEFT_OUT = {("2", "num.replica.fetchers"), ("<default>", "log.cleaner.io.buffer.size")}
PASSWORD = "listener.name.client.ssl.keystore.password"


@dataclass(frozen=True, slots=True)
class Copied:
    """The real cluster's view, the lab's, its handle, and what its commands said."""

    real: ZookeeperView
    made: ZookeeperView
    lab: Lab
    up: Ended
    again: Ended
    seed: Ended


def view_in(bundle: Path, inventory: Path) -> ZookeeperView:
    """ZooKeeper's, by way of a bundle."""
    ended = kraft_migrate("bundle", "create", bundle, "--inventory", inventory)
    assert (ended.code, ended.err) == (0, "")
    found = read_bundle(str(bundle)).world.zookeeper
    assert not isinstance(found, Unknown)
    return found


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    """Three brokers with the seed of every lab, of two, three and four directories; then two brokers in their shape."""
    root = tmp_path_factory.mktemp("shape")
    cluster = Lab.create(root / "real", Shape(disks=(2, 3, 4)))
    try:
        cluster.up()
        cluster.seed()
        real = view_in(root / "bundle", cluster.inventory_path)
    finally:
        cluster.down()
    words = ("lab", "up", "--dir", root / "lab", "--from-bundle", root / "bundle", "--brokers", 2)
    up = kraft_migrate(*words, "--partitions", PARTITIONS)
    lab = Lab.open(root / "lab")
    try:
        again = kraft_migrate("lab", "up", "--dir", root / "lab")
        seed = kraft_migrate("lab", "seed", "--dir", root / "lab")
        assert (up.code, again.code, seed.code) == (0, 0, 0), up.err + again.err + seed.err
        yield Copied(real, view_in(root / "second", lab.inventory_path), lab, up, again, seed)
    finally:
        lab.down()


def topics(view: ZookeeperView) -> dict[str, tuple[int, int]]:
    """Partitions and replicas of the topics that brokers do not make themselves."""
    found: dict[str, tuple[int, int]] = {}
    for name, replicas in zip(view.partitions.topic, view.partitions.replicas, strict=True):
        if name not in INTERNAL:
            found[name] = (found.get(name, (0, 0))[0] + 1, len(replicas))
    return found


def rows(view: ZookeeperView, kind: str) -> dict[tuple[str, str], str]:
    """(key, name) -> value of that kind."""
    entities = view.entities
    found = zip(entities.kind, entities.key, entities.name, entities.value, strict=True)
    return {(key, name): value for one, key, name, value in found if one == kind and key not in INTERNAL}


def test_every_topic_is_there_within_the_bounds(copied: Copied) -> None:
    """None has more partitions than it had, and none more replicas than there are brokers."""
    real, made = topics(copied.real), topics(copied.made)
    assert made.keys() == real.keys()
    assert {*LOAD_TOPICS} <= made.keys()
    assert sum(count for count, _ in real.values()) > sum(count for count, _ in made.values()) == PARTITIONS
    for name, (count, factor) in made.items():
        assert count <= real[name][0]
        assert factor == min(2, real[name][1])


def test_brokers_have_as_many_directories_as_those_that_they_stand_for(copied: Copied) -> None:
    """In the order of their ids."""
    assert [len(broker.log_dirs) for broker in copied.lab.topology.brokers] == [2, 3]


def test_topic_configurations_are_the_same_but_for_min_insync_replicas(copied: Copied) -> None:
    """That follows the replication factor."""
    real, made = rows(copied.real, "topic-config"), rows(copied.made, "topic-config")
    assert {key: value for key, value in made.items() if key[1] != LEAST} == {
        key: value for key, value in real.items() if key[1] != LEAST
    }
    assert {value for (_, name), value in made.items() if name == LEAST} == {"1"}


def test_broker_configurations_are_the_same_but_for_those_that_are_named(copied: Copied) -> None:
    """Sizes of threads and memory stay behind, with the third broker's; a password is a made-up one."""
    real, made = rows(copied.real, "broker-config"), rows(copied.made, "broker-config")
    assert made.keys() == real.keys() - LEFT_OUT
    for key in made.keys() - {("0", PASSWORD)}:
        assert made[key] == real[key]
    assert made["0", PASSWORD] != real["0", PASSWORD]
    (line,) = [line for line in copied.up.out.splitlines() if "left out, broker configurations" in line]
    for broker, name in LEFT_OUT:
        assert f"{name} of {broker}" in line


def test_acls_and_quotas_are_the_same(copied: Copied) -> None:
    """Row by row, as ZooKeeper has them."""
    for kind, least in (("acl", 8), ("client-quota", 10)):
        found = rows(copied.made, kind)
        assert len(found) >= least
        assert found == rows(copied.real, kind)


def test_users_and_tokens_are_the_same_people_with_other_passwords(copied: Copied) -> None:
    """Names, mechanisms, iterations; owners and renewers."""
    real, made = rows(copied.real, "scram"), rows(copied.made, "scram")
    assert made.keys() == real.keys()
    assert {key for key in made if made[key] == real[key]} == {key for key in made if key[1].endswith(".iterations")}
    people = [
        sorted(value for (_, name), value in rows(view, "delegation-token").items() if name in ("owner", "renewers"))
        for view in (copied.real, copied.made)
    ]
    assert people[0] == people[1]


def test_what_differs_is_said_at_the_end_each_time(copied: Copied) -> None:
    """The second `lab up` needs no bundle for that."""
    listed = copied.up.out.partition("not as in the bundle")[2]
    assert "brokers: 2 of 3" in listed
    assert "partitions: 60 of 127" in listed
    assert "versions of Kafka" in listed
    assert copied.again.out.partition("not as in the bundle")[2] == listed
    assert "21 topics" in copied.seed.out


def test_a_lab_without_a_bundle_does_not_become_one(copied: Copied) -> None:
    """It is left as it is."""
    root = Path(copied.lab.topology.directory).parent
    ended = kraft_migrate("lab", "up", "--dir", root / "real", "--from-bundle", root / "bundle")
    assert ended.code == 1
    assert "without a bundle" in ended.err
    assert not (root / "real" / "seed.json").exists()


def test_the_demo_carries_it_through_the_same_playbook(copied: Copied) -> None:
    """Last, as it changes the cluster: to the controllers, without a blocker."""
    ended = kraft_migrate("lab", "demo", "--until", "controllers", "--dir", copied.lab.topology.directory)
    assert ended.code == 0, ended.err
    assert "parked after stage controllers" in ended.err
