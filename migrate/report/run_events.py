"""The journal's events folded into what a report shows: steps, stages, restarts, waits, ledgers, changes (pure)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from migrate.model.history import NODE, Event
from migrate.model.stage import Stage
from migrate.report.run_values import (
    Cell,
    DiffMoment,
    EffectDone,
    FileChange,
    HostChanges,
    LedgerMoment,
    Restart,
    Session,
    StageSpan,
    StepRecord,
    Wait,
)


@dataclass(slots=True)
class Story:
    """The events so far, folded.  `tell` builds it; afterwards it is only read."""

    head: Mapping[str, Any] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    ledgers: list[LedgerMoment] = field(default_factory=list)
    diffs: list[DiffMoment] = field(default_factory=list)
    files: dict[str, list[FileChange]] = field(default_factory=dict)
    effects: dict[str, list[EffectDone]] = field(default_factory=dict)
    copy_check: Mapping[str, Any] = field(default_factory=dict)  # the last of its events; {}: none
    faults: list[tuple[float, str, str, str]] = field(default_factory=list)  # time, step, state, what
    looks: dict[str, list[float]] = field(default_factory=dict)  # when soaks were looked at, by step
    notes: list[tuple[str, str]] = field(default_factory=list)
    units: Mapping[str, Any] = field(default_factory=dict)  # as they were last seen
    stopped: str = ""
    ended: bool = False

    def hosts(self) -> tuple[HostChanges, ...]:
        """Changes by node; the cluster's own come first, then nodes by number."""
        nodes = sorted({*self.files, *self.effects}, key=node_order)
        return tuple(
            HostChanges(node, tuple(self.files.get(node, ())), tuple(self.effects.get(node, ()))) for node in nodes
        )


def node_order(node: str) -> tuple[int, str]:
    """Nodes by number, everything else before them."""
    return (int(node), "") if NODE.fullmatch(node) else (-1, node)


def tell(steps: Iterable[StepRecord], events: Sequence[Event]) -> Story:
    """Fold the events over the planned steps."""
    story = Story(steps={step.id: step for step in steps})
    for event in events:
        if event.name not in ("stop", "end", "note"):
            story.stopped, story.ended = "", False  # the run went on
        if story.sessions and event.name != "session":
            story.sessions[-1] = dataclasses.replace(story.sessions[-1], last=event.time)
        _fold(story, event)
    return story


def _fold(story: Story, event: Event) -> None:
    data = event.data
    if event.name in ("intend", "waiting", "conclude") and is_soak(_text(data, "step")):
        story.looks.setdefault(_text(data, "step"), []).append(event.time)
    match event.name:
        case "fault":
            story.faults.append((event.time, _text(data, "step"), _text(data, "state"), _text(data, "what")))
        case "run":
            story.head = data
        case "session":
            _session(story, event)
        case "intend":
            _intend(story, event)
        case "effect" | "effected":
            _effect(story, event)
        case "diff-file":
            change = FileChange(event.time, _text(data, "step"), _text(data, "path"), _texts(data, "lines"))
            story.files.setdefault(_text(data, "node"), []).append(change)
        case "waiting":
            _waiting(story, event)
        case "ledger":
            story.ledgers.append(_ledger(event))
        case "diff":
            story.diffs.append(_diff(event))
        case "copy-check":
            story.copy_check = data
        case "units":
            story.units = data
        case "conclude":
            _conclude(story, event)
        case "stop":
            story.stopped = _text(data, "reason") or _text(data, "code") or "no reason given"
        case "note":
            story.notes.append((_text(data, "key"), _text(data, "value")))
        case "end":
            story.ended = True
        case _:
            pass  # `stage` says nothing that `intend` does not; names of later versions are not ours to judge


def is_soak(step: str) -> bool:
    """Is that the step of a soak: of a canary's, or of the last one?"""
    return step.startswith("soak/") or "/canary-" in step


def _session(story: Story, event: Event) -> None:
    data = event.data
    if story.sessions:  # what was down at the end of the last session was not observed from there on
        last = story.sessions[-1].last
        story.restarts = [
            dataclasses.replace(entry, unseen_from=last)
            if entry.started is None and entry.unseen_from is None
            else entry
            for entry in story.restarts
        ]
    story.sessions.append(
        Session(event.time, event.time, _text(data, "host"), _text(data, "pid"), bool(data.get("resumed")))
    )


def _intend(story: Story, event: Event) -> None:
    name = _text(event.data, "step")
    _waited(story, name, event.time)
    known = story.steps.get(name, StepRecord(name, _stage(event.data), _text(event.data, "title")))
    begin = event.time if known.begin is None else known.begin
    story.steps[name] = dataclasses.replace(known, begin=begin, attempts=known.attempts + 1)


def _conclude(story: Story, event: Event) -> None:
    name, outcome = _text(event.data, "step"), _text(event.data, "outcome")
    _waited(story, name, event.time)
    known = story.steps.get(name, StepRecord(name, _stage(event.data), name))
    story.steps[name] = dataclasses.replace(
        known,
        begin=event.time if known.begin is None else known.begin,
        end=event.time,
        outcome=outcome,
        reason=_text(event.data, "reason"),
        evidence=_texts(event.data, "evidence"),
        left=_texts(event.data, "left"),
    )
    if story.steps[name].passed:
        story.restarts = [
            _proven(entry, event.time) if entry.step == name and entry.proven is None else entry
            for entry in story.restarts
        ]


def _proven(entry: Restart, time: float) -> Restart:
    """Proof ends what was not observed."""
    until = time if entry.unseen_from is not None and entry.unseen_to is None else entry.unseen_to
    return dataclasses.replace(entry, proven=time, unseen_to=until)


def _effect(story: Story, event: Event) -> None:
    node, name, step = (_text(event.data, key) for key in ("node", "effect", "step"))
    known = story.effects.setdefault(node, [])
    if event.name == "effect":
        known.append(EffectDone(event.time, step, name, _text(event.data, "detail"), None))
    else:
        for at in range(len(known) - 1, -1, -1):
            if (known[at].step, known[at].effect, known[at].done) == (step, name, None):
                known[at] = dataclasses.replace(known[at], done=event.time)
                break
    if name in ("stop", "start"):
        _restart(story, event, node, name)


def _restart(story: Story, event: Event, node: str, effect: str) -> None:
    """A stop opens a restart, and the end of the start that follows closes it.

    A stop in a later session opens another one: whether the node was up between the two was not observed.
    """
    at = next((at for at in range(len(story.restarts) - 1, -1, -1) if story.restarts[at].node == node), None)
    last = story.restarts[at] if at is not None else None
    unseen_to = None
    if last is not None and last.unseen_from is not None:
        unseen_to = event.time if last.unseen_to is None else last.unseen_to
    step = _text(event.data, "step")
    record = story.steps.get(step)
    stage = record.stage if record else _stage(event.data)
    if effect == "stop" and event.name == "effect":
        if at is not None and last is not None and last.started is None:
            if last.unseen_from is None:
                return
            story.restarts[at] = dataclasses.replace(last, unseen_to=unseen_to)
        story.restarts.append(Restart(node, stage, step, event.time, None, None))
    elif effect == "start" and event.name == "effected":
        if at is None or last is None or last.started is not None:
            story.restarts.append(Restart(node, stage, step, None, event.time, None))
        else:
            story.restarts[at] = dataclasses.replace(last, started=event.time, unseen_to=unseen_to)


def _waiting(story: Story, event: Event) -> None:
    step, what = _text(event.data, "step"), _text(event.data, "what")
    _waited(story, step, event.time)
    last = story.waits[-1] if story.waits else None
    if last and (last.step, last.what) == (step, what):
        return
    owner, next_step = _text(event.data, "owner"), _text(event.data, "next")
    story.waits.append(Wait(step, what, owner, next_step, event.time, event.time))


def _waited(story: Story, step: str, until: float) -> None:
    """The step's last wait lasted until now: it is only written down when it begins or moves."""
    if story.waits and story.waits[-1].step == step:
        story.waits[-1] = dataclasses.replace(story.waits[-1], end=until)


def _ledger(event: Event) -> LedgerMoment:
    cells = [
        Cell(
            _text(cell, "broker"),
            _text(cell, "directory"),
            _text(cell, "path") if _text(cell, "directory") else "",
            {str(state): int(number) for state, number in cell.get("states", {}).items()},
        )
        for cell in event.data.get("cells", ())
    ]
    ordered = sorted(cells, key=lambda cell: (node_order(cell.broker), cell.path, cell.directory))
    offset = int(event.data.get("offset", -1))
    return LedgerMoment(event.time, _text(event.data, "step"), offset, _text(event.data, "engine"), tuple(ordered))


SAMPLE_FIELDS: Final = ("about", "zookeeper", "kraft", "cause", "what_to_do")


def _diff(event: Event) -> DiffMoment:
    data = event.data
    return DiffMoment(
        time=event.time,
        step=_text(data, "step"),
        offset=int(data.get("offset", -1)),
        lag=int(data.get("lag", 0)),
        counts={str(kind): dict(classes) for kind, classes in sorted(data.get("counts", {}).items())},
        unexcused=int(data.get("unexcused", 0)),
        expected=dict(data.get("expected", {})),
        blind_spots=_texts(data, "blind_spots"),
        samples=tuple({name: _text(row, name) for name in SAMPLE_FIELDS} for row in data.get("samples", ())),
    )


def stage_spans(steps: Iterable[StepRecord]) -> tuple[StageSpan, ...]:
    """Each stage that began, from its first step's beginning to its last step's end, in the order of stages."""
    found: dict[str, list[StepRecord]] = {}
    for step in steps:
        found.setdefault(step.stage, []).append(step)
    spans = []
    for stage, members in found.items():
        begins = [step.begin for step in members if step.begin is not None]
        ends = [step.end for step in members if step.end is not None and step.passed]
        if begins:
            end = max(ends) if len(ends) == len(members) else None
            spans.append(StageSpan(stage, min(begins), end, len(members), len(ends)))
    return tuple(sorted(spans, key=lambda span: span.begin))


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return "" if value is None else str(value)


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key) or ()
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _stage(data: Mapping[str, Any]) -> str:
    value = data.get("stage", "")
    return Stage(value).label if isinstance(value, int) else str(value)
