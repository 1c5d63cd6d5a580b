"""`directories`: log directories of every broker, and the ledger: show, verify, assign, collector."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option
from migrate.errors import NotVisible, UsageWrong
from migrate.model.words import counted, plural

SHOWN: Final = 50


@click.group()
def directories() -> None:
    """Log directories: show, verify, assign, collector."""


@directories.command()
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


def _spelled(identity: str) -> str:
    """A directory's id; the three that are none, by the names that Kafka's DirectoryId gives them."""
    from migrate.model import ids

    names = {ids.MIGRATING: "MIGRATING", ids.UNASSIGNED: "UNASSIGNED", ids.LOST: "LOST"}
    return {str(key): name for key, name in names.items()}.get(identity, identity or "nothing")


@directories.command()
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


@directories.command()
@click.argument("broker", type=int)
@cluster_options
@click.option("--yes", is_flag=True, help="Send; without it only what would be sent is shown.")
def assign(broker: int, playbook: pathlib.Path | None, inventory: pathlib.Path | None, yes: bool) -> int:
    """Send a broker's true directories (AssignReplicasToDirs), where registration and disk prove them.

    Exit code 7: another run holds the lock.
    """
    from migrate.kafka.controller import ActiveController
    from migrate.model.ids import NodeId
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.drive import LOOK, Driver, to_send

    found, loaded = load_target(playbook, inventory)
    if broker not in {int(node.id) for node in found.brokers}:
        raise UsageWrong(f"there is no broker {broker} in the inventory", where=found.path)
    with observing(found, loaded) as observer:
        pending = to_send(observer.observe(LOOK, {}).ledger, broker)
        for directory, rows in pending.items():
            click.echo(f"directory {directory}: {plural(len(rows), 'replica')}")
        if not pending:
            click.echo("nothing to send")
        elif yes:
            with acting_alone(observer.sources, f"directories assign {broker}") as lock:
                driver = Driver(observer, ActiveController(found), SystemClock(), lock.still_ours)
                click.echo(driver.drive(NodeId(broker)))
        else:
            click.echo("nothing was sent: give --yes to send")
    return EXIT_OK


@directories.command()
def collector() -> int:
    """Print the collector: one file of Python for hosts where we have no access (copy it, read it, run it there)."""
    from importlib.resources import files

    click.echo(files("migrate.hosts").joinpath("collect_disks.py").read_text(encoding="utf-8"), nl=False)
    return EXIT_OK
