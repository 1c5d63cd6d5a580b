"""`backup`: the ZooKeeper tree in a file: create, and restore in part."""

from __future__ import annotations

import hashlib
import pathlib
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import FILE, OTHER, cluster_options, load_target, observing, refuse_taken, require_file
from migrate.cli.screen import say
from migrate.errors import BackupUnreadable, InputError, UsageWrong
from migrate.model.secrets import Digester

if TYPE_CHECKING:
    from migrate.observe.world import ClusterObserver
    from migrate.zookeeper.backup import ZnodeDifference

SHOWN: Final = 200


file_argument: Final = click.argument("file", type=FILE)


@click.group()
def backup() -> None:
    """Back up the ZooKeeper tree, and restore parts of it.

    Each run keeps one in its folder (backup/zookeeper.jsonl.gz) before it changes anything.
    """


@contextmanager
def _opened(playbook: pathlib.Path | None, inventory: pathlib.Path | None) -> Iterator[ClusterObserver]:
    found, loaded = load_target(playbook, inventory)
    with observing(found, loaded) as observer:
        yield observer


def _absolute(below: str) -> str:
    """The path as ZooKeeper writes it; UsageWrong for one that is none."""
    path = below.rstrip("/") or "/"
    if not path.startswith("/") or "//" in path:
        raise UsageWrong(f"--path: {below!r} is no path of a znode (it begins with / and is relative to the chroot)")
    return path


@backup.command()
@file_argument
@cluster_options
def create(file: pathlib.Path, playbook: pathlib.Path | None, inventory: pathlib.Path | None) -> int:
    """Write the whole live tree (data, versions, ACLs) to FILE, which must not exist.  Nothing in ZooKeeper changes.

    The file holds credentials; it is made for its owner alone.  Exit code 0: whole; 2: some znodes could not be read.
    """
    from migrate.zookeeper.backup import write_backup

    refuse_taken(file, "kraft-migrate backup create NAME.jsonl.gz")
    if file.exists():
        raise UsageWrong(f"{file} exists: a backup never replaces another one", next_step=OTHER)
    require_file(file)
    with _opened(playbook, inventory) as observer, observer.sources.work.part("reading ZooKeeper"):
        facts = write_backup(observer.sources.zookeeper_client(), str(file))
    say(f"{facts['path']}: {facts['znodes']} znodes at zxid {facts['zxid']}, SHA-256 {facts['sha256']}")
    if facts["denied"] != "0":
        say(f"{facts['denied']} znodes may not be read by this identity: they are not in it", err=True)
    return EXIT_OK if facts["denied"] == "0" else EXIT_CHANGES


def _say(found: tuple[ZnodeDifference, ...]) -> None:
    """What would be put back, and what differs and never is; the rest is counted."""
    from migrate.report.backup_text import difference
    from migrate.zookeeper.backup import Standing

    digester = Digester()
    listed = [entry for entry in found if entry.standing not in (Standing.SAME, Standing.LIVE_ONLY)]
    for entry in listed[:SHOWN]:
        for line in difference(entry, digester):
            say(line)
    if len(listed) > SHOWN:
        say(f"... and {len(listed) - SHOWN} more: name a --path below")
    counts = {one: sum(entry.standing is one for entry in found) for one in Standing}
    say(", ".join(f"{count} {one.value}" for one, count in counts.items() if count))


def _backups_of(file: pathlib.Path) -> str:
    """What to type where a playbook or an inventory was given: its newest backups are named; "" for other files."""
    from migrate.cli.given import loaded_given

    try:
        runs = loaded_given(file)[0].runs
    except InputError:
        return ""
    named = shlex.quote(str(file))
    found = sorted(pathlib.Path(runs).glob("*/backup/zookeeper.jsonl.gz"), key=lambda path: -path.stat().st_mtime)
    if not found:
        return f"no run of it has one yet: kraft-migrate backup create NAME.jsonl.gz {named} writes one now"
    newest = shlex.quote(str(found[0]))
    return f"each run keeps one; of the newest: kraft-migrate backup restore {newest} {named} --path PATH"


@backup.command()
@file_argument
@cluster_options
@click.option("--path", "below", metavar="PATH", help="Needed: that znode and what is under it is put back.")
@click.option("--confirm", default="", metavar="FINGERPRINT", help="Of the difference, as it was shown without it.")
def restore(
    file: pathlib.Path, playbook: pathlib.Path | None, inventory: pathlib.Path | None, below: str | None, confirm: str
) -> int:
    """Put the znodes at and under PATH back to what FILE holds; without --confirm only the difference is shown.

    It says what would be created (+) and set (~), and what is never put back, and why; secrets as digests alone.

    Nothing is ever deleted.  Ephemeral znodes, /controller, /controller_epoch, /migration, /brokers/ids, counters of
    ids, notifications and pending work are never put back, nor are the states of partitions that live.  Each write is
    conditional on the version that the difference showed; what was there before is kept in a backup of its own first.
    Refused while a KRaft controller runs.  Brokers in ZooKeeper mode see a configuration that was put back when they
    start, or when that entity is changed again.

    Exit code 0: put back, or nothing to do; 2: shown, not confirmed; 3: refused, a controller runs; 6: the tree changed
    since it was shown; 7: another run holds the lock; 10: the lock was lost.
    """
    from migrate.playbook.document import BACKUP, refuse_other
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.restore_znodes import Restore, put_back, require_no_controller
    from migrate.zookeeper.backup import compare, fingerprint, load_backup
    from migrate.zookeeper.lock import LOCK_PATH

    refuse_other(BackupUnreadable, BACKUP, file, _backups_of(file))
    if below is None:
        command = f"kraft-migrate backup restore {shlex.quote(str(file))} {shlex.quote(str(playbook or 'PLAYBOOK'))}"
        raise UsageWrong(
            "--path is missing: which znodes shall be put back?",
            next_step=f"{command} --path PATH, such as /config/topics/NAME; it shows what differs, and writes nothing",
        )
    tree, root = load_backup(str(file)), _absolute(below)
    with _opened(playbook, inventory) as observer:
        sources = observer.sources
        found = compare(tree, sources.zookeeper_client(), root)
        _say(found)
        if not any(entry.restorable for entry in found):
            say("nothing to put back")
            return EXIT_OK
        require_no_controller(sources.inventory, sources)
        if not confirm:
            say(f"nothing was written: give --confirm {fingerprint(found)}")
            return EXIT_CHANGES
        lock_path = getattr(sources.playbook, "lock_path", LOCK_PATH)
        with acting_alone(sources, f"backup restore {root}") as lock:
            require_no_controller(sources.inventory, sources)
            what = Restore(tree, root, confirm, hashlib.sha256(file.read_bytes()).hexdigest())
            done = put_back(what, sources.zookeeper_client(), lock, lock_path, sources.inventory, SystemClock())
    say(f"{len(done.paths)} znodes were put back; the journal, and the tree as it was before, are in {done.folder}")
    return EXIT_OK
