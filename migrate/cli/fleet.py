"""`fleet assess|diff`: many clusters from one file in one process, and one page that shows them all."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_BLOCKED, EXIT_CHANGES, EXIT_OK, exit_code_of
from migrate.cli.options import OUTPUT_FILE, output_option, spark_options
from migrate.cli.screen import page_width, say_lines

if TYPE_CHECKING:
    from migrate.model.inventory import Fleet
    from migrate.report.fleet import Answer

F = TypeVar("F", bound=Callable[..., Any])
FILE: Final = click.Path(path_type=pathlib.Path)
OPTIONS: Final = (
    click.argument("fleet", metavar="FLEET", type=FILE),
    click.option("--html", metavar="FILE", type=OUTPUT_FILE, help="Write one HTML file with all clusters too."),
    output_option,
    spark_options,
)


def fleet_options(command: F) -> F:
    """What both commands take."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(OPTIONS), command)


@click.group()
def fleet() -> None:
    """Many clusters from one file of kind Fleet: assess, diff.

    Each is named by an inventory, a ZooKeeper or a bundle.  `playbook schema Fleet` describes it.
    """


@fleet.command()
@fleet_options
def assess(fleet: pathlib.Path, html: pathlib.Path | None, output: str) -> int:
    """Read-only findings about every cluster of FLEET.

    Exit code 3: a blocker was found somewhere; else that of the first cluster that could not be read, which is 1 for
    one that is INCOMPLETE; else 0.
    """
    from migrate.cli.fleet_looks import assess_all
    from migrate.model.findings import Word

    found, answers = assess_all(fleet)
    _show(found, answers, html, output)
    return _code(answers, str(Word.BLOCKED), EXIT_BLOCKED)


@fleet.command()
@fleet_options
def diff(fleet: pathlib.Path, html: pathlib.Path | None, output: str) -> int:
    """Compare ZooKeeper with KRaft, field by field, for every cluster of FLEET, in one Spark session.

    Exit code 2: one has differences without a rule; else that of the first one that could not be compared; else 2 where
    a row changed in every comparison; else 0.
    """
    from migrate.cli.fleet_looks import compare_all
    from migrate.report.fleet import DIFFERENT

    found, answers = compare_all(fleet)
    _show(found, answers, html, output)
    return _code(answers, DIFFERENT, EXIT_CHANGES)


def _show(found: Fleet, answers: Sequence[Answer], html: pathlib.Path | None, output: str) -> None:
    from migrate.cli.options import write_text
    from migrate.report.fleet import fleet_html, fleet_json, fleet_lines

    if html is not None:
        write_text(html, fleet_html(found, answers))
    if output == "json":
        give_answer(fleet_json(found, answers))
    else:
        say_lines(fleet_lines(found, answers, page_width()))


def _code(answers: Sequence[Answer], worst: str, code: int) -> int:
    """The exit code of the worst word; a cluster without an answer never ends in 0."""
    from migrate.model.inventory import NotRead
    from migrate.report.assessment import Assessment
    from migrate.report.fleet import UNSETTLED

    if any(answer.word == worst for answer in answers):
        return code
    for answer in answers:
        if isinstance(answer.found, NotRead):
            return answer.found.exit_code
        if isinstance(answer.found, Assessment) and (ended := exit_code_of(answer.found.verdict.word)):
            return ended
    return EXIT_CHANGES if any(answer.word == UNSETTLED for answer in answers) else EXIT_OK
