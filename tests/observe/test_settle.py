"""Nothing that merely moved is reported as different, and nothing that differs hides behind what moves."""

from __future__ import annotations

from dataclasses import replace
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.difference import DifferenceClass, DifferenceName, DiffReport
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import Stage
from migrate.model.views import ControllerZnode
from migrate.model.world import World
from migrate.observe.analysis import LOOKS, with_diff
from tests.observe.dual_write import DualWrite, Key, plainly
from tests.testing.clusters import zookeeper_view
from tests.testing.worlds import world_at

CALM: tuple[Key, ...] = (
    ("topic-config", "calm", "retention.ms"),
    ("client-quota", "user=alice", "producer_byte_rate"),
    ("partition", "calm-0", "leader"),
    ("acl", "TOPIC|LITERAL|calm|User:a|*|READ|ALLOW", "present"),
)
BUSY: tuple[Key, ...] = (
    ("topic-config", "busy", "retention.ms"),
    ("client-quota", "user=bob", "producer_byte_rate"),
    ("partition", "busy-0", "leader"),
    ("partition", "flips-0", "leader"),
    ("topic", "comes-and-goes", "topic_id"),
)
HERE: Key = CALM[0]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster here moves by being looked at, and not by time."""
    monkeypatch.setattr("migrate.observe.analysis.AGAIN", 0.0)


def cluster(**given_: Any) -> DualWrite:
    """A cluster at rest, in which both sides agree."""
    made = DualWrite(**given_)
    for key in (*CALM, *BUSY):
        made.change(key, "1")
    made.write()
    return made


def compared(made: DualWrite) -> DiffReport:
    """The report of one comparison that began with a look at both sides, side by side."""
    sources: Any = made
    world: World = replace(world_at(Stage.COPY), zookeeper=zookeeper_view(), kraft=made.kraft())
    found = with_diff(sources, world, plainly).diff
    assert not isinstance(found, Unknown), found
    return found


def keys(report: DiffReport) -> set[tuple[str, str]]:
    """Objects that are reported."""
    return {(row.kind, row.key) for row in report.unexcused}


# -- at rest ---------------------------------------------------------------------------------------------------------
def test_what_is_equal_is_read_once_and_in_order() -> None:
    """KRaft, then /migration, then ZooKeeper; nothing is read again."""
    made = cluster()
    report = compared(made)
    assert (report.differences, report.unsettled, report.looks) == ((), (), 1)
    assert made.reads == ["kraft", "/migration", "zookeeper"]


@pytest.mark.parametrize("key", CALM, ids=lambda key: key[0])
@pytest.mark.parametrize("value", ["2", None], ids=["changed", "deleted"])
def test_a_znode_changed_behind_kafkas_back_is_reported_after_two_looks(key: Key, value: str | None) -> None:
    """With both values and where each was read; the other fields stay equal."""
    made = cluster()
    made.behind(key, value)
    report = compared(made)
    assert (keys(report), report.looks, report.unsettled) == ({key[:2]}, 2, ())
    (row,) = report.unexcused
    assert row.side is (DifferenceClass.DIFFERS if value else DifferenceClass.ONLY_KRAFT)
    assert f"image at metadata offset {len(made.log)}" in row.kraft_where
    assert ("mzxid" in row.zookeeper_where) if value else (row.zookeeper_where == f"not there at zxid {made.zxid}")
    assert report.counts[key[0]][row.side.value] == 1


def test_a_znode_that_kafka_never_made_is_reported() -> None:
    """It stands on ZooKeeper's side alone."""
    made = cluster()
    made.behind(("client-quota", "user=eve", "producer_byte_rate"), "9")
    (row,) = compared(made).unexcused
    assert (row.cls, row.kraft_where) == (
        DifferenceClass.ONLY_ZK,
        f"not in the image at metadata offset {len(made.log)}",
    )
    assert row.zookeeper_where == f"/client-quota/user=eve/producer_byte_rate, mzxid {made.zxid}"


def test_what_a_cut_list_lacks_is_not_taken_for_equal() -> None:
    """So much moves at the second look that the list ends before the row: the third look has it again."""
    made = cluster()
    made.behind(HERE, "2")

    def burst(now: DualWrite) -> None:
        if now.reads.count("kraft") == 2 and now.reads[-1] == "/migration":
            for number in range(9):
                now.change(("partition", f"late{number}-0", "leader"), "1")
            now.write()

    def first_rows(*asked: Any) -> DiffReport:
        whole = plainly(*asked)
        assert isinstance(whole, DiffReport)
        return replace(whole, differences=tuple(sorted(whole.differences, key=lambda row: row.kind)[:5]))

    made.between = burst
    sources: Any = made
    world = replace(world_at(Stage.COPY), zookeeper=zookeeper_view(), kraft=made.kraft())
    report = with_diff(sources, world, first_rows).diff
    assert isinstance(report, DiffReport)
    assert (keys(report), report.unsettled) == ({HERE[:2]}, ())
    assert made.reads.count("zookeeper") == 4


# -- in motion -------------------------------------------------------------------------------------------------------
def test_what_changed_between_the_two_reads_is_equal_at_the_second_look() -> None:
    """A leader moved once while we read: it is read again, and counted as equal."""
    made = cluster()

    def move_once(now: DualWrite) -> None:
        if now.reads == ["kraft", "/migration"]:
            now.change(("partition", "busy-0", "leader"), "2")
            now.write()

    made.between = move_once
    report = compared(made)
    assert (report.differences, report.unsettled, report.looks) == ((), (), 2)
    assert report.counts["partition"] == {"EQUAL": 3 * 8}


def test_a_key_that_changes_in_every_look_is_unsettled_and_a_real_difference_beside_it_is_reported() -> None:
    """The one is neither equal nor different and in no count; the other does not wait for it."""
    made = cluster()
    made.behind(HERE, "7")
    numbers = iter(range(2, 10_000))

    def churn(now: DualWrite) -> None:
        now.change(("partition", "busy-0", "leader"), str(next(numbers)))
        if now.reads[-1:] == ["/migration"]:
            now.write()

    made.between = churn
    report = compared(made)
    assert keys(report) == {HERE[:2]}
    assert [(row.kind, row.key) for row in report.unsettled] == [("partition", "busy-0")]
    assert report.looks == LOOKS
    assert report.counts["partition"] == {"EQUAL": 2 * 8 + 7}


def test_a_value_that_changes_and_changes_back_did_not_stand_still() -> None:
    """ZooKeeper is read in the other half of each turn: same values in every look, and nothing differs."""
    made = cluster()

    def flip(now: DualWrite) -> None:
        now.change(("partition", "flips-0", "leader"), "2" if now.reads[-1:] == ["/migration"] else "1")
        now.write()

    made.between = flip
    assert keys(compared(made)) == set()


def test_a_topic_made_and_deleted_in_each_look_is_not_on_one_side_alone() -> None:
    """Absent in every image, there in every read of ZooKeeper, each time another znode."""
    made = cluster()

    def come_and_go(now: DualWrite) -> None:
        there = now.reads[-1:] == ["/migration"]
        for key in (("topic", "brief", "topic_id"), ("topic-config", "brief", "retention.ms")):
            now.change(key, "1" if there else None)
        now.write()

    made.between = come_and_go
    assert keys(compared(made)) == set()


def test_a_key_that_dual_write_forgets_is_reported_however_often_it_changes() -> None:
    """Its znode stands still while the metadata moves on: that is the other proof."""
    made = cluster()
    made.stuck.add(BUSY[0])
    numbers = iter(range(2, 10_000))
    made.between = lambda now: now.change(BUSY[0], str(next(numbers)))
    assert keys(compared(made)) == {BUSY[0][:2]}


def test_a_key_that_only_kafka_has_and_that_never_rests_is_unsettled() -> None:
    """Nothing on ZooKeeper's side can stand still: no proof, and no gate passes on it."""
    made = cluster()
    made.stuck.add(BUSY[0])
    made.behind(BUSY[0], None)
    numbers = iter(range(2, 10_000))
    made.between = lambda now: now.change(BUSY[0], str(next(numbers)))
    report = compared(made)
    assert (keys(report), [row.key for row in report.unsettled]) == (set(), ["busy"])


def test_a_znode_that_somebody_rewrites_again_and_again_is_reported() -> None:
    """The metadata stands still meanwhile."""
    made = cluster()
    numbers = iter(range(2, 10_000))
    made.between = lambda now: now.behind(HERE, str(next(numbers)))
    assert keys(compared(made)) == {HERE[:2]}


def test_a_difference_that_somebody_mends_meanwhile_is_gone() -> None:
    """Only what still differs is reported."""
    made = cluster()
    made.behind(HERE, "7")
    made.between = lambda now: now.behind(HERE, "1") if now.reads.count("zookeeper") == 1 else None
    assert compared(made).differences == ()


@pytest.mark.slow
@settings(max_examples=100)
@given(random=st.randoms(use_true_random=False))
def test_under_any_churn_exactly_the_planted_differences_are_reported(random: Random) -> None:
    """Any number of changes before each read, dual write anywhere behind; planted changes are of keys at rest."""
    made = cluster()
    planted = random.sample(CALM, random.randint(0, len(CALM)))
    for key in planted:
        made.behind(key, random.choice(["2", None]))

    def churn(now: DualWrite) -> None:
        for _ in range(random.choice([0, 1, 1, 3])):
            now.change(random.choice(BUSY), random.choice(["1", "2", "3", None]))
            now.write(random.randint(0, 3))

    made.between = churn
    report = compared(made)
    assert keys(report) == {key[:2] for key in planted}
    assert {(row.kind, row.key) for row in report.unsettled} <= {key[:2] for key in BUSY}
    assert all(number >= 0 for classes in report.counts.values() for number in classes.values())


# -- what cannot be seen -----------------------------------------------------------------------------------------------
def test_an_image_older_than_what_zookeeper_holds_proves_nothing() -> None:
    """A controller that lost its quorum answers with what it had."""
    made = cluster()
    old = made.kraft()
    made.change(HERE, "2")
    made.write()
    made.reads.clear()
    sources: Any = made
    made.kraft = lambda: old  # type: ignore[method-assign]
    world = replace(world_at(Stage.COPY), zookeeper=zookeeper_view(), kraft=old)
    report = with_diff(sources, world, plainly).diff
    assert not isinstance(report, Unknown)
    assert (keys(report), [row.key for row in report.unsettled]) == (set(), ["calm"])


def test_sources_that_cannot_be_read_again_report_with_a_word_of_warning() -> None:
    """One look, all rows, and that they may only have been moving."""
    made = cluster(moves=False)
    made.behind(HERE, "7")
    report = compared(made)
    assert (keys(report), report.looks) == ({HERE[:2]}, 1)
    assert report.blind_spots == (
        "both sides were read once and cannot be read again: what differs may only have been moving",
    )
    assert "mzxid" in report.unexcused[0].zookeeper_where


def test_a_side_that_vanishes_between_two_looks_leaves_no_report() -> None:
    """Half a proof is none."""
    made = cluster()
    made.behind(HERE, "7")
    sources: Any = made
    world = replace(world_at(Stage.COPY), zookeeper=zookeeper_view(), kraft=made.kraft())
    made.kraft = lambda: Unknown("no leader")  # type: ignore[method-assign,assignment,return-value]
    assert with_diff(sources, world, plainly).diff == Unknown("the metadata is unknown: no leader")


# -- stopped controllers -----------------------------------------------------------------------------------------------
def stopped_world(made: DualWrite, *, owner: bool = True) -> World:
    """No controller answers; the logs of the stopped ones hold the image as it is now; from now on no log is read."""
    image, read = made.kraft(), made.zookeeper
    controller = ControllerZnode(3000, 5, ephemeral=not owner, version=1)
    made.zookeeper = lambda: replace(read(), controller=controller)  # type: ignore[method-assign]
    made.kraft = lambda: pytest.fail("a controller is asked")  # type: ignore[method-assign]
    made.dual_write_offset = lambda: pytest.fail("dual write is waited for")  # type: ignore[method-assign]
    logs = MetadataLogs((3000,), image.offset + 1, view=image)
    return replace(world_at(Stage.COPY), zookeeper=made.zookeeper(), kraft=Unknown("no leader"), metadata_logs=logs)


def test_stopped_controllers_logs_are_compared_without_waiting_for_dual_write() -> None:
    """What was committed and never written, and what is wrong behind /migration; NoOps are never passed."""
    made = cluster()
    made.behind(HERE, "7")
    made.change(CALM[1], "2")
    world = stopped_world(made)
    sources: Any = made
    found = with_diff(sources, world, plainly)
    assert found.kraft == Unknown("no leader")
    assert not isinstance(found.diff, Unknown)
    assert keys(found.diff) == {HERE[:2], CALM[1][:2]}
    assert (found.diff.unsettled, found.diff.looks) == ((), 2)


def test_stopped_controllers_that_lack_nothing_are_equal_after_one_look() -> None:
    """Each look costs time in which nobody leads."""
    sources: Any = cluster()
    report = with_diff(sources, stopped_world(sources), plainly).diff
    assert not isinstance(report, Unknown)
    assert (report.unexcused, report.looks) == ((), 1)


def test_after_the_hand_back_stopped_logs_are_no_measure() -> None:
    """ZooKeeper's controller continues without them; a tail that nobody proves is none either."""
    sources: Any = cluster()
    world = stopped_world(sources, owner=False)
    report = with_diff(sources, world, plainly).diff
    assert isinstance(report, Unknown)
    assert "ZooKeeper has gone on without" in report.reason
    assert isinstance(world.metadata_logs, MetadataLogs)
    assert world.metadata_logs.view is not None
    unproven = replace(world.metadata_logs.view, high_watermark=Unknown("1 of 3"))
    logs = replace(world.metadata_logs, view=unproven)
    report = with_diff(sources, replace(world, metadata_logs=logs), plainly).diff
    assert report == Unknown("the metadata's tail is not proven to be committed")


def test_what_only_lost_controllers_held_is_a_row_of_the_comparison_with_the_log_that_is_left() -> None:
    """Two of three logs are gone: equal is what ZooKeeper and the third hold, and nobody says that it is all."""
    sources: Any = cluster()
    world = stopped_world(sources)
    logs: Any = world.metadata_logs
    unproven = replace(logs.view, high_watermark=Unknown("1 of 3"))
    logs = replace(logs, view=unproven, end=Unknown("1 of 3"))
    report = with_diff(sources, replace(world, metadata_logs=logs), plainly).diff
    assert not isinstance(report, Unknown)
    assert [str(DifferenceName.of(row)) for row in report.standing()] == [
        "ONLY_KRAFT metadata-log controllers 3001, 3002 what they alone held"
    ]
    assert not report.uncovered_cut


@pytest.mark.slow
def test_the_comparison_on_spark_is_named_with_the_number_of_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the board of a run shows it: how many there are is known before any of them is compared."""
    made: Any = cluster()
    made.spark = lambda: SimpleNamespace(get=lambda: None)
    seen = []

    def compare(_: object, zookeeper: Any, kraft: Any, accepted: Any, **terms: Any) -> DiffReport | Unknown:
        seen.append(str(made.work))
        return plainly(made, zookeeper, kraft, accepted, terms["lag"])

    monkeypatch.setattr("migrate.diff.compare.compare", compare)
    world = replace(world_at(Stage.COPY), zookeeper=zookeeper_view(), kraft=made.kraft())
    report = with_diff(made, world).diff
    assert not isinstance(report, Unknown)
    fields = sum(sum(classes.values()) for classes in report.counts.values())
    assert seen == [f"comparing {fields:,} fields"]
    assert str(made.work) == ""
