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
from migrate.steps.gates import Gate, gate, requires
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.control import EPOCH_NOTE, evidence

LOOK = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.DISKS})


@dataclass(frozen=True, slots=True)
class SetControllerAside(BaseStep):
    """A controller's metadata moves into a folder of its directory, its file is renamed: the next one formats anew."""

    controller: int

    kind = "set-controller-aside"
    name = "set-aside-{controller}"
    titled = "set the metadata and the configuration of controller {controller} aside"
    stage_is = Stage.CONTROLLERS
    keeps_file: ClassVar[bool] = False
    needs = LOOK
    proof_needs = LOOK
    undo = "rename both back (the journal has the names); never start them while ZooKeeper leads"
    proof = "neither is there under its old name"

    def node(self, world: World) -> ControllerNode:
        return next(node for node in world.inventory.controllers if node.id == self.controller)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        node, where = self.node(world), f"controller {self.controller}"
        found = []
        if _holds(world, self.controller):
            found.append(Action("~", where, f"move the metadata into {node.metadata_directory}/{ASIDE_FOLDER}-TIME"))
        if not self.keeps_file and isinstance(facts.config(world, self.controller), ConfigFile):
            found.append(Action("~", where, f"rename {node.config}"))
        return tuple(found)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {} if self.keeps_file else {f"config:{self.controller}": facts.ABSENT}

    def own_gates(self) -> tuple[Gate, ...]:
        return gate(back.controllers_gone), gate(back.zookeeper_controls), gate(_is_its_own, self.controller)

    def progress(self, world: World) -> Progress:
        holds, file = _holds(world, self.controller), facts.config(world, self.controller)
        if isinstance(holds, Unknown):
            return holds
        if isinstance(file, Unknown):
            return file
        if not holds and (self.keeps_file or isinstance(file, NoFile)):
            return AlreadyDone("what was set aside is not there under its old name")
        return NotBegun() if holds else HalfDone("the metadata is set aside, the file is not")

    def do(self, world: World, effects: Effects) -> None:
        node = self.node(world)
        if _holds(world, self.controller):
            effects.set_metadata_aside(NodeId(self.controller), node.metadata_directory)
        if not self.keeps_file and isinstance(facts.config(world, self.controller), ConfigFile):
            effects.set_aside(NodeId(self.controller), node.config)

    def verify(self, world: World) -> Outcome:
        found = self.progress(world)
        how = found.how if isinstance(found, AlreadyDone) else ""
        return gates.proven_by(found, "its metadata or its file is still there", how)


def left_over(world: World, controller: int) -> bool:
    """Is there anything of that controller to set aside?  What cannot be seen counts: the step will say so."""
    holds = _holds(world, controller)
    return bool(holds) or isinstance(facts.config(world, controller), ConfigFile)


def _holds(world: World, controller: int) -> bool | Unknown:
    found = facts.disks(world, controller, f"the directory of controller {controller} was not looked at")
    if isinstance(found, Unknown):
        return found
    return any(entry.holds_metadata_log or not isinstance(entry.meta, MetaMissing) for entry in found.directories)


@requires("the metadata directory holds nothing but the metadata of controller {0}")
def _is_its_own(world: World, controller: int) -> Readiness:
    holds = _holds(world, controller)
    if isinstance(holds, Unknown):
        return holds
    if not holds:
        return Ready()
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    disks = facts.disks(world, controller)
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
    kind = "prove-zookeeper-mode"
    stage_is = Stage.ASSESS
    titled = "prove that the cluster is back in ZooKeeper mode"
    needs = frozenset({Need.ZOOKEEPER})
    proof_needs = LOOK | {Need.CONTROLLER_NAMES, Need.LEFTOVERS}
    waits_for = NARROW | {Need.ZOOKEEPER}
    proof = (
        "/migration is gone, a broker owns /controller, /controller_epoch is above every KRaft epoch, every broker is "
        "in /brokers/ids with the file and the meta.properties of ZooKeeper mode, every ISR is full"
    )

    def do(self, world: World, effects: Effects) -> None:
        """What was measured on the way belongs to the proof."""
        effects.note_measures()

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            back.controllers_gone(world),
            back.zookeeper_controls(world),
            _epoch_raised(world),
            *(_in_zookeeper_mode(world, broker) for broker in facts.brokers(world)),
            back.controller_named(world),
            gates.whole_but(world, ()),
        )
        lines = [*evidence(world)]
        if not isinstance(world.zookeeper, Unknown):
            topics, number = set(world.zookeeper.partitions.topic), len(world.zookeeper.partitions)
            lines.append(f"{len(topics)} topics with {number} partitions in ZooKeeper")
            brokers = sorted(map(int, world.zookeeper.brokers))
            lines.append(f"brokers {brokers} in /brokers/ids, no file has the flag, every ISR is full")
        return gates.as_outcome(found, *lines, left=tuple(left_behind(world)))


def _epoch_raised(world: World) -> Readiness:
    """Above the KRaft epoch that this run noted: a ZooKeeper controller with a lower one is refused by its own data."""
    noted = world.facts.get(EPOCH_NOTE)
    assert not isinstance(world.zookeeper, Unknown)  # the gate before asked it
    epoch, states = world.zookeeper.controller_epoch, world.zookeeper.state_epoch
    if not isinstance(epoch, int) or epoch < states:
        return Refused(f"/controller_epoch is {epoch}, partition states were written at {states} (KAFKA-20488)")
    if noted is None or epoch > int(noted):
        return Ready()
    return Refused(f"/controller_epoch is {epoch}, the KRaft controllers were at {noted} (KAFKA-20488)")


def _in_zookeeper_mode(world: World, broker: int) -> Readiness:
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
    disks = facts.disks(world, broker)
    if isinstance(disks, Unknown):
        return disks
    metas = ((entry.path, entry.meta) for entry in disks.directories)
    odd = [path for path, meta in metas if not isinstance(meta, MetaProperties) or meta.version]
    return Refused(f"broker {broker}: no meta.properties of version 0 in {', '.join(odd)}") if odd else Ready()
