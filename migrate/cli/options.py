"""Options and openings that commands share."""

from __future__ import annotations

import difflib
import functools
import getpass
import os
import pathlib
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.cli.screen import ProgressLine
from migrate.errors import BundleDamaged, SystemRefused, UsageWrong
from migrate.hosts.files import replace_file
from migrate.model.difference import LOCAL, SparkWhere
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage

if TYPE_CHECKING:
    from migrate.observe.bundle import Bundle
    from migrate.observe.session import SparkHandle
    from migrate.observe.world import ClusterObserver

F = TypeVar("F", bound=Callable[..., Any])
MASTER: Final = "migrate.cli.spark_master"
CONF: Final = "migrate.cli.spark_conf"
MASTERS: Final = re.compile(r"(local(\[[1-9*][0-9]*\])?|spark://[^\s/]+|yarn|k8s://\S+|sc://[^\s/;]+)\Z")
SECRETIVE: Final = re.compile(r"secret|password|token|credential|key", re.IGNORECASE)
NO_PLAYBOOK: Final = Unknown("no playbook was given")


OTHER: Final = "give another name"
FILE: Final = click.Path(path_type=pathlib.Path, readable=False)  # who reads it says why it cannot
output_option: Final = click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep the option's value in click's context under that name, where whoever needs it finds it."""

    def kept(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.meta[name] = value

    return kept


def spark_options(command: F) -> F:
    """`--spark-master URL`, `--spark-conf K=V`: found by `spark_given`."""
    command = click.option(
        "--spark-conf",
        metavar="NAME=VALUE",
        multiple=True,
        expose_value=False,
        callback=_keep(CONF),
        help="A Spark setting; repeatable.  Put secrets into spark-defaults.conf instead.",
    )(command)
    return click.option(
        "--spark-master",
        metavar="URL",
        expose_value=False,
        callback=_keep(MASTER),
        help="The Spark master: local[N], spark://HOST:PORT, yarn, k8s://URL, sc://HOST:PORT; default: this host.",
    )(command)


def spark_given(unnamed: str = LOCAL) -> SparkWhere:
    """Where the command that runs is to compute its comparisons, `unnamed` where nobody named a master.

    Raises UsageWrong for a setting that is none, or secret.
    """
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.meta
    conf = {}
    for text in given.get(CONF) or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageWrong(
                f"--spark-conf takes spark.NAME=VALUE, {name!r} is none", next_step="such as spark.executor.memory=4g"
            )
        if name == "spark.master":  # it decides more than Spark's own setting does, such as what executors are sent
            raise UsageWrong("spark.master is what --spark-master gives", next_step="give --spark-master URL")
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
            next_step="docs/comparison.md says what each of them needs",
        )
    return SparkWhere(unnamed if master is None else master, conf)


def cluster_options(command: F) -> F:
    """A playbook, an inventory or a run as argument, or `--inventory FILE`: found as `playbook` and `inventory`."""

    @functools.wraps(command)
    def with_cluster(*args: Any, playbook: pathlib.Path | None, inventory: pathlib.Path | None, **words: Any) -> Any:
        from migrate.cli.given import cluster_given

        playbook, inventory = cluster_given(playbook, inventory)
        return command(*args, playbook=playbook, inventory=inventory, **words)

    option = click.option("--inventory", "-i", type=FILE, help="Inventory of the cluster.")
    return click.argument("playbook", required=False, type=FILE)(option(with_cluster))  # type: ignore[return-value] # a wrapper of the same shape


class Evidence:
    """What is taken from files instead of looking: disks, or everything from a bundle, which may be named by a URI."""

    def __init__(
        self,
        disks: tuple[pathlib.Path, ...] = (),
        bundle: pathlib.Path | str | None = None,
    ) -> None:
        if disks and bundle is not None:
            raise UsageWrong("a bundle has its disks in it: give --disks or --from-bundle")
        self.disks = disks
        self.bundle = bundle
        self._read: Bundle | None = None

    @property
    def live(self) -> bool:
        """Does what is seen hold for the cluster as it is now, so that what is planned on it may be done?"""
        return self.bundle is None

    def read_bundle(self) -> Bundle | None:
        """The bundle, read once; None where none was given."""
        if self.bundle is not None and self._read is None:
            self._read = bundle_at(str(self.bundle))
        return self._read


def bundle_at(path: str) -> Bundle:
    """The bundle; BundleDamaged, with what the file is where it is another one of ours, or none is there."""
    from migrate.observe.bundle import read_bundle_at
    from migrate.playbook.document import BUNDLE, refuse_other

    try:
        return read_bundle_at(path)
    except BundleDamaged as error:
        here = pathlib.Path(path)
        create = f"kraft-migrate bundle create NAME.tar.gz {shlex.quote(path)}"
        refuse_other(BundleDamaged, BUNDLE, here, f"write a bundle: {create}")
        if "://" not in path and not here.exists():
            raise BundleDamaged(
                error.what, where=path, next_step="give the path of a bundle: `kraft-migrate bundle create` writes one"
            ) from error
        raise


def refuse_taken(file: pathlib.Path, command: str) -> None:
    """UsageWrong where a playbook or an inventory stands in the place of the file to be made."""
    from migrate.playbook.document import INVENTORY, PLAYBOOK, read_kind

    kind = read_kind(file)
    if kind in (PLAYBOOK, INVENTORY):
        named = f"--inventory {shlex.quote(str(file))}" if kind == INVENTORY else shlex.quote(str(file))
        what = f"this is {kind.name}, and the name of a new file comes first"
        raise UsageWrong(what, where=str(file), next_step=f"{command} {named}")


NONE: Final = Evidence()
EVIDENCE: Final = (
    click.option(
        "--disks",
        type=FILE,
        metavar="FILE",
        multiple=True,
        help="Take log directories from the collector's file (or a folder of them) instead of looking; repeatable.",
    ),
    click.option("--from-bundle", type=FILE, metavar="FILE", help="Read from that bundle, and nothing else."),
)


def evidence_options(command: F) -> F:
    """`--disks` and `--from-bundle`: given to the command as one `evidence`."""

    @functools.wraps(command)
    def with_evidence(
        *args: Any,
        disks: tuple[pathlib.Path, ...],
        from_bundle: pathlib.Path | None,
        **words: Any,
    ) -> Any:
        return command(*args, evidence=Evidence(disks, from_bundle), **words)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(EVIDENCE), with_evidence)  # type: ignore[return-value] # a wrapper of the same shape, but for what it takes away


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
        return found, loaded
    if inventory is None:
        raise UsageWrong(
            "neither a playbook nor an inventory was given",
            next_step="give one: PLAYBOOK, or --inventory FILE (`kraft-migrate inventory init` writes one)",
        )
    known = load_inventory(inventory)
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

    A session that is `lent` is used instead of one of its own, and left running.  On a terminal a line shows the
    progress.
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
        with closing(observer), ProgressLine.showing(partial(_in_progress, observer)):
            if evidence.disks:
                from migrate.hosts.collected import read_all

                known = [node.id for node in inventory.nodes]
                observer.sources.use_collected(read_all(map(str, evidence.disks), known))
            yield observer


def _in_progress(observer: ClusterObserver) -> str:
    """Everything that is looked at now, with what was read of ZooKeeper until now."""
    read = observer.sources.pace.operations
    return ", ".join(filter(None, (str(observer.sources.work), f"{read:,} znodes read" if read else "")))


def stage_named(name: str, among: Iterable[Stage] = Stage) -> Stage:
    """The stage of that name; UsageWrong, with the one that was probably meant, for a name that is none of them."""
    stages = {stage.label: stage for stage in among}
    if name in stages:
        return stages[name]
    close = difflib.get_close_matches(name.lower(), stages, n=1)
    advice = f"did you mean {close[0]}?" if close else "give one of these stages"
    raise UsageWrong(f"there is no stage {name!r}: {', '.join(stages)}", next_step=advice)


def account() -> str:
    """The account's name; `uid 1000` where this system knows no name for it, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


BLOCK: Final = b"\0" * 4096


class OutputPath(click.Path):
    """A file that the command writes, or with `folder` a folder that it makes, with those above it."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(path_type=pathlib.Path)
        self.folder = folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path.  Raises UsageWrong and SystemRefused as `require_room` and `require_folder` do."""
        path = super().convert(value, param, ctx)
        assert isinstance(path, pathlib.Path)
        if ctx is None or not ctx.resilient_parsing:
            (require_folder if self.folder else require_file)(path)
        return path


def require_file(path: pathlib.Path) -> None:
    """A file can be written there, in a folder that is there.

    Raises:
        UsageWrong: there is no such folder, or something else than a file has that name.
        SystemRefused: the folder takes no file: a right is missing, it is read-only, or it has no room.
    """
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageWrong(f"there is no folder {parent}", where=str(path), next_step=f"make it, or {OTHER}")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageWrong(
            "no file can be written there: it is a link, a folder or a device", where=str(path), next_step=OTHER
        )
    _require_room(parent, path)


def require_folder(path: pathlib.Path) -> None:
    """A folder can be made there, and those above it that are not there; or it is there, and takes files.

    Raises:
        UsageWrong: something else than a folder is in its way.
        SystemRefused: as `require_file`.
    """
    here = path.absolute()
    while not here.exists() and not here.is_symlink():
        here = here.parent
    if not here.is_dir():
        raise UsageWrong("no folder can be made there: a file is in its way", where=str(here), next_step=OTHER)
    _require_room(here, path)


def _require_room(folder: pathlib.Path, path: pathlib.Path) -> None:
    """A small file without a name is written there, and is gone."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(BLOCK)
    except OSError as error:
        raise SystemRefused(
            f"nothing can be written there: {error.strerror or error}",
            where=str(path),
            why="it is asked before the work, which would be lost",
        ) from error


OUTPUT_FILE: Final = OutputPath()
OUTPUT_FOLDER: Final = OutputPath(folder=True)


def write_text(path: pathlib.Path, text: str) -> None:
    """Whole or not at all; FileNotReplaced where it cannot be written, and then no draft of it stays."""
    replace_file(str(path), text.encode())
