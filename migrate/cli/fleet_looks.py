"""Every cluster of a fleet looked at, some side by side; what one of them raises is its own answer."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from migrate.cli.assessing import Subject, assessment, judged, nothing_but
from migrate.cli.diff import compared
from migrate.cli.options import NO_PLAYBOOK, Evidence, load_target, spark_given
from migrate.cli.screen import say
from migrate.errors import Defect, MigrateError, UsageWrong
from migrate.model import strict_json
from migrate.model.codec import decode, encode
from migrate.model.difference import LOCAL, DiffReport
from migrate.model.inventory import Fleet, Member, NotRead, Target
from migrate.observe.fleet import compare_members, on_executors
from migrate.observe.session import spark_session
from migrate.playbook.load import load_fleet
from migrate.report.assessment import Assessment
from migrate.report.fleet import Answer

if TYPE_CHECKING:
    from migrate.observe.session import SparkHandle

AT_ONCE: Final = 4  # clusters that are asked over the network
Found = Assessment | DiffReport
Look = Callable[[Subject], Found]


def assess_all(path: pathlib.Path) -> tuple[Fleet, list[Answer]]:
    """The findings of every cluster, in the file's order; raises what a file that cannot be read raises.

    Bundles are read by the executors of a Spark master that was named; on this host no Spark is started for them.
    """
    fleet, where = load_fleet(path), spark_given()
    bundles, others = _apart(fleet) if where.master != LOCAL else ([], list(fleet.members))
    answers = _answers(others, lambda subject: assessment(judged(subject)))
    if bundles:
        with spark_session(where) as handle:
            said = on_executors(handle, [member.where for member in bundles], assess_bundle)
        answers += _told([_assessed(*pair) for pair in zip(bundles, said, strict=True)])
    return fleet, _in_order(fleet, answers)


def assess_bundle(where: str) -> str:
    """On an executor: the assessment of that bundle, and the seconds that it took."""
    began, evidence = time.monotonic(), Evidence(bundle=where)
    found = assessment(judged(Subject(*load_target(None, None, evidence), evidence)))
    return json.dumps([time.monotonic() - began, encode(found)])


def _assessed(member: Member, said: str | NotRead) -> Answer:
    if isinstance(said, NotRead):
        return Answer(member, 0.0, said)
    seconds, found = strict_json.loads(said, surrogates=True)
    return Answer(member, seconds, decode(Assessment, found, member.name))


def compare_all(path: pathlib.Path) -> tuple[Fleet, list[Answer]]:
    """Every cluster's comparison on one Spark session, whose executors read the bundles."""
    fleet = load_fleet(path)
    bundles, others = _apart(fleet)
    with spark_session(spark_given(f"local[{max(2, min(len(bundles), os.cpu_count() or 1))}]")) as handle:
        found = compare_members(handle, bundles, datetime.now(UTC).date()) if bundles else []
        answers = _told(
            [
                Answer(member, seconds, one)
                if isinstance(one, NotRead)
                else Answer(member, seconds, one.report, one.ledger)
                for member, (seconds, one) in zip(bundles, found, strict=True)
            ]
        )
        answers += _answers(others, functools.partial(_compared, handle))
    return fleet, _in_order(fleet, answers)


def _apart(fleet: Fleet) -> tuple[list[Member], list[Member]]:
    """Bundles, and what is asked over the network."""
    bundles = [member for member in fleet.members if member.target is Target.BUNDLE]
    return bundles, [member for member in fleet.members if member not in bundles]


def _in_order(fleet: Fleet, answers: Sequence[Answer]) -> list[Answer]:
    found = {answer.member.name: answer for answer in answers}
    return [found[member.name] for member in fleet.members]


def _told(answers: list[Answer]) -> list[Answer]:
    """A line to stderr for each, once all are there."""
    for number, answer in enumerate(answers, 1):
        say(f"[{number}/{len(answers)}] {answer.member.name}: {answer.word}", err=True)
    return answers


def _compared(handle: SparkHandle, subject: Subject) -> DiffReport:
    if subject.alone is not None:
        raise UsageWrong(
            "a ZooKeeper alone has nothing to be compared with",
            where=subject.alone,
            next_step="name the cluster by its inventory or a bundle",
        )
    return compared(subject.inventory, subject.playbook, subject.evidence, handle)


def _answers(members: Sequence[Member], look: Look) -> list[Answer]:
    """Each member's answer; a line to stderr as soon as one is there."""
    subjects = {member.name: _subject(member) for member in members}  # read here: options live in click's own thread
    found: list[Answer] = []
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cluster") as pool:
        begun = [pool.submit(_answer, member, subjects[member.name], look) for member in members]
        for done in as_completed(begun):
            found.append(done.result())
            say(f"[{len(found)}/{len(members)}] {found[-1].member.name}: {found[-1].word}", err=True)
    return found


def _subject(member: Member) -> Subject | MigrateError:
    """What a member's own command would be about; the error that it would end with."""
    try:
        match member.target:
            case Target.ZOOKEEPER:
                return Subject(nothing_but(member.where), NO_PLAYBOOK, Evidence(), member.where)
            case Target.INVENTORY:
                return Subject(*load_target(None, pathlib.Path(member.where)), Evidence())
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
