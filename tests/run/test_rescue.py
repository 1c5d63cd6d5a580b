"""The rescue as it acts: what is sent, when it is sent again, what is refused, and that only the metadata proves it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import (
    AssignmentRefused,
    DriveStopped,
    LockLost,
    NotController,
    ReplicaMoved,
    RescueUnproven,
    StaleBrokerEpoch,
)
from migrate.model.history import Event, misshapen
from migrate.model.ids import MIGRATING, NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.rescue import Found, Proofs, find
from migrate.model.world import Need, World
from migrate.run.drive import ATTEMPTS
from migrate.run.journal import Journal
from migrate.run.rescue import Rescued, Rescuer, proofs_of
from tests.model.test_rescue import BY_JOURNAL, DEAD, healthy, killed, named
from tests.testing import worlds
from tests.testing.clusters import directory_id

Replica = tuple[str, int]


class FakeClock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """Seconds."""
        return self.time

    def monotonic(self) -> float:
        """Seconds."""
        return self.time

    def boot(self) -> str:
        """Of this host."""
        return "boot"

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.time += seconds


@dataclass
class Cluster:
    """A cluster whose controller fails over what is assigned to a dead directory, as Kafka does; unless it is lazy."""

    world: World
    lazy: bool = False
    answers: int = 0
    raises: list[Exception] = field(default_factory=list)
    requests: list[tuple[int, int, Mapping[str, Sequence[Replica]]]] = field(default_factory=list)
    elections: list[Mapping[str, list[int]]] = field(default_factory=list)
    before_assign: Callable[[], None] = lambda: None

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """One look."""
        return self.world

    def assign(
        self, broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[Replica]]
    ) -> Mapping[Replica, int]:
        """Records, as ReplicationControlManager writes them."""
        self.before_assign()
        if self.raises:
            raise self.raises.pop(0)
        self.requests.append((int(broker), broker_epoch, assignments))
        sent = {replica: directory for directory, rows in assignments.items() for replica in rows}
        if not self.lazy and not self.answers:
            self._apply(int(broker), sent)
        return dict.fromkeys(sent, self.answers)

    def _apply(self, broker: int, sent: Mapping[Replica, str]) -> None:
        rows = worlds.kraft(self.world).partitions
        directories, isr, leader = (
            [list(one) for one in rows.directories],
            [list(one) for one in rows.isr],
            list(rows.leader),
        )
        online = worlds.kraft(self.world).brokers[NodeId(broker)].log_dirs
        for index in range(len(rows)):
            directory = sent.get((rows.topic_id[index], rows.partition[index]))
            if directory is None:
                continue
            directories[index][rows.replicas[index].index(broker)] = directory
            if directory in online:
                continue
            isr[index] = [one for one in isr[index] if one != broker] or isr[index]
            if leader[index] == broker:
                leader[index] = next((one for one in isr[index] if one != broker), -1)
        self.world = worlds.with_kraft(
            self.world, partitions=replace(rows, directories=directories, isr=isr, leader=leader)
        )

    def elect_leaders(self, partitions: Mapping[str, list[int]]) -> Mapping[Replica, int]:
        """The preferred replica leads."""
        self.elections.append(partitions)
        rows = worlds.kraft(self.world).partitions
        wanted = {(topic, number) for topic, numbers in partitions.items() for number in numbers}
        leader = [
            replicas[0] if (topic, number) in wanted else before
            for topic, number, replicas, before in zip(
                rows.topic, rows.partition, rows.replicas, rows.leader, strict=True
            )
        ]
        self.world = worlds.with_kraft(self.world, partitions=replace(rows, leader=leader))
        return dict.fromkeys(wanted, 0)


@dataclass
class Rescue:
    """A rescuer on such a cluster, and what it wrote."""

    cluster: Cluster
    proofs: Proofs = field(default_factory=lambda: BY_JOURNAL)
    written: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    asked: int = 0
    lost_at: int = 0

    def still_ours(self) -> None:
        """The lock, lost at a certain question."""
        self.asked += 1
        if self.asked == self.lost_at:
            raise LockLost("gone")

    def shown(self) -> Found:
        """What a person sees first."""
        found = find(self.cluster.world, self.proofs)
        assert isinstance(found, Found)
        return found

    def run(self, shown: Found | None = None) -> Rescued:
        """Do it."""
        rescuer = Rescuer(
            self.cluster,
            self.cluster,
            FakeClock(),
            self.still_ours,
            lambda name, data: self.written.append((name, json.loads(json.dumps(data)))),
            self.proofs,
        )
        return rescuer.rescue(self.shown() if shown is None else shown)


def hanging() -> Cluster:
    """Broker 0's second directory died while its replicas were MIGRATING."""
    return Cluster(killed(named(healthy(), 0, MIGRATING), DEAD))


def test_the_dead_directorys_true_id_is_sent_and_everything_is_freed() -> None:
    """One request with the broker's epoch; afterwards nothing is found."""
    rescue = Rescue(hanging())
    shown = rescue.shown()
    assert shown.stranded
    done = rescue.run()
    ((broker, epoch, sent),) = rescue.cluster.requests
    assert (broker, epoch) == (0, worlds.kraft(rescue.cluster.world).brokers[NodeId(0)].epoch)
    assert {directory: set(rows) for directory, rows in sent.items()} == {
        str(directory_id(0, 1)): {row.replica for row in shown.stranded}
    }
    assert (done.sent, done.requests, done.freed) == (len(shown.stranded), 1, sum(row.hangs for row in shown.stranded))
    assert rescue.shown().stranded == ()


def test_each_request_is_journalled_before_and_after_with_what_was_sent() -> None:
    """And the lock is asked before it, twice: once behind the intent."""
    rescue = Rescue(hanging())
    rescue.run()
    assert [name for name, _ in rescue.written] == ["effect", "effected", "rescued"]
    assert [misshapen(Event(n, 1.0, *entry)) for n, entry in enumerate(rescue.written)] == ["", "", ""]
    assert rescue.written[0][1]["assign"].keys() == {str(directory_id(0, 1))}
    assert rescue.asked == 2


@pytest.mark.parametrize("error", [StaleBrokerEpoch("77"), NotController("41")])
def test_a_typed_retryable_error_is_met_with_another_look_and_the_same_request(error: Exception) -> None:
    """The epoch is read again each time."""
    cluster = hanging()
    cluster.raises = [error, error]
    assert Rescue(cluster).run().requests == 1
    assert len(cluster.requests) == 1


def test_retries_end() -> None:
    """With the error itself."""
    cluster = hanging()
    cluster.raises = [StaleBrokerEpoch("77") for _ in range(ATTEMPTS)]
    with pytest.raises(StaleBrokerEpoch):
        Rescue(cluster).run()
    assert cluster.requests == []


def test_what_is_freed_between_two_attempts_is_not_sent_again() -> None:
    """A request that timed out may have been carried out."""
    cluster = hanging()
    rows = find(cluster.world, BY_JOURNAL)
    assert isinstance(rows, Found)

    def carried_out() -> None:
        cluster.before_assign = lambda: None
        cluster._apply(0, {row.replica: str(row.send) for row in rows.stranded})
        raise StaleBrokerEpoch("no answer")

    cluster.before_assign = carried_out
    assert Rescue(cluster).run().sent == len(rows.stranded)
    assert cluster.requests == []


@pytest.mark.parametrize(
    ("code", "error", "why", "requests"),
    [
        (100, ReplicaMoved, "deleted", ATTEMPTS),
        (3, ReplicaMoved, "does not exist", ATTEMPTS),
        (6, ReplicaMoved, "reassigned", ATTEMPTS),
        (99, AssignmentRefused, "log", 1),
    ],
)
def test_each_refusal_is_explained(code: int, error: type[Exception], why: str, requests: int) -> None:
    """What the controller calls gone is looked for again before each retry; no retry mends anything else."""
    cluster = hanging()
    cluster.answers = code
    with pytest.raises(error) as caught:
        Rescue(cluster).run()
    assert why in caught.value.why  # type: ignore[attr-defined]
    assert len(cluster.requests) == requests


def test_success_without_the_records_proves_nothing() -> None:
    """The answer was 0 for everything; the metadata says nothing of it within a minute."""
    cluster = hanging()
    cluster.lazy = True
    with pytest.raises(RescueUnproven, match="was sent"):
        Rescue(cluster).run()


def test_only_what_was_shown_and_still_holds_is_sent() -> None:
    """What came in between was seen by nobody; what was freed needs nothing."""
    rescue = Rescue(hanging())
    shown = rescue.shown()
    first = replace(shown, stranded=shown.stranded[:1])
    assert rescue.run(first).sent == 1
    ((_, _, sent),) = rescue.cluster.requests
    assert sum(map(len, sent.values())) == 1


def test_an_unproven_id_is_never_sent() -> None:
    """Nothing at all is."""
    rescue = Rescue(hanging(), proofs={})
    assert rescue.run().sent == 0
    assert rescue.cluster.requests == []


def test_a_lost_lock_stops_before_the_request() -> None:
    """Both before and behind the intent."""
    for question in (1, 2):
        rescue = Rescue(hanging(), lost_at=question)
        with pytest.raises(LockLost):
            rescue.run()
        assert rescue.cluster.requests == []


def test_unseen_metadata_stops_it() -> None:
    """Before anything is sent."""
    rescue = Rescue(hanging())
    shown = rescue.shown()
    rescue.cluster.world = replace(rescue.cluster.world, kraft=Unknown("no controller leads"))
    with pytest.raises(DriveStopped, match="no controller leads"):
        rescue.run(shown)
    assert rescue.cluster.requests == []


def leaderless_cluster() -> Cluster:
    """The first partition has no leader, and its directory is back."""
    world = healthy()
    rows = worlds.kraft(world).partitions
    return Cluster(worlds.with_kraft(world, partitions=replace(rows, leader=[-1, *rows.leader[1:]])))


def test_a_leader_is_elected_where_its_directory_is_back() -> None:
    """ElectLeaders PREFERRED; nothing is assigned for it."""
    cluster, rows = leaderless_cluster(), worlds.kraft(healthy()).partitions
    done = Rescue(cluster).run()
    assert (done.sent, done.elected) == (0, 1)
    assert cluster.elections == [{rows.topic[0]: [rows.partition[0]]}]
    assert worlds.kraft(cluster.world).partitions.leader == rows.leader


def test_a_lost_lock_stops_before_the_election() -> None:
    """Both before and behind the intent."""
    for question in (1, 2):
        rescue = Rescue(leaderless_cluster(), lost_at=question)
        with pytest.raises(LockLost):
            rescue.run()
        assert rescue.cluster.elections == []


def test_a_partition_without_other_replica_is_named_as_left() -> None:
    """No request brings it back while its only disk is dead."""
    world = healthy()
    rows = worlds.kraft(world).partitions
    alone = replace(
        rows,
        replicas=[[0] for _ in rows.replicas],
        isr=[[0] for _ in rows.isr],
        leader=[0] * len(rows),
        directories=[[str(MIGRATING)] for _ in rows.directories],
    )
    cluster = Cluster(killed(worlds.with_kraft(world, partitions=alone), DEAD))
    done = Rescue(cluster).run()
    assert done.lost
    assert all(row.alone for row in done.lost)
    assert set(worlds.kraft(cluster.world).partitions.leader) == {0, -1}


# -- proofs in journals ----------------------------------------------------------------------------------------------
def cell(path: str, identity: str, broker: int = 0) -> dict[str, Any]:
    """A ledger's cell."""
    return {"broker": broker, "directory": identity, "path": path, "states": {"VERIFIED": 1}}


def journal(runs: Path, run: str, *ledgers: tuple[float, Sequence[dict[str, Any]]]) -> Path:
    """A run's journal with those ledgers."""
    path = runs / run / "journal.jsonl"
    path.parent.mkdir(parents=True)
    found = Journal.begin(path, 1.0, {"plan": run})
    for moment, cells in ledgers:
        found.append(moment, "ledger", {"step": "s", "offset": 1, "engine": "pure", "cells": list(cells)})
    found.close()
    return path


def inventory_of_runs(tmp_path: Path) -> Inventory:
    """An inventory with that folder of runs."""
    return replace(worlds.inventory(), runs=str(tmp_path))


def test_the_newest_ledger_that_names_a_path_proves_its_id(tmp_path: Path) -> None:
    """Over all runs; with the line that says so."""
    journal(tmp_path, "aaa", (50.0, [cell(DEAD, "old"), cell("/other", "one")]))
    journal(
        tmp_path, "bbb", (20.0, [cell(DEAD, "older")]), (60.0, [cell(DEAD, "new"), cell(DEAD, "foreign", broker=2)])
    )
    found = proofs_of(inventory_of_runs(tmp_path))
    assert found[0, DEAD] == ("new", "the ledger in line 3 of the journal of run bbb")
    assert found[2, DEAD][0] == "foreign"
    assert found[0, "/other"][0] == "one"


def test_cells_without_path_or_id_and_damaged_journals_prove_nothing(tmp_path: Path) -> None:
    """Replicas of a dead disk stand in a cell without a path."""
    journal(tmp_path, "aaa", (50.0, [cell("", "id"), cell("/data", "")]))
    damaged = journal(tmp_path, "bbb", (60.0, [cell(DEAD, "id")]), (61.0, []))
    damaged.write_bytes(damaged.read_bytes().replace(b'"id"', b'"xx"'))
    assert proofs_of(inventory_of_runs(tmp_path)) == {}
    assert proofs_of(inventory_of_runs(tmp_path / "none")) == {}
