"""Log directories, one row per broker and directory: values, terminal text, an HTML table and a figure of disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from markupsafe import Markup
from typing_extensions import TypedDict

from migrate.model.inventory import BrokerNode
from migrate.model.ledger import LedgerRow, ReplicaState, count_states
from migrate.model.loader import Assigned, Foretold, all_assigned, foretell
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import Directory, KraftView, MetaBroken, MetaProperties
from migrate.model.words import counted, plural
from migrate.model.world import World
from migrate.report.markup import render
from migrate.report.wording import printable, size

STATES: Final = tuple(reversed([state.value for state in ReplicaState]))  # VERIFIED first: it grows from the floor
KINDS = ("current", "future", "deleted", "stray")


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """One directory of a broker; `path` "?" stands for a broker that was not seen, `health` then says why.

    `meta` is V0, V1, `missing`, `broken: ...`, or ? where the directory could not be read: its id is ? as well, and
    nothing was counted.  `registered` is yes, no or unknown.  `replicas` and `bytes` are of current folders and of all
    folders.  `log_dir` is False for a metadata.log.dir outside of log.dirs.
    `would_be_stray` counts folders that a KRaft start would set aside; None where that is not known.
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
    registered: str = "?"
    replicas: int = 0
    bytes: int = 0
    folders: Mapping[str, int] = field(default_factory=dict)
    metadata_log: bool = False
    log_dir: bool = True
    would_be_stray: int | None = None
    stray_bytes: int | None = None
    oddities: tuple[str, ...] = ()
    ledger: Mapping[str, int] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Is it known to be?"""
        return self.health == "healthy"


class ShowAnswer(TypedDict):
    """What `directories show` answers."""

    directories: Sequence[DirectoryRow]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What all brokers' rows need, computed once: the ledger by broker and directory, and each broker's assignments."""

    world: World
    states: Mapping[tuple[int, str], Mapping[str, int]]
    assigned: Mapping[int, Assigned] | None  # None: nobody says what is assigned


def directory_rows(world: World) -> tuple[DirectoryRow, ...]:
    """Brokers in the inventory's order, directories in that of log.dirs; nobody is left out."""
    seen = _Seen(world, _states(world), _assigned(world))
    return tuple(row for node in world.inventory.brokers for row in _of_broker(node, seen))


def _states(world: World) -> dict[tuple[int, str], dict[str, int]]:
    places: dict[tuple[int, str], list[LedgerRow]] = {}
    for row in () if isinstance(world.ledger, Unknown) else world.ledger.rows:
        places.setdefault((row.broker, row.on_disk), []).append(row)
    return {place: count_states(rows) for place, rows in places.items()}


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
    if isinstance(found, Unknown):
        yield DirectoryRow(int(node.id), "?", f"unknown: {found.reason}")
        return
    foretold = None
    if seen.assigned is not None:
        foretold = foretell(found, seen.assigned.get(int(node.id), Assigned({}, {})))
    for entry in found.directories:
        yield _row(node, entry, seen, foretold)
    if found.metadata_directory is not None:
        yield _row(node, found.metadata_directory, seen, foretold, log_dir=False)


def _row(
    node: BrokerNode, entry: Directory, seen: _Seen, foretold: Foretold | None, *, log_dir: bool = True
) -> DirectoryRow:
    known = entry.meta if isinstance(entry.meta, MetaProperties) else None
    meta = _meta(entry)
    identity = str(entry.id or ("?" if meta == "?" else "-"))
    strays = None if foretold is None else [fate for fate in foretold.strays if fate.directory == entry.path]
    return DirectoryRow(
        broker=int(node.id),
        path=entry.path,
        health=entry.health,
        mount=entry.mount,
        filesystem=entry.filesystem,
        free_bytes=entry.free_bytes,
        meta=meta,
        cluster_id=known.cluster_id if known else None,
        node_id=known.node_id if known else None,
        directory_id=identity,
        registered=_registered(node, entry, seen.world) if log_dir else "-",
        replicas=sum(kind == "current" for kind in entry.replicas.kind),
        bytes=sum(entry.replicas.size),
        folders={kind: entry.replicas.kind.count(kind) for kind in KINDS if kind in entry.replicas.kind},
        metadata_log=entry.holds_metadata_log,
        log_dir=log_dir,
        would_be_stray=None if strays is None else len(strays),
        stray_bytes=None if strays is None else sum(fate.size for fate in strays),
        oddities=entry.oddities,
        ledger=dict(seen.states.get((int(node.id), identity), {})),
    )


def _meta(entry: Directory) -> str:
    """Of a directory that could not be read nothing is said: its file may be there."""
    match entry.meta:
        case MetaProperties(version=version):
            return f"V{version}"
        case MetaBroken(reason=reason):
            return f"broken: {reason}"
    return "?" if entry.problem else "missing"


def _registered(node: BrokerNode, entry: Directory, world: World) -> str:
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
    if registration is None or (entry.id is None and entry.problem):
        return "unknown"
    return "yes" if entry.id in registration.log_dirs else "no"


HEAD: Final = (
    "broker",
    "directory",
    "health",
    "cluster id",
    "mounted",
    "free",
    "meta",
    "node",
    "directory.id",
    "registered",
    "replicas",
    "size",
    "metadata log",
    "replica states",
    "odd",
)
LINES: Final = (  # of them, what the text says of a directory in two lines
    ("directory.id", "registered", "meta", "node"),
    ("replicas", "size", "replica states", "metadata log", "mounted", "free"),
)


def cells(row: DirectoryRow) -> dict[str, str]:
    """A directory by what `HEAD` names; what was not seen is a question mark, what is not there `-`."""
    if row.path == "?":
        return {**dict.fromkeys(HEAD, "?"), "broker": str(row.broker), "health": row.health}
    unread = row.meta == "?"
    return {
        "broker": str(row.broker),
        "directory": row.path,
        "health": row.health,
        "cluster id": row.cluster_id or "-",
        "mounted": f"{row.mount or '?'} ({row.filesystem or '?'})",
        "free": size(row.free_bytes) if row.free_bytes >= 0 else "?",
        "meta": row.meta,
        "node": "-" if row.node_id is None else str(row.node_id),
        "directory.id": row.directory_id,
        "registered": row.registered,
        "replicas": "?" if unread else f"{row.replicas:,}",
        "size": "?" if unread else size(row.bytes),
        "metadata log": "?" if unread else "here" if row.metadata_log else "-",
        "replica states": counted(row.ledger) if row.ledger else "-",
        "odd": "; ".join(_odd(row)) or "-",
    }


def _odd(row: DirectoryRow) -> list[str]:
    strays = plural(row.would_be_stray or 0, "folder")
    told = [f"{strays}, {size(row.stray_bytes or 0)}, would be renamed -stray"] if row.would_be_stray else []
    others = [f"{count:,} {kind}" for kind, count in row.folders.items() if kind != "current"]
    return [*told, *others, *row.oddities]


def directories_html(rows: Sequence[DirectoryRow], cluster: str) -> str:
    """One self-contained HTML file: the picture, then the table."""
    broken = sum(not row.healthy for row in rows)
    words = plural(len(rows), "directory", "directories") + (f", {broken} not known to be healthy" if broken else "")
    return render(
        "directories.html.jinja",
        cluster=cluster,
        words=words,
        picture=disks_and_replicas(rows),
        legend=legend(rows),
        directories=told_columns(rows),
    )


def told_columns(rows: Sequence[DirectoryRow]) -> tuple[list[str], list[list[str]]]:
    """The table's head and cells, without columns that are `-` in every row."""
    shown = [cells(row) for row in rows]
    kept = [name for name in HEAD if any(row[name] != "-" for row in shown)]
    return kept, [[row[name] for name in kept] for row in shown]


MOST_BROKERS: Final = 40


@dataclass(frozen=True, slots=True)
class Box:
    """One directory as it is drawn: what it is, what it holds, and a bar of parts in percent with their classes."""

    path: str
    tip: str
    words: str
    bad: bool
    identity: str
    strays: str
    parts: tuple[tuple[str, float], ...]
    corner: str


def disks_and_replicas(rows: Sequence[DirectoryRow]) -> Markup:
    """The picture; empty for no row.  Brokers with something wrong come first where not all are drawn."""
    groups = [(broker, list(found)) for broker, found in groupby(rows, key=lambda row: row.broker)]
    if not groups:
        return Markup("")
    many = len(groups) > MOST_BROKERS
    shown = sorted(groups, key=lambda group: all(map(_fine, group[1])))[:MOST_BROKERS] if many else groups
    most = max((row.replicas for row in rows), default=0) or 1
    largest = max((row.bytes for row in rows), default=0) or 1
    drawn = [(broker, [_box(row, most, largest) for row in found]) for broker, found in shown]
    left = len(groups) - len(shown)
    more = f"and {plural(left, 'broker')} more, in the table" if left else ""
    return Markup(render("disks.html.jinja", brokers=drawn, more=more))  # noqa: S704 - the template escapes


def css_class(state: str) -> str:
    """The class that colours a state: `s-not-on-disk`."""
    return "s-" + state.lower().replace(" ", "-") if state in STATES else "s-unknown"


def legend(rows: Sequence[DirectoryRow]) -> tuple[tuple[str, str], ...]:
    """The states that are drawn, with their classes."""
    seen = {state for row in rows for state, count in row.ledger.items() if count}
    return tuple((state, css_class(state)) for state in STATES if state in seen)


def _fine(row: DirectoryRow) -> bool:
    return row.healthy and not row.would_be_stray and set(row.ledger) <= {"VERIFIED"}


def _box(row: DirectoryRow, most: int, largest: int) -> Box:
    free = f", {size(row.free_bytes)} free" if row.free_bytes >= 0 else ", free space unknown"
    registered = {"yes": "registered", "no": "NOT REGISTERED"}.get(row.registered, "registration not known")
    states = counted(row.ledger) if row.ledger else "no ledger"
    odd = f"; {'; '.join(row.oddities)}" if row.oddities else ""
    seen = row.path != "?"
    identity = {"-": "no directory.id", "?": "directory.id not known"}.get(row.directory_id, row.directory_id)
    return Box(
        path=row.path if seen else "not seen",
        tip=f"{row.path} on {row.mount or '?'}, {row.health}; meta.properties {row.meta}; {states}{odd}",
        words=f"{plural(row.replicas, 'replica')}, {size(row.bytes)}{free}" if row.healthy and seen else row.health,
        bad=not row.healthy,
        identity=f"{identity}, {registered if row.log_dir else 'metadata.log.dir'}" if seen else "",
        strays=f"{plural(row.would_be_stray, 'folder')} would be renamed -stray" if row.would_be_stray else "",
        parts=tuple(_parts(row, most, largest)) if seen else (),
        corner="metadata log" if row.metadata_log else "",
    )


def _parts(row: DirectoryRow, most: int, largest: int) -> Iterator[tuple[str, float]]:
    """Replicas by state, against the fullest directory; before there is a ledger bytes, against what would fit."""
    if row.ledger:
        known = sum(row.ledger.values())
        counts = [(css_class(state), row.ledger.get(state, 0)) for state in STATES]
        counts.append(("s-none", max(row.replicas - known, 0)))
        yield from ((name, 100 * count / max(most, known)) for name, count in counts if count)
    elif row.bytes:
        room = row.bytes + row.free_bytes if row.free_bytes >= 0 else largest
        yield "s-used", 100 * row.bytes / room


def directories_text(rows: Sequence[DirectoryRow]) -> str:
    """Every broker's directories, with a line between brokers."""
    brokers = groupby(rows, key=lambda row: row.broker)
    return "\n\n".join("\n".join(_broker_text(broker, list(found))) for broker, found in brokers) or "no broker"


def _broker_text(broker: int, rows: list[DirectoryRow]) -> Iterator[str]:
    clusters = sorted({row.cluster_id for row in rows if row.cluster_id})
    yield f"broker {broker}" + (f"  cluster {' and '.join(map(printable, clusters))}" if clusters else "")
    for row in rows:
        if row.path == "?":
            yield f"  {printable(row.health)}"
            continue
        found = cells(row)
        yield f"  {printable(row.path)}"
        for names in LINES:
            yield f"      {', '.join(f'{name} {printable(found[name])}' for name in names if found[name] != '-')}"
        yield from (f"      {told}" for told in _told(row))


def _told(row: DirectoryRow) -> Iterator[str]:
    """What these lines do not say."""
    if not row.healthy:
        yield f"NOT HEALTHY: {printable(row.health)}"
    if not row.log_dir:
        yield "the metadata directory, outside of log.dirs"
    if row.would_be_stray:
        folders = plural(row.would_be_stray, "folder")
        yield f"{folders} with {size(row.stray_bytes or 0)} would be renamed -stray at a KRaft start"
    others = {kind: count for kind, count in row.folders.items() if kind != "current"}
    if others:
        yield f"other folders: {counted(others)}"
    yield from map(printable, row.oddities)
