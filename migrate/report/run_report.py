"""From plan, journal and load to the report of a run: the verdict first, and every claim with its evidence (pure)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from migrate.model.afterwards import after_the_migration
from migrate.model.history import Event, LoadSummary
from migrate.model.launch import OF_A_LAB
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.report import plan_verdict
from migrate.report.run_events import Story, is_soak, stage_spans, tell
from migrate.report.run_values import NO_LOAD, Claim, Extra, Holds, RunReport, RunVerdict, RunWord, StepRecord
from migrate.report.wording import duration, moment, plural

NEEDED: Final = "needs every replica"  # by the load's watcher: a restart that could not but do it
EXCUSED: Final = ("RF 1", "restart")  # a leaderless time whose reason starts so was foreseen
AT_BOOT: Final = "Every controller and every broker starts again at the boot of its host."
UNWATCHED: Final = 180.0  # seconds between two looks at a soak, which is looked at each minute: nobody watched
MOST_FAULTS: Final = 20  # of a soak, that a claim names
ISR_ACCEPTED: Final = "W-HLT-05"
_DIFF_DUE: Final = ("hybrid", "soak", "finalize")


def build(
    plan: Plan, events: Sequence[Event], load: LoadSummary | None = None, extra: Extra | None = None
) -> RunReport:
    """The report of the run whose journal holds `events`; `events` may be of a run in progress."""
    extra = extra or Extra()
    story = tell([StepRecord(step.id, step.stage.label, step.title) for step in plan.steps], events)
    steps = tuple(story.steps.values())
    told = {claim.text for claim in extra.claims}  # who saw more than the journal says it better
    own = (claim for claim in _claims(plan, story, load, extra, len(events)) if claim.text not in told)
    claims = (*own, *extra.claims)
    blind = _blind_spots(plan, story, load, extra)
    times = [event.time for event in events]
    return RunReport(
        verdict=_verdict(plan, story, claims, unseen=len(blind)),
        claims=claims,
        cluster=plan.cluster,
        cluster_id=plan.cluster_id,
        change=plan.change,
        title=plan.words.title,
        back=plan.kind.rolls_back,
        fingerprint=plan.fingerprint,
        target=plan.target.label,
        host=str(story.head.get("host", "")),
        begin=min(times, default=plan.created),
        end=max(times, default=plan.created),
        sessions=tuple(story.sessions),
        stages=stage_spans(steps),
        restarts=tuple(story.restarts),
        waits=tuple(story.waits),
        steps=steps,
        ledgers=tuple(story.ledgers),
        diffs=tuple(story.diffs),
        load=load,
        hosts=story.hosts(),
        left=next((step.left for step in reversed(steps) if step.left), ()),  # the last look at the hosts counts
        blind_spots=blind,
        notes=(*story.notes, *_accepted(plan)),
        journal=_journal_line(story, events, extra),
        versions={"kraft-migrate (plan)": plan.tool_version},
        roles=_roles(story, extra),
        afterwards=after_the_migration(plan.playbook) if story.ended and plan.ends_migration else None,
    )


def _verdict(plan: Plan, story: Story, claims: Sequence[Claim], *, unseen: int) -> RunVerdict:
    doubts = sum(claim.holds in (Holds.NO, Holds.NOT_SEEN) for claim in claims)
    if story.stopped:
        return RunVerdict(RunWord.STOPPED, doubts, f"The run stopped: {story.stopped}")
    if not story.ended:
        where = next((step.title for step in story.steps.values() if step.begin and not step.passed), "")
        reason = f" It is at: {where}." if where else ""
        if not story.head:
            return RunVerdict(RunWord.UNFINISHED, doubts, "Nothing was applied.")
        sentence = f"The journal has no end yet: the run is in progress, or was killed.{reason}"
        return RunVerdict(RunWord.UNFINISHED, doubts, sentence)
    if doubts:
        what = plural(doubts, "required check")
        return RunVerdict(
            RunWord.NOT_PROVEN,
            doubts,
            f"{plan.words.ended}, but {what} failed or could not be made.",
        )
    sentence = f"{plan.words.ended}, and all required checks passed."
    if unseen:
        sentence += f" {plural(unseen, 'thing')} could not be checked (listed by name)."
    later = plan.kind.migrates and not plan.kind.rolls_back and not plan.ends_migration
    return RunVerdict(RunWord.PROVEN, 0, sentence, plan.target.label if later else "")


def _claims(plan: Plan, story: Story, load: LoadSummary | None, extra: Extra, events: int) -> Iterator[Claim]:
    passed = sum(step.passed for step in story.steps.values())
    whole = passed == len(story.steps)
    yield Claim(
        "Every planned step was verified against the cluster.",
        Holds.YES if whole else Holds.NO if story.stopped or story.ended else Holds.NOT_DUE,
        f"{passed} of {plural(len(story.steps), 'step')} verified or already done",
    )
    if plan.target is Stage.PROTOCOL:
        yield _last_claim(story, "Every running broker itself says the inter.broker.protocol.version of its file.")
    elif not plan.kind.migrates:
        yield _ledger_claim(plan, story)
    elif plan.kind.rolls_back:
        yield _last_claim(
            story, "The cluster is in ZooKeeper mode: znodes, files, directories and every broker's own answers say so."
        )
    else:
        yield _ledger_claim(plan, story)
        yield from _copy_claim(story)
        yield _diff_claim(story)
        if plan.target >= Stage.FINALIZE and not _of_a_lab(story):
            yield Claim(AT_BOOT, *_at_boot(story))
    yield from _soak_claim(story)
    yield from _load_claims(load)
    yield Claim(
        "The journal is whole: each line carries its checksum and the hash of the line before.",
        {True: Holds.YES, False: Holds.NO, None: Holds.NOT_SEEN}[extra.journal_intact],
        "not checked for this report" if extra.journal_intact is None else extra.journal or plural(events, "event"),
    )


def _last_claim(story: Story, text: str) -> Claim:
    """What the last step looked at: a rollback has one end, whatever its beginning, and so has a roll of its own."""
    last = list(story.steps.values())[-1] if story.steps else None
    if last is None or not last.passed:
        return Claim(text, Holds.NO if story.stopped or story.ended else Holds.NOT_DUE, "its proof was not concluded")
    return Claim(text, Holds.YES if last.evidence else Holds.NOT_SEEN, "; ".join(last.evidence))


def _ledger_claim(plan: Plan, story: Story) -> Claim:
    text = "Every replica is VERIFIED: metadata names the directory that holds it on disk."
    last = story.ledgers[-1] if story.ledgers else None
    rolled = all(step.passed for step in story.steps.values() if step.stage == Stage.KRAFT_MODE.label)
    due = plan.target >= Stage.KRAFT_MODE and (rolled or story.ended)
    if last is None:
        return Claim(text, Holds.NOT_SEEN if due else Holds.NOT_DUE, "the journal holds no ledger")
    seen = f"{last.verified:,} of {plural(last.replicas, 'replica')} at offset {last.place}, by {last.engine or '?'}"
    if last.replicas and last.verified == last.replicas:
        return Claim(text, Holds.YES, seen)
    if not last.replicas:
        return Claim(text, Holds.NOT_SEEN, "the last ledger has no rows, which proves nothing")
    return Claim(text, Holds.NO if due else Holds.NOT_DUE, seen)


def _copy_claim(story: Story) -> Iterator[Claim]:
    """Only where the run watches the copy, or held it against what was there before."""
    found, due = story.copy_check, story.steps.get("copy/copy")
    if not found and due is None:
        return
    text = "Everything in ZooKeeper was copied, except what is listed."
    if not found:
        holds = Holds.NOT_SEEN if due is not None and due.passed else Holds.NOT_DUE
        yield Claim(text, holds, "the journal holds no look from before the copy")
    elif "not_checked" in found:
        yield Claim(text, Holds.NOT_SEEN, f"not checked: {found['not_checked']}")
    else:
        against = [*found.get("samples", ()), *found.get("miscounted", ())]
        yield Claim(text, Holds.NO if against or found["lost"] else Holds.YES, "; ".join(_copy_evidence(found)))


def _copy_evidence(found: Mapping[str, Any]) -> Iterator[str]:
    where = "the copy's end" if found["at_end"] else "a later offset"
    kinds = ", ".join(f"{after} of {before} {kind}" for kind, (before, after) in found["counts"].items())
    yield f"zxid {found['zxid']} against offset {found['offset']:,} ({where}): {kinds}"
    if found["lost"]:
        yield f"missing: {', '.join(found.get('samples', ()))}"
    yield from found.get("miscounted", ())
    for rule, rows in found.get("known", {}).items():
        yield f"dropped, and known ({rule}): {', '.join(' '.join(row).rstrip() for row in rows)}"
    if isinstance(found.get("driver"), str):
        yield f"not checked: the controller's own counts ({found['driver']})"


def _diff_claim(story: Story) -> Claim:
    text = "ZooKeeper and KRaft are equal, field by field, except where a named rule expects a difference."
    last = story.diffs[-1] if story.diffs else None
    if last is None:
        due = any(step.stage in _DIFF_DUE and step.passed for step in story.steps.values())
        return Claim(text, Holds.NOT_SEEN if due else Holds.NOT_DUE, "the journal holds no comparison")
    fields = sum(sum(classes.values()) for classes in last.counts.values())
    seen = f"{plural(last.unexcused, 'difference')} in {plural(fields, 'field')} at offset {last.offset:,}"
    if last.unexcused:
        return Claim(text, Holds.NO, seen)
    return Claim(text, Holds.YES if fields else Holds.NOT_SEEN, seen)


def _of_a_lab(story: Story) -> bool:
    """Are all units a lab's?  Of them no boot is claimed: the demo stops all of them, and starts them again instead."""
    return {entry["word"] for entry in story.units.get("nodes", ())} == {OF_A_LAB}


def _at_boot(story: Story) -> tuple[Holds, str]:
    """After finalize a cluster that nobody starts by hand must come back from nothing."""
    units, due = story.units, story.ended
    nodes: Sequence[Mapping[str, Any]] = units.get("nodes", ())
    if not nodes:
        reason = str(units.get("unseen", "")) or "the journal holds no look at the units"
        asked = f"{reason}: `systemctl is-enabled -- UNIT` on each host says it"
        return Holds.NOT_SEEN if due else Holds.NOT_DUE, asked
    down = [f"node {entry['node']} ({entry['unit']} is {entry['word']})" for entry in nodes if entry["starts"] == "no"]
    if down:
        what = f"no boot starts {', '.join(down)}"
        return Holds.NO if due else Holds.NOT_DUE, f"{what}: `systemctl enable -- UNIT`, see W-OPS-07"
    unseen = [f"node {entry['node']}: {entry['why']}" for entry in nodes if not entry["starts"]]
    if unseen:
        return Holds.NOT_SEEN if due else Holds.NOT_DUE, "; ".join(unseen)
    words = sorted({str(entry["word"]) for entry in nodes})
    return (Holds.YES, f"{plural(len(nodes), 'unit')}: {', '.join(words)}, pulled in by default.target")


def _soak_claim(story: Story) -> Iterator[Claim]:
    """Of every soak of the plan together; time in which nobody looked is named, too."""
    steps = [step for step in story.steps.values() if is_soak(step.id)]
    if not steps:
        return
    text = "Every fault seen during a soak was over when it ended, and is listed."
    if not all(step.passed for step in steps):
        yield Claim(text, Holds.NO if story.ended else Holds.NOT_DUE, "a soak has not ended")
        return
    times = [story.looks.get(step.id, []) for step in steps]
    spans = [later - one for found in times for one, later in itertools.pairwise(found)]
    blind = sum(span for span in spans if span > UNWATCHED)
    told = [f"{duration(sum(spans) - blind)} watched in {sum(map(len, times))} looks"]
    told += [f"not observed for {duration(blind)}"] if blind else []
    told += [f"{moment(time)} {state}: {what}" for time, _, state, what in story.faults[:MOST_FAULTS]]
    left = len(story.faults) - MOST_FAULTS
    told += [f"and {left} more in the journal"] if left > 0 else []
    yield Claim(text, Holds.YES, "; ".join(told if story.faults else [*told, "no fault"]))


def _load_claims(load: LoadSummary | None) -> Iterator[Claim]:
    lost = "No acknowledged record is missing."
    twice = "No record is stored twice, and every stored record was sent."
    led = "No partition lost its leader unexpectedly."
    durable = "No partition went below min.insync.replicas unexpectedly."
    if load is None:
        yield Claim("Clients lost nothing.", Holds.NOT_CLAIMED, NO_LOAD)
        return
    read = f"{load.acknowledged:,} acknowledged, {load.read:,} read, {load.missing:,} missing"
    yield Claim(lost, _holds(load.missing, load.acknowledged), read)
    odd = load.duplicated + load.unexpected
    seen = f"{load.duplicated:,} stored twice, {load.unexpected:,} never sent"
    yield Claim(twice, _holds(odd, load.read), seen)
    unforeseen = sum(not entry[3].startswith(EXCUSED) for entry in load.leaderless)
    seen = f"{plural(len(load.leaderless), 'time')} without a leader, {unforeseen} of them unexpected"
    seen += " (expected: topics with one replica, planned restarts)" if load.leaderless else ""
    blind = sum(entry[1] for entry in load.blind)
    seen += f"; not observed for {duration(blind)}" if blind else ""
    yield Claim(led, _holds(unforeseen, 1), seen)
    unforeseen = sum(not entry[3].startswith(NEEDED) for entry in load.short)
    seen = f"{plural(len(load.short), 'time')} below it in {load.judged:,} looks, {unforeseen} of them unexpected"
    seen += " (expected: planned restarts where every replica is needed)" if load.short else ""
    yield Claim(durable, _holds(unforeseen, load.judged), seen)


def _holds(against: int, looked_at: int) -> Holds:
    """NO where something speaks against it; YES only where something was looked at."""
    if against:
        return Holds.NO
    return Holds.YES if looked_at else Holds.NOT_SEEN


def _accepted(plan: Plan) -> Iterator[tuple[str, str]]:
    """Replicas out of their ISR that the plan was made with, by name and with the day on which that ends."""
    for finding in plan.findings:
        if finding.code == ISR_ACCEPTED:
            yield f"{finding.about} ({finding.code})", f"{finding.message}: {finding.evidence}"


def _blind_spots(plan: Plan, story: Story, load: LoadSummary | None, extra: Extra) -> tuple[str, ...]:
    found = [*(f"when the plan was made: {spot}" for spot in plan_verdict.blind_spots(plan)), *extra.blind_spots]
    pauses = [later.begin - one.last for one, later in itertools.pairwise(story.sessions)]
    if pauses:
        between = f"{plural(len(pauses), 'time')} between sessions, {duration(sum(pauses))} in all"
        found.append(f"nodes while no engine ran ({between}): nothing was observed, so a node may have been down")
    found += [f"comparison at offset {diff.offset}: {spot}" for diff in story.diffs[-1:] for spot in diff.blind_spots]
    if load is not None:
        found += [f"load: leaders were not observed for {duration(seconds)}: {why}" for _, seconds, why in load.blind]
    return tuple(dict.fromkeys(found))


def _journal_line(story: Story, events: Sequence[Event], extra: Extra) -> str:
    resumed = sum(session.resumed for session in story.sessions)
    state = {True: "whole", False: "BROKEN", None: "not checked"}[extra.journal_intact]
    parts = [
        plural(len(events), "event"),
        plural(len(story.sessions), "session"),
        f"{resumed} resumed",
        f"chain {state}",
    ]
    return ", ".join(parts) + (f" ({extra.journal})" if extra.journal else "")


def _roles(story: Story, extra: Extra) -> dict[str, str]:
    brokers = {cell.broker for ledger in story.ledgers for cell in ledger.cells}
    nodes = {entry.node for entry in story.restarts} | set(story.effects) | set(story.files) | brokers
    named = sorted(filter(str.isdecimal, nodes), key=int) if brokers else []
    guessed = {node: "broker" if node in brokers else "controller" for node in named}
    return {**guessed, **extra.roles}
