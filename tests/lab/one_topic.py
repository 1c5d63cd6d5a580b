"""A topic for a lab that is not seeded: a cluster without any is not migrated (B-ZKN-19)."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.lab.seed import create_topics, settings_for
from migrate.lab.seed_data import DURABLE, SeedTopic


def make_topic(lab: Lab, name: str = "only") -> None:
    """Twelve partitions, with replicas on all brokers, whole."""
    create_topics(AdminClient(settings_for(lab.topology)), (SeedTopic(name, 12, 3, DURABLE),))
    names = [broker.name for broker in lab.topology.brokers]
    ready.wait_until("waiting for the topic", lambda: ready.brokers_agree(lab.topology), lab.supervisor, names)
