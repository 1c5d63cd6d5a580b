"""HLT: which partitions a restart takes away, and which are not whole now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.registry import ALWAYS, BEFORE_COPY, Blind, Hit, Result, check
from migrate.checks.replicas import IDLE, acceptance, idle
from migrate.checks.sight import both, metadata_answers, zookeeper
from migrate.checks.zookeeper import sample
from migrate.model import availability
from migrate.model.availability import Suffering
from migrate.model.broker_modes import Mode, positions
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import KraftView, MetadataAnswer, PartitionHealth, ZookeeperView
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
    "No partition goes below min.insync.replicas because of a run unless its topic is accepted by name. A topic with "
    "one replica, or with no more than min.insync.replicas, does not bear a restart.",
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


ISR_RULE: Final = "W-HLT-03"
PARTITION: Final = "partition"  # the selector's kind; its name is TOPIC-PARTITION, its field a broker's id
Answers = Mapping[NodeId, MetadataAnswer | Unknown]


def excuses(world: World, entry: PartitionHealth) -> tuple[AcceptedDifference, ...]:
    """The acceptances of the replicas that its ISR lacks; () where one is not accepted, or that does not help.

    Without a leader, or with one that its ISR lacks, a partition is lost or changes at this moment: nothing excuses it.
    """
    missing, name = sorted(set(entry.replicas) - set(entry.isr)), f"{entry.topic}-{entry.partition}"
    if entry.partition < 0 or entry.leader not in entry.isr:
        return ()
    found = [acceptance(world, ISR_RULE, PARTITION, name, str(broker)) for broker in missing]
    return tuple(one for one in found if one is not None) if all(found) else ()


def unexcused(world: World, answer: MetadataAnswer) -> tuple[PartitionHealth, ...]:
    """What is not whole in a broker's answer and not accepted by name."""
    return tuple(entry for entry in answer.unhealthy if not excuses(world, entry))


def endangered(
    world: World, view: ZookeeperView | KraftView, answers: Answers, broker: NodeId
) -> Iterator[str | Unknown]:
    """Why a stop of the broker takes too much from each partition whose replicas are excused.

    Its last replica in sync is never taken.  Below min.insync.replicas it goes where its topic is accepted as
    unavailable, too: an acceptance of a replica alone does not say that.
    """
    patterns = () if isinstance(world.playbook, Unknown) else world.playbook.accept_unavailable
    default = availability.of_brokers(view.entities, world.configs, [node.id for node in world.inventory.brokers])
    own = availability.of_topics(view.entities)
    seen = {entry: None for answer in answers.values() if not isinstance(answer, Unknown) for entry in answer.unhealthy}
    for entry in seen:
        if broker not in entry.isr or not excuses(world, entry):
            continue
        name, left = f"{entry.topic}-{entry.partition}", len(set(entry.isr)) - 1
        least = own.get(entry.topic, default)
        if not left:
            yield f"broker {broker} has the only replica of {name} that is in sync"
        elif not availability.not_accepted([entry.topic], patterns):
            continue
        elif isinstance(least, Unknown):
            yield Unknown(f"{availability.MIN_ISR} of {name} is not known: {least.reason}")
        elif left < least:
            in_sync = plural(left, "replica")
            yield f"without broker {broker} {name} has {in_sync} in sync, and {availability.MIN_ISR}={least}"


@check(
    ISR_RULE,
    "partitions are not whole",
    "Restarting a broker while another replica lags can take a partition below min.insync.replicas; every restart "
    "waits for full ISRs.",
    "Wait, or find out what holds the replicas back. A replica that stays out of its ISR can be accepted by name as "
    "W-HLT-03 in an AcceptedDifferences file (kind: partition, name: TOPIC-PARTITION, field: the broker's id).",
    "Metadata: leader, isr",
).sees(metadata_answers)
def not_whole(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    """Over all brokers' answers, each partition once."""
    found = (entry for answer in answers.values() for entry in unexcused(world, answer))
    names = dict.fromkeys(f"{entry.topic}-{entry.partition}" for entry in found)
    if names:
        message = f"no leader, or an ISR smaller than the replica list: {sample(list(names))}"
        yield Hit(plural(len(names), "partition"), message)


@check(
    "W-HLT-05",
    "a replica is not in sync, as was accepted",
    "Restarts do not wait for it. They wait for every other replica, and none of them takes the partition's last "
    "replica in sync. An AcceptedDifferences file names it as W-HLT-03.",
    "Nothing, if the acceptance is right. It does not prove the replica: its directory must be in the metadata before "
    "the migration ends, like that of every other one.",
    "kind: AcceptedDifferences",
).sees(metadata_answers, when=ALWAYS)
def accepted_replica(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    found = (entry for answer in answers.values() for entry in answer.unhealthy)
    for one in dict.fromkeys(one for entry in found for one in excuses(world, entry)):
        message = f"its replica on broker {one.field} is not in sync: accepted by {one.ticket} until {one.expires}"
        yield Hit(f"partition {one.name}", message, one.reason)


@check("W-HLT-06", "an accepted replica is in sync, or its acceptance has expired", *IDLE).sees(
    metadata_answers, when=ALWAYS
)
def idle_replica(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    found = [entry for answer in answers.values() for entry in answer.unhealthy]
    used = {one for entry in found for one in excuses(world, entry)}
    for one, why in idle(world, ISR_RULE, used.__contains__):
        yield Hit(f"partition {one.name}", f"the acceptance {one.ticket} of broker {one.field} {why}")


@check(
    "B-HLT-07",
    "a partition whose replica is accepted does not bear the restart of a broker",
    "A restart takes one more of its replicas. The last one in sync is never taken, and min.insync.replicas is kept "
    "unless the topic is accepted as unavailable. Of three replicas, one of them accepted, a restart leaves one, and "
    "min.insync.replicas may be 2.",
    "Repair the replica, or reassign it to a broker where it catches up (kafka-reassign-partitions.sh, before the "
    "migration). Where one more is in sync, name the topic in policy.availability.accept_unavailable as well.",
    "min.insync.replicas",
).sees(both(zookeeper, metadata_answers), blocks_from=Stage.MIGRATION_MODE)
def does_not_bear(seen: tuple[ZookeeperView, dict[NodeId, MetadataAnswer]], world: World) -> Result:
    view, answers = seen
    for one in positions(world):
        if one.settled(Mode.KRAFT):
            continue
        for why in endangered(world, view, answers, one.broker):
            if isinstance(why, Unknown):
                yield Blind(availability.MIN_ISR, why.reason)
            else:
                yield Hit(f"broker {int(one.broker)}", why)


@check(
    "W-HLT-04",
    "partitions have no leader",
    "A partition without a leader is copied as it is, and clients cannot use it. All of its replicas that are in sync "
    "are down.",
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
