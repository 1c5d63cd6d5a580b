"""`directories inspect`: what Kafka would do with this host's directories at a start."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from migrate.cli.errors import EXIT_BLOCKED, EXIT_OK
from migrate.cli.options import output_option
from migrate.cli.screen import say, say_page


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--mode",
    type=click.Choice(["zookeeper", "migration", "kraft"]),
    required=True,
    help="How it would be started; migration: ZooKeeper mode with zookeeper.metadata.migration.enable=true.",
)
@click.option("--cluster-id", required=True, metavar="ID", help="Spell it --cluster-id=ID: ids may begin with a dash.")
@click.option("--node-id", required=True, type=click.IntRange(0, 2**31 - 1), metavar="N", help="broker.id or node.id.")
@click.option("--metadata-dir", metavar="DIR", help="metadata.log.dir; default: the first DIR.")
@output_option
def inspect(
    directories: tuple[str, ...], mode: str, cluster_id: str, node_id: int, metadata_dir: str | None, output: str
) -> int:
    """What Kafka 3.9 would do at a start on these log directories of this host: no cluster is asked, nothing changed.

    DIRs are log.dirs in their order and spelling.  Told are the directories that would count as failed, and what
    Kafka takes in silence and we doubt.  Run it as Kafka's own user, and from where Kafka is started if a path is
    not absolute.

    Exit code 0: it would start; 3: it would not.
    """
    from migrate.hosts.kafka_start import Asked, decide_start
    from migrate.hosts.start_look import look_for_start
    from migrate.model.broker_modes import Mode

    asked = Asked(Mode(mode), cluster_id, node_id, directories, metadata_dir or directories[0])
    found = decide_start(asked, look_for_start(asked))
    if output == "json":
        say_page(json.dumps(asdict(found), indent=1))
    else:
        say(found.reason if found.starts else f"Kafka would not start: {found.reason}")
        for path in found.failed:
            say(f"failed: {path}")
        for warning in found.warnings:
            say(f"warning: {warning}")
    return EXIT_OK if found.starts else EXIT_BLOCKED
