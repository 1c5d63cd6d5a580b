"""`lab demo --rollback-from STAGE`: to that stage under load, back to ZooKeeper mode, and all the way again.

Each part is remembered when it is done; killed at any moment and started again, the same command resumes.
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from migrate.checks.rollback.readiness import rollback_readiness
from migrate.cli.demo import Demo, DemoOptions, ended
from migrate.cli.options import write_text
from migrate.cli.planning import make_rollback_plan
from migrate.cli.progress import ProgressLines
from migrate.cli.report import Judged, read_report, write_reports
from migrate.errors import LabProofFailed, UsageWrong
from migrate.lab import rollback_proofs
from migrate.lab.rollback_proofs import hash_broker_files, prove_rollback
from migrate.model.history import ENDED_WELL, Event, LoadSummary, concluded
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.report.lines import Tone
from migrate.report.rehearsal import COUNTED_WHOLE, Leg, Rehearsal, down_between, load_between, markdown, values
from migrate.report.run_values import Claim, Holds, RunReport
from migrate.run import journal as journals
from migrate.run.carry_out import RunFolder, folder_of
from migrate.run.past_runs import ROLLBACK_NEEDS, rollback_facts

MIGRATION_ROLL: Final = "roll-to-migration-mode"
KRAFT_ROLL: Final = "roll-to-kraft"
CONTROLLERS_GONE: Final = "hybrid/stop-controllers"
EPOCH_NOTE: Final = "rollback:kraft-epoch"


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the story turns back: how far the first plan goes, and after how many brokers of which roll it is left.

    `origin` is what readiness must say there; `after` is a share of that roll's brokers, rounded up; with `held` the
    copy is kept from beginning.
    """

    name: str
    target: Stage
    origin: str
    roll: str = ""
    after: float = 1.0
    held: bool = False

    def park_at(self, plan: Plan) -> str:
        """The step after whose conclusion the first run is left; "" where it goes to the plan's own end."""
        steps = [step.id for step in plan.steps if step.kind == self.roll]
        return steps[int(len(steps) * self.after + 0.5) - 1] if steps else ""


TURNS: Final = {
    turn.name: turn
    for turn in (
        Turn("controllers", Stage.CONTROLLERS, "controllers"),
        Turn("half-migration-mode", Stage.MIGRATION_MODE, "half of migration-mode", MIGRATION_ROLL, 0.5),
        Turn("migration-mode", Stage.MIGRATION_MODE, "migration-mode", MIGRATION_ROLL, held=True),
        Turn("hybrid", Stage.HYBRID, "hybrid"),
        Turn("half-kraft-mode", Stage.KRAFT_MODE, "half of kraft-mode", KRAFT_ROLL, 0.5),
        Turn("kraft-mode", Stage.KRAFT_MODE, "kraft-mode"),
        Turn("soak", Stage.SOAK, "kraft-mode"),
    )
}


class Parked(Exception):
    """The first run has come as far as it should."""


@dataclass(slots=True)
class Planting:
    """When the dead id goes in: in the first wait for the last broker, once.

    That is seconds before it registers, and after another broker took over as controller if it was the one: a
    controller reads every assignment when it begins.
    """

    step: str
    wanted: bool
    begun: bool

    def due(self, event: Event) -> bool:
        """Now?"""
        if not self.wanted or event.data.get("step") != self.step:
            return False
        if event.name == "intend":
            self.begun = True
        if event.name == "waiting" and self.begun:
            self.wanted = False
            return True
        return False


class RollbackDemo(Demo):
    """One rehearsal in one folder."""

    def __init__(self, options: DemoOptions, lines: ProgressLines, turn: Turn) -> None:
        super().__init__(options, lines)
        self._turn = turn

    def _run(self) -> int:
        self._same_story()
        playbook = self._begin()
        if "files" not in self._state():
            self._remember(files=hash_broker_files(self._lab))
        lender = self._sources(playbook)
        try:
            if not self._state().get("parked"):
                with self._looking(lender, playbook, spark=self._turn.target >= Stage.HYBRID) as sources:
                    self._there(sources, playbook)
            if not self._state().get("back"):
                with self._looking(lender, playbook, spark=True) as sources:
                    self._back(sources, playbook)
            with self._looking(lender, playbook, spark=self._options.until >= Stage.HYBRID) as sources:
                plan, folder = self._migrate(sources, playbook)
        finally:
            lender.close()
        return self._finish(plan, folder, playbook)

    def _same_story(self) -> None:
        """A folder has one story."""
        state = self._state()
        before = state.get("rollback_from")
        if before != self._turn.name and (before is not None or "plan" in state):
            told = "without --rollback-from" if before is None else f"with --rollback-from {before}"
            raise UsageWrong(f"this demo was begun {told}: continue with that, or use another --dir")
        self._remember(rollback_from=self._turn.name)

    @contextmanager
    def _looking(self, lender: Sources, playbook: Playbook, *, spark: bool) -> Iterator[Sources]:
        """Sources of their own for each part: the next quorum is another, and nothing of the last one is kept."""
        sources = self._sources(playbook)
        handle = lender.spark() if spark else None
        if handle is not None:
            sources.use_spark(handle)
        try:
            yield sources
        finally:
            sources.close()

    # -- there -------------------------------------------------------------------------------------------------------
    def _there(self, sources: Sources, playbook: Playbook) -> None:
        """The first migration, as far as the story wants it."""
        plan = self._kept_plan("plan_there") or self._forward("plan_there", sources, playbook, self._turn.target)
        folder, last = folder_of(sources.inventory, plan), self._turn.park_at(plan)
        self._lines.say(f"going to {self._turn.name}, to turn back there", Tone.TITLE)
        planting = Planting(last, self._turn.held, begun=last in _begun(folder))

        def listen(event: Event) -> None:
            self._lines(event)
            if planting.due(event):
                rollback_proofs.hold_copy(sources.zookeeper_client())
                self._lines.say(
                    f"planted: broker {rollback_proofs.DEAD} in an assignment holds the copy open", Tone.WARN
                )
            if _ended_well(event, last):
                raise Parked

        if not ended(folder) and last not in _concluded(folder):
            try:
                self._carry_out("plan_there", plan, sources, playbook, listen)
            except Parked:
                self._lines.say(f"left after {last}", Tone.GOOD)
        write_reports(plan, folder)
        self._remember(parked=time.time())

    # -- and back ----------------------------------------------------------------------------------------------------
    def _back(self, sources: Sources, playbook: Playbook) -> None:
        """Things are made, readiness is asked, the rollback is planned and carried out, its end is proven."""
        if not self._state().get("made"):
            self._remember(made=rollback_proofs.make_objects(self._lab, self._turn.name))
            self._lines.say(f"made: {self._state()['made']}")
        observer = ClusterObserver(sources)
        plan = self._kept_plan("plan_back")
        if plan is None:
            world = observer.observe(ROLLBACK_NEEDS, {})
            ready = rollback_readiness(world, rollback_facts(world))
            self._lines.say(f"rollback readiness: {ready.line}", Tone.TITLE)
            self._remember(readiness=ready.line, ready=ready.word.value, origin=ready.origin)
            plan = self._keep_plan("plan_back", make_rollback_plan(observer, playbook, created=time.time()))
        folder = folder_of(sources.inventory, plan)
        if self._turn.held and CONTROLLERS_GONE in _concluded(folder):
            rollback_proofs.release_copy(sources.zookeeper_client())

        def listen(event: Event) -> None:
            self._lines(event)
            if self._turn.held and _ended_well(event, CONTROLLERS_GONE):
                rollback_proofs.release_copy(sources.zookeeper_client())
                self._lines.say("the dead id is removed again: no controller is left to start a copy", Tone.WARN)

        if not ended(folder):
            self._carry_out("plan_back", plan, sources, playbook, listen)
        if self._turn.held:
            rollback_proofs.release_copy(sources.zookeeper_client())
        write_reports(plan, folder)
        self._remember(back=self._proven(sources, folder))

    def _proven(self, sources: Sources, folder: RunFolder) -> list[list[str]]:
        """The claims about the rollback, as they are remembered: text, holds, evidence."""
        events = journals.read(folder.journal).events
        epoch = int(journals.notes(events).get(EPOCH_NOTE, "-1"))
        found = []
        state = self._state()
        right = state["ready"].startswith("READY") and state["origin"] == self._turn.origin
        text = f"Before the rollback the cluster was at {self._turn.origin}, and a rollback was possible."
        found.append([text, (Holds.YES if right else Holds.NO).value, state["readiness"]])
        before = self._state()["files"]
        for proof in prove_rollback(self._lab, sources.zookeeper_client(), self._turn.name, before, folder.path, epoch):
            holds = Holds.NO if proof.against else Holds.YES
            self._lines.say(f"{holds.words:<20} {proof.text} ({proof.against or proof.evidence})")
            found.append([proof.text, holds.value, proof.against or proof.evidence])
        return found

    # -- the whole story ---------------------------------------------------------------------------------------------
    def _first_claims(self) -> Iterator[Claim]:
        """Where the second migration does not go to the end, ZooKeeper is still needed."""
        if self._options.until is Stage.CLEANUP:
            yield self._without_zookeeper()
        yield self._tokens()

    def _last_claims(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        """Those of the rollback, and of the second migration where it went to the end."""
        yield from (Claim(text, Holds(holds), evidence) for text, holds, evidence in self._state()["back"])
        yield self._still_there()
        if self._options.until is Stage.CLEANUP:
            yield from super()._last_claims(folder, playbook)

    def _still_there(self) -> Claim:
        text = "The records that were made half way can be read at the end."
        try:
            return Claim(text, Holds.YES, rollback_proofs.require_records(self._lab, self._turn.name))
        except LabProofFailed as error:
            return Claim(text, Holds.NO, str(error))

    def _told(self, report: RunReport) -> None:
        """One report of the whole story, beside those of its parts."""
        legs = [self._leg("there", "plan_there", None), self._leg("rollback", "plan_back", report.load)]
        again = f"again, to {self._options.until.label}"
        legs.append(Leg(again, report.begin, report.end - report.begin, str(report.verdict)))
        plan = self._kept_plan("plan_back")
        assert plan is not None
        events = journals.read(folder_of(self._lab.inventory, plan).journal).events
        gap, load = journals.controller_gap(events), report.load
        story = Rehearsal(
            cluster=report.cluster,
            stage=self._turn.name,
            legs=tuple(legs),
            readiness=self._state().get("readiness", "not asked"),
            gap=None if gap is None else gap.seconds,
            away={str(node): seconds for node, seconds in journals.away(events).items()},
            down=None if load is None else down_between(load, legs[1].begin, legs[1].begin + legs[1].seconds),
            claims=report.claims,
            load=load,
        )
        runs = pathlib.Path(self._lab.inventory.runs)
        write_text(runs / "rehearsal.md", markdown(story))
        write_text(runs / "rehearsal.json", json.dumps(values(story), indent=1))
        self._lines.print(f"the whole story: {runs / 'rehearsal.md'}")

    def _leg(self, name: str, key: str, load: LoadSummary | None) -> Leg:
        """One part; with a load its report is written again, for the load is judged at the end of the whole story."""
        plan = self._kept_plan(key)
        assert plan is not None
        folder = folder_of(self._lab.inventory, plan)
        report = read_report(plan, folder)
        if load is not None:
            beside = load_between(load, report.begin, report.end)
            write_reports(plan, folder, Judged(beside, blind_spots=(COUNTED_WHOLE,)))
            report = read_report(plan, folder)
        word = "left there, as wanted" if name == "there" and not ended(folder) else str(report.verdict)
        return Leg(name, report.begin, report.end - report.begin, word)


def _events(folder: RunFolder) -> tuple[Event, ...]:
    return journals.read(folder.journal).events if folder.journal.exists() else ()


def _begun(folder: RunFolder) -> frozenset[str]:
    return journals.begun(_events(folder))


def _concluded(folder: RunFolder) -> frozenset[str]:
    return concluded(_events(folder))


def _ended_well(event: Event, step: str) -> bool:
    return event.name == "conclude" and event.data["step"] == step and event.data["outcome"] in ENDED_WELL


def story(options: DemoOptions, name: str, lines: ProgressLines) -> Callable[[], int]:
    """The rehearsal of that name; UsageWrong for a place where no story turns.

    `options.until` is how far the second migration goes.
    """
    if name not in TURNS:
        raise UsageWrong(f"--rollback-from: {name!r} is none of them", next_step=f"one of {', '.join(TURNS)}")
    return RollbackDemo(options, lines, TURNS[name]).run
