"""DIR: which file systems log directories lie on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import broker_disks
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory
from migrate.model.world import NOT_ASKED, World


@check(
    CodeDoc(
        "W-DIR-25",
        "several log directories of a broker lie on one file system",
        "They fail together and fill up together, and Kafka, which places replicas by their number in each directory, "
        "takes them for disks of their own. In migration mode one disk is one broker all the same.",
        "A directory is no mount of its own: the disk is not mounted, or the folders were made on one disk.",
        "Mount a disk for each, or leave it so where that is meant. A directory that a DirectoryPlaybook shall add is "
        "better left out until its disk is mounted.",
        "KIP-112 (JBOD); LogManager.nextLogDirs",
    ),
    sees=broker_disks,
    when=ALWAYS,
)
def shared_file_system(disks: dict[NodeId, BrokerDisks], world: World) -> Result:
    """Those that a broker has, and those that a playbook gives it, by mount; a broken one lies nowhere."""
    for node, found in disks.items():
        new = _new(world, node)
        if isinstance(new, Unknown):
            yield Blind(f"the new directories of broker {node}", new.reason)
            new = ()
        for mount, paths in _by_mount([*found.directories, *new]):
            if len(paths) > 1:
                added = {entry.path for entry in new} & set(paths) - {entry.path for entry in found.directories}
                told = f"; new among them: {', '.join(sorted(added))}" if added else ""
                yield Hit(
                    f"broker {node}", f"{len(paths)} of its log directories lie on {mount}{told}", ", ".join(paths)
                )


def _by_mount(directories: Iterable[Directory]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, dict[str, None]] = {}
    for entry in directories:
        if entry.mount and not entry.problem:
            found.setdefault(entry.mount, {})[entry.path] = None
    yield from ((mount, list(paths)) for mount, paths in found.items())


def _new(world: World, node: NodeId) -> tuple[Directory, ...] | Unknown:
    """What a DirectoryPlaybook gives the broker; () where there is no such playbook, or it was not looked for."""
    known = world.new_directories
    if known is NOT_ASKED:
        return ()
    found = known.get(node, ()) if isinstance(known, Mapping) else known
    return found if isinstance(found, Unknown) else tuple(entry.directory for entry in found)
