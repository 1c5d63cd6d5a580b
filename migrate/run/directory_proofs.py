"""Which id a directory had, by the ledgers that the runs of a cluster put into their journals.

A ledger's cell names broker, path and directory id of replicas that were looked at on the disk itself.  The newest
that names a path holds; a journal that cannot be read proves nothing.
"""

from __future__ import annotations

import pathlib

from migrate.errors import MigrateError
from migrate.model.inventory import Inventory
from migrate.model.rescue import Proofs
from migrate.run import journal as journals


def proofs_of(inventory: Inventory) -> Proofs:
    """(broker, path) -> (directory id, which line of which journal says so)."""
    found: dict[tuple[int, str], tuple[float, str, str]] = {}
    for path in sorted(pathlib.Path(inventory.runs).glob("*/journal.jsonl")):
        try:
            events = journals.read(path).events
        except (OSError, MigrateError):
            continue
        for event in events:
            for cell in event.data.get("cells", ()) if event.name == "ledger" else ():
                key = int(cell["broker"]), str(cell["path"])
                if not key[1] or not cell["directory"] or (key in found and found[key][0] > event.time):
                    continue
                source = f"the ledger in line {event.number + 1} of the journal of run {path.parent.name}"
                found[key] = event.time, str(cell["directory"]), source
    return {key: (identity, source) for key, (_, identity, source) in found.items()}
