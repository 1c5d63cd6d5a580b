"""`unlock`: remove the lock of a dead owner, after showing whose it is, and only by its id."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NotRequired

import click
from typing_extensions import TypedDict

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import cluster_options, load_target, output_option
from migrate.cli.screen import say, say_text
from migrate.errors import LockNotDead, MigrateError, UsageWrong
from migrate.model.inventory import Inventory, Playbook
from migrate.report.wording import hanging

if TYPE_CHECKING:
    from migrate.zookeeper.lock import SeenLock


class FileLock(TypedDict):
    """A lock file: who wrote it, and whether that process `lives`, `is dead` or cannot be seen; or `nobody`."""

    path: str
    owner: str
    alive: str


class ZnodeLock(TypedDict):
    """The lock in ZooKeeper; who holds it, where a run of this tool does."""

    path: str
    held: bool
    id: NotRequired[int]
    session: NotRequired[str]
    alive: NotRequired[str]
    owner: NotRequired[str]
    host: NotRequired[str]
    pid: NotRequired[int]
    since: NotRequired[str]
    plan: NotRequired[str]
    session_seconds: NotRequired[float]


class BothLocks(TypedDict):
    """Of a cluster with ZooKeeper."""

    znode: ZnodeLock
    file: FileLock


class HostLocks(TypedDict):
    """Of a cluster without: the run's own file, and one beside each broker's configuration."""

    files: list[FileLock]


UnlockAnswer = BothLocks | HostLocks


def _number(_: click.Context, __: click.Parameter, word: str | None) -> int | None:
    if word is None or word.isdecimal():
        return None if word is None else int(word)
    raise UsageWrong(
        f"--id takes the lock's number, and {word!r} is none",
        next_step="kraft-migrate unlock PLAYBOOK shows the lock with its id, and whether its owner lives",
    )


@click.command()
@cluster_options
@click.option("--id", "token", metavar="ID", callback=_number, help="The lock's id, as this command shows it.")
@output_option
def unlock(playbook: pathlib.Path | None, inventory: pathlib.Path | None, token: int | None, output: str) -> int:
    """Show who holds the lock on the cluster; with its id, remove it.

    ZooKeeper releases a lock when its owner's session ends, some seconds after the process ended: look again
    before you remove one.  A lock is removed only if its owner is dead, or cannot be seen from here, and only by its
    id, which a terminal asks for.  A living owner is never robbed.  The old owner's writes are refused from then on.

    Exit code 0: shown, removed, or there is none; 7: the owner is running, or the id is another.
    """
    from migrate.observe.sources import Sources
    from migrate.run import locks
    from migrate.zookeeper.layout import Absent
    from migrate.zookeeper.lock import LOCK_PATH, look_at_lock, remove_lock

    found, loaded = load_target(playbook, inventory)
    path = loaded.lock_path if isinstance(loaded, Playbook) else LOCK_PATH
    file = pathlib.Path(found.runs) / "lock"
    if not found.zookeeper or (isinstance(loaded, Playbook) and loaded.of_directories):
        return _on_hosts(file, found, output)
    sources = Sources(found, loaded, None)
    try:
        client = sources.zookeeper_client()
        seen = look_at_lock(client, path)
        held = None if isinstance(seen, Absent) else seen
        answer = described(held, path, file)
        if output == "json":
            give_answer(answer)
        else:
            say_text(as_text(answer))
        if answer["file"]["alive"] == locks.Alive.LIVES or answer["znode"].get("alive") == locks.Alive.LIVES:
            raise LockNotDead("the owner is running: stop that process instead", where=path)
        if held is None:
            if answer["file"]["owner"] and token is None:
                locks.empty_file(file)
            return EXIT_OK
        given = token if token is not None else typed_id(output)
        if given is None:
            return EXIT_OK
        if given != held.token:
            raise LockNotDead(f"{given} is not the id of this lock", where=path)
        remove_lock(client, held)
        if file.exists():
            locks.empty_file(file)
        say(f"removed: the lock with id {held.token}", err=output == "json")
        return EXIT_OK
    finally:
        sources.close()


def _on_hosts(run: pathlib.Path, inventory: Inventory, output: str) -> int:
    """The locks of a cluster without ZooKeeper: the kernel frees each with its owner's process, so none is removed."""
    from migrate.run import locks

    rows = [_row(str(run), *_here(run))]
    rows += [_row(place, *seen) for place, seen in _beside_the_brokers(inventory)]
    if output == "json":
        give_answer(HostLocks(files=rows))
    else:
        for row in rows:
            say(f"file     {row['path']}: {row['owner'] or 'nobody'}: {row['alive']}")
    held = next((row for row in rows if row["alive"] == locks.Alive.LIVES), None)
    if held is not None:
        raise LockNotDead("the owner is running: stop that process instead", where=held["path"])
    return EXIT_OK


def _row(place: str, text: str, held: bool | None) -> FileLock:
    """`held` None: that could not be seen."""
    from migrate.run import locks

    if held is None:
        return {"path": place, "owner": text, "alive": str(locks.Alive.UNSEEN)}
    state = str(locks.Alive.LIVES if held else locks.Alive.DEAD) if text or held else "nobody"
    return {"path": place, "owner": text, "alive": state}


def _here(path: pathlib.Path) -> tuple[str, bool]:
    from migrate.run import locks

    owner = locks.file_owner(path)
    return ("", False) if owner is None else (owner.text, owner.held)


def _beside_the_brokers(inventory: Inventory) -> Iterator[tuple[str, tuple[str, bool | None]]]:
    """Each broker's lock file, on its host: who holds it, and whether; or why that cannot be seen."""
    from migrate.hosts.executors import executor_of
    from migrate.run.locks import HOST_SUFFIX

    executor = executor_of(inventory)
    try:
        for node in inventory.brokers:
            path = node.config + HOST_SUFFIX
            if executor.locks is None:
                yield f"{node.host}:{path}", (f"unknown: executor {inventory.executor} reaches no host", None)
                continue
            try:
                yield f"{node.host}:{path}", executor.locks.owner(node.id, path)
            except MigrateError as error:
                yield f"{node.host}:{path}", (f"unknown: {error.id} {error}", None)
            except OSError as error:
                yield f"{node.host}:{path}", (f"unknown: {error}", None)
    finally:
        executor.close()


def described(held: SeenLock | None, path: str, file: pathlib.Path) -> BothLocks:
    """Both locks as plain values."""
    from migrate.run import locks

    znode: ZnodeLock = {"path": path, "held": held is not None}
    if held is not None:
        holder = held.holder
        alive = locks.Alive.UNSEEN if holder is None else locks.process_alive(holder.host, holder.pid)
        znode["id"], znode["session"], znode["alive"] = held.token, f"0x{held.session:x}", str(alive)
        if holder is not None:
            znode["owner"], znode["host"], znode["pid"] = holder.owner, holder.host, holder.pid
            znode["since"], znode["plan"] = holder.since, holder.plan
            znode["session_seconds"] = holder.session_seconds
    return {"znode": znode, "file": _row(str(file), *_here(file))}


def as_text(answer: BothLocks) -> str:
    """The same for a person."""
    znode, file = answer["znode"], answer["file"]
    lines = []
    if not znode["held"]:
        lines.append(f"znode    {znode['path']}: nobody holds it")
    elif "owner" in znode:
        lines += [
            f"znode    {znode['path']}, id {znode['id']}",
            f"owner    {znode['owner']} on {znode['host']}, process {znode['pid']}, since {znode['since']}",
            f"plan     {znode['plan'] or '-'}",
            f"alive?   the process {znode['alive']}",
            f"session  {znode['session']}: ends {znode['session_seconds']:g} s after its last sign of life",
        ]
    else:
        lines.append(f"znode    {znode['path']}, id {znode['id']}: no run of this tool wrote it")
    owner = f"{file['owner']}: {file['alive']}" if file["owner"] else "nobody"
    lines.append(f"file     {file['path']}: {owner}")
    return "\n".join(hanging(line, " " * 9) for line in lines)


def typed_id(output: str) -> int | None:
    """The id as a person types it; None where there is no terminal, or nothing was typed."""
    if output == "json" or not sys.stdin.isatty():
        say("nothing was removed: give --id with the id above", err=True)
        return None
    text: str = click.prompt("Type the lock's id to remove it", default="", show_default=False, err=True)
    return int(text) if text.strip().isdecimal() else None
