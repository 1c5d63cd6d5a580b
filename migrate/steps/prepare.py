"""Stage prepare: backups, and the controllers' configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from migrate.hosts.collect_disks import HIDDEN
from migrate.hosts.properties import diff, for_people, parse
from migrate.model.broker_modes import ControllerMode
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import Need, World
from migrate.steps import configuration, facts, gates
from migrate.steps.base import BaseStep

NAMED: Final = 4  # keys in one message


@dataclass(frozen=True, slots=True)
class BackUpZookeeper(BaseStep):
    """The whole tree under the chroot, data, stat and ACL, into the run's folder."""

    kind = "back-up-zookeeper"
    undo = "not needed: the cluster is not changed"
    stage_is = Stage.PREPARE
    titled = "back up the ZooKeeper tree"
    needs = gates.FOR_BLOCKERS | {
        *(Need.ZOOKEEPER, Need.KRAFT, Need.CONFIGS, Need.DISKS, Need.LIVE, Need.SERVICES, Need.LAUNCHES)
    }
    proof = "the backup's SHA-256 is in the journal"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return (Action("+", "here", "write a backup of every znode into the run's folder"),)

    def check(self, world: World) -> Readiness:
        return gates.no_blockers(world, self.stage)

    def do(self, world: World, effects: Effects) -> None:
        effects.backup_zookeeper()

    def verify(self, world: World) -> Outcome:
        kept = world.facts.get("backup:zookeeper")
        return gates.as_outcome(
            Ready() if kept else Refused("no backup of ZooKeeper is in the journal"), backup_told(kept or "")
        )


@dataclass(frozen=True, slots=True)
class BackUpBroker(BaseStep):
    """A broker's configuration file and each meta.properties: beside the file on its host, and here."""

    broker: int

    kind = "back-up-broker"
    undo = "not needed: the cluster is not changed"
    name = "back-up-broker-{broker}"
    titled = "back up the configuration and meta.properties of broker {broker}"
    stage_is = Stage.PREPARE
    needs = frozenset({Need.CONFIGS, Need.DISKS})
    proof = "the backups' SHA-256 are in the journal"

    def paths(self, world: World) -> tuple[str, ...]:
        file = facts.config(world, self.broker)
        found = [file.path] if isinstance(file, ConfigFile) else []
        disks = facts.disks(world, self.broker)
        if not isinstance(disks, Unknown):
            found += [f"{entry.path}/meta.properties" for entry in disks.directories]
        return tuple(found)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        config, name = world.inventory.node(self.broker).config, facts.file_name(world, self.broker)
        named = [name if path == config else path for path in self.paths(world)]
        return tuple(Action("+", f"broker {self.broker}", f"keep a copy of {path}") for path in named)

    def check(self, world: World) -> Readiness:
        found, disks = facts.config(world, self.broker), facts.disks(world, self.broker)
        for seen in (found, disks):
            if isinstance(seen, Unknown):
                return seen
        return Refused(f"broker {self.broker} has no file {found.path}") if isinstance(found, NoFile) else Ready()

    def do(self, world: World, effects: Effects) -> None:
        effects.backup_files(NodeId(self.broker), self.paths(world))

    def verify(self, world: World) -> Outcome:
        kept = [key for key in world.facts if key.startswith(f"backup:{self.broker}:")]
        if not kept:
            return Refused(f"no backup of broker {self.broker} is in the journal")
        return gates.as_outcome(Ready(), f"{len(kept)} files kept")


@dataclass(frozen=True, slots=True)
class RenderController(BaseStep):
    controller: int

    kind = "render-controller"
    name = "render-controller-{controller}"
    titled = "write the configuration of controller {controller}"
    stage_is = Stage.PREPARE
    needs = frozenset({Need.CONFIGS})
    proof_needs = frozenset({Need.CONFIGS})
    undo = "delete the file"
    proof = "the file has the planned content"

    def node(self, world: World) -> ControllerNode:
        return next(node for node in world.inventory.controllers if node.id == self.controller)

    def target(self, world: World, before: Predicted) -> bytes | None:
        """The file's content, from the first broker's file as it is now (before any roll)."""
        raw = facts.predicted_config(world, before, world.inventory.brokers[0].id)
        return configuration.rendered(world, raw, self.node(world))

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        node, content = self.node(world), self.target(world, before)
        lines = () if content is None else tuple(diff(b"", content, node.config))
        return (Action("+", f"controller {self.controller}", f"write {node.config}", lines),)

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        first = world.inventory.brokers[0].id
        here = facts.observed(world, (f"config:{self.controller}",))
        return {f"config:{int(first)}": facts.predicted_sha256(world, before, first), **here}

    def predict(self, world: World, before: Predicted) -> Predicted:
        content = self.target(world, before)
        return before if content is None else facts.with_config(before, self.controller, content)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        content = self.target(world, before)
        if content is None:
            return {}
        return {f"config:{self.controller}": facts.sha256(content), f"mode:{self.controller}": ControllerMode.FLAGGED}

    def check(self, world: World) -> Readiness:
        here, content = facts.config(world, self.controller), self.target(world, Predicted())
        if isinstance(here, Unknown):
            return here
        if isinstance(world.playbook, Unknown):
            return world.playbook
        if content is None:
            return Unknown(f"the file of broker {int(world.inventory.brokers[0].id)} cannot be read")
        if isinstance(here, NoFile):
            return Ready()
        if here.sha256 == facts.sha256(content):
            return AlreadyDone("the file has the planned content")
        found = _otherwise(here, parse(content))
        return Refused(f"{here.path} exists with other content{found}: move it away, or make it what the plan shows")

    def progress(self, world: World) -> Progress:
        """The file is there whole, or not at all: it is written atomically."""
        found = self.check(world)
        return found if isinstance(found, AlreadyDone | Unknown) else NotBegun()

    def do(self, world: World, effects: Effects) -> None:
        content = self.target(world, Predicted())
        assert content is not None
        effects.write_config(NodeId(self.controller), self.node(world).config, content, None)

    def verify(self, world: World) -> Outcome:
        evidence = f"{self.node(world).config} has the planned content"
        return gates.proven_by(self.check(world), "the file does not have the planned content", evidence)


def _otherwise(here: ConfigFile, wanted: Mapping[str, str]) -> str:
    """The keys whose values would be others; of passwords the names alone."""
    keys = [key for key in here.values.keys() | wanted.keys() if here.values.get(key) not in (HIDDEN, wanted.get(key))]
    said = [
        f"{key} is {for_people(key, here.values[key]) if key in here.values else 'missing'}, "
        f"to be {for_people(key, wanted[key]) if key in wanted else 'left out'}"
        for key in sorted(keys)[:NAMED]
    ]
    more = f"; and {len(keys) - NAMED} more keys" if len(keys) > NAMED else ""
    return f" ({'; '.join(said)}{more})" if said else ""


def backup_told(note: str) -> str:
    """The journal's note of a backup for a person; as it is, where it is not of that form."""
    found = dict(part.partition(" ")[::2] for part in note.partition(": ")[2].split(", "))
    if not {"znodes", "zxid", "path", "sha256"} <= set(found):
        return note
    unread = f", {found['denied']} of them not readable," if found.get("denied", "0") != "0" else ""
    return (
        f"{found['znodes']} znodes{unread} at zxid {found['zxid']} in {found['path']}, SHA-256 {found['sha256'][:12]}"
    )
