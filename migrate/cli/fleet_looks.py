"""Every cluster of a fleet looked at, some side by side; what one of them raises is its own answer."""

from __future__ import annotations

import functools
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
from migrate.model.difference import DiffReport
from migrate.model.fleet import Fleet, Member, NotRead, Target
from migrate.observe.many_files import FilesPool, not_read
from migrate.observe.session import spark_session
from migrate.playbook.load import load_fleet
from migrate.report.assessment import Assessment
from migrate.report.fleet import Answer

if TYPE_CHECKING:
    from migrate.observe.session import SparkHandle

Found = Assessment | DiffReport
Look = Callable[[Subject], Found]


def assess_all(path: pathlib.Path, only: Sequence[str], at_once: int) -> tuple[Fleet, list[Answer]]:
    """The findings of every cluster, in the file's order; raises what a file that cannot be read raises."""
    fleet = _chosen(load_fleet(path), only)
    return fleet, _answers(fleet, at_once, lambda subject: assessment(judged(subject)))


def compare_all(path: pathlib.Path, only: Sequence[str], at_once: int) -> tuple[Fleet, list[Answer]]:
    """Every cluster's comparison on one Spark session, which starts while the first views are read."""
    fleet = _chosen(load_fleet(path), only)
    files = [member for member in fleet.members if member.files is not None]
    others = replace(fleet, members=tuple(member for member in fleet.members if member.files is None))
    with spark_session(spark_given()) as handle:
        found = {answer.member.name: answer for answer in _of_files(handle, files)}
        found |= {
            answer.member.name: answer for answer in _answers(others, at_once, functools.partial(_compared, handle))
        }
    return fleet, [found[member.name] for member in fleet.members]


def _of_files(handle: SparkHandle, members: Sequence[Member]) -> list[Answer]:
    """The comparisons of clusters that are named by their files: read side by side, compared by one job."""
    if not members:
        return []
    began = time.monotonic()
    pairs = [member.files for member in members if member.files is not None]
    with FilesPool(handle, min(len(pairs), os.cpu_count() or 1)) as pool:
        found = pool.compare(pairs, datetime.now(UTC).date())
    each = (time.monotonic() - began) / len(members)
    answers = [Answer(member, each, one) for member, one in zip(members, found, strict=True)]
    for answer in answers:
        say(f"{answer.member.name}: {answer.word}", err=True)
    return answers


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
                evidence = Evidence(bundle=path)
                return Subject(*load_target(None, None, evidence), evidence)
            case Target.FILES:
                return UsageWrong(
                    "files of a cluster can be compared alone",
                    where=member.where,
                    next_step="ask `fleet diff`, or name the cluster by its inventory, its playbook or a bundle",
                )
    except MigrateError as error:
        return error
    except Exception as error:  # noqa: BLE001 - as in `_answer`
        return Defect(f"{type(error).__name__}: {error}")


def _answer(member: Member, subject: Subject | MigrateError, look: Look) -> Answer:
    began = time.monotonic()
    found: Found | NotRead
    try:
        found = not_read(subject) if isinstance(subject, MigrateError) else look(subject)
    except MigrateError as error:
        found = not_read(error)
    except Exception as error:  # noqa: BLE001 - one member's damage is that member's, a defect of ours included
        found = not_read(Defect(f"{type(error).__name__}: {error}"))
    return Answer(member, time.monotonic() - began, found)
