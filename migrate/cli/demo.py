"""`lab demo`: a real cluster through every stage, under load, ending in a report.

Killed at any moment and started again with the same folder, it resumes: every part asks what is there first.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from migrate.cli.given import load_plan
from migrate.cli.options import write_text
from migrate.cli.planning import make_plan, save_plan
from migrate.cli.progress import ProgressLines
from migrate.cli.report import Judged, read_report, write_reports
from migrate.cli.screen import page_width
from migrate.errors import LabNotReady, LabProofFailed, MigrateError, PlanIsStale
from migrate.lab import proofs, tokens
from migrate.lab.cluster import Lab
from migrate.lab.load import find_load, start_load, stop_load
from migrate.lab.load_check import check_load, complaints
from migrate.lab.load_watch import RestartInterval
from migrate.lab.seed_data import LOAD_TOPICS
from migrate.lab.stale_epoch import StaleEpochOnce
from migrate.lab.topology import DEFAULT_SHAPE, Shape
from migrate.model import strict_json
from migrate.model.config_keys import QuorumKind
from migrate.model.history import ENDED_WELL, Event, LoadSummary
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import DirectoryPolicy, Stage
from migrate.model.views import Running
from migrate.model.words import plural
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_inventory, load_playbook
from migrate.report.lines import Tone
from migrate.report.plan_text import plan_lines
from migrate.report.run_values import Claim, Holds, RunReport, RunWord
from migrate.run import journal as journals
from migrate.run.carry_out import Options, RunFolder, carry_out, folder_of
from migrate.run.locks import LockFile

CLAIMED: Final = {Holds.YES: Tone.GOOD, Holds.NO: Tone.BAD, Holds.NOT_SEEN: Tone.WARN}


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for."""

    directory: pathlib.Path
    kafka_home: str | None
    until: Stage
    keep: bool
    load: bool
    executor: str = "local"
    secured: bool = False
    quorum: QuorumKind = QuorumKind.STATIC
    mechanism: str = "PLAIN"


class Demo:
    """One demo in one folder."""

    lab: ClassVar[type[Lab]] = Lab
    shape: ClassVar[Shape] = DEFAULT_SHAPE

    def __init__(self, options: DemoOptions, lines: ProgressLines) -> None:
        self._options = options
        self._lines = lines
        ssh, mechanism = options.executor == "ssh", options.mechanism
        shape = replace(self.shape, ssh=ssh, secured=options.secured, quorum=options.quorum, mechanism=mechanism)
        self._lab = self.lab.create(options.directory, shape, kafka_home=options.kafka_home, progress=lines.say)
        self._lab.require(options.executor, secured=options.secured, mechanism=mechanism, quorum=options.quorum)
        self._folder = pathlib.Path(self._lab.topology.directory)
        self._state_file = self._folder / "demo.json"

    def run(self) -> int:
        """0 where everything that is due is proven; 1 otherwise.  Ctrl-C and SIGTERM stop the cluster."""
        LockFile(pathlib.Path(self._lab.inventory.runs) / "lock").release()  # where a run goes on, nothing is begun
        try:
            with _sigterm_interrupts():
                return self._run()
        except KeyboardInterrupt:
            self._lines.say("interrupted: stopping the cluster; the same command resumes", Tone.WARN)
            self._stop_all()
            raise
        except MigrateError:
            where = f"--dir {shlex.quote(str(self._options.directory))}"
            hint = f"(kraft-migrate lab status {where}; lab down {where})"
            self._lines.say(f"this run ends here; the cluster is left as it is {hint}", Tone.BAD)
            raise

    def _run(self) -> int:
        playbook = self._begin()
        sources = self._sources(playbook)
        if self._options.until >= Stage.HYBRID:
            self._lines.say("Spark is being started for the comparisons")
            sources.start_spark()
        try:
            plan, folder = self._migrate(sources, playbook)
        finally:
            sources.close()
        if self._options.until < Stage.CLEANUP:
            return self._parked(plan, folder)
        return self._finish(plan, folder, playbook)

    def _sources(self, playbook: Playbook) -> Sources:
        """By the inventory's file, whose sum a plan is bound to."""
        return Sources(load_inventory(self._lab.inventory_path), playbook, self._folder / "spark")

    def _begin(self) -> Playbook:
        """The cluster up and seeded, or adopted; the load running."""
        state = self._state()
        if not state.get("seeded"):
            self._lab.up(self._lines.say)
            self._lab.seed(self._lines.say)
            self._remember(seeded=True)
        else:
            self._adopt(state)
        playbook = load_playbook(self._lab.playbook_path)
        if self._options.load and not state.get("load_judged") and not isinstance(self._load_state(), Running):
            start_load(self._folder, self._lab.clients_inventory, LOAD_TOPICS)
            self._lines.say("load: two VerifiableProducers and a VerifiableConsumer, each a process")
        return playbook

    def _migrate(self, sources: Sources, playbook: Playbook) -> tuple[Plan, RunFolder]:
        """The plan in progress to its end, then a further one where it does not reach far enough."""
        while True:
            kept = self._kept_plan("plan")
            plan = self._plan(sources, playbook)
            folder = folder_of(self._lab.inventory, plan)
            if not ended(folder):
                try:
                    self._carry_out("plan", plan, sources, playbook, self._lines)
                except PlanIsStale as error:
                    if plan != kept:
                        raise
                    self._lines.say(f"the cluster went on without plan {plan.short}: {error.what}; it is planned anew")
                    continue
            if plan.target >= self._options.until:
                return plan, folder

    def _carry_out(
        self, key: str, plan: Plan, sources: Sources, playbook: Playbook, listen: Callable[[Event], None]
    ) -> None:
        """With the board below the lines.  Planted: the first request of policy drive carries an old broker epoch."""
        options = Options(plan.fingerprint, "lab demo", listen, StaleEpochOnce, plan.cluster)
        journal = folder_of(self._lab.inventory, plan).journal
        try:
            with self._lines.following(plan, journal, playbook, lambda: sources.work):
                carry_out(plan, sources, options)
        except PlanIsStale:
            self._remember(**{key: None})  # the same command plans anew
            raise

    # -- the way there -----------------------------------------------------------------------------------------------
    def _adopt(self, state: dict[str, Any]) -> None:
        """Processes that live are adopted as they are; a cluster that is wholly down is brought up."""
        alive = [
            node for node in self._lab.inventory.brokers if isinstance(self._lab.supervisor.state(node.id), Running)
        ]
        if not alive or state.get("starting_again"):
            self._lab.up(self._lines.say)
        else:
            self._lines.say(f"resuming with the cluster in {self._options.directory} (stage by its journal)")
        if state.get("load_judged"):
            self._lines.say("the load was judged already")

    def _load_state(self) -> object:
        return find_load(self._folder)

    def _plan(self, sources: Sources, playbook: Playbook) -> Plan:
        """The plan in progress, or a new one."""
        plan = self._kept_plan("plan")
        if plan is not None and (plan.target >= self._options.until or not ended(folder_of(sources.inventory, plan))):
            return plan
        return self._forward("plan", sources, playbook, self._options.until)

    def _forward(self, key: str, sources: Sources, playbook: Playbook, target: Stage) -> Plan:
        """A new plan up to that stage, remembered under the key."""
        observer = ClusterObserver(sources)
        return self._keep_plan(key, make_plan(observer, playbook, target=target, only=False, created=time.time()))

    def _kept_plan(self, key: str) -> Plan | None:
        saved = self._state().get(key)
        return load_plan(pathlib.Path(saved)) if saved and pathlib.Path(saved).exists() else None

    def _keep_plan(self, key: str, plan: Plan) -> Plan:
        """The plan, once it is saved, remembered and shown."""
        path = save_plan(self._lab.inventory, plan)
        self._remember(**{key: str(path)})
        self._lines.print(plan_lines(plan, str(path), page_width(err=True)))
        return plan

    def _parked(self, plan: Plan, folder: RunFolder) -> int:
        paths = write_reports(plan, folder)
        inventory, lab = (shlex.quote(str(path)) for path in (self._lab.inventory_path, self._options.directory))
        self._lines.say(where_parked(plan.target, self._options.until), Tone.GOOD)
        kerberos = f"export KRB5_CONFIG={os.environ['KRB5_CONFIG']}\n" if self._lab.topology.kdc_port else ""
        self._lines.print(
            f"report: {paths[0]}\n{kerberos}"
            f"look at it:  kraft-migrate status --inventory {inventory}\n"
            f"             kraft-migrate diff --inventory {inventory}\n"
            f"             kraft-migrate directories verify --inventory {inventory}\n"
            f"resume:      kraft-migrate lab demo --dir {lab}\n"
            f"stop it:     kraft-migrate lab down --dir {lab}"
        )
        return 0

    # -- the end -----------------------------------------------------------------------------------------------------
    def _finish(self, plan: Plan, folder: RunFolder, playbook: Playbook) -> int:
        claims = list(self._first_claims())
        load, judged = self._judge_load(folder)
        claims += judged
        claims += self._last_claims(folder, playbook)
        paths = write_reports(plan, folder, Judged(load, tuple(claims)))
        report = read_report(plan, folder)
        if self._options.keep:
            self._lines.say("the cluster keeps running (--keep)")
        else:
            self._stop_all()
        for claim in report.claims:
            self._lines.say(
                f"{claim.holds.words:<20} {claim.text} ({claim.evidence})", CLAIMED.get(claim.holds, Tone.DIM)
            )
        for spot in report.blind_spots:
            self._lines.say(f"could not be checked {spot}", Tone.WARN)
        proven = report.verdict.word is RunWord.PROVEN
        self._lines.say(f"{report.verdict.word.value}: {report.verdict.sentence}", Tone.GOOD if proven else Tone.BAD)
        self._lines.print(f"report: {paths[0]}")
        self._told(report)
        return 0 if proven else 1

    def _first_claims(self) -> Iterator[Claim]:
        """Those that need the load."""
        yield self._without_zookeeper()
        yield self._tokens()

    def _last_claims(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        """Those that need the clients gone: a start of everything, and what is read from the disks."""
        yield self._from_its_files()
        yield from self._folders_and_log(folder, playbook)
        yield from self._stale_epoch(folder, playbook)

    def _told(self, report: RunReport) -> None:
        """Where a longer story writes its own report."""

    def _without_zookeeper(self) -> Claim:
        if isinstance(self._lab.supervisor.state("zookeeper"), Running):
            self._lab.stop_zookeeper(self._lines.say)
        began = time.time()
        self._remember(last_restart=[began, None])
        said = proofs.works_without_zookeeper(self._lab)
        self._remember(last_restart=[began, time.time()])
        return Claim("The cluster works with ZooKeeper stopped.", Holds.YES, said)

    def _from_its_files(self) -> Claim:
        """Killed meanwhile, the same command starts what is stopped, and does it again."""
        self._remember(starting_again=True)
        text = "Every broker and controller starts again from its files, ZooKeeper stopped."
        try:
            claim = Claim(text, Holds.YES, proofs.starts_from_its_files(self._lab, self._lines.say))
        except (LabNotReady, LabProofFailed) as error:
            claim = Claim(text, Holds.NO, str(error))
        self._remember(starting_again=False)
        return claim

    def _tokens(self) -> Claim:
        """By the brokers' own answer, which holds what each token's password is."""
        due, against = tokens.compared(self._lab.topology, int(time.time() * 1000))
        if not due and not against:
            holds, said = Holds.NOT_DUE, "the lab's tokens have ended, or it was seeded without any"
        else:
            holds = Holds.NO if against else Holds.YES
            said = against or f"{due} tokens: owner, requester, renewers, times, password"
        return Claim("Every delegation token is the one that ZooKeeper had.", holds, said)

    def _judge_load(self, folder: RunFolder) -> tuple[LoadSummary | None, list[Claim]]:
        if not self._options.load:
            return None, []
        stop_load(self._folder)
        self._lines.say("load stopped; reading every partition whole")
        summary = check_load(self._folder, self._lab.clients_inventory, list(self._restarts(folder)))
        self._remember(load_judged=True)
        against = complaints(summary)
        text = "No acknowledged record is lost or duplicated, and no partition lost its leader unexpectedly."
        return summary, [Claim(text, Holds.NO if against else Holds.YES, "; ".join(against) or "read whole at the end")]

    def _restarts(self, folder: RunFolder) -> Iterator[RestartInterval]:
        """Those of every run in this lab (one that was parked has several plans), and ours at the end."""
        for path in sorted(folder.path.parent.glob("*/journal.jsonl")):
            yield from self._restarts_of(RunFolder(path.parent))
        last = self._state().get("last_restart")
        if last:
            yield RestartInterval(self._lab.topology.brokers[0].id, last[0], last[1] or time.time())

    def _restarts_of(self, folder: RunFolder) -> Iterator[RestartInterval]:
        """From the order to stop until the step that made it was concluded."""
        stopped: dict[str, tuple[int, float]] = {}
        for event in journals.read(folder.journal).events:
            if event.name == "effect" and event.data["effect"] == "stop":
                stopped.setdefault(event.data["step"], (int(event.data["node"]), event.time))
            elif event.name == "conclude" and event.data["step"] in stopped:
                if event.data["outcome"] not in ENDED_WELL:
                    continue  # refused half way: the node is still down
                node, start = stopped.pop(event.data["step"])
                yield RestartInterval(node, start, event.time)

    def _folders_and_log(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        yield self._none_set_aside()
        brokers = [broker.id for broker in self._lab.topology.brokers]
        sent_from = sent_from_offsets(folder)
        for found in proofs.seeded_before(proofs.metadata_records(self._lab.topology), brokers, sent_from):
            drive = playbook.policy(found.broker) is DirectoryPolicy.DRIVE
            want = found.replicas if drive else 0
            proven = found.registered_at >= 0 and found.replicas > 0 and not found.elsewhere
            holds = proven and found.assigned_before == want
            policy = "every" if drive else "no"
            said = f"{found.assigned_before} of {found.replicas} before offset {found.registered_at}"
            if found.later:
                after = f"created after the look at offset {sent_from[found.broker]} that directories were sent from"
                said += f"; not counted: {plural(found.later, 'replica')} of topics {after}"
            yield Claim(
                f"Broker {found.broker}: {policy} directory was in the log before its KRaft registration.",
                Holds.YES if holds else Holds.NO,
                said,
            )

    def _none_set_aside(self) -> Claim:
        found = proofs.set_aside(self._lab)
        holds = Holds.NO if found else Holds.YES
        text = "No folder of an existing topic was set aside as stray."
        return Claim(text, holds, ", ".join(found[:3]) or "all folders read")

    def _stale_epoch(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        """The fault that was planted, by the note that the driven broker's step left."""
        notes = journals.notes(journals.read(folder.journal).events)
        for broker in (entry.id for entry in self._lab.topology.brokers):
            if playbook.policy(broker) is not DirectoryPolicy.DRIVE:
                continue
            said = notes.get(f"assigned:{broker}", "")
            if not said or said.startswith("0 replicas"):  # killed between the request and its note
                holds, said = Holds.NOT_DUE, "the run was killed before it could be noted; nothing was sent twice"
            else:
                holds = Holds.NO if said.endswith(" 0 retried") else Holds.YES
            yield Claim("A planted STALE_BROKER_EPOCH was retried with the epoch read again.", holds, said)

    def _stop_all(self) -> None:
        if isinstance(self._load_state(), Running):
            stop_load(self._folder)
        self._lab.down(self._lines.say)

    # -- what is remembered ------------------------------------------------------------------------------------------
    def _state(self) -> dict[str, Any]:
        try:
            return strict_json.mapping(self._state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def _remember(self, **facts: Any) -> None:
        write_text(self._state_file, json.dumps({**self._state(), **facts}))


def where_parked(reached: Stage, wanted: Stage) -> str:
    """What is said of a lab that is left running; a plan that was in progress may reach further than is wanted now."""
    beyond = f"further than {wanted.label}, which another --dir would show; " if reached > wanted else ""
    return f"parked after stage {reached.label}; {beyond}the cluster is running"


def ended(folder: RunFolder) -> bool:
    """Is every step of that run concluded?"""
    return folder.journal.exists() and journals.is_complete(journals.read(folder.journal).events)


def sent_from_offsets(folder: RunFolder) -> dict[int, int]:
    """Broker -> metadata offset of the look that policy drive first sent its directories from.

    Read from every journal beside this run's (one that was parked has several plans); the latest that sent counts, as
    a rollback begins the metadata log anew.
    """
    first, prefix = dict[tuple[int, pathlib.Path], Event](), f"{Stage.KRAFT_MODE.label}/assign-"
    for path in folder.path.parent.glob("*/journal.jsonl"):
        for event in journals.read(path).events:
            if event.name == "ledger" and event.data["step"].startswith(prefix):
                first.setdefault((int(event.data["step"].removeprefix(prefix)), path), event)
    in_order = sorted(first.items(), key=lambda entry: entry[1].time)
    return {broker: int(event.data["offset"]) for (broker, _), event in in_order}


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM asks for the same as Ctrl-C."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before: Callable[[int, Any], Any] | int | None = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
