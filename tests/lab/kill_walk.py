"""One real migration, killed before and after the effect of each kind of step: the walk, and its report.

    python -m tests.lab.kill_walk --dir DIR [--report FILE] [--quick]

Every kill is a SIGKILL that the process sends to itself at a numbered crash point; nobody cleans up after it, and the
same command goes on.  The report says what was killed, how soon the next process decided, and how it ended.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.lab.commands import kraft_migrate

# kind of step -> its effects, as crash points name them; the first roll's before hybrid, the others after it
UNTIL_HYBRID: Final = {
    "back-up-zookeeper": ("backup-zookeeper:zookeeper",),
    "back-up-broker": ("backup-file:1",),
    "render-controller": ("write-config:3001",),
    "format-controllers": ("format:3001",),
    "start-controllers": ("start:3001",),
    "roll-to-migration-mode": ("stop:1", "write-config:1", "start:1"),
}
AFTER_HYBRID: Final = {
    "roll-to-kraft": ("stop:1", "write-config:1", "start:1"),
    "assign-directories": ("assign-directories:2",),
    "finalize-controller": ("stop:3001", "write-config:3001", "start:3001"),
    "release-zookeeper": ("release-lock:zookeeper",),
}
STAGE_OF: Final = {  # where a test may end that tries one kind alone
    "back-up-zookeeper": "prepare",
    "back-up-broker": "prepare",
    "render-controller": "prepare",
    "format-controllers": "controllers",
    "start-controllers": "controllers",
    "roll-to-migration-mode": "migration-mode",
}


@dataclass
class Kill:
    """One kill, and how the command after it began."""

    kind: str
    label: str
    seconds: float  # that the killed process lived
    code: int


@dataclass
class Walked:
    """The whole walk."""

    kills: list[Kill] = field(default_factory=list)
    ended: int = -1
    seconds: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)
    effects: Counter[str] = field(default_factory=Counter)
    said: str = ""


def points(kinds: dict[str, tuple[str, ...]], *, quick: bool) -> list[tuple[str, str]]:
    """(kind, label) in the order in which a migration reaches them; `quick`: the last effect of each kind alone."""
    found = []
    for kind, effects in kinds.items():
        for effect in effects[-1:] if quick else effects:
            found += [(kind, f"before:{effect}"), (kind, f"after:{effect}")]
    return found


def killed_at(directory: Path, kind: str, label: str, *words: str) -> Kill:
    """Run the demo until it kills itself there."""
    began = time.monotonic()
    ended = kraft_migrate("lab", "demo", "--dir", str(directory), *words, crash=label)
    kill = Kill(kind, label, time.monotonic() - began, ended.returncode)
    print(f"{label}: {ended.returncode} after {kill.seconds:.0f} s", file=sys.stderr, flush=True)
    if ended.returncode != -signal.SIGKILL:
        print(ended.stderr[-3000:], file=sys.stderr, flush=True)
    return kill


def journal_of(directory: Path) -> list[dict[str, Any]]:
    """The events of the journal of the plan that the demo carries out."""
    plan = json.loads((directory / "demo.json").read_text())["plan"]
    lines = (Path(plan).parent / "journal.jsonl").read_text().splitlines()
    return [json.loads(line.split(" ", 2)[2]) for line in lines]


def effects_in(events: list[dict[str, Any]]) -> Counter[str]:
    """How often each effect was begun, by step, name and node."""
    return Counter(
        f"{event['data']['step']} {event['data']['effect']} {event['data']['node']} {event['data']['detail']}".rstrip()
        for event in events
        if event["event"] == "effect"
    )


def walk(directory: Path, *, quick: bool) -> Walked:
    """Kill, go on, kill; then to the end."""
    found, began = Walked(), time.monotonic()
    for kind, label in points(UNTIL_HYBRID, quick=quick):
        found.kills.append(killed_at(directory, kind, label, "--until", "hybrid"))
    parked = kraft_migrate("lab", "demo", "--dir", str(directory), "--until", "hybrid")
    print(f"hybrid: {parked.returncode}", file=sys.stderr, flush=True)
    if parked.returncode:
        found.ended, found.said = parked.returncode, parked.stderr[-3000:]
        return found
    for kind, label in points(AFTER_HYBRID, quick=quick):
        found.kills.append(killed_at(directory, kind, label))
    ended = kraft_migrate("lab", "demo", "--dir", str(directory))
    found.ended, found.said, found.seconds = ended.returncode, ended.stderr[-3000:], time.monotonic() - began
    plan = json.loads((directory / "demo.json").read_text())["plan"]
    if (Path(plan).parent / "report.json").exists():
        found.report = json.loads((Path(plan).parent / "report.json").read_text())
    found.effects = effects_in(journal_of(directory))
    return found


def as_markdown(found: Walked) -> str:
    """The report that is kept."""
    good = sum(kill.code == -signal.SIGKILL for kill in found.kills)
    word = found.report.get("verdict", {}).get("word", "none")
    load = found.report.get("load") or {}
    lines = [
        "# Killed anywhere: a walk on real Kafka",
        "",
        "One lab cluster (three brokers with three log directories each, three controllers, ZooKeeper), migrated under",
        f"load and killed {good} times with SIGKILL; the same command resumed each time",
        "(`tests/lab/kill_walk.py`).",
        "",
        f"- Kills at the requested place: {good} of {len(found.kills)}.",
        f"- The last run ended with {found.ended}; its report says {word}.",
        (
            f"- Load: {load.get('acknowledged', '?')} records acknowledged, {load.get('missing', '?')} missing, "
            f"{load.get('duplicated', '?')} doubled."
        ),
        f"- Total time: {found.seconds:.0f} s, on a busy machine with two cores.",
        "",
        "| kind of step | killed at | seconds until then | exit code |",
        "| --- | --- | ---: | ---: |",
        *(f"| {kill.kind} | `{kill.label}` | {kill.seconds:.0f} | {kill.code} |" for kill in found.kills),
    ]
    twice = {name: count for name, count in found.effects.items() if count > 1}
    lines += ["", "Effects of the last plan that were begun twice (killed before they happened, or repeatable):"]
    lines += [f"- {name}: {count}" for name, count in sorted(twice.items())] or ["- none"]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> int:
    """Walk, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--quick", action="store_true", help="one effect of each kind")
    options = parser.parse_args(argv)
    found = walk(options.dir, quick=options.quick)
    text = as_markdown(found)
    print(text)
    if options.report is not None:
        options.report.write_text(text, encoding="utf-8")
    return 0 if found.ended == 0 and all(kill.code == -signal.SIGKILL for kill in found.kills) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
