"""Clusters of a fleet that are named by bundles: read by Spark's executors, each in a task of its own.

A bundle is compared as `diff` compares it (`migrate.observe.analysis`), and has the ledger of the one rule.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from migrate.errors import NotVisible
from migrate.model import strict_json
from migrate.model.codec import decode, encode
from migrate.model.difference import NOTHING_COMPARED, DiffReport
from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference, Member, NotRead
from migrate.model.ledger import LedgerSummary, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, ZookeeperView
from migrate.model.world import World
from migrate.observe.analysis import Comparer, cannot_compare, with_diff
from migrate.observe.bundle import read_bundle_at
from migrate.observe.bundled import BundledSources

if TYPE_CHECKING:
    from migrate.diff.fleet import ClusterAnswer, Read
    from migrate.diff.session import SparkHandle

CAUGHT: Final = Unknown("the rows are compared with those of other clusters")


def compare_members(
    handle: SparkHandle, members: Sequence[Member], today: date
) -> list[tuple[float, ClusterAnswer | NotRead]]:
    """Comparison and ledger of each cluster, which a bundle names, in their order, with the seconds of reading it.

    Raises:
        SparkDidNotStart: the session did not come up.
        SparkGone: it ended under the comparison.
    """
    session = handle.ship_package()  # first: pyspark is imported by who starts it, not by two threads at once
    from migrate.diff.fleet import compare_clusters, rows_listed

    places = [json.dumps([member.where, rows_listed(len(members))]) for member in members]
    read = compare_clusters(session, places, read_member, today=today)
    answers = [proven(one, member) for (_, one), member in zip(read, members, strict=True)]
    again = [
        (number, answer)
        for number, answer in enumerate(answers)
        if not isinstance(answer, NotRead) and answer.report.unexcused
    ]
    questions = [json.dumps([members[number].where, encode(answer.report)]) for number, answer in again]
    for (number, answer), one in zip(again, on_executors(handle, questions, locate_in_bundle), strict=True):
        answers[number] = (
            one
            if isinstance(one, NotRead)
            else replace(answer, report=decode(DiffReport, strict_json.loads(one, surrogates=True), "report"))
        )
    return [(seconds, answer) for (seconds, _), answer in zip(read, answers, strict=True)]


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
