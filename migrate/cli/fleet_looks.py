"""Every cluster of a fleet looked at, some side by side; what one of them raises is its own answer."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from migrate.cli.assessing import Subject, assessment, judged, nothing_but
from migrate.cli.diff import compared
from migrate.cli.options import NO_PLAYBOOK, Evidence, load_target, paced, spark_given
from migrate.cli.screen import say
from migrate.errors import Defect, MigrateError, UsageWrong
from migrate.model import strict_json
from migrate.model.difference import LOCAL, DiffReport
from migrate.model.inventory import Fleet, Member, NotRead, Target
from migrate.observe.codec import decode, encode
from migrate.observe.fleet import compare_members, on_executors, write_results
from migrate.observe.session import spark_session
from migrate.playbook.load import load_fleet
from migrate.report.assessment import Assessment
from migrate.report.fleet import NOT_READ, Answer

if TYPE_CHECKING:
    from migrate.observe.session import SparkHandle

Found = Assessment | DiffReport
Look = Callable[[Subject], Found]


def assess_all(path: pathlib.Path, only: Sequence[str], at_once: int) -> tuple[Fleet, list[Answer]]:
    """The findings of every cluster, in the file's order; raises what a file that cannot be read raises.

    Bundles are read by the executors of a Spark master that was named; on this host no Spark is started for them.
    """
    fleet, where = _chosen(load_fleet(path), only), spark_given()
    bundles = [member for member in fleet.members if member.target is Target.BUNDLE and where.master != LOCAL]
    others = replace(fleet, members=tuple(member for member in fleet.members if member not in bundles))
    answers = _answers(others, at_once, lambda subject: assessment(judged(subject)))
    if bundles:
        with spark_session(where) as handle:
            answers += _assessed_elsewhere(handle, bundles)
    found = {answer.member.name: answer for answer in answers}
    return fleet, [found[member.name] for member in fleet.members]


def assess_bundle(where: str) -> str:
    """On an executor: the assessment of that bundle, and the seconds that it took."""
    began, evidence = time.monotonic(), Evidence(bundle=where)
    found = assessment(judged(Subject(*load_target(None, None, evidence), evidence)))
    return json.dumps([time.monotonic() - began, encode(found)])


def _assessed_elsewhere(handle: SparkHandle, members: Sequence[Member]) -> list[Answer]:
    answers = []
    for member, said in zip(members, on_executors(handle, [one.where for one in members], assess_bundle), strict=True):
        if isinstance(said, NotRead):
            answers.append(Answer(member, 0.0, said))
        else:
            seconds, found = strict_json.loads(said, surrogates=True)
            answers.append(Answer(member, seconds, decode(Assessment, found, member.name)))
        say(f"[{len(answers)}/{len(members)}] {member.name}: {answers[-1].word}", err=True)
    return answers


def compare_all(path: pathlib.Path, only: Sequence[str], at_once: int) -> tuple[Fleet, list[Answer]]:
    """Every cluster's comparison on one Spark session, whose executors read the bundles."""
    fleet = _chosen(load_fleet(path), only)
    bundles = [member for member in fleet.members if member.target is Target.BUNDLE]
    others = replace(fleet, members=tuple(member for member in fleet.members if member not in bundles))
    with spark_session(spark_given(f"local[{max(2, min(len(bundles), os.cpu_count() or 1))}]")) as handle:
        answers = [*_of_bundles(handle, bundles), *_answers(others, at_once, functools.partial(_compared, handle))]
    found = {answer.member.name: answer for answer in answers}
    return fleet, [found[member.name] for member in fleet.members]


def _of_bundles(handle: SparkHandle, members: Sequence[Member]) -> list[Answer]:
    """The comparisons of clusters that executors read; a line to stderr for each once all have been read."""
    if not members:
        return []
    took = [0.0] * len(members)
    count = itertools.count(1)

    def done(number: int, good: bool, seconds: float) -> None:
        took[number] = seconds
        word = "read" if good else NOT_READ
        say(f"[{next(count)}/{len(members)}] {members[number].name}: {word}", err=True)

    found = compare_members(handle, members, datetime.now(UTC).date(), done)
    return [
        Answer(member, seconds, one) if isinstance(one, NotRead) else Answer(member, seconds, one.report, one.ledger)
        for member, seconds, one in zip(members, took, found, strict=True)
    ]


def write_comparisons(folder: pathlib.Path, answers: Sequence[Answer]) -> None:
    """Clusters, differences, replicas that are not VERIFIED, and counts as files."""
    reports = {answer.member.name: answer.found for answer in answers if isinstance(answer.found, DiffReport)}
    ledgers = {answer.member.name: answer.ledger for answer in answers if answer.ledger is not None}
    write_results(folder, [_cluster_row(answer) for answer in answers], reports=reports, ledgers=ledgers)


def write_assessments(folder: pathlib.Path, answers: Sequence[Answer]) -> None:
    """Clusters and findings as files."""
    findings = {answer.member.name: answer.found.findings for answer in answers if isinstance(answer.found, Assessment)}
    write_results(folder, [_cluster_row(answer) for answer in answers], findings=findings)


def _cluster_row(answer: Answer) -> dict[str, object]:
    member, found = answer.member, answer.found
    error = found if isinstance(found, NotRead) else None
    return {
        "cluster": member.name,
        "named_by": str(member.target),
        "where": member.where,
        "verdict": answer.word,
        "seconds": round(answer.seconds, 3),
        "error": error and error.id,
        "what": error and error.what,
    }


def _compared(handle: SparkHandle, subject: Subject) -> DiffReport:
    if subject.alone is not None:
        raise UsageWrong(
            "a ZooKeeper alone has nothing to be compared with",
            where=subject.alone,
            next_step="name the cluster by its inventory, its playbook or a bundle",
        )
    return compared(subject.inventory, subject.playbook, subject.evidence, handle)


def _chosen(fleet: Fleet, only: Sequence[str]) -> Fleet:
    known = [member.name for member in fleet.members]
    if unknown := [name for name in only if name not in known]:
        raise UsageWrong(f"no cluster {unknown[0]!r}: there are {', '.join(known)}", where=fleet.path)
    return replace(fleet, members=tuple(member for member in fleet.members if not only or member.name in only))


def _answers(fleet: Fleet, at_once: int, look: Look) -> list[Answer]:
    """Each member's answer; a line to stderr as soon as one is there."""
    members = fleet.members
    subjects = {member.name: _subject(member) for member in members}  # read here: options live in click's own thread
    found: dict[str, Answer] = {}
    if not members:
        return []
    with ThreadPoolExecutor(at_once, thread_name_prefix="cluster") as pool:
        begun = [pool.submit(_answer, member, subjects[member.name], look) for member in members]
        for done in as_completed(begun):
            answer = done.result()
            found[answer.member.name] = answer
            say(f"[{len(found)}/{len(members)}] {answer.member.name}: {answer.word}", err=True)
    return [found[member.name] for member in members]


def _subject(member: Member) -> Subject | MigrateError:
    """What a member's own command would be about; the error that it would end with."""
    path = pathlib.Path(member.where)
    try:
        match member.target:
            case Target.ZOOKEEPER:
                return Subject(paced(nothing_but(member.where)), NO_PLAYBOOK, Evidence(), member.where)
            case Target.INVENTORY:
                return Subject(*load_target(None, path), Evidence())
            case Target.PLAYBOOK:
                return Subject(*load_target(path, None), Evidence())
            case Target.BUNDLE:
                evidence = Evidence(bundle=member.where)
                return Subject(*load_target(None, None, evidence), evidence)
    except MigrateError as error:
        return error
    except Exception as error:  # noqa: BLE001 - as in `_answer`
        return Defect(f"{type(error).__name__}: {error}")


def _answer(member: Member, subject: Subject | MigrateError, look: Look) -> Answer:
    began = time.monotonic()
    found: Found | NotRead
    try:
        found = NotRead.of(subject) if isinstance(subject, MigrateError) else look(subject)
    except Exception as error:  # noqa: BLE001 - one member's damage is that member's, a defect of ours included
        found = NotRead.of(error)
    return Answer(member, time.monotonic() - began, found)
