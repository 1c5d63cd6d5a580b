"""The last look at ZooKeeper before Kafka's copy, held against the metadata at the copy's end (reads only).

The look is the newest of two: a backup that the run took before it restarted the last broker (`migrate.run.past_runs`
finds it), and, in the process that watched, the last whole view that was read while a broker still owned `/controller`.
"""

from __future__ import annotations

import hashlib
import logging
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from migrate.errors import MigrateError
from migrate.model.copied import CopyCheck, CopyEnd, KeptTree, NoLook, counted, lacking, still_lacking
from migrate.model.difference import Difference, DifferenceClass, current
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, ServiceControl
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.zookeeper import layout
from migrate.zookeeper.backup import BackupTree, load_backup
from migrate.zookeeper.layout import TreeReader, Znode
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import view_of

LOG: Final = logging.getLogger("migrate.observe")
COMPLETED: Final = re.compile(
    r"Completed migration of metadata from ZooKeeper to KRaft\. .*The record types were \{(?P<types>[A-Z_0-9=, ]*)\}",
    re.IGNORECASE,
)
NEVER_KEPT: Final = NoLook("no run on this cluster kept a look at ZooKeeper before the last broker of the first roll")


@dataclass(slots=True)
class BeforeCopy:
    """The newest whole view from before the copy: of a look behind which another one found no KRaft controller yet."""

    view: ZookeeperView | None = None
    _next: ZookeeperView | None = None
    _over: bool = False

    def seen(self, view: ZookeeperView) -> None:
        """One more look; from the first one with a KRaft controller on none is of before the copy."""
        if self._over or view.kraft_owns:
            self._over, self._next = True, None
        elif isinstance(view.migration, MigrationZnode):  # before the controllers were started no copy is near
            self.view, self._next = self._next, view


@dataclass(frozen=True, slots=True)
class CopyQuestion:
    """What the check needs: how to find the kept backup, what of ZooKeeper was seen, and how to read both."""

    kept: Callable[[], KeptTree | None]
    seen: ZookeeperView | None
    end: CopyEnd | None
    live: Callable[[], TreeReader]
    digester: Digester
    secrets: Callable[[], EncoderSecrets | None]
    services: ServiceControl
    accepted: Sequence[AcceptedDifference]


def check_copy(
    question: CopyQuestion, zookeeper: ZookeeperView | Unknown, kraft: KraftView | Unknown
) -> CopyCheck | NoLook | Unknown:
    """The check's answer; Unknown before the copy, and where a look is kept that cannot be read."""
    if isinstance(kraft, Unknown):
        return kraft
    if isinstance(zookeeper, Unknown):
        return zookeeper
    if kraft.migration_state is not ZkMigrationState.MIGRATION or not kraft.committed:
        return Unknown("the metadata does not say that the copy was made")
    try:
        kept = question.kept()
        if question.end is None and kept is not None and kept.concluded is not None:
            return _as_concluded(kept)
        found = _look(question, kept)
    except (MigrateError, OSError) as error:
        return Unknown(f"the look at ZooKeeper from before the copy cannot be read: {error}")
    return found if isinstance(found, NoLook) else _held(question, found, zookeeper, kraft)


def _look(question: CopyQuestion, kept: KeptTree | None) -> tuple[ZookeeperView, str] | NoLook:
    """The newest look and where it comes from; raises what reading the backup raises."""
    tree = None if kept is None else _tree(kept)
    if tree is not None and not _of_this_attempt(tree, question.live()):
        tree = None
    seen = question.seen
    if seen is not None and (tree is None or seen.zxid_first >= tree.zxid()):
        return seen, f"this run's last look before the copy, at zxid {seen.zxid_first}"
    if tree is None or kept is None:
        return NEVER_KEPT
    view = view_of(tree, tree.connect, question.digester, question.secrets())
    return replace(view, zxid_first=tree.zxid()), f"{kept.path} of run {kept.run}"


def _tree(kept: KeptTree) -> BackupTree:
    raw = pathlib.Path(kept.path).read_bytes()
    if hashlib.sha256(raw).hexdigest() != kept.sha256:
        raise OSError(f"{kept.path} is not what run {kept.run} wrote: its SHA-256 is another")
    return load_backup(kept.path)


def _of_this_attempt(tree: BackupTree, live: TreeReader) -> bool:
    """/migration is created by each attempt's controllers and deleted by a rollback: its creation names the attempt."""
    was, now = tree.znodes.get(layout.MIGRATION), live.data([layout.MIGRATION])[0]
    return isinstance(was, Znode) and isinstance(now, Znode) and was.czxid == now.czxid


def _held(
    question: CopyQuestion, look: tuple[ZookeeperView, str], zookeeper: ZookeeperView, kraft: KraftView
) -> CopyCheck:
    from migrate.diff.typed_rows import blind_configs

    view, source = look
    now = CopyEnd(kraft.offset, kraft.partitions, kraft.entities, {})
    end = question.end or now
    rows = lacking(view, end, blind_configs(view.blind_spots))
    known = [row for row in rows if row.rule]
    lost, accepted = _accepted(still_lacking([row for row in rows if not row.rule], now), question.accepted)
    return CopyCheck(
        zxid=view.zxid_first,
        source=source,
        offset=end.offset,
        at_end=question.end is not None,
        counts=counted(view, end),
        lost=tuple(sorted(lost, key=_order)),
        known=tuple(sorted([*known, *accepted], key=_order)),
        records=end.records,
        driver=_driver_counts(question.services, zookeeper),
        blind=view.blind_spots,
    )


def _order(row: Difference) -> tuple[str, str, str]:
    return row.kind, row.key, row.field


def _accepted(
    rows: list[Difference], accepted: Sequence[AcceptedDifference]
) -> tuple[list[Difference], list[Difference]]:
    """What nothing excuses, and what the playbook accepts by name, with the ticket."""
    today = datetime.now(UTC).date()
    tickets = {(entry.rule, entry.kind, entry.name, entry.field): entry.ticket for entry in current(accepted, today)}
    lost, named = [], []
    for row in rows:
        ticket = tickets.get((row.cls.value, row.kind, row.key, row.field))
        if ticket is None:
            lost.append(row)
        else:
            named.append(replace(row, cls=DifferenceClass.ACCEPTED, rule=ticket))
    return lost, named


def _driver_counts(services: ServiceControl, zookeeper: ZookeeperView) -> Mapping[str, int] | Unknown:
    """The last line of its kind in the log of the controller that copied; no ground of anything but a contradiction."""
    if not isinstance(zookeeper.migration, MigrationZnode):
        return Unknown("/migration does not say which controller copied")
    node = NodeId(zookeeper.migration.controller_id)
    try:
        lines = services.last_words(node, LOG_LINES)
    except (MigrateError, OSError) as error:
        return Unknown(f"the log of controller {int(node)} cannot be read: {error}")
    return driver_counts(lines) or Unknown(f"the log of controller {int(node)} does not hold its counts of the copy")


def driver_counts(lines: Sequence[str]) -> Mapping[str, int] | None:
    """Records by type that the migration driver says it generated (`MigrationManifest`); None where it says none."""
    for line in reversed(lines):
        found = COMPLETED.search(line)
        if found is not None:
            pairs = (part.partition("=")[::2] for part in found["types"].split(", ") if "=" in part)
            return {name.strip(): int(number) for name, number in pairs}
    return None


def _as_concluded(kept: KeptTree) -> CopyCheck:
    """The answer of the run that held this look against the copy, where the log no longer reaches back to it."""
    found: Mapping[str, Any] = kept.concluded or {}
    return CopyCheck(
        zxid=found.get("zxid", -1),
        source=f"the journal of run {kept.run}",
        offset=found.get("offset", -1),
        at_end=True,
        counts={kind: (before, after) for kind, (before, after) in found.get("counts", {}).items()},
        lost=(),
        known=tuple(
            Difference(kind, key, name, DifferenceClass.EXPECTED, None, None, rule)
            for rule, rows in found.get("known", {}).items()
            for kind, key, name in rows
        ),
        records={},
        driver=Unknown(f"it was compared by run {kept.run}"),
    )
