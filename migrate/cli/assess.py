"""`assess`: read-only findings about a cluster; a connect string is enough for a useful answer."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Final

import click

from migrate.cli.answers import give_answer
from migrate.cli.errors import exit_code_of
from migrate.cli.options import (
    NO_PLAYBOOK,
    OUTPUT_FILE,
    Evidence,
    cluster_options,
    evidence_options,
    load_target,
    output_option,
    write_text,
)
from migrate.cli.screen import page_width, say, say_lines
from migrate.errors import UsageWrong

MOST_A_SECOND: Final = 1_000_000


@click.command()
@cluster_options
@click.option("--zookeeper", metavar="CONNECT", help="A connect string, with the chroot; nothing else is needed.")
@evidence_options
@click.option(
    "--target",
    type=click.Choice(["4.0", "4.1", "4.2", "4.3", "4.4"]),
    help="Also say what an upgrade to that release of Kafka meets here, after the migration.",
)
@click.option(
    "--zookeeper-rate",
    "rate",
    metavar="N",
    type=click.IntRange(1, MOST_A_SECOND),
    help="With --zookeeper: read at most N znodes per second; an inventory has zookeeper_rate.",
)
@click.option("--html", metavar="FILE", type=OUTPUT_FILE, help="Write one HTML file too.")
@output_option
def assess(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    zookeeper: str | None,
    evidence: Evidence,
    target: str | None,
    rate: int | None,
    html: pathlib.Path | None,
    output: str,
) -> int:
    """Read-only findings, with causes and fixes.

    Exit code 0: READY or READY WITH WARNINGS, every check that can block was made; 1: INCOMPLETE, no blocker was found
    and such a check could not be made (always so with --zookeeper alone); 3: BLOCKED, a blocker was found.
    """
    from migrate.cli.assessing import Subject, assessment, judged, nothing_but
    from migrate.report.assessment import ZookeeperReads, assessment_html, assessment_json, assessment_lines

    alone = _alone(zookeeper, evidence, named=playbook is not None or inventory is not None)
    if alone is None and rate is not None:
        raise UsageWrong("--zookeeper-rate is for --zookeeper", next_step="write zookeeper_rate into the inventory")
    if alone is not None:
        known = replace(nothing_but(alone), zookeeper_rate=rate)
        subject = Subject(known, NO_PLAYBOOK, evidence, alone, next_release=target)
    else:
        subject = Subject(*load_target(playbook, inventory, evidence), evidence, next_release=target)
    looked = judged(subject)
    found = assessment(looked)
    if html is not None:
        write_text(html, assessment_html(found))
    if output == "json":
        reads: ZookeeperReads = {"operations": looked.pace.operations, "most_a_second": looked.pace.rate}
        give_answer(assessment_json(found, reads))
    else:
        say_lines(assessment_lines(found, page_width()))
        if evidence.live:
            say(f"ZooKeeper was read by {looked.pace.operations:,} operations, {looked.pace}")
    return exit_code_of(found.verdict.word)


def _alone(zookeeper: str | None, evidence: Evidence, *, named: bool) -> str | None:
    """The ZooKeeper that is named and no inventory; None where there is one."""
    if zookeeper is None and evidence.bundle is None and not named:
        raise UsageWrong(
            "neither a playbook, an inventory nor a ZooKeeper was given",
            next_step="give one: PLAYBOOK, --inventory FILE, or --zookeeper HOST:PORT/CHROOT, which needs no file",
        )
    if zookeeper is not None and (named or evidence.disks or evidence.bundle is not None):
        raise UsageWrong(
            "give --zookeeper alone: playbook, inventory and bundle name a ZooKeeper themselves",
            next_step="take one of the two out",
        )
    return zookeeper
