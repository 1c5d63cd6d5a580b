"""A KRaft broker gets more log directories, or gives back those in which no replica lies; both are one roll.

Nothing is deleted: the meta.properties of a directory that goes gets another name, so that no broker
takes it for its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.errors import DirectoryInUse
from migrate.model.broker_modes import Mode
from migrate.model.ids import NodeId
from migrate.model.new_directories import META, NewDirectory
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, HalfDone, Predicted, Progress
from migrate.model.views import MetaMissing
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.steps import configuration, facts, gates
from migrate.steps.base import BaseStep
from migrate.steps.directories import gates as directory_gates
from migrate.steps.forward import can_be_unfenced
from migrate.steps.gates import Gate, gate
from migrate.steps.prepare import BackUpBroker
from migrate.steps.restore import Restored
from migrate.steps.roll import FULL_ISRS, Roll

SEEN = frozenset({Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.LEDGER, Need.NEW_DIRECTORIES})
SEPARATOR = ","  # log.dirs is a list with commas: no path in it can have one


@dataclass(frozen=True, slots=True)
class KeepDirectoryFiles(BackUpBroker):
    kind = "keep-directory-files"
    name = "keep-{broker}"
    stage_is = Stage.DIRECTORIES


@dataclass(frozen=True, slots=True)
class DirectoryRoll(Roll):
    directories: str  # comma-separated, as in log.dirs

    stage_is = Stage.DIRECTORIES
    goal = Mode.KRAFT
    needs = SEEN | {Need.LISTENERS}
    proof_needs = SEEN | {Need.LISTENERS}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.directories.split(SEPARATOR))

    def stop_gates(self) -> tuple[Gate, ...]:
        return (
            gate(directory_gates.kraft_alone),
            gate(directory_gates.version_fits),
            gate(directory_gates.all_proven),
            gate(gates.stop_is_accepted, self.broker),
            gate(gates.quorum_healthy),
            gate(gates.replicas_full),
            gate(gates.no_blockers, self.stage),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        """Itself it cannot be seen, where it was stopped half way."""
        return (
            gate(directory_gates.kraft_alone),
            gate(directory_gates.version_fits),
            gate(gates.disks_healthy, self.broker),
            gate(gates.quorum_healthy),
            gate(directory_gates.blockers_but_half_done, self.stage, self.broker, self.paths),
        )

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.registered(world, migrating=False)
        yield can_be_unfenced(world, self.broker)
        yield directory_gates.metadata_log_stays(world, self.broker)
        yield gates.replicas_full(world)

    def evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
            return ()
        found = world.kraft.brokers.get(NodeId(self.broker))
        if found is None:
            return ()
        number = plural(len(found.log_dirs), "directory", "directories")
        return (
            f"registration at offset {found.epoch}: incarnation {found.incarnation}, {number} as on disk",
            f"{len(world.ledger.of(self.broker))} replicas VERIFIED at metadata offset {world.ledger.offset}",
            FULL_ISRS,
        )


@dataclass(frozen=True, slots=True)
class AddDirectories(DirectoryRoll):
    release: str  # the cluster's metadata.version, as kafka-storage calls it

    kind = "add-directories"
    undo = "`rollback plan`: the same the other way, while they have no replicas"
    proof = (
        "registered directories equal those on disk, the new ones with the ids that kafka-storage gave them; every "
        "replica of it VERIFIED, unfenced, every ISR full; the metadata log where it was"
    )

    @property
    def title(self) -> str:
        return f"give broker {self.broker} {plural(len(self.paths), 'more log directory', 'more log directories')}"

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return Restored(configuration.with_directories(raw, self.paths), "")

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        found = directory_gates.entries(world, self.broker, self.paths)
        formats = tuple(
            Action("+", f"broker {self.broker}", f"format {path}{_place(found, path)}") for path in self.paths
        )
        return (*formats, *Roll.actions(self, world, before))

    def own_gates(self) -> tuple[Gate, ...]:
        return gate(directory_gates.fit_to_format, self.broker, self.paths), *self.stop_gates()

    def start_gates(self) -> tuple[Gate, ...]:
        return gate(directory_gates.fit_to_format, self.broker, self.paths), *DirectoryRoll.start_gates(self)

    def before_start(self, world: World, effects: Effects) -> None:
        """Kafka's own tool gives each its ids; what is formatted already stays as it is."""
        assert not isinstance(world.kraft, Unknown)
        Roll.before_start(self, world, effects)
        if directory_gates.formatted(world, self.broker, self.paths) is not True:
            effects.format_directories(NodeId(self.broker), world.kraft.cluster_id, self.release)

    def proofs(self, world: World) -> Iterator[Readiness]:
        found = directory_gates.entries(world, self.broker, self.paths)
        if isinstance(found, Unknown):
            yield found
        elif bare := [entry.path for entry in found if isinstance(entry.directory.meta, MetaMissing)]:
            yield Refused(f"{bare[0]} of broker {self.broker} has no meta.properties")
        yield from DirectoryRoll.proofs(self, world)

    def evidence(self, world: World) -> tuple[str, ...]:
        found = directory_gates.entries(world, self.broker, self.paths)
        entries = () if isinstance(found, Unknown) else found
        return *(f"{entry.path} is {entry.directory.id}" for entry in entries), *DirectoryRoll.evidence(self, world)


def _place(found: tuple[NewDirectory, ...] | Unknown, path: str) -> str:
    if isinstance(found, Unknown):
        return ""
    entry = next(entry.directory for entry in found if entry.path == path)
    return f" (on {entry.mount}, {entry.filesystem}, {entry.free_bytes / 2**30:.1f} GiB free)" if entry.mount else ""


@dataclass(frozen=True, slots=True)
class RemoveDirectories(DirectoryRoll):
    kind = "remove-directories"
    undo = "`plan`: it gives them to the broker again, formatted again"
    proof = (
        "registered directories equal those that are left on disk, every replica of it VERIFIED, unfenced, every ISR "
        "full; each directory's meta.properties is kept beside under another name"
    )

    @property
    def title(self) -> str:
        what = plural(len(self.paths), "empty log directory", "empty log directories")
        return f"take {what} from broker {self.broker}"

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return Restored(configuration.without_directories(raw, self.paths), "")

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        renames = tuple(
            Action("~", f"broker {self.broker}", f"rename {path}/{META}: nothing is deleted") for path in self.paths
        )
        return (*renames, *Roll.actions(self, world, before))

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(directory_gates.not_metadata, self.broker, self.paths),
            gate(directory_gates.holds_nothing, self.broker, self.paths),
            *self.stop_gates(),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        """The broker is down: nothing can have come, and the rest of the cluster must still be there."""
        return gate(directory_gates.holds_nothing, self.broker, self.paths), *DirectoryRoll.start_gates(self)

    def when_stopped(self, world: World, effects: Effects) -> None:
        """Each is looked into once more; with a replica in it the broker is started again as it was."""
        try:
            for path in self.paths:
                effects.require_empty(NodeId(self.broker), path)
        except DirectoryInUse:
            effects.start(NodeId(self.broker))
            raise

    def before_start(self, world: World, effects: Effects) -> None:
        """After the file: a broker that is started before us does not miss the name that its file still asks for."""
        DirectoryRoll.before_start(self, world, effects)
        for path in self.paths:
            effects.set_aside(NodeId(self.broker), f"{path}/{META}")

    def progress(self, world: World) -> Progress:
        """Not done while one of them has its meta.properties: whoever started the broker again was before us."""
        found = DirectoryRoll.progress(self, world)
        retired = self._retired(world)
        if isinstance(found, AlreadyDone) and not isinstance(retired, Ready):
            return retired if isinstance(retired, Unknown) else HalfDone(f"it runs without them, {META} has its name")
        return found

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self._retired(world)
        yield from DirectoryRoll.proofs(self, world)

    def evidence(self, world: World) -> tuple[str, ...]:
        prefix = f"aside:{self.broker}:"
        kept = (f"{META} kept as {new}" for key, new in world.facts.items() if key.startswith(prefix))
        return *kept, *DirectoryRoll.evidence(self, world)

    def _retired(self, world: World) -> Readiness:
        found = directory_gates.entries(world, self.broker, self.paths)
        if isinstance(found, Unknown):
            return found
        left = [entry.path for entry in found if not isinstance(entry.directory.meta, MetaMissing)]
        return Refused(f"{left[0]} has its {META} still: another broker could take it for its own") if left else Ready()


@dataclass(frozen=True, slots=True)
class ProveDirectories(BaseStep):
    """The end: every broker has the directories that it shall have, and every replica is where the metadata says."""

    there: str  # yes: the playbook's directories are in use; no: none of them is any more

    kind = "prove-directories"
    name = "prove"
    stage_is = Stage.DIRECTORIES
    titled = "prove every broker's directories and replicas"
    proof_needs = SEEN
    proof = "each broker's log.dirs, registration and disks name the same directories; all VERIFIED"

    def verify(self, world: World) -> Outcome:
        wrong = self._wrong(world)
        if wrong is not None:
            return wrong
        found = gates.first(
            directory_gates.kraft_alone(world), directory_gates.all_proven(world), gates.replicas_full(world)
        )
        return gates.as_outcome(found, *_seen(world))

    def _wrong(self, world: World) -> Outcome | None:
        for broker in facts.brokers(world):
            wanted = directory_gates.wanted_of(world, broker)
            here = directory_gates.listed(world, broker)
            if isinstance(wanted, Unknown) or isinstance(here, Unknown):
                return wanted if isinstance(wanted, Unknown) else here if isinstance(here, Unknown) else None
            wrong = [path for path in wanted if (path in here) is not (self.there == "yes")]
            if wrong:
                word = "lacks" if self.there == "yes" else "still has"
                return Refused(f"broker {broker} {word} {wrong[0]} in its log.dirs")
        return None


def _seen(world: World) -> tuple[str, ...]:
    if isinstance(world.disks, Unknown) or isinstance(world.ledger, Unknown):
        return ()
    counts = {
        broker: len(found.directories)
        for broker, found in world.disks.items()
        if int(broker) in facts.brokers(world) and not isinstance(found, Unknown)
    }
    told = ", ".join(f"broker {int(node)}: {number}" for node, number in sorted(counts.items()))
    return (
        f"log directories, as registered and on disk: {told}",
        f"{plural(len(world.ledger.rows), 'replica')}, all VERIFIED at metadata offset {world.ledger.offset}",
    )
