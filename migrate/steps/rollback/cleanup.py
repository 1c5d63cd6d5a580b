"""What is left of the controllers is set aside, moved and never deleted; then the end state is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from migrate.hosts.leftovers import ASIDE_FOLDER
from migrate.model.broker_modes import Mode, node_mode
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile, MetaBroken, MetaMissing, MetaProperties, NoFile
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.cleanup import left_behind
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.control import EPOCH_NOTE, evidence

LOOK = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.DISKS})


@dataclass(frozen=True, slots=True)
class SetControllerAside(BaseStep):
    """A controller's metadata moves into a folder of its directory, its file is renamed: the next one formats anew."""

    controller: int

    kind: ClassVar[str] = "set-controller-aside"
    stage_is: ClassVar[Stage] = Stage.CONTROLLERS
    keeps_file: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = LOOK
    proof_needs: ClassVar[frozenset[Need]] = LOOK
    undo: ClassVar[str] = "give both their names back (the journal has them); never start them beside ZooKeeper"
    proof: ClassVar[str] = "neither is there under its old name"

    @property
    def id(self) -> str:
        """`controllers/set-aside-3000`."""
        return f"{self.stage.label}/set-aside-{self.controller}"

    @property
    def title(self) -> str:
        """One line."""
        return f"set the metadata and the configuration of controller {self.controller} aside"

    def node(self, world: World) -> ControllerNode:
        """The controller in the inventory."""
        return next(node for node in world.inventory.controllers if node.id == self.controller)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """What is moved and renamed."""
        node, where = self.node(world), f"controller {self.controller}"
        found = []
        if _holds(world, self.controller):
            found.append(Action("~", where, f"move the metadata into {node.metadata_directory}/{ASIDE_FOLDER}-TIME"))
        if not self.keeps_file and isinstance(facts.config(world, self.controller), ConfigFile):
            found.append(Action("~", where, f"rename {node.config}"))
        return tuple(found)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's signature
        """No file, unless it is to stay."""
        return {} if self.keeps_file else {f"config:{self.controller}": facts.ABSENT}

    def check(self, world: World) -> Readiness:
        """No controller lives, ZooKeeper has control, and what is to be moved is this controller's of this cluster."""
        return gates.first(
            back.controllers_gone(world), back.zookeeper_controls(world), _is_its_own(world, self.controller)
        )

    def progress(self, world: World) -> Progress:
        """By what lies there."""
        holds, file = _holds(world, self.controller), facts.config(world, self.controller)
        if isinstance(holds, Unknown):
            return holds
        if isinstance(file, Unknown):
            return file
        if not holds and (self.keeps_file or isinstance(file, NoFile)):
            return AlreadyDone("what was set aside is not there under its old name")
        return NotBegun() if holds else HalfDone("the metadata is set aside, the file is not")

    def do(self, world: World, effects: Effects) -> None:
        """Set aside what is there."""
        node = self.node(world)
        if _holds(world, self.controller):
            effects.set_metadata_aside(NodeId(self.controller), node.metadata_directory)
        if not self.keeps_file and isinstance(facts.config(world, self.controller), ConfigFile):
            effects.set_aside(NodeId(self.controller), node.config)

    def verify(self, world: World) -> Outcome:
        """Gone under their old names."""
        found = self.progress(world)
        if isinstance(found, AlreadyDone):
            return gates.as_outcome(Ready(), found.how)
        return found if isinstance(found, Unknown) else Refused("its metadata or its file is still there")


def left_over(world: World, controller: int) -> bool:
    """Is there anything of that controller to set aside?  What cannot be seen counts: the step will say so."""
    holds = _holds(world, controller)
    return bool(holds) or isinstance(facts.config(world, controller), ConfigFile)


def _holds(world: World, controller: int) -> bool | Unknown:
    """Does its metadata directory hold a meta.properties or a metadata log?"""
    if isinstance(world.disks, Unknown):
        return world.disks
    found = world.disks.get(NodeId(controller), Unknown(f"the directory of controller {controller} was not looked at"))
    if isinstance(found, Unknown):
        return found
    return any(entry.holds_metadata_log or not isinstance(entry.meta, MetaMissing) for entry in found.directories)


def _is_its_own(world: World, controller: int) -> Readiness:
    """Is what the directory holds this controller's, by its meta.properties?  Nothing to move is fine."""
    holds = _holds(world, controller)
    if isinstance(holds, Unknown):
        return holds
    if not holds:
        return Ready()
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(controller)]
    assert not isinstance(disks, Unknown)
    for directory in disks.directories:
        match directory.meta:
            case MetaProperties(cluster_id=cluster, node_id=node):
                if (cluster, node) == (world.zookeeper.cluster_id, controller):
                    continue
                why = f"belongs to cluster {cluster} and node {node}"
            case MetaBroken(reason=reason):
                why = f"has a meta.properties that cannot be trusted: {reason}"
            case MetaMissing():
                why = "has no meta.properties that says whose it is"
        return Refused(
            f"{directory.path} {why}: it is not moved. Correct metadata_directory in the inventory, or move the "
            f"quorum's files out of it by hand (cluster {world.zookeeper.cluster_id}, node {controller})"
        )
    return Ready()


@dataclass(frozen=True, slots=True)
class ProveZookeeperMode(BaseStep):
    """The one end state, whatever the entry."""

    kind: ClassVar[str] = "prove-zookeeper-mode"
    stage_is: ClassVar[Stage] = Stage.ASSESS
    title: ClassVar[str] = "prove that the cluster is back in ZooKeeper mode"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ZOOKEEPER})
    proof_needs: ClassVar[frozenset[Need]] = LOOK | {Need.CONTROLLER_NAMES, Need.LEFTOVERS}
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    proof: ClassVar[str] = (
        "/migration is gone, a broker owns /controller, /controller_epoch is above every KRaft epoch, every broker is "
        "in /brokers/ids with the file and the meta.properties of ZooKeeper mode, every ISR is full"
    )

    def do(self, world: World, effects: Effects) -> None:  # noqa: ARG002 - the protocol's signature
        """What was measured on the way belongs to the proof."""
        effects.note_measures()

    def verify(self, world: World) -> Outcome:
        """All of it."""
        found = gates.first(
            back.controllers_gone(world),
            back.zookeeper_controls(world),
            _epoch_raised(world),
            *(_in_zookeeper_mode(world, broker) for broker in back.brokers(world)),
            back.controller_named(world),
            back.whole_but(world, ()),
        )
        return gates.as_outcome(found, *evidence(world), *_counts(world), left=tuple(left_behind(world)))


def _epoch_raised(world: World) -> Readiness:
    """Above the KRaft epoch that this run noted: a ZooKeeper controller with a lower one is refused by its own data."""
    noted = world.facts.get(EPOCH_NOTE)
    assert not isinstance(world.zookeeper, Unknown)  # the gate before asked it
    epoch, states = world.zookeeper.controller_epoch, world.zookeeper.state_epoch
    if not isinstance(epoch, int) or epoch < states:
        return Refused(f"/controller_epoch is {epoch}, partition states were written at {states} (KAFKA-20488)")
    if noted is None:
        return Ready()
    if epoch > int(noted):
        return Ready()
    return Refused(f"/controller_epoch is {epoch}, the KRaft controllers were at {noted} (KAFKA-20488)")


def _in_zookeeper_mode(world: World, broker: int) -> Readiness:
    """Registered, by its file without the flag and of ZooKeeper mode, running with it, on version 0 directories."""
    file = facts.config(world, broker)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {broker} cannot be read")
    if (mode := node_mode(file.values)) is not Mode.ZOOKEEPER:
        return Refused(f"{file.path} is of {mode} mode")
    assert not isinstance(world.zookeeper, Unknown)
    if NodeId(broker) not in world.zookeeper.brokers:
        return Refused(f"broker {broker} is not in /brokers/ids")
    return gates.first(gates.runs_with(world, broker, file.sha256), _version_zero(world, broker))


def _version_zero(world: World, broker: int) -> Readiness:
    if isinstance(world.disks, Unknown):
        return world.disks
    disks = world.disks.get(NodeId(broker), Unknown(f"the disks of broker {broker} were not looked at"))
    if isinstance(disks, Unknown):
        return disks
    odd = [
        entry.path for entry in disks.directories if not isinstance(entry.meta, MetaProperties) or entry.meta.version
    ]
    return Refused(f"broker {broker}: no meta.properties of version 0 in {', '.join(odd)}") if odd else Ready()


def _counts(world: World) -> tuple[str, ...]:
    if isinstance(world.zookeeper, Unknown):
        return ()
    view = world.zookeeper
    return (
        f"{len(set(view.partitions.topic))} topics with {len(view.partitions)} partitions in ZooKeeper",
        f"brokers {sorted(map(int, view.brokers))} in /brokers/ids, no file has the flag, every ISR is full",
    )
