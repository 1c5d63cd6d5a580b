"""The report of a run as HTML."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from migrate.errors import MigrateError
from migrate.model.history import Event
from migrate.report.markup import environment
from migrate.report.run_pages import changed_files, run_html
from migrate.report.run_report import build
from migrate.report.run_values import Cell, Extra, LedgerMoment, RunReport, figures, run_answer, run_json
from tests.report import pages, story
from tests.report.golden import same_as_golden
from tests.report.test_plan_text import HOSTILE


def _whole() -> RunReport:
    return build(story.plan(), story.journal(), story.load(), story.extra())


def _reports() -> dict[str, RunReport]:
    plan = story.plan()
    return {
        "whole": _whole(),
        "nothing": build(plan, []),
        "begun": build(plan, story.journal(until="prepare/back-up-zookeeper")),
        "open": build(
            plan, story.journal(until="kraft-mode/roll-to-kraft/3"), story.load(gaps=(), leaderless=(), short=())
        ),
    }


@pytest.mark.parametrize("name", list(_reports()))
def test_the_page_is_whole_at_every_state_of_a_run(name: str) -> None:
    """Every element closed, nothing fetched, every anchor has its place, the verdict before all else."""
    report = _reports()[name]
    html = run_html(report)
    page = pages.read(html)

    assert page.faults == []
    assert set(page.attributes("href")) <= {f"#{target}" for target in page.attributes("id")}
    assert not re.search(r"https?:", html)
    assert page.words.index(str(report.verdict)) < page.words.index("Claims")


def _text(report: RunReport) -> str:
    """The page's words, one text of it in each line."""
    found = (" ".join(text.split()) for text in pages.read(run_html(report)).text)
    return "".join(f"{text}\n" for text in found if text)


def test_the_words_of_a_whole_run() -> None:
    """Golden: read it as an auditor would."""
    same_as_golden("run.txt", _text(_whole()))


def test_the_words_of_a_run_that_goes_on() -> None:
    """Golden: what is open is said to be open."""
    same_as_golden("run-open.txt", _text(_reports()["open"]))


ACTING = "# owned\n\n## owned\n[l](http://e.example) <script>x</script> **b** | \x1b[2J\u202e\ud800\u200b"


def _texts(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all texts in a journal line's data, keys of its own too; a list's entries have one path."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, (*path, key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, (*path, "*"))


def _bent(value: Any, path: tuple[str, ...]) -> Any:
    if not path:
        return ACTING if isinstance(value, str) else value
    head, rest = path[0], path[1:]
    if head == "*" and isinstance(value, list | tuple):
        return [_bent(part, rest) for part in value]
    if isinstance(value, dict) and head in value:
        return {**value, head: _bent(value[head], rest)}
    return value


@pytest.mark.slow
def test_no_text_of_a_journal_becomes_markup_whichever_it_is() -> None:
    """Each text of each kind of line in turn, in a journal with right sums: refused by name, or shown spelled out."""
    events = story.journal()
    every = sorted({(event.name, path) for event in events for path in _texts(dict(event.data))})
    assert len(every) > 40
    shown = 0
    for name, path in every:
        bent = [replace(event, data=_bent(dict(event.data), path)) if event.name == name else event for event in events]
        try:
            report = build(story.plan(), bent, story.load(), story.extra())
        except MigrateError:
            continue
        shown += 1
        html = run_html(report)
        acting = {char for char in html if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
        assert acting == set(), (name, path)
        assert pages.read(html).count("script") == 0, (name, path)
    assert shown > 40


@pytest.mark.parametrize("name", ["nothing", "begun"])
def test_a_page_of_hardly_anything(name: str) -> None:
    """Each section says that it is empty."""
    text = pages.read(run_html(_reports()[name])).words

    assert "The journal holds no ledger." in text
    assert "The journal holds no comparison." in text
    assert "This report judges no load" in text
    assert "Nothing was changed." in text


def test_the_page_says_it_all() -> None:
    """Claims, restarts, ledger, comparison, changes, blind spots."""
    report = _whole()
    words = pages.read(run_html(report)).words
    claims = [
        *(claim.text for claim in report.claims),
        *(step.id for step in report.steps),
        *(cell.path for cell in report.ledgers[-1].cells),
        "all 36 replicas VERIFIED",
        "a dynamic sasl.jaas.config is not copied",
        "+process.roles=broker",
        "ssl.keystore.password=(sensitive)",
        *report.blind_spots,
        report.journal,
    ]

    for claim in claims:
        assert claim in words


def test_a_proof_that_fails_is_seen_at_a_glance() -> None:
    """The tone of the verdict, the claim and the broker's panel."""
    states = {1: {"VERIFIED": 10}, 2: {"VERIFIED": 9, "LOST": 1}}
    cells = [{"broker": broker, "directory": "d", "path": "/d", "states": found} for broker, found in states.items()]
    events = [event for event in story.journal() if event.name != "ledger"]
    events.append(Event(999, events[-1].time, "ledger", {"step": "x", "offset": 9, "engine": "pure", "cells": cells}))
    events.append(Event(1000, events[-1].time, "end", {}))
    html = run_html(build(story.plan(), events, None, Extra(True)))
    words = pages.read(html).words

    assert '<div class="verdict bad"><strong>NOT PROVEN (1)</strong>' in html
    assert "9 of 10 VERIFIED, 1 LOST" in words
    assert words.index("Broker 2 · 9 of 10") < words.index("Broker 1 · all 10")


def test_a_big_cluster_folds() -> None:
    """Brokers that are whole go under one line; those that are not stay in sight."""
    cells = tuple(
        Cell(str(broker), "d", "/data", {"VERIFIED": 40} if broker != 17 else {"VERIFIED": 39, "MISMATCH": 1})
        for broker in range(1, 61)
    )
    report = dataclasses.replace(_whole(), ledgers=(LedgerMoment(story.START, "soak/soak", 900, "spark", cells),))
    page = pages.read(run_html(report))

    assert page.faults == []
    assert "59 brokers, each with every replica VERIFIED" in page.words
    assert page.words.index("Broker 17 ·") < page.words.index("59 brokers, each")


def test_panels_beyond_six_directories_are_folded() -> None:
    """Six directories are in sight; of nine, whole ones go under one line; of what is not whole the first stays."""
    six = dataclasses.replace(_whole(), ledgers=(_ledger({1: 3, 2: 3}, "VERIFIED"),))
    assert "every replica VERIFIED" not in pages.read(run_html(six)).words
    assert "3 brokers, each with every replica VERIFIED" in pages.read(run_html(_whole())).words
    odd = dataclasses.replace(_whole(), ledgers=(_ledger({1: 3, 2: 3, 3: 3}, "MIGRATING"),))
    assert "1 broker, each with replicas that are not VERIFIED" in pages.read(run_html(odd)).words


def _ledger(directories: dict[int, int], state: str) -> LedgerMoment:
    cells = [
        Cell(str(broker), f"d{n}", f"/d{n}", {state: 2})
        for broker, number in directories.items()
        for n in range(number)
    ]
    return LedgerMoment(story.START, "soak/soak", 900, "spark", tuple(cells))


def test_a_narrow_page_hides_nothing() -> None:
    """Heads of tables whose rows become blocks, and what jumps on paper; figures shrink."""
    css = environment().get_template("style.css.jinja").render()
    hidden = {one.strip() for one in re.findall(r"([^{};]+)\{ display: none", css)}
    assert hidden == {".findings thead", ".map thead", "nav"}


def test_the_five_numbers_stand_first() -> None:
    """Records, the longest gap, restarts, downtime, replicas: before the claims, and in the JSON."""
    report = _whole()
    words = pages.read(run_html(report)).words
    for name, value in (
        ("Records", "24,090 acknowledged, 0 lost"),
        ("Longest client gap", "2.6 s"),
        ("Restarts", "10"),
        ("Downtime per broker", "at most 3.1 s"),
        ("Replicas VERIFIED", "324 of 324"),
    ):
        assert words.index(f"{name} {value}") < words.index("Every planned step")
        assert {"name": name, "value": value} in [
            {key: entry[key] for key in ("name", "value")} for entry in run_answer(report)["figures"]
        ]


def test_a_number_that_nobody_measured_is_not_a_zero() -> None:
    """No load, no ledger, a downtime that no session saw whole."""
    found = {one.name: one for one in figures(build(story.plan(), []))}
    assert [found[name].value for name in ("Records", "Longest client gap", "Replicas VERIFIED")] == [
        "not measured",
        "not measured",
        "not computed",
    ]
    assert "1 downtime not observed" in {one.name: one for one in figures(_whole())}["Downtime per broker"].detail
    unread = build(story.plan(), story.journal(), story.load(read=0), story.extra())
    assert figures(unread)[0].value == "24,090 acknowledged, losses not known"


def test_equal_changes_of_files_are_shown_once_with_the_lines_that_differ() -> None:
    """The JSON has each file's own."""
    report = _whole()
    html = run_html(report)
    assert html.count("+zookeeper.metadata.migration.enable=true") == 1
    assert "but for -broker.id=2" in pages.read(html).words
    assert run_json(report).count('"+zookeeper.metadata.migration.enable=true"') == 3
    alone = dataclasses.replace(report, hosts=report.hosts[:2])
    files = [file.path for host in alone.hosts for file in host.files]
    assert [one.file.path for one in changed_files(alone)] == files


def test_differences_stand_in_the_page_with_their_cause() -> None:
    """Both values with their places; a comparison without one has no such table."""
    sample = {
        "about": "DIFFERS topic-config orders retention.ms",
        "zookeeper": "1 (/config/topics/orders, mzxid 7)",
        "kraft": "2 (image at metadata offset 500)",
        "cause": "the znode was written past Kafka",
        "what_to_do": "repeat the change",
    }
    data = {"step": "hybrid/compare", "counts": {"topic-config": {"DIFFERS": 1}}, "unexcused": 1}
    with_one = Event(0, story.START, "diff", {**data, "samples": [sample]})
    report = build(story.plan(), [with_one])
    words = pages.read(run_html(report)).words

    assert all(text in words for text in (*sample.values(), "Likely cause"))
    assert "Likely cause" not in pages.read(run_html(_whole())).words


def test_hostile_names_stay_text() -> None:
    """A cluster may name things as it likes; it adds no element, no markup and no control character."""
    plan = story.plan(cluster=HOSTILE, cluster_id=HOSTILE, change=HOSTILE)
    path = "kraft-mode/roll-to-kraft/1"
    cell = {"broker": HOSTILE, "directory": HOSTILE, "path": HOSTILE, "states": {HOSTILE: 1, "LOST": 2}}
    sample = dict.fromkeys(("about", "zookeeper", "kraft", "cause", "what_to_do"), HOSTILE)
    diff = {"counts": {HOSTILE: {"DIFFERS": 3}}, "unexcused": 3, "expected": {HOSTILE: 1}, "blind_spots": [HOSTILE]}
    diff["samples"] = [sample]
    waiting: dict[str, object] = {"what": HOSTILE, "owner": HOSTILE, "next": HOSTILE}
    data: list[tuple[str, dict[str, object]]] = [
        ("run", {"host": HOSTILE}),
        ("session", {"host": HOSTILE, "pid": HOSTILE}),
        ("intend", {"stage": "kraft-mode", "title": HOSTILE}),
        ("waiting", waiting),
        ("effect", {"effect": "stop", "node": HOSTILE, "detail": HOSTILE}),
        ("effected", {"effect": "start", "node": HOSTILE, "detail": HOSTILE}),
        ("diff-file", {"node": HOSTILE, "path": HOSTILE, "lines": [f"+{HOSTILE}", "```"]}),
        ("ledger", {"engine": HOSTILE, "cells": [cell]}),
        ("diff", diff),
        ("note", {"key": HOSTILE, "value": HOSTILE}),
        ("conclude", {"stage": "kraft-mode", "outcome": "Failed", "reason": HOSTILE, "evidence": [HOSTILE]}),
        ("stop", {"reason": HOSTILE}),
    ]
    events = [Event(at, story.START + at, name, {"step": path, **more}) for at, (name, more) in enumerate(data)]
    load = story.load(
        gaps=((story.START, 1.0, HOSTILE),),
        leaderless=((story.START, 1.0, HOSTILE, HOSTILE),),
        short=((story.START, 1.0, HOSTILE, HOSTILE),),
    )
    report = build(plan, events, load, Extra(None, HOSTILE, blind_spots=(HOSTILE,)))

    html = run_html(report)

    page = pages.read(html)
    assert page.faults == []
    assert page.count("script") == page.count("img") == 0
    for unsafe in ("\x1b", "\u202e"):
        assert unsafe not in html
