"""Clusters of a fleet that are named by bundles: read by Spark's executors, each in a task of its own.

A bundle is compared as `diff` compares it (`migrate.observe.analysis`), and has the ledger of the one rule.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from migrate.errors import NotVisible
from migrate.model import strict_json
from migrate.model.difference import NOTHING_COMPARED, DiffReport
from migrate.model.facts import pure_ledger
from migrate.model.findings import Finding
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference, Member, NotRead
from migrate.model.ledger import LedgerSummary, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, ZookeeperView
from migrate.model.world import World
from migrate.observe.analysis import Comparer, cannot_compare, with_diff
from migrate.observe.bundle import read_bundle_at
from migrate.observe.bundled import BundledSources
from migrate.observe.codec import decode, encode

if TYPE_CHECKING:
    from migrate.diff.fleet import ClusterAnswer, Read
    from migrate.diff.session import SparkHandle

CAUGHT: Final = Unknown("the rows are compared with those of other clusters")


def compare_members(
    handle: SparkHandle, members: Sequence[Member], today: date, done: Callable[[int, bool, float], None] | None = None
) -> list[ClusterAnswer | NotRead]:
    """Comparison and ledger of each cluster, which a bundle names, in their order.

    Raises:
        SparkDidNotStart: the session did not come up.
        SparkGone: it ended under the comparison.
    """
    session = handle.ship_package()  # first: pyspark is imported by who starts it, not by two threads at once
    from migrate.diff.fleet import compare_clusters, rows_listed

    order = largest_first(members)
    told = None if done is None else lambda number, good, seconds: done(order[number], good, seconds)
    places = [json.dumps([members[number].where, rows_listed(len(members))]) for number in order]
    read = compare_clusters(session, places, read_member, today=today, done=told)
    found = {number: proven(answer, members[number]) for number, answer in zip(order, read, strict=True)}
    again = {
        number: answer
        for number, answer in found.items()
        if not isinstance(answer, NotRead) and answer.report.unexcused
    }
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


def largest_first(members: Sequence[Member]) -> list[int]:
    """Their numbers in the order in which they are begun, by the size of their bundles as far as it is seen here."""

    def size(number: int) -> int:
        try:
            return Path(members[number].where).stat().st_size
        except OSError:
            return 0

    return sorted(range(len(members)), key=size, reverse=True)


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
    """Both sides of one cluster, and its ledger.

    Raises what reading its bundle raises, and NotVisible where the sides cannot be compared.
    """
    from migrate.diff.compare import Question
    from migrate.diff.fleet import Read

    where, listed = strict_json.loads(place, surrogates=True)
    caught: list[Question] = []

    def catch(
        _: Any, zookeeper: ZookeeperView, kraft: KraftView, accepted: tuple[AcceptedDifference, ...], lag: int
    ) -> Unknown:
        caught.append(Question(zookeeper, kraft, accepted, lag))
        return CAUGHT

    world = _compared(where, catch)
    if not caught:
        assert isinstance(world.diff, Unknown)
        raise cannot_compare(world.diff, world.inventory)
    return Read(caught[0], _ledger(world, listed))


def _ledger(world: World, listed: int) -> LedgerSummary:
    """The ledger in numbers, with so many of the replicas that are not VERIFIED."""
    found = pure_ledger(world)
    if isinstance(found, Unknown):
        raise NotVisible(found.reason, where=world.inventory.name)
    counts: dict[NodeId, Counter[ReplicaState]] = {}
    for row in found.rows:
        counts.setdefault(NodeId(row.broker), Counter())[row.state] += 1
    unproven = [row for row in found.rows if row.state is not ReplicaState.VERIFIED]
    return LedgerSummary(found.offset, dict(sorted(counts.items())), tuple(unproven[:listed]), found.unknown)


def locate_in_bundle(question: str) -> str:
    """The report of a bundle as `diff` would give it: each row with the places that it was read at."""
    where, report = strict_json.loads(question, surrogates=True)
    world = _compared(where, lambda *_: decode(DiffReport, report, "report"))
    if isinstance(world.diff, Unknown):
        raise cannot_compare(world.diff, world.inventory)
    return json.dumps(encode(world.diff))


def _compared(where: str, compare: Comparer) -> World:
    """A bundle's world as `diff` has it, with `compare` in the place of Spark."""
    bundle = read_bundle_at(where)
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
