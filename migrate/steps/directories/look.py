"""Steps that only look: may the directories change at all, and is everything proven in the end?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from migrate.model.outcome import Outcome, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.step import Predicted
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import BaseStep
from migrate.steps.directories import gates as directory_gates
from migrate.steps.directories.add import SEEN


@dataclass(frozen=True, slots=True)
class CheckDirectories(BaseStep):
    """Everything that must hold before the first broker stops."""

    kind: ClassVar[str] = "check-directories"
    stage_is: ClassVar[Stage] = Stage.DIRECTORIES
    title: ClassVar[str] = "check the cluster and the directories"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.KRAFT, Need.CONFIGS})
    proof_needs: ClassVar[frozenset[Need]] = SEEN
    proof: ClassVar[str] = (
        "the cluster is KRaft alone, its metadata.version has directories, every directory is healthy, every replica "
        "VERIFIED, nothing under-replicated"
    )

    @property
    def id(self) -> str:
        """`directories/check`."""
        return f"{self.stage.label}/check"

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's signature
        """The cluster's id."""
        return facts.observed(world, ("cluster_id:",))

    def verify(self, world: World) -> Outcome:
        """The same gates as each restart's."""
        found = gates.first(
            directory_gates.kraft_alone(world),
            directory_gates.version_fits(world),
            directory_gates.all_proven(world),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
            gates.no_blockers(world, self.stage),
        )
        return gates.as_outcome(found, *_seen(world))


@dataclass(frozen=True, slots=True)
class ProveDirectories(BaseStep):
    """The end: every broker has the directories that it shall have, and every replica is where the metadata says."""

    there: str  # yes: the playbook's directories are in use; no: none of them is any more

    kind: ClassVar[str] = "prove-directories"
    stage_is: ClassVar[Stage] = Stage.DIRECTORIES
    title: ClassVar[str] = "prove every broker's directories and replicas"
    proof_needs: ClassVar[frozenset[Need]] = SEEN
    proof: ClassVar[str] = "each broker's log.dirs, registration and disks name the same directories; all VERIFIED"

    @property
    def id(self) -> str:
        """`directories/prove`."""
        return f"{self.stage.label}/prove"

    def verify(self, world: World) -> Outcome:
        """Files, registrations, disks, ledger."""
        wrong = self._wrong(world)
        if wrong is not None:
            return wrong
        found = gates.first(
            directory_gates.kraft_alone(world), directory_gates.all_proven(world), gates.replicas_full(world)
        )
        return gates.as_outcome(found, *_seen(world))

    def _wrong(self, world: World) -> Outcome | None:
        for broker in directory_gates.brokers(world):
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
        if int(broker) in directory_gates.brokers(world) and not isinstance(found, Unknown)
    }
    told = ", ".join(f"broker {int(node)}: {number}" for node, number in sorted(counts.items()))
    return (
        f"log directories, as registered and on disk: {told}",
        f"{plural(len(world.ledger.rows), 'replica')}, all VERIFIED at metadata offset {world.ledger.offset}",
    )
