"""`directories`: log directories of every broker, and the ledger: show, inspect, verify, assign, rescue, collector."""

from __future__ import annotations

import pathlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
from typing_extensions import TypedDict

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_BLOCKED, EXIT_CHANGES, EXIT_OK
from migrate.cli.options import (
    NONE,
    OUTPUT_FILE,
    Evidence,
    cluster_options,
    evidence_options,
    load_target,
    observing,
    output_option,
)
from migrate.cli.rescue_answer import as_json, as_text, done_text
from migrate.cli.screen import page_width, say, say_lines, say_page, say_text
from migrate.errors import NotVisible, RescueRefused, UsageWrong
from migrate.model.broker_modes import Mode
from migrate.model.disk_remedies import due_later, remedy_of, told_otherwise
from migrate.model.facts import migration_state
from migrate.model.ids import NodeId, directory_name
from migrate.model.inventory import Inventory
from migrate.model.ledger import RESERVED_STATES, Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.rescue import Found, find
from migrate.model.words import counted, plural
from migrate.model.world import Need, World

if TYPE_CHECKING:
    from migrate.observe.world import ClusterObserver
    from migrate.run.rescue import Rescued


SHOWN: Final = 50
LISTED: Final = 10  # replicas; one disk that dies has hundreds
AGAIN_SECONDS: Final = 1.0


@click.group()
def directories() -> None:
    """Log directories: show, inspect, verify, assign, rescue, collector."""


def grouped(rows: Sequence[LedgerRow], world: World) -> Iterator[tuple[str, LedgerRow]]:
    """The rows, those with the same thing to do together, which is given with the last of them; "" with the others."""
    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        mend = remedy_of(row, world)
        groups.setdefault("" if mend is None else mend.words, []).append(row)
    for words, found in groups.items():
        for row in found:
            yield words if row is found[-1] else "", row


@directories.command()
@cluster_options
@evidence_options
@output_option
def verify(playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence, output: str) -> int:
    """The ledger, replica by replica: metadata, registration and disk at one committed offset, and DescribeLogDirs.

    Lists each replica that is not as it must be now, with its state and what to do; a full ISR does not prove it.
    Replicas that are alike are one line per broker: MIGRATING until its restart into KRaft mode, or not copied yet, or
    of what nobody sees.
    A difference that a second look does not find was transient and is not reported.

    Exit code 0: every replica is VERIFIED or in a state that is expected now, and every broker reports its
    directories as they are on disk; 2: not.
    """
    found, loaded = load_target(playbook, inventory, evidence)
    with observing(found, loaded, evidence=evidence) as observer:
        world, told = settled(observer, evidence, err=output == "json")
    ledger = world.ledger
    if isinstance(ledger, Unknown):
        raise NotVisible(f"the ledger is unknown: {ledger.reason}", where=found.name)
    wrong = [row for row in ledger.rows if row.state is not ReplicaState.VERIFIED and not due_later(row, world)]
    if output == "json":
        give_answer(as_values(ledger, world, told))
    else:
        for line in as_lines(ledger, world, wrong, told):
            say(line)
    return EXIT_CHANGES if wrong or told or not ledger.rows else EXIT_OK


def looked(observer: ClusterObserver, needs: frozenset[Need], evidence: Evidence, *, err: bool) -> World:
    """One look; what is wrong with a live cluster is said first, as `status`, plans and `diff` do.

    Nothing of it where files of the collector were given: they are what is asked about.
    """
    from migrate.checks.problems import NEEDS, headline, problems
    from migrate.run.past_runs import by_journals

    if not evidence.live or evidence.disks:
        return observer.observe(needs, {})
    world = observer.observe(needs | NEEDS, by_journals(observer.sources.inventory))
    if wrong := headline(problems(world)):
        say_text(wrong, err=err)
    return world


def settled(observer: ClusterObserver, evidence: Evidence, *, err: bool) -> tuple[World, tuple[str, ...]]:
    """Observe, and list where brokers report otherwise than their disks; only what a second look confirms.

    What is being created or deleted is counted by one side first.
    """
    from migrate.run.clock import SystemClock

    needs = frozenset({Need.LEDGER, Need.LIVE})
    world = looked(observer, needs, evidence, err=err)
    told = tuple(told_otherwise(world))
    if not told or not evidence.live:
        return world, told
    SystemClock().sleep(AGAIN_SECONDS)
    again = observer.observe(needs, {})
    return again, tuple(line for line in told_otherwise(again) if line in told)


class ReplicaRow(TypedDict):
    """One replica and its state; `mend` and `send` are what to do, and the directory id to be sent, or ""."""

    topic: str
    topic_id: str
    partition: int
    broker: int
    state: ReplicaState
    on_disk: str
    in_metadata: str
    why: str
    mend: str
    send: str


class VerifyAnswer(TypedDict):
    """What `directories verify` answers; `brokers` are those that report otherwise than their disks."""

    offset: int
    counts: dict[str, int]
    replicas: list[ReplicaRow]
    brokers: Sequence[str]


def as_values(ledger: Ledger, world: World, told: Sequence[str]) -> VerifyAnswer:
    rows: list[ReplicaRow] = [
        {
            "topic": row.topic,
            "topic_id": row.topic_id,
            "partition": row.partition,
            "broker": row.broker,
            "state": row.state,
            "on_disk": row.on_disk,
            "in_metadata": row.in_metadata,
            "why": row.why,
            "mend": "" if (mend := remedy_of(row, world)) is None else mend.words,
            "send": "" if mend is None else mend.send,
        }
        for row in ledger.rows
    ]
    return {"offset": ledger.offset, "counts": ledger.counts(), "replicas": rows, "brokers": told}


def as_lines(ledger: Ledger, world: World, wrong: Sequence[LedgerRow], told: Sequence[str]) -> Iterator[str]:
    """The answer for a person: what is expected now by broker, each replica of `wrong`, what to do, and the sum.

    Where there are more than are shown, what to do comes first, with the count of each broker, and in no row again.
    """
    late = Counter((row.broker, row.state) for row in ledger.rows if due_later(row, world))
    for (broker, state), count in sorted(late.items()):
        yield f"broker {broker}: {plural(count, 'replica')} {state}: expected until its restart into KRaft mode"
    alike = Counter((row.broker, row.state, why) for row in wrong if (why := _same_why(row, ledger)))
    for (broker, state, why), count in sorted(alike.most_common(SHOWN)):
        yield f"broker {broker}: {plural(count, 'replica')} {state}: {why}"
    unseen = next((row for row in wrong if row.state is ReplicaState.UNKNOWN), None)
    if unseen is not None and (remedy := remedy_of(unseen, world)):
        yield f"    {remedy.words}"
    yield from _listed([row for row in wrong if not _same_why(row, ledger)], world)
    yield from told
    if late and not wrong:
        yield "nothing else was found; --output json has each replica"
    place = f"at metadata offset {ledger.offset}"
    if ledger.offset < 0:
        place = "and no metadata that could be read" if ledger.unknown else "before the copy into the metadata"
    yield f"{plural(len(ledger.rows), 'replica')} {place}: {counted(ledger.counts())}"


def _listed(wrong: Sequence[LedgerRow], world: World) -> Iterator[str]:
    if many := len(wrong) > LISTED:
        remedies = ((row, remedy_of(row, world)) for row in wrong)
        alike = Counter((row.broker, row.state, "" if mend is None else f": {mend.words}") for row, mend in remedies)
        for (broker, state, words), count in sorted(alike.most_common(SHOWN)):
            yield f"broker {broker}: {count} {state}{words}"
    for words, row in grouped(wrong[:LISTED], world):
        seen = "; ".join(_where(row, world))
        yield f"{row.topic}-{row.partition} @ broker {row.broker}: {row.state} ({seen})"
        if words and not many:
            yield f"    {words}"
    if many:
        yield f"... and {len(wrong) - LISTED} more (--output json has them all)"


def _same_why(row: LedgerRow, ledger: Ledger) -> str:
    """What is the same of all such replicas of a broker, which are one line; "" for one that is listed."""
    if row.state is ReplicaState.MIGRATING and ledger.offset < 0:
        return "in ZooKeeper alone, not copied to KRaft"
    return (row.why or "not seen") if row.state is ReplicaState.UNKNOWN else ""


def _where(row: LedgerRow, world: World) -> Iterator[str]:
    """Where the replica is, what the metadata names if that differs, by path if known."""
    paths = _paths(world, row.broker)
    if row.state is ReplicaState.NOT_ON_DISK:
        yield "on no disk that was seen"
    else:
        here = dict.fromkeys(paths.get(one, f"a directory of id {one or 'none'}") for one in row.on_disk.split(","))
        yield f"on {' and '.join(here)}"
    if not row.in_metadata:
        yield "not in the metadata yet"
    elif row.in_metadata in paths and row.in_metadata != row.on_disk:
        yield f"the metadata names {paths[row.in_metadata]}, id {row.in_metadata}"
    elif row.in_metadata not in {row.on_disk, *RESERVED_STATES}:
        yield f"the metadata names id {row.in_metadata}, which no disk that was seen has"
    elif (named := directory_name(row.in_metadata)) not in {row.in_metadata, row.state.value}:
        yield f"the metadata names {named}"


def _paths(world: World, broker: int) -> dict[str, str]:
    """Directory id, "" for none -> path; several of one id are all named."""
    disks = Unknown("") if isinstance(world.disks, Unknown) else world.disks.get(NodeId(broker), Unknown(""))
    found: dict[str, str] = {}
    for entry in () if isinstance(disks, Unknown) else disks.directories:
        identity = str(entry.id or "")
        found[identity] = f"{found[identity]} or {entry.path}" if identity in found else entry.path
    return found


def _broker_id(_: click.Context, __: click.Parameter, word: str) -> int:
    """The broker's id; UsageWrong for what is no number, such as the playbook that stands behind it."""
    if not word.isdecimal():
        raise UsageWrong(
            f"BROKER is a broker's id, and {word!r} is none",
            next_step="kraft-migrate directories assign BROKER PLAYBOOK, such as `directories assign 4 playbook.yaml`",
        )
    return int(word)


@directories.command()
@click.argument("broker", callback=_broker_id)
@cluster_options
@click.option("--yes", is_flag=True, help="Send; without it the command is a dry run.")
def assign(broker: int, playbook: pathlib.Path | None, inventory: pathlib.Path | None, yes: bool) -> int:
    """Send a broker's true directories (AssignReplicasToDirs), where registration and disk prove them.

    Exit code 0: sent, or nothing to send; 7: another run holds the lock; 10: the lock was lost.
    """
    from migrate.kafka.controller import ActiveController
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.drive import LOOK, MOST, Driver, to_send

    found, loaded = load_target(playbook, inventory)
    most = MOST if isinstance(loaded, Unknown) else loaded.assignments_per_request
    if broker not in {int(node.id) for node in found.brokers}:
        raise UsageWrong(
            f"there is no broker {broker} in the inventory",
            where=found.path,
            next_step=f"its brokers are {', '.join(str(int(node.id)) for node in found.brokers)}",
        )
    with observing(found, loaded) as observer:
        world = looked(observer, LOOK, NONE, err=False)
        pending, (_, finalized) = to_send(world.ledger, broker), migration_state(world)
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


@directories.command()
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
    from migrate.hosts.kafka_start import look_for_start
    from migrate.model.kafka_start import Asked, decide_start

    asked = Asked(Mode(mode), cluster_id, node_id, directories, metadata_dir or directories[0])
    found = decide_start(asked, look_for_start(asked))
    if output == "json":
        give_answer(asdict(found))
    else:
        say(found.reason if found.starts else f"Kafka would not start: {found.reason}")
        for path in found.failed:
            say(f"failed: {path}")
        for warning in found.warnings:
            say(f"warning: {warning}")
    return EXIT_OK if found.starts else EXIT_BLOCKED


@directories.command()
@cluster_options
@evidence_options
@output_option
@click.option("--html", type=OUTPUT_FILE, help="Write a page with a heat map of all directories, too.")
@click.option("--full", is_flag=True, help="Every directory, with its id, mount and registration.")
def show(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    evidence: Evidence,
    output: str,
    html: pathlib.Path | None,
    full: bool,
) -> int:
    """A line per broker: a letter per log directory, replicas, size, and least free space; below it what is not fine.

    A directory is fine that is healthy and registered, has no anomaly and no folder that a KRaft start would rename
    -stray, and whose replicas are VERIFIED, or MIGRATING before their broker's restart into KRaft mode.

    Exit code 0: every directory is known to be healthy; 2: not.
    """
    from migrate.cli.assessing import seen_at
    from migrate.cli.options import write_text
    from migrate.report.directories import ShowAnswer, directories_html, directories_lines, directory_rows
    from migrate.run.rescue import proofs_of

    found, loaded = load_target(playbook, inventory, evidence)
    needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})
    with observing(found, loaded, evidence=evidence) as observer:
        world = looked(observer, needs, evidence, err=output == "json")
        rows = directory_rows(world, proofs_of(found) if evidence.live else None)
    if html is not None:
        write_text(html, directories_html(rows, found.name, seen_at(evidence)))
    if output == "json":
        give_answer(ShowAnswer(directories=rows))
    else:
        say_lines(directories_lines(rows, page_width(), full=full))
    return EXIT_OK if all(row.healthy for row in rows) else EXIT_CHANGES


@directories.command()
def collector() -> int:
    """Print the collector: one file of Python for hosts where we have no access (copy it, read it, run it there)."""
    from importlib.resources import files

    say_page(files("migrate.hosts").joinpath("collect_disks.py").read_text(encoding="utf-8"), end="")
    return EXIT_OK


@directories.command(short_help="Free the partitions that a dead directory holds up.")
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
    by the metadata within a minute; 7: another run holds the lock; 10: the lock was lost.
    """
    from migrate.run.rescue import LOOK, proofs_of

    found, loaded = load_target(playbook, inventory)
    proofs = proofs_of(found)
    with observing(found, loaded) as observer:
        shown = _settled(observer, proofs)
        world = looked(observer, LOOK, NONE, err=output == "json")
        if output == "json":
            answer = as_json(shown)
        else:
            for line in as_text(shown):
                say(line)
        something = bool(shown.brokers or shown.leaderless)
        code = EXIT_CHANGES if something else EXIT_OK
        if something and yes:
            done = _act(observer, found, shown, proofs, world)
            code = EXIT_OK
            if output == "json":
                answer["sent"] = True
                answer["requests"], answer["elected"], answer["freed"] = done.requests, done.elected, done.freed
            else:
                for line in done_text(done):
                    say(line)
        elif something and output == "text":
            say("dry run; pass --yes to send")
    if output == "json":
        give_answer(answer)
    _refuse_unproven(shown)
    return code


def _settled(observer: ClusterObserver, proofs: Any) -> Found:
    """What two looks in a row agree on: a replica that is only being created is in the first alone."""
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
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.journal import Journal
    from migrate.run.rescue import Rescuer

    _, finalized = migration_state(world)
    clock = SystemClock()
    with acting_alone(observer.sources, "directories rescue", zookeeper=not finalized) as lock:
        folder = pathlib.Path(inventory.runs) / f"rescue-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(clock.now()))}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = {key: value for key, value in as_json(shown).items() if key != "sent"}
        header = {"command": "directories rescue", "cluster": inventory.name, "shown": found}
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
    left = [row for row in shown.stranded if isinstance(row.send, Unknown)]
    if left:
        reason = left[0].send
        assert isinstance(reason, Unknown)
        raise RescueRefused(
            f"{plural(len(left), 'replica')} of broker {left[0].broker} cannot be rescued", why=reason.reason
        )
    if shown.unseen:
        raise RescueRefused("not every broker could be seen", why="; ".join(shown.unseen))
