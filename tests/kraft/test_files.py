"""Metadata files on disk: which count, what their names say, and images from them."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from migrate.errors import BatchCutError, BatchError, MetadataFileError, SnapshotError, WorldError
from migrate.kraft.files import PARTITION_DIRECTORY, QuorumState, find, load, read_batches, read_quorum_state
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from tests.kraft.logs import D1, DATA, STAGES, T1, T2, captured_log, change, log, partition, snapshot, topic
from tests.testing.denied import denied

DIGESTER = Digester(b"k" * 32)
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def partition_directory(tmp_path: Path) -> Path:
    """An empty `__cluster_metadata-0`."""
    directory = tmp_path / PARTITION_DIRECTORY
    directory.mkdir()
    return directory


def view_of(path: Path, below: int | None = None) -> KraftView:
    """The view of a metadata directory."""
    return load(find(path), DIGESTER, below=below).view("cluster", Unknown("one directory"), str(path))


class TestFinding:
    """Which files are metadata."""

    def test_a_metadata_directory_and_its_partition_directory_say_the_same(self, partition_directory: Path) -> None:
        """In either place; foreign files are passed over."""
        names = [
            SEGMENT,
            "00000000000000000100.log",
            "00000000000000000100-0000000003.checkpoint",
            "00000000000000000050-0000000002.checkpoint",
            "00000000000000000000.index",
            "00000000000000000100.snapshot",
            "00000000000000000200-0000000003.checkpoint.part",
            "00000000000000000020-0000000001.checkpoint.deleted",
            "quorum-state",
            "partition.metadata",
        ]
        for name in names:
            (partition_directory / name).touch()
        bootstrap = partition_directory.parent / "bootstrap.checkpoint"
        bootstrap.touch()
        files = find(partition_directory.parent)
        assert [segment.base_offset for segment in files.segments] == [0, 100]
        assert [(found.end_offset, found.epoch) for found in files.snapshots] == [(50, 2), (100, 3)]
        assert files.bootstrap == bootstrap
        assert files.quorum_state == partition_directory / "quorum-state"
        again = find(partition_directory)
        assert (again.segments, again.snapshots, again.bootstrap) == (files.segments, files.snapshots, bootstrap)

    def test_a_place_without_metadata_is_an_error(self, tmp_path: Path) -> None:
        """An empty view would be a lie."""
        with pytest.raises(MetadataFileError, match="no KRaft metadata"):
            find(tmp_path)

    def test_a_folder_that_may_not_be_looked_into_is_told(
        self, partition_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its owner is Kafka's user: no defect, and no folder without files."""
        monkeypatch.setattr(Path, "is_file", denied)
        with pytest.raises(WorldError, match="Permission denied") as caught:
            find(partition_directory)
        assert caught.value.where == str(partition_directory)

    def test_a_pipe_in_the_place_of_a_file_is_refused(self, partition_directory: Path) -> None:
        """Who opens it waits for somebody to write."""
        os.mkfifo(partition_directory / SEGMENT)
        with pytest.raises(MetadataFileError, match="no regular file") as caught:
            find(partition_directory)
        assert caught.value.where == str(partition_directory / SEGMENT)


class TestReading:
    """Batches of one file."""

    def test_another_file_name_is_refused(self, tmp_path: Path) -> None:
        """An index is no log."""
        path = tmp_path / "00000000000000000000.index"
        path.touch()
        with pytest.raises(MetadataFileError, match=r"neither in \.log nor in \.checkpoint"):
            list(read_batches(path))

    def test_a_missing_file_is_a_world_error(self, tmp_path: Path) -> None:
        """Named, and no traceback."""
        with pytest.raises(WorldError, match="No such file") as caught:
            list(read_batches(tmp_path / SEGMENT))
        assert caught.value.where.endswith(SEGMENT)

    def test_a_segment_begins_at_the_offset_of_its_name(self, tmp_path: Path) -> None:
        """A renamed segment is not believed."""
        path = tmp_path / "00000000000000000007.log"
        path.write_bytes(log(topic("a", T1), base=8))
        with pytest.raises(BatchError, match="offset 8; its name says 7"):
            list(read_batches(path))

    def test_a_cut_segment_names_file_and_position(self, tmp_path: Path) -> None:
        """Where to look."""
        path = tmp_path / SEGMENT
        first = log(topic("a", T1))
        path.write_bytes(first + log(topic("b", T2), base=1)[:-1])
        with pytest.raises(BatchCutError) as caught:
            list(read_batches(path))
        assert caught.value.where == f"{path} at position {len(first)}"


class TestImages:
    """Snapshot plus tail, as a controller starts."""

    def test_the_newest_snapshot_and_the_tail_make_the_image(self, partition_directory: Path) -> None:
        """Segments may begin below the snapshot's end."""
        full = log(topic("a", T1), partition(T1, 0, [1], [D1]), change(T1, 0, leader=-1), epoch=3)
        (partition_directory / SEGMENT).write_bytes(full)
        data = (topic("a", T1), partition(T1, 0, [1], [D1]))
        (partition_directory / "00000000000000000002-0000000003.checkpoint").write_bytes(snapshot(*data))
        view = view_of(partition_directory)
        assert (view.offset, view.epoch, view.partitions.leader) == (2, 3, [-1])
        assert view.entities.where == ["snapshot 2-3"]
        assert not view.committed

    def test_a_snapshot_above_the_cut_is_not_used(self, partition_directory: Path) -> None:
        """The log below it still is."""
        (partition_directory / SEGMENT).write_bytes(log(topic("a", T1), topic("b", T2), epoch=3))
        (partition_directory / "00000000000000000002-0000000003.checkpoint").write_bytes(snapshot())
        assert view_of(partition_directory, below=1).entities.key == ["a"]

    def test_segments_follow_each_other(self, partition_directory: Path) -> None:
        """The next begins where the last ended."""
        (partition_directory / SEGMENT).write_bytes(log(topic("a", T1)))
        (partition_directory / "00000000000000000001.log").write_bytes(log(topic("b", T2), base=1))
        assert view_of(partition_directory).entities.key == ["a", "b"]

    def test_the_bootstrap_counts_while_the_log_is_empty(self, partition_directory: Path) -> None:
        """As for the controller itself."""
        shutil.copy(DATA / "bootstrap.checkpoint", partition_directory.parent)
        assert view_of(partition_directory).features == {"metadata.version": 21}
        assert view_of(partition_directory).offset == -1
        (partition_directory / SEGMENT).write_bytes(log(topic("a", T1)))
        assert view_of(partition_directory).features == {}

    def test_a_broken_snapshot_is_an_error(self, partition_directory: Path) -> None:
        """Never silently the log alone: what is below may have been deleted."""
        path = partition_directory / "00000000000000000002-0000000003.checkpoint"
        path.write_bytes(snapshot()[:-78])
        with pytest.raises((SnapshotError, BatchError)) as caught:
            view_of(partition_directory)
        assert str(path) in caught.value.where

    @pytest.mark.parametrize(
        ("stage", "state", "migrating"),
        [
            ("controllers-up", "PRE_MIGRATION", []),
            ("hybrid-after-copy", "MIGRATION", [0, 1, 2]),
            ("first-broker-kraft", "MIGRATION", [1, 2]),
            ("all-brokers-kraft", "MIGRATION", []),
            ("finalized", "POST_MIGRATION", []),
        ],
    )
    def test_the_captured_stages_are_what_they_were(
        self, partition_directory: Path, stage: str, state: str, migrating: list[int]
    ) -> None:
        """A real migration of 3 brokers with 3 directories each, 212 partitions and 527 replicas."""
        size, _ = STAGES[stage]
        (partition_directory / SEGMENT).write_bytes(captured_log()[:size])
        view = view_of(partition_directory)
        copied = stage != "controllers-up"
        assert view.migration_state.name == state
        assert (len(view.partitions), view.partitions.replica_count()) == ((212, 527) if copied else (0, 0))
        assert [broker for broker, found in sorted(view.brokers.items()) if found.migrating] == migrating
        assert [broker for broker, found in view.brokers.items() if found.fenced or len(found.log_dirs) != 3] == []
        assert {controller.migration_ready for controller in view.controllers.values()} == {stage != "finalized"}

    def test_at_the_end_every_directory_is_registered(self, partition_directory: Path) -> None:
        """No replica of the captured cluster is MIGRATING, UNASSIGNED or LOST."""
        (partition_directory / SEGMENT).write_bytes(captured_log())
        view = view_of(partition_directory)
        for replicas, directories in zip(view.partitions.replicas, view.partitions.directories, strict=True):
            for broker, directory in zip(replicas, directories, strict=True):
                assert directory in view.brokers[NodeId(broker)].log_dirs
        assert view.entities.counts() == {
            "acl": 3,
            "broker": 3,
            "broker-config": 1,
            "client-quota": 6,
            "producer-ids": 1,
            "scram": 2,
            "topic": 24,
            "topic-config": 5,
        }


class TestQuorumState:
    """The election's memory."""

    def test_version_0_names_the_voters(self) -> None:
        """The captured file."""
        assert read_quorum_state(DATA / "quorum-state") == QuorumState(0, 3000, 2, -1, "", (3000, 3001, 3002))

    def test_version_1_names_a_directory(self, tmp_path: Path) -> None:
        """KIP-853: voters stand in the log."""
        path = tmp_path / "quorum-state"
        path.write_text(
            f'{{"leaderId":-1,"leaderEpoch":7,"votedId":3001,"votedDirectoryId":"{D1}","data_version":1}}', "utf-8"
        )
        assert read_quorum_state(path) == QuorumState(1, -1, 7, 3001, D1, ())

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{}", "[]", "7", '{"data_version":1}', '{"data_version":"x"}', "\x00\x00", "[" * 100_000),
            *(f'{{"data_version":{value}}}' for value in ("1e999", "Infinity", "9" * 400, '"' + "9" * 5000 + '"')),
            '{"data_version":0,"leaderId":1,"leaderEpoch":1,"votedId":1,"currentVoters":[7]}',
            " " * (9 * 2**20),
        ],
        ids=itertools.count(),
    )
    def test_anything_else_is_an_error_with_the_path(self, tmp_path: Path, text: str) -> None:
        """Half a file after a crash, for one."""
        path = tmp_path / "quorum-state"
        path.write_text(text, "utf-8")
        with pytest.raises(MetadataFileError, match="no quorum-state") as caught:
            read_quorum_state(path)
        assert caught.value.where == str(path)

    def test_a_missing_one_is_a_world_error(self, tmp_path: Path) -> None:
        """Not the same as an empty one."""
        with pytest.raises(WorldError):
            read_quorum_state(tmp_path / "quorum-state")
