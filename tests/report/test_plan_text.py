"""The plan's report as text and HTML: verdict, order, point of no return, next command."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from migrate.model.durations import Durations
from migrate.model.findings import Finding, Severity
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.step import NO_ZNODE, Action
from migrate.plan.build import build
from migrate.plan.schedule import scheduled
from migrate.report.change_summary import changes, changes_line
from migrate.report.lines import Tone
from migrate.report.plan_json import plan_to_json
from migrate.report.plan_text import plan_html, plan_lines, plan_text
from migrate.report.plan_verdict import areas, blind_spots, counts, judge, may_begin, unseen
from tests.bench.scale import big_world
from tests.report import pages, story
from tests.report.golden import same_as_golden

PATH = "runs/payments-eu1/plan.json"


def _until(stage: Stage) -> Plan:
    plan = story.plan(target=stage)
    return dataclasses.replace(plan, steps=tuple(step for step in plan.steps if step.stage <= stage))


def test_the_text_of_a_whole_plan() -> None:
    """Golden: read it as an operator would."""
    same_as_golden("plan.txt", plan_text(story.plan(), PATH))


def test_the_text_of_a_blocked_plan() -> None:
    """Golden: the blocker first, and no command to apply it."""
    plan = _until(Stage.MIGRATION_MODE)
    plan = dataclasses.replace(plan, findings=(story.WARNING, story.BLOCKER))

    same_as_golden("plan-blocked.txt", plan_text(plan, PATH))


def test_a_blocker_of_a_stage_within_reach_blocks_the_plan() -> None:
    """It would be met on the way; better now."""
    blocked = dataclasses.replace(_until(Stage.MIGRATION_MODE), findings=(story.BLOCKER,))

    assert str(judge(blocked)) == "BLOCKED (1 blocker)"
    assert judge(blocked).tone is Tone.BAD


def test_a_blocker_of_a_later_stage_does_not_block_this_plan() -> None:
    """Stage 3 may be applied while stage 4 cannot."""
    plan = dataclasses.replace(_until(Stage.CONTROLLERS), findings=(story.BLOCKER,))

    assert str(judge(plan)) == "READY WITH WARNINGS (1)"


def test_a_blind_spot_of_a_blocking_check_makes_a_plan_incomplete() -> None:
    """Much becomes visible on the way, so only what the first change needs keeps the plan from beginning."""
    plan = dataclasses.replace(story.plan(), findings=story.BLIND)
    needed = dataclasses.replace(plan, findings=(dataclasses.replace(story.BLIND[0], blocks_from=int(Stage.PREPARE)),))
    beyond = dataclasses.replace(_until(Stage.SOAK), findings=(dataclasses.replace(story.BLIND[0], blocks_from=9),))

    assert str(judge(plan)) == "INCOMPLETE (2 blocking checks not made)"
    assert (may_begin(plan), may_begin(needed)) == (True, False)
    assert str(judge(needed)) == "INCOMPLETE (1 blocking check not made)"
    assert str(judge(beyond)) == "READY WITH WARNINGS (1 blind spot)"
    for text in (plan_text(plan, PATH), plan_html(plan, PATH)):
        assert "a later one stops before it acts" in " ".join(text.split())
        assert f"kraft-migrate apply {PATH}" in text
    for text in (plan_text(needed, PATH), plan_html(needed, PATH)):
        assert "make visible what could not be seen, then plan again" in text
        assert f"kraft-migrate apply {PATH}" not in text


def test_the_share_of_checks_stands_beside_the_verdict() -> None:
    """As text and HTML; a rollback, whose steps ask for themselves, has none."""
    summary = dataclasses.replace(story.plan().summary, checks=96)
    plan = dataclasses.replace(story.plan(), findings=story.BLIND, summary=summary)
    for text in (plan_text(plan, PATH), plan_html(plan, PATH)):
        assert "94 of 96 checks made; 2 could not: B-MIG-02, B-QRM-01" in " ".join(text.split())
    assert "checks made" not in plan_text(story.plan(), PATH) + plan_html(story.plan(), PATH)


def test_what_was_not_seen_is_told_once() -> None:
    """A look and the check that missed it say the same: the one that names the check stays."""
    plan = story.plan()
    missed = [line for line in blind_spots(plan) if " (for " in line]
    same = missed[0].partition(" (for ")[0]
    again = dataclasses.replace(plan, summary=dataclasses.replace(plan.summary, blind_spots=(same, "another")))
    assert blind_spots(again) == ["another", *missed]


def test_what_a_check_could_not_see_stands_among_the_blind_spots() -> None:
    """`none` there, below a count of one, would be read as a pass."""
    summary = dataclasses.replace(story.plan().summary, blind_spots=())
    plan = dataclasses.replace(story.plan(), findings=story.BLIND, summary=summary)

    section = plan_text(plan, PATH).split("Blind spots (never counted as a pass)")[1].split("What this plan")[0]
    assert "none" not in section
    for about, why, _ in unseen(plan.findings):
        assert f"{about}: {why}" in " ".join(section.split())
        assert f"<li>{about}: {why}" in plan_html(plan, PATH)


def test_ready_is_said_only_where_nothing_is_in_doubt() -> None:
    """No warning, no blind spot."""
    clear = dataclasses.replace(story.plan().summary, blind_spots=())
    plan = dataclasses.replace(story.plan(), findings=(story.INFO,), summary=clear)

    assert str(judge(plan)) == "READY"
    assert str(judge(dataclasses.replace(plan, summary=story.plan().summary))) == "READY WITH WARNINGS (1 blind spot)"


def test_a_plan_that_only_looks_says_no_changes_and_still_its_command() -> None:
    """A no-op is recognised as one; proving again is worth a command."""
    plan = _until(Stage.DISCOVER)
    text = plan_text(plan, PATH)

    assert str(judge(plan)) == "NO CHANGES"
    assert "nothing to change; to verify again:" in text
    assert f"kraft-migrate apply {PATH}\n" in text


def test_only_a_plan_with_the_point_of_no_return_asks_for_its_fingerprint() -> None:
    """And the line is drawn before the first stage behind it."""
    whole, part = story.plan(), _until(Stage.SOAK)

    assert f"--confirm {whole.fingerprint}" in plan_text(whole, PATH)
    assert "--confirm" not in plan_text(part, PATH)
    lines = [line.text for line in plan_lines(whole, PATH)]
    at = next(at for at, line in enumerate(lines) if "point of no return" in line)
    assert lines[at - 2].startswith("Stage 8 soak")
    assert lines[at + 2].startswith("Stage 9 finalize")
    assert "not in this plan" in plan_text(part, PATH)


def test_the_command_is_quoted_for_a_shell() -> None:
    """A path with a space or a quote is one word."""
    assert "apply 'my runs/it'\"'\"'s.json'" in plan_text(_until(Stage.SOAK), "my runs/it's.json")


def test_the_change_line_counts_what_happens() -> None:
    """Controllers are no files, znodes are counted apart, a restart without a rollback is both."""
    counted = {"controllers": 3, "created": 1, "changed": 6, "others": 0, "removed": 0, "restarts": 12}
    assert changes(story.plan()) == {**counted, "znodes_written": 1, "znodes_deleted": 1, "irreversible": 3}
    assert "3 IRREVERSIBLE" in changes_line(story.plan())
    assert "0 irreversible" in changes_line(_until(Stage.SOAK))


def test_findings_are_counted_by_severity_and_area() -> None:
    """And blind spots stand together by what could not be seen."""
    findings = (*story.plan().findings, story.BLOCKER)

    assert counts(findings) == "1 blocker, 1 warning, 2 blind spots, 1 info"
    assert areas(findings) == "DIR 1, MIG 1, QRM 1, VER 1, ZKN 1"
    assert unseen(findings) == [("KRaft metadata", "no controller runs yet", ["B-MIG-02", "B-QRM-01"])]


def test_the_html_is_whole_and_reaches_for_nothing() -> None:
    """Every element closed, no script, no address but anchors of its own."""
    html = plan_html(story.plan(), PATH)
    page = pages.read(html)

    assert page.faults == []
    assert set(page.attributes("href")) <= {f"#{name}" for name in page.attributes("id")}
    assert not re.search(r"https?:", html)
    assert "default-src 'none'" in html


def test_html_and_text_say_the_same() -> None:
    """Verdict, counts, every step, every table, the fingerprint."""
    plan = story.plan()
    words, text = pages.read(plan_html(plan, PATH)).words, plan_text(plan, PATH)
    claims = [
        str(judge(plan)),
        changes_line(plan),
        plan.fingerprint,
        *(step.id for step in plan.steps),
        *(row["directory.id"] for row in plan.summary.disks),
        *plan.summary.availability,
        *plan.summary.blind_spots,
        "no controller runs yet",
    ]

    for claim in claims:
        assert claim in words
        assert claim in " ".join(text.split())


HOSTILE = "</code><script>alert(1)</script>\x1b[2J\u202e\n| `x` **b** [l](http://e.example) <img src=x onerror=y>"


@pytest.mark.parametrize("severity", list(Severity))
def test_hostile_names_stay_text(severity: Severity) -> None:
    """Whatever a topic, a path or a message is named, it adds no element and no control character."""
    finding = dataclasses.replace(story.WARNING, about=HOSTILE, message=HOSTILE, severity=severity, evidence=HOSTILE)
    action = Action("~", HOSTILE, HOSTILE, (f"+{HOSTILE}",), HOSTILE)
    first = story.step(Stage.PREPARE, HOSTILE, HOSTILE, action, undo=HOSTILE, proof=HOSTILE)
    summary = dataclasses.replace(
        story.plan().summary,
        detected=HOSTILE,
        inventory={HOSTILE: 1},
        disks=({HOSTILE: HOSTILE},),
        availability=(HOSTILE,),
        blind_spots=(HOSTILE,),
        rollback=({"stage": HOSTILE},),
    )
    names = dict.fromkeys(("cluster", "cluster_id", "change", "playbook", "inventory", "tool_version"), HOSTILE)
    plan = story.plan(steps=(first,), findings=(finding,), summary=summary, **names)

    html, text = plan_html(plan, HOSTILE), plan_text(plan, HOSTILE)

    page = pages.read(html)
    assert page.faults == []
    assert page.count("script") == page.count("img") == 0
    for unsafe in ("\x1b", "\u202e"):
        assert unsafe not in html
        assert unsafe not in text
    assert "alert(1)" in page.words


def test_no_line_of_prose_is_wider_than_the_page() -> None:
    """Only commands, the change line and diffs may be."""
    wide = [line.text for line in plan_lines(story.plan(), PATH) if len(line.text) > 110]

    assert all("kraft-migrate apply" in line for line in wide)


def test_a_folded_plan_says_what_to_hold_before_the_first_change() -> None:
    """Other information is a code: a reader who has no time must not miss this one."""
    held = Finding("I-OPS-13", Severity.INFO, "the nodes' files", "Ansible writes them")
    other = Finding("I-MIG-08", Severity.INFO, "the metadata", "NONE")
    lines = plan_lines(dataclasses.replace(story.plan(), findings=(held, other)), PATH, 120)
    said = " ".join(line.text for line in lines)
    assert "I-MIG-08, I-OPS-13 (what to hold until the migration is over: configuration management)" in said


def _of_brokers(brokers: int) -> Plan:
    """The plan of a whole migration of that many brokers."""
    world = big_world(Stage.ASSESS, brokers, 100)
    assert isinstance(world.playbook, Playbook)
    made = build(world, world.playbook, target=Stage.CLEANUP, only=False, created=story.START)
    return scheduled(made, world.playbook, Durations(world.playbook.pace.node_estimate))


@pytest.mark.slow
@pytest.mark.parametrize(("brokers", "most"), [(3, 150), (30, 250)])
def test_a_plan_is_short_enough_to_be_read_and_loses_nothing(brokers: int, most: int) -> None:
    """Equal changes are folded on a terminal of 80 columns; the saved text, HTML and JSON have every step and line."""
    plan = _of_brokers(brokers)
    assert len(plan_lines(plan, PATH, 80)) <= most
    whole = (plan_text(plan, PATH), pages.read(plan_html(plan, PATH)).words, plan_to_json(plan))
    for step in plan.steps:
        assert all(step.id in text for text in whole)
    text = whole[0]
    assert all(line in text for step in plan.steps for action in step.actions for line in action.diff)


def test_the_first_and_last_lines_answer_what_a_reader_asks_first() -> None:
    """Verdict, changes, restarts, time, point of no return, command; what is asked last stands at the end again."""
    plan = _of_brokers(3)
    lines = [line.text for line in plan_lines(plan, PATH)]
    first = lines[1 : lines.index("Read-only run: nothing was changed.")]
    last = lines[lines.index("Summary") + 1 :]
    new = [line for line in last if line not in first]  # stands there alone, behind all that is to be read
    assert new[0] == f"Next:        kraft-migrate apply {PATH} --confirm {plan.fingerprint}"
    assert sum("--confirm " in line for line in lines) == 1
    assert [line.partition(":")[0] for line in last if not line.startswith(" ")] == [
        *("Verdict", "Changes", "Time", "No return", "Next")
    ]
    names = [line.partition(":")[0] for line in first if not line.startswith(" ")]
    assert names == [
        *("Verdict", "Detected", "Target", "Changes", "Cluster"),
        *("Restarts", "Time", "No return", "Next"),
    ]
    assert "12: controllers 3, migration-mode 3, kraft-mode 3, finalize 3" in "\n".join(first)
    assert "p50 55 min, p90 2 h 47 min; ends Sun 2026-03-01 23:46 UTC" in "\n".join(first)


@pytest.mark.slow
def test_a_folded_step_names_the_keys_that_differ() -> None:
    """A broker whose file changes in other keys is shown on its own."""
    text = "\n".join(line.text for line in plan_lines(_of_brokers(30), PATH, 140))
    assert "= then 27 steps the same but for broker.id, node.id, in this order: [kraft-mode/{3-29}]" in text
    assert text.count("-inter.broker.protocol.version=3.9") == 1


def test_a_step_whose_changes_are_others_is_not_folded() -> None:
    """One more key that changes is one more difference to read."""
    plan = _of_brokers(3)
    odd = next(step for step in plan.steps if step.id == "migration-mode/2")
    edit = dataclasses.replace(odd.actions[0], diff=(*odd.actions[0].diff, "+broker.rack=r2"))
    bent = dataclasses.replace(odd, actions=(edit, *odd.actions[1:]))
    steps = tuple(bent if step is odd else step for step in plan.steps)
    text = "\n".join(line.text for line in plan_lines(dataclasses.replace(plan, steps=steps), PATH))
    assert "+broker.rack=r2" in text
    assert "= then 1 step the same: [migration-mode/1]" in text


@pytest.mark.slow
def test_the_order_of_brokers_has_its_reason_and_the_leaders_that_move() -> None:
    """In every form; who leads is counted from what was seen."""
    plan = _of_brokers(3)
    rolled = [step.params["broker"] for step in plan.steps if step.kind == "roll-to-kraft"]
    assert [row["broker"] for row in plan.summary.order] == rolled
    assert sum(int(row["leaders"]) for row in plan.summary.order) == 100
    short = " ".join(" ".join(line.text for line in plan_lines(plan, PATH, 80)).split())
    assert f"broker {rolled[0]} {plan.summary.order[0]['leaders']}, broker" in short
    for text in (
        short,
        " ".join(plan_text(plan, PATH).split()),
        pages.read(plan_html(plan, PATH)).words,
        plan_to_json(plan),
    ):
        assert all(row["why"] in text for row in plan.summary.order)


def test_each_stage_has_the_time_after_which_a_step_stops() -> None:
    """The playbook's patience: without progress for so long, the run stops."""
    plan = _of_brokers(3)
    for text in (" ".join(plan_text(plan, PATH).split()), pages.read(plan_html(plan, PATH)).words):
        assert "without progress, each step" in text


def test_a_page_begins_with_what_is_in_the_way_and_else_with_time_and_actions() -> None:
    """An approver wants window, changes and rollback before the findings; whoever is held, what holds it."""
    blocker = Finding("B-DIR-08", Severity.BLOCKER, "broker 1", "m", "", "f", int(Stage.PREPARE))
    note = Finding("I-MIG-08", Severity.INFO, "the metadata", "m", "", "f", 99)
    hold = dataclasses.replace(note, code="I-OPS-13")
    plan = _of_brokers(3)
    orders = []
    for found in ((note, hold), (note, hold, blocker)):
        page = plan_html(dataclasses.replace(plan, findings=found), PATH)
        orders.append(sorted(("time", "actions", "rollback", "findings"), key=lambda name: page.index(f'id="{name}"')))
        folded = page.partition("<summary>1 info</summary>")[2].partition("</details>")[0]
        assert "I-MIG-08" in folded
        assert "I-OPS-13" not in folded, "what people must hold is not folded away"
    assert orders == [["time", "actions", "rollback", "findings"], ["findings", "time", "actions", "rollback"]]


def test_what_is_unknown_is_never_a_number() -> None:
    """A directory whose free space was not seen has no `-1`."""
    plan = _of_brokers(3)
    assert {row["free"] for row in plan.summary.disks} == {"unknown"}


@pytest.mark.slow
def test_a_step_says_what_it_requires_in_every_form_but_the_short_one() -> None:
    """Each gate a sentence, in the order in which they are asked."""
    plan = _of_brokers(3)
    rolls = [step for step in plan.steps if step.kind in ("roll-to-migration-mode", "roll-to-kraft")]
    assert all(len(step.requires) >= 8 for step in rolls)
    text, words = " ".join(plan_text(plan, PATH).split()), pages.read(plan_html(plan, PATH)).words
    saved = json.loads(plan_to_json(plan))["plan"]["steps"]
    for step, values in zip(plan.steps, saved, strict=True):
        assert values["requires"] == [*step.requires]
        assert " ".join(f"requires: {said}" for said in step.requires) in text
        assert " ".join(step.requires) in words
    assert not [line for line in plan_lines(plan, PATH, 80) if "requires" in line.text]


def test_a_znode_is_shown_with_its_version_and_its_value_before_and_after() -> None:
    """In the whole text and on the page; what the plan does not know is `unknown`."""
    made = story.step(
        Stage.COPY,
        "hand-back-control",
        "give control back",
        Action("~", "/e", "raise", znode="/controller_epoch", version=8, before="9", after="12"),
        Action("-", "/c", "delete", znode="/controller", version=0, before="broker <1>", after=NO_ZNODE),
        Action("~", "/s", "write", znode="/state", after="the same bytes, version 4"),
        Action("+", "/m", "create", znode="/migration", before=NO_ZNODE, after="no copy yet"),
    )
    plan = dataclasses.replace(story.plan(), steps=(made,))
    text, html = plan_text(plan, PATH), pages.read(plan_html(plan, PATH)).words
    for line in (
        "      version 8; before: 9; after: 12",
        "      version 0; before: broker <1>; after: no such znode",
        "      version unknown; before: unknown; after: the same bytes, version 4",
        "      version none; before: no such znode; after: no copy yet",
    ):
        assert line in text.splitlines()
    assert "/controller_epoch raise 8 9 12" in html
    assert "/controller delete 0 broker <1> no such znode" in html
    assert "/state write unknown unknown the same bytes, version 4" in html
    assert "/migration create none no such znode no copy yet" in html
    actions = json.loads(plan_to_json(plan))["plan"]["steps"][0]["actions"]
    assert [(it["version"], it["before"]) for it in actions] == [
        *((8, "9"), (0, "broker <1>"), (None, None)),
        (None, "no such znode"),
    ]


def test_an_action_that_changes_something_is_not_said_to_change_nothing() -> None:
    """The undo of a step with actions says what becomes of its effect."""
    assert not [step.id for step in _of_brokers(3).steps if step.actions and "changes nothing" in step.undo]
