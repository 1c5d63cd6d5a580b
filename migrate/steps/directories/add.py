"""A KRaft broker gets more log directories: stop, write the file, format what is new, start, prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model.broker_modes import Mode
from migrate.model.ids import NodeId
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, Predicted
from migrate.model.views import MetaMissing
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.steps import configuration, gates
from migrate.steps.directories import gates as directory_gates
from migrate.steps.prepare import BackUpBroker
from migrate.steps.roll_broker import RollStep, can_be_unfenced

SEEN = frozenset({Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.LEDGER, Need.NEW_DIRECTORIES})
SEPARATOR = ","  # log.dirs is a list with commas: no path in it can have one


@dataclass(frozen=True, slots=True)
class KeepDirectoryFiles(BackUpBroker):
    """A broker's configuration file and each meta.properties, before its directories change."""

    kind: ClassVar[str] = "keep-directory-files"
    stage_is: ClassVar[Stage] = Stage.DIRECTORIES

    @property
    def id(self) -> str:
        """`directories/keep-1`."""
        return f"{self.stage.label}/keep-{self.broker}"


@dataclass(frozen=True, slots=True)
class DirectoryRoll(RollStep):
    """What giving and taking directories share: one broker, some paths, a restart in KRaft mode."""

    directories: str  # comma-separated, as in log.dirs

    stage_is: ClassVar[Stage] = Stage.DIRECTORIES
    goal: ClassVar[Mode] = Mode.KRAFT
    needs: ClassVar[frozenset[Need]] = SEEN
    proof_needs: ClassVar[frozenset[Need]] = SEEN

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories that it is about."""
        return tuple(self.directories.split(SEPARATOR))

    def may_stop(self, world: World) -> Readiness:
        """What must hold of the whole cluster before a broker of it stops."""
        return gates.first(
            directory_gates.kraft_alone(world),
            directory_gates.version_fits(world),
            directory_gates.all_proven(world),
            gates.stop_is_accepted(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
            gates.no_blockers(world, self.stage),
        )

    def may_go_on(self, world: World) -> Readiness:
        """What must hold before a broker that was stopped half way is started: itself it cannot be seen."""
        return gates.first(
            directory_gates.kraft_alone(world),
            directory_gates.version_fits(world),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
            gates.no_blockers(world, self.stage, down=self.broker, besides=directory_gates.HALF_DONE),
            directory_gates.none_half_done_but(world, self.stage, self.broker, self.paths),
        )

    def restarted(self, world: World) -> Readiness:
        """Its file, its registration, its directories, its replicas, and every ISR."""
        return gates.first(
            self.process_lives(world),
            self.registered(world, migrating=False),
            can_be_unfenced(world, self.broker),
            directory_gates.metadata_log_stays(world, self.broker),
            gates.replicas_full(world),
        )

    def told(self, world: World) -> tuple[str, ...]:
        """What was proven, in words."""
        if isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
            return ()
        found = world.kraft.brokers.get(NodeId(self.broker))
        if found is None:
            return ()
        number = plural(len(found.log_dirs), "directory", "directories")
        return (
            f"registration at offset {found.epoch}: incarnation {found.incarnation}, {number} as on disk",
            f"{len(world.ledger.of(self.broker))} replicas VERIFIED at metadata offset {world.ledger.offset}",
            "every partition has its full ISR in every broker's metadata",
        )


@dataclass(frozen=True, slots=True)
class AddDirectories(DirectoryRoll):
    """The broker gets them behind the log directories that it has."""

    release: str  # the cluster's metadata.version, as kafka-storage calls it

    kind: ClassVar[str] = "add-directories"
    undo: ClassVar[str] = "`rollback plan`: the same the other way, while no replica lies in them"
    proof: ClassVar[str] = (
        "registered directories equal those on disk, the new ones with the ids that kafka-storage gave them; every "
        "replica of it VERIFIED, unfenced, every ISR full; the metadata log where it was"
    )

    @property
    def title(self) -> str:
        """One line."""
        return f"give broker {self.broker} {plural(len(self.paths), 'more log directory', 'more log directories')}"

    def target(self, world: World, raw: bytes) -> bytes:  # noqa: ARG002 - the protocol's signature
        """The file with them in log.dirs."""
        return configuration.with_directories(raw, self.paths)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """The directories that are formatted, the file, the restart."""
        found = directory_gates.entries(world, self.broker, self.paths)
        formats = tuple(
            Action("+", f"broker {self.broker}", f"format {path}{_place(found, path)}") for path in self.paths
        )
        return (*formats, *super(AddDirectories, self).actions(world, before))

    def check(self, world: World) -> Readiness:
        """They are fit to be formatted, and the cluster can spare the broker."""
        return gates.first(directory_gates.fit_to_format(world, self.broker, self.paths), self.may_stop(world))

    def resume(self, world: World) -> Readiness:
        """They are still fit, formatted or not."""
        return gates.first(directory_gates.fit_to_format(world, self.broker, self.paths), self.may_go_on(world))

    def before_start(self, world: World, effects: Effects) -> None:
        """Kafka's own tool gives each its ids; what is formatted already stays as it is."""
        assert not isinstance(world.kraft, Unknown)
        RollStep.before_start(self, world, effects)
        if directory_gates.formatted(world, self.broker, self.paths) is not True:
            effects.format_directories(NodeId(self.broker), world.kraft.cluster_id, self.release)

    def verify(self, world: World) -> Outcome:
        """Formatted, registered, and everything as before."""
        return gates.as_outcome(
            gates.first(self._have_ids(world), self.restarted(world)), *self._ids(world), *self.told(world)
        )

    def _have_ids(self, world: World) -> Readiness:
        found = directory_gates.entries(world, self.broker, self.paths)
        if isinstance(found, Unknown):
            return found
        bare = [entry.path for entry in found if isinstance(entry.directory.meta, MetaMissing)]
        return Refused(f"{bare[0]} of broker {self.broker} has no meta.properties") if bare else Ready()

    def _ids(self, world: World) -> tuple[str, ...]:
        found = directory_gates.entries(world, self.broker, self.paths)
        return () if isinstance(found, Unknown) else tuple(f"{entry.path} is {entry.directory.id}" for entry in found)


def _place(found: tuple[NewDirectory, ...] | Unknown, path: str) -> str:
    """Where a directory lies, for the plan's reader."""
    if isinstance(found, Unknown):
        return ""
    entry = next(entry.directory for entry in found if entry.path == path)
    return f" (on {entry.mount}, {entry.filesystem}, {entry.free_bytes / 2**30:.1f} GiB free)" if entry.mount else ""
