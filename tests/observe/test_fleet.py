"""Clusters of bundles, each read by a task of its own: each has the answer that it has alone."""

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

from migrate.diff.compare import Question
from migrate.diff.fleet import ClusterAnswer, Read, compare_clusters, rows_listed
from migrate.diff.object_store import copy_from_store
from migrate.diff.session import SparkHandle
from migrate.errors import MigrateError, NotVisible
from migrate.model.columns import PartitionColumns
from migrate.model.difference import NOTHING_COMPARED, DiffReport
from migrate.model.facts import pure_ledger
from migrate.model.inventory import Member, NotRead, Target
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.observe.bundle import read_bundle, read_bundle_at, write_bundle
from migrate.observe.fleet import compare_members, proven, read_member
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.clusters import healthy_cluster, kraft_view, zookeeper_view
from tests.testing.object_store import LOGIN, object_store

TODAY = date(2026, 1, 1)


def large(partitions: int, moved: int = 3) -> World:
    """A copied cluster of so many partitions, of which some have another leader in the metadata."""
    world = whole(Stage.COPY)
    one, other = worlds.zk(world).partitions, worlds.kraft(world).partitions

    def many(rows: PartitionColumns) -> PartitionColumns:
        columns = {entry.name: [getattr(rows, entry.name)[0]] * partitions for entry in fields(rows)}
        return PartitionColumns(**{**columns, "partition": [*range(partitions)]})

    ours, theirs = many(one), many(other)
    theirs = replace(theirs, leader=[leader + (number < moved) for number, leader in enumerate(theirs.leader)])
    return worlds.with_kraft(worlds.with_zk(world, partitions=ours), partitions=theirs)


def bundle(folder: Path, name: str, world: World) -> Member:
    """A cluster of a fleet that its bundle names."""
    path = folder / f"{name}.bundle"
    write_bundle(str(path), world, 1_700_000_000)
    return Member(name, Target.BUNDLE, str(path))


def place(where: object) -> str:
    """A bundle as a task is told of it."""
    return json.dumps([str(where), 10])


def test_a_task_hands_on_both_sides_and_the_ledger(tmp_path: Path) -> None:
    """The ledger of the one rule, with no more of its rows than there is room for."""
    world = large(50)
    found = read_member(place(bundle(tmp_path, "a", world).where))
    assert len(found.question.zookeeper.partitions) == len(found.question.kraft.partitions) == 50
    ledger = pure_ledger(world)
    assert isinstance(ledger, Ledger)
    assert found.ledger is not None
    assert found.ledger.states == ledger.counts()
    unproven = tuple(row for row in ledger.rows if row.state is not ReplicaState.VERIFIED)
    assert found.ledger.rows == unproven[:10]
    assert len(unproven) == found.ledger.unproven > 10


def test_a_bundle_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    """As its own command would say it."""
    with pytest.raises(MigrateError) as raised:
        read_member(place(tmp_path / "gone.bundle"))
    answer = NotRead.of(raised.value)
    assert answer.id == "E-BUNDLE-01"
    assert str(tmp_path) in answer.where


@pytest.mark.slow
def test_a_bundle_in_an_object_store_is_read_as_one_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of the copies; one that is damaged, or not there, is named by its URI."""
    for name, value in LOGIN.items():
        monkeypatch.setenv(name, value)
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    here = read_bundle(bundle(kept, "a", large(50)).where)
    (kept / "torn.bundle").write_bytes(b"no bundle")
    with object_store() as store:
        store.put(kept, "clusters")
        uri = store.uri("clusters/a.bundle")
        found = read_bundle_at(uri)
        for gone in ("clusters/torn.bundle", "clusters/gone.bundle", "none/a.bundle"):
            with pytest.raises(MigrateError) as raised:
                read_member(place(store.uri(gone)))
            assert raised.value.where == store.uri(gone)
    assert [*scratch.iterdir()] == []
    assert found == replace(here, path=uri)


def test_of_an_object_no_more_is_copied_than_a_bundle_may_have(tmp_path: Path) -> None:
    """And one byte: so that its reader refuses it."""
    (tmp_path / "large").write_bytes(b"x" * 100)
    copy_from_store((tmp_path / "large").as_uri(), tmp_path / "copy", 10)
    assert (tmp_path / "copy").read_bytes() == b"x" * 11


def test_whatever_a_store_raises_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's errors are Arrow's own, and no OSError."""

    def refused(_: str) -> NoReturn:
        raise pa.ArrowException("Unknown error: Failed to get token")

    monkeypatch.setattr("migrate.diff.object_store.FileSystem", SimpleNamespace(from_uri=refused))
    with pytest.raises(NotVisible, match="the object store cannot be read") as raised:
        copy_from_store("abfs://account.net/kept", tmp_path / "copy", 10)
    assert (raised.value.where, raised.value.why) == ("abfs://account.net/kept", "Unknown error: Failed to get token")


@pytest.mark.parametrize(("clusters", "rows"), [(1, 10_000), (20, 5_000), (900, 111), (5_000, 100)])
def test_each_of_many_clusters_lists_its_share(clusters: int, rows: int) -> None:
    """Some 100,000 rows in all, and never fewer than 100 of a cluster."""
    assert rows_listed(clusters) == rows


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


@pytest.mark.spark
def test_every_cluster_has_its_own_answer(tmp_path: Path, spark_handle: SparkHandle) -> None:
    """Two clusters; between them one whose bundle is not there, and one whose bundle is damaged."""
    (tmp_path / "torn.bundle").write_bytes(b"no bundle")
    members = [
        bundle(tmp_path, "a", large(5_000)),
        *(Member(name, Target.BUNDLE, str(tmp_path / f"{name}.bundle")) for name in ("gone", "torn")),
        bundle(tmp_path, "b", large(120, moved=1)),
    ]
    found = compare_members(spark_handle, members, TODAY)
    assert all(seconds > 0 for seconds, _ in found)
    a, gone, torn, b = (answer for _, answer in found)
    for answer in (gone, torn):
        assert isinstance(answer, NotRead)
        assert answer.id == "E-BUNDLE-01"
    for answer, moved in ((a, 3), (b, 1)):
        assert isinstance(answer, ClusterAnswer)
        assert [(row.kind, row.field) for row in answer.report.unexcused] == [("partition", "leader")] * moved
        assert answer.report.counts["partition"]["DIFFERS"] == moved


@pytest.mark.spark
def test_a_bundle_of_a_fleet_has_the_report_of_diff(tmp_path: Path, spark_handle: SparkHandle) -> None:
    """Field by field: with a difference and where it was read, without one, without disks, and not comparable."""
    world = whole(Stage.COPY)
    worlds_of = {
        "equal": world,
        "large": large(5_000),
        "other": worlds.with_entity(world, "topic-config", "orders", "segment.ms", "77"),
        "unseen": replace(world, disks=Unknown("no host was asked")),
        "before": whole(Stage.ASSESS),
    }
    for name, seen in worlds_of.items():
        write_bundle(str(tmp_path / f"{name}.bundle"), seen, 1_700_000_000)
    members = [Member(name, Target.BUNDLE, str(tmp_path / f"{name}.bundle")) for name in worlds_of]
    found = compare_members(spark_handle, members, date.today())  # noqa: DTZ011 - as in `diff`
    *compared_ones, before = (answer for _, answer in found)
    from migrate.cli.diff import compared
    from migrate.cli.options import Evidence, load_target

    for member, answer in zip(members[:4], compared_ones, strict=True):
        evidence = Evidence(bundle=Path(member.where))
        assert isinstance(answer, ClusterAnswer)
        assert answer.report == compared(*load_target(None, None, evidence), evidence, spark_handle)
        ledger = pure_ledger(worlds_of[member.name])
        assert isinstance(ledger, Ledger)
        assert answer.ledger is not None
        assert answer.ledger.states == ledger.counts()
        unproven = tuple(row for row in ledger.rows if row.state is not ReplicaState.VERIFIED)
        assert answer.ledger.rows == unproven[: rows_listed(len(members))]
        assert (answer.ledger.offset, answer.ledger.unknown) == (ledger.offset, ledger.unknown)
    other, unseen = compared_ones[2:]
    assert isinstance(other, ClusterAnswer)
    assert isinstance(unseen, ClusterAnswer)
    assert unseen.ledger is not None
    assert unseen.ledger.states == {"UNKNOWN": unseen.ledger.replicas}
    assert unseen.ledger.unknown == ("disks: no host was asked",)
    assert all(row.kraft_where.startswith("not in the image at metadata offset") for row in other.report.unexcused)
    assert isinstance(before, NotRead)
    assert before.what.startswith("ZooKeeper and KRaft cannot be compared: ")


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
        return Read(question)

    found = [answer for _, answer in compare_clusters(spark_handle.get(300), ["a", "bad", "b"], read, today=TODAY)]
    assert isinstance(found[1], NotRead)
    assert found[1].id == "E-VIEW-01"
    assert found[0] == found[2]
    assert isinstance(found[0], ClusterAnswer)


@pytest.mark.spark
def test_a_key_that_stands_twice_is_its_clusters_defect(spark_handle: SparkHandle) -> None:
    """The join would give it more rows than there are."""
    question = _question()
    rows = question.zookeeper.partitions
    columns = {entry.name: 2 * getattr(rows, entry.name) for entry in fields(rows)}
    twice = replace(question, zookeeper=replace(question.zookeeper, partitions=PartitionColumns(**columns)))

    def read(place: str) -> Read:
        return Read(twice if place == "bad" else question)

    (_, good), (_, bad) = compare_clusters(spark_handle.get(300), ["a", "bad"], read, today=TODAY)
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
        return Read(bare if place == "bad" else question)

    spark = spark_handle.get(300)
    whole_list = [answer for _, answer in compare_clusters(spark, ["a", "bad"], read, today=TODAY)]
    monkeypatch.setattr("migrate.diff.fleet.MOST_LISTED", 2)
    monkeypatch.setattr("migrate.diff.fleet.LEAST_LISTED", 1)
    cut = [answer for _, answer in compare_clusters(spark, ["a", "bad"], read, today=TODAY)]
    assert cut[0] == whole_list[0]
    assert isinstance(cut[1], ClusterAnswer)
    assert isinstance(whole_list[1], ClusterAnswer)
    few, every = cut[1].report, whole_list[1].report
    assert few.counts == every.counts
    assert len(few.differences) == 1 < len(every.differences)
    assert few.blind_spots[-1].endswith("differences are counted and not listed")
