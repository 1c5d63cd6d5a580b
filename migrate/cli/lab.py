"""`lab up|seed|status|down|demo`: a real cluster on this host, all of it in one folder."""

from __future__ import annotations

import functools
import os
import pathlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.cli.completion import complete_stage
from migrate.cli.options import FILE, stage_named
from migrate.cli.screen import say, say_text
from migrate.errors import LabRefused, UsageWrong
from migrate.model.config_keys import QuorumKind
from migrate.model.stage import MIGRATION
from migrate.model.views import Running

if TYPE_CHECKING:
    from migrate.lab.cluster import Lab
    from migrate.lab.from_bundle import BundleShape
    from migrate.lab.status import LabStatus


F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_DIRECTORY: Final = "kraft-migrate-lab"
SHOWN_NAMES: Final = 5  # of what a lab does not have of its bundle


dir_option: Final = click.option(
    "--dir",
    "directory",
    type=FILE,
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="The lab's folder, with every file of the cluster.",
)
kafka_home_option: Final = click.option(
    "--kafka-home",
    metavar="DIR",
    help="An unpacked Apache Kafka 3.9; without it its jars are fetched once and cached.",
)


def _open(directory: pathlib.Path) -> Lab:
    from migrate.lab.cluster import Lab

    return Lab.open(directory)


@dataclass(frozen=True, slots=True)
class LabOptions:
    """How a lab is to be made: a lab that is there stays as it was."""

    directory: pathlib.Path
    kafka_home: str | None
    executor: str
    secured: bool
    mechanism: str


EXECUTOR: Final = click.option(
    "--executor",
    type=click.Choice(["local", "ssh"]),
    default="local",
    show_default=True,
    help="How the host program is reached that works the nodes: here, or by SSH. A lab has it from the start.",
)
SECURED: Final = click.option(
    "--secured",
    is_flag=True,
    help="SASL_SSL on every listener, a principal each for brokers, controllers and this tool, ZooKeeper with SASL "
    "and ACLs; a lab has it from the start.",
)


MECHANISM: Final = click.option(
    "--mechanism",
    type=click.Choice(["PLAIN", "GSSAPI", "OAUTHBEARER"]),
    default="PLAIN",
    show_default=True,
    help="With --secured: how brokers, controllers and this tool log in. GSSAPI: by Kerberos, at ZooKeeper too, with a "
    "KDC that the lab runs (Debian's krb5-kdc). OAUTHBEARER: by tokens of an issuer that the lab runs, in sessions of "
    "a minute. A lab has it from the start.",
)


def lab_options(command: F) -> F:
    """`--dir`, `--kafka-home`, `--executor`, `--secured`, `--mechanism`: given to the command as one value."""

    @functools.wraps(command)
    def with_options(
        *args: Any,
        directory: pathlib.Path,
        kafka_home: str | None,
        executor: str,
        secured: bool,
        mechanism: str,
        **words: Any,
    ) -> Any:
        if mechanism != "PLAIN" and not secured:
            raise UsageWrong("--mechanism is for a lab with --secured: give both")
        return command(*args, chosen=LabOptions(directory, kafka_home, executor, secured, mechanism), **words)

    options = (dir_option, kafka_home_option, EXECUTOR, SECURED, MECHANISM)
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), with_options)  # type: ignore[return-value] # a wrapper of the same shape, but for what it takes away


@contextmanager
def no_run_goes_on(found: Lab) -> Iterator[None]:
    """Refuse while `apply` or `lab demo` acts on this lab: what it has just stopped must stay stopped."""
    from migrate.run.locks import LockFile

    lock = LockFile(pathlib.Path(found.inventory.runs) / "lock")
    try:
        yield
    finally:
        lock.release()


def _shape_of(bundle: pathlib.Path, brokers: int | None, partitions: int | None) -> BundleShape:
    from migrate.lab.from_bundle import MOST_BROKERS, MOST_PARTITIONS, Bounds, free_memory, shape_of
    from migrate.observe.bundle import read_bundle

    bounds = Bounds(brokers or MOST_BROKERS, partitions or MOST_PARTITIONS, free_memory())
    return shape_of(read_bundle(str(bundle)).world, bounds)


def _say_differences(found: Lab) -> None:
    """How this lab differs from the cluster of its bundle, in one list."""
    from migrate.lab.from_bundle import NEVER_COPIED
    from migrate.lab.seed_data import seed_of
    from migrate.lab.topology import SEED_FILE

    say()
    say(f"not as in the bundle (all names are in {found.topology.folder(SEED_FILE)}):")
    for line in (*(change.text(SHOWN_NAMES) for change in seed_of(found.topology).changes), *NEVER_COPIED):
        say(f"  - {line}")


@click.group()
def lab() -> None:
    """A real Apache Kafka cluster on this host: ZooKeeper, three brokers with three log directories each, seeded."""


@lab.command()
@lab_options
@click.option(
    "--from-bundle",
    "bundle",
    type=FILE,
    metavar="FILE",
    help="Make the lab in the shape of the cluster that this bundle holds, as far as a lab can have it; `lab seed` "
    "then makes its topics, configurations, quotas, users and ACLs. What differs is printed at the end.",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 9),
    help="Of a bundle: at most so many brokers; without it 5. Never more than memory allows.",
)
@click.option(
    "--partitions",
    type=click.IntRange(20, 2000),
    help="Of a bundle: at most so many partitions in all; without it 300.",
)
def up(
    chosen: LabOptions,
    bundle: pathlib.Path | None,
    brokers: int | None,
    partitions: int | None,
) -> int:
    """Make the lab, or start what of it does not run.

    Adopts what runs.  Safe to run again: it resumes after an interruption.

    Exit code 0: it runs; 7: a run goes on.
    """
    from migrate.cli.progress import ProgressLines
    from migrate.lab.cluster import Lab
    from migrate.lab.topology import Shape

    if bundle is None and (brokers or partitions):
        raise UsageWrong("--brokers and --partitions are bounds for a bundle: give --from-bundle FILE")
    lines = ProgressLines()
    shape = Shape(ssh=chosen.executor == "ssh", secured=chosen.secured, mechanism=chosen.mechanism)
    copied = _shape_of(bundle, brokers, partitions) if bundle else None
    if copied:
        shape = replace(shape, brokers=len(copied.disks), disks=copied.disks, bundled=True)
    found = Lab.create(chosen.directory, shape, chosen.kafka_home, lines.say, copied.seed if copied else None)
    if copied and not found.topology.bundled:
        raise LabRefused(
            "this lab was made without a bundle",
            where=str(chosen.directory),
            next_step="make another in an empty folder",
        )
    found.require(chosen.executor, secured=chosen.secured, mechanism=chosen.mechanism)
    with no_run_goes_on(found):
        found.up(lines.say)
    _say_next(found)
    return 0


def _say_next(found: Lab) -> None:
    say(f"inventory: {found.inventory_path}")
    if found.topology.kdc_port:
        say(f"for each command: export KRB5_CONFIG={os.environ['KRB5_CONFIG']}")
    path, folder = shlex.quote(str(found.playbook_path)), shlex.quote(str(found.topology.directory))
    after = f"plan {path}" if found.seeded() else f"lab seed --dir {folder}"
    say(f"next: kraft-migrate {after}")
    if found.topology.bundled:
        _say_differences(found)


@lab.command(short_help="Fill the lab with topics, configurations, users, ACLs, records.")
@dir_option
def seed(directory: pathlib.Path) -> int:
    """Fill the lab: topics, configurations, quotas, SCRAM users, ACLs, records, a transaction, consumer groups."""
    from migrate.cli.progress import ProgressLines
    from migrate.lab.cluster import Lab

    done = Lab.open(directory).seed(ProgressLines().say)
    say(
        f"{done.topics} topics with {done.replicas} replicas, {done.configs} dynamic configurations, "
        f"{done.quotas} quotas, {done.scram} SCRAM credentials, {done.acls} ACLs, "
        f"{done.records} records, {done.groups} consumer groups"
    )
    return 0


@lab.command(short_help="What runs, on which ports, in which mode.")
@dir_option
def status(directory: pathlib.Path) -> int:
    """What runs, on which ports, in which mode; whether the cluster is whole."""
    from migrate.lab.cluster import Lab

    say_text(as_text(Lab.open(directory).status()))
    return 0


@lab.command()
@dir_option
def down(directory: pathlib.Path) -> int:
    """Stop every process of the lab.  Nothing is deleted; `lab up` starts it again as it was.

    Exit code 0: stopped; 7: a run goes on.
    """
    from migrate.cli.progress import ProgressLines
    from migrate.lab.cluster import Lab
    from migrate.lab.load import find_load, stop_load

    lines = ProgressLines()
    found = Lab.open(directory)
    with no_run_goes_on(found):
        if isinstance(find_load(directory), Running):
            lines.say("stopping the load")
            stop_load(directory)
        found.down(lines.say)
    say(f"stopped; everything is kept in {directory}")
    return 0


@lab.command(short_help="A real migration, from start to report.")
@lab_options
@click.option(
    "--until",
    shell_complete=complete_stage,
    default="cleanup",
    metavar="STAGE",
    show_default=True,
    help="Stop after that stage, and leave the cluster running: assess, prepare, controllers, migration-mode, copy, "
    "hybrid, kraft-mode, soak, finalize or cleanup.",
)
@click.option(
    "--rollback-from",
    metavar="STAGE",
    help="Go to that stage, roll back from it, prove that nothing is lost, and migrate again, to the end or --until: "
    "controllers, half-migration-mode, migration-mode (before the copy), hybrid, half-kraft-mode, kraft-mode or soak.",
)
@click.option("--keep", is_flag=True, help="Leave the cluster running at the end.")
@click.option(
    "--no-load", "load", flag_value=False, default=True, help="Without clients that write and read all the time."
)
@click.option(
    "--quorum",
    type=click.Choice([kind.value for kind in QuorumKind]),
    default=QuorumKind.STATIC.value,
    show_default=True,
    help="The kind of the controllers' quorum (docs/support.md); a lab has it from the start.",
)
def demo(chosen: LabOptions, until: str, rollback_from: str | None, keep: bool, load: bool, quorum: str) -> int:
    """Take a real cluster through every stage, under load, ending in a report.

    Safe to run again with the same --dir: it resumes after an interruption.  Ctrl-C stops the cluster as well.

    Exit code 0: proven, or parked where --until says; 1: something does not hold; 3, 5, 6, 7 or 10: it stopped, as
    `apply` does.
    """
    from migrate.cli.demo import Demo, DemoOptions
    from migrate.cli.progress import ProgressLines

    stage = stage_named(until, MIGRATION)
    options = DemoOptions(
        chosen.directory,
        chosen.kafka_home,
        stage,
        keep,
        load,
        executor=chosen.executor,
        secured=chosen.secured,
        quorum=QuorumKind(quorum),
        mechanism=chosen.mechanism,
    )
    if rollback_from is not None:
        from migrate.cli.rollback_demo import story

        return story(options, rollback_from, ProgressLines())()
    return Demo(options, ProgressLines()).run()


def as_text(status: LabStatus) -> str:
    """The status as a table for a person (pure)."""
    lines = [
        f"lab in {status.directory}",
        f"  inventory  {status.inventory}",
        f"  zookeeper  {status.zookeeper or 'none'}",
        f"  clients    {status.bootstrap} ({status.protocol}, PLAIN, user admin)",
        "",
        f"  {'process':<18}{'state':<10}{'pid':>8}{'MB':>6}  {'ports':<14}mode",
    ]
    for process in status.processes:
        ports = ",".join(map(str, process.ports))
        due = "  (its file has changed since it was started)" if process.restart_due else ""
        pid = process.pid or "-"
        state = f"  {process.name:<18}{process.state:<10}{pid:>8}{process.memory_mb or '-':>6}"
        lines.append(f"{state}  {ports:<14}{process.mode}{due}")
    lines.append("")
    if status.brokers is None:
        lines.append("  no broker answers")
    else:
        brokers = ", ".join(map(str, status.brokers))
        lines.append(f"  brokers {brokers}; {status.partitions} partitions, {status.not_whole} not whole")
    lines.append(f"  {'seeded' if status.seeded else 'not seeded yet'}")
    return "\n".join(lines)
