"""The history of one log: which epoch wrote which offset, who the voters are, and how far two logs are one history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from migrate.errors import BatchError, DecodeError, SnapshotError
from migrate.kraft.files import PARTITION_DIRECTORY, read_batches
from migrate.kraft.quorum_files import Lineage, Marks, MetadataDirectory, common_end, read_directory
from migrate.protocol.primitives import uuid_text
from tests.kraft.logs import D1, T1, T2, batch, leader_change, log, snapshot, topic
from tests.testing.encoding import build, encode_control

SEGMENT = "00000000000000000000.log"
LEADER = {"version": 0, "leaderId": 3000, "grantingVoters": []}
TOPICS = [topic(f"t{number}", uuid_text(bytes([number]) * 16)) for number in range(1, 30)]


def read(
    folder: Path,
    raw: bytes,
    epoch: int | None = None,
    voters: Sequence[int] = (),
    held: Mapping[str, bytes] = MappingProxyType({}),
) -> MetadataDirectory:
    """A directory with that log and these snapshots, read through."""
    part = folder / PARTITION_DIRECTORY
    part.mkdir(parents=True)
    if raw:
        base = int.from_bytes(raw[:8], "big")
        (part / f"{base:020d}.log").write_bytes(raw)
    if epoch is not None:
        named = [{"voterId": voter} for voter in voters]
        state = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "currentVoters": named, "data_version": 0}
        (part / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
    for name, content in held.items():
        (part / f"{name}.checkpoint").write_bytes(content)
    return read_directory(folder, 3000)


def named(*voters: int) -> tuple[bytes | None, bytes | None]:
    """A KRaftVotersRecord."""
    feature = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    entries: list[dict[str, Any]] = [
        {"voterId": voter, "voterDirectoryId": D1, "endpoints": [], "kRaftVersionFeature": feature} for voter in voters
    ]
    return encode_control("KRAFT_VOTERS", {"version": 0, "voters": entries})


def static(*voters: int) -> set[tuple[int, str]]:
    """Keys of voters without directory ids."""
    return {(voter, "") for voter in voters}


def dynamic(*voters: int) -> set[tuple[int, str]]:
    """Keys of those that `named` names."""
    return {(voter, str(D1)) for voter in voters}


def elected(*voters: int) -> tuple[bytes | None, bytes | None]:
    """A leader change that names these voters."""
    return encode_control("LEADER_CHANGE", {**LEADER, "voters": [{"voterId": voter} for voter in voters]})


def control(base: int, epoch: int, *records: tuple[bytes | None, bytes | None]) -> bytes:
    """A control batch."""
    return build(base, epoch, list(records), control=True)


def control_snapshot(epoch: int, *voters: int) -> bytes:
    """A snapshot of a dynamic quorum, of those voters and nothing else."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 0})
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    version = encode_control("KRAFT_VERSION", {"version": 0, "kRaftVersion": 1})
    return control(0, epoch, header, version, named(*voters)) + control(3, epoch, footer)


def name(end: int, epoch: int) -> str:
    """Of a snapshot."""
    return f"{end:020d}-{epoch:010d}"


class TestEpochs:
    """Which epoch wrote an offset."""

    def test_each_offset_of_a_batch_is_of_its_epoch(self, tmp_path: Path) -> None:
        """The first, the last, and those between; none behind the end."""
        raw = leader_change(0, 2) + batch(*TOPICS[:3], base=1, epoch=2) + leader_change(4, 5)
        lineage = read(tmp_path, raw).lineage
        assert [lineage.epoch_of(offset) for offset in range(-1, 6)] == [None, 2, 2, 2, 2, 5, None]
        assert (lineage.start, lineage.end, lineage.last_epoch) == (0, 5, 5)

    def test_before_the_log_a_snapshots_name_tells_the_offset_before_its_end(self, tmp_path: Path) -> None:
        """And no other one."""
        content = {name(50, 3): snapshot(), name(20, 2): snapshot(epoch=2)}
        lineage = read(tmp_path, log(*TOPICS[:2], base=50, epoch=3), held=content).lineage
        assert [lineage.epoch_of(offset) for offset in (18, 19, 20, 48, 49, 50, 51, 52)] == [
            None,
            2,
            None,
            None,
            3,
            3,
            3,
            None,
        ]
        assert (lineage.start, lineage.end) == (50, 52)

    def test_without_a_log_the_newest_snapshot_is_its_end(self, tmp_path: Path) -> None:
        """And without either there is nothing."""
        lineage = read(tmp_path, b"", held={name(20, 2): snapshot(epoch=2), name(50, 3): snapshot()}).lineage
        assert (lineage.start, lineage.end, lineage.last_epoch) == (50, 50, 3)
        bare = Lineage("nowhere", Marks(), (), frozenset())
        assert (bare.start, bare.end, bare.last_epoch) == (0, 0, -1)

    def test_a_log_that_a_fetched_snapshot_has_overtaken_counts_for_nothing(self, tmp_path: Path) -> None:
        """The node throws it away at its next start; one that reaches the snapshot's end is kept."""
        raw = leader_change(0, 1) + log(*TOPICS[:3], base=1)  # ends at 4
        overtaken = read(tmp_path / "over", raw, held={name(5, 1): snapshot(epoch=1)}).lineage
        assert (overtaken.start, overtaken.end, overtaken.epoch_of(0)) == (5, 5, None)
        both = {name(2, 1): snapshot(epoch=1), name(6, 1): snapshot(epoch=1)}
        assert read(tmp_path / "both", raw, held=both).lineage.start == 6, "the newest one counts"
        level = read(tmp_path / "level", raw, held={name(4, 1): snapshot(epoch=1)}).lineage
        assert (level.start, level.end, level.epoch_of(0)) == (0, 4, 1)

    def test_a_log_may_end_in_the_epoch_of_its_quorum_state_and_in_none_newer(self, tmp_path: Path) -> None:
        """The state is written before records of a new epoch are taken."""
        raw = leader_change(0, 4)
        assert read(tmp_path / "same", raw, 4).lineage.last_epoch == 4
        assert read(tmp_path / "newer", raw, 5).lineage.last_epoch == 4
        with pytest.raises(BatchError, match="ends in epoch 4, and quorum-state knows 3 only") as caught:
            read(tmp_path / "older", raw, 3)
        assert caught.value.where == str(tmp_path / "older")

    def test_an_epoch_begins_with_the_first_record_of_its_first_batch(self, tmp_path: Path) -> None:
        """A leader writes kraft.version and the voters into the same batch, behind its change."""
        version = encode_control("KRAFT_VERSION", {"version": 0, "kRaftVersion": 1})
        raw = leader_change(0, 1) + control(1, 2, elected(3000), version, named(3000))
        assert read(tmp_path / "first", raw).lineage.last_epoch == 2
        with pytest.raises(BatchError, match="begins after epoch 1 without its leader change"):
            read(tmp_path / "behind", leader_change(0, 1) + control(1, 2, version, elected(3000)))
        with pytest.raises(BatchError, match="begins after epoch 1 without its leader change"):
            read(tmp_path / "none", leader_change(0, 1) + control(1, 2, version))

    @pytest.mark.parametrize("base", [3, 5])
    def test_a_batch_begins_where_the_one_before_it_ends(self, tmp_path: Path, base: int) -> None:
        """Neither a gap nor an overlap."""
        raw = leader_change(0, 1) + log(*TOPICS[:3], base=1) + log(TOPICS[3], base=base)
        with pytest.raises(BatchError, match=f"begins at offset {base}; 4 was due"):
            read(tmp_path, raw)

    def test_an_epoch_never_goes_back_from_one_segment_to_the_next(self, tmp_path: Path) -> None:
        """Each file alone is in order."""
        read(tmp_path, leader_change(0, 2) + log(TOPICS[0], base=1, epoch=2))
        (tmp_path / PARTITION_DIRECTORY / f"{2:020d}.log").write_bytes(log(TOPICS[1], base=2, epoch=1))
        with pytest.raises(BatchError, match="a batch of epoch 1 follows one of epoch 2"):
            read_directory(tmp_path, 3000)

    def test_a_log_may_begin_with_any_batch(self, tmp_path: Path) -> None:
        """What was before it is in a snapshot."""
        assert read(tmp_path, log(TOPICS[0], base=7, epoch=3)).lineage.start == 7

    def test_a_snapshot_whose_name_is_of_another_epoch_than_the_log_is_refused(self, tmp_path: Path) -> None:
        """Of several, each is held to the log; so are two snapshots to one another."""
        raw = leader_change(0, 1) + log(*TOPICS[:2], base=1) + leader_change(3, 2)
        good = {name(3, 1): snapshot(epoch=1), name(4, 2): snapshot(epoch=2)}
        assert read(tmp_path / "good", raw, held=good).lineage.end == 4
        with pytest.raises(SnapshotError, match="says epoch 2; its last offset was written in epoch 1") as caught:
            read(tmp_path / "bad", raw, held={name(3, 2): snapshot(epoch=2), name(4, 2): snapshot(epoch=2)})
        assert caught.value.where.endswith(f"{name(3, 2)}.checkpoint")
        with pytest.raises(SnapshotError):
            read(tmp_path / "two", b"", held={name(3, 1): snapshot(epoch=1), name(3, 2): snapshot(epoch=2)})


class TestVoters:
    """Who the voters are, as a directory tells it."""

    def test_the_last_leader_change_names_them(self, tmp_path: Path) -> None:
        """As long as no record of voters does."""
        version = encode_control("KRAFT_VERSION", {"version": 0, "kRaftVersion": 0})
        raw = control(0, 1, elected(1, 2, 3)) + control(1, 2, elected(1, 2), version)
        assert read(tmp_path, raw).voters == static(1, 2)

    def test_a_record_of_voters_counts_for_more_than_a_leader_change(self, tmp_path: Path) -> None:
        """Whichever comes later; of several records the last one."""
        first = control(0, 1, elected(1, 2, 3), named(1, 2))
        assert read(tmp_path / "same", first).voters == dynamic(1, 2)
        assert read(tmp_path / "later", first + control(2, 2, elected(7))).voters == dynamic(1, 2)
        again = first + control(2, 2, elected(7)) + control(3, 2, named(1, 2, 4))
        assert read(tmp_path / "again", again).voters == dynamic(1, 2, 4)

    def test_a_newer_snapshot_names_them_when_the_logs_head_is_gone(self, tmp_path: Path) -> None:
        """A quorum-state of version 0 that a controller wrote as an observer names none, or others."""
        head = control_snapshot(1, 5, 4)
        late = log(*TOPICS[:2], base=50, epoch=1)
        found = read(tmp_path / "late", late, 1, (7,), held={name(50, 1): head})
        assert found.voters == dynamic(5, 4)
        assert found.lineage.voters_at == 49
        raw = control(0, 1, elected(1), named(1, 2)) + log(*TOPICS[:2], base=2, epoch=1)
        held = {name(0, 0): control_snapshot(0, 1, 2), name(2, 1): control_snapshot(1, 1, 2)}
        assert read(tmp_path / "both", raw + control(4, 1, named(9)), held=held).lineage.voters_at == 4
        assert read(tmp_path / "same", raw, held=held).voters == dynamic(1, 2)

    def test_a_control_record_that_nobody_knows_is_an_error_with_its_place(self, tmp_path: Path) -> None:
        """It may have named other voters."""
        raw = leader_change(0, 1) + control(1, 1, (b"\x00\x00\x00\x02", b"\x00\x00\x01"))
        with pytest.raises(DecodeError) as caught:
            read(tmp_path, raw)
        assert caught.value.where.endswith(f"{SEGMENT} at position {len(leader_change(0, 1))}")

    def test_a_quorum_state_that_names_them_counts_for_more_than_the_log(self, tmp_path: Path) -> None:
        """One of version 1 names none: then the log is asked."""
        raw = control(0, 1, elected(1, 2, 3))
        assert read(tmp_path / "state", raw, 1, (1, 2, 4)).voters == static(1, 2, 4)
        assert read(tmp_path / "nobody", raw, 1).voters == static(1, 2, 3)
        assert read(tmp_path / "none", raw).voters == static(1, 2, 3)


class TestCommonEnd:
    """How far two logs are one history."""

    SAME = leader_change(0, 1) + log(*TOPICS[:9], base=1)  # ends at 10

    def both(self, folder: Path, *raws: tuple[bytes, dict[str, bytes]]) -> int:
        """For both orders the same."""
        one, two = (read(folder / str(number), raw, held=content).lineage for number, (raw, content) in enumerate(raws))
        found = common_end(one, two)
        assert common_end(two, one) == found
        return found

    def test_a_shorter_log_is_shared_whole(self, tmp_path: Path) -> None:
        """Its end is theirs."""
        longer = self.SAME + log(TOPICS[9], base=10)
        assert self.both(tmp_path, (self.SAME, {}), (longer, {})) == 10

    @pytest.mark.parametrize("at", [1, 2, 5, 8, 9])
    def test_logs_part_at_the_first_batch_that_differs(self, tmp_path: Path, at: int) -> None:
        """What follows it may be alike again."""
        other = leader_change(0, 1) + log(*TOPICS[: at - 1], base=1) + log(TOPICS[20], base=at)
        other += log(*TOPICS[at:9], base=at + 1)
        assert self.both(tmp_path, (self.SAME, {}), (other, {})) == at

    def test_the_same_record_of_another_epoch_is_another_record(self, tmp_path: Path) -> None:
        """Both controllers wrote it, each as a leader."""
        one = leader_change(0, 1) + leader_change(1, 2) + log(TOPICS[0], base=2, epoch=2)
        two = leader_change(0, 1) + leader_change(1, 3) + log(TOPICS[0], base=2, epoch=3)
        assert self.both(tmp_path, (one, {}), (two, {})) == 1

    def test_the_same_records_in_other_batches_part_where_the_first_of_these_begins(self, tmp_path: Path) -> None:
        """Replicas copy batches byte for byte."""
        one = leader_change(0, 1) + batch(*TOPICS[:2], base=1) + log(TOPICS[2], base=3)
        two = leader_change(0, 1) + log(*TOPICS[:3], base=1)
        assert self.both(tmp_path, (one, {}), (two, {})) == 1

    def test_a_log_that_begins_later_is_compared_from_there_on(self, tmp_path: Path) -> None:
        """What is below was committed once."""
        late = log(*TOPICS[4:9], base=5)
        held = {name(5, 1): snapshot(epoch=1)}
        assert self.both(tmp_path / "same", (self.SAME, {}), (late, held)) == 10
        assert self.both(tmp_path / "on", (self.SAME, {}), (log(*TOPICS[4:20], base=5), held)) == 10
        other = log(*TOPICS[4:6], TOPICS[20], base=5)
        assert self.both(tmp_path / "parts", (self.SAME, {}), (other, held)) == 7
        assert self.both(tmp_path / "empty", (self.SAME, {}), (b"", {name(7, 1): snapshot(epoch=1)})) == 7
        assert self.both(tmp_path / "above", (self.SAME, {}), (b"", {name(12, 1): snapshot(epoch=1)})) == 10

    def test_a_batch_that_lies_across_a_later_beginning_parts_where_it_begins(self, tmp_path: Path) -> None:
        """The lower of the two: of what follows nothing is known to be shared."""
        one = leader_change(0, 1) + batch(*TOPICS[:4], base=1) + log(*TOPICS[4:6], base=5)
        two = log(*TOPICS[2:6], base=3)
        assert self.both(tmp_path, (one, {}), (two, {name(3, 1): snapshot(epoch=1)})) == 1

    def test_snapshots_that_agree_take_nothing_away(self, tmp_path: Path) -> None:
        """Beside one log, or beside both; nor those of offsets that the other does not hold."""
        held = {name(4, 1): snapshot(epoch=1), name(10, 1): snapshot(epoch=1)}
        assert self.both(tmp_path / "one", (self.SAME, {}), (self.SAME, held)) == 10
        assert self.both(tmp_path / "both", (self.SAME, held), (self.SAME, held)) == 10
        short = leader_change(0, 1) + log(TOPICS[0], base=1)
        assert self.both(tmp_path / "beyond", (short, {}), (self.SAME, held)) == 2

    def test_a_snapshots_epoch_is_that_of_the_offset_before_its_end(self, tmp_path: Path) -> None:
        """Where the other log's next epoch begins, on either side of it."""
        raw = leader_change(0, 1) + log(*TOPICS[:3], base=1) + leader_change(4, 2) + leader_change(5, 3)
        for end, epoch in ((4, 1), (5, 2), (6, 3)):
            held = {name(end, epoch): snapshot(epoch=epoch)}
            assert self.both(tmp_path / str(end), (raw, {}), (b"", held)) == end

    def test_a_snapshot_of_another_epoch_leaves_only_what_is_below_both(self, tmp_path: Path) -> None:
        """What it holds was committed, and the other log has something else there."""
        held = {name(7, 3): snapshot()}
        late = log(*TOPICS[6:9], base=7, epoch=3)
        assert self.both(tmp_path / "log", (self.SAME, {}), (late, held)) == 0
        assert self.both(tmp_path / "bare", (self.SAME, {}), (b"", held)) == 0
        begun = log(*TOPICS[3:9], base=4), {name(4, 1): snapshot(epoch=1)}
        assert self.both(tmp_path / "begun", begun, (late, held)) == 4


def test_marks_are_of_every_batch(tmp_path: Path) -> None:
    """By offset the first batch that holds something from there on."""
    path = tmp_path / SEGMENT
    path.write_bytes(leader_change(0, 1) + batch(topic("a", T1), topic("b", T2), base=1) + log(TOPICS[5], base=3))
    marks = Marks()
    for entry in read_batches(path):
        marks.add(entry)
    assert (len(marks), list(marks.bases), list(marks.lasts)) == (3, [0, 1, 3], [0, 2, 3])
    assert [marks.after(offset) for offset in range(-1, 6)] == [0, 0, 1, 1, 2, 3, 3]
