"""ZooKeeper's files as a tree that can be read like a live one, and the ZooKeeper view from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate.errors import ChrootMissing
from migrate.model.secrets import Digester
from migrate.model.unswept import unswept
from migrate.model.views import ZookeeperView
from migrate.zookeeper.offline.files import Loaded, find_files, load
from migrate.zookeeper.offline.tree import Acl
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import read_acls, view_of
from migrate.zookeeper.znode import Absent, Znode


@dataclass(frozen=True, slots=True)
class ZookeeperFiles:
    """Where ZooKeeper's files lie: its dataDir, and its dataLogDir if it has one; and Kafka's chroot in the tree."""

    folders: tuple[str, ...]
    chroot: str = ""

    @property
    def name(self) -> str:
        """What stands for a connect string."""
        return f"files of {', '.join(self.folders)}" + (f", chroot {self.chroot}" if self.chroot else "")


class OfflineTree:
    """The tree of files below a chroot (a TreeReader).  Nothing is ever denied: files know no identities."""

    def __init__(self, loaded: Loaded, files: ZookeeperFiles) -> None:
        self.loaded = loaded
        self.files = files
        self.chroot = files.chroot.rstrip("/")
        if self.chroot not in loaded.tree.nodes:
            raise ChrootMissing(f"{self.chroot} is not in the files", where=", ".join(files.folders))

    def absolute(self, path: str) -> str:
        """The path in the whole tree."""
        return self.chroot + path.rstrip("/")

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """Data and stat of each path, in order; `children` is not counted."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self.absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else node.znode() for node in found]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order: one pass over the tree a call, and no index kept."""
        return self.children_among(paths, self.loaded.tree.nodes)

    def children_among(self, paths: Sequence[str], among: Iterable[str]) -> list[tuple[str, ...] | Absent]:
        """The same, where `among` are the only paths that are looked at."""
        nodes = self.loaded.tree.nodes
        wanted: dict[str, list[str]] = {path: [] for path in map(self.absolute, paths) if path in nodes}
        for path in among:
            above, slash, name = path.rpartition("/")
            if slash and above in wanted:
                wanted[above].append(name)
        answers = {path: tuple(sorted(names)) for path, names in wanted.items()}
        return [answers.get(self.absolute(path), Absent.MISSING) for path in paths]

    def acls(self, paths: Sequence[str]) -> list[Acl | Absent]:
        """(permissions, scheme, id) of each path, in order; DENIED where the files do not hold it."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self.absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else Absent.DENIED if node.acl is None else node.acl for node in found]

    def paths(self) -> list[str]:
        """Every path below the chroot, "/" first."""
        start = len(self.chroot)
        below = f"{self.chroot}/"
        return ["/", *sorted(path[start:] for path in self.loaded.tree.nodes if path.startswith(below))]

    def zxid(self) -> int:
        """The newest transaction in the files."""
        return self.loaded.zxid

    def view(self, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        """The whole ZooKeeper view; what a reader must know of the files is among the blind spots.

        Raises what `view_of` raises.
        """
        with unswept():
            return self.described(view_of(self, self.files.name, digester, secrets))

    def described(self, view: ZookeeperView) -> ZookeeperView:
        """The view with the ACLs in the files, and how old they are."""
        age = (
            f"{self.files.name}: as it stood after zxid 0x{self.zxid():x}, not as it is now; one server's log may end "
            "with transactions that the ensemble did not agree on"
        )
        return replace(view, acls=read_acls(self), blind_spots=(*view.blind_spots, *self.loaded.notes, age))


def open_files(files: ZookeeperFiles) -> OfflineTree:
    """The tree in the files, all transactions replayed.

    Raises ZookeeperFilesMissing, ZookeeperFileDamaged, TransactionsMissing, TreeDigestDiffers, ChrootMissing.
    """
    return OfflineTree(load(find_files(files.folders)), files)
