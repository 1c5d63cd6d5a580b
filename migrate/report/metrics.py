"""A run as metrics, in the text format that Prometheus and node_exporter's textfile collector read (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.history import Event
from migrate.model.ledger import ReplicaState
from migrate.model.rollback_readiness import RollbackWord
from migrate.model.stage import Stage
from migrate.report.notices import RUNNING, RunState
from migrate.run.past_runs import READINESS

PREFIX: Final = "kraft_migrate_run_"
STATES: Final = (RUNNING, "needs-approval", "parked", "stopped", "ended")
HELP: Final[Mapping[str, str]] = {
    "state": "1 for how the run is: running, or how its last session ended; 0 for the other states.",
    "stage": "Number of the stage of the step in progress, or of the next one: 0 to 11, 12 directories, 13 protocol.",
    "step_info": "Always 1; its labels name the stage, and the step in progress or that stopped the session.",
    "steps": "Steps of the plan.",
    "steps_done": "Steps of the plan that are concluded.",
    "wait_seconds": "Seconds that the step in progress has waited, whatever it waits for; 0 where nothing waits.",
    "half_rolled_seconds": "Seconds that the cluster has been half rolled or hybrid; 0 where it is not.",
    "half_rolled_start_time_seconds": "When the first roll began, seconds since the epoch; absent where it is over.",
    "replicas": "Replicas by state in the newest ledger; absent before the first one.",
    "rollback_readiness": "1 for the readiness for a rollback where the last session ended; absent before that.",
    "last_event_time_seconds": "When the journal's last event was written, seconds since the epoch.",
    "written_time_seconds": "When this file was written, seconds since the epoch.",
}
Sample = tuple[dict[str, str], float]


@dataclass(slots=True)
class Metrics:
    """What the events so far come to."""

    run: RunState
    _replicas: Counter[str] | None = None
    _readiness: str = ""

    @classmethod
    def of(cls, run: RunState, before: Iterable[Event]) -> Metrics:
        """Of a run with these events."""
        found = cls(run)
        for event in before:
            found.hear(event)
        return found

    def hear(self, event: Event) -> None:
        list(self.run.hear(event))
        if event.name == "ledger":
            self._replicas = Counter()
            for cell in event.data.get("cells", ()):
                self._replicas.update({str(state): int(number) for state, number in cell.get("states", {}).items()})
        elif event.name == "note" and event.data["key"] == READINESS:
            self._readiness = str(event.data["value"])

    def text(self, now: float) -> str:
        """The file."""
        shared = {"cluster": self.run.plan.cluster, "run": self.run.plan.short}
        lines = []
        for name, samples in self._samples(now):
            if samples:
                lines += [f"# HELP {PREFIX}{name} {HELP[name]}", f"# TYPE {PREFIX}{name} gauge"]
                lines += [f"{PREFIX}{name}{{{_labels({**shared, **own})}}} {value!r}" for own, value in samples]
        return "".join(f"{line}\n" for line in lines)

    def _samples(self, now: float) -> Iterator[tuple[str, list[Sample]]]:
        run, plan, here = self.run, self.run.plan, self.run.state
        since, waits = run.half_rolled, run.waits_since
        yield "state", [({"state": one}, float(one == here)) for one in STATES]
        yield "stage", [({}, float(Stage.from_label(run.stage) if run.stage else plan.target))]
        yield "step_info", [({"stage": run.stage or plan.target.label, "step": run.step}, 1.0)]
        yield "steps", [({}, float(len(plan.steps)))]
        yield "steps_done", [({}, float(len(run.done)))]
        yield "wait_seconds", [({}, 0.0 if waits is None else max(0.0, now - waits))]
        yield "half_rolled_seconds", [({}, 0.0 if since is None else max(0.0, now - since))]
        yield "half_rolled_start_time_seconds", [] if since is None else [({}, since)]
        counts = self._replicas
        yield "replicas", [] if counts is None else [({"state": one}, float(counts[one])) for one in ReplicaState]
        word = next((one for one in sorted(RollbackWord, key=len, reverse=True) if self._readiness.startswith(one)), "")
        yield "rollback_readiness", [({"readiness": one}, float(one == word)) for one in RollbackWord if word]
        yield "last_event_time_seconds", [] if run.last is None else [({}, run.last.time)]
        yield "written_time_seconds", [({}, now)]


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    """As the format wants a label's value: no backslash, quote or new line stands for itself."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
