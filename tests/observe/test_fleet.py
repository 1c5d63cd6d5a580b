"""Clusters of files and bundles, each read by a task of its own: each has the answer that it has alone."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pyarrow as pa
import pytest

from migrate.diff.compare import MOST_ROWS, Question, compare
from migrate.diff.fleet import ClusterAnswer, Progress, Read, compare_clusters, copy_from_store
from migrate.diff.session import SparkHandle
from migrate.errors import MigrateError, NotVisible
from migrate.hosts.collected import read_all
from migrate.kraft.files import find
from migrate.model.columns import PartitionColumns
from migrate.model.difference import NOTHING_COMPARED, DifferenceClass, DiffReport
from migrate.model.facts import build, copy_state, pure_ledger
from migrate.model.inventory import FilePair, Member, NotRead, Target
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import Stage
from migrate.observe.agreement import read_sides
from migrate.observe.bundle import write_bundle
from migrate.observe.fleet import compare_members, largest_first, proven, read_member, read_pair
from migrate.zookeeper.offline.files import ZookeeperFiles, open_files
from tests.bench import agreeing
from tests.cli.commands import kraft_migrate
from tests.hosts.test_collected import run
from tests.hosts.test_disks import log_dir, replica
from tests.playbook.test_load_fleet import written
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.clusters import healthy_cluster, kraft_view, zookeeper_view
from tests.testing.object_store import LOGIN, object_store

TODAY = date(2026, 1, 1)


def a_pair(folder: Path, size: int) -> FilePair:
    """A cluster's files; some topics' leaders have moved in the metadata."""
    folder.mkdir()
    with agreeing.both_sides(folder, size):
        return FilePair((str(folder),), str(folder))


def of_files(name: str, pair: FilePair) -> Member:
    """A cluster of a fleet that is named by them."""
    return Member(name, Target.FILES, pair.metadata, pair)


def test_what_a_task_hands_on_is_what_differs_alone(tmp_path: Path) -> None:
    """Both sides' rows of those topics, and how many fields agree."""
    found = read_pair(a_pair(tmp_path / "a", 5_000))
    zookeeper, kraft = found.question.zookeeper, found.question.kraft
    topics = {"team-1.events-1", "team-1.events-98"}
    assert {*zookeeper.partitions.topic} == {*kraft.partitions.topic} == topics
    assert found.equal == {"topic": 100, "partition": 8 * (5_000 - len(kraft.partitions))}
    assert "topic" not in {*zookeeper.entities.kind, *kraft.entities.kind}


def test_files_that_cannot_be_read_are_an_error_that_names_them(tmp_path: Path) -> None:
    """As its own command would say it; a bundle's too."""
    for place in ([[str(tmp_path)], str(tmp_path), "", []], {"bundle": str(tmp_path / "gone.bundle")}):
        with pytest.raises(MigrateError) as raised:
            read_member(json.dumps(place))
        answer = NotRead.of(raised.value)
        assert answer.id.startswith("E-")
        assert str(tmp_path) in answer.where


def test_files_in_an_object_store_are_read_as_those_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of the copies; a folder without a file is named by its URI."""
    for name, value in LOGIN.items():
        monkeypatch.setenv(name, value)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    pair = a_pair(tmp_path / "a", 5_000)
    with object_store() as store:
        store.put(tmp_path / "a", "clusters/a")
        uri = store.uri("clusters/a")
        found, here = read_member(json.dumps([[uri], uri, "", []])), read_pair(pair)
        assert [*scratch.iterdir()] == []
        for place in (store.uri("clusters/gone"), store.uri("clusters/a").replace("//fleet", "//none")):
            with pytest.raises(MigrateError) as raised:
                read_member(json.dumps([[place], place, "", []]))
            assert raised.value.where == place
    assert found.equal == here.equal
    (spot,) = found.question.terms.blind_spots
    assert spot.startswith(f"files of {uri}: "), "not those of a folder that is gone"
    for side in ("zookeeper", "kraft"):
        there, ours = (getattr(one.question, side).partitions for one in (found, here))
        assert [*zip(there.topic, there.leader, strict=True)] == [*zip(ours.topic, ours.leader, strict=True)]


def test_whatever_a_store_raises_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's errors are Arrow's own, and no OSError."""

    def refused(_: str) -> NoReturn:
        raise pa.ArrowException("Unknown error: Failed to get token")

    monkeypatch.setattr("migrate.diff.fleet.FileSystem", SimpleNamespace(from_uri=refused))
    with pytest.raises(NotVisible, match="the object store cannot be read") as raised:
        copy_from_store("abfs://account.net/kept", tmp_path)
    assert (raised.value.where, raised.value.why) == ("abfs://account.net/kept", "Unknown error: Failed to get token")


def test_the_largest_is_begun_first(tmp_path: Path) -> None:
    """Files and bundles alike; what is not seen from here comes last."""
    (tmp_path / "a.bundle").write_bytes(b"x" * 200)
    for name, size in (("small", 100), ("large", 300)):
        (tmp_path / name / "version-2").mkdir(parents=True)
        (tmp_path / name / "version-2" / "log.1").write_bytes(b"x" * size)
    members = [
        Member("gone", Target.BUNDLE, str(tmp_path / "gone.bundle")),
        *(of_files(name, FilePair((str(tmp_path / name),), "s3://kept/kraft")) for name in ("small", "large")),
        Member("bundle", Target.BUNDLE, str(tmp_path / "a.bundle")),
    ]
    assert [members[number].name for number in largest_first(members)] == ["large", "bundle", "small", "gone"]


def test_an_error_without_a_place_is_told_with_its_clusters() -> None:
    """A process that ended, or a defect, names none."""
    member = Member("a", Target.BUNDLE, "/kept/a.bundle")
    lost = NotRead.of(RecursionError("deep"))
    assert proven(lost, member) == replace(lost, where="/kept/a.bundle")
    known = replace(lost, where="/kept/a.bundle, member 3")
    assert proven(known, member) == known


def test_a_cluster_whose_sides_are_both_empty_is_not_equal() -> None:
    """As a gate of a run holds it: nothing was compared."""
    member = Member("a", Target.BUNDLE, "/kept/a.bundle")
    answer = proven(ClusterAnswer(DiffReport(7, 0, {"partition": {}}, ())), member)
    assert isinstance(answer, NotRead)
    assert (answer.what, answer.where) == (NOTHING_COMPARED, "/kept/a.bundle")
    some = ClusterAnswer(DiffReport(7, 0, {"partition": {"EQUAL": 1}}, ()))
    assert proven(some, member) == some


def test_what_is_no_error_of_ours_is_a_defect() -> None:
    """Never a good answer."""
    answer = NotRead.of(RecursionError("deep"))
    assert (answer.id, answer.what) == ("E-DEFECT", "RecursionError: deep")


def test_progress_counts_a_task_that_was_tried_again_once() -> None:
    """And executors, which have no callback, gather alone."""
    seen: list[tuple[int, bool]] = []
    driver = Progress(lambda cluster, good, _: seen.append((cluster, good)))
    first, second = [(3, True, 0.1)], [(3, True, 0.2), (1, False, 0.1)]
    assert driver.addInPlace(first, second) == first + second
    driver.addInPlace([], first)
    assert seen == [(3, True), (1, False)]
    made, words = driver.__reduce__()
    assert made(*words).addInPlace(driver.zero([]), second) == second
    assert len(seen) == 2


def test_files_alone_are_not_assessed(tmp_path: Path) -> None:
    """And the next step is named."""
    path = written(tmp_path, "{name: a, files: {zookeeper: data, metadata: kraft}}")
    ended = kraft_migrate("fleet", "assess", path)
    assert ended.code == 64
    assert "can be compared, not assessed" in ended.out
    assert "`fleet diff`" in ended.out


@pytest.mark.spark
def test_every_cluster_has_the_report_that_it_has_alone(tmp_path: Path, spark_handle: SparkHandle) -> None:
    """Two clusters; between them one that has no files, and one whose bundle is damaged; each is told once."""
    (tmp_path / "torn.bundle").write_bytes(b"no bundle")
    members = [
        of_files("a", a_pair(tmp_path / "a", 5_000)),
        of_files("gone", FilePair((str(tmp_path),), str(tmp_path))),
        Member("torn", Target.BUNDLE, str(tmp_path / "torn.bundle")),
        of_files("b", a_pair(tmp_path / "b", 120)),
    ]
    told: dict[int, bool] = {}
    found = compare_members(spark_handle, members, TODAY, lambda number, good, _: told.update({number: good}))
    assert told == {0: True, 1: False, 2: False, 3: True}
    assert [report.id for report in found if isinstance(report, NotRead)] == ["E-ZKF-01", "E-BUNDLE-01"]
    for member, answer in zip(members, found, strict=True):
        if isinstance(answer, NotRead):
            continue
        report = answer.report
        assert answer.ledger is None, "nobody reported the disks"
        assert member.files is not None
        alone = _alone(member.files, spark_handle)
        assert _rows(report) == _rows(alone)
        assert report.counts == {**alone.counts, "topic": report.counts["topic"]}
        assert any(row.field == "leader" for row in report.unexcused)


def _alone(pair: FilePair, handle: SparkHandle) -> DiffReport:
    """Every row of both sides, compared as `diff` does."""
    sides = read_sides(open_files(ZookeeperFiles(pair.zookeeper)), find(Path(pair.metadata)), Digester())
    topics = {*sides.agreement().differing, *(f"team-{n % 97}.events-{n}" for n in range(200))}
    zookeeper, kraft = sides.views(topics)
    return compare(handle.get(300), zookeeper, kraft, (), offset=kraft.offset, lag=0, today=TODAY)


def _rows(report: DiffReport) -> list[tuple[str, str, str, DifferenceClass]]:
    return [(row.kind, row.key, row.field, row.cls) for row in report.differences]


@pytest.mark.spark
def test_a_bundle_of_a_fleet_has_the_report_of_diff(tmp_path: Path, spark_handle: SparkHandle) -> None:
    """Field by field: with a difference and where it was read, without one, without disks, and not comparable."""
    world = whole(Stage.COPY)
    worlds_of = {
        "equal": world,
        "other": worlds.with_entity(world, "topic-config", "orders", "segment.ms", "77"),
        "unseen": replace(world, disks=Unknown("no host was asked")),
        "before": whole(Stage.ASSESS),
    }
    for name, seen in worlds_of.items():
        write_bundle(str(tmp_path / f"{name}.bundle"), seen, 1_700_000_000)
    members = [Member(name, Target.BUNDLE, str(tmp_path / f"{name}.bundle")) for name in worlds_of]
    *compared_ones, before = compare_members(spark_handle, members, date.today())  # noqa: DTZ011 - as in `diff`
    from migrate.cli.diff import compared
    from migrate.cli.options import Evidence, load_target

    for member, answer in zip(members[:3], compared_ones, strict=True):
        evidence = Evidence(bundle=Path(member.where))
        assert isinstance(answer, ClusterAnswer)
        assert answer.report == compared(*load_target(None, None, evidence), evidence, spark_handle)
        ledger = pure_ledger(worlds_of[member.name])
        assert isinstance(ledger, Ledger)
        assert answer.ledger is not None
        assert answer.ledger.states == ledger.counts()
        assert answer.ledger.rows == tuple(row for row in ledger.rows if row.state is not ReplicaState.VERIFIED)
        assert (answer.ledger.offset, answer.ledger.unknown) == (ledger.offset, ledger.unknown)
    other, unseen = compared_ones[1:]
    assert isinstance(other, ClusterAnswer)
    assert isinstance(unseen, ClusterAnswer)
    assert unseen.ledger is not None
    assert unseen.ledger.states == {"UNKNOWN": unseen.ledger.replicas}
    assert unseen.ledger.unknown == ("disks: no host was asked",)
    assert all(row.kraft_where.startswith("not in the image at metadata offset") for row in other.report.unexcused)
    assert isinstance(before, NotRead)
    assert before.what.startswith("ZooKeeper and KRaft cannot be compared: ")


@pytest.mark.spark
@pytest.mark.parametrize("size", [120, 5_000], ids=["plain", "in columns"])
def test_files_with_reports_of_disks_have_the_ledger_of_the_reference(
    tmp_path: Path, spark_handle: SparkHandle, size: int
) -> None:
    """Every replica counts; of those that are not VERIFIED a share is listed; a damaged report is its cluster's."""
    pair = a_pair(tmp_path / "a", size)
    zookeeper, kraft = read_sides(
        open_files(ZookeeperFiles(pair.zookeeper)), find(Path(pair.metadata)), Digester()
    ).views(None)
    rows, reports = zookeeper.partitions, tmp_path / "reports"
    disk = log_dir(tmp_path)
    for topic, partition, topic_id in list(zip(rows.topic, rows.partition, rows.topic_id, strict=True))[:9]:
        replica(disk, f"{topic}-{partition}", topic_id)
    reports.mkdir()
    words = ("--probe", "--node", rows.replicas[0][0], disk)
    (reports / "broker.json").write_text(run(*words).stdout)
    (tmp_path / "torn.json").write_text("{}")
    members = [
        of_files("whole", replace(pair, disks=(str(reports),))),
        of_files("torn", replace(pair, disks=(str(tmp_path / "torn.json"),))),
    ]
    found, torn = compare_members(spark_handle, members, TODAY)
    disks = {node: report.disks for node, report in read_all([str(reports)], None).items()}
    after_copy, finalized = copy_state(zookeeper, kraft, "files")
    ledger = build(zookeeper, kraft, disks, after_copy=after_copy, finalized=finalized)
    assert isinstance(found, ClusterAnswer)
    assert found.ledger is not None
    assert found.ledger.states == ledger.counts()
    assert set(ledger.counts()) > {"UNKNOWN"}, "some are on the disk"
    assert found.ledger.rows == ledger.rows[:MOST_ROWS]
    assert isinstance(torn, NotRead)
    assert torn.where == str(tmp_path / "torn.json")


def _question() -> Question:
    """Two views of one cluster, which agree."""
    rows = healthy_cluster().partitions
    return Question(zookeeper_view(rows), kraft_view(rows))


@pytest.mark.spark
def test_a_cluster_that_ends_its_process_is_the_only_one_that_is_not_read(spark_handle: SparkHandle) -> None:
    """However often it is tried: the others are compared, and the next comparison on the session as well."""
    question = _question()

    def read(place: str) -> Read:
        if place == "bad":
            os.kill(os.getpid(), signal.SIGKILL)
        return Read(question, {"topic": 3})

    spark = spark_handle.get(300)
    told: dict[int, bool] = {}
    found = compare_clusters(
        spark, ["a", "bad", "b"], read, today=TODAY, done=lambda number, good, _: told.update({number: good})
    )
    assert isinstance(found[1], NotRead)
    assert found[1].id == "E-VIEW-01"
    assert found[0] == found[2]
    assert isinstance(found[0], ClusterAnswer)
    assert found[0].report.counts["topic"]["EQUAL"] == 3
    assert told == {0: True, 1: False, 2: True}


@pytest.mark.spark
def test_without_accumulators_clusters_are_told_once_all_were_read(
    spark_handle: SparkHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Spark Connect: each with the time that it took."""
    monkeypatch.setattr("migrate.diff.fleet.is_remote", lambda: True)
    question = _question()

    def read(place: str) -> Read:
        if place == "bad":
            raise OSError("no such file")
        return Read(question, {})

    told: dict[int, tuple[bool, bool]] = {}
    compare_clusters(
        spark_handle.get(300),
        ["a", "bad"],
        read,
        today=TODAY,
        done=lambda number, good, seconds: told.update({number: (good, seconds > 0)}),
    )
    assert told == {0: (True, True), 1: (False, True)}


@pytest.mark.spark
def test_a_key_that_stands_twice_is_its_clusters_defect(spark_handle: SparkHandle) -> None:
    """The join would give it more rows than there are."""
    question = _question()
    rows = question.zookeeper.partitions
    columns = {entry.name: 2 * getattr(rows, entry.name) for entry in fields(rows)}
    twice = replace(question, zookeeper=replace(question.zookeeper, partitions=PartitionColumns(**columns)))

    def read(place: str) -> Read:
        return Read(twice if place == "bad" else question, {})

    good, bad = compare_clusters(spark_handle.get(300), ["a", "bad"], read, today=TODAY)
    assert isinstance(good, ClusterAnswer)
    assert isinstance(bad, NotRead)
    assert "a key of zookeeper appears twice" in bad.what


@pytest.mark.spark
def test_of_too_many_differences_each_cluster_lists_its_share(
    spark_handle: SparkHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts stay exact, and the report says how many are not listed."""
    question = _question()
    bare = replace(question, kraft=replace(question.kraft, partitions=PartitionColumns()))

    def read(place: str) -> Read:
        return Read(bare if place == "bad" else question, {})

    spark = spark_handle.get(300)
    whole_list = compare_clusters(spark, ["a", "bad"], read, today=TODAY)
    monkeypatch.setattr("migrate.diff.fleet.MOST_LISTED", 2)
    monkeypatch.setattr("migrate.diff.fleet.LEAST_LISTED", 1)
    cut = compare_clusters(spark, ["a", "bad"], read, today=TODAY)
    assert cut[0] == whole_list[0]
    assert isinstance(cut[1], ClusterAnswer)
    assert isinstance(whole_list[1], ClusterAnswer)
    few, every = cut[1].report, whole_list[1].report
    assert few.counts == every.counts
    assert len(few.differences) == 1 < len(every.differences)
    assert few.blind_spots[-1].endswith("differences are counted and not listed")
