"""From a journal to the report of a run: the verdict and what it rests on."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest

from migrate.model.findings import Finding, Severity
from migrate.model.history import Event
from migrate.model.plan import Direction
from migrate.model.stage import MIGRATION, Stage
from migrate.report.plan_verdict import blind_spots
from migrate.report.run_pages import facts, run_html
from migrate.report.run_report import build
from migrate.report.run_values import SCHEMA, Claim, Extra, Holds, RunReport, RunWord, figures, run_json
from tests.report import story

ROLL_3 = "kraft-mode/roll-to-kraft/3"


def _whole() -> RunReport:
    return build(story.plan(), story.journal(), story.load(), story.extra())


def _claim(report: RunReport, words: str) -> Claim:
    return next(claim for claim in report.claims if words in claim.text)


def _with(name: str, **changes: object) -> list[Event]:
    """The whole journal, its last event of that name changed."""
    events = story.journal()
    at = max(at for at, event in enumerate(events) if event.name == name)
    events[at] = Event(at, events[at].time, name, {**events[at].data, **changes})
    return events


def test_a_run_whose_every_claim_holds_is_proven() -> None:
    """And the sentence still says how much could not be checked."""
    report = _whole()

    assert str(report.verdict) == "PROVEN"
    assert {claim.holds for claim in report.claims} == {Holds.YES}
    assert "4 things could not be checked" in report.verdict.sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"missing": 1}, "No acknowledged record is missing"),
        ({"duplicated": 2}, "is stored twice"),
        ({"unexpected": 1}, "every stored record was sent"),
        ({"leaderless": ((story.START, 3.0, "load-rf3-1", "unexplained"),)}, "lost its leader unexpectedly"),
        ({"short": ((story.START, 3.0, "load-rf3-1", "unexplained"),)}, "min.insync.replicas"),
    ],
)
def test_a_load_that_lost_something_proves_the_contrary(changes: dict[str, object], words: str) -> None:
    """Every step ended, and the run is not proven all the same."""
    report = build(story.plan(), story.journal(), story.load(**changes), story.extra())

    assert report.verdict.word is RunWord.NOT_PROVEN
    assert _claim(report, words).holds is Holds.NO


def test_a_load_that_sent_nothing_proves_nothing() -> None:
    """No record is no evidence."""
    report = build(story.plan(), story.journal(), story.load(acknowledged=0, read=0), story.extra())

    assert _claim(report, "No acknowledged record").holds is Holds.NOT_SEEN
    assert report.verdict.word is RunWord.NOT_PROVEN


def test_a_run_without_load_makes_no_claim_about_records() -> None:
    """In production there is none of ours."""
    report = build(story.plan(), story.journal(), None, story.extra())

    assert report.verdict.word is RunWord.PROVEN
    assert _claim(report, "Clients lost nothing").holds is Holds.NOT_CLAIMED
    assert not any("acknowledged" in claim.text for claim in report.claims)


def test_one_replica_that_is_not_verified_at_the_end_is_enough() -> None:
    """The promise is about every replica."""
    cells = [{"broker": 1, "directory": "d", "path": "/d", "states": {"VERIFIED": 9, "MIGRATING": 1}}]

    report = build(story.plan(), _with("ledger", cells=cells), story.load(), story.extra())

    assert _claim(report, "Every replica").holds is Holds.NO
    assert "9 of 10 replicas" in _claim(report, "Every replica").evidence
    assert str(report.verdict) == "NOT PROVEN (1)"


def test_an_empty_ledger_is_no_proof() -> None:
    """Unknown is never read as empty, nor empty as whole."""
    report = build(story.plan(), _with("ledger", cells=[]), story.load(), story.extra())

    assert _claim(report, "Every replica").holds is Holds.NOT_SEEN


def test_an_unexcused_difference_is_enough() -> None:
    """And a comparison of nothing is no comparison."""
    differs = build(story.plan(), _with("diff", unexcused=1), None, story.extra())
    nothing = build(story.plan(), _with("diff", counts={}), None, story.extra())

    assert _claim(differs, "ZooKeeper and KRaft").holds is Holds.NO
    assert _claim(nothing, "ZooKeeper and KRaft").holds is Holds.NOT_SEEN


def test_people_read_passed_and_failed_and_programs_what_they_always_did() -> None:
    """The values of the JSON stay; an expected loss of a leader is counted with its reason."""
    assert [(str(one), one.words) for one in (Holds.YES, Holds.NO)] == [
        ("holds", "passed"),
        ("does not hold", "FAILED"),
    ]
    assert all(one.words == one.value for one in Holds if one not in {Holds.YES, Holds.NO})
    report = build(story.plan(), story.journal(), story.load(), story.extra())
    found = _claim(report, "No partition lost its leader unexpectedly.")
    expected = "2 times without a leader, 0 of them unexpected (expected: topics with one replica, planned restarts)"
    assert found.evidence == expected
    assert report.verdict.sentence.startswith("Every step up to stage cleanup ended, and all required checks passed.")


@pytest.mark.parametrize(("intact", "holds"), [(False, Holds.NO), (None, Holds.NOT_SEEN)])
def test_a_journal_that_is_broken_or_unchecked_proves_nothing(intact: bool | None, holds: Holds) -> None:
    """The report stands on it."""
    report = build(story.plan(), story.journal(), None, Extra(journal_intact=intact))

    assert _claim(report, "The journal").holds is holds
    assert report.verdict.word is RunWord.NOT_PROVEN


@pytest.mark.parametrize(
    ("changes", "holds", "words"),
    [
        ({}, Holds.YES, "dropped, and known (W-ZKN-21): topic-config ghost retention.ms"),
        ({"lost": 1, "samples": ["acl Topic|LITERAL|a"]}, Holds.NO, "missing: acl Topic|LITERAL|a"),
        ({"miscounted": ["TOPIC_RECORD: 1, 2"]}, Holds.NO, "TOPIC_RECORD: 1, 2"),
        ({"driver": "its log cannot be read"}, Holds.YES, "not checked: the controller's own counts"),
        ({"not_checked": "no run kept a look"}, Holds.NOT_SEEN, "not checked: no run kept a look"),
    ],
)
def test_what_the_copy_dropped_is_a_claim(changes: dict[str, object], holds: Holds, words: str) -> None:
    """Named where it was known, against the verdict where it was not; what was not looked at is not checked."""
    found = _claim(
        build(story.plan(), _with("copy-check", **changes), story.load(), story.extra()), "Everything in ZooKeeper"
    )
    assert found.holds is holds
    assert words in found.evidence


def test_the_callers_claims_count() -> None:
    """The demo's own checks are judged like ours."""
    stray = Claim("No folder ends in -stray.", Holds.NO, "disk2/a-0.x-stray")

    report = build(story.plan(), story.journal(), None, Extra(True, claims=(stray,)))

    assert str(report.verdict) == "NOT PROVEN (1)"


def test_a_run_that_goes_on_is_unfinished_and_says_where() -> None:
    """What is not due yet is no fault."""
    report = build(story.plan(), story.journal(until=ROLL_3), None, Extra(True))

    assert str(report.verdict) == "UNFINISHED"
    assert report.verdict.sentence.endswith("It is at: broker 3 restarts as a KRaft broker.")
    assert _claim(report, "Every replica").holds is Holds.NOT_DUE
    assert _claim(report, "Every planned step").holds is Holds.NOT_DUE


def test_a_stop_gives_its_reason_until_the_run_goes_on() -> None:
    """A session after it takes it back."""
    pen = story.Pen(events=story.journal(until=ROLL_3))
    pen.now = pen.events[-1].time
    pen.conclude(story.plan().steps[13], "Refused", reason="disk2 of broker 3 is broken", evidence=[])
    pen.write("stop", 0.1, reason="disk2 of broker 3 is broken", code="B-DIR-01")
    stopped = build(story.plan(), pen.events, None, Extra(True))
    pen.write("session", 60.0, pid=1, host="ops-1", resumed=True)
    resumed = build(story.plan(), pen.events, None, Extra(True))

    assert stopped.verdict.word is RunWord.STOPPED
    assert stopped.verdict.sentence == "The run stopped: disk2 of broker 3 is broken"
    assert _claim(stopped, "Every planned step").holds is Holds.NO
    assert resumed.verdict.word is RunWord.UNFINISHED


def test_a_plan_that_was_not_applied_has_a_report_too() -> None:
    """An empty journal is a fact, not an error."""
    report = build(story.plan(), [], None, None)

    assert report.verdict.sentence == "Nothing was applied."
    assert (report.stages, report.restarts, report.hosts) == ((), (), ())
    assert report.begin == report.end == story.plan().created


def test_stages_span_from_their_first_step_to_their_last() -> None:
    """In order, without overlap, each complete."""
    spans = _whole().stages

    labels = [stage.label for stage in MIGRATION if stage is not Stage.ASSESS]
    assert [span.stage for span in spans] == labels
    assert all(span.end is not None and span.passed == span.steps for span in spans)
    assert all(one.end is not None and one.end <= two.begin for one, two in itertools.pairwise(spans))


def test_a_stage_that_is_not_through_is_open() -> None:
    """Two of its three steps are done."""
    last = build(story.plan(), story.journal(until=ROLL_3)).stages[-1]

    assert (last.stage, last.end, last.passed, last.steps) == ("kraft-mode", None, 2, 3)


def test_two_stops_in_two_sessions_are_no_downtime_from_the_first_to_the_last() -> None:
    """Between them somebody may have started the node: the first has no start that was observed."""
    report = _whole()
    cut, again = [entry for entry in report.restarts if entry.step == "kraft-mode/roll-to-kraft/2"]

    assert (cut.started, cut.down, cut.observed) == (None, None, False)
    assert cut.unseen_from == report.sessions[0].last
    assert cut.unseen_to == again.stopped
    assert again.observed
    assert again.down is not None
    assert again.down < 4
    assert run_html(report).count("not observed") >= 3
    said = [entry for entry in json.loads(run_json(report))["restarts"] if entry["node"] == "2"]
    assert [(entry["observed"], entry["down"] is None) for entry in said] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert any(spot.startswith("nodes while no engine ran (1 time between sessions") for spot in report.blind_spots)


def test_a_start_in_a_later_session_has_no_downtime_but_its_times() -> None:
    """The node was seen down twice; whether it was so in between was not observed."""
    stop: dict[str, object] = {"step": "a/1", "effect": "stop", "node": "1", "detail": ""}
    told: list[tuple[str, dict[str, object]]] = [
        ("session", {"resumed": False}),
        ("effect", stop),
        ("effected", stop),
        ("session", {"resumed": True}),
        ("effect", {**stop, "effect": "start"}),
        ("effected", {**stop, "effect": "start"}),
    ]
    events = [Event(at, story.START + at * 10, name, data) for at, (name, data) in enumerate(told)]

    (entry,) = build(story.plan(), events).restarts

    assert (entry.stopped, entry.started) == (story.START + 10, story.START + 50)
    assert (entry.unseen_from, entry.unseen_to, entry.down) == (story.START + 20, story.START + 50, None)


def test_every_restart_is_there_with_its_times() -> None:
    """Three first starts, two rolls, three restarts of controllers."""
    restarts = [entry for entry in _whole().restarts if entry.observed]

    assert len(restarts) == 12
    assert [entry.node for entry in restarts if entry.stopped is None] == ["3001", "3002", "3003"]
    assert all(entry.started is not None and entry.proven is not None for entry in restarts)


def test_a_resumed_step_counts_its_attempts_and_keeps_its_first_begin() -> None:
    """The kill is not hidden."""
    step = next(step for step in _whole().steps if step.id == "kraft-mode/roll-to-kraft/2")

    assert step.attempts == 2
    assert step.begin is not None
    assert step.end is not None
    assert step.end - step.begin > 14


def test_an_effect_without_an_end_is_shown_as_such() -> None:
    """The stop during which we were killed."""
    broker = next(host for host in _whole().hosts if host.node == "2")
    stops = [effect for effect in broker.effects if effect.effect == "stop"]

    assert [effect.done is None for effect in stops] == [False, True, False]


def test_waits_last_until_their_step_goes_on() -> None:
    """They are only written down when they begin or move."""
    waits = _whole().waits

    assert len(waits) == 4
    assert all(wait.end - wait.begin > 2.5 for wait in waits)
    assert waits[0].owner == "the active controller"


def test_hosts_are_named_by_their_role_and_in_order() -> None:
    """Brokers are those of the ledger; the caller may say better."""
    report = _whole()
    renamed = build(story.plan(), story.journal(), None, Extra(roles={"3001": "quorum voter"}))

    assert [report.name(host.node) for host in report.hosts] == [
        "zookeeper",
        "broker 1",
        "broker 2",
        "broker 3",
        "controller 3001",
        "controller 3002",
        "controller 3003",
    ]
    assert renamed.name("3001") == "quorum voter 3001"


def test_blind_spots_of_plan_comparison_and_load_stand_together() -> None:
    """Each once."""
    load = story.load(blind=((story.START, 4.0, "no broker answered"),))
    report = build(story.plan(), story.journal(), load, Extra(True, blind_spots=("clocks were not compared",)))

    assert len(report.blind_spots) == 6
    assert report.blind_spots[0] == "when the plan was made: live answers: broker 3 did not answer within 5 s"
    assert report.blind_spots[-1] == "load: leaders were not observed for 4 s: no broker answered"


def test_what_a_check_of_the_plan_could_not_see_is_carried_into_the_run() -> None:
    """The report of the run and the plan list the same."""
    report = build(story.plan(), story.journal(), story.load(), Extra(True))
    missed = [f"when the plan was made: {spot}" for spot in blind_spots(story.plan())]
    assert any(" (for " in spot for spot in missed)
    assert list(report.blind_spots[: len(missed)]) == missed


def test_directories_without_an_id_share_one_cell_and_no_path() -> None:
    """Before their first start in migration mode nothing tells them apart, so no path may be named."""
    cells = [{"broker": 1, "directory": "", "path": "/data/disk2", "states": {"MIGRATING": 120}}]

    report = build(story.plan(), _with("ledger", cells=cells))

    assert [cell.path for cell in report.ledgers[-1].cells] == [""]


def test_the_verdict_names_the_stage_that_it_speaks_of() -> None:
    """A plan of one stage that ended is no migration that ended."""
    whole = story.plan()
    part = dataclasses.replace(whole, target=Stage.CONTROLLERS, steps=whole.steps[:6])
    events = [event for event in story.journal() if event.data.get("stage", "discover") in {"discover", "prepare"}]

    proven = build(whole, story.journal(), None, Extra(True))
    unproven = build(part, [*events, story.journal()[-1]], None, Extra(True))

    assert proven.verdict.sentence.startswith("Every step up to stage cleanup ended")
    assert unproven.verdict.sentence.startswith(
        "Every step up to stage controllers ended, but 1 required check failed or could not be made."
    )


def test_events_of_a_later_version_do_not_break_the_report() -> None:
    """Names and fields that we do not know are left alone; a step that the plan lacks is shown."""
    events = [*story.journal(until=ROLL_3), Event(999, story.START + 500, "weather", {"sky": "grey"})]
    events.append(Event(1000, story.START + 501, "conclude", {"step": "x/y", "stage": 7, "outcome": "Verified"}))

    report = build(story.plan(), events)

    assert report.steps[-1].id == "x/y"
    assert report.steps[-1].stage == "kraft-mode"


def test_the_json_holds_every_value_under_its_own_name() -> None:
    """A machine reads what a person reads."""
    body = json.loads(run_json(_whole()))

    assert body["schema"] == SCHEMA
    assert body["verdict"]["word"] == "PROVEN"
    assert [claim["holds"] for claim in body["claims"]] == ["holds"] * 12
    assert body["ledgers"][-1]["cells"][0]["states"] == {"VERIFIED": 36}
    assert body["load"]["missing"] == 0
    assert body["diffs"][-1]["counts"]["partition"] == {"EQUAL": 826}


def _rollback(*events: tuple[str, dict[str, object]]) -> RunReport:
    """A rollback of two steps, with these events."""
    plan = dataclasses.replace(story.plan(), direction=Direction.BACK, target=Stage.ASSESS)
    steps = tuple(
        dataclasses.replace(plan.steps[0], id=name, stage=stage)
        for name, stage in (("hybrid/stop-controllers", Stage.HYBRID), ("assess/prove-zookeeper-mode", Stage.ASSESS))
    )
    told = [Event(0, 1.0, "run", {"host": "h"}), *(Event(n, 2.0, *one) for n, one in enumerate(events, start=1))]
    return build(dataclasses.replace(plan, steps=steps), told, None, Extra(journal_intact=True))


STOP: dict[str, object] = {"step": "hybrid/stop-controllers", "stage": "hybrid", "outcome": "Verified"}
STOPPED: tuple[str, dict[str, object]] = ("conclude", {**STOP, "evidence": ["x"]})
PROVEN: tuple[str, dict[str, object]] = (
    "conclude",
    {
        "step": "assess/prove-zookeeper-mode",
        "stage": "assess",
        "outcome": "Verified",
        "evidence": ["/migration is gone"],
    },
)


def test_a_rollback_is_proven_by_its_end_and_owes_no_comparison() -> None:
    """Its last step's evidence is the claim; the ledger and the comparison are the way forward's."""
    report = _rollback(STOPPED, PROVEN, ("end", {"target": "assess"}))
    assert str(report.verdict) == "PROVEN"
    assert report.verdict.sentence.startswith("Every step of the rollback ended")
    assert _claim(report, "in ZooKeeper mode").evidence == "/migration is gone"
    assert not [claim for claim in report.claims if "KRaft hold the same" in claim.text or "VERIFIED" in claim.text]
    assert report.title == f"Rollback of {report.cluster} to ZooKeeper mode"


def test_a_rollbacks_figures_name_what_it_does() -> None:
    """A controller that is stopped for good is no restart; ZooKeeper mode has no ledger, and no stage as its target."""
    act: dict[str, object] = {"step": "hybrid/stop-controllers", "effect": "stop", "node": "3001", "detail": ""}
    report = _rollback(("effect", act), ("effected", act), STOPPED, PROVEN, ("end", {"target": "assess"}))
    found = {one.name: (one.value, one.detail) for one in figures(report)}
    assert found["Restarts"] == ("0", "and 1 stop")
    assert "Replicas VERIFIED" not in found
    assert "Target" not in facts(report)
    assert facts(_whole())["Target"] == "stage cleanup"


def test_a_report_that_judges_no_load_does_not_say_that_none_ran() -> None:
    """`report write` judges none, and one may have run beside the run."""
    report = _rollback(STOPPED, PROVEN)
    assert _claim(report, "Clients lost nothing").evidence == "this report judges no load"
    assert "ran beside" not in run_html(report)


def test_a_rollback_without_its_proof_is_not_proven() -> None:
    """Under way it is not due; ended without, it does not hold."""
    assert _claim(_rollback(STOPPED), "in ZooKeeper mode").holds is Holds.NOT_DUE
    ended = _rollback(STOPPED, ("end", {"target": "assess"}))
    assert _claim(ended, "in ZooKeeper mode").holds is Holds.NO
    assert ended.verdict.word is RunWord.NOT_PROVEN


def test_what_is_left_on_the_hosts_has_a_section_of_its_own_and_is_no_evidence() -> None:
    """Long paths would squeeze every claim; a run that leaves nothing has no such section."""
    left = "left on b1.example.net (node 1), with secrets in it: /etc/kafka/server.properties.kraft-migrate-backup-1"
    report = build(story.plan(), _with("conclude", left=[left]), story.load(), story.extra())

    assert report.left == (left,)
    assert all(left not in claim.evidence for claim in report.claims)
    assert "Left on the hosts" in run_html(report)
    assert "Left on the hosts" not in run_html(_whole())


def test_an_accepted_replica_stands_in_the_report_with_its_day() -> None:
    """What was not waited for, by name; nothing is said where nothing was accepted."""
    message = "its replica on broker 2 is not in sync: accepted by CHG1 until 2027-01-01"
    found = Finding("W-HLT-05", Severity.WARNING, "partition orders-3", message, "slow disk")
    plan = dataclasses.replace(story.plan(), findings=(*story.plan().findings, found))
    report = build(plan, story.journal(), story.load(), story.extra())
    assert "accepted by CHG1 until 2027-01-01" in run_html(report)
    assert "partition orders-3" in run_html(report)
    assert "W-HLT-05" not in run_html(_whole())
