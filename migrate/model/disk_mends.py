"""What to do about a log directory that is not as it should be: with the old disk, and with a new one.  Pure.

Which file a new disk needs depends on the stage: in ZooKeeper and in migration mode the broker writes it itself, in
KRaft mode it must be there before the start; before finalize it must have version 0, because a plain ZooKeeper-mode
broker, the end of a rollback, starts on no other (KAFKA-20762).  Every command is for a shell on the broker's host, as
the user that runs the broker.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.disk_trouble import ZOOKEEPER_STORED, BrokerMode, Sick, Wrong, effect_of, sick_directories
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, MetaProperties, Running, Stopped
from migrate.model.world import World

FETCHED: Final = "it fetches its replicas there anew, those without another replica are lost"
ELECT: Final = "what stays without a leader: `directories rescue`"
NEW_ID: Final = f"it gives the directory another id, and reports its replicas anew; {ELECT}"
AN_OLDER_ONE: Final = "is it an older disk? Take it out again: the copies on the others are the newer ones"
KEPT: Final = (
    "the old disk's copies stay and catch up; the others lie aside, with what partitions without another replica took "
    "since"
)
NO_FORMAT: Final = (
    "do not run kafka-storage format: a version 1 file bars ZooKeeper mode (KAFKA-20762), where a rollback ends"
)
OWNED: Final = "owned by the broker's user"


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """One directory: what is wrong, what that does in this mode, and what to do, a sentence an entry.

    `command` is the one that stands in `do` between backquotes: what gives the disk its meta.properties, "" where the
    broker writes that file itself or where it is there.
    """

    broker: int
    path: str
    mode: BrokerMode
    what: str
    effect: str
    do: tuple[str, ...]
    command: str = ""


def disk_troubles(world: World) -> Iterator[DiskTrouble]:
    """Every directory of a broker that is not as it should be, in the inventory's order."""
    for sick in sick_directories(world):
        do, command = _mend(sick, cluster_of(world))
        yield DiskTrouble(sick.broker, sick.directory.path, sick.mode, sick.said, effect_of(sick), do, command)


def cluster_of(world: World) -> str:
    """The cluster's id as the metadata, ZooKeeper or the inventory has it."""
    if isinstance(world.kraft, KraftView) and world.kraft.cluster_id:
        return world.kraft.cluster_id
    if not isinstance(world.zookeeper, Unknown):
        return world.zookeeper.cluster_id
    return world.inventory.expect_cluster_id or "CLUSTER_ID"


def _mend(sick: Sick, cluster: str) -> tuple[tuple[str, ...], str]:
    """The sentences, and the command in them."""
    start = _start(sick)
    match sick.wrong:
        case Wrong.BROKEN:
            sentence, command = _new_disk(sick, cluster, start)
            return (_old_disk(sick, start), sentence), command
        case Wrong.NO_IDENTITY:
            sentence, command = _new_disk(sick, cluster, start)
            return (f"is it the old disk that is missing? {_back_in_place(sick)}", sentence), command
        case Wrong.BAD_IDENTITY:
            command = _written_anew(sick, cluster)
            if sick.twice:
                command = f"{command} && {_one_copy(sick)}"
                return (
                    f"Stop broker {sick.broker} first: `{command}`, then start broker {sick.broker}: {KEPT}",
                ), command
            after = "it goes on where it was" if sick.lost_id or sick.mode in ZOOKEEPER_STORED else NEW_ID
            return (f"its replicas are still there: `{command}`, then {start}: {after}",), command
        case Wrong.VERSION_1:
            command = _as_version_0(sick, cluster)
            runs = f"broker {sick.broker} runs, and reads it at its next start only"
            after = runs if isinstance(sick.state, Running) else start
            return (f"`{command}`: the same ids as version 0; then {after}",), command
        case Wrong.TWICE:
            command = _one_copy(sick)
            stop = f"stop broker {sick.broker} first: " if not isinstance(sick.state, Stopped) else ""
            back = f"is it the disk that failed, and the others' copies are of since then? Then {stop}`{command}`"
            return (f"{back}, then start broker {sick.broker}: {KEPT}", AN_OLDER_ONE), command
        case Wrong.OTHER_DISK:
            return (_back_in_place(sick), f"with the new one, {start}: it registers it, and {FETCHED}; {ELECT}"), ""
        case Wrong.OFFLINE:
            return (start,), ""


def _start(sick: Sick) -> str:
    """By what its process does: Kafka takes a directory back only at a start."""
    if isinstance(sick.state, Unknown):
        return f"start broker {sick.broker}, or restart it where it runs"
    return f"{'restart' if isinstance(sick.state, Running) else 'start'} broker {sick.broker}"


def _back_in_place(sick: Sick) -> str:
    """The old disk in the place of one that the broker takes for its own.

    First the stop: a broker that shuts down leaves checkpoints and a mark of a clean stop in every directory that it
    believes to be alive, and on the old disk they would be of other files.
    """
    start = f"start broker {sick.broker}" if isinstance(sick.state, Running | Stopped) else _start(sick)
    stop = f"Stop broker {sick.broker} first, then put" if isinstance(sick.state, Running) else "Put"
    return f"{stop} the old disk back and mount it, and {start}: it goes on where it was"


def _old_disk(sick: Sick, start: str) -> str:
    """Where the disk itself is well, it needs something else than a hand in the rack."""
    if sick.twice or (sick.mode is BrokerMode.MIGRATION and isinstance(sick.state, Running)):
        put = "Put" if isinstance(sick.state, Stopped) else f"Stop broker {sick.broker} first, then put"
        lie = "lie" if sick.twice else "may lie"
        return (
            f"{put} the old disk back, mount it, and look at `status` again before you start the broker: its replicas "
            f"{lie} on other disks as well by now"
        )
    if os.strerror(errno.ENOSPC) in sick.directory.problem:
        return f"make room on it (retention, or more space; delete no segment by hand), then {start}"
    if os.strerror(errno.EROFS) in sick.directory.problem:
        return f"the host's log says why it became read-only; writable again, {start}: it goes on where it was"
    return f"with the old disk back and mounted, {start}: it goes on where it was"


def _new_disk(sick: Sick, cluster: str, start: str) -> tuple[str, str]:
    """How a new, empty disk is made known: which file, of which version, written by whom."""
    path = sick.directory.path
    if sick.mode in ZOOKEEPER_STORED:
        said = (
            f"with a new disk: leave {path} empty, {OWNED}, and {start}: it writes meta.properties itself (version 0), "
            f"and {FETCHED}; {NO_FORMAT}"
        )
        return said, ""
    if sick.mode is BrokerMode.KRAFT:
        command = _printf(path, version_0(sick.broker, cluster, ""))
        said = (
            f"with a new disk, empty and {OWNED}: `{command}`, then {start}: it adds a directory.id, and {FETCHED}; "
            f"{ELECT}; {NO_FORMAT}"
        )
        return said, command
    command = f"kafka-storage format --cluster-id={cluster} --ignore-formatted -c {shlex.quote(sick.file.path)}"
    return f"with a new disk, empty and {OWNED}: `{command}`, then {start}: {FETCHED}; {ELECT}", command


# -- meta.properties ---------------------------------------------------------------------------------------------
def version_0(broker: int, cluster: str, directory_id: str) -> str:
    r"""The file's text, \n for line ends as printf takes it; a broker adds the directory.id where it is missing."""
    own = f"directory.id={directory_id}\\n" if directory_id else ""
    return f"version=0\\nbroker.id={broker}\\ncluster.id={cluster}\\n{own}"


def _printf(path: str, text: str) -> str:
    return f"printf '{text}' > {shlex.quote(path + '/meta.properties')}"


def _written_anew(sick: Sick, cluster: str) -> str:
    """The broken file aside, out of the log directory, and a version 0 file in its place.

    With the directory.id where it is proven; a broker gives a file without one another, and reports its replicas anew.
    """
    path = sick.directory.path
    aside = f"mv {shlex.quote(path + '/meta.properties')} {shlex.quote(path + '.meta.properties.broken')}"
    return f"{aside} && {_printf(path, version_0(sick.broker, cluster, sick.lost_id))}"


def _as_version_0(sick: Sick, cluster: str) -> str:
    meta = sick.directory.meta
    assert isinstance(meta, MetaProperties)
    return _printf(
        sick.directory.path, version_0(sick.broker, meta.cluster_id or cluster, str(sick.directory.id or ""))
    )


def _one_copy(sick: Sick) -> str:
    """Copies in the broker's other directories aside, out of log.dirs, where this directory has the replica too."""
    path, others = shlex.quote(sick.directory.path), " ".join(map(shlex.quote, sick.twice))
    each = 'r=${r%/}; r=${r##*/}; if [ -d "$d/$r" ]; then mv "$d/$r" "$d.twice/"; fi'
    return f'for d in {others}; do mkdir -p "$d.twice"; for r in {path}/*-[0-9]*/; do {each}; done; done'
