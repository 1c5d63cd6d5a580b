"""A controller's metadata set aside inside its own directory, entry by entry.

The directory keeps its name: it may be a mount point, which cannot be renamed, and its parent may belong to root.
Kafka formats a directory with such a folder in it, and runs a controller there (seen on 3.9.2, with `lost+found` too).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from migrate.hosts.collected import METADATA_FOLDER
from migrate.hosts.manual.executor import ManualFiles
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.model.ids import NodeId
from migrate.model.ports import Files

FOLDER: Final = "kraft-migrate-aside"
# what Kafka writes there; meta.properties goes last: a directory without it has nothing more to set aside, and a folder
# without it takes the rest after a kill
ENTRIES: Final = ("bootstrap.checkpoint", ".lock", METADATA_FOLDER, META_PROPERTIES)


def holds(files: Files, node: NodeId, directory: str) -> bool:
    """Is there a quorum's metadata in it?  OSError where that cannot be seen."""
    if files.exists(node, f"{directory}/{META_PROPERTIES}"):
        return True
    return files.exists(node, directory) and METADATA_FOLDER in files.names(node, directory)


def target(files: Files, node: NodeId, directory: str, moment: str) -> str:
    """The folder that a killed move began to fill, or one with a name that nothing has.  OSError."""
    names = files.names(node, directory)
    begun = [name for name in names if name.startswith(f"{FOLDER}-")]
    for name in reversed(begun if not isinstance(files, ManualFiles) else []):
        taken = {META_PROPERTIES, *(entry for entry in ENTRIES if entry in names)}
        if not any(files.exists(node, f"{directory}/{name}/{entry}") for entry in taken):
            return f"{directory}/{name}"
    new, number = f"{FOLDER}-{moment}", 1
    while new in names:
        new, number = f"{FOLDER}-{moment}-{number}", number + 1
    return f"{directory}/{new}"


def move(files: Files, node: NodeId, directory: str, new: str, between: Callable[[str], None]) -> None:
    """Move what is Kafka's into the folder; `between` is called before each rename.  OSError."""
    if isinstance(files, ManualFiles):
        files.move_entries(node, directory, new, ENTRIES)
        return
    files.make_directory(node, new)
    names = files.names(node, directory)
    for entry in ENTRIES:
        if entry in names:
            between(entry)
            files.rename(node, f"{directory}/{entry}", f"{new}/{entry}")
