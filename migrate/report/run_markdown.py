"""The report of a run as Markdown: the same order as the HTML file, with tables in the place of pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from migrate.report.figure_diff import CLASSES
from migrate.report.figure_ledger import brokers, chosen
from migrate.report.markdown_text import block, code, table, words
from migrate.report.run_values import HostChanges, Restart, RunReport
from migrate.report.wording import clock, duration, moment, plural

DASH: Final = "-"


def run_markdown(report: RunReport) -> str:
    """The whole text, ending with a newline."""
    parts: list[Callable[[RunReport], Iterator[str]]] = [
        _head,
        _claims,
        _timeline,
        _ledger,
        _diff,
        _load,
        _changes,
        _left,
        _limits,
        _steps,
        _journal,
    ]
    lines = [line for part in parts for line in part(report)]
    return "\n".join(lines) + "\n"


def _section(title: str) -> list[str]:
    return ["", f"## {title}", ""]


def _head(report: RunReport) -> Iterator[str]:
    yield f"# {words(report.title)}"
    yield ""
    yield f"**{report.verdict}** {words(report.verdict.sentence)}"
    yield ""
    facts = {
        "Began": moment(report.begin),
        "Last event": moment(report.end),
        "Took": duration(report.end - report.begin),
        "Target": f"stage {words(str(report.target))}",
        "Change": words(report.change) or DASH,
        "Cluster id": code(report.cluster_id),
        "Run on": words(report.host) or DASH,
        "Plan": code(report.fingerprint),
    }
    yield from (f"- {name}: {value}" for name, value in facts.items())


def _claims(report: RunReport) -> Iterator[str]:
    yield from _section("Claims")
    rows = [(words(claim.text), f"**{claim.holds}**", words(claim.evidence)) for claim in report.claims]
    yield from table(("Claim", "Answer", "Evidence"), rows)


def _timeline(report: RunReport) -> Iterator[str]:
    yield from _section("Timeline")
    if not report.stages:
        yield "No stage has begun."
        return
    spans = [
        (
            words(span.stage),
            clock(span.begin),
            clock(span.end) if span.end is not None else "open",
            duration((report.end if span.end is None else span.end) - span.begin),
            f"{span.passed} of {span.steps}",
        )
        for span in report.stages
    ]
    yield from table(("Stage", "Begin (UTC)", "End", "Took>", "Steps>"), spans)
    if report.restarts:
        yield ""
        yield from table(
            ("Node", "Stage", "Stopped", "Started", "Down>", "Proven after>"),
            [_restart(report, entry) for entry in report.restarts],
        )
    if report.waits:
        rows = [
            (clock(one.begin), duration(one.end - one.begin), code(one.step), words(one.what), words(one.owner))
            for one in report.waits
        ]
        yield ""
        yield from table(("Since", "For>", "Step", "Waited for", "Owner"), rows)


def _restart(report: RunReport, entry: Restart) -> tuple[str, ...]:
    down = entry.started is not None and entry.stopped is not None
    return (
        words(report.name(entry.node)),
        words(entry.stage),
        clock(entry.stopped) if entry.stopped is not None else "first start",
        clock(entry.started) if entry.started is not None else "not started",
        duration((entry.started or 0) - (entry.stopped or 0)) if down else DASH,
        duration(entry.proven - entry.started)
        if entry.proven is not None and entry.started is not None
        else "not proven",
    )


def _ledger(report: RunReport) -> Iterator[str]:
    yield from _section("The ledger filling up")
    if not report.ledgers:
        yield "The journal holds no ledger."
        return
    rows = [
        (
            clock(one.time),
            code(one.step),
            f"{one.offset:,}" if one.offset >= 0 else "before the copy",
            words(one.engine),
            f"{one.replicas:,}",
            f"{one.verified:,}",
        )
        for one in chosen(report.ledgers)
    ]
    yield from table(("Time", "Step", "Offset>", "Engine", "Replicas>", "VERIFIED>"), rows)
    yield ""
    places = [
        (words(group.broker), code(panel.path) or "no directory with an id", words(panel.words))
        for group in brokers(report)
        for panel in group.panels
    ]
    yield from table(("Broker", "Directory", "Now"), places)


def _diff(report: RunReport) -> Iterator[str]:
    yield from _section("ZooKeeper compared with KRaft")
    if not report.diffs:
        yield "The journal holds no comparison."
        return
    last = report.diffs[-1]
    where = f"at offset {last.offset:,} ({moment(last.time)}), ZooKeeper {plural(last.lag, 'record')} behind"
    yield f"**{plural(last.unexcused, 'difference')}** that no rule excuses, {where}."
    yield ""
    rows = [
        (words(kind), *(f"{int(classes.get(name, 0)):,}" for name in CLASSES)) for kind, classes in last.counts.items()
    ]
    yield from table(("Kind", *(f"{words(name)}>" for name in CLASSES)), rows)
    if last.samples:
        yield ""
        head = ("What", "ZooKeeper", "KRaft", "Likely cause", "What to do")
        yield from table(head, [tuple(words(value) for value in row.values()) for row in last.samples])
    if last.expected:
        yield ""
        yield from table(("Rule", "Fields>"), [(words(rule), f"{count:,}") for rule, count in last.expected.items()])


def _load(report: RunReport) -> Iterator[str]:
    yield from _section("The load")
    load = report.load
    if load is None:
        yield "No load of ours ran beside this run."
        return
    yield from (
        f"- {name}: {number:,}"
        for name, number in {
            "sent": load.sent,
            "acknowledged": load.acknowledged,
            "read at the end": load.read,
            "acknowledged, missing": load.missing,
            "at two offsets": load.duplicated,
            "never sent, but there": load.unexpected,
            "missing, topics with one replica (no claim)": load.missing_single,
        }.items()
    )
    if load.gaps:
        yield ""
        yield from table(
            ("Gap at", "For>", "Partition"), [(clock(at), duration(long), code(name)) for at, long, name in load.gaps]
        )
    if load.leaderless:
        rows = [(clock(at), duration(long), code(name), words(why)) for at, long, name, why in load.leaderless]
        yield ""
        yield from table(("Without leader at", "For>", "Partition", "Why"), rows)
    if load.short:
        rows = [(clock(at), duration(long), code(name), words(why)) for at, long, name, why in load.short]
        yield ""
        yield from table(("Below min.insync.replicas at", "For>", "Partition", "Why"), rows)


def _changes(report: RunReport) -> Iterator[str]:
    yield from _section("What was changed")
    if not report.hosts:
        yield "Nothing was changed."
    for host in report.hosts:
        yield from _host(report, host)


def _host(report: RunReport, host: HostChanges) -> Iterator[str]:
    yield f"### {words(report.name(host.node))}"
    yield ""
    for file in host.files:
        yield f"{code(file.path)} at {clock(file.time)} by {code(file.step)}"
        yield ""
        yield from block(file.lines, "diff")
        yield ""
    for effect in host.effects:
        took = duration(effect.done - effect.time) if effect.done is not None else "no end seen"
        detail = f": {words(effect.detail)}" if effect.detail else ""
        yield f"- {clock(effect.time)} {words(effect.effect)}{detail} ({took}, {code(effect.step)})"
    yield ""


def _left(report: RunReport) -> Iterator[str]:
    if report.left:
        yield from _section("Left on the hosts")
        yield from (f"- {words(entry)}" for entry in report.left)


def _limits(report: RunReport) -> Iterator[str]:
    yield from _section("What could not be checked")
    yield from (f"- {words(entry)}" for entry in report.blind_spots)
    if not report.blind_spots:
        yield "Nothing is known to have been left out."


def _steps(report: RunReport) -> Iterator[str]:
    yield from _section("Steps")
    rows = [
        (
            f"{words(step.title)} ({code(step.id)})",
            words(step.outcome) or ("begun" if step.begin is not None else "not begun"),
            "; ".join(words(entry) for entry in (step.reason, *step.evidence) if entry),
        )
        for step in report.steps
    ]
    yield from table(("Step", "Outcome", "Evidence"), rows)


def _journal(report: RunReport) -> Iterator[str]:
    yield from _section("Journal and versions")
    yield words(report.journal)
    yield ""
    yield from (f"- {words(name)}: {words(version)}" for name, version in report.versions.items())
    yield from (f"- {words(key)}: {words(value)}" for key, value in report.notes)
