"""What earlier runs on a cluster left behind: backups, looked at now, durations, and what they proved (reads only).

A lost journal takes no file's backup away: the copy beside it is found without one, and told by its content.  Any run's
backup from before the copy will do: a run that was killed, or another plan after it, goes on with what was kept.  What
journals prove is for people alone (`status`): no step and no gate rests on it.
"""

from __future__ import annotations

import hashlib
import pathlib
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from migrate.checks.processes import BY_RUN
from migrate.checks.rollback import origin
from migrate.checks.rollback.readiness import rollback_readiness
from migrate.errors import JournalUnwritable, MigrateError
from migrate.model.copied import KeptTree
from migrate.model.detect import CLEANUP_PROVEN, HYBRID_PROVEN
from migrate.model.durations import Durations, Samples, durations_by, measured
from migrate.model.history import ENDED_WELL, Event
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Refused, Unknown
from migrate.model.ports import Clock, Observer
from migrate.model.rollback_readiness import KeptFile, Measured, RollbackFacts
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from migrate.model.world import Need, World
from migrate.run import journal as journals
from migrate.run import locks
from migrate.run.journal import GAP, Journal
from migrate.run.snapshots import COPY_CHECK
from migrate.steps.forward import BEFORE_COPY
from migrate.steps.restore import Restored, to_the_end

TREE: Final = re.compile(r"(?P<name>[^:]+): .*\bsha256 (?P<digest>[0-9a-f]{64}).*")
READINESS: Final = "rollback-readiness"  # the note's key
ROLLBACK_NEEDS: Final = frozenset(
    {Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS}
)
NUMBER: Final = r"\d+(\.\d+)?"
Run = tuple[pathlib.Path, tuple[Event, ...]]


def rollback_facts(world: World) -> RollbackFacts:
    """Look at every journal in the runs' folder and at the backups that they name; copies beside files are the world's.

    `world` was looked at with Need.BACKUPS.
    """
    inventory, kraft = world.inventory, origin(world).kraft
    runs = list(runs_of(pathlib.Path(inventory.runs), inventory.name))
    events = [event for _, found in runs for event in found]
    return RollbackFacts(
        configs={node.id: kept_config(world, node.id, from_kraft=node.id in kraft) for node in inventory.brokers},
        zookeeper=_kept_tree(runs),
        durations=_durations(world, runs),
        gap=_middle(gaps(events)),
        unflagged=_unflagged(events, inventory),
    )


def runs_of(folder: pathlib.Path, cluster: str) -> Iterator[Run]:
    found = [run for run in readable(folder) if run[1] and run[1][0].data.get("cluster") == cluster]
    yield from sorted(found, key=lambda run: run[1][0].time)


def readable(folder: pathlib.Path) -> Iterator[Run]:
    """Each run's folder and events; a journal that cannot be read, or is damaged, proves nothing."""
    for path in sorted(folder.glob("*/journal.jsonl")):
        with suppress(OSError, MigrateError):
            yield path.parent, journals.read(path).events


# -- backups -----------------------------------------------------------------------------------------------------
def kept_config(world: World, broker: NodeId, *, from_kraft: bool) -> KeptFile | Unknown:
    """The broker's ZooKeeper-mode file, found as a rollback finds it: from the copy that leads to the file as it is."""
    if isinstance(world.configs, Unknown):
        return world.configs
    file = world.configs.get(broker, Unknown("its file was not looked at"))
    if not isinstance(file, ConfigFile):
        return file if isinstance(file, Unknown) else Unknown(f"{file.path} does not exist")
    found = to_the_end(world, int(broker), file.raw, from_kraft=from_kraft)
    match found:
        case Restored():
            return KeptFile(found.source, note=found.note)
        case Refused(reason=reason):
            return KeptFile(file.path, reason)
        case _:
            return found


def _kept_tree(runs: Sequence[Run]) -> KeptFile | Unknown:
    for folder, events in reversed(runs):
        said = TREE.fullmatch(journals.notes(events).get("backup:zookeeper", ""))
        if said is not None:
            path = folder / "backup" / said["name"]
            try:
                raw = path.read_bytes()
            except OSError as error:
                return KeptFile(str(path), f"it cannot be read ({error.strerror or type(error).__name__})")
            same = hashlib.sha256(raw).hexdigest() == said["digest"]
            return KeptFile(str(path), "" if same else "it is not what was kept: its SHA-256 is another")
    return Unknown("no journal names one")


# -- durations ---------------------------------------------------------------------------------------------------
def durations_of(world: World) -> Durations:
    """What is known of this cluster's durations: what its runs measured, and its playbook's estimate."""
    return _durations(world, runs_of(pathlib.Path(world.inventory.runs), world.inventory.name))


def _durations(world: World, runs: Iterable[Run]) -> Durations:
    return durations_by(world.playbook, measured(*(events for _, events in runs)))


def samples_of(runs: pathlib.Path, cluster: str, *, but: pathlib.Path) -> Samples:
    """What the steps of that cluster's runs took, but for the run of that folder."""
    return measured(*(events for folder, events in runs_of(runs, cluster) if folder != but))


def gaps(events: Iterable[Event]) -> Iterator[float]:
    """Seconds without a controller that rollbacks of this cluster noted (`migrate.run.journal`)."""
    for event in events:
        if event.name == "note" and event.data["key"] == GAP and re.fullmatch(NUMBER, str(event.data["value"])):
            yield float(event.data["value"])


def _middle(seconds: Iterable[float]) -> Measured | None:
    found = list(seconds)
    return Measured(statistics.median(found), len(found)) if found else None


def _unflagged(events: Iterable[Event], inventory: Inventory) -> tuple[int, ...]:
    """Controllers that a run started in stage finalize: from the first of them on there is no rollback."""
    own = {int(node.id) for node in inventory.controllers}
    finalized = {node for step, node in journals.starts(events) if step.startswith(f"{Stage.FINALIZE.label}/")}
    return tuple(sorted(finalized & own))


# -- in the journal ----------------------------------------------------------------------------------------------
@contextmanager
def readiness_noted(observer: Observer, journal: Journal, clock: Clock) -> Iterator[None]:
    """Whether the rollback is open where the run ends or stops, as the journal's last note: for its report."""
    try:
        yield
    except JournalUnwritable:
        raise
    except MigrateError:
        _note(observer, journal, clock)
        raise
    _note(observer, journal, clock)


def _note(observer: Observer, journal: Journal, clock: Clock) -> None:
    world = observer.observe(ROLLBACK_NEEDS, {})
    value = rollback_readiness(world, rollback_facts(world)).line
    journal.append(clock.now(), "note", {"key": READINESS, "value": value})


NOTE: Final = f"backup:{BEFORE_COPY}"


def kept_before_copy(inventory: Inventory) -> KeptTree | None:
    """The newest that a journal of this cluster names, with the check that found nothing lost; None where none does."""
    kept: KeptTree | None = None
    runs = runs_of(pathlib.Path(inventory.runs), inventory.name)
    events = [(event.time, folder, event) for folder, found in runs for event in found]
    for _, folder, event in sorted(events, key=lambda entry: entry[0]):
        if event.name == "note" and event.data["key"] == NOTE:
            said = TREE.fullmatch(str(event.data["value"]))
            kept = KeptTree(str(folder / "backup" / said["name"]), said["digest"], folder.name) if said else None
        elif event.name == COPY_CHECK and kept is not None and event.data["at_end"]:
            clean = event.data.get("lost") == 0 and event.data.get("miscounted") == []
            kept = replace(kept, concluded=dict(event.data) if clean else None)
    return kept


CLEANED: Final = "cleanup/prove-final"
PROOFS: Final = {  # step -> fact
    "hybrid/hybrid": HYBRID_PROVEN,
    CLEANED: CLEANUP_PROVEN,
}
AFTERWARDS: Final = frozenset(  # these undo no earlier proof
    stage.label for stage in (Stage.DISCOVER, Stage.ASSESS, Stage.DIRECTORIES)
)


def by_journals(inventory: Inventory) -> Mapping[str, str]:
    """Facts for `observe`: what was proven by the last thing that any run concluded, and the nodes that runs hold."""
    last: tuple[float, str, str] | None = None
    runs = list(readable(pathlib.Path(inventory.runs)))
    for folder, events in runs:
        for event in events:
            well = event.name == "conclude" and event.data["outcome"] in ENDED_WELL
            well = well and (event.data["step"] in PROOFS or event.data.get("stage") not in AFTERWARDS)
            if well and (last is None or event.time >= last[0]):
                last = (event.time, str(event.data["step"]), folder.name)
    proven = {PROOFS[last[1]]: f"run {last[2]}"} if last is not None and last[1] in PROOFS else {}
    lock = locks.file_owner(pathlib.Path(inventory.runs) / "lock") if runs else None
    alive = lock is not None and lock.held
    return proven | {f"{BY_RUN}{node}": "" if alive else run for node, run in _held(runs).items()}


def _held(runs: Iterable[Run]) -> Mapping[str, str]:
    """Nodes that a run stopped and that none has started since: node -> the run's name.  One that ended holds none.

    Meaning to start one is not having started it: a run can be killed in between.
    """
    held: dict[str, str] = {}
    told = [(event.time, folder.name, event) for folder, events in runs for event in events]
    for _, run, event in sorted(told, key=lambda entry: entry[0]):
        if event.name == "end":
            held = {node: name for node, name in held.items() if name != run}
        elif event.name == "effect" and event.data["effect"] == "stop":
            held[event.data["node"]] = run
        elif event.name == "effected" and event.data["effect"] == "start":
            held.pop(event.data["node"], None)
    return held
