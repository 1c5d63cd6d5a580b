"""What several controllers' directories prove: a majority's prefix, or nothing; histories that part are never mixed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import BatchError, MetadataDiverges, OffsetNotThere, SnapshotError
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.kraft.quorum_files import MetadataDirectory, Tail, common_end, judge, read_directory, view_of
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from tests.kraft.logs import (
    D1,
    D2,
    D3,
    STAGES,
    T1,
    T2,
    captured_log,
    change,
    leader_change,
    log,
    partition,
    snapshot,
    topic,
)
from tests.testing.encoding import build, encode_control

DIGESTER = Digester(b"k" * 32)
VOTERS = (3000, 3001, 3002)
SEGMENT = "00000000000000000000.log"
BASE = leader_change(0, 1) + log(
    topic("a", T1), partition(T1, 0, [1], [D1]), change(T1, 0, isr=[]), base=1
)  # ends at 4


def directory(folder: Path, node: int, raw: bytes, epoch: int | None = 1, **files: bytes) -> tuple[Path, int]:
    """A controller's metadata directory with that log; `epoch` is its quorum-state's, None for no such file."""
    part = folder / str(node) / PARTITION_DIRECTORY
    part.mkdir(parents=True)
    if raw:
        (part / SEGMENT).write_bytes(raw)
    if epoch is not None:
        voters = [{"voterId": voter} for voter in VOTERS]
        state = {"leaderId": 3000, "leaderEpoch": epoch, "votedId": -1, "currentVoters": voters, "data_version": 0}
        (part / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
    for name, content in files.items():
        (part / f"{name}.checkpoint").write_bytes(content)
    return part.parent, node


def of_its_own(path: Path, node: int | None) -> MetadataDirectory:
    """That directory, read, with a directory.id that no other one has."""
    return read_directory(path, node, str(path))


OWN = {3000: D2, 3001: D3, 3002: T1}  # directory ids


def voters(base: int, named: Mapping[int, str]) -> bytes:
    """A KRaftVotersRecord in a batch of its own."""
    feature = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    entries = [
        {"voterId": node, "voterDirectoryId": identity, "endpoints": [], "kRaftVersionFeature": feature}
        for node, identity in named.items()
    ]
    return build(base, 1, [encode_control("KRAFT_VOTERS", {"version": 0, "voters": entries})], control=True)


def tail(*made: tuple[Path, int]) -> Tail:
    """What these directories prove."""
    return judge([of_its_own(*entry) for entry in made])


def view(found: Tail, at: int | None = None) -> KraftView:
    """The image of that, or of a tail that ends with the offset `at`."""
    ended = found if at is None else replace(found, end=at + 1)
    return view_of(ended, DIGESTER, cluster_id="cluster")


class TestMajority:
    """What a majority holds is committed."""

    def test_the_end_that_two_of_three_hold_is_committed(self, tmp_path: Path) -> None:
        """The third's own tail is not read, wherever it stands in the list."""
        ahead = BASE + log(topic("b", T2), base=4)
        made = [directory(tmp_path, 3000, ahead), directory(tmp_path, 3001, BASE), directory(tmp_path, 3002, BASE)]
        for order in (made, made[::-1], made[1:] + made[:1]):
            found = tail(*order)
            assert (found.end, found.high_watermark) == (4, 4)
            assert view(found).committed
            assert view(found).entities.key == ["a"]

    def test_a_majority_of_an_incomplete_set_proves_as_much(self, tmp_path: Path) -> None:
        """Two of three at hand, neither has heard of a newer epoch."""
        short = BASE[: -len(log(change(T1, 0, isr=[]), base=3))]
        assert tail(directory(tmp_path, 3000, BASE), directory(tmp_path, 3002, short)).high_watermark == 3

    def test_a_newer_epoch_heard_of_leaves_the_tail_unproven(self, tmp_path: Path) -> None:
        """The voter that is not at hand may lead in it, with another log."""
        found = tail(directory(tmp_path, 3000, BASE), directory(tmp_path, 3001, BASE, epoch=2))
        assert isinstance(found.high_watermark, Unknown)
        assert "heard of 2" in found.high_watermark.reason
        assert not view(found).committed

    def test_with_all_voters_at_hand_an_election_without_end_does_not_matter(self, tmp_path: Path) -> None:
        """The last to be stopped stands for election again and again."""
        made = [directory(tmp_path, node, BASE, epoch) for node, epoch in zip(VOTERS, (1, 1, 9), strict=True)]
        assert tail(*made).high_watermark == 4

    def test_no_quorum_state_is_no_proof_unless_all_are_at_hand(self, tmp_path: Path) -> None:
        """Voters are told by the others, or by the log's leader change."""
        first, second = directory(tmp_path, 3000, BASE), directory(tmp_path, 3001, BASE, epoch=None)
        found = tail(first, second)
        assert isinstance(found.high_watermark, Unknown)
        known = leader_change(0, 1, voters=VOTERS) + BASE[len(leader_change(0, 1)) :]
        told = tail(*(directory(tmp_path / "told", node, known, epoch=None) for node in VOTERS[:2]))
        assert isinstance(told.high_watermark, Unknown)
        assert "3000 has no quorum-state, and not all voters are available" in told.high_watermark.reason
        third = directory(tmp_path, 3002, BASE)
        (second[0] / PARTITION_DIRECTORY / SEGMENT).write_bytes(b"")
        assert tail(first, second, third).high_watermark == 4

    def test_one_directory_alone_proves_nothing(self, tmp_path: Path) -> None:
        """It is read to its end, for looking only."""
        found = tail(directory(tmp_path, 3000, BASE))
        assert found.high_watermark == Unknown("tail unproven: 1 of 3 voters available, 2 are a majority")
        assert (view(found).offset, view(found).committed) == (3, False)

    def test_a_single_voter_is_its_own_majority(self, tmp_path: Path) -> None:
        """A quorum of one, named by its leader change."""
        path, _ = directory(tmp_path, 3000, BASE, epoch=None)
        found = judge([of_its_own(path, 3000)])
        assert found.high_watermark == 4

    def test_copies_brokers_and_unknown_nodes_do_not_count(self, tmp_path: Path) -> None:
        """Two copies of one log are one voice; a broker's copy is none."""
        first = directory(tmp_path, 3000, BASE)
        copy = directory(tmp_path / "copy", 3000, BASE)
        broker = directory(tmp_path, 7, BASE)
        nobody = directory(tmp_path, 3001, BASE)[0]
        found = judge([*(of_its_own(*entry) for entry in (first, copy, broker)), of_its_own(nobody, None)])
        assert isinstance(found.high_watermark, Unknown)
        assert [("counts once" in note, "does not count" in note) for note in found.notes] == [
            (True, False),
            (False, True),
            (False, True),
        ]

    def test_a_copy_with_another_node_id_is_no_second_voter(self, tmp_path: Path) -> None:
        """Equal directory.ids are one directory, in any order; the third voter's own one still makes a majority."""
        first = read_directory(*directory(tmp_path, 3000, BASE), "one")
        copy = read_directory(*directory(tmp_path / "copy", 3001, BASE), "one")
        for order in ((first, copy), (copy, first)):
            found = judge(order)
            assert found.high_watermark == Unknown("tail unproven: 1 of 3 voters available, 2 are a majority")
            assert found.notes == (f"{order[1].name}: the directory.id is that of {order[0].name}: it counts once",)
        other = of_its_own(*directory(tmp_path, 3002, BASE))
        assert judge((first, copy, other)).high_watermark == 4

    def test_a_directory_without_a_directory_id_does_not_count(self, tmp_path: Path) -> None:
        """It could be a copy from which the line was taken out; every controller of 3.9 writes the line."""
        made = [read_directory(*directory(tmp_path, node, BASE)) for node in VOTERS]
        found = judge(made)
        assert found.high_watermark == Unknown("tail unproven: 0 of 3 voters available, 2 are a majority")
        assert all("has no directory.id" in note for note in found.notes)

    def test_of_two_copies_of_one_controllers_log_the_shorter_counts(self, tmp_path: Path) -> None:
        """The longer one may have been written after the other was believed, or by nobody's election."""
        longer = BASE + log(topic("b", T2), base=4)
        copies = directory(tmp_path, 3000, BASE), directory(tmp_path / "copy", 3000, longer)
        other = directory(tmp_path, 3001, longer)
        for made in ((*copies, other), (*copies[::-1], other)):
            assert tail(*made).high_watermark == 4

    def test_without_the_names_of_voters_nothing_is_proven(self, tmp_path: Path) -> None:
        """Neither a quorum-state nor a leader change at hand: it is read to the longest log's end, for looking only."""
        name = "00000000000000000009-0000000001"
        made = [directory(tmp_path, node, b"", None, **{name: snapshot(epoch=1)}) for node in VOTERS]
        found = tail(*made)
        assert found.high_watermark == Unknown("tail unproven: no directory names the quorum's voters")

    def test_unproven_logs_are_read_to_the_end_of_the_longest(self, tmp_path: Path) -> None:
        """What is shown is all that there is."""
        longer = BASE + log(topic("b", T2), base=4)
        made = directory(tmp_path, 7, BASE), directory(tmp_path, 8, longer)
        assert (tail(*made).end, tail(*made[::-1]).end) == (5, 5)

    def test_two_empty_logs_prove_nothing_while_the_third_is_not_at_hand(self, tmp_path: Path) -> None:
        """Which epoch their end is of is not known."""
        made = [directory(tmp_path, node, BASE) for node in VOTERS[:2]]
        for path, _ in made:
            (path / PARTITION_DIRECTORY / SEGMENT).write_bytes(b"")
        found = tail(*made)
        assert found.high_watermark == Unknown("tail unproven: the epoch of offset -1 is not known")

    def test_of_five_voters_three_make_a_majority(self, tmp_path: Path) -> None:
        """Two of five hold what the others never heard of."""
        five = (3000, 3001, 3002, 3003, 3004)
        start = leader_change(0, 1, voters=five) + BASE[len(leader_change(0, 1)) :]
        longer = start + log(topic("b", T2), base=4)
        raws = (longer, longer, start, start, start)
        made = [directory(tmp_path, node, raw, epoch=None) for node, raw in zip(five, raws, strict=True)]
        assert tail(*made).high_watermark == 4
        assert isinstance(tail(*made[:2]).high_watermark, Unknown)

    def test_a_snapshot_at_the_majoritys_end_contradicts_nothing(self, tmp_path: Path) -> None:
        """It ends where they end."""
        late = directory(tmp_path, 7, b"", 1, **{"00000000000000000004-0000000001": snapshot(epoch=1)})
        assert tail(directory(tmp_path, 3000, BASE), directory(tmp_path, 3001, BASE), late).high_watermark == 4

    def test_directories_with_different_voters_prove_nothing(self, tmp_path: Path) -> None:
        """Two quorums, or a change of voters in progress."""
        made = [directory(tmp_path, node, BASE) for node in VOTERS]
        state = made[0][0] / PARTITION_DIRECTORY / "quorum-state"
        state.write_text(state.read_text("utf-8").replace("3002", "3003"), "utf-8")
        assert tail(*made).high_watermark == Unknown("tail unproven: the directories name different voters")


class TestDynamic:
    """A quorum whose voters stand in the log, with directory ids."""

    def at(self, folder: Path, node: int, raw: bytes, identity: str = "") -> MetadataDirectory:
        """A directory without voters in its quorum-state, as an observer that became a voter leaves it."""
        path, _ = directory(folder / (identity or "own"), node, raw, None)
        return read_directory(path, node, identity or OWN[node])

    def test_the_newest_committed_set_of_voters_counts_and_a_copy_may_lag_behind_it(self, tmp_path: Path) -> None:
        """3002 was replaced under another directory id; its old directory is no voter's any more."""
        old = BASE + voters(4, OWN)
        new = old + voters(5, {**OWN, 3002: D1}) + log(topic("c", T2), base=6)
        lagging = [self.at(tmp_path, 3000, old), self.at(tmp_path, 3001, new)]
        assert judge([*lagging, self.at(tmp_path, 3002, new, D1)]).high_watermark == 7
        found = judge([*lagging, self.at(tmp_path / "dead", 3002, old)])
        assert isinstance(found.high_watermark, Unknown)
        assert any(f"directory.id {OWN[3002]} of node 3002 is no voter's" in note for note in found.notes)

    def test_a_change_of_voters_that_no_majority_holds_proves_nothing(self, tmp_path: Path) -> None:
        """Its leader died before the others had it."""
        old = BASE + voters(4, OWN)
        alone = self.at(tmp_path, 3000, old + voters(5, {3000: OWN[3000], 3001: OWN[3001]}))
        found = judge([alone, *(self.at(tmp_path, node, old) for node in (3001, 3002))])
        assert isinstance(found.high_watermark, Unknown)
        assert found.high_watermark.reason.endswith("holds the change of voters at offset 5")


class TestDivergence:
    """Logs that part."""

    OLD = BASE + log(topic("old", T2), base=4)
    NEW = BASE + leader_change(4, 2) + log(topic("new", T2), base=5, epoch=2)

    def test_the_majoritys_log_is_read_and_never_mixed(self, tmp_path: Path) -> None:
        """The old leader's tail is left out, and said so."""
        made = [directory(tmp_path, 3000, self.OLD), *(directory(tmp_path, n, self.NEW, 2) for n in VOTERS[1:])]
        found = tail(*made)
        assert (found.end, found.high_watermark) == (6, 6)
        assert view(found).entities.key == ["a", "new"]
        (note,) = found.notes
        assert note.startswith(str(made[0][0]))
        assert "at offset 4" in note

    def test_what_a_newer_leader_would_cut_off_is_not_committed(self, tmp_path: Path) -> None:
        """Two hold the old tail, and the third can win an election against both (KIP-595, Raft's figure 8)."""
        made = [*(directory(tmp_path, n, self.OLD) for n in VOTERS[:2]), directory(tmp_path, 3002, self.NEW, 2)]
        found = tail(*made)
        assert (found.end, found.high_watermark) == (4, 4)
        assert view(found).entities.key == ["a"]

    def test_without_a_majority_it_is_an_error(self, tmp_path: Path) -> None:
        """Nobody can say which of the two is right."""
        made = directory(tmp_path, 3000, self.OLD), directory(tmp_path, 7, self.NEW, 2)
        with pytest.raises(MetadataDiverges, match="part at offset 4") as caught:
            tail(*made)
        assert "epoch 1 there, and epoch 2" in caught.value.why

    def test_same_epochs_and_other_records_part_too(self, tmp_path: Path) -> None:
        """Controllers that were formatted again begin with epoch 1 again."""
        other = leader_change(0, 1) + log(topic("b", T1), base=1)
        made = directory(tmp_path, 3000, BASE), directory(tmp_path, 7, other)
        with pytest.raises(MetadataDiverges, match="part at offset 1"):
            tail(*made)
        one, two = (read_directory(*entry).lineage for entry in made)
        assert common_end(one, two) == common_end(two, one) == 1

    def test_a_snapshot_contradicts_a_log(self, tmp_path: Path) -> None:
        """Its epoch is that of the record before its end, in every log that reaches there."""
        name = "00000000000000000004-0000000003"
        with pytest.raises(SnapshotError, match="says epoch 3; its last offset was written in epoch 1"):
            read_directory(*directory(tmp_path, 3000, BASE, 1, **{name: snapshot()}))
        fetched = directory(tmp_path, 3001, b"", 3, **{name: snapshot()})
        with pytest.raises(MetadataDiverges):
            tail(directory(tmp_path, 3002, BASE), (fetched[0], 7))

    def test_a_snapshot_above_the_majoritys_end_means_that_logs_were_lost(self, tmp_path: Path) -> None:
        """Snapshots hold committed records only."""
        late = directory(tmp_path, 7, b"", 1, **{"00000000000000000009-0000000001": snapshot(epoch=1)})
        with pytest.raises(MetadataDiverges, match="logs were lost"):
            tail(directory(tmp_path, 3000, BASE), directory(tmp_path, 3001, BASE), late)

    def test_only_a_newer_epoch_contests_what_a_majority_holds(self, tmp_path: Path) -> None:
        """The record before the end may be the first of its epoch."""
        held, other = BASE + leader_change(4, 2), BASE + leader_change(4, 2, leader=3002)
        made = [*(directory(tmp_path, n, held, 2) for n in VOTERS[:2]), directory(tmp_path, 3002, other, 2)]
        assert tail(*made).high_watermark == 5

    def test_the_first_record_of_an_epoch_is_proven_by_those_who_heard_of_that_epoch(self, tmp_path: Path) -> None:
        """Two of three hold it, and no newer epoch is known to either."""
        made = [directory(tmp_path, node, BASE + leader_change(4, 2), 2) for node in VOTERS[:2]]
        assert tail(*made).high_watermark == 5


class TestRules:
    """What a log must be before it counts."""

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (log(topic("a", T1)) + log(topic("b", T2), base=1, epoch=2), "begins after epoch 1 without its leader"),
            (leader_change(0, 1) + leader_change(1, 1), "a leader change within epoch 1"),
            (leader_change(0, 2) + log(topic("a", T1), base=1, epoch=1), "epoch 1 follows one of epoch 2"),
            (leader_change(0, 7), "ends in epoch 7, and quorum-state knows 1 only"),
        ],
    )
    def test_each_rule_on_epochs_is_held(self, tmp_path: Path, raw: bytes, says: str) -> None:
        """No CRC covers an epoch."""
        with pytest.raises(BatchError, match=says):
            read_directory(*directory(tmp_path, 3000, raw))

    def test_segments_follow_each_other(self, tmp_path: Path) -> None:
        """A segment that is missing in between is noticed."""
        path, node = directory(tmp_path, 3000, BASE)
        (path / PARTITION_DIRECTORY / "00000000000000000005.log").write_bytes(log(topic("b", T2), base=5))
        with pytest.raises(BatchError, match="offset 5; 4 was due"):
            read_directory(path, node)


class TestOffsets:
    """Where the tail ends."""

    def test_every_offset_up_to_the_end_can_be_asked_for(self, tmp_path: Path) -> None:
        """And none after it."""
        found = tail(directory(tmp_path, 3000, BASE))
        assert [view(found, at).offset for at in range(4)] == [0, 1, 2, 3]
        assert [len(view(found, at).partitions) for at in range(4)] == [0, 0, 1, 1]
        with pytest.raises(OffsetNotThere, match="the log ends before offset 4; 5 was due"):
            view(found, 4)

    def test_an_empty_log_has_an_image_of_nothing(self, tmp_path: Path) -> None:
        """A quorum that never had a leader."""
        made = [directory(tmp_path, node, BASE) for node in VOTERS]
        for path, _ in made:
            (path / PARTITION_DIRECTORY / SEGMENT).write_bytes(b"")
        found = tail(*made)
        assert (found.end, view(found).offset, view(found).entities.key) == (0, -1, [])

    def test_a_log_that_was_cut_after_it_was_judged_has_no_image_at_its_old_end(self, tmp_path: Path) -> None:
        """A node that still runs cuts its log, and a disk may lose its end."""
        path, node = directory(tmp_path, 3000, BASE)
        found = tail((path, node))
        (path / PARTITION_DIRECTORY / SEGMENT).write_bytes(BASE[: -len(log(change(T1, 0, isr=[]), base=3))])
        with pytest.raises(OffsetNotThere, match="the log ends before offset 3; 4 was due") as caught:
            view(found)
        assert caught.value.where == str(path)
        assert view(found, 2).offset == 2

    def test_before_the_oldest_snapshot_nothing_can_be_told(self, tmp_path: Path) -> None:
        """The log below it was deleted; at its end the snapshot speaks."""
        path, node = directory(tmp_path, 3000, b"", 3)
        part = path / PARTITION_DIRECTORY
        data = (topic("a", T1), partition(T1, 0, [1], [D1]))
        (part / "00000000000000000050-0000000003.checkpoint").write_bytes(snapshot(*data))
        (part / "00000000000000000050.log").write_bytes(log(change(T1, 0, isr=[]), base=50, epoch=3))
        found = tail((path, node))
        assert (view(found).offset, view(found, 49).offset, view(found, 49).partitions.isr) == (50, 49, [[1]])
        for at in (48, 0, -1, -2):
            with pytest.raises(OffsetNotThere, match="the oldest snapshot ends with offset 49"):
                view(found, at)

    def test_the_image_before_the_first_record_is_empty_and_there_is_none_before_that(self, tmp_path: Path) -> None:
        """Where the log is whole."""
        found = tail(directory(tmp_path, 3000, BASE))
        assert (view(found, -1).offset, view(found, -1).entities.key) == (-1, [])
        with pytest.raises(OffsetNotThere, match="cannot be determined"):
            view(found, -2)

    def test_between_two_snapshots_the_log_tells_every_offset(self, tmp_path: Path) -> None:
        """From the end of the oldest on, wherever the log begins; without a snapshot from nowhere but its end."""
        raw = log(change(T1, 0, isr=[]), change(T1, 0, isr=[1]), change(T1, 0, isr=[]), base=48, epoch=3)
        held = {f"{end:020d}-0000000003": snapshot(topic("a", T1), partition(T1, 0, [1], [D1])) for end in (49, 51)}
        path, node = directory(tmp_path, 3000, b"", 3, **held)
        (path / PARTITION_DIRECTORY / f"{48:020d}.log").write_bytes(raw)
        found = tail((path, node))
        assert [view(found, at).offset for at in (48, 49, 50)] == [48, 49, 50]
        with pytest.raises(OffsetNotThere, match="the oldest snapshot ends with offset 48"):
            view(found, 47)
        bare, _ = directory(tmp_path, 3001, b"", 3)
        (bare / PARTITION_DIRECTORY / f"{48:020d}.log").write_bytes(raw)
        with pytest.raises(OffsetNotThere, match="cannot be determined"):
            view(tail((bare, 3001)), 46)

    @pytest.mark.parametrize("stage", STAGES)
    def test_every_captured_stage_is_proven_by_its_controllers(self, tmp_path: Path, stage: str) -> None:
        """Real logs: what the majority holds is the stage's whole log, though one controller went on to the end."""
        size, _ = STAGES[stage]
        raw, epoch = captured_log(), 2 if stage == "finalized" else 1
        parts = [raw[:size], raw[:size], raw]
        made = [directory(tmp_path, n, part, 2) for n, part in zip(VOTERS, parts, strict=True)]
        found = tail(*made)
        assert view(found).committed
        if epoch == 1 and size < len(raw):  # the third leads in epoch 2, on the same history
            assert found.end == read_directory(*made[0]).lineage.end
        assert (len(view(found).partitions), not found.notes) == (0 if stage == "controllers-up" else 212, True)
