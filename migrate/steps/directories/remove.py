"""A KRaft broker gives log directories back in which no replica lies: the same roll the other way.

Nothing is deleted: the directory's meta.properties gets another name, so that no broker takes it for its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.errors import DirectoryInUse
from migrate.model.ids import NodeId
from migrate.model.new_directories import META
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.step import Action, HalfDone, Predicted, Progress
from migrate.model.views import MetaMissing
from migrate.model.words import plural
from migrate.model.world import World
from migrate.steps import configuration, gates
from migrate.steps.directories import gates as directory_gates
from migrate.steps.directories.add import DirectoryRoll


@dataclass(frozen=True, slots=True)
class RemoveDirectories(DirectoryRoll):
    """The broker loses directories that hold nothing."""

    kind: ClassVar[str] = "remove-directories"
    undo: ClassVar[str] = "`plan`: it gives them to the broker again, formatted anew"
    proof: ClassVar[str] = (
        "registered directories equal those that are left on disk, every replica of it VERIFIED, unfenced, every ISR "
        "full; each directory's meta.properties is kept beside under another name"
    )

    @property
    def title(self) -> str:
        """One line."""
        what = plural(len(self.paths), "empty log directory", "empty log directories")
        return f"take {what} from broker {self.broker}"

    def target(self, world: World, raw: bytes) -> bytes:  # noqa: ARG002 - the protocol's signature
        """The file without them."""
        return configuration.without_directories(raw, self.paths)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """What is renamed, the file, the restart."""
        renames = tuple(
            Action("~", f"broker {self.broker}", f"rename {path}/{META}: nothing is deleted") for path in self.paths
        )
        return (*renames, *super(RemoveDirectories, self).actions(world, before))

    def check(self, world: World) -> Readiness:
        """They hold nothing, by disk and by metadata, and the cluster can spare the broker."""
        return gates.first(
            directory_gates.not_metadata(world, self.broker, self.paths),
            directory_gates.holds_nothing(world, self.broker, self.paths),
            self.may_stop(world),
        )

    def resume(self, world: World) -> Readiness:
        """The broker is down: nothing can have come, and the rest of the cluster must still be there."""
        return gates.first(directory_gates.holds_nothing(world, self.broker, self.paths), self.may_go_on(world))

    def when_stopped(self, world: World, effects: Effects) -> None:  # noqa: ARG002 - the protocol's signature
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

    def verify(self, world: World) -> Outcome:
        """Registered without them, and nothing else changed."""
        return gates.as_outcome(
            gates.first(self._retired(world), self.restarted(world)), *self._kept(world), *self.told(world)
        )

    def _retired(self, world: World) -> Readiness:
        found = directory_gates.entries(world, self.broker, self.paths)
        if isinstance(found, Unknown):
            return found
        left = [entry.path for entry in found if not isinstance(entry.directory.meta, MetaMissing)]
        return Refused(f"{left[0]} has its {META} still: another broker could take it for its own") if left else Ready()

    def _kept(self, world: World) -> tuple[str, ...]:
        prefix = f"aside:{self.broker}:"
        return tuple(f"{META} kept as {new}" for key, new in world.facts.items() if key.startswith(prefix))
