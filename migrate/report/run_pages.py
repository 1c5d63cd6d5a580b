"""The report of a run as one HTML file: tables, with pictures beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.difference import EXCUSED, DifferenceClass
from migrate.model.history import LoadSummary
from migrate.report import run_figures
from migrate.report.equal_changes import changed_lines
from migrate.report.heat_map import css_class
from migrate.report.markup import render
from migrate.report.run_figures import BrokerPanels
from migrate.report.run_values import (
    NO_LOAD,
    Claim,
    DiffMoment,
    EffectDone,
    FileChange,
    Holds,
    Restart,
    RunReport,
    StepRecord,
    figures,
    restart_words,
)
from migrate.report.wording import clock, duration, moment

OPEN_DIRECTORIES: Final = 6  # panels beyond these are folded
CLASSES: Final = (
    DifferenceClass.EQUAL,
    DifferenceClass.EXPECTED,
    DifferenceClass.ACCEPTED,
    DifferenceClass.DIFFERS,
    DifferenceClass.ONLY_ZK,
    DifferenceClass.ONLY_KRAFT,
)
HOLDS_CLASS: Final = {Holds.YES: "good-words", Holds.NO: "bad-words", Holds.NOT_SEEN: "warn-words"}
WORDS_OF_LOAD: Final = {
    "sent": "Sent",
    "acknowledged": "Acknowledged",
    "read": "Read at the end",
    "missing": "Acknowledged, missing",
    "duplicated": "At two offsets",
    "unexpected": "Never sent, but there",
    "missing_single": "Missing, topics with one replica (no claim)",
}


@dataclass(frozen=True, slots=True)
class Toned:
    """A cell with the class that colours it."""

    text: str
    tone: str


Cell = str | Toned


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under titles.  A title with `>` behind it is of numbers, one in backquotes of code, with `|` of one line."""

    titles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Each title without its mark, and its class."""
        kinds = {">": "num", "`": "code", "|": "keep"}
        return [(title.strip("`>|"), kinds.get(title[-1:], "")) for title in self.titles]


Made = Mapping[str, tuple[tuple[str, ...], Iterator[tuple[Cell, ...]]]]  # titles and rows, by the table's name


def tables(report: RunReport) -> dict[str, Table]:
    """Every table of the report by its name, those of single hosts aside."""
    last = report.diffs[-1] if report.diffs else None
    found = {
        **_of_claims(report),
        **_of_time(report),
        **_of_looks(report),
        **_of_differences(last),
        **_of_load(report.load),
    }
    return {name: Table(titles, tuple(rows)) for name, (titles, rows) in found.items()}


CLAIM_TITLES: Final = ("Claim", "Answer|", "Evidence")


def _claim(one: Claim) -> tuple[Cell, ...]:
    return one.text, Toned(one.holds.words, HOLDS_CLASS.get(one.holds, "soft")), one.evidence


def _of_claims(report: RunReport) -> Made:
    return {
        "open_claims": (CLAIM_TITLES, map(_claim, (one for one in report.claims if one.holds is not Holds.YES))),
        "passed_claims": (CLAIM_TITLES, map(_claim, (one for one in report.claims if one.holds is Holds.YES))),
        "steps": (("Step", "Id`", "Outcome|", "Took>", "Evidence"), (_step(step) for step in report.steps)),
    }


def _of_time(report: RunReport) -> Made:
    return {
        "restarts": (
            ("Node|", "Stage|", "Stopped|", "Started|", "Down>", "Proven after>"),
            (_restart(report, entry) for entry in report.restarts),
        ),
        "waits": (
            ("Since|", "For>", "Step`", "Waited for", "Owner", "If it lasts"),
            (
                (clock(one.begin), duration(one.end - one.begin), one.step, one.what, one.owner, one.next_step)
                for one in report.waits
            ),
        ),
    }


def _of_looks(report: RunReport) -> Made:
    return {
        "ledgers": (
            ("Time|", "Step`", "Offset>", "Engine", "Replicas>", "VERIFIED>"),
            (
                (clock(one.time), one.step, one.place, one.engine, f"{one.replicas:,}", f"{one.verified:,}")
                for one in report.ledgers
            ),
        ),
        "comparisons": (
            ("Time|", "Step`", "Offset>", "Lag>", "Unexpected>"),
            ((clock(one.time), one.step, f"{one.offset:,}", str(one.lag), str(one.unexcused)) for one in report.diffs),
        ),
    }


def _of_differences(last: DiffMoment | None) -> Made:
    return {
        "matrix": (("Kind|", *(f"{name}>" for name in CLASSES)), matrix(last) if last else iter(())),
        "samples": (
            ("What", "ZooKeeper", "KRaft", "Likely cause", "What to do"),
            (tuple(row.values()) for row in (last.samples if last else ())),
        ),
        "rules": (
            ("Rule", "Fields>"),
            ((rule, f"{count:,}") for rule, count in (last.expected if last else {}).items()),
        ),
    }


def _of_load(load: LoadSummary | None) -> Made:
    return {
        "gaps": (
            ("Gap at|", "For>", "Partition`"),
            ((clock(at), duration(long), name) for at, long, name in (load.gaps if load else ())),
        ),
        "leaderless": (
            ("Without leader at|", "For>", "Partition`", "Why"),
            ((clock(at), duration(long), name, why) for at, long, name, why in (load.leaderless if load else ())),
        ),
        "short": (
            ("Below min.insync.replicas at|", "For>", "Partition`", "Why"),
            ((clock(at), duration(long), name, why) for at, long, name, why in (load.short if load else ())),
        ),
    }


def _restart(report: RunReport, entry: Restart) -> tuple[str, ...]:
    stopped = clock(entry.stopped) if entry.stopped is not None else "first start"
    return report.name(entry.node), entry.stage, stopped, *restart_words(entry, "-")


def _step(step: StepRecord) -> tuple[Cell, ...]:
    tone = "good-words" if step.passed else "bad-words" if step.outcome else "soft"
    outcome = step.outcome or ("begun" if step.begin is not None else "not begun")
    if step.attempts > 1:
        outcome += f", {step.attempts} attempts"
    took = duration(step.end - step.begin) if step.end is not None and step.begin is not None else "-"
    evidence = "; ".join(entry for entry in (step.reason, *step.evidence) if entry)
    return step.title, step.id, Toned(outcome, tone), took, evidence


def matrix(diff: DiffMoment) -> Iterator[tuple[Cell, ...]]:
    """Compared fields by kind and class, the sum of all kinds last."""
    total = {str(name): sum(classes.get(name, 0) for classes in diff.counts.values()) for name in CLASSES}
    for kind, classes in [*diff.counts.items(), ("all kinds", total)]:
        yield kind, *(_tile(name, int(classes.get(name, 0))) for name in CLASSES)


def _tile(name: DifferenceClass, count: int) -> Cell:
    if not count:
        return "0"
    return Toned(f"{count:,}", f"tile-{name.lower().replace('_', '-')}" if name in EXCUSED else "tile-bad")


def effects(found: tuple[EffectDone, ...]) -> Table:
    """What was done on one host, in order."""
    rows = [
        (
            clock(one.time),
            duration(one.done - one.time) if one.done is not None else "no end seen",
            one.effect,
            one.detail,
            one.step,
        )
        for one in found
    ]
    return Table(("At|", "Took>", "Effect|", "Detail", "Step`"), tuple(rows))


@dataclass(frozen=True, slots=True)
class Changed:
    """A file's change, and the same change of other nodes' files with the lines in which theirs differ."""

    node: str
    file: FileChange
    others: tuple[tuple[str, FileChange, tuple[str, ...]], ...]


def changed_files(report: RunReport) -> tuple[Changed, ...]:
    """Every change of a file, equal ones once: the same stage, path and keys, but for numbers in the path."""
    stages = {step.id: step.stage for step in report.steps}
    found: dict[tuple[object, ...], list[tuple[str, FileChange]]] = {}
    for host in report.hosts:
        for file in host.files:
            keys = tuple(line.partition("=")[0] for line in changed_lines(file.lines))
            place = stages.get(file.step, file.step), re.sub(r"\d+", "#", file.path), keys
            found.setdefault(place, []).append((report.name(host.node), file))
    return tuple(
        Changed(
            node,
            first,
            tuple(
                (other, file, tuple(line for line in changed_lines(file.lines) if line not in first.lines))
                for other, file in rest
            ),
        )
        for (node, first), *rest in sorted(found.values(), key=lambda group: group[0][1].time)
    )


def facts(report: RunReport) -> dict[str, str]:
    """What names the run."""
    return {
        "Began": moment(report.begin),
        "Last event": moment(report.end),
        "Took": duration(report.end - report.begin),
        **({} if report.back else {"Target": f"stage {report.target}"}),  # of a rollback the title says where to
        "Change": report.change or "-",
        "Cluster id": report.cluster_id,
        "Run on": report.host or "-",
        "Plan": report.fingerprint,
    }


CODES: Final = ("Cluster id", "Plan")  # of the facts
ACCEPTED_WORDS: Final = "EXPECTED: by a named rule with its source. ACCEPTED: accepted by name, with a ticket."


def run_html(report: RunReport) -> str:
    """The whole file."""
    axis, groups = run_figures.axis(report), run_figures.brokers(report)
    room = OPEN_DIRECTORIES
    shown, folded = groups, list[BrokerPanels]()
    if sum(len(group.panels) for group in groups) > room:
        shown = ()
        for group in groups:  # those that are not whole come first, and one of them stays in sight
            room -= len(group.panels)
            if not group.whole and (room >= 0 or not shown):
                shown += (group,)
            else:
                folded.append(group)
    return render(
        "run.html.jinja",
        report=report,
        figures=figures(report),
        tables=tables(report),
        facts=facts(report),
        codes=CODES,
        load=_load_facts(report),
        no_load=f"{NO_LOAD.capitalize()}.",
        accepted_words=ACCEPTED_WORDS,
        axis=axis,
        timeline=run_figures.timeline(report, axis.scale),
        overview=run_figures.overview(report, axis.scale),
        most=f"{max((ledger.replicas for ledger in report.ledgers), default=0):,}",
        gates=run_figures.gates(report),
        heat=run_figures.heat_maps(report),
        legend=[(state, css_class(state)) for state in run_figures.legend(report)],
        shown=shown,
        folded=[("whole", [one for one in folded if one.whole]), ("", [one for one in folded if not one.whole])],
        final=any(not span.reversible for span in report.stages),
        unseen=any(entry.unseen_from is not None for entry in report.restarts),
        changed=changed_files(report),
        effects={host.node: effects(host.effects) for host in report.hosts},
    )


def _load_facts(report: RunReport) -> dict[str, str]:
    load = report.load
    return {} if load is None else {name: f"{getattr(load, key):,}" for key, name in WORDS_OF_LOAD.items()}
