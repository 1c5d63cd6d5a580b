"""What a dead directory leaves hanging is found, and an id that nothing proves is never sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.rescue import Found, Leaderless, Proofs, RescueKind, find, leaderless
from migrate.model.stage import Stage
from migrate.model.views import Directory, KraftView, LogDirAnswer, Registration
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.clusters import directory_id, uuid

DEAD = "/data/b0/d1"
OTHER = "/data/b0/d2"
NOTHING: Proofs = {}
BY_JOURNAL: Proofs = {(0, DEAD): (str(directory_id(0, 1)), "the ledger in line 9 of the journal of run abc")}


def healthy() -> World:
    """A cluster in KRaft mode in which every broker tells of its directories what lies on its disks."""
    world = worlds.world_at(Stage.SOAK)
    assert not isinstance(world.disks, Unknown)
    said = {
        node: tuple(LogDirAnswer(entry.path, 0, len(entry.replicas), ()) for entry in found.directories)
        for node, found in world.disks.items()
        if not isinstance(found, Unknown) and int(node) < 3
    }
    return worlds.with_live(world, log_dirs=said)


def found(world: World, proofs: Proofs = NOTHING) -> Found:
    """What is found in it."""
    answer = find(world, proofs)
    assert isinstance(answer, Found)
    return answer


def named(world: World, broker: int, value: str) -> World:
    """Every replica of that broker has that directory in the metadata."""
    rows = worlds.kraft(world).partitions
    directories = [
        [value if replica == broker else one for replica, one in zip(replicas, ids, strict=True)]
        for replicas, ids in zip(rows.replicas, rows.directories, strict=True)
    ]
    return worlds.with_kraft(world, partitions=replace(rows, directories=directories))


def killed(
    world: World, *paths: str, gone: bool = True, change: Callable[[Registration], Registration] | None = None
) -> World:
    """Those directories of broker 0 are offline to it; `gone`: nothing of them can be read."""
    live = worlds.live(world)
    answers = live.log_dirs[NodeId(0)]
    assert not isinstance(answers, Unknown)
    said = tuple(replace(one, error=56, replicas=0) if one.path in paths else one for one in answers)
    world = worlds.with_live(world, log_dirs={**live.log_dirs, NodeId(0): said})
    if gone:
        for path in paths:
            index = int(path[-1])
            world = worlds.with_directory(world, 0, index, unreadable)
    registration = worlds.kraft(world).brokers[NodeId(0)]
    lost = {directory_id(0, int(path[-1])) for path in paths}
    registration = replace(registration, log_dirs=registration.log_dirs - lost)
    if change is not None:
        registration = change(registration)
    return worlds.with_kraft(world, brokers={**worlds.kraft(world).brokers, NodeId(0): registration})


def unreadable(entry: Directory) -> Directory:
    """Nothing of it can be read."""
    from tests.testing.clusters import directory

    return directory(entry.path, None, (), "not a directory")


def remembered(registration: Registration) -> Registration:
    """The log still tells of the registration as it was."""
    return replace(registration, at_start=frozenset(directory_id(0, index) for index in range(3)))


def in_directory(world: World, broker: int, index: int) -> set[tuple[str, int]]:
    """(topic, partition) of the replicas that lie there."""
    assert not isinstance(world.disks, Unknown)
    entry = worlds.found_directory(world.disks, NodeId(broker), index)
    return set(zip(entry.replicas.topic, entry.replicas.partition, strict=True))


def test_in_a_healthy_cluster_there_is_nothing_to_rescue() -> None:
    """Neither dead directories, nor wrong ones, nor elections."""
    answer = found(healthy())
    assert (answer.dead, answer.stranded, answer.leaderless, answer.unseen) == ((), (), (), ())
    assert answer.brokers == ()


@pytest.mark.parametrize(
    "value", [MIGRATING, UNASSIGNED, LOST, DirectoryId(uuid(77)), directory_id(0, 0), directory_id(1, 1)]
)
def test_replicas_of_a_dead_directory_with_any_other_value_are_found(value: str) -> None:
    """MIGRATING, UNASSIGNED, LOST, random, the broker's own other, another broker's: none of them fails over."""
    before = named(healthy(), 0, value)
    expected = in_directory(before, 0, 1)
    assert expected
    answer = found(killed(before, DEAD), BY_JOURNAL)
    dead = {(row.topic, row.partition) for row in answer.stranded if row.kind is RescueKind.DEAD}
    assert dead == expected
    assert {row.send for row in answer.stranded if row.kind is RescueKind.DEAD} == {directory_id(0, 1)}
    assert [(entry.broker, entry.path, entry.id) for entry in answer.dead] == [(0, DEAD, directory_id(0, 1))]


def test_replicas_that_the_metadata_places_in_the_dead_directory_are_failed_over_by_kafka() -> None:
    """Nothing is left to do for them."""
    assert found(killed(healthy(), DEAD), BY_JOURNAL).stranded == ()


def test_a_replica_hangs_where_it_leads_or_sits_in_the_isr() -> None:
    """One that left both holds nothing up, and is named all the same."""
    rows = found(killed(named(healthy(), 0, MIGRATING), DEAD), BY_JOURNAL).stranded
    assert rows
    assert all(row.hangs is (row.leads or row.in_isr) for row in rows)
    view = worlds.kraft(healthy())
    out = replace(
        view.partitions,
        isr=[[one for one in isr if one] for isr in view.partitions.isr],
        leader=[1] * len(view.partitions),
    )
    bent = worlds.with_kraft(named(healthy(), 0, MIGRATING), partitions=out)
    directories = worlds.kraft(named(healthy(), 0, MIGRATING)).partitions.directories
    bent = worlds.with_kraft(bent, partitions=replace(out, directories=directories))
    left = found(killed(bent, DEAD), BY_JOURNAL).stranded
    assert len(left) == len(rows)
    assert not any(row.hangs for row in left)


# -- the id ----------------------------------------------------------------------------------------------------------
def the_id(world: World, proofs: Proofs) -> DirectoryId | Unknown:
    """Of the only dead directory."""
    (only,) = found(world, proofs).dead
    return only.id


def test_without_a_proof_no_id_is_sent() -> None:
    """The metadata names ids too, and none of them counts: any of them may be foreign."""
    world = killed(named(healthy(), 0, directory_id(0, 1)), DEAD)
    assert isinstance(the_id(world, NOTHING), Unknown)
    bent = killed(named(healthy(), 0, MIGRATING), DEAD)
    answer = found(bent)
    assert answer.stranded
    assert all(isinstance(row.send, Unknown) for row in answer.stranded)
    assert answer.to_send(0) == {}
    assert answer.brokers == ()


def test_each_source_proves_the_id_by_itself() -> None:
    """The journal; the registration as the log tells it; the registration that still stands; the disk's own file."""
    true = directory_id(0, 1)
    assert the_id(killed(healthy(), DEAD), BY_JOURNAL) == true
    assert the_id(killed(healthy(), DEAD, change=remembered), NOTHING) == true
    still = killed(healthy(), DEAD, change=lambda one: replace(one, log_dirs=one.log_dirs | {true}))
    assert the_id(still, NOTHING) == true
    assert the_id(killed(healthy(), DEAD, gone=False), NOTHING) == true


def test_sources_that_contradict_each_other_prove_nothing() -> None:
    """The registration is no longer told, and the disk has another id than the journal."""
    foreign: Proofs = {(0, DEAD): (uuid(77), "a journal")}
    answer = the_id(killed(healthy(), DEAD, gone=False), foreign)
    assert isinstance(answer, Unknown)
    assert "contradictory" in answer.reason


def test_what_the_broker_registered_with_is_the_truth() -> None:
    """An old journal, or a disk that was replaced under the broker, does not count against it."""
    foreign: Proofs = {(0, DEAD): (uuid(77), "a journal")}
    assert the_id(killed(healthy(), DEAD, change=remembered), foreign) == directory_id(0, 1)

    def replaced(entry: Directory) -> Directory:
        from tests.testing.clusters import directory

        return directory(entry.path, uuid(78), (), "")

    world = worlds.with_directory(killed(healthy(), DEAD, change=remembered), 0, 1, replaced)
    assert the_id(world, foreign) == directory_id(0, 1)


@pytest.mark.parametrize("identity", [directory_id(0, 0), MIGRATING, LOST])
def test_the_id_of_a_living_directory_or_a_reserved_one_is_never_sent(identity: str) -> None:
    """The first would take healthy replicas offline in the metadata, the second is what we come to mend."""
    proofs: Proofs = {(0, DEAD): (str(identity), "a journal")}
    assert isinstance(the_id(killed(healthy(), DEAD), proofs), Unknown)


def test_two_dead_directories_are_told_apart_by_what_can_still_be_read_or_not_at_all() -> None:
    """Each id is proven; which replica was where is not."""
    both: Proofs = {**BY_JOURNAL, (0, OTHER): (str(directory_id(0, 2)), "the same journal")}
    blind = found(killed(named(healthy(), 0, MIGRATING), DEAD, OTHER), both)
    assert {entry.id for entry in blind.dead} == {directory_id(0, 1), directory_id(0, 2)}
    assert blind.stranded
    assert all(isinstance(row.send, Unknown) for row in blind.stranded)
    seen = found(killed(named(healthy(), 0, MIGRATING), DEAD, OTHER, gone=False), both)
    for index in (1, 2):
        rows = {(row.topic, row.partition) for row in seen.stranded if row.send == directory_id(0, index)}
        assert rows == in_directory(healthy(), 0, index)


def test_where_another_directory_cannot_be_read_nothing_says_that_the_replica_is_in_the_dead_one() -> None:
    """It may lie in the one that only we cannot read: its broker may use it."""
    world = worlds.with_directory(named(healthy(), 0, MIGRATING), 0, 2, unreadable)
    answer = found(killed(world, DEAD), BY_JOURNAL)
    assert answer.stranded
    assert all(isinstance(row.send, Unknown) for row in answer.stranded)


# -- wrong values over healthy disks ---------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [LOST, DirectoryId(uuid(77)), directory_id(1, 1)])
def test_a_wrong_directory_over_a_healthy_disk_is_found_although_the_isr_is_full(value: str) -> None:
    """And the id of its own disk is what is to be sent."""
    answer = found(named(healthy(), 0, value))
    assert answer.stranded
    assert all(row.in_isr and not row.hangs and row.kind is RescueKind.WRONG for row in answer.stranded)
    for index in range(3):
        rows = {(row.topic, row.partition) for row in answer.stranded if row.send == directory_id(0, index)}
        assert rows == in_directory(healthy(), 0, index)


def test_an_own_directory_that_is_the_wrong_one_is_found() -> None:
    """All but those that really lie there."""
    answer = found(named(healthy(), 0, directory_id(0, 0)))
    rows = {(row.topic, row.partition) for row in answer.stranded}
    assert rows == in_directory(healthy(), 0, 1) | in_directory(healthy(), 0, 2)


@pytest.mark.parametrize("value", [MIGRATING, UNASSIGNED, ""])
def test_a_replica_that_is_not_reported_yet_is_not_rescued_while_its_disk_lives(value: str) -> None:
    """That is the broker's report, or `directories assign`."""
    assert found(named(healthy(), 0, value)).stranded == ()


# -- what is not seen ------------------------------------------------------------------------------------------------
def uncommitted(view: KraftView) -> Mapping[str, Any]:
    """The tail is not proven."""
    return {"high_watermark": Unknown("one directory alone")}


@pytest.mark.parametrize("part", ["kraft", "disks", "live"])
def test_without_a_view_nothing_is_found_rather_than_that_there_is_nothing(part: str) -> None:
    """Unknown, with the reason."""
    changes: dict[str, Any] = {part: Unknown("refused")}
    answer = find(replace(healthy(), **changes), NOTHING)
    assert isinstance(answer, Unknown)
    assert "refused" in answer.reason


def test_uncommitted_metadata_is_no_base_for_anything() -> None:
    """As for every gate."""
    assert isinstance(find(worlds.with_kraft(healthy(), **uncommitted(worlds.kraft(healthy()))), NOTHING), Unknown)


def test_a_broker_that_is_not_seen_is_named_and_the_others_are_judged() -> None:
    """By its answer, or by its disks."""
    world = killed(named(healthy(), 0, MIGRATING), DEAD)
    live = worlds.live(world)
    silent = worlds.with_live(world, log_dirs={**live.log_dirs, NodeId(1): Unknown("timed out")})
    answer = found(silent, BY_JOURNAL)
    assert answer.unseen == ("broker 1: timed out",)
    assert answer.brokers == (0,)


def test_a_fenced_broker_has_nothing_to_rescue() -> None:
    """It leads nothing and is in no ISR: its partitions have failed over."""
    world = killed(named(healthy(), 0, MIGRATING), DEAD, change=lambda one: replace(one, fenced=True))
    assert found(world, BY_JOURNAL).stranded == ()


# -- elections -------------------------------------------------------------------------------------------------------
def without_leader(world: World, **changes: Any) -> list[Leaderless]:
    """Every partition without leader; the registration of broker 0 bent."""
    rows = worlds.kraft(world).partitions
    bent = worlds.with_kraft(world, partitions=replace(rows, leader=[-1] * len(rows)))
    view = worlds.kraft(bent)
    brokers = {**view.brokers, NodeId(0): replace(view.brokers[NodeId(0)], **changes)}
    return [entry for entry in leaderless(replace(view, brokers=brokers)) if entry.broker == 0]


def test_a_partition_without_leader_whose_preferred_replica_is_online_can_be_elected_one() -> None:
    """Its broker unfenced, in the ISR, its directory registered: only then does ElectLeaders help."""
    rows = worlds.kraft(healthy()).partitions
    preferred = [replicas[0] for replicas in rows.replicas].count(0)
    assert preferred
    assert len(without_leader(healthy())) == preferred
    assert without_leader(healthy(), fenced=True) == []
    assert without_leader(healthy(), log_dirs=frozenset()) == []
    assert without_leader(named(healthy(), 0, MIGRATING)) == []
    assert list(leaderless(worlds.kraft(healthy()))) == []
