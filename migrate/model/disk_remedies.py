"""What to do about a log directory that is not as it should be: with the old disk, and with a new one.  Pure.

Which file a new disk needs depends on the stage: in ZooKeeper and in migration mode the broker writes it itself, in
KRaft mode it must be there before the start; before finalize it must have version 0, because a plain ZooKeeper-mode
broker, the end of a rollback, starts on no other (KAFKA-20762).  Every command is for a shell on the broker's host.
Where the inventory names the broker's unit, root or a login user with sudo types it as it is printed, and it runs as
the unit's own user: a file of root's among the broker's would stop it.  Elsewhere that user types it.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.broker_modes import Mode
from migrate.model.disk_trouble import (
    NOT_MOUNTED,
    STORED_IN_ZOOKEEPER,
    Sick,
    Wrong,
    effect_of,
    sick_directories,
    strange_folders,
)
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.new_directories import RELEASES
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, MetaBroken, MetaProperties, Running, Stopped
from migrate.model.world import World

FETCHED: Final = "it fetches its replicas there anew, those without another replica are lost"
ELECT: Final = "what stays without a leader: `directories rescue`"
NEW_ID: Final = f"it gives the directory another id, and reports its replicas anew; {ELECT}"
AN_OLDER_ONE: Final = "is it an older disk? Take it out again: the copies on the others are the newer ones"
KEPT: Final = (
    "the old disk's copies stay and catch up; the others get names that end in -stray, with what partitions without "
    "another replica took since, and Kafka leaves them alone"
)
NO_FORMAT: Final = (
    "do not run kafka-storage format: a version 1 file bars ZooKeeper mode (KAFKA-20762), where a rollback ends"
)
OWNED: Final = "owned by the user that runs it"
NOT_REGULAR: Final = "not a regular file"  # as both looks at a disk say it
NO_LOST_FOUND: Final = "without ext4's lost+found, on which Kafka does not start"


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """One directory: what is wrong, what that does in this mode, and what to do, a sentence an entry.

    `command` is the one that stands in `do` between backquotes: what gives the disk its meta.properties, "" where the
    broker writes that file itself or where it is there.
    """

    broker: int
    path: str
    mode: str  # in words
    what: str
    effect: str
    do: tuple[str, ...]
    command: str = ""


def disk_troubles(world: World) -> Iterator[DiskTrouble]:
    """Every directory of a broker or a controller that is not as it should be, in the inventory's order."""
    nodes = {int(node.id): node for node in world.inventory.nodes}
    home = world.inventory.executor_options.get("kafka_home", "")
    level = world.kraft.features.get("metadata.version", 0) if isinstance(world.kraft, KraftView) else 0
    for sick in sick_directories(world):
        do, command = _remedy(sick, _Host(nodes[sick.broker], home, RELEASES.get(level, "")), cluster_of(world))
        yield DiskTrouble(sick.broker, sick.directory.path, sick.words, sick.said, effect_of(sick), do, command)


def cluster_of(world: World) -> str:
    """The cluster's id as the metadata, ZooKeeper or the inventory has it."""
    if isinstance(world.kraft, KraftView) and world.kraft.cluster_id:
        return world.kraft.cluster_id
    if not isinstance(world.zookeeper, Unknown):
        return world.zookeeper.cluster_id
    return world.inventory.expect_cluster_id or "CLUSTER_ID"


@dataclass(frozen=True, slots=True)
class _Host:
    """Where a node runs, and how a person works it there: by its unit, if the inventory names one."""

    node: BrokerNode | ControllerNode
    kafka_home: str
    release: str  # the metadata.version of the quorum, as kafka-storage takes it; "" where not known

    def process(self, verb: str) -> str:
        """`verb` (start, stop, restart) and the broker, with the command where there is one."""
        unit = shlex.quote(self.node.unit)
        typed = f" (on {self.node.host}: `sudo systemctl {verb} {unit}`)" if self.node.unit else ""
        kind = "controller" if isinstance(self.node, ControllerNode) else "broker"
        return f"{verb} {kind} {self.node.id}{typed}"

    @property
    def stop_first(self) -> str:
        """At a sentence's beginning."""
        return f"S{self.process('stop')[1:]}"

    def as_broker(self, command: str) -> str:
        """The command as the user that runs the broker."""
        return f"sudo -u {self._user} sh -c {shlex.quote(command)}" if self.node.unit else command

    def as_root(self, command: str) -> str:
        """The command as root."""
        return f"sudo {command}" if self.node.unit else command

    def shell(self, command: str) -> str:
        """The command in a sentence: on which host."""
        return f"on {self.node.host}: `{command}`" if self.node.unit else f"`{command}`"

    def without_lost_found(self, path: str) -> str:
        """ext4's folder, made by mkfs and by fsck: Kafka does not start on a folder that it cannot name."""
        return f"`{self.as_root('rm -df ' + shlex.quote(path + '/lost+found'))}`"

    def empty(self, path: str) -> str:
        """What a new disk must be; a metadata directory may hold lost+found."""
        if not self.node.unit:
            return f"empty and {OWNED} ({NO_LOST_FOUND})"
        owned = f"{OWNED} (`{self.as_root(f'chown {self._user}: {shlex.quote(path)}')}`)"
        if isinstance(self.node, ControllerNode):
            return f"empty and {owned}"
        return f"empty ({NO_LOST_FOUND}: {self.without_lost_found(path)}) and {owned}"

    @property
    def storage_tool(self) -> str:
        """Kafka's own."""
        return shlex.quote(f"{self.kafka_home}/bin/kafka-storage.sh") if self.kafka_home else "kafka-storage"

    @property
    def _user(self) -> str:
        return f'"$(systemctl show -p User --value -- {shlex.quote(self.node.unit)} | grep . || echo root)"'


def _remedy(sick: Sick, host: _Host, cluster: str) -> tuple[tuple[str, ...], str]:
    """The sentences, and the command in them."""
    start = _start(sick, host)
    if sick.mode is None:
        sentence, command = _new_metadata(sick, host, cluster)
        missing = sick.wrong is Wrong.NO_IDENTITY
        old = f"is it the old disk that is missing? {_back_in_place(sick, host)}" if missing else _old_disk(sick, host)
        return (old, sentence), command
    match sick.wrong:
        case Wrong.BROKEN:
            sentence, command = _new_disk(sick, host, cluster)
            return (_old_disk(sick, host), sentence), command
        case Wrong.NO_IDENTITY:
            sentence, command = _new_disk(sick, host, cluster)
            return (f"is it the old disk that is missing? {_back_in_place(sick, host)}", sentence), command
        case Wrong.BAD_IDENTITY:
            command = _written_anew(sick, cluster)
            if sick.twice:
                command = host.as_broker(f"{command} && {_one_copy(sick)}")
                stop = host.stop_first
                return (f"{stop} first: {host.shell(command)}, then {host.process('start')}: {KEPT}",), command
            command = host.as_broker(command)
            after = "it goes on where it was" if sick.lost_id or sick.mode in STORED_IN_ZOOKEEPER else NEW_ID
            return (f"its replicas are still there: {host.shell(command)}, then {start}: {after}",), command
        case Wrong.VERSION_1:
            command = host.as_broker(_as_version_0(sick, cluster))
            runs = f"broker {sick.broker} runs, and reads it at its next start only"
            after = runs if isinstance(sick.state, Running) else start
            return (f"{host.shell(command)}: the same ids as version 0; then {after}",), command
        case Wrong.TWICE:
            command = host.as_broker(_one_copy(sick))
            stop = f"{host.process('stop')} first: " if not isinstance(sick.state, Stopped) else ""
            back = f"is it the disk that failed, and the others' copies are of since then? Then {stop}"
            return (f"{back}{host.shell(command)}, then {host.process('start')}: {KEPT}", AN_OLDER_ONE), command
        case Wrong.OTHER_DISK:
            return (
                _back_in_place(sick, host),
                f"with the new one, {start}: it registers it, and {FETCHED}; {ELECT}",
            ), ""
        case Wrong.STRANGE:
            out = "move them out of the log directory"
            if strange_folders(sick.directory) == ("lost+found",):
                out = host.without_lost_found(sick.directory.path)
            before = isinstance(sick.state, Running) and not sick.offline
            return (f"{out}, {f'before the next start of broker {sick.broker}' if before else f'then {start}'}",), ""
        case Wrong.OFFLINE:
            return (start,), ""


def _start(sick: Sick, host: _Host) -> str:
    """By what its process does: Kafka takes a directory back only at a start."""
    if isinstance(sick.state, Unknown):
        return f"{host.process('start')}, or restart it where it runs"
    return host.process("restart" if isinstance(sick.state, Running) else "start")


def _back_in_place(sick: Sick, host: _Host) -> str:
    """The old disk in the place of one that the broker takes for its own.

    First the stop: a broker that shuts down leaves checkpoints and a mark of a clean stop in every directory that it
    believes to be alive, and on the old disk they would be of other files.
    """
    start = host.process("start") if isinstance(sick.state, Running | Stopped) else _start(sick, host)
    stop = f"{host.stop_first} first, then put" if isinstance(sick.state, Running) else "Put"
    return f"{stop} the old disk back and mount it, and {start}: it goes on where it was"


def _old_disk(sick: Sick, host: _Host) -> str:
    """Where the disk itself is well, it needs something else than a hand in the rack."""
    start, problem = _start(sick, host), sick.directory.problem
    point = _mount_point(sick)
    mount = f" (`{host.as_root('mount ' + shlex.quote(point))}`)" if point else ""
    if sick.twice or (sick.mode is Mode.MIGRATION and isinstance(sick.state, Running)):
        stop = host.stop_first
        put = "Put" if isinstance(sick.state, Stopped) else f"{stop} first, then put"
        lie = "lie" if sick.twice else "may lie"
        return (
            f"{put} the old disk back, mount it{mount}, and look at `status` again before you start the broker: its "
            f"replicas {lie} on other disks as well by now"
        )
    if point:
        return f"with the old disk back: {_back_in_place(sick, host).replace('mount it', 'mount it' + mount, 1)}"
    if os.strerror(errno.ENOSPC) in problem:
        return f"{_room(sick)}, then {start}"
    if os.strerror(errno.EROFS) in problem:
        again = host.as_root(f"mount -o remount,rw {shlex.quote(sick.directory.mount or sick.directory.path)}")
        busy = isinstance(sick.state, Running) and not sick.offline  # its files there are open: no unmount
        first = f"{host.process('stop')}, then " if busy else ""
        return (
            f"the host's log says why it became read-only (`journalctl -k`): after an I/O error {first}unmount it, "
            f"check it (fsck, xfs_repair) and mount it again, for Linux refuses `{again}` then; where fsck made a "
            f"lost+found, Kafka does not start on it: {host.without_lost_found(sick.directory.path)}; writable again, "
            f"{host.process('start') if busy else start}: it goes on where it was"
        )
    if os.strerror(errno.EACCES) in problem:
        return f"is it mounted? The broker's user has no right to that folder: with the old disk mounted there, {start}"
    return f"with the old disk back and mounted, {start}: it goes on where it was"


def _mount_point(sick: Sick) -> str:
    """Where a file system is missing; "" for another trouble."""
    problem = sick.directory.problem
    return problem.removeprefix(NOT_MOUNTED).strip().partition(" (")[0] if problem.startswith(NOT_MOUNTED) else ""


def _room(sick: Sick) -> str:
    """A broker deletes nothing in a directory that it gave up; ext4 keeps a share of its blocks for root."""
    if not sick.offline:
        return "make room on it (retention, or more space; delete no segment by hand)"
    return (
        "make room on it (more space, or what is not Kafka's away; on ext4 `tune2fs -m 0 DEVICE` gives it what is kept "
        "for root; the broker's retention deletes nothing there before its start; delete no segment by hand)"
    )


def _new_disk(sick: Sick, host: _Host, cluster: str) -> tuple[str, str]:
    """How a new, empty disk is made known: which file, of which version, written by whom."""
    path, start = sick.directory.path, _start(sick, host)
    new = f"with a new disk mounted at {point}" if (point := _mount_point(sick)) else "with a new disk"
    there = f"mountpoint -q {shlex.quote(point)} && " if point else ""  # else it is written into the folder under it
    if sick.mode in STORED_IN_ZOOKEEPER:
        said = (
            f"{new}: leave {path} {host.empty(path)}, and {start}: it writes meta.properties itself "
            f"(version 0), and {FETCHED}; {NO_FORMAT}"
        )
        return said, ""
    if not sick.finalized:
        command = host.as_broker(there + _printf(path, version_0(sick.broker, cluster, "")))
        said = (
            f"{new}, {host.empty(path)}: {host.shell(command)}, then {start}: it adds a directory.id, and "
            f"{FETCHED}; {ELECT}; {NO_FORMAT}"
        )
        return said, command
    file = shlex.quote(sick.file.path)
    command = host.as_broker(f"{there}{host.storage_tool} format --cluster-id={cluster} --ignore-formatted -c {file}")
    said = f"{new}, {host.empty(path)}: {host.shell(command)}, then {start}: {FETCHED}; {ELECT}"
    return said, command


def _new_metadata(sick: Sick, host: _Host, cluster: str) -> tuple[str, str]:
    """A controller's empty directory is formatted, at the version of the others; the leader gives it its log."""
    at = f" --release-version {host.release}" if host.release else ""
    words = f"{host.storage_tool} format --cluster-id={cluster} -c {shlex.quote(sick.file.path)}{at}"
    command = host.as_broker(words)
    said = (
        f"with a new disk, {host.empty(sick.directory.path)}, and only while most of the other controllers run and one "
        f"of them leads: {host.shell(command)}, then {_start(sick, host)}: it fetches the metadata log from the leader"
    )
    return said, command


# -- meta.properties ---------------------------------------------------------------------------------------------
def version_0(broker: int, cluster: str, directory_id: str) -> str:
    r"""The file's text, \n for line ends as printf takes it; a broker adds the directory.id where it is missing."""
    own = f"directory.id={directory_id}\\n" if directory_id else ""
    return f"version=0\\nbroker.id={broker}\\ncluster.id={cluster}\\n{own}"


def _printf(path: str, text: str) -> str:
    return f'printf "{text}" > {shlex.quote(path + "/meta.properties")}'


def _written_anew(sick: Sick, cluster: str) -> str:
    """The broken file aside, and a version 0 file in its place.

    It stays on its disk, where the broker's user may write; a folder of that name goes beside the log directory: Kafka
    starts on no folder that it cannot name.

    With the directory.id where it is proven; a broker gives a file without one another, and reports its replicas anew.
    """
    path = sick.directory.path
    meta = sick.directory.meta
    folder = isinstance(meta, MetaBroken) and NOT_REGULAR in meta.reason
    name = f"{path}{'.' if folder else '/'}meta.properties.broken"
    aside = f"mv {shlex.quote(path + '/meta.properties')} {shlex.quote(name)}"
    return f"{aside} && {_printf(path, version_0(sick.broker, cluster, sick.lost_id))}"


def _as_version_0(sick: Sick, cluster: str) -> str:
    meta = sick.directory.meta
    assert isinstance(meta, MetaProperties)
    return _printf(
        sick.directory.path, version_0(sick.broker, meta.cluster_id or cluster, str(sick.directory.id or ""))
    )


def _one_copy(sick: Sick) -> str:
    """Copies in the broker's other directories aside, where this directory has the replica too.

    Each gets the name of a stray replica, which Kafka leaves alone: a folder beside the log directory would lie on
    another file system where the directory is a disk's mount point, and a move would copy.
    """
    path, others = shlex.quote(sick.directory.path), " ".join(map(shlex.quote, sick.twice))
    each = 'r=${r%/}; r=${r##*/}; if [ -d "$d/$r" ]; then mv "$d/$r" "$d/$r.$u-stray"; fi'
    return (
        f"u=$(tr -d - < /proc/sys/kernel/random/uuid); for d in {others}; do for r in {path}/*-[0-9]*/; do {each}; "
        "done; done"
    )
