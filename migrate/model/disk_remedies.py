"""What to do about a log directory, or a replica's row in the ledger, that is not as it should be.  Pure.

Which file a new disk needs depends on the stage: in ZooKeeper and in migration mode the broker writes it itself, in
KRaft mode it must be there before the start; before finalize it must have version 0, because a plain ZooKeeper-mode
broker, the end of a rollback, starts on no other (KAFKA-20762).  Every command is for a shell on the broker's host.
Where the inventory names the broker's unit, root or a login user with sudo types it as it is printed, and it runs as
the unit's own user: a file of root's among the broker's would stop it.  Elsewhere that user types it.

A wrong value in the metadata does not show in the ISR: AlterPartition does not look at directories, so that a follower
with a foreign directory is back in a full ISR within 0.3 s.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.broker_modes import Mode
from migrate.model.config_keys import QuorumKind
from migrate.model.detect import quorum_kind
from migrate.model.disk_trouble import (
    NOT_MOUNTED,
    STORED_IN_ZOOKEEPER,
    Sick,
    Wrong,
    effect_of,
    sick_directories,
    strange_folders,
)
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, by_hand
from migrate.model.ledger import LedgerRow, ReplicaState
from migrate.model.new_directories import RELEASES
from migrate.model.outcome import Unknown
from migrate.model.views import (
    BrokerDisks,
    KraftView,
    LogDirAnswer,
    MetaBroken,
    MetaProperties,
    Registration,
    Running,
    Stopped,
)
from migrate.model.words import plural
from migrate.model.world import World

FETCHED: Final = "it fetches its replicas again, those without another replica are lost"
ELECT: Final = "what stays without a leader: `directories rescue`"
NEW_ID: Final = f"it gives the directory another id, and reports its replicas again; {ELECT}"
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
    """One directory: what is wrong, what that does in this mode, and what to do, a sentence an entry."""

    broker: int
    path: str
    mode: str  # in words
    what: str
    effect: str
    do: tuple[str, ...]
    command: str = ""  # of `do`: what gives the disk its meta.properties; "" where it has one or the broker writes it


def disk_troubles(world: World) -> Iterator[DiskTrouble]:
    nodes = {int(node.id): node for node in world.inventory.nodes}
    level = world.kraft.features.get("metadata.version", 0) if isinstance(world.kraft, KraftView) else 0
    runs = quorum_kind(world)
    dynamic = (world.inventory.quorum if isinstance(runs, Unknown) else runs) is QuorumKind.DYNAMIC
    for sick in sick_directories(world):
        node = nodes[sick.broker]
        host = _Host(node, world.inventory.kafka_home_of(node), RELEASES.get(level, ""), dynamic)
        do, command = _remedy(sick, host, cluster_of(world))
        yield DiskTrouble(sick.broker, sick.directory.path, sick.words, sick.said, effect_of(sick), do, command)


def cluster_of(world: World) -> str:
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
    dynamic: bool = False  # are its quorum's voters known by directory ids?

    def process(self, verb: str) -> str:
        """`verb` (start, stop, restart) and the broker, with the command where there is one."""
        command = by_hand(self.node, verb)
        typed = f" (on {self.node.host}: `sudo {command}`)" if command else ""
        kind = "controller" if isinstance(self.node, ControllerNode) else "broker"
        return f"{verb} {kind} {self.node.id}{typed}"

    @property
    def is_far(self) -> bool:
        """Is it worked on its own host, as its user?"""
        return bool(self.node.unit or self.node.service)

    @property
    def stop_first(self) -> str:
        """At a sentence's beginning."""
        return f"S{self.process('stop')[1:]}"

    def as_broker(self, command: str) -> str:
        return f"sudo -u {self._user} sh -c {shlex.quote(command)}" if self.is_far else command

    def as_root(self, command: str) -> str:
        return f"sudo {command}" if self.is_far else command

    def shell(self, command: str) -> str:
        return f"on {self.node.host}: `{command}`" if self.is_far else f"`{command}`"

    def without_lost_found(self, path: str) -> str:
        """ext4's folder, made by mkfs and by fsck: Kafka does not start on a folder that it cannot name."""
        return f"`{self.as_root('rm -df ' + shlex.quote(path + '/lost+found'))}`"

    def empty(self, path: str) -> str:
        """What a new disk must be; a metadata directory may hold lost+found."""
        if not self.is_far:
            return f"empty and {OWNED} ({NO_LOST_FOUND})"
        owned = f"{OWNED} (`{self.as_root(f'chown {self._user}: {shlex.quote(path)}')}`)"
        if isinstance(self.node, ControllerNode):
            return f"empty and {owned}"
        return f"empty ({NO_LOST_FOUND}: {self.without_lost_found(path)}) and {owned}"

    @property
    def storage_tool(self) -> str:
        return shlex.quote(f"{self.kafka_home}/bin/kafka-storage.sh") if self.kafka_home else "kafka-storage"

    @property
    def _user(self) -> str:
        if self.node.service is not None:
            return self.node.service.user
        return f'"$(systemctl show -p User --value -- {shlex.quote(self.node.unit)} | grep . || echo root)"'


def _remedy(sick: Sick, host: _Host, cluster: str) -> tuple[tuple[str, ...], str]:
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
            after = "it continues where it was" if sick.lost_id or sick.mode in STORED_IN_ZOOKEEPER else NEW_ID
            return (f"its replicas are still there: {host.shell(command)}, then {start}: {after}",), command
        case Wrong.VERSION_1:
            meta, directory = sick.directory.meta, sick.directory
            assert isinstance(meta, MetaProperties)
            same = version_0(sick.broker, meta.cluster_id or cluster, str(directory.id or ""))
            command = host.as_broker(_printf(directory.path, same))
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
    return f"{stop} the old disk back and mount it, and {start}: it continues where it was"


def _old_disk(sick: Sick, host: _Host) -> str:
    """Where the disk itself is well, it needs something else than a hand in the rack."""
    start, problem = _start(sick, host), sick.directory.problem
    point = _mount_point(sick)
    mount = f" (`{host.as_root('mount ' + shlex.quote(point))}`)" if point else ""
    if sick.twice or (sick.mode is Mode.MIGRATION and isinstance(sick.state, Running)):
        stop = host.stop_first
        put = "Put" if isinstance(sick.state, Stopped) else f"{stop} first, then put"
        are = "are" if sick.twice else "may be"
        return (
            f"{put} the old disk back, mount it{mount}, and look at `status` again before you start the broker: its "
            f"replicas {are} on other disks as well by now"
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
            f"{host.process('start') if busy else start}: it continues where it was"
        )
    if os.strerror(errno.EACCES) in problem:
        return f"is it mounted? The broker's user has no right to that folder: with the old disk mounted there, {start}"
    return f"with the old disk back and mounted, {start}: it continues where it was"


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
    """A controller's empty directory is formatted, at the version of the others; the leader gives it its log.

    In a dynamic quorum under a new directory id, without a vote: a voter that has lost its log must not vote (KIP-853).
    """
    at = f" --release-version {host.release}" if host.release else ""
    at += " --no-initial-controllers" if host.dynamic else ""
    vote = ", without a vote: then B-QRM-05 of `assess` has the commands that give it one" if host.dynamic else ""
    words = f"{host.storage_tool} format --cluster-id={cluster} -c {shlex.quote(sick.file.path)}{at}"
    command = host.as_broker(words)
    said = (
        f"with a new disk, {host.empty(sick.directory.path)}, and only while most of the other controllers run and one "
        f"of them leads: {host.shell(command)}, then {_start(sick, host)}: it fetches the metadata log from the leader"
    )
    return said + vote, command


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

    With the directory.id where it is proven; a broker gives a file without one another, and reports its replicas again.
    """
    path = sick.directory.path
    meta = sick.directory.meta
    folder = isinstance(meta, MetaBroken) and NOT_REGULAR in meta.reason
    name = f"{path}{'.' if folder else '/'}meta.properties.broken"
    aside = f"mv {shlex.quote(path + '/meta.properties')} {shlex.quote(name)}"
    return f"{aside} && {_printf(path, version_0(sick.broker, cluster, sick.lost_id))}"


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


RESCUE = "`directories rescue`"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, in words; `send` is the directory id that belongs into the metadata, "" where none is proven."""

    words: str
    send: str = ""


def remedy_of(row: LedgerRow, world: World) -> Remedy | None:
    """What to do about a row; None for a VERIFIED one."""
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(NodeId(row.broker))
    match row.state:
        case ReplicaState.VERIFIED:
            return None
        case ReplicaState.UNKNOWN:
            return Remedy("make what the reason names visible, and look again; until then nothing is known of it")
        case ReplicaState.TWO_COPIES:
            return Remedy(
                "a broker refuses to start on two copies: stop it, find out which one it used (the newer segments), "
                "move the other out of log.dirs, start it"
            )
        case ReplicaState.NOT_ON_DISK:
            return _not_on_disk(row, world)
        case ReplicaState.NOT_REGISTERED:
            return Remedy(
                "the broker runs without that directory, or has another id in its registration: restart it with all "
                f"its disks whole, it registers again; until then see {RESCUE}"
            )
        case ReplicaState.MOVING:
            return Remedy("a move between directories is in progress: wait for its end before the broker is restarted")
        case ReplicaState.MIGRATING | ReplicaState.UNASSIGNED:
            return _not_reported(row, registration)
        case ReplicaState.LOST | ReplicaState.MISMATCH:
            return _wrong(row, registration)


def due_later(row: LedgerRow, world: World) -> bool:
    """Is it MIGRATING (or UNASSIGNED) as it must be: its broker reports it after its restart into KRaft mode?"""
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(NodeId(row.broker))
    late = row.state in (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED)
    return late and registration is not None and registration.migrating and row.on_disk in registration.log_dirs


def _not_on_disk(row: LedgerRow, world: World) -> Remedy:
    said = (
        Unknown("it was not asked") if isinstance(world.live, Unknown) else world.live.log_dirs.get(NodeId(row.broker))
    )
    disks = Unknown("") if isinstance(world.disks, Unknown) else world.disks.get(NodeId(row.broker), Unknown(""))
    broken = not isinstance(disks, Unknown) and any(entry.problem for entry in disks.directories)
    if broken or (isinstance(said, tuple) and any(answer.error for answer in said)):
        return Remedy(f"a directory of broker {row.broker} is dead, the replica may be there: see {RESCUE}")
    return Remedy("it is being created, or its disk is gone: look again; if it stays, look at the broker's log")


def _not_reported(row: LedgerRow, registration: Registration | None) -> Remedy:
    """The disk is well: the broker reports it by itself once it is in KRaft mode."""
    if registration is None:
        return Remedy("the broker is not registered: it reports its directories when it is")
    if row.on_disk not in registration.log_dirs:
        return Remedy("its directory is not registered: restart the broker with all its disks whole")
    send = f"`directories assign {row.broker}` sends the directory on disk"
    if registration.migrating:
        return Remedy(f"as it must be before the broker's restart into KRaft mode; {send} earlier", row.on_disk)
    return Remedy(f"the broker reports it within a second: if not, look at its log; {send}", row.on_disk)


def _wrong(row: LedgerRow, registration: Registration | None) -> Remedy:
    if registration is None:
        return Remedy("the broker is not registered with log directories: start it in migration mode")
    if row.in_metadata == row.on_disk:
        return Remedy(
            "the two replica lists do not both name this broker: a reassignment is in progress, or they differ"
        )
    if row.on_disk not in registration.log_dirs:
        return Remedy("its directory is not registered: restart the broker with all its disks whole")
    by_itself = "a broker in migration mode never corrects it" if registration.migrating else "look again in a second"
    return Remedy(
        f"its disk fails without a failover, whatever the ISR says; {by_itself}: {RESCUE} sends the one on disk",
        row.on_disk,
    )


# -- DescribeLogDirs against the disks ---------------------------------------------------------------------------
def told_otherwise(world: World) -> Iterator[str]:
    """Where a broker's own answer differs from what lies on its disks; and whom nobody could ask."""
    if isinstance(world.disks, Unknown) or isinstance(world.live, Unknown):
        return
    for node in world.inventory.brokers:
        disks = world.disks.get(node.id, Unknown("its disks were not looked at"))
        said = world.live.log_dirs.get(node.id, Unknown("it was not asked"))
        if isinstance(said, Unknown):
            yield f"broker {int(node.id)} does not report its log directories: {said.reason}"
        elif not isinstance(disks, Unknown):
            yield from _broker_told(int(node.id), disks, {answer.path: answer for answer in said})


def _broker_told(broker: int, disks: BrokerDisks, said: dict[str, LogDirAnswer]) -> Iterator[str]:
    for directory in disks.directories:
        answer = said.pop(directory.path, None)
        where = f"{directory.path} of broker {broker}"
        if answer is None:
            yield f"{where} is in its file, and the broker does not know it: it was started with another file"
        elif answer.error and directory.healthy:
            yield f"{where} is offline to the broker ({answer.error_name}) and healthy on the disk: restart the broker"
        elif answer.error:
            yield f"{where} is dead: offline to the broker ({answer.error_name}), {directory.problem or 'not healthy'}"
        elif directory.problem:
            yield f"{where} is broken ({directory.problem}), and the broker has not noticed yet"
        else:
            here = sum(kind == "current" for kind in directory.replicas.kind)
            if here != answer.replicas:
                yield f"{where} holds {plural(here, 'replica')}, the broker reports {answer.replicas}"
    for path in said:
        yield f"{path} is a directory of broker {broker}, and not in its file"
