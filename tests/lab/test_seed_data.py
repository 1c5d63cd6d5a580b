"""What the seed promises to hold."""

from __future__ import annotations

from migrate.lab import seed_data as data


def test_the_seed_is_large_and_mixed_enough() -> None:
    """Twenty topics, three hundred replicas, one to three of each partition, configurations of several kinds."""
    assert len(data.TOPICS) >= 20
    assert data.replicas() >= 300
    assert {topic.replication for topic in data.TOPICS} == {1, 2, 3}
    assert len({key for topic in data.TOPICS for key in topic.configs}) >= 6
    assert len({topic.name for topic in data.TOPICS}) == len(data.TOPICS)


def test_only_topics_with_one_replica_become_unavailable_in_a_roll() -> None:
    """They have a name by which a playbook accepts that; no other loses its min ISR when one broker stops."""
    for topic in data.TOPICS:
        minimum = int(topic.configs.get("min.insync.replicas", "1"))
        assert topic.name.startswith("single-") == (topic.replication == 1)
        assert topic.replication == 1 or minimum < topic.replication


def test_quotas_cover_every_kind_of_entity_and_its_default() -> None:
    """User, client id, both, IP: each with a name and as the default."""
    kinds = {tuple((kind, name is None) for kind, name in quota.entity) for quota in data.QUOTAS}
    for kind in ("user", "client-id", "ip"):
        assert ((kind, True),) in kinds
        assert ((kind, False),) in kinds
    assert (("user", False), ("client-id", True)) in kinds
    assert (("user", True), ("client-id", True)) in kinds


def test_configurations_cover_topics_brokers_and_all_brokers() -> None:
    """The password belongs to one broker: Kafka keeps no per-broker listener password for all."""
    assert {(config.kind, bool(config.name)) for config in data.CONFIGS} == {
        ("topic", True),
        ("broker", True),
        ("broker", False),
    }
    assert data.PASSWORD_CONFIG[1].endswith(".password")


def test_acls_are_literal_and_prefixed_allowing_and_denying() -> None:
    """On every kind of resource that a client meets."""
    assert {acl.pattern for acl in data.ACLS} == {"literal", "prefixed"}
    assert {acl.permission for acl in data.ACLS} == {"allow", "deny"}
    assert {acl.resource for acl in data.ACLS} == {"topic", "group", "cluster", "transactional_id"}


def test_the_loads_topics_are_among_the_seeds() -> None:
    """The load writes what the seed made."""
    names = {topic.name for topic in data.TOPICS}
    assert names.issuperset(data.LOAD_TOPICS)
    assert all(names.issuperset(topics) for topics in data.GROUPS.values())
