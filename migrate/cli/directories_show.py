"""`directories show`: one row a broker and directory."""

from __future__ import annotations

import json
import pathlib

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option
from migrate.cli.outputs import OUTPUT_FILE
from migrate.cli.screen import say_page


@click.command()
@cluster_options
@evidence_options
@output_option
@click.option("--html", type=OUTPUT_FILE, help="Write a page with a picture of disks, too.")
def show(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    evidence: Evidence,
    output: str,
    html: pathlib.Path | None,
) -> int:
    """One row a broker and directory: health, mount, identity, registration, replicas, and the ledger's counts.

    Told are also folders that a KRaft start would rename -stray, and what is odd.
    """
    from migrate.cli.planning import write_text
    from migrate.model.world import Need
    from migrate.report.directories_text import directories_text
    from migrate.report.directory_rows import directory_rows
    from migrate.report.directory_table import directories_html

    found, loaded = load_target(playbook, inventory, evidence)
    needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})
    with observing(found, loaded, evidence=evidence) as observer:
        rows = directory_rows(observer.observe(needs, {}))
    if html is not None:
        write_text(html, directories_html(rows, found.name))
    if output == "json":
        say_page(json.dumps({"schema": 1, "directories": [row.as_json() for row in rows]}, indent=1))
    else:
        say_page(directories_text(rows))
    return EXIT_OK
