"""Files of ZooKeeper and of the metadata as views: in columns where they are large and the extra `fast` is installed.

`migrate.accelerated` is optional, and this module alone knows of it.
Without it, or where it meets anything but the plain case, the plain readers do all the work, with the same answers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.diff import typed_rows
from migrate.kraft.files import ONE_DIRECTORY, MetadataFiles, load
from migrate.model.fingerprints import topic_fingerprints
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.observe.agreement import Agreement, Side, WholeSides, agreement, entity_rows, of_topics, refuse_malformed
from migrate.zookeeper.offline.files import OfflineTree, ZookeeperFiles
from migrate.zookeeper.offline.files import open_files as open_plainly
from migrate.zookeeper.password_encoder import EncoderSecrets

if TYPE_CHECKING:
    from migrate.accelerated.plain_topics import PlainTopics
    from migrate.accelerated.topic_scan import TopicPrints


@dataclass(frozen=True, slots=True)
class ColumnSides:
    """ZooKeeper's files and one metadata directory: `zookeeper` has no partitions of `plain`."""

    zookeeper: ZookeeperView
    plain: PlainTopics
    kraft: TopicPrints

    @property
    def image(self) -> KraftView:
        """The metadata without partitions, but for those that their log names."""
        return self.kraft.view()

    def agreement(self) -> Agreement:
        """What they agree on.  Raises MalformedZnode: a tree that was read in part is not compared."""
        refuse_malformed(self.zookeeper)
        counts = self.kraft.counts
        prints = topic_fingerprints(self.zookeeper.partitions) | dict(self.plain.fingerprints())
        blind = typed_rows.blind_configs(self.zookeeper.blind_spots)
        ours = Side(prints, entity_rows(self.zookeeper.entities, typed_rows.of_zookeeper(self.zookeeper), blind))
        theirs = Side(self.kraft.prints, entity_rows(self.kraft.entities, typed_rows.of_kraft(self.image), blind))
        return agreement(ours, theirs, counts, self.zookeeper.pending.deletions)

    def views(self, topics: Collection[str] | None) -> tuple[ZookeeperView, KraftView]:
        """Both sides with the partitions of these topics; None: of all."""
        wanted = {*self.kraft.prints, *self.plain.names, *self.zookeeper.partitions.topic}
        wanted = wanted if topics is None else set(topics)
        mine = [number for number, name in enumerate(self.plain.names) if name in wanted]
        some = self.plain.merged_with(self.zookeeper.partitions, mine)
        kraft = self.kraft.view(wanted)
        return (
            replace(self.zookeeper, partitions=of_topics(some, wanted)),
            replace(kraft, partitions=of_topics(kraft.partitions, wanted)),
        )


def open_files(files: ZookeeperFiles) -> OfflineTree:
    """The tree in the files, all transactions replayed.

    Raises ZookeeperFilesMissing, ZookeeperFileDamaged, TransactionsMissing, TreeDigestDiffers, ChrootMissing.
    """
    try:
        from migrate.accelerated import packed_snapshot
    except ImportError:
        return open_plainly(files)
    return packed_snapshot.open_files(files)


def read_sides(
    tree: OfflineTree, files: MetadataFiles, digester: Digester, secrets: EncoderSecrets | None = None
) -> ColumnSides | WholeSides:
    """Both sides of files; whole views where one of them is too small, or too odd, for columns.

    Raises what `OfflineTree.view` and `migrate.kraft.files.load` raise.
    """
    try:
        from migrate.accelerated.packed_snapshot import PackedFiles
        from migrate.accelerated.topic_scan import topic_prints
    except ImportError:
        pass
    else:  # of one side alone, fingerprints of the other side's rows would cost more than they save
        if isinstance(tree, PackedFiles) and (kraft := topic_prints(files, digester)) is not None:
            return ColumnSides(tree.head(digester, secrets), tree.plain, kraft)
    view = load(files, digester).view("", ONE_DIRECTORY, str(files.path))
    return WholeSides(tree.view(digester, secrets), view)
