"""`directories verify`: the ledger, replica by replica."""

from __future__ import annotations

import json
import pathlib
from typing import Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option
from migrate.errors import NotVisible
from migrate.model.words import counted, plural

SHOWN: Final = 50


def _spelled(identity: str) -> str:
    """A directory's id; the three that are none, by the names that Kafka's DirectoryId gives them."""
    from migrate.model import ids

    names = {ids.MIGRATING: "MIGRATING", ids.UNASSIGNED: "UNASSIGNED", ids.LOST: "LOST"}
    return {str(key): name for key, name in names.items()}.get(identity, identity or "nothing")


@click.command()
@cluster_options
@evidence_options
@output_option
def verify(playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence, output: str) -> int:
    """The ledger, replica by replica.  Exit code 2 where one is not VERIFIED."""
    from migrate.model.ledger import ReplicaState
    from migrate.model.outcome import Unknown
    from migrate.model.world import Need

    found, loaded = load_target(playbook, inventory, evidence)
    with observing(found, loaded, evidence=evidence) as observer:
        world = observer.observe(frozenset({Need.LEDGER}), {})
    ledger = world.ledger
    if isinstance(ledger, Unknown):
        raise NotVisible(f"the ledger is unknown: {ledger.reason}", where=found.name)
    wrong = [row for row in ledger.rows if row.state is not ReplicaState.VERIFIED]
    if output == "json":
        rows = [
            {
                "topic": row.topic,
                "topic_id": row.topic_id,
                "partition": row.partition,
                "broker": row.broker,
                "state": str(row.state),
                "on_disk": row.on_disk,
                "in_metadata": row.in_metadata,
                "why": row.why,
            }
            for row in ledger.rows
        ]
        click.echo(json.dumps({"schema": 1, "offset": ledger.offset, "counts": ledger.counts(), "replicas": rows}))
    else:
        for row in wrong[:SHOWN]:
            why = f" ({row.why})" if row.why else ""
            click.echo(
                f"{row.state}  {row.topic}-{row.partition} on broker {row.broker}: on disk {row.on_disk or 'nowhere'}, "
                f"in the metadata {_spelled(row.in_metadata)}{why}"
            )
        if len(wrong) > SHOWN:
            click.echo(f"... and {len(wrong) - SHOWN} more (--output json has them all)")
        replicas = plural(len(ledger.rows), "replica")
        click.echo(f"{replicas} at metadata offset {ledger.offset}: {counted(ledger.counts())}")
    return EXIT_CHANGES if wrong or not ledger.rows else EXIT_OK
