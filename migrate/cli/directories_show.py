"""`directories show`: one row a broker and directory."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option


@click.command()
@cluster_options
@evidence_options
@output_option
def show(playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence, output: str) -> int:
    """One row a broker and directory: health, identity, replicas, and the ledger's counts."""
    from migrate.model.world import Need

    found, loaded = load_target(playbook, inventory, evidence)
    needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})
    with observing(found, loaded, evidence=evidence) as observer:
        rows = list(_directories(observer.observe(needs, {})))
    if output == "json":
        click.echo(json.dumps({"schema": 1, "directories": rows}, indent=1))
        return EXIT_OK
    for row in rows:
        states = ", ".join(f"{state} {count}" for state, count in row["ledger"].items()) or "-"
        click.echo(
            f"broker {row['broker']}  {row['path']}  {row['health']}  meta {row['meta']}  id {row['directory_id']}  "
            f"registered {row['registered']}  replicas {row['replicas']}  {row['bytes']} bytes  {states}"
        )
        for oddity in row["oddities"]:
            click.echo(f"    {oddity}")
    return EXIT_OK


def _directories(world: Any) -> Iterator[dict[str, Any]]:
    from migrate.model.ledger import count_states
    from migrate.model.outcome import Unknown
    from migrate.model.views import MetaProperties

    for node in world.inventory.brokers:
        disks = world.disks[node.id]
        if isinstance(disks, Unknown):
            yield {"broker": int(node.id), "path": "?", "health": f"unknown: {disks.reason}", **_nothing()}
            continue
        rows = () if isinstance(world.ledger, Unknown) else world.ledger.of(node.id)
        registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
        for entry in disks.directories:
            identity = str(entry.id or "-")
            listed = "unknown" if registration is None else "yes" if entry.id in registration.log_dirs else "no"
            meta = entry.meta
            yield {
                "broker": int(node.id),
                "path": entry.path,
                "health": entry.health,
                "mount": entry.mount,
                "filesystem": entry.filesystem,
                "free_bytes": entry.free_bytes,
                "meta": f"V{meta.version}" if isinstance(meta, MetaProperties) else type(meta).__name__,
                "cluster_id": meta.cluster_id if isinstance(meta, MetaProperties) else None,
                "directory_id": identity,
                "registered": listed,
                "replicas": sum(kind == "current" for kind in entry.replicas.kind),
                "bytes": sum(entry.replicas.size),
                "metadata_log": entry.holds_metadata_log,
                "oddities": list(entry.oddities),
                "ledger": count_states(row for row in rows if row.on_disk == identity),
            }


def _nothing() -> Mapping[str, Any]:
    return {
        "meta": "?",
        "directory_id": "?",
        "registered": "?",
        "replicas": 0,
        "bytes": 0,
        "ledger": {},
        "oddities": [],
    }
