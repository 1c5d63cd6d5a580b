"""What a journal says: its events, in the order in which they were written.  Reports read these values.

| event | data |
|---|---|
| `run` | plan (fingerprint), tool, cluster, cluster_id, change, host: always the first line |
| `session` | pid, host, resumed (bool), boot and at (a clock nobody sets): one each time the engine starts here |
| `stage` | stage: the first step of a stage begins |
| `intend` | step, stage, title |
| `effect` / `effected` | step, effect, node, detail: before and after one effect |
| `diff-file` | step, node, path, lines: a configuration file's change (unified diff, redacted) |
| `waiting` | step, what, owner, next, progress: a wait began or advanced |
| `ledger` | step, offset, engine, cells: list of {broker, directory, path, states: {state: replicas}} |
| `diff` | step, offset, lag, counts: {kind: {class: fields}}, unexcused, expected: {rule: fields}, blind_spots |
| `copy-check` | step, zxid, offset, at_end, counts: {kind: [before, after]}, lost, known, and more; or not_checked |
| `units` | step, executor, nodes: list of {node, unit, word, starts, why}, unseen: which units a boot starts |
| `conclude` | step, stage, kind, outcome (as `Verified`, `AlreadyDone`, `Failed`), reason, evidence, left, boot, at |
| `fault` | step, state (began, ended, happened), what: while a soak lasted something did not hold, or was restarted |
| `stop` | reason, code: why the engine stopped before the end |
| `note` | key, value |
| `end` | target: every step of the plan is concluded |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from migrate.model.strict_json import Each, unlike

ENDED_WELL: Final = ("Verified", "AlreadyDone")  # outcomes of a step that is not looked at again


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a journal: its number, the time (seconds since the epoch), the event's name and data."""

    number: int
    time: float
    name: str
    data: Mapping[str, Any]


def concluded(events: Iterable[Event]) -> frozenset[str]:
    """Ids of the steps that ended well."""
    return frozenset(
        event.data["step"] for event in events if event.name == "conclude" and event.data["outcome"] in ENDED_WELL
    )


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """What the load process saw, judged after reading all partitions whole (the demo's check, and the report's)."""

    sent: int
    acknowledged: int
    read: int
    missing: int  # acknowledged records that are not there
    duplicated: int  # ids that stand at two offsets
    gaps: tuple[
        tuple[float, float, str], ...
    ]  # (start, seconds, topic-partition): no acknowledgement for longer than usual
    leaderless: tuple[tuple[float, float, str, str], ...]  # (start, seconds, topic-partition, why)
    missing_single: int = 0  # the same, of topics with one replica: no claim is made for these
    unexpected: int = 0  # ids that stand in a partition and were never sent
    blind: tuple[tuple[float, float, str], ...] = ()  # (start, seconds, why): nobody saw who leads
    short: tuple[tuple[float, float, str, str], ...] = ()  # (start, seconds, topic-partition, why): too few in the ISR
    judged: int = 0  # samples in which ISRs were held against min.insync.replicas


STEP: Final[dict[str, Any]] = {"step": str}
EFFECT: Final[dict[str, Any]] = {**STEP, "effect": str, "node": str, "detail": str}
UNIT: Final[dict[str, Any]] = {"node": int, "unit": str, "word": str, "starts": str, "why": str}
CELL: Final[dict[str, Any]] = {"broker": int, "directory": str, "path": str, "states": Each(int)}
READING: Final[dict[str, Any]] = {"boot?": str, "at?": float}
SHAPES: Final[Mapping[str, dict[str, Any]]] = {
    "run": {"plan?": str, "tool?": str, "cluster?": str},
    "session": READING,
    "intend": {**STEP, "stage?": str},
    "effect": EFFECT,
    "effected": EFFECT,
    "diff-file": {"lines?": [str]},
    "waiting": {**STEP, "what": str, "owner": str, "next": str},
    "ledger": {**STEP, "offset": int, "engine": str, "cells": [CELL]},
    "diff": {
        "offset": int,
        "lag": int,
        "counts": Each(Each(int)),
        "unexcused": int,
        "expected": Each(int),
        "blind_spots?": [str],
        "samples?": [Each(str)],
    },
    "copy-check": {"at_end": bool},
    "units": {"nodes": [UNIT]},
    "conclude": {**STEP, "stage?": str, "kind?": str, "outcome": str, "evidence?": [str], **READING},
    "stop": {"reason": str},
    "note": {"key": str, "value": str},
}
COPY_CHECKED: Final[dict[str, Any]] = {
    "zxid": int,
    "offset": int,
    "counts": Each((int, int)),  # before and after
    "lost": int,
    "samples?": [str],
    "known?": Each([(str, str, str)]),  # kind, key and field
    "miscounted?": [str],
}
OF_NODES: Final = frozenset({"stop", "start", "enable-unit", "disable-unit"})  # effects that are a node's
NODE: Final = re.compile("[0-9]{1,10}")
LATEST: Final = 253_402_300_799  # the last second of the year 9999


def misshapen(event: Event) -> str:
    """Why an event is none that a run writes; "" where it may be one.  Names that are not known are not judged."""
    if not 0 <= event.time <= LATEST:
        return f"its time {event.time} is none"
    problem = unlike(event.data, SHAPES.get(event.name, {}), "data")
    if not problem and event.name == "copy-check" and "not_checked" not in event.data:
        problem = unlike(event.data, COPY_CHECKED, "data")
    if not problem and event.name in ("effect", "effected") and event.data["effect"] in OF_NODES:
        problem = "" if NODE.fullmatch(event.data["node"]) else "data.node is no node's"
    return problem
