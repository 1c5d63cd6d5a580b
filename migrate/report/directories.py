"""Log directories, one row per broker and directory: values, terminal text, and an HTML page with a heat map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from typing_extensions import TypedDict

from migrate.model.disk_remedies import due_later
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.ledger import RESERVED_STATES, LedgerRow, ReplicaState, count_states
from migrate.model.loader import Assigned, Foretold, all_assigned, foretell
from migrate.model.outcome import Unknown
from migrate.model.rescue import Proofs, identify
from migrate.model.stage import ZkMigrationState
from migrate.model.views import BrokerDisks, Directory, KraftView, MetaProperties
from migrate.model.words import counted, plural
from migrate.model.world import World
from migrate.report.heat_map import HeatMap, HeatRow, heat_map, square
from migrate.report.lines import WIDTH, Line, Page, Tone
from migrate.report.markup import render
from migrate.report.wording import size

KINDS = ("current", "future", "deleted", "stray")
NOWHERE: Final = "in no directory that was seen"


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """One directory of a broker; what was not seen is None or `?`.

    `path` is ? for a broker that was not seen, whose `health` says why, and "" for replicas in no directory that was
    seen.  `meta` is V0, V1, `missing`, `broken: ...`, or ? where the directory could not be read: then nothing in it
    was counted, and `replicas` are those of the ledger.  `proof` says what a directory's id is proven by other than
    its own file.  `registered` is yes, no, unknown, or `offline`: the broker has given it up since its start.
    `replicas` and `bytes` are of current folders and of all folders.  `log_dir` is False for a metadata.log.dir
    outside of log.dirs.  `would_be_stray` counts folders that a KRaft start would set aside; None where that is not
    known.  `unexpected` are the replicas of `ledger` that are not VERIFIED although they should be now.
    """

    broker: int
    path: str
    health: str
    mount: str = ""
    filesystem: str = ""
    free_bytes: int = -1
    meta: str = "?"
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str = "?"
    proof: str = ""
    registered: str = "?"
    replicas: int | None = None
    bytes: int | None = None
    folders: Mapping[str, int] = field(default_factory=dict)
    metadata_log: bool | None = None
    log_dir: bool = True
    would_be_stray: int | None = None
    stray_bytes: int | None = None
    oddities: tuple[str, ...] = ()
    ledger: Mapping[str, int] = field(default_factory=dict)
    unexpected: Mapping[str, int] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Is it known to be?"""
        return self.health == "healthy"

    @property
    def fine(self) -> bool:
        """Is nothing of it to be looked at now?"""
        registered = self.registered not in ("no", "offline")
        return self.healthy and registered and not (self.unexpected or self.would_be_stray or self.oddities)

    @property
    def unseen_alone(self) -> bool:
        """Is it healthy, and of its replicas alone the state not known?  Its broker's line says it."""
        return replace(self, unexpected={}).fine and set(self.unexpected) == {ReplicaState.UNKNOWN.value}


class ShowAnswer(TypedDict):
    """What `directories show` answers."""

    directories: Sequence[DirectoryRow]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What all brokers' rows need, computed once: the ledger by broker and place, and each broker's assignments."""

    world: World
    proofs: Proofs
    ledger: Mapping[int, Mapping[str, list[LedgerRow]]]
    assigned: Mapping[int, Assigned] | None  # None: nobody says what is assigned


def directory_rows(world: World, proofs: Proofs | None = None) -> tuple[DirectoryRow, ...]:
    """Brokers in the inventory's order, directories in that of log.dirs; no broker and no replica is left out."""
    seen = _Seen(world, proofs or {}, _by_place(world), _assigned(world))
    return tuple(row for node in world.inventory.brokers for row in _of_broker(node, seen))


def _by_place(world: World) -> dict[int, dict[str, list[LedgerRow]]]:
    """Broker -> directory id -> its replicas; "" for those of which nobody says where they are or were.

    A replica in a directory without an id is in no place: its folder is counted where it lies.
    """
    found: dict[int, dict[str, list[LedgerRow]]] = {}
    for row in () if isinstance(world.ledger, Unknown) else world.ledger.rows:
        place = row.on_disk.partition(",")[0]
        if not place and row.state not in (ReplicaState.NOT_ON_DISK, ReplicaState.UNKNOWN):
            continue
        if not place and row.in_metadata not in RESERVED_STATES:
            place = row.in_metadata
        found.setdefault(row.broker, {}).setdefault(place, []).append(row)
    return found


def _assigned(world: World) -> dict[int, Assigned] | None:
    """The metadata's assignments where no migration is in progress in it (any more), else ZooKeeper's."""
    zookeeper, kraft = world.zookeeper, world.kraft
    copied = not isinstance(kraft, Unknown) and len(kraft.partitions) > 0
    if not isinstance(kraft, Unknown) and copied and (isinstance(zookeeper, Unknown) or _alone(kraft)):
        return all_assigned(kraft.partitions)
    return None if isinstance(zookeeper, Unknown) else all_assigned(zookeeper.partitions)


def _alone(kraft: KraftView) -> bool:
    """Does a tree in ZooKeeper, if there is one, no longer follow the metadata?"""
    return kraft.migration_state in (ZkMigrationState.NONE, ZkMigrationState.POST_MIGRATION)


def _of_broker(node: BrokerNode, seen: _Seen) -> Iterator[DirectoryRow]:
    disks = seen.world.disks
    found = disks if isinstance(disks, Unknown) else disks.get(node.id, Unknown("not looked at"))
    places = dict(seen.ledger.get(int(node.id), {}))
    if isinstance(found, Unknown):
        unseen = DirectoryRow(int(node.id), "?", f"unknown: {found.reason}")
        yield _counted(unseen, [row for rows in places.values() for row in rows], seen)
        return
    foretold = None
    if seen.assigned is not None:
        foretold = foretell(found, seen.assigned.get(int(node.id), Assigned({}, {})))
    proven = _proven(node.id, found, seen)
    rows = [_row(node, entry, seen, foretold, proven) for entry in found.directories]
    sick = [row for row in rows if not row.healthy]
    for row in rows:
        here = places.pop(row.directory_id, [])
        if [row] == sick and (row.directory_id == "?" or "" in places):
            # the only one that may have what nobody names a place of
            mine = [*places] if row.directory_id == "?" else [""]
            here += [one for place in mine for one in places.pop(place, [])]
        yield _counted(row, here, seen)
    for place, left in places.items():
        yield _counted(DirectoryRow(int(node.id), "", NOWHERE, directory_id=place or "?"), left, seen)
    if found.metadata_directory is not None:
        yield _row(node, found.metadata_directory, seen, foretold, {}, log_dir=False)


def _counted(row: DirectoryRow, rows: Sequence[LedgerRow], seen: _Seen) -> DirectoryRow:
    late = [one for one in rows if one.state is not ReplicaState.VERIFIED and not due_later(one, seen.world)]
    replicas = len(rows) if row.replicas is None and not isinstance(seen.world.ledger, Unknown) else row.replicas
    states, odd = count_states(rows), count_states(late)
    if isinstance(seen.world.ledger, Unknown) and replicas:  # what is on the disk is known, and its state is not
        states = odd = {ReplicaState.UNKNOWN.value: replicas}
    return replace(row, replicas=replicas, ledger=states, unexpected=odd)


def _proven(broker: NodeId, disks: BrokerDisks, seen: _Seen) -> Mapping[str, tuple[str, str]]:
    """(id, what proves it) of each directory whose own file does not say it, by path."""
    registration = None if isinstance(seen.world.kraft, Unknown) else seen.world.kraft.brokers.get(broker)
    if registration is None:
        return {}
    lost = [entry for entry in disks.directories if entry.id is None and not entry.healthy]
    found = identify(registration, disks, lost, seen.proofs)
    return {one.path: (str(one.id), one.proofs[0]) for one in found if not isinstance(one.id, Unknown)}


def _row(
    node: BrokerNode,
    entry: Directory,
    seen: _Seen,
    foretold: Foretold | None,
    proven: Mapping[str, tuple[str, str]],
    *,
    log_dir: bool = True,
) -> DirectoryRow:
    known = entry.meta if isinstance(entry.meta, MetaProperties) else None
    unread = entry.unread
    identity, proof = proven.get(entry.path, (str(entry.id or ("?" if unread else "-")), ""))
    strays = None if foretold is None else [fate for fate in foretold.strays if fate.directory == entry.path]
    return DirectoryRow(
        broker=int(node.id),
        path=entry.path,
        health=entry.health,
        mount=entry.mount,
        filesystem=entry.filesystem,
        free_bytes=entry.free_bytes,
        meta=entry.meta_words,
        cluster_id=known.cluster_id if known else None,
        node_id=known.node_id if known else None,
        directory_id=identity,
        proof=proof.partition(" ")[2],
        registered=_registered(node, identity, seen.world) if log_dir else "-",
        replicas=None if unread else sum(kind == "current" for kind in entry.replicas.kind),
        bytes=None if unread else sum(entry.replicas.size),
        folders={kind: entry.replicas.kind.count(kind) for kind in KINDS if kind in entry.replicas.kind},
        metadata_log=None if unread else entry.holds_metadata_log,
        log_dir=log_dir,
        would_be_stray=None if strays is None or unread else len(strays),
        stray_bytes=None if strays is None or unread else sum(fate.size for fate in strays),
        oddities=entry.oddities,
    )


def _registered(node: BrokerNode, identity: str, world: World) -> str:
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
    if registration is None or identity == "?":
        return "unknown"
    if identity in registration.log_dirs:
        return "yes"
    return "offline" if identity in registration.at_start else "no"


HEAD: Final = (
    "broker",
    "directory",
    "health",
    "replicas",
    "replica states",
    "size",
    "free",
    "registered",
    "directory.id",
    "cluster id",
    "meta",
    "node",
    "mounted",
    "metadata log",
    "odd",
)
LINES: Final = (  # of them, what the text says of a directory in two lines
    ("directory.id", "registered", "meta", "node"),
    ("replicas", "size", "replica states", "metadata log", "mounted", "free"),
)


def cells(row: DirectoryRow) -> dict[str, str]:
    """A directory by what `HEAD` names; what was not seen is a question mark, what is not there `-`."""
    told = {**dict.fromkeys(HEAD, "?"), "broker": str(row.broker), "directory": row.path or "-", "health": row.health}
    told["replicas"] = "?" if row.replicas is None else f"{row.replicas:,}"
    told["replica states"] = counted(row.ledger) if row.ledger else "-"
    told["directory.id"] = f"{row.directory_id} (by {row.proof.removeprefix('by ')})" if row.proof else row.directory_id
    if row.path in ("", "?"):
        return told
    unread = row.meta == "?"
    return {
        **told,
        "cluster id": row.cluster_id or ("?" if unread else "-"),
        "mounted": f"{row.mount or '?'} ({row.filesystem or '?'})",
        "free": size(row.free_bytes) if row.free_bytes >= 0 else "?",
        "meta": row.meta,
        "node": ("?" if unread else "-") if row.node_id is None else str(row.node_id),
        "registered": "?" if row.registered == "unknown" else row.registered,
        "size": "?" if row.bytes is None else size(row.bytes),
        "metadata log": "?" if row.metadata_log is None else "here" if row.metadata_log else "-",
        "odd": "; ".join(_odd(row)) or "-",
    }


def _odd(row: DirectoryRow) -> list[str]:
    strays = plural(row.would_be_stray or 0, "folder")
    told = [f"{strays}, {size(row.stray_bytes or 0)}, would be renamed -stray"] if row.would_be_stray else []
    others = [f"{count:,} {kind}" for kind, count in row.folders.items() if kind != "current"]
    return [*told, *others, *row.oddities]


# -- all of them -------------------------------------------------------------------------------------------------
def headline(rows: Sequence[DirectoryRow]) -> tuple[str, str]:
    """How many directories are healthy; how many replicas there are, by state."""
    brokers = {row.broker for row in rows}
    seen = [row for row in rows if row.path not in ("", "?")]
    bad = [row for row in seen if not row.healthy]
    blind = [row.broker for row in rows if row.path == "?"]
    first = f"{plural(len(brokers), 'broker')}, {plural(len(seen), 'directory', 'directories')}"
    told = [f"{len(bad):,} not known to be healthy" if bad else "all healthy"] if seen else []
    told += [f"{plural(len(blind), 'broker')} not seen"] if blind else []
    return f"{first}: {', '.join(told)}", _replicas(rows)


def _replicas(rows: Sequence[DirectoryRow]) -> str:
    """`4,310 replicas: 4,271 VERIFIED, 39 NOT ON DISK`; without a ledger their number alone."""
    unread = sum(row.replicas is None for row in rows)
    total = plural(sum(row.replicas or 0 for row in rows), "replica") + (f" and ? in {unread}" if unread else "")
    states = _sum(row.ledger for row in rows)
    return f"{total}: {counted(states)}" if states else total


def _sum(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = sum((Counter(one) for one in found), Counter[str]())
    return {state.value: total[state] for state in reversed(ReplicaState) if total[state]}


def heat(rows: Sequence[DirectoryRow]) -> HeatMap:
    """A row per broker and a square per directory, with totals and what is not as it should be."""
    found = []
    for broker, group in groupby(rows, key=lambda row: row.broker):
        mine = list(group)
        squares = [square(row.ledger, _tip(row), health=row.health) for row in mine if row.log_dir]
        found.append(HeatRow(f"broker {broker}", tuple(squares), _totals(mine), _unwell(mine)))
    return heat_map(found, ("replicas", "size", "least free"))


def _tip(row: DirectoryRow) -> str:
    told = cells(row)
    return f"{row.path or NOWHERE}: {row.health}; {told['replicas']} replicas; {told['replica states']}"


def _totals(rows: Sequence[DirectoryRow]) -> tuple[str, ...]:
    free = [row.free_bytes for row in rows if row.path]
    known = [row.bytes for row in rows if row.path and row.bytes is not None]
    partly = "" if len(known) == len(free) else "+ ?"
    replicas = sum(row.replicas or 0 for row in rows)
    counted_all = all(row.replicas is not None for row in rows)
    return (
        f"{replicas:,}" if counted_all else f"{replicas:,}+ ?" if replicas else "?",
        f"{size(sum(known))}{partly}" if known else "?",
        size(min(free)) if free and min(free) >= 0 else "?",
    )


def _unwell(rows: Sequence[DirectoryRow]) -> str:
    if states := _sum(row.unexpected for row in rows):
        return counted(states)
    bad = sum(not row.healthy for row in rows)
    return f"{bad} not healthy" if bad else ""


def directories_lines(rows: Sequence[DirectoryRow], width: int = WIDTH, *, full: bool = False) -> tuple[Line, ...]:
    """A line per broker with its totals; below it each directory that is not fine, or with `full` every one."""
    page = Page(width=width)
    if not rows:
        page.add("no broker")
        return tuple(page.lines)
    clusters = sorted({row.cluster_id for row in rows if row.cluster_id})
    first, second = headline(rows)
    page.wrap(first, indent=0)
    page.wrap(second, indent=0)
    page.add(f"cluster {' and '.join(clusters) or '?'}", Tone.DIM)
    page.lines.extend(heat(rows).lines(width))
    told = [row for row in rows if full or not (row.fine or row.unseen_alone)]
    for row in told:
        page.add()
        _directory(page, row)
    if not full and len(told) < len(rows):
        page.add()
        page.add("--full lists every directory with its id, mount and registration", Tone.DIM)
    return tuple(page.lines)


def _directory(page: Page, row: DirectoryRow) -> None:
    found = cells(row)
    page.add(f"broker {row.broker}  {row.path if row.path not in ('', '?') else ''}", Tone.TITLE)
    for told in _told(row):
        page.wrap(told, Tone.PLAIN if row.healthy else Tone.BAD, hang=2)
    for names in LINES:
        known = [f"{name} {found[name]}" for name in names if found[name] != "-" and (row.path or found[name] != "?")]
        page.wrap(", ".join(known), hang=2)


def _told(row: DirectoryRow) -> Iterator[str]:
    """What these lines do not say."""
    if row.path in ("", "?"):
        yield row.health
    elif not row.healthy:
        yield f"NOT HEALTHY: {row.health}"
    if not row.log_dir:
        yield "the metadata directory, outside of log.dirs"
    if row.would_be_stray:
        folders = plural(row.would_be_stray, "folder")
        yield f"{folders} with {size(row.stray_bytes or 0)} would be renamed -stray at a KRaft start"
    others = {kind: count for kind, count in row.folders.items() if kind != "current"}
    if others:
        yield f"other folders: {counted(others)}"
    yield from row.oddities


def directories_html(rows: Sequence[DirectoryRow], cluster: str, looked: str) -> str:
    """One self-contained HTML file: the heat map, what is not fine, then the table; `looked` says of when."""
    return render(
        "directories.html.jinja",
        cluster=cluster,
        looked=looked,
        headline=headline(rows),
        bad=any(not row.fine for row in rows),
        heat=heat(rows),
        sick=told_columns([row for row in rows if not row.fine]),
        directories=told_columns(rows),
    )


def told_columns(rows: Sequence[DirectoryRow]) -> tuple[list[str], list[list[str]]]:
    """The table's head and cells, without columns that are `-` in every row."""
    shown = [cells(row) for row in rows]
    kept = [name for name in HEAD if any(row[name] != "-" for row in shown)]
    return kept, [[row[name] for name in kept] for row in shown]
