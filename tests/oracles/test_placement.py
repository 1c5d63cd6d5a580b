"""KIP-858's table row by row, as Kafka 3.9 built it, and what the ledger says of each row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED
from migrate.model.ledger import ReplicaFacts, ReplicaState, decide
from tests.kraft.logs import captured_dump
from tests.oracles.placement import Act, Whereabouts, act, cut_short, new_placement, online, withheld
from tests.testing.ensembles import IDS

HERE, THERE, THIRD = IDS
UNKNOWN_ID = "AAAAAAAAAAEAAAAAAAAAZA"
ONLINE = (HERE, THERE)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; `kip` is what its text has where Kafka 3.9 does something else."""

    name: str
    found: Whereabouts
    does: Act
    state: ReplicaState
    kip: str = ""


def at(named: object, current: str = "", future: str = "", *, offline: bool = False) -> Whereabouts:
    """A replica of a broker with two online directories."""
    return Whereabouts(str(named), current, future, ONLINE, offline)


ROWS = (
    Row("unassigned, is there", at(UNASSIGNED, HERE), Act.REPORT, ReplicaState.UNASSIGNED),
    Row("unassigned, not there", at(UNASSIGNED), Act.CREATE_ANYWHERE, ReplicaState.NOT_ON_DISK),
    Row(
        "unassigned, not there, one disk dead",
        at(UNASSIGNED, offline=True),
        Act.CREATE_ANYWHERE,
        ReplicaState.NOT_ON_DISK,
    ),
    Row("migrating, is there", at(MIGRATING, HERE), Act.REPORT, ReplicaState.MIGRATING),
    Row("migrating, not there", at(MIGRATING), Act.CREATE_ANYWHERE, ReplicaState.NOT_ON_DISK),
    Row("migrating, not there, one disk dead", at(MIGRATING, offline=True), Act.HOLD_BACK, ReplicaState.NOT_ON_DISK),
    Row("assigned, not there", at(HERE), Act.CREATE_THERE, ReplicaState.NOT_ON_DISK),
    Row("assigned, not there, one disk dead", at(HERE, offline=True), Act.CREATE_THERE, ReplicaState.NOT_ON_DISK),
    Row("assigned, is there", at(HERE, HERE), Act.NOTHING, ReplicaState.VERIFIED),
    Row("assigned, is there, moves on", at(HERE, HERE, THERE), Act.MOVE_ON, ReplicaState.MOVING),
    Row(
        "assigned to its future copy",
        at(THERE, HERE, THERE),
        Act.PROMOTE,
        ReplicaState.MOVING,
        kip="once the future copy has caught up: at a start nobody asks (KAFKA-16082)",
    ),
    Row("assigned to its future copy, no other", at(THERE, "", THERE), Act.PROMOTE, ReplicaState.NOT_ON_DISK),
    Row("assigned, is elsewhere", at(HERE, THERE), Act.REPORT, ReplicaState.MISMATCH),
    Row("unknown directory, not there", at(UNKNOWN_ID), Act.CREATE_ANYWHERE, ReplicaState.NOT_ON_DISK),
    Row("unknown directory, one disk dead", at(UNKNOWN_ID, offline=True), Act.HOLD_BACK, ReplicaState.NOT_ON_DISK),
    Row("unknown directory, is there", at(UNKNOWN_ID, HERE), Act.REPORT, ReplicaState.MISMATCH),
    Row("assigned to the dead disk", at(THIRD, offline=True), Act.HOLD_BACK, ReplicaState.NOT_ON_DISK),
    Row("assigned to the dead disk, is elsewhere", at(THIRD, HERE, offline=True), Act.REPORT, ReplicaState.MISMATCH),
    Row("lost, not there", at(LOST), Act.CREATE_ANYWHERE, ReplicaState.NOT_ON_DISK),
    Row("lost, one disk dead", at(LOST, offline=True), Act.HOLD_BACK, ReplicaState.NOT_ON_DISK),
    Row("lost, is there", at(LOST, HERE), Act.REPORT, ReplicaState.LOST),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_has_its_act_and_its_state_in_the_ledger(row: Row) -> None:
    """What the broker does, and what we call it until that is done."""
    assert act(row.found) is row.does
    facts = ReplicaFacts(
        topic="t",
        topic_id="x",
        partition=0,
        broker=1,
        on_disk=(row.found.current,) if row.found.current else (),
        future=bool(row.found.future),
        registered=frozenset(ONLINE),
        in_metadata=row.found.in_metadata,
    )
    assert decide(facts) is row.state


def every() -> Iterator[Whereabouts]:
    """All of them."""
    for named in (str(MIGRATING), str(UNASSIGNED), str(LOST), UNKNOWN_ID, HERE, THERE):
        for current in ("", *ONLINE):
            for future in ("", *ONLINE):
                for offline in (False, True):
                    if not (current and current == future):
                        yield Whereabouts(named, current, future, ONLINE, offline)


def test_the_rows_have_every_act_and_nothing_is_left_out() -> None:
    """Each whereabouts has one act; only one of them needs nothing, and the ledger calls only that one VERIFIED."""
    assert {row.does for row in ROWS} == set(Act) - {Act.USE_UNTOLD, Act.CREATE_UNTOLD}
    for found in every():
        does = act(found)
        in_place = found.in_metadata == found.current and not found.future
        assert (does is Act.NOTHING) is in_place, found
        if does in (Act.CREATE_THERE, Act.CREATE_ANYWHERE, Act.HOLD_BACK):
            assert not found.current, "what is there is never created again"
        if does is Act.PROMOTE:
            assert found.future == found.in_metadata


def test_a_dead_disk_keeps_a_replica_from_being_made_anew_unless_it_never_had_a_place() -> None:
    """It may lie on that disk: created again elsewhere it would be empty, and a leader."""
    for found in every():
        if found.some_offline and not found.current and found.in_metadata not in ONLINE:
            assert (act(found) is Act.CREATE_ANYWHERE) is (found.in_metadata == str(UNASSIGNED)), found


def test_one_leader_that_is_held_back_ends_the_first_look() -> None:
    """No follower does, and nothing does where every disk is online, or where the metadata never named a directory."""
    for found in every():
        assert cut_short([(found, True)]) is withheld(found)
        assert not cut_short([(found, False)])
        assert withheld(found) is (found.some_offline and found.in_metadata not in (*ONLINE, str(UNASSIGNED))), (
            "whether or not it lies elsewhere"
        )
    assert cut_short([(at(HERE, HERE, offline=True), True), (at(THIRD, offline=True), True)])
    assert not cut_short([(at(HERE, HERE, offline=True), True), (at(THIRD, offline=True), False)])


def test_what_a_look_that_was_cut_short_left_out_is_made_anew_and_nobody_hears_of_it() -> None:
    """The dead disk may hold it, and a directory that the metadata names is not asked for: the ledger must see each."""
    for found in every():
        ordinary, cut = act(found), act(found, cut_short=True)
        if ordinary in (Act.PROMOTE, Act.MOVE_ON, Act.NOTHING):
            assert cut is ordinary
        elif found.current:
            assert (ordinary, cut) == (Act.REPORT, Act.USE_UNTOLD)
        else:
            assert cut is Act.CREATE_UNTOLD
        if cut in (Act.USE_UNTOLD, Act.CREATE_UNTOLD):
            lies = found.current or next(one for one in ONLINE if one != found.in_metadata)
            facts = ReplicaFacts("t", "x", 0, 1, (lies,), bool(found.future), frozenset(ONLINE), found.in_metadata)
            assert decide(facts) is not ReplicaState.VERIFIED


@pytest.mark.parametrize(
    ("registered", "known", "expected"),
    [
        ((HERE,), True, HERE),
        (ONLINE, True, str(UNASSIGNED)),
        ((), True, str(MIGRATING)),
        (None, True, str(UNASSIGNED)),
        ((HERE,), False, str(MIGRATING)),
        (None, False, str(MIGRATING)),
    ],
)
def test_a_new_replica_is_placed_by_the_number_of_directories(
    registered: tuple[str, ...] | None, known: bool, expected: str
) -> None:
    """One directory: that one; several: UNASSIGNED until the broker reports; before 3.7-IV2: MIGRATING."""
    assert new_placement(registered, directories_known=known) == expected


def test_migrating_and_unassigned_count_as_online_whatever_became_of_the_disk() -> None:
    """The hole: their leaders do not move when the disk dies."""
    for directory in (str(MIGRATING), str(UNASSIGNED)):
        assert online(directory, ONLINE)
        assert online(directory, ())
    assert not online(str(LOST), ONLINE)
    assert not online(str(LOST), ())
    assert online(HERE, ONLINE)
    assert not online(THIRD, ONLINE)
    assert online(THIRD, ()), "a registration without directories has no offline ones (KAFKA-16162)"


def test_in_a_captured_migration_every_replica_goes_from_migrating_to_a_directory_of_its_broker() -> None:
    """The copy names none; then each broker's reports, and nothing that this table does not have."""
    registered: dict[int, list[str]] = {}
    stands: dict[tuple[str, int], dict[int, str]] = {}
    reports = 0
    for record in map(json.loads, captured_dump()):
        data = record["data"]
        if record["type"] == "REGISTER_BROKER_RECORD":
            registered[data["brokerId"]] = data["logDirs"]
        elif record["type"] == "PARTITION_RECORD":
            assert record["version"] == 0, "the copy names no directory"
            stands[data["topicId"], data["partitionId"]] = dict.fromkeys(data["replicas"], str(MIGRATING))
        elif record["type"] == "PARTITION_CHANGE_RECORD" and data.get("directories"):
            now = stands[data["topicId"], data["partitionId"]]
            for broker, directory in zip(list(now), data["directories"], strict=True):
                if directory != now[broker]:
                    reports += 1
                    found = Whereabouts(now[broker], directory, "", registered[broker])
                    assert act(found) is Act.REPORT
                    assert online(directory, registered[broker])
                    now[broker] = directory
    assert reports == 527
    assert all(entry in registered[broker] for each in stands.values() for broker, entry in each.items())
