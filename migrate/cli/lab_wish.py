"""Is the lab that stands there the one that is wished for?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.lab.cluster import Lab


def require_as_wished(found: Lab, executor: str, *, secured: bool) -> None:
    """Refuse a lab that is there and was made with another executor, or in clear where a secured one is wanted."""
    from migrate.errors import FaultRefused

    made, where = found.inventory.executor, found.topology.directory
    if made != executor:
        raise FaultRefused(
            f"this lab was made with --executor {made}",
            where=where,
            next_step=f"say --executor {made}, or make another lab in an empty folder",
        )
    if secured and not found.topology.secured:
        raise FaultRefused(
            "this lab was made without --secured", where=where, next_step="make another in an empty folder"
        )
