"""What is wrong with a log directory, and what that does to its broker in the mode it is in.  Pure.

`migrate.model.disk_remedies` says what to do.  Sources: `ReplicaManager.handleLogDirFailure` (migration mode halts
with any directory, every mode with all of them or with that of the metadata log), `KafkaRaftServer.initializeLogDirs`
(a readable directory without meta.properties stops the start), `BrokerLifecycleManager` (log.dir.failure.timeout.ms),
KAFKA-20762 (version 1 files bar ZooKeeper mode).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from os.path import normpath
from typing import Final

from migrate.model.broker_modes import Mode, mode_of, position_of
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import (
    NOT_THERE,
    BrokerDisks,
    ConfigFile,
    Directory,
    MetaBroken,
    MetaMissing,
    NoFile,
    Running,
    ServiceState,
    Stopped,
)
from migrate.model.world import World

FULL: Final = f"is full ({os.strerror(errno.ENOSPC)})"  # how the two kinds of trouble begin that a look finds by itself
NO_REPLICA: Final = "folder of no replica, Kafka refuses to start on it: "  # an oddity of a directory
NOT_MOUNTED: Final = "is not mounted: nothing is at"
TIMEOUT: Final = "log.dir.failure.timeout.ms"
TIMEOUT_DEFAULT: Final = "30000"  # ServerConfigs, since 3.8
CURRENT: Final = "current"
Disks = Mapping[NodeId, BrokerDisks | Unknown]
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]
RESERVED: Final = frozenset({"", str(MIGRATING), str(UNASSIGNED), str(LOST)})


STORED_IN_ZOOKEEPER: Final = (Mode.ZOOKEEPER, Mode.MIGRATION)  # its meta.properties is its own to write
CONTROLLER: Final = "controller"  # in the place of a broker's mode


class Wrong(StrEnum):
    BROKEN = "broken"  # it cannot be read, written, or reached
    NO_IDENTITY = "no identity"  # it is well, and has no meta.properties
    BAD_IDENTITY = "bad identity"  # its meta.properties cannot be trusted
    VERSION_1 = "version 1"  # as kafka-storage format writes it, where version 0 is needed
    OTHER_DISK = "other disk"  # another directory.id than the broker registered
    TWICE = "twice"  # the old disk is back, and its replicas were created again on others meanwhile
    STRANGE = "strange folder"  # a folder that Kafka cannot name: it does not start
    OFFLINE = "offline"  # whole on the disk; the broker gave it up before


@dataclass(frozen=True, slots=True)
class Sick:
    """One directory and everything that decides what becomes of its broker; `said` is the trouble in words."""

    broker: int
    mode: Mode | None  # None: it is a controller's
    file: ConfigFile
    directory: Directory
    wrong: Wrong
    said: str
    state: ServiceState  # of the broker's process
    holds_metadata: bool  # the broker's copy of the metadata log lies there: without it a broker halts in any mode
    lost_id: str = ""  # where its file is torn: the proven former directory.id
    offline: bool = False  # the broker itself calls it that
    twice: tuple[str, ...] = ()  # the broker's other directories that hold copies of its replicas, or had to be theirs
    finalized: bool = False  # the migration is: no rollback needs its file any more

    @property
    def node(self) -> str:
        return f"{CONTROLLER if self.mode is None else 'broker'} {self.broker}"

    @property
    def words(self) -> str:
        """The mode as people write it; a controller's directory has none."""
        if self.mode is None:
            return CONTROLLER
        return f"{self.mode.words}, finalized" if self.finalized else self.mode.words


def sick_directories(world: World) -> Iterator[Sick]:
    if isinstance(world.disks, Unknown) or isinstance(world.configs, Unknown):
        return
    yield from _of_controllers(world, world.disks, world.configs)
    over = world.finalized
    for node in world.inventory.brokers:
        disks, file = world.disks.get(node.id), world.configs.get(node.id)
        if disks is None or isinstance(disks, Unknown) or not isinstance(file, ConfigFile):
            continue
        now = position_of(world, node.id).now
        mode = mode_of(file.values) if isinstance(now, Unknown) else now
        entry = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
        registered = frozenset() if entry is None else frozenset(entry.log_dirs)
        placed = partial(_placed, world, int(node.id))
        said = None if isinstance(world.live, Unknown) else world.live.log_dirs.get(node.id)
        errors = {answer.path for answer in said if answer.error} if isinstance(said, tuple) else set()
        metadata = disks.metadata_place(file.values)
        apart = None if mode is Mode.ZOOKEEPER else disks.metadata_directory  # ZooKeeper mode does not use it
        for directory in disks.directories if apart is None else (*disks.directories, apart):
            is_apart = directory is disks.metadata_directory
            offline = directory.path in errors
            known = frozenset() if is_apart else registered
            instead = offline and (bool(_twice(disks, directory)) or _instead(disks, known, placed))
            found = _wrong(directory, mode, known, offline=offline, instead=instead)
            if found is None:
                continue
            twice = _copies(disks, directory, placed, found[0], mode)
            if twice and found[0] is Wrong.OTHER_DISK:
                told = f"its replicas are also in {', '.join(twice)}, and the broker did not register it"
                found = (Wrong.TWICE, told)
            torn = found[0] is Wrong.BAD_IDENTITY and not is_apart
            yield Sick(
                int(node.id),
                mode,
                file,
                directory,
                *found,
                _state(world, node.id),
                holds_metadata=mode is not Mode.ZOOKEEPER and normpath(metadata) == normpath(directory.path),
                lost_id=_lost_id(disks, directory, registered, placed) if torn else "",
                offline=offline,
                twice=twice,
                finalized=over and mode is Mode.KRAFT,
            )


def _of_controllers(world: World, disks: Disks, configs: Configs) -> Iterator[Sick]:
    """Metadata directories; a missing or empty one is not formatted yet where its controller is no voter."""
    quorum = world.live if isinstance(world.live, Unknown) else world.live.quorum
    voters = set() if isinstance(quorum, Unknown) else {voter.id for voter in quorum.voters}
    for node in world.inventory.controllers:
        seen, file = disks.get(node.id), configs.get(node.id)
        if not isinstance(seen, BrokerDisks) or not isinstance(file, ConfigFile):
            continue
        (directory,) = seen.directories
        found = _wrong(directory, None, frozenset(), offline=False, instead=False)
        not_made_yet = found is not None and (found[0] is Wrong.NO_IDENTITY or directory.problem == NOT_THERE)
        if found is not None and (not not_made_yet or node.id in voters):
            state = _state(world, node.id)
            yield Sick(int(node.id), None, file, directory, *found, state, holds_metadata=True)


Placed = Callable[[], Mapping[tuple[str, int], str]]  # asked only where something is wrong: it reads all partitions


def _placed(world: World, broker: int) -> Mapping[tuple[str, int], str]:
    """The directories in which the metadata places the broker's replicas; "" where it names none."""
    if isinstance(world.kraft, Unknown):
        return {}
    rows = world.kraft.partitions
    return {
        (rows.topic[index], rows.partition[index]): rows.directory_of(index, rows.replicas[index].index(broker))
        for index in rows.rows_of(broker)
    }


def _copies(
    disks: BrokerDisks, directory: Directory, placed: Placed, wrong: Wrong, mode: Mode | None
) -> tuple[str, ...]:
    """The broker's other directories that hold replicas of that one, or what had to be there.

    A KRaft broker makes replicas anew where it was started without a disk too early.
    """
    if wrong in (Wrong.OTHER_DISK, Wrong.BAD_IDENTITY):
        return _twice(disks, directory)
    if wrong is Wrong.BROKEN and mode not in STORED_IN_ZOOKEEPER and (away := _away(disks, placed)):
        return tuple(one.path for one in disks.directories if one is not directory and away & _current(one))
    return ()


def _twice(disks: BrokerDisks, directory: Directory) -> tuple[str, ...]:
    """The other directories that hold a current copy of a replica that lies in this one."""
    mine = _current(directory)
    return tuple(one.path for one in disks.directories if one is not directory and mine & _current(one))


def _away(disks: BrokerDisks, placed: Placed) -> set[tuple[str, int]]:
    """Replicas of the broker that the metadata places in a directory which none of its disks is now."""
    here = {str(entry.id) for entry in disks.directories} | RESERVED
    return {replica for replica, named in placed().items() if named not in here}


def _instead(disks: BrokerDisks, registered: frozenset[DirectoryId], placed: Placed) -> bool:
    """Is a directory missing that the broker registered, or that has replicas of it?  A new one may be in its place.

    A KRaft broker that gave a directory up is no longer registered with it: its replicas are still named there.
    """
    return not registered <= {entry.id for entry in disks.directories} or bool(_away(disks, placed))


def _current(directory: Directory) -> set[tuple[str, int]]:
    rows = directory.replicas
    found = zip(zip(rows.topic, rows.partition, strict=True), rows.kind, strict=True)
    return {key for key, kind in found if kind == CURRENT}


def _lost_id(disks: BrokerDisks, directory: Directory, registered: frozenset[DirectoryId], placed: Placed) -> str:
    """By the metadata, which names one directory for all replicas that lie there; else by the registration.

    A broker that was started without the directory has registered anew, without it.  "" where nothing proves one.
    """
    here = {str(entry.id) for entry in disks.directories if entry.id is not None}
    known = placed()
    named = {known[replica] for replica in _current(directory) & known.keys()} - RESERVED
    candidates = named or set(map(str, registered)) - here
    (found,) = candidates if len(candidates) == 1 else ("",)
    return "" if found in here else found


def _state(world: World, node: NodeId) -> ServiceState:
    unseen = Unknown("its process was not looked at")
    return world.services if isinstance(world.services, Unknown) else world.services.get(node, unseen)


def _wrong(
    directory: Directory, mode: Mode | None, registered: frozenset[DirectoryId], *, offline: bool, instead: bool
) -> tuple[Wrong, str] | None:
    """What is wrong, and in words; None for nothing.

    `instead`: a directory that is not registered is another than the broker had, or has its replicas twice, and not
    only one that is back.
    """
    also = "; the broker calls it offline" if offline else ""
    if directory.problem:
        return Wrong.BROKEN, directory.problem + also
    if isinstance(directory.meta, MetaBroken):
        return Wrong.BAD_IDENTITY, f"its meta.properties: {directory.meta.reason}{also}"
    if isinstance(directory.meta, MetaMissing):
        said = "it has no meta.properties: it was emptied, is a new disk, or is not mounted"
        return Wrong.NO_IDENTITY, said + also
    if mode in STORED_IN_ZOOKEEPER and directory.meta.version:
        return Wrong.VERSION_1, f"its meta.properties has version 1, as kafka-storage format writes it{also}"
    if mode is not None and (strange := strange_folders(directory)):
        return Wrong.STRANGE, f"it holds what is no replica: {', '.join(strange)}{also}"
    unregistered = bool(registered) and directory.id is not None and directory.id not in registered
    if offline and not (unregistered and instead):
        return Wrong.OFFLINE, "it is whole on the disk, and offline to the broker, which takes it back at a start only"
    if unregistered:
        said = (
            f"its directory.id {directory.id} is not the one that the broker registered: another disk is in its place"
            f"{also}"
        )
        return Wrong.OTHER_DISK, said
    return None


def strange_folders(directory: Directory) -> tuple[str, ...]:
    """Folders in a log directory whose names Kafka cannot read, lost+found as a rule: fsck and mkfs make it."""
    return tuple(one.removeprefix(NO_REPLICA) for one in directory.oddities if one.startswith(NO_REPLICA))


# -- what that does ----------------------------------------------------------------------------------------------
GOES_ON: Final[Mapping[Mode, str]] = {
    Mode.ZOOKEEPER: "the broker continues without it; partitions that it led there have another leader, or none",
    Mode.MIGRATION: "a broker in migration mode halts with the first directory that dies under it: one disk is "
    "one broker. Do not start it before the disk is whole or replaced: it would recreate its replicas "
    "on the other disks, those without another replica empty",
    Mode.KRAFT: "the broker continues without it, its replicas there are failed over where the metadata knows "
    "their directory; for the others see `directories rescue`",
}
HALTS: Final = "the broker's copy of the metadata log is there: the broker halts with it, and does not start without it"
CONTROLLER_HALTS: Final = (
    "its metadata log is there: the controller halts with it, and does not start without it; the others go on as "
    "long as most of the quorum runs"
)
RUNS_WITHOUT: Final = (
    "it was dead when the broker started: the broker runs without it, did not register it, and, where a KRaft "
    "controller leads, has recreated its replicas on the other disks, those without another replica empty; the "
    "next stages wait"
)
TOO_EARLY: Final = (
    "started without it, it holds those replicas back, but not while the metadata calls it the leader of one of them "
    "(after a crash, until the controllers have fenced it: broker.session.timeout.ms, 9 s by default): then it makes "
    "them again on its other disks, those without another replica empty"
)
MADE_ANEW: Final = (
    "replicas that the metadata places there are in {} as well: the broker was started without the disk before the "
    "controllers had fenced it, made them again there, those without another replica empty, and reported none of them"
)
NOTICED_LATE: Final = (
    "a running broker works on with the files that it holds open until it misses one by name, at the latest when its "
    "log cleaner looks (every 15 s by default); in migration mode it halts then"
)
UNNOTICED: Final = "a running broker does not read the file before its next start"
STOPS_A_START: Final = "a start stops there: 'No `meta.properties` found'"
TAKEN_FOR_NEW: Final = (
    "at its next start the broker takes it for a new disk: it fetches its replicas again, those without another "
    "replica are lost"
)
ON_THE_FOLDER: Final = (
    "the broker took the folder under the mount point for a new disk: it fetches its replicas again, onto another "
    "file system, and those without another replica are empty; what it wrote there is hidden once the disk is mounted"
)
FAILED_AT_START: Final = "a broker that starts counts it as failed, or gives it a new directory.id"
VERSION_1_BARS: Final[Mapping[Mode, str]] = {
    Mode.ZOOKEEPER: "a ZooKeeper-mode broker does not start on it (KAFKA-20762)",
    Mode.MIGRATION: "a broker in migration mode runs on it; back in ZooKeeper mode it does not start "
    "(KAFKA-20762), so the next stages wait (B-RBK-03)",
}
REFUSES_FOLDERS: Final = (
    "a start stops there: 'Found directory ..., is not in the form of topic-partition'; a running broker does not look"
)
DUPLICATES: Final = "the broker does not start on two copies of a replica: 'Duplicate log directories'"
OTHER_DISK: Final = (
    "its replicas there are in a directory that no metadata names; the broker registers the disk when it starts"
)


def effect_of(sick: Sick) -> str:
    """What becomes of the broker; log.dir.failure.timeout.ms is read from its file."""
    if sick.mode is None:
        return CONTROLLER_HALTS
    match sick.wrong:
        case Wrong.BROKEN | Wrong.OFFLINE:
            return _of_a_dead_one(sick)
        case Wrong.NO_IDENTITY:
            start = TAKEN_FOR_NEW if sick.mode in STORED_IN_ZOOKEEPER else STOPS_A_START
            return f"{NOTICED_LATE}; {start}" if isinstance(sick.state, Running) else start
        case Wrong.BAD_IDENTITY:
            start = HALTS if sick.holds_metadata else FAILED_AT_START
            return f"{UNNOTICED}; {start}" if isinstance(sick.state, Running) else start
        case Wrong.VERSION_1:
            return VERSION_1_BARS[sick.mode]
        case Wrong.TWICE:
            return DUPLICATES
        case Wrong.STRANGE:
            return REFUSES_FOLDERS
        case Wrong.OTHER_DISK:
            return OTHER_DISK


def _of_a_dead_one(sick: Sick) -> str:
    if sick.directory.problem.startswith(NOT_MOUNTED) and not sick.offline:
        if sick.mode in STORED_IN_ZOOKEEPER:
            return ON_THE_FOLDER if isinstance(sick.state, Running) else TAKEN_FOR_NEW
        return f"{NOTICED_LATE}; {STOPS_A_START}" if isinstance(sick.state, Running) else STOPS_A_START
    if sick.holds_metadata:
        return HALTS
    if sick.mode is Mode.MIGRATION and isinstance(sick.state, Running) and sick.wrong is Wrong.BROKEN:
        return RUNS_WITHOUT
    if sick.mode in STORED_IN_ZOOKEEPER:
        return GOES_ON[sick.mode]
    if sick.twice:
        return MADE_ANEW.format(", ".join(sick.twice))
    early = f"; {TOO_EARLY}" if isinstance(sick.state, Stopped) and sick.wrong is Wrong.BROKEN else ""
    value = sick.file.values.get(TIMEOUT, "").strip()
    spelled = f"{TIMEOUT}={value}" if value else f"{TIMEOUT} is {TIMEOUT_DEFAULT}, the default"
    stops = "a failure that no controller acknowledges for so long stops the broker, 5 minutes later where none answers"
    return f"{GOES_ON[Mode.KRAFT]}; {spelled}: {stops}{early}"
