"""ZooKeeper's files as a tree that can be read like a live one, and the ZooKeeper view from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate.errors import ChrootMissing
from migrate.model.secrets import Digester
from migrate.model.unswept import unswept
from migrate.model.views import ZookeeperView
from migrate.zookeeper import layout
from migrate.zookeeper.offline.files import Loaded, find_files, load
from migrate.zookeeper.offline.packed_tree import PackedNodes
from migrate.zookeeper.offline.tree import Acl
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.plain_topics import NO_TOPICS, PlainTopics
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

    def _absolute(self, path: str) -> str:
        return self.chroot + path.rstrip("/")

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """Data and stat of each path, in order; `children` is not counted."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self._absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else node.znode() for node in found]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order: one pass over the tree a call, and no index kept."""
        return self._children(paths, self.loaded.tree.nodes)

    def _children(self, paths: Sequence[str], among: Iterable[str]) -> list[tuple[str, ...] | Absent]:
        nodes = self.loaded.tree.nodes
        wanted: dict[str, list[str]] = {path: [] for path in map(self._absolute, paths) if path in nodes}
        for path in among:
            above, slash, name = path.rpartition("/")
            if slash and above in wanted:
                wanted[above].append(name)
        answers = {path: tuple(sorted(names)) for path, names in wanted.items()}
        return [answers.get(self._absolute(path), Absent.MISSING) for path in paths]

    def acls(self, paths: Sequence[str]) -> list[Acl | Absent]:
        """(permissions, scheme, id) of each path, in order; DENIED where the files do not hold it."""
        nodes = self.loaded.tree.nodes
        found = (nodes.get(self._absolute(path)) for path in paths)
        return [Absent.MISSING if node is None else Absent.DENIED if node.acl is None else node.acl for node in found]

    def paths(self) -> list[str]:
        """Every path below the chroot, "/" first."""
        start = len(self.chroot)
        below = f"{self.chroot}/"
        return ["/", *sorted(path[start:] for path in self.loaded.tree.nodes if path.startswith(below))]

    def zxid(self) -> int:
        """The newest transaction in the files."""
        return self.loaded.zxid


class WithoutPlain(OfflineTree):
    """The same tree without the topics that are at hand as columns."""

    def __init__(self, tree: OfflineTree, nodes: PackedNodes, plain: PlainTopics) -> None:
        super().__init__(tree.loaded, tree.files)
        below = self._absolute(layout.TOPICS) + "/"
        names = set(plain.names)
        self._others = [path for path in nodes.own() if path[: len(below)] != below or path[len(below) :] not in names]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""
        return self._children(paths, self._others)


def open_files(files: ZookeeperFiles) -> OfflineTree:
    """The tree in the files, all transactions replayed.

    Raises ZookeeperFilesMissing, ZookeeperFileDamaged, TransactionsMissing, TreeDigestDiffers, ChrootMissing.
    """
    return OfflineTree(load(find_files(files.folders), files.chroot), files)


def view_of_files(tree: OfflineTree, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
    """The whole ZooKeeper view from files; what a reader must know of them is among the blind spots.

    Raises what `view_of` raises.
    """
    return _view(tree, digester, secrets, tree.loaded.plain or NO_TOPICS)


def head_of_files(
    tree: OfflineTree, digester: Digester, secrets: EncoderSecrets | None = None
) -> tuple[ZookeeperView, PlainTopics]:
    """The view without the partitions of plain topics (nor their count in `znodes`), and those topics.

    Raises what `view_of` raises.
    """
    plain = tree.loaded.plain or NO_TOPICS
    return _view(tree, digester, secrets, plain.without_rows()), plain


def _view(tree: OfflineTree, digester: Digester, secrets: EncoderSecrets | None, plain: PlainTopics) -> ZookeeperView:
    nodes = tree.loaded.tree.nodes
    rest = WithoutPlain(tree, nodes, plain) if isinstance(nodes, PackedNodes) else tree
    with unswept():
        view = view_of(rest, tree.files.name, digester, secrets, plain)
    age = (
        f"{tree.files.name}: as it stood after zxid 0x{tree.zxid():x}, not as it is now; one server's log may end with "
        "transactions that the ensemble did not agree on"
    )
    return replace(view, acls=read_acls(tree), blind_spots=(*view.blind_spots, *tree.loaded.notes, age))
