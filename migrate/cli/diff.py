"""`diff`: compare ZooKeeper with KRaft at one offset, field by field, on Spark."""

from __future__ import annotations

import json
import pathlib

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import cluster_options, load_target, observing, output_option
from migrate.errors import NotVisible

SHOWN = 40


@click.command()
@cluster_options
@output_option
def diff(playbook: pathlib.Path | None, inventory: pathlib.Path | None, output: str) -> int:
    """Compare ZooKeeper with KRaft, field by field.

    Exit code 0: equal, but for differences with a rule; 2: there are others.
    """
    from migrate.model.outcome import Unknown
    from migrate.model.world import Need

    found, loaded = load_target(playbook, inventory)
    with observing(found, loaded, spark=True) as observer:
        click.echo("Spark is being started, and both sides are read: half a minute or so", err=True)
        observer.sources.start_spark()
        world = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF}), {})
    report = world.diff
    if isinstance(report, Unknown):
        raise NotVisible(f"the two cannot be compared: {report.reason}", where=found.name)
    differences = [
        {
            "kind": entry.kind,
            "key": entry.key,
            "field": entry.field,
            "class": str(entry.cls),
            "zookeeper": entry.zookeeper,
            "kraft": entry.kraft,
            "rule": entry.rule,
        }
        for entry in report.differences
    ]
    if output == "json":
        answer = {
            "schema": 1,
            "offset": report.offset,
            "lag": report.lag,
            "counts": {kind: dict(classes) for kind, classes in report.counts.items()},
            "differences": differences,
            "unexcused": len(report.unexcused),
            "blind_spots": list(report.blind_spots),
        }
        click.echo(json.dumps(answer, indent=1))
    else:
        click.echo(f"compared at metadata offset {report.offset} (dual write was {report.lag} records behind)")
        for kind, classes in report.counts.items():
            click.echo(f"  {kind:<18} " + "  ".join(f"{name} {number}" for name, number in sorted(classes.items())))
        for row in [row for row in differences if row["class"] not in ("EXPECTED", "ACCEPTED")][:SHOWN]:
            click.echo(
                f"  {row['class']} {row['kind']} {row['key']} {row['field']}: {row['zookeeper']} / {row['kraft']}"
            )
        for spot in report.blind_spots:
            click.echo(f"  not compared: {spot}")
        click.echo(f"{len(report.unexcused)} differences outside EXPECTED")
    return EXIT_CHANGES if report.unexcused else EXIT_OK
