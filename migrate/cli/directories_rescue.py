"""`directories rescue`: free the partitions that a dead directory holds up."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import cluster_options, load_target, observing, output_option
from migrate.cli.screen import say, say_page
from migrate.model.words import plural

if TYPE_CHECKING:
    from migrate.model.inventory import Inventory
    from migrate.model.rescue import Found, Stranded
    from migrate.observe.world import ClusterObserver
    from migrate.run.rescue import Rescued

SHOWN: Final = 30
ONE_REPLICA: Final = (
    "no other replica: it has no leader until its disk is back. Repair the disk, start the broker; where it still has "
    "no leader then, this command elects one (ElectLeaders PREFERRED). A new disk has none of its records."
)


@click.command(short_help="Free the partitions that a dead directory holds up.")
@cluster_options
@click.option("--yes", is_flag=True, help="Send; without it the command is a dry run.")
@output_option
def rescue(playbook: pathlib.Path | None, inventory: pathlib.Path | None, yes: bool, output: str) -> int:
    """Free the partitions that a dead directory holds up, and put wrong directories right.

    A replica whose directory the metadata does not know (MIGRATING, UNASSIGNED, a wrong one) is not failed over when
    its disk dies: its partitions hang.  Shown are the dead directories with what proves their ids, the replicas in
    them, and which of them hold a partition up; with --yes the dead directory's true id is sent for each
    (AssignReplicasToDirs), so that the controller fails it over.  An id that nothing proves is never sent.
    Partitions whose right directory is back and that have no leader yet are elected one.

    Exit code 0: nothing is left to do; 2: shown, not sent; 3: a directory's id is not proven; 5: sent, and not proven
    by the metadata within a minute; 7: another run holds the lock.
    """
    from migrate.run.directory_proofs import proofs_of
    from migrate.run.rescue import LOOK

    found, loaded = load_target(playbook, inventory)
    proofs = proofs_of(found)
    with observing(found, loaded) as observer:
        shown = _settled(observer, proofs)
        world = observer.observe(LOOK, {})
        if output == "json":
            answer = {"schema": 1, **as_json(shown), "sent": False}
        else:
            for line in as_text(shown):
                say(line)
        something = bool(shown.brokers or shown.leaderless)
        code = EXIT_CHANGES if something else EXIT_OK
        if something and yes:
            done = _act(observer, found, shown, proofs, world)
            code = EXIT_OK
            if output == "json":
                answer |= {"sent": True, "requests": done.requests, "elected": done.elected, "freed": done.freed}
            else:
                for line in done_text(done):
                    say(line)
        elif something and output == "text":
            say("dry run; pass --yes to send")
    if output == "json":
        say_page(json.dumps(answer))
    _refuse_unproven(shown)
    return code


def _settled(observer: ClusterObserver, proofs: Any) -> Found:
    """What two looks in a row agree on: a replica that is only being created is in the first alone."""
    from migrate.errors import NotVisible
    from migrate.model.outcome import Unknown
    from migrate.model.rescue import Found, find
    from migrate.run.clock import SystemClock
    from migrate.run.rescue import LOOK

    looks: list[Found] = []
    for number in range(2):
        if number:
            SystemClock().sleep(1.0)  # a broker reports its directories within 0.5 s
        found = find(observer.observe(LOOK, {}), proofs)
        if isinstance(found, Unknown):
            raise NotVisible(found.reason, where=observer.sources.inventory.name)
        looks.append(found)
    first, last = looks
    rows = tuple(row for row in last.stranded if row in first.stranded)
    elections = tuple(entry for entry in last.leaderless if entry in first.leaderless)
    return Found(last.offset, last.dead, rows, elections, last.unseen)


def _act(observer: ClusterObserver, inventory: Inventory, shown: Found, proofs: Any, world: Any) -> Rescued:
    from migrate.kafka.controller import ActiveController
    from migrate.observe.ledgers import stands
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.journal import Journal
    from migrate.run.rescue import Rescuer

    _, finalized = stands(world)
    clock = SystemClock()
    with acting_alone(observer.sources, "directories rescue", zookeeper=not finalized) as lock:
        folder = pathlib.Path(inventory.runs) / f"rescue-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(clock.now()))}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        header = {"command": "directories rescue", "cluster": inventory.name, "shown": as_json(shown)}
        journal = Journal.begin(folder / "rescue.jsonl", clock.now(), header)
        try:
            rescuer = Rescuer(
                observer,
                ActiveController(inventory),
                clock,
                lock.still_ours,
                lambda name, data: void(journal.append(clock.now(), name, data)),
                proofs,
            )
            return rescuer.rescue(shown)
        finally:
            journal.close()


def void(_: object) -> None:
    """Take no notice of a value."""


def _refuse_unproven(shown: Found) -> None:
    from migrate.errors import RescueRefused
    from migrate.model.outcome import Unknown

    left = [row for row in shown.stranded if isinstance(row.send, Unknown)]
    if left:
        reason = left[0].send
        assert isinstance(reason, Unknown)
        raise RescueRefused(
            f"{plural(len(left), 'replica')} of broker {left[0].broker} cannot be rescued", why=reason.reason
        )
    if shown.unseen:
        raise RescueRefused("not every broker could be seen", why="; ".join(shown.unseen))


# -- words -------------------------------------------------------------------------------------------------------
def as_text(found: Found) -> Iterator[str]:
    """What was found, for a person (pure)."""
    from migrate.model.outcome import Unknown

    yield f"at metadata offset {found.offset}:"
    for entry in found.dead:
        identity = f"not proven: {entry.id.reason}" if isinstance(entry.id, Unknown) else f"directory {entry.id}"
        yield f"dead: {entry.path} of broker {entry.broker}, {identity}"
        for proof in entry.proofs:
            yield f"        {proof}"
    for line in found.unseen:
        yield f"not seen: {line}"
    hanging = [row for row in found.stranded if row.hangs]
    for row in sorted(found.stranded, key=lambda one: not one.hangs)[:SHOWN]:
        yield _row(row)
    if len(found.stranded) > SHOWN:
        yield f"... and {len(found.stranded) - SHOWN} more (--output json has them all)"
    for one in found.leaderless[:SHOWN]:
        yield f"no leader: {one.topic}-{one.partition}, whose replica on broker {one.broker} is online again"
    if not found.dead and not found.stranded and not found.leaderless:
        yield "nothing to rescue: no directory of a running broker is dead, no replica's is wrong, no leader is missing"
        yield "kraft-migrate status shows what is broken under a broker that is down"
        return
    for broker in found.brokers:
        for directory, rows in found.to_send(broker).items():
            yield f"to be sent for broker {broker}: directory {directory}, {plural(len(rows), 'replica')}"
    yield f"{plural(len(hanging), 'partition replica')} holding a partition up, of {len(found.stranded)} stranded"


def _row(row: Stranded) -> str:
    from migrate.model.ids import directory_name

    what = "HANGS" if row.hangs else "stranded"
    role = "leads" if row.leads else "in the ISR" if row.in_isr else "not in the ISR"
    alone = f"; {ONE_REPLICA}" if row.alone and row.hangs else ""
    named = directory_name(row.in_metadata) or "nothing"
    where = f"{row.topic}-{row.partition} on broker {row.broker} ({role})"
    return f"{what}  {where}: {row.kind}, the metadata says {named}{alone}"


def done_text(done: Rescued) -> Iterator[str]:
    """What was done, for a person (pure)."""
    if done.sent:
        yield f"sent: {plural(done.sent, 'replica')} in {plural(done.requests, 'request')}"
        freed = plural(done.freed, "replica")
        yield f"proven by the metadata at offset {done.offset}: {freed} that held a partition up hold it up no longer"
    if done.elected:
        yield f"elected: {plural(done.elected, 'leader')}"
    for row in done.lost[:SHOWN]:
        yield f"left: {row.topic}-{row.partition}: {ONE_REPLICA}"


def as_json(found: Found) -> dict[str, Any]:
    """What was found, as JSON takes it (pure)."""
    from migrate.model.outcome import Unknown

    def told(value: object) -> dict[str, str | None]:
        return {"id": None, "why": value.reason} if isinstance(value, Unknown) else {"id": str(value), "why": None}

    return {
        "offset": found.offset,
        "dead": [
            {"broker": entry.broker, "path": entry.path, **told(entry.id), "proofs": list(entry.proofs)}
            for entry in found.dead
        ],
        "stranded": [
            {
                "topic": row.topic,
                "topic_id": row.topic_id,
                "partition": row.partition,
                "broker": row.broker,
                "kind": row.kind.name.lower(),
                "in_metadata": row.in_metadata,
                "send": told(row.send),
                "leads": row.leads,
                "in_isr": row.in_isr,
                "alone": row.alone,
                "hangs": row.hangs,
            }
            for row in found.stranded
        ],
        "leaderless": [
            {"topic": entry.topic, "partition": entry.partition, "broker": entry.broker} for entry in found.leaderless
        ],
        "unseen": list(found.unseen),
    }
