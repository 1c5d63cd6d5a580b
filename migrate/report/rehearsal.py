"""The report of a rehearsal: migrated to a stage, rolled back, migrated again to the end; as Markdown and as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

from migrate.model.history import LoadSummary
from migrate.report.markup import table, words
from migrate.report.run_values import Claim, Holds
from migrate.report.wording import duration, moment, plural

Span = TypeVar("Span", tuple[float, float, str], tuple[float, float, str, str])  # begin, seconds, of what


@dataclass(frozen=True, slots=True)
class Leg:
    """One of the three ways: what it was, when it began (seconds since the epoch), and its verdict."""

    name: str
    begin: float
    seconds: float
    verdict: str


@dataclass(frozen=True, slots=True)
class PartitionDown:
    """One partition during the rollback: seconds without a leader, and the longest wait for an acknowledgement."""

    partition: str
    leaderless: float
    unacknowledged: float
    why: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The whole story.  `down` lists the partitions that were ever down during the rollback; None: nobody measured.

    `gap` are the seconds without a controller (None: none was taken away), `away` the seconds of each broker.
    """

    cluster: str
    stage: str
    legs: tuple[Leg, ...]
    readiness: str
    gap: float | None
    away: Mapping[str, float]
    down: tuple[PartitionDown, ...] | None
    claims: tuple[Claim, ...]
    load: LoadSummary | None

    @property
    def proven(self) -> bool:
        """Does every claim hold?"""
        return all(claim.holds in (Holds.YES, Holds.NOT_DUE) for claim in self.claims)


COUNTED_WHOLE: Final = (
    "load: its records were counted once, at the end of the whole rehearsal; gaps and partitions are those of this run"
)


def load_between(load: LoadSummary, begin: float, end: float) -> LoadSummary:
    """The load with what was seen in that time alone; its records are counted for all of it."""

    def within(found: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple(one for one in found if one[0] <= end and one[0] + one[1] >= begin)

    return replace(
        load,
        gaps=within(load.gaps),
        leaderless=within(load.leaderless),
        short=within(load.short),
        blind=within(load.blind),
    )


def down_between(load: LoadSummary, begin: float, end: float) -> tuple[PartitionDown, ...]:
    """Each partition that had no leader, or waited for acknowledgements, in that time; by name."""
    leaderless: dict[str, float] = {}
    waited: dict[str, float] = {}
    why: dict[str, str] = {}
    for start, seconds, partition, reason in load.leaderless:
        if begin <= start <= end:
            leaderless[partition] = leaderless.get(partition, 0.0) + seconds
            why.setdefault(partition, reason)
    for start, seconds, partition in load.gaps:
        if begin <= start <= end:
            waited[partition] = max(waited.get(partition, 0.0), seconds)
    return tuple(
        PartitionDown(name, leaderless.get(name, 0.0), waited.get(name, 0.0), why.get(name, ""))
        for name in sorted({*leaderless, *waited})
    )


def values(story: Rehearsal) -> dict[str, Any]:
    """Plain values (schema version 1)."""
    return {
        "schema": 1,
        "cluster": story.cluster,
        "rollback_from": story.stage,
        "proven": story.proven,
        "legs": [asdict(leg) for leg in story.legs],
        "readiness": story.readiness,
        "gap_seconds": story.gap,
        "away_seconds": dict(story.away),
        "down": None if story.down is None else [asdict(one) for one in story.down],
        "claims": [asdict(claim) for claim in story.claims],
        "load": None
        if story.load is None
        else {name: getattr(story.load, name) for name in ("sent", "acknowledged", "missing", "duplicated")},
    }


def markdown(story: Rehearsal) -> str:
    """The whole text, ending with a newline."""
    return "\n".join(_lines(story)) + "\n"


def _lines(story: Rehearsal) -> Iterator[str]:
    word = "PROVEN" if story.proven else "NOT PROVEN"
    yield f"# Rollback from {words(story.stage)}: {word}"
    yield ""
    yield f"Cluster {words(story.cluster)}: migrated to that stage under load, rolled back, migrated again to the end."
    yield ""
    rows = [(words(leg.name), moment(leg.begin), duration(leg.seconds), words(leg.verdict)) for leg in story.legs]
    yield from table(("What", "Began", "Took>", "Verdict"), rows)
    yield ""
    gap = "there was always a controller" if story.gap is None else f"{duration(story.gap)} without a controller"
    yield f"- The gap: {gap}."
    yield f"- Readiness before the rollback: {words(story.readiness)}"
    if story.away:
        said = ", ".join(f"broker {node} {duration(seconds)}" for node, seconds in sorted(story.away.items()))
        yield f"- Away during the rollback: {said}."
    yield ""
    yield "## Downtime of partitions during the rollback"
    yield ""
    yield from _down(story.down)
    yield ""
    yield "## Claims"
    yield ""
    claims = [(words(claim.text), f"**{claim.holds.words}**", words(claim.evidence)) for claim in story.claims]
    yield from table(("Claim", "Answer", "Evidence"), claims)
    if story.load is not None:
        load = story.load
        yield ""
        yield (
            f"The load: {load.sent:,} records sent, {load.acknowledged:,} acknowledged, {load.missing:,} missing, "
            f"{load.duplicated:,} doubled; watched from beginning to end."
        )


def _down(down: Iterable[PartitionDown] | None) -> Iterator[str]:
    if down is None:
        yield "Not measured: no load ran."
        return
    rows = [
        (words(one.partition), duration(one.leaderless), duration(one.unacknowledged), words(one.why)) for one in down
    ]
    if not rows:
        yield "No partition was ever seen without a leader (looked at four times a second)."
        return
    yield f"{plural(len(rows), 'partition')}; every other one had a leader in each look, four times a second."
    yield ""
    yield from table(("Partition", "Without leader>", "Longest wait for an acknowledgement>", "Why"), rows)
