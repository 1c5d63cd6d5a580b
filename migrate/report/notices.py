"""Which events of a run are told to whom, and in which words (pure): folded from the journal, as the board is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from migrate.errors import RunInterrupted, RunParked, WindowClosed
from migrate.model.history import Event
from migrate.model.inventory import Recipient
from migrate.model.notifications import Happening, Notice
from migrate.model.plan import Plan, PlanKind
from migrate.model.stage import Stage
from migrate.plan.parking import HYBRID_ENDS, half_rolled_since
from migrate.report.run_board import WELL, Present
from migrate.report.wording import duration, plural, printable

BY_CODE: Final = {  # how a session stopped, by the code of its `stop`; any other one: it is stopped
    RunParked.id: Happening.PARKED,
    RunInterrupted.id: Happening.PARKED,
    WindowClosed.id: Happening.PARKED,
}


RUNNING: Final = "running"


@dataclass(slots=True)
class RunState:
    """Where a run is, by its plan and the events so far: what notifications and metrics tell.

    `rolled` is since when earlier runs have left the cluster half rolled or hybrid.
    """

    plan: Plan
    rolled: float | None = None
    present: Present = field(default_factory=Present)
    done: set[str] = field(default_factory=set)
    last: Event | None = None
    outcome: Happening | None = None  # how the last session ended; None: it has not
    _finalizes: bool = False
    _failed: str = ""  # the step that was concluded otherwise than well, as the session's last one

    def hear(self, event: Event) -> Iterator[Happening]:
        """Fold one event more, and answer what of it can be told."""
        self.present.hear(event)
        self.last = event
        match event.name:
            case "session":
                self.outcome, self._failed = None, ""
                yield Happening.BEGINS
            case "intend":
                if self.rolled is None:
                    self.rolled = half_rolled_since(self.plan.steps, [event])
                if event.data["stage"] == Stage.FINALIZE.label and not self._finalizes:
                    self._finalizes = True
                    yield Happening.POINT_OF_NO_RETURN
            case "conclude":
                step = str(event.data["step"])
                if event.data["outcome"] in WELL:
                    self.done.add(step)
                else:
                    self._failed = step
            case "stop":
                self.outcome = BY_CODE.get(str(event.data["code"]), Happening.STOPPED)
                yield self.outcome
            case "end":
                self.outcome = Happening.ENDED
                yield self.outcome
            case _:
                pass

    @property
    def state(self) -> str:
        """One word: running, or how the last session ended."""
        return RUNNING if self.outcome is None else str(self.outcome)

    @property
    def waits_since(self) -> float | None:
        """When the present step began to wait; None where none waits, or the session is over."""
        return None if self.outcome is not None else self.present.waits_since

    @property
    def half_rolled(self) -> float | None:
        """Since when the cluster is half rolled or hybrid; None where it is not."""
        if self.plan.kind.rolls_back:
            over = self.outcome is Happening.ENDED and self.plan.kind is PlanKind.ROLLBACK
            return None if over else self.rolled
        ends = {step.id for step in self.plan.steps if step.kind == HYBRID_ENDS}
        return None if ends and ends <= self.done else self.rolled

    @property
    def step(self) -> str:
        """The step in progress, or the one that stopped the session; "" where there is none."""
        return "" if self.outcome is Happening.ENDED else self.present.step or self._failed

    @property
    def stage(self) -> str:
        """The stage of that step, else of the next one; "" where every step is done."""
        steps = [step for step in self.plan.steps if step.id not in self.done]
        found = next((step for step in steps if step.id == self.step), steps[0] if steps else None)
        return "" if found is None else found.stage.label


@dataclass(slots=True)
class Notices:
    """What each recipient is told of a run, each thing once a session."""

    recipients: tuple[Recipient, ...]
    host: str
    run: RunState
    _told: set[tuple[str, Happening, float]] = field(default_factory=set)

    @classmethod
    def of(cls, run: RunState, recipients: tuple[Recipient, ...], host: str, before: Iterable[Event]) -> Notices:
        """Of a run with these events, which are not told again."""
        for event in before:
            list(run.hear(event))
        return cls(recipients, host, run)

    def hear(self, event: Event) -> Iterator[tuple[Recipient, Notice]]:
        for happening in self.run.hear(event):
            notice = self._notice(happening, event.time)
            yield from ((one, notice) for one in self.recipients if happening in one.events)

    def late(self, now: float) -> Iterator[tuple[Recipient, Notice]]:
        """What has lasted for longer than somebody wants to hear of; to be asked again and again."""
        if self.run.state != RUNNING:
            return
        since = {Happening.WAITS: self.run.waits_since, Happening.HALF_ROLLED: self.run.half_rolled}
        for one in self.recipients:
            for happening, limit in one.longer_than.items():
                begun = since[happening]
                if begun is None or now - begun <= limit or (one.name, happening, begun) in self._told:
                    continue
                self._told.add((one.name, happening, begun))
                yield one, self._notice(happening, now, now - begun)

    def _notice(self, happening: Happening, time: float, seconds: float | None = None) -> Notice:
        last = self.run.last
        ended = happening is Happening.ENDED
        return Notice(
            event=happening,
            run=self.run.plan.short,
            n=-1 if last is None else last.number,
            time=time,
            cluster=self.run.plan.cluster,
            cluster_id=self.run.plan.cluster_id,
            change=self.run.plan.change,
            host=self.host,
            stage=self.run.plan.target.label if ended else self.run.stage,
            step=self.run.step,
            text=printable(self._text(happening, seconds)),
            code=str(last.data.get("code", "")) if last is not None and last.name == "stop" else "",
            seconds=seconds,
        )

    def _text(self, happening: Happening, seconds: float | None) -> str:
        last, present, cluster = self.run.last, self.run.present, self.run.plan.cluster
        data = {} if last is None else last.data
        lasting = duration(seconds or 0.0)
        match happening:
            case Happening.BEGINS:
                done = f"; {len(self.run.done)} of {plural(len(self.run.plan.steps), 'step')} are done"
                return f"{cluster}: {'the run resumes' if data['resumed'] else 'the run begins'}{done}"
            case Happening.NEEDS_APPROVAL | Happening.PARKED | Happening.STOPPED:
                return f"{cluster}: {happening}: {data['reason'] or data['code']}"
            case Happening.POINT_OF_NO_RETURN:
                return f"{cluster}: stage finalize begins: no rollback is possible from here on"
            case Happening.ENDED:
                return f"{cluster}: the plan is carried out, to {self.run.plan.words.target}"
            case Happening.WAITS:
                what, owner, next_step = present.waiting or ("", "", "")
                return f"{cluster}: waits for {lasting}, now for {what} (owner: {owner}; if it lasts: {next_step})"
            case Happening.HALF_ROLLED:
                return f"{cluster}: half rolled or hybrid for {lasting}: continue, or roll back"
            case Happening.TEST:
                return TRIED


TRIED: Final = "a test of the notifications: nothing happened"


def trial(name: str, host: str, now: float) -> Notice:
    """What `playbook notify-test` sends, under the name of the file."""
    return Notice(Happening.TEST, "", -1, now, name, "", "", host, "", "", TRIED)
