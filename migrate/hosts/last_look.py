"""The last look at a stopped broker's disks, before it is started again.

A disk that turned read-only or full since the step's own look still says who it is: only a block tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate.hosts.directories import LocalDisks
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.ports import Disks


def not_storing(disks: Disks, node: NodeId, paths: Sequence[str]) -> Mapping[str, str]:
    """Path -> why that directory does not store a block now; every path where nobody may look.

    On this host none is believed for the block that it stored a moment ago.
    """
    asked = LocalDisks() if isinstance(disks, LocalDisks) else disks
    found = asked.look(node, paths, None)
    if isinstance(found, Unknown):
        return dict.fromkeys(paths, f"cannot be looked at: {found.reason}")
    return {entry.path: entry.problem for entry in found.directories if entry.problem}
