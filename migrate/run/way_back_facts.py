"""What the runs on a cluster left behind that a way back needs: backups, looked at now, and durations (reads only).

A lost journal takes no backup away: the copy beside a broker's file is found without it, and told by its content.
"""

from __future__ import annotations

import hashlib
import pathlib
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from migrate.checks.phase import Mode, mode_of
from migrate.errors import JournalDamaged, MigrateError
from migrate.hosts.properties import parse
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.way_back import KeptFile, Measured, WayBackFacts
from migrate.run import journal as journals
from migrate.run.effects import BACKUP_SUFFIX

NOTE: Final = re.compile(r"(?P<path>.*) \(SHA-256 (?P<digest>[0-9a-f]{64})\)")
TREE: Final = re.compile(r"(?P<name>[^:]+): .*\bsha256 (?P<digest>[0-9a-f]{64}).*")
NUMBER: Final = r"\d+(\.\d+)?"
GAP: Final = "gap:controller"  # the note that a rollback leaves
Run = tuple[pathlib.Path, tuple[Event, ...]]


class ReadFiles(Protocol):
    """The reading half of `migrate.model.ports.Files`."""

    def read(self, node: NodeId, path: str) -> bytes:
        """A file's bytes; OSError where it cannot be read."""


def way_back_facts(inventory: Inventory, files: ReadFiles) -> WayBackFacts:
    """Look at every journal in the runs' folder, and at every backup that they, or the brokers' hosts, have."""
    runs = list(_runs(pathlib.Path(inventory.runs), inventory.name))
    events = [event for _, found in runs for event in found]
    brokers = {str(int(node.id)) for node in inventory.brokers}
    return WayBackFacts(
        configs={node.id: kept_config(node, runs, files) for node in inventory.brokers},
        zookeeper=_kept_tree(runs),
        restart=_middle(restarts(events, brokers)),
        gap=_middle(gaps(events)),
        unflagged=_unflagged(events, inventory),
    )


def _runs(folder: pathlib.Path, cluster: str) -> Iterator[Run]:
    """The cluster's readable journals, oldest first; a damaged one proves nothing here."""
    found = []
    for path in folder.glob("*/journal.jsonl"):
        try:
            events = journals.read(path).events
        except (JournalDamaged, OSError):
            continue
        if events and events[0].data.get("cluster") == cluster:
            found.append((path.parent, events))
    yield from sorted(found, key=lambda run: run[1][0].time)


# -- backups -----------------------------------------------------------------------------------------------------
def kept_config(node: BrokerNode, runs: Sequence[Run], files: ReadFiles) -> KeptFile | Unknown:
    """The broker's ZooKeeper-mode file: as a journal names it, else the copy beside the file, told by its content."""
    for folder, events in reversed(runs):
        said = NOTE.fullmatch(journals.notes(events).get(f"backup:{int(node.id)}:{node.config}", ""))
        if said is None:
            continue
        copy = folder / "backup" / str(int(node.id)) / node.config.strip("/").replace("/", "_")
        both = (_held(said["path"], said["digest"], lambda p: files.read(node.id, p)), _held_here(copy, said["digest"]))
        whole = [kept for kept in both if not kept.problem]
        kept = whole[0] if whole else both[0]
        raw = None if kept.problem else _read(kept.path, node, files, copy)
        if raw is None:
            return kept
        if _mode(raw) is Mode.ZOOKEEPER:
            return kept
        # a later attempt began from another mode: an earlier run has the file of before the first roll
    return _beside(node, files)


def _read(path: str, node: BrokerNode, files: ReadFiles, copy: pathlib.Path) -> bytes:
    return copy.read_bytes() if path == str(copy) else files.read(node.id, path)


def _beside(node: BrokerNode, files: ReadFiles) -> KeptFile | Unknown:
    """No journal names one: the copy beside the file, if it is this broker's ZooKeeper-mode file."""
    path = node.config + BACKUP_SUFFIX
    try:
        raw = files.read(node.id, path)
    except FileNotFoundError:
        return KeptFile(path, "there is no backup, and no journal that names one")
    except OSError as error:
        return Unknown(f"{path}: {error.strerror}")
    if _mode(raw) is not Mode.ZOOKEEPER:
        return KeptFile(path, "it is no file of ZooKeeper mode")
    own = parse(raw).get("broker.id", "").strip()
    return KeptFile(path, "" if own == str(int(node.id)) else f"it is broker {own or '?'}'s")


def _mode(raw: bytes) -> Mode | None:
    try:
        return mode_of(parse(raw))
    except MigrateError:
        return None


def _held(path: str, digest: str, read: object) -> KeptFile:
    try:
        raw = read(path)  # type: ignore[operator]
    except OSError as error:
        return KeptFile(path, f"it cannot be read ({error.strerror or type(error).__name__})")
    same = hashlib.sha256(raw).hexdigest() == digest
    return KeptFile(path, "" if same else "it is not what was kept: its SHA-256 is another")


def _held_here(path: pathlib.Path, digest: str) -> KeptFile:
    return _held(str(path), digest, lambda _: path.read_bytes())


def _kept_tree(runs: Sequence[Run]) -> KeptFile | Unknown:
    """The newest backup of the ZooKeeper tree that a journal names."""
    for folder, events in reversed(runs):
        said = TREE.fullmatch(journals.notes(events).get("backup:zookeeper", ""))
        if said is not None:
            return _held_here(folder / "backup" / said["name"], said["digest"])
    return Unknown("no journal names one")


# -- durations ---------------------------------------------------------------------------------------------------
def restarts(events: Iterable[Event], brokers: frozenset[str] | set[str]) -> Iterator[float]:
    """Seconds from the order to stop a broker until the step that restarted it was proven."""
    stopped: dict[str, float] = {}
    for event in events:
        if event.name == "effect" and event.data["effect"] == "stop" and event.data["node"] in brokers:
            stopped.setdefault(event.data["step"], event.time)
        elif event.name == "session":
            stopped.clear()  # a killed run's pause is no duration of a restart
        elif event.name == "conclude" and event.data["step"] in stopped:
            since = stopped.pop(event.data["step"])
            if event.data["outcome"] in journals.ENDED_WELL:
                yield event.time - since


def gaps(events: Iterable[Event]) -> Iterator[float]:
    """Seconds without a controller that rollbacks of this cluster noted (`migrate.run.measured`)."""
    for event in events:
        if event.name == "note" and event.data["key"] == GAP and re.fullmatch(NUMBER, str(event.data["value"])):
            yield float(event.data["value"])


def _middle(seconds: Iterable[float]) -> Measured | None:
    found = list(seconds)
    return Measured(statistics.median(found), len(found)) if found else None


def _unflagged(events: Iterable[Event], inventory: Inventory) -> tuple[int, ...]:
    """Controllers that a run started in stage finalize: from the first of them on there is no way back."""
    own = {str(int(node.id)) for node in inventory.controllers}
    found = {
        int(event.data["node"])
        for event in events
        if event.name == "effect"
        and event.data["effect"] == "start"
        and event.data["node"] in own
        and event.data["step"].startswith(f"{Stage.FINALIZE.label}/")
    }
    return tuple(sorted(found))
