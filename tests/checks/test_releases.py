"""Advice is short: what a release may lack and what the cluster uses, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks import releases
from migrate.checks.registry import MESSAGE_LIMIT, Hit, shown
from migrate.checks.releases import REFUSALS, refusals
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import NodeAnswer, PartlyRead, ZookeeperSession
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.worlds import with_entity, with_live, with_values, with_zk, world_at


def test_the_shipped_list_is_well_formed() -> None:
    """Ids once, releases as numbers, features that are known."""
    found = releases.fixes()
    assert len({fix.id for fix in found}) == len(found) > 40
    for fix in found:
        assert re.fullmatch(r"KAFKA-\d{5}|strimzi-kafka-operator #\d+|ZooKeeper: \S+|no JIRA: [\w ]+", fix.id)
        assert fix.features
        assert fix.features <= releases.FEATURES
        assert fix.effect
        assert all(len(releases.release(entry)) == 3 for entry in fix.fixed)
        assert fix.fixed or fix.advice, "an open fault needs a way around it"


@pytest.mark.parametrize(
    ("highest", "line"), [(17, "3.9"), (18, "3.9"), (16, "3.7"), (15, "3.5"), (13, "0.8"), (11, "0.8")]
)
def test_api_versions_bound_the_release(highest: int, line: str) -> None:
    """From below: the oldest line that can be meant."""
    assert releases.least_release(NodeAnswer(False, {}, {1: highest})) == line


def test_a_node_that_tells_no_versions_has_no_bound() -> None:
    """Not 3.9, and not older."""
    assert releases.least_release(NodeAnswer(False, {})) is None


def ids(line: str, *features: str) -> set[str]:
    """The issues of an advice."""
    return {fix.id for fix in releases.applying(line, {releases.USED_BY_ALL, *features})}


def test_only_what_is_in_use_is_told() -> None:
    """JBOD's faults to those with several directories, policies' to those with policies."""
    assert "KAFKA-16162" in ids("3.5", "jbod")
    assert "KAFKA-16162" not in ids("3.5", "scram")
    assert "KAFKA-19026" in ids("3.9", "policies")
    assert "KAFKA-19026" not in ids("3.9")
    assert "KAFKA-18225" in ids("3.9", "quota-callback")
    assert "KAFKA-18225" not in ids("3.9", "quotas")


@pytest.mark.parametrize(
    ("feature", "known"),
    [("quotas", "no JIRA: client quota deletion"), ("acls", "no JIRA: ACL with a slash"), ("jbod", "KAFKA-20762")],
)
def test_what_3_9_loses_in_dual_write_is_told_to_those_who_use_it(feature: str, known: str) -> None:
    """No release of the line has a fix, and no JIRA names some of them."""
    assert known in ids("3.9", feature)
    assert known not in ids("3.9")
    assert {"no JIRA: client metrics", "ZooKeeper: jute.maxbuffer", "strimzi-kafka-operator #12785"} <= ids("3.9")


def test_a_quota_callback_is_a_feature_in_use() -> None:
    """By the brokers' files."""
    world = with_values(world_at(Stage.ASSESS), 1, client__quota__callback__class="com.example.Quotas")
    assert "quota-callback" in releases.features_in_use(world)
    assert "quota-callback" not in releases.features_in_use(world_at(Stage.ASSESS))


def test_only_what_the_release_may_lack_is_told() -> None:
    """3.9.0 has all that was fixed up to it."""
    assert "KAFKA-16162" not in ids("3.9", "jbod")
    assert {"KAFKA-19480", "KAFKA-20960"} <= ids("3.9")
    assert "KAFKA-19480" not in ids("3.9.2")
    assert "KAFKA-15552" in ids("3.5", "transactions")
    assert "KAFKA-15552" not in ids("3.7", "transactions")


def used(world: World) -> frozenset[str]:
    """Features in use."""
    return releases.features_in_use(world)


def test_features_are_found_where_they_are() -> None:
    """In znodes, files and disks; also in a tree that was read in part."""
    world = world_at(Stage.ASSESS)
    assert "jbod" in used(world)
    assert "jbod" not in used(replace(world, disks=Unknown("x"), configs=Unknown("x")))
    assert "policies" in used(with_values(world, 1, alter__config__policy__class__name="a.B"))
    for kind, feature in releases.KINDS.items():
        bent = with_entity(world, kind, "k", "n", "v")
        assert feature in used(bent)
        assert feature in used(replace(bent, zookeeper=PartlyRead("x", worlds.zk(bent))))
    secret = with_entity(world, "broker-config", "1", "listener.name.x.ssl.keystore.password", "hmac:1")
    assert "passwords" in used(secret)


def test_nothing_known_is_only_what_always_counts() -> None:
    """Unknown is no feature."""
    assert used(World(inventory=worlds.inventory())) == {releases.USED_BY_ALL}


def found(world: World, code: str) -> list[tuple[Severity, str]]:
    """Findings of a code."""
    return [(entry.severity, entry.about) for entry in checks.run(world, target=Stage.ASSESS) if entry.code == code]


def test_one_old_broker_among_new_ones_is_both_old_and_different() -> None:
    """B-VER-05 names it, B-VER-06 says that they differ; a silent one is a blind spot and no pass."""
    world = world_at(Stage.ASSESS)
    answers = dict(worlds.live(world).brokers)
    bent = with_live(world, brokers={**answers, NodeId(2): NodeAnswer(False, {}, {1: 15})})
    assert found(bent, "B-VER-05") == [(Severity.BLOCKER, "brokers [2]")]
    assert found(bent, "B-VER-06") == [(Severity.BLOCKER, "the brokers' software")]
    silent = with_live(world, brokers={**answers, NodeId(2): Unknown("refused")})
    assert found(silent, "B-VER-05") == [(Severity.BLIND_SPOT, "what broker 2 says of itself")]


@pytest.mark.parametrize(
    ("apis", "other"),
    [({}, (Severity.BLIND_SPOT, "the release of broker 2")), ({3: 12}, (Severity.BLOCKER, "the brokers' software"))],
)
def test_a_broker_whose_versions_tell_no_release_is_no_pass(apis: dict[int, int], other: tuple[Severity, str]) -> None:
    """It may be older than 3.9: a blind spot; and of another release than the others."""
    world = world_at(Stage.ASSESS)
    mute = NodeAnswer(migration_flag=False, finalized_features={}, apis=apis)
    bent = with_live(world, brokers={**worlds.live(world).brokers, NodeId(2): mute})
    assert found(bent, "B-VER-05") == [(Severity.BLIND_SPOT, "the release of broker 2")]
    assert found(bent, "B-VER-06") == [other]


def test_a_brokers_own_session_and_a_controllers_host_are_nobody_else() -> None:
    """Others are told by address with their number; a server that will not say is a blind spot."""
    world = world_at(Stage.ASSESS)
    assert found(world, "W-ZKN-20") == [(Severity.BLIND_SPOT, "who else uses this ZooKeeper")]

    own = [ZookeeperSession("10.0.0.1", entry.session) for entry in worlds.zk(world).brokers.values()]
    controller = ZookeeperSession(world.inventory.controllers[0].host, 4711)
    assert found(with_zk(world, clients=(*own, controller)), "W-ZKN-20") == []
    other = (ZookeeperSession("10.9.9.9", 1001), ZookeeperSession("10.9.9.9", 1002))
    assert found(with_zk(world, clients=(*own, *other)), "W-ZKN-20") == [(Severity.WARNING, "10.9.9.9")]


# -- what the tool refuses -----------------------------------------------------------------------------------------
def test_every_refusal_is_told_in_full() -> None:
    """Each with what to do instead, within what a finding may hold."""
    (hit,) = refusals(worlds.inventory(), worlds.world_at(Stage.ASSESS))
    assert isinstance(hit, Hit)
    told = hit.fix
    assert shown(told) == told, f"longer than {MESSAGE_LIMIT} characters"
    for what, instead in REFUSALS.items():
        assert f"{what}: {instead}" in told
