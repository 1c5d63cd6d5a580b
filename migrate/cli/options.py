"""Options and openings that commands share."""

from __future__ import annotations

import functools
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.errors import UsageWrong
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.spark_where import SparkWhere

if TYPE_CHECKING:
    from migrate.observe.bundle import Bundle
    from migrate.observe.session import SparkHandle
    from migrate.observe.world import ClusterObserver
    from migrate.zookeeper.offline.reader import ZookeeperFiles

F = TypeVar("F", bound=Callable[..., Any])
RATE: Final = "migrate.cli.zookeeper_rate"
MASTER: Final = "migrate.cli.spark_master"
CONF: Final = "migrate.cli.spark_conf"
MASTERS: Final = re.compile(r"(local(\[[1-9*][0-9]*\])?|spark://[^\s/]+|yarn|k8s://\S+|sc://[^\s/;]+)\Z")
SECRETIVE: Final = re.compile(r"secret|password|token|credential|key", re.IGNORECASE)
MOST_A_SECOND: Final = 1_000_000
NO_PLAYBOOK: Final = Unknown("no playbook was given")


def output_option(command: F) -> F:
    """`--output text|json`."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(command)


def rate_option(command: F) -> F:
    """`--zookeeper-rate N`: kept in click's context, where `load_target` and `paced` find it."""

    def keep(context: click.Context, _: click.Parameter, value: int | None) -> None:
        context.meta[RATE] = value

    return click.option(
        "--zookeeper-rate",
        metavar="N",
        type=click.IntRange(1, MOST_A_SECOND),
        expose_value=False,
        callback=keep,
        help="Ask ZooKeeper for at most N znodes per second; default: the inventory's zookeeper_rate, else no limit.",
    )(command)


def rate_given() -> int | None:
    """The --zookeeper-rate of the command that runs; None where it was not given."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(RATE)


def paced(inventory: Inventory) -> Inventory:
    """The inventory with the rate that the command line asks for."""
    rate = rate_given()
    return inventory if rate is None else replace(inventory, zookeeper_rate=rate)


def spark_options(command: F) -> F:
    """`--spark-master URL`, `--spark-conf K=V`: kept in click's context, where `spark_given` finds them."""

    def keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def kept(context: click.Context, _: click.Parameter, value: Any) -> None:
            context.meta[name] = value

        return kept

    command = click.option(
        "--spark-conf",
        metavar="NAME=VALUE",
        multiple=True,
        expose_value=False,
        callback=keep(CONF),
        help="A Spark setting; repeatable.  Put secrets into spark-defaults.conf instead.",
    )(command)
    return click.option(
        "--spark-master",
        metavar="URL",
        expose_value=False,
        callback=keep(MASTER),
        help="The Spark master: local[N], spark://HOST:PORT, yarn, k8s://URL, sc://HOST:PORT; default: this host.",
    )(command)


def spark_given() -> SparkWhere:
    """Where the command that runs is to compute its comparisons; UsageWrong for a setting that is none, or secret."""
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.meta
    conf = {}
    for text in given.get(CONF) or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageWrong(f"--spark-conf takes spark.NAME=VALUE, {name!r} is none")
        if SECRETIVE.search(name):
            raise UsageWrong(
                f"{name} may be a secret, and a command line is seen by every user of the host",
                next_step="put it into spark-defaults.conf of the folder that SPARK_CONF_DIR names",
            )
        conf[name] = value
    master = given.get(MASTER)
    if master is not None and not MASTERS.match(master):
        raise UsageWrong(
            f"--spark-master takes local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST:PORT, {master!r} is none",
            next_step="docs/spark.md says what each of them needs",
        )
    return SparkWhere(conf=conf) if master is None else SparkWhere(master, conf)


def cluster_options(command: F) -> F:
    """A playbook as argument, or `--inventory FILE`."""
    command = click.option(
        "--inventory", "inventory", type=click.Path(path_type=pathlib.Path), help="Inventory of the cluster."
    )(rate_option(command))
    return click.argument("playbook", required=False, type=click.Path(path_type=pathlib.Path))(command)


class Evidence:
    """What is taken from files instead of looking: disks, ZooKeeper's tree, or everything from a bundle."""

    def __init__(
        self,
        disks: tuple[pathlib.Path, ...] = (),
        bundle: pathlib.Path | None = None,
        zookeeper: ZookeeperFiles | None = None,
    ) -> None:
        if disks and bundle is not None:
            raise UsageWrong("a bundle has its disks in it: give --disks or --from-bundle")
        if zookeeper is not None and bundle is not None:
            raise UsageWrong("a bundle has its ZooKeeper in it: give --zookeeper-files or --from-bundle")
        self.disks = disks
        self.bundle = bundle
        self.zookeeper = zookeeper
        self._read: Bundle | None = None

    @property
    def live(self) -> bool:
        """Does what is seen hold for the cluster as it is now, so that what is planned on it may be done?"""
        return self.bundle is None and self.zookeeper is None

    def read_bundle(self) -> Bundle | None:
        """The bundle, read once; None where none was given."""
        if self.bundle is not None and self._read is None:
            from migrate.observe.bundle import read_bundle

            self._read = read_bundle(str(self.bundle))
        return self._read


NONE: Final = Evidence()
FILE: Final = click.Path(path_type=pathlib.Path)
EVIDENCE: Final = (
    click.option(
        "--disks",
        type=FILE,
        metavar="FILE",
        multiple=True,
        help="Take log directories from the collector's file (or a folder of them) instead of looking; repeatable.",
    ),
    click.option(
        "--zookeeper-files",
        "folders",
        metavar="DIR",
        multiple=True,
        help="ZooKeeper's dataDir (once more for its dataLogDir): snapshots and logs are read, no server is asked.",
    ),
    click.option("--chroot", metavar="PATH", help="Kafka's chroot in the tree of --zookeeper-files."),
    click.option("--from-bundle", type=FILE, metavar="FILE", help="Read from that bundle, and nothing else."),
)


def evidence_options(command: F) -> F:
    """`--disks`, `--zookeeper-files` with `--chroot`, `--from-bundle`: given to the command as one `evidence`."""

    @functools.wraps(command)
    def with_evidence(
        *args: Any,
        disks: tuple[pathlib.Path, ...],
        folders: tuple[str, ...],
        chroot: str | None,
        from_bundle: pathlib.Path | None,
        **words: Any,
    ) -> Any:
        return command(*args, evidence=Evidence(disks, from_bundle, zookeeper_files(folders, chroot)), **words)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(EVIDENCE), with_evidence)  # type: ignore[return-value] # a wrapper of the same shape, but for what it takes away


def zookeeper_files(folders: tuple[str, ...], chroot: str | None) -> ZookeeperFiles | None:
    """The folders that were named, and the chroot in their tree; UsageWrong where the words do not go together."""
    from migrate.zookeeper.offline.reader import ZookeeperFiles

    if not folders:
        if chroot is not None:
            raise UsageWrong("--chroot goes with --zookeeper-files; a connect string has its chroot at its end")
        return None
    if chroot is not None and not chroot.startswith("/"):
        raise UsageWrong(f"a chroot begins with /, {chroot!r} does not")
    return ZookeeperFiles(folders, (chroot or "").rstrip("/"))


def load_target(
    playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence = NONE
) -> tuple[Inventory, Playbook | Unknown]:
    """The inventory, and the playbook where one was given; UsageWrong where neither was.

    A bundle has its own inventory, and maybe its playbook: one that is given is used instead.
    """
    from migrate.playbook.load import load_inventory, load_playbook, load_playbook_with_inventory

    if (bundle := evidence.read_bundle()) is not None:
        found = bundle.world.inventory if inventory is None else load_inventory(inventory)
        return found, bundle.world.playbook if playbook is None else load_playbook(playbook)
    if playbook is not None and inventory is None:
        loaded, found = load_playbook_with_inventory(playbook)
        return paced(found), loaded
    if inventory is None:
        raise UsageWrong("name a playbook, or an inventory with --inventory FILE")
    known = paced(load_inventory(inventory))
    return known, NO_PLAYBOOK if playbook is None else load_playbook(playbook, known)


@contextmanager
def observing(
    inventory: Inventory,
    playbook: Playbook | Unknown,
    *,
    spark: bool = False,
    evidence: Evidence = NONE,
    lent: SparkHandle | None = None,
) -> Iterator[ClusterObserver]:
    """An observer on the real sources, or on what was kept of them; closed at the end.

    A session that is `lent` is used instead of one of its own, and left running.
    """
    from migrate.observe.sources import Sources
    from migrate.observe.world import ClusterObserver

    with tempfile.TemporaryDirectory(prefix="kraft-migrate-", ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch) if spark else None
        bundle = evidence.read_bundle()
        if bundle is not None:
            from migrate.observe.bundled import BundledSources

            observer = ClusterObserver(BundledSources(inventory, playbook, folder, bundle))
        else:
            observer = ClusterObserver(Sources(inventory, playbook, folder))
        observer.sources.spark_where = spark_given()
        if lent is not None:
            observer.sources.use_spark(lent)
        try:
            _use(observer, evidence)
            yield observer
        finally:
            observer.close()


def _use(observer: ClusterObserver, evidence: Evidence) -> None:
    """Have the observer take what is in the files, instead of looking."""
    if evidence.disks:
        from migrate.hosts.collected import read_all

        known = [node.id for node in observer.sources.inventory.nodes]
        observer.sources.use_collected(read_all(map(str, evidence.disks), known))
    if evidence.zookeeper is not None:
        from migrate.observe.offline import open_files

        observer.sources.use_zookeeper_files(open_files(evidence.zookeeper))
