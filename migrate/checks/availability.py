"""HLT: which partitions a restart takes away, and which are not whole now."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.checks.registry import BEFORE_COPY, Blind, Hit, Result, check
from migrate.checks.sight import metadata_answers, zookeeper
from migrate.checks.zookeeper import sample
from migrate.model import availability
from migrate.model.availability import Suffering
from migrate.model.broker_modes import Mode, positions
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MetadataAnswer, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World


def suffering(view: ZookeeperView, world: World) -> Suffering:
    """Topics that are not writable while one of their brokers restarts, whatever one does."""
    default = availability.of_brokers(view.entities, world.configs, [node.id for node in world.inventory.brokers])
    every = {broker for replicas in view.partitions.replicas for broker in replicas}
    return availability.suffering(view.partitions, view.entities, default, every)


def _unjudged(found: Suffering) -> Iterator[Blind]:
    if found.unknown is not None:
        yield Blind(f"{availability.MIN_ISR} of the brokers", found.unknown)


@check(
    "I-HLT-01",
    "topics that are unavailable while one of their brokers restarts",
    "Each broker restarts twice. What has one replica is gone for that time; what has as many replicas as its "
    "min.insync.replicas takes no records with acks=all.",
    "Replication factor 1, or equal to min.insync.replicas.",
    "Raise the replication factor, or inform the owners of the times of the restarts.",
    "min.insync.replicas",
).sees(zookeeper)
def unavailable_in_restarts(view: ZookeeperView, world: World) -> Result:
    """Those that the playbook accepts, and all of them where there is no playbook."""
    found, playbook = suffering(view, world), world.playbook
    yield from _unjudged(found)
    names, said = sorted(found.topics), ""
    if not isinstance(playbook, Unknown):
        refused, said = (
            availability.not_accepted(found.topics, playbook.accept_unavailable),
            ", accepted by the playbook",
        )
        names = sorted(found.topics.keys() - set(refused))
    if names:
        yield Hit(plural(len(names), "topic"), f"unavailable while a broker restarts{said}: {sample(names)}")


@check(
    "B-HLT-02",
    "a topic becomes unavailable and nobody accepted it",
    "No partition goes below min.insync.replicas because of a run unless its topic is accepted by name.",
    "Replication factor 1, or equal to min.insync.replicas, and no pattern of the playbook matches the topic.",
    "Raise the replication factor, or name the topic in policy.availability.accept_unavailable.",
    "min.insync.replicas",
).sees(zookeeper, blocks_from=Stage.MIGRATION_MODE)
def unavailable_unaccepted(view: ZookeeperView, world: World) -> Result:
    """Without a playbook there is nothing to accept by: see I-HLT-01."""
    # one broker that is not known to be in KRaft mode still has to be rolled
    if isinstance(world.playbook, Unknown) or all(one.settled(Mode.KRAFT) for one in positions(world)):
        return
    found = suffering(view, world)
    yield from _unjudged(found)
    for topic in availability.not_accepted(found.topics, world.playbook.accept_unavailable):
        yield Hit(f"topic {topic}", f"{found.topics[topic]}: unavailable while one of its brokers restarts")


@check(
    "W-HLT-03",
    "partitions are not whole",
    "Restarting a broker while another replica lags can take a partition below min.insync.replicas; every restart "
    "waits for full ISRs.",
    "A broker is down, slow or catching up.",
    "Wait, or find out what holds the replicas back.",
    "Metadata: leader, isr",
).sees(metadata_answers)
def not_whole(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    """Over all brokers' answers, each partition once."""
    names = dict.fromkeys(_unhealthy(answers))
    if names:
        message = f"no leader, or an ISR smaller than the replica list: {sample(list(names))}"
        yield Hit(plural(len(names), "partition"), message)


def _unhealthy(answers: dict[NodeId, MetadataAnswer]) -> Iterator[str]:
    for answer in answers.values():
        for entry in answer.unhealthy:
            yield f"{entry.topic}-{entry.partition}"


@check(
    "W-HLT-04",
    "partitions have no leader",
    "A partition without a leader is copied as it is, and clients cannot use it.",
    "All of its replicas that are in sync are down.",
    "Start the brokers that hold its in-sync replicas; then check again.",
    "/brokers/topics/T/partitions/P/state: leader -1",
).sees(zookeeper, when=BEFORE_COPY)
def no_leader(view: ZookeeperView, world: World) -> Result:
    """Leader -1 with a state; a missing state is B-ZKN-04."""
    columns = view.partitions
    names = [
        f"{topic}-{partition}"
        for topic, partition, leader, revision in zip(
            columns.topic, columns.partition, columns.leader, columns.revision, strict=True
        )
        if leader < 0 <= revision
    ]
    if names:
        yield Hit(plural(len(names), "partition"), f"no leader: {sample(names)}")
