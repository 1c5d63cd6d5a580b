"""One cluster's two views compared, for `diff` and for a fleet's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from migrate.cli.options import Evidence, observing
from migrate.errors import NotVisible
from migrate.model.difference import DiffReport
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.world import Need

if TYPE_CHECKING:
    from migrate.observe.session import SparkHandle

NOT_LIVE: Final = (
    "ZooKeeper was read from files: they keep up with the metadata only where a running server writes them"
)


def compared(
    inventory: Inventory, playbook: Playbook | Unknown, evidence: Evidence, lent: SparkHandle | None = None
) -> DiffReport:
    """The comparison at one offset; on the session that is lent, else on one of its own.

    Raises NotVisible where the two cannot be compared.
    """
    with observing(inventory, playbook, spark=lent is None, evidence=evidence, lent=lent) as observer:
        observer.sources.start_spark()
        world = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF}), {})
    if isinstance(world.diff, Unknown):
        raise NotVisible(
            f"the two cannot be compared: {world.diff.reason}",
            where=inventory.name,
            why="" if evidence.zookeeper is None else NOT_LIVE,
        )
    return world.diff
