"""Clusters of a fleet that are named by files: read and decoded by Spark's executors, each in a task of its own.

A task hands on what both sides do not say alike: of the partitions, those of topics that differ
(`migrate.observe.agreement`).  A bundle is held to what `diff` holds it to (`migrate.observe.analysis`).
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from migrate.errors import MigrateError, NotVisible
from migrate.hosts.collected import read_all
from migrate.kraft.files import find
from migrate.model import strict_json
from migrate.model.difference import NOTHING_COMPARED, DiffReport
from migrate.model.facts import DisksByBroker, copy_state
from migrate.model.findings import Finding
from migrate.model.inventory import FOLDERS, URI, AcceptedDifference, FilePair, Member, NotRead
from migrate.model.ledger import LedgerSummary
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.model.world import World
from migrate.observe.agreement import FIELDS, Sides, apart, read_sides, refuse_malformed
from migrate.observe.analysis import Comparer, cannot_compare, with_diff
from migrate.observe.bundle import read_bundle
from migrate.observe.bundled import BundledSources
from migrate.observe.codec import decode, encode
from migrate.zookeeper.offline.files import ZookeeperFiles, open_files

if TYPE_CHECKING:
    from migrate.diff import ledger
    from migrate.diff.fleet import ClusterAnswer, Read
    from migrate.diff.session import SparkHandle

CAUGHT: Final = Unknown("the rows are compared with those of other clusters")


def compare_members(
    handle: SparkHandle, members: Sequence[Member], today: date, done: Callable[[int, bool, float], None] | None = None
) -> list[ClusterAnswer | NotRead]:
    """Comparison and ledger of each cluster, which files or a bundle name, in their order.

    Raises:
        SparkDidNotStart: the session did not come up.
        SparkGone: it ended under the comparison.
    """
    session = handle.ship_package()  # first: pyspark is imported by who starts it, not by two threads at once
    from migrate.diff.fleet import compare_clusters

    order = largest_first(members)
    told = None if done is None else lambda number, good, seconds: done(order[number], good, seconds)
    places = [_place(members[number]) for number in order]
    read = compare_clusters(session, places, read_member, today=today, done=told)
    found = {number: proven(answer, members[number]) for number, answer in zip(order, read, strict=True)}
    again = {
        number: answer for number, answer in found.items()
        if members[number].files is None and not isinstance(answer, NotRead) and answer.report.unexcused
    }  # fmt: skip
    questions = [json.dumps([members[number].where, encode(answer.report)]) for number, answer in again.items()]
    for (number, answer), one in zip(again.items(), on_executors(handle, questions, locate_in_bundle), strict=True):
        found[number] = (
            one
            if isinstance(one, NotRead)
            else replace(answer, report=decode(DiffReport, strict_json.loads(one, surrogates=True), "report"))
        )
    return [found[number] for number in range(len(members))]


def on_executors(handle: SparkHandle, places: Sequence[str], work: Callable[[str], str]) -> list[str | NotRead]:
    """What `work` makes of each of these on Spark's executors, in their order; what it raises is that one's answer.

    Raises what `compare_members` raises.
    """
    session = handle.ship_package()  # first, as in `compare_members`
    from migrate.diff.fleet import on_executors

    return on_executors(session, places, work)


def proven(answer: ClusterAnswer | NotRead, member: Member) -> ClusterAnswer | NotRead:
    """What is reported of a cluster; two empty sides are no answer, and an error has a place (pure)."""
    if not isinstance(answer, NotRead) and answer.report.is_empty:
        answer = NotRead.of(NotVisible(NOTHING_COMPARED))
    return replace(answer, where=member.where) if isinstance(answer, NotRead) and not answer.where else answer


def _place(member: Member) -> str:
    """Where its files are, as `read_member` takes it."""
    pair = member.files
    return json.dumps({"bundle": member.where} if pair is None else list(astuple(pair)))


def largest_first(members: Sequence[Member]) -> list[int]:
    """Their numbers in the order in which they are begun."""
    return sorted(range(len(members)), key=lambda number: -_size(members[number]))


def _size(member: Member) -> int:
    """About how many bytes it has, as far as it is seen from here."""
    pair = member.files
    if pair is None:
        try:
            return Path(member.where).stat().st_size
        except OSError:
            return 0
    folders = [*pair.zookeeper, pair.metadata]
    total = 0
    for folder in folders:
        for place in (Path(folder, name) for name in FOLDERS):
            try:
                with os.scandir(place) as entries:
                    total += sum(entry.stat().st_size for entry in entries if entry.is_file())
            except OSError:
                continue
    return total


def require_no_results(folder: Path) -> None:
    """Ask before the work what `write_results` would refuse after it.  Raises ExportRefused."""
    from migrate.diff.export import FLEET_FILES, require_absent

    require_absent(folder, FLEET_FILES)


def write_results(
    folder: Path,
    clusters: Sequence[Mapping[str, object]],
    reports: Mapping[str, DiffReport] | None = None,
    ledgers: Mapping[str, LedgerSummary] | None = None,
    findings: Mapping[str, Sequence[Finding]] | None = None,
) -> list[Path]:
    """What was found of a fleet, as Parquet and JSON lines; raises ExportRefused where the folder has such files."""
    from migrate.diff.export import rows_of, write_fleet

    tables: dict[str, list[Mapping[str, object]]] = {"clusters": list(clusters)}
    if findings is not None:
        tables["findings"] = [
            {
                "cluster": cluster,
                "code": entry.code,
                "severity": str(entry.severity),
                "about": entry.about,
                "message": entry.message,
                "evidence": entry.evidence,
                "fix": entry.fix,
            }
            for cluster, entries in findings.items()
            for entry in entries
        ]
    if reports is not None:
        tables |= {"differences": [], "counts": []}
        for cluster, report in reports.items():
            for name, rows in rows_of(report).items():
                tables[name] += [{"cluster": cluster, **row} for row in rows]
    if ledgers:
        tables |= {"replicas": [], "replica_counts": []}
        for cluster, summary in ledgers.items():
            tables["replicas"] += [{"cluster": cluster, **asdict(row)} for row in summary.rows]
            tables["replica_counts"] += [
                {"cluster": cluster, "broker": broker, "state": state, "replicas": number}
                for broker in summary.counts
                for state, number in summary.of(broker).items()
            ]
    return write_fleet(folder, tables)


# -- on the executors ------------------------------------------------------------------------------------------------
def read_member(place: str) -> Read:
    """Both sides of one cluster, without what they say alike.  Raises what reading its files raises."""
    where = strict_json.loads(place, surrogates=True)
    if isinstance(where, Mapping):
        return _read_bundle(where["bundle"])
    from migrate.diff.fleet import copy_from_store

    zookeeper, metadata, chroot, reports = where
    with TemporaryDirectory(prefix="kraft-migrate-fleet-") as scratch:
        uris = [place for place in {*zookeeper, metadata} if URI in place]
        folders = {uri: str(Path(scratch, str(number))) for number, uri in enumerate(uris)}

        def named(text: str) -> str:
            return functools.reduce(lambda said, pair: said.replace(pair[1], pair[0]), folders.items(), text)

        try:
            for uri, folder in folders.items():
                copy_from_store(uri, Path(folder))
            ours, theirs = tuple(folders.get(one, one) for one in zookeeper), folders.get(metadata, metadata)
            found = read_pair(FilePair(ours, theirs, chroot, tuple(reports)))
        except MigrateError as error:
            error.where, error.why = named(error.where), named(error.why)
            raise
        view = found.question.zookeeper
        spots = tuple(map(named, view.blind_spots))
        return replace(found, question=replace(found.question, zookeeper=replace(view, blind_spots=spots)))


def read_pair(pair: FilePair) -> Read:
    tree = open_files(ZookeeperFiles(pair.zookeeper, pair.chroot))
    sides = read_sides(tree, find(Path(pair.metadata)), Digester())
    found = _without_equal(sides)
    if not pair.disks:
        return found
    zookeeper, kraft = sides.views(None)
    disks = {node: report.disks for node, report in read_all(pair.disks, None).items()}
    return replace(found, ledger=_ledger(zookeeper, kraft, disks, pair.zookeeper[0]))


def _ledger(zookeeper: ZookeeperView, kraft: KraftView, disks: DisksByBroker | Unknown, where: str) -> ledger.Question:
    """The question of a cluster whose ZooKeeper is there, `where` (pure)."""
    from migrate.diff import ledger

    after_copy, finalized = copy_state(zookeeper, kraft, where)
    return ledger.Question(zookeeper, kraft, disks, after_copy, finalized)


def _without_equal(sides: Sides, accepted: Sequence[AcceptedDifference] = (), lag: int = 0) -> Read:
    from migrate.diff.compare import Question
    from migrate.diff.fleet import Read

    found = sides.agreement()
    zookeeper, kraft = sides.views(found.differing)
    ours, theirs, equal = apart(zookeeper.entities, kraft.entities)
    left, right = replace(zookeeper, entities=ours), replace(kraft, entities=theirs)
    return Read(Question(left, right, accepted, lag), {**equal, "partition": FIELDS * found.partitions})


def _read_bundle(path: str) -> Read:
    """A bundle's two sides; NotVisible where they cannot be compared."""
    caught: list[tuple[Sides, Sequence[AcceptedDifference], int]] = []

    def catch(
        _: Any, zookeeper: ZookeeperView, kraft: KraftView, accepted: tuple[AcceptedDifference, ...], lag: int
    ) -> Unknown:
        refuse_malformed(zookeeper)
        caught.append((Sides(zookeeper, kraft), accepted, lag))
        return CAUGHT

    world = _compared(path, catch)
    if not caught:
        assert isinstance(world.diff, Unknown)
        raise cannot_compare(world.diff, world.inventory)
    sides, accepted, lag = caught[0]
    asked = _ledger(sides.zookeeper, sides.kraft, world.disks, world.inventory.zookeeper)
    return replace(_without_equal(sides, accepted, lag), ledger=asked)


def locate_in_bundle(question: str) -> str:
    """The report of a bundle as `diff` would give it: each row with the places that it was read at."""
    path, report = strict_json.loads(question, surrogates=True)
    world = _compared(path, lambda *_: decode(DiffReport, report, "report"))
    if isinstance(world.diff, Unknown):
        raise cannot_compare(world.diff, world.inventory)
    return json.dumps(encode(world.diff))


def _compared(path: str, compare: Comparer) -> World:
    """A bundle's world as `diff` has it, with `compare` in the place of Spark."""
    bundle = read_bundle(path)
    kept = bundle.world
    sources = BundledSources(kept.inventory, kept.playbook, None, bundle)
    seen = World(
        kept.inventory,
        playbook=kept.playbook,
        zookeeper=sources.zookeeper(),
        kraft=sources.kraft(),
        disks=kept.disks,
    )
    return with_diff(sources, seen, compare)
