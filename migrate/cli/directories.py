"""`directories`: log directories of every broker, and the ledger: show, inspect, verify, assign, rescue, collector."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from migrate.cli.directories_rescue import rescue
from migrate.cli.errors import EXIT_BLOCKED, EXIT_CHANGES, EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option
from migrate.cli.outputs import OUTPUT_FILE
from migrate.cli.screen import say, say_page
from migrate.errors import NotVisible, UsageWrong
from migrate.model.words import counted, plural

if TYPE_CHECKING:
    from migrate.model.ledger import Ledger, LedgerRow
    from migrate.model.world import World
    from migrate.observe.world import ClusterObserver


SHOWN: Final = 50
AGAIN_SECONDS: Final = 1.0


def _spelled(identity: str) -> str:
    """A directory's id; the three that are none, by the names that Kafka's DirectoryId gives them."""
    from migrate.model import ids

    names = {ids.MIGRATING: "MIGRATING", ids.UNASSIGNED: "UNASSIGNED", ids.LOST: "LOST"}
    return {str(key): name for key, name in names.items()}.get(identity, identity or "nothing")


def grouped(rows: Sequence[LedgerRow], world: World) -> Iterator[tuple[str, LedgerRow]]:
    """The rows, those with the same thing to do together, which is given with the last of them; "" with the others."""
    from migrate.model.remedies import remedy_of

    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        mend = remedy_of(row, world)
        groups.setdefault("" if mend is None else mend.words, []).append(row)
    for words, found in groups.items():
        for row in found:
            yield words if row is found[-1] else "", row


@click.command()
@cluster_options
@evidence_options
@output_option
def verify(playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence, output: str) -> int:
    """The ledger, replica by replica: metadata, registration and disk at one committed offset, and DescribeLogDirs.

    Lists each replica that is not VERIFIED with its state and what to do; a full ISR does not prove it.
    A difference that a second look does not find was transient and is not reported.

    Exit code 0: every replica is VERIFIED, and every broker reports its directories as they are on disk; 2: not.
    """
    from migrate.model.ledger import ReplicaState
    from migrate.model.outcome import Unknown

    found, loaded = load_target(playbook, inventory, evidence)
    with observing(found, loaded, evidence=evidence) as observer:
        world, told = settled(observer, live=evidence.live)
    ledger = world.ledger
    if isinstance(ledger, Unknown):
        raise NotVisible(f"the ledger is unknown: {ledger.reason}", where=found.name)
    wrong = [row for row in ledger.rows if row.state is not ReplicaState.VERIFIED]
    if output == "json":
        say_page(json.dumps(as_values(ledger, world, told)))
    else:
        for line in as_lines(ledger, world, wrong, told):
            say(line)
    return EXIT_CHANGES if wrong or told or not ledger.rows else EXIT_OK


def settled(observer: ClusterObserver, *, live: bool) -> tuple[World, tuple[str, ...]]:
    """Observe, and list where brokers report otherwise than their disks; only what a second look confirms.

    What is being created or deleted is counted by one side first.
    """
    from migrate.model.remedies import told_otherwise
    from migrate.model.world import Need
    from migrate.run.clock import SystemClock

    needs = frozenset({Need.LEDGER, Need.LIVE})
    world = observer.observe(needs, {})
    told = tuple(told_otherwise(world))
    if not told or not live:
        return world, told
    SystemClock().sleep(AGAIN_SECONDS)
    again = observer.observe(needs, {})
    return again, tuple(line for line in told_otherwise(again) if line in told)


def as_values(ledger: Ledger, world: World, told: Sequence[str]) -> dict[str, Any]:
    """The answer as plain values (schema version 1)."""
    from migrate.model.remedies import remedy_of

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
            "mend": "" if (mend := remedy_of(row, world)) is None else mend.words,
            "send": "" if mend is None else mend.send,
        }
        for row in ledger.rows
    ]
    return {"schema": 1, "offset": ledger.offset, "counts": ledger.counts(), "replicas": rows, "brokers": told}


def as_lines(ledger: Ledger, world: World, wrong: Sequence[LedgerRow], told: Sequence[str]) -> Iterator[str]:
    """The answer for a person: each replica that is not VERIFIED, what to do, and the sum."""
    for words, row in grouped(wrong[:SHOWN], world):
        why = f" ({row.why})" if row.why else ""
        yield (
            f"{row.state}  {row.topic}-{row.partition} on broker {row.broker}: on disk {row.on_disk or 'nowhere'}, "
            f"in the metadata {_spelled(row.in_metadata)}{why}"
        )
        if words:
            yield f"    {words}"
    if len(wrong) > SHOWN:
        yield f"... and {len(wrong) - SHOWN} more (--output json has them all)"
    yield from told
    replicas = plural(len(ledger.rows), "replica")
    yield f"{replicas} at metadata offset {ledger.offset}: {counted(ledger.counts())}"


@click.command()
@click.argument("broker", type=int)
@cluster_options
@click.option("--yes", is_flag=True, help="Send; without it the command is a dry run.")
def assign(broker: int, playbook: pathlib.Path | None, inventory: pathlib.Path | None, yes: bool) -> int:
    """Send a broker's true directories (AssignReplicasToDirs), where registration and disk prove them.

    Exit code 7: another run holds the lock.
    """
    from migrate.kafka.controller import ActiveController
    from migrate.model.ids import NodeId
    from migrate.model.outcome import Unknown
    from migrate.observe.ledgers import stands
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.drive import LOOK, MOST, Driver, to_send

    found, loaded = load_target(playbook, inventory)
    most = MOST if isinstance(loaded, Unknown) else loaded.assignments_per_request
    if broker not in {int(node.id) for node in found.brokers}:
        raise UsageWrong(f"there is no broker {broker} in the inventory", where=found.path)
    with observing(found, loaded) as observer:
        world = observer.observe(LOOK, {})
        pending, (_, finalized) = to_send(world.ledger, broker), stands(world)
        for directory, rows in pending.items():
            say(f"directory {directory}: {plural(len(rows), 'replica')}")
        if not pending:
            say("nothing to send")
        elif yes:
            purpose = f"directories assign {broker}"
            with acting_alone(observer.sources, purpose, zookeeper=not finalized) as lock:
                driver = Driver(observer, ActiveController(found), SystemClock(), lock.still_ours, most=most)
                say(driver.drive(NodeId(broker)))
        else:
            say("dry run; pass --yes to send")
    return EXIT_OK


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
    """One row per broker and directory: health, mount, identity, registration, replicas, and the ledger's counts.

    Also shown are folders that a KRaft start would rename -stray, and anomalies.
    """
    from migrate.cli.outputs import write_text
    from migrate.model.world import Need
    from migrate.report.directories import directories_html, directories_text, directory_rows

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


@click.group()
def directories() -> None:
    """Log directories: show, inspect, verify, assign, rescue, collector."""


for command in (show, inspect, verify, assign, rescue):
    directories.add_command(command)


@directories.command()
def collector() -> int:
    """Print the collector: one file of Python for hosts where we have no access (copy it, read it, run it there)."""
    from importlib.resources import files

    say_page(files("migrate.hosts").joinpath("collect_disks.py").read_text(encoding="utf-8"), end="")
    return EXIT_OK
