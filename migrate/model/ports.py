"""What the engine acts through.  Production and the tests' simulated cluster implement the same protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import StateBehind
from migrate.model.views import BrokerDisks, MetaProperties, ServiceState
from migrate.model.world import Need, World

LOG_LINES: Final = 2_000  # of a log's end
LOG_LINES_DEEP: Final = 50_000  # twenty minutes of a broker that says forty times a second whom it cannot reach


class Observer(Protocol):
    """Looks at the cluster afresh each time it is asked."""

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The parts asked for, each typed or Unknown; `facts` are what the run itself knows."""


class Lock(Protocol):
    """The right to act on a cluster, held by one run at a time."""

    def still_ours(self) -> None:
        """Raise a WorldError where it was lost: there is no safe way to go on."""

    def release_zookeeper(self) -> None:
        """Give the znode back; the file goes on holding."""

    def release(self) -> None: ...


class Clock(Protocol):
    """The one clock of a run."""

    def now(self) -> float:
        """Seconds since the epoch (for people and logs only: no decision rests on it)."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def boot(self) -> str:
        """What `monotonic` counts from: readings of two processes compare only under the same name."""

    def sleep(self, seconds: float) -> None: ...


class Files(Protocol):
    """Files of a node's host."""

    def read(self, node: NodeId, path: str) -> bytes:
        """The file's bytes; FileNotFoundError or another OSError if it cannot be read."""

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Replace the file atomically, fsynced, keeping owner and mode (0600 for a new file)."""

    def exists(self, node: NodeId, path: str) -> bool: ...

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """Set a file or folder aside; FileExistsError if `new` is there."""

    def remove(self, node: NodeId, path: str) -> None: ...
    def make_directory(self, node: NodeId, path: str) -> None: ...

    def names(self, node: NodeId, path: str) -> Sequence[str]:
        """The names in a folder, sorted; FileNotFoundError or another OSError if it cannot be listed."""


@runtime_checkable
class FollowsLinks(Protocol):
    """Files of hosts that allow a node's file to be a link."""

    def target(self, node: NodeId, path: str) -> str:
        """What the file leads to; "" where it is no such link, OSError where it leads elsewhere by now."""


def target_of(files: Files, node: NodeId, path: str) -> str:
    """What a node's file leads to, "" where it is no link that is followed.  OSError."""
    return files.target(node, path) if isinstance(files, FollowsLinks) else ""


class Disks(Protocol):
    """Log directories of brokers as their hosts show them."""

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown: ...


class ServiceControl(Protocol):
    """Starts and stops the processes of nodes; never one that it cannot prove to be the node's."""

    def state(self, node: NodeId) -> ServiceState: ...

    def stop(self, node: NodeId, timeout: float) -> None:
        """SIGTERM, and wait until the process is gone; WorldError if it lives on (never SIGKILL).

        Where no process lives the service is stopped all the same: its owner must not start it again by itself.
        """

    def start(self, node: NodeId) -> None:
        """Start the process and return at once; readiness is observed, not assumed."""

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]: ...

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """kafka-storage format with the node's configuration file; its output.

        `voters` are the initial ones of a dynamic quorum, the same for each of its controllers: ID@HOST:PORT:DIRECTORY.
        With `ignore_formatted` directories that are formatted already stay as they are; without it they are an error.
        """


class ZookeeperWrites(Protocol):
    """Conditional changes of znodes.  A version is always given; there is no unconditional write."""

    def create(self, path: str, data: bytes) -> None: ...
    def set(self, path: str, data: bytes, version: int) -> None: ...
    def delete(self, path: str, version: int) -> None: ...

    def raise_versions(self, least: Mapping[str, int], owner: int | None) -> None:
        """Write each znode's own bytes over it until it has at least that version.

        `owner`: /controller goes too, if it has that version, in the transaction of the last of these writes.
        """

    def backup(self, destination: str) -> Mapping[str, str]:
        """Write the whole tree (data, stat, ACL) to a file; facts about it: znodes, sha256, zxid."""


class DirectoryAssigner(Protocol):
    """AssignReplicasToDirs on the active controller."""

    def assign(
        self, broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[tuple[str, int]]]
    ) -> Mapping[tuple[str, int], int]:
        """Send directory id -> [(topic id, partition)]; answers an error code a replica.

        Raises a Retryable error for STALE_BROKER_EPOCH (77), NOT_CONTROLLER (41) and timeouts.
        """


class Effects(Protocol):
    """Every change a step may make.  Each asks the lock first, is journalled, and is a numbered crash point."""

    def write_config(self, node: NodeId, path: str, content: bytes, expect_sha256: str | None) -> None:
        """Write a configuration file; `expect_sha256` is what must lie there now (None: nothing)."""

    def backup_files(self, node: NodeId, paths: Sequence[str]) -> None:
        """Keep a copy of each beside it on its host, and one in the run's folder."""

    def backup_zookeeper(self, name: str = "zookeeper") -> None: ...
    def make_directory(self, node: NodeId, path: str) -> None: ...
    def format_storage(self, nodes: Sequence[NodeId], cluster_id: str, release_version: str, voters: str = "") -> None:
        """Format the storage of these nodes, all at once where programs do it; every one is tried."""

    def format_directories(self, node: NodeId, cluster_id: str, release_version: str) -> None:
        """Format those log directories of a stopped broker that are not yet."""

    def require_empty(self, node: NodeId, path: str) -> None:
        """Look into a stopped broker's log directory; DirectoryInUse with a replica in it."""

    def require_same(self, node: NodeId, metas: Mapping[str, MetaProperties]) -> None:
        """Read the meta.properties of a stopped broker's directories; DirectoryLost where one is another than given."""

    def set_aside(self, node: NodeId, path: str) -> None:
        """Give a file of a stopped node another name beside its old one; nothing is deleted."""

    def remove_copy(self, node: NodeId, path: str) -> None:
        """Remove a copy of a file on its host; never anything else."""

    def set_metadata_aside(self, node: NodeId, directory: str) -> None:
        """Move a stopped controller's metadata into a folder inside its directory; nothing is deleted."""

    def set_znode(self, path: str, data: bytes, version: int) -> None: ...

    def delete_znode(self, path: str, version: int, down: Sequence[NodeId] = ()) -> None:
        """Delete a znode, if it has that version and none of the nodes in `down` lives at that moment."""

    def raise_versions(self, states: Sequence[StateBehind], owner: int | None, down: Sequence[NodeId]) -> None:
        """Write partition states' own bytes over them until their versions are the metadata's partition epochs.

        None of the nodes in `down` lives at that moment.  `owner`: the version of a broker's /controller, which goes
        with the last of them, so that its next owner reads them.
        """

    def stop(self, node: NodeId) -> None: ...
    def start(self, node: NodeId) -> None: ...

    def assign_directories(self, broker: NodeId) -> None:
        """Send the true directories of a broker's replicas, where proven by registration and disk."""

    def release_zookeeper_lock(self) -> None:
        """Give the lock znode back: from here the lock file holds alone."""

    def note(self, key: str, value: str) -> None: ...

    def note_measures(self) -> None:
        """Put what the journal's own times say into it: the time without a controller, each node's downtime."""
