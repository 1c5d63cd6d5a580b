"""Roll one broker: what must hold before, stop, replace the file, start, proof.

A kind of roll gives three things: the mode that it leads to (`goal`), the file that the broker gets (`file`), and its
gates: before the stop (`own_gates`), before the start after an interruption (`start_gates`), and the proof (`proofs`).
All else is the same for each of them, and is here.  A configuration changes only between the stop and the start of
that process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from migrate.checks import stuck
from migrate.hosts.properties import diff
from migrate.model.broker_modes import Mode, node_mode, position_of
from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile, MetaProperties, NoFile, Running, Stopped
from migrate.model.words import registered_as
from migrate.model.world import Need, World
from migrate.steps import facts, gates, served
from migrate.steps.base import BaseStep
from migrate.steps.disks import with_sick_disks
from migrate.steps.gates import Gate, gate
from migrate.steps.restore import Restored, bytes_of

AFTER = "usually nothing; look at the broker's log and its connection to the controllers"
FULL_ISRS = "every partition has its full ISR in every broker's metadata"
SEEN = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES})
ROLLED = SEEN | {Need.LISTENERS}


@dataclass(frozen=True, slots=True)
class Roll(BaseStep):
    broker: int

    name = "{broker}"
    goal: ClassVar[Mode]
    writes_at: ClassVar[tuple[Moment, ...]] = (Moment.FIRST_ROLL, Moment.SECOND_ROLL)
    goes_back: ClassVar[bool] = False  # to a file from before: what its listeners served then, they may serve again
    names_sick_disks: ClassVar[bool] = False  # where a gate or the proof does not hold

    # -- what a kind of roll gives, beside its goal -------------------------------------------------------------------
    @abstractmethod
    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        """The file that it gets in the place of `raw`; where there is none, nothing is planned and nothing done."""

    def start_gates(self) -> tuple[Gate, ...]:
        """What must hold before it is started again where an attempt was interrupted: it may be down."""
        return self.own_gates()

    @abstractmethod
    def proofs(self, world: World) -> Iterator[Readiness]:
        """What must hold in the end, in the order in which it is told."""

    def evidence(self, world: World) -> tuple[str, ...]:
        """The evidence for the proof."""
        return ()

    def last_proof(self, world: World) -> Readiness:
        """Asked when all else holds: a dead listener is reported before its consequences."""
        return Ready()

    # -- before -------------------------------------------------------------------------------------------------------
    def check(self, world: World) -> Readiness:
        return self._told(world, None, gates.ask_all(self.own_gates(), world))

    def resume(self, world: World) -> Readiness:
        lives = not isinstance(world.services, Unknown) and isinstance(world.services[NodeId(self.broker)], Running)
        asked = (*self.start_gates(), *(self.living_gates() if lives else ()))
        return self._told(world, None, gates.ask_all(asked, world))

    def living_gates(self) -> tuple[Gate, ...]:
        """What a process asks for that lives half way: it is stopped first, and may itself be what is missing."""
        return gate(gates.stop_is_accepted, self.broker), gate(gates.whole_but, [self.broker])

    def _told(self, world: World, broker: int | None, found: Readiness) -> Readiness:
        return with_sick_disks(world, broker, found) if self.names_sick_disks else found

    def has_copy(self) -> Gate:
        return Gate(f"a copy of broker {self.broker}'s file for {self.goal} mode is proven", self.restorable)

    def restorable(self, world: World) -> Readiness:
        file = facts.config(world, self.broker)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {self.broker} cannot be read")
        found = self.file(world, file.raw)
        return Ready() if isinstance(found, Restored) else found

    def progress(self, world: World) -> Progress:
        """Decided from the file's mode and the file that the process was started with."""
        if self.goes_back and not isinstance(gate := self.restorable(world), Ready):
            return Unknown(str(getattr(gate, "reason", gate)))  # without its file nothing can be decided
        file = facts.config(world, self.broker)
        if isinstance(file, Unknown):
            return file
        if isinstance(file, NoFile) or isinstance(world.services, Unknown):
            return Unknown(f"the file or the process of broker {self.broker} cannot be seen")
        state = world.services.get(NodeId(self.broker), Unknown("not looked at"))
        edited = self._edited(world, file)
        match state:
            case Unknown():
                return state
            case Stopped():
                return HalfDone("stopped" + (", file written" if edited else ""))
            case Running(config_sha256=started) if edited and self._started_with(world, started, file.sha256):
                return AlreadyDone(f"it runs with the file of {self.goal} mode")
            case Running():
                return HalfDone("file written, old process alive") if edited else NotBegun()

    def _started_with(self, world: World, started: str | None, sha256: str) -> bool:
        """By the file that it was started with; where nobody knows that one, by how it has registered since."""
        if started is None and self.without_quorum:
            return ended(self.id) in world.facts and isinstance(self.new_session(world), Ready)
        if started is not None or isinstance(world.kraft, Unknown):
            return started == sha256
        found = world.kraft.brokers.get(NodeId(self.broker))
        if found is None or found.migrating is not (self.goal is Mode.MIGRATION):
            return False
        return found.incarnation != world.facts.get(ended(self.id)) and not found.fenced

    def _edited(self, world: World, file: ConfigFile) -> bool:
        """Is it the file that is wanted?  The right mode is not enough: other keys may be missing."""
        return node_mode(file.values) is self.goal and self.target(world, file.raw) == file.raw

    # -- stop, replace the file, start --------------------------------------------------------------------------------
    def do(self, world: World, effects: Effects) -> None:
        """Each only where it is missing."""
        node, file = NodeId(self.broker), facts.config(world, self.broker)
        assert isinstance(file, ConfigFile)
        assert not isinstance(world.services, Unknown)
        effects.note(ended(self.id), self._registration(world))
        served.note(self.id, self.broker, world, effects)
        if isinstance(world.services[node], Running):
            effects.stop(node)
        self.when_stopped(world, effects)
        if not self._edited(world, file):
            effects.write_config(node, file.path, self.target(world, file.raw), file.sha256)
        self.before_start(world, effects)
        effects.start(node)

    def _registration(self, world: World) -> str:
        """What is registered now, by the process that ends: noted, so that it is not taken as proof later."""
        if self.without_quorum:
            assert not isinstance(world.zookeeper, Unknown)
            session = world.zookeeper.brokers.get(NodeId(self.broker))
            return "none" if session is None else str(session.epoch)
        assert not isinstance(world.kraft, Unknown)
        old = world.kraft.brokers.get(NodeId(self.broker))
        return "none" if old is None else old.incarnation

    def when_stopped(self, world: World, effects: Effects) -> None: ...

    def before_start(self, world: World, effects: Effects) -> None:
        if metas := self.identities(world):
            effects.require_same(NodeId(self.broker), metas)

    def identities(self, world: World) -> dict[str, MetaProperties]:
        """The meta.properties that each directory must hold at the start, by path; none where they were not seen."""
        disks = facts.disks(world, self.broker)
        if isinstance(disks, Unknown):
            return {}
        entries = [*disks.directories, *([disks.metadata_directory] if disks.metadata_directory else [])]
        return {entry.path: entry.meta for entry in entries if isinstance(entry.meta, MetaProperties)}

    # -- proof --------------------------------------------------------------------------------------------------------
    def verify(self, world: World) -> Outcome:
        """All of the proof, then that the listeners serve what they served before the stop."""
        found = self._told(world, self.broker, gates.first(*self.proofs(world)))
        if not isinstance(found, Ready):
            return gates.as_outcome(found)
        lost = served.kept(self.id, self.node(world), world, back=self.goes_back)
        if lost is not None:
            return lost
        heard = served.evidence(self.id, self.broker, world)
        return gates.as_outcome(self.last_proof(world), *self.evidence(world), *heard)

    def process_lives(self, world: World) -> Readiness:
        file = facts.config(world, self.broker)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {self.broker} cannot be seen")
        return gates.runs_with(world, self.broker, file.sha256)

    def new_session(self, world: World) -> Readiness:
        """A session with ZooKeeper that is not the one which this step ended."""
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        found = world.zookeeper.brokers.get(NodeId(self.broker))
        if found is None or str(found.epoch) == world.facts.get(ended(self.id)):
            was = "none" if found is None else "the old one"
            what = f"broker {self.broker} to register in /brokers/ids (now: {was})"
            return NotYet(what, f"broker {self.broker}", gates.LOOK_AT_NODES_LOG, progress=was)
        return Ready()

    def registered(self, world: World, *, migrating: bool) -> Readiness:
        """A registration of this kind, of another incarnation than the one that this step ended."""
        if not isinstance(world.kraft, Unknown):
            found = world.kraft.brokers.get(NodeId(self.broker))
            if found is not None and found.incarnation == world.facts.get(ended(self.id)):
                what = f"broker {self.broker} to register again (incarnation {found.incarnation} was stopped)"
                return NotYet(what, f"broker {self.broker}", AFTER, progress=found.incarnation)
        answer = is_registered(world, self.broker, migrating=migrating)
        if not isinstance(answer, NotYet) or not migrating:
            return answer
        nodes = frozenset({self.broker})
        what, after = answer.what + stuck.because(world, nodes), stuck.next_step(world, nodes) or answer.next_step
        return replace(answer, what=what, next_step=after)

    # -- in the plan --------------------------------------------------------------------------------------------------
    def node(self, world: World) -> BrokerNode:
        return next(node for node in world.inventory.brokers if node.id == self.broker)

    @property
    def without_quorum(self) -> bool:
        """It ends in ZooKeeper mode, where a new session proves the new process: nobody else registers it."""
        return self.goal is Mode.ZOOKEEPER

    def target(self, world: World, raw: bytes) -> bytes:
        return bytes_of(self.file(world, raw), self.broker)

    def starts(self, world: World) -> tuple[int, ...]:
        return (self.broker,)

    def becomes(self, world: World, node: int, raw: bytes) -> bytes:
        return self.target(world, raw)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        where, planned = f"broker {self.broker}", NodeId(self.broker) in before.configs
        edits = self._edits(world, facts.predicted_config(world, before, self.broker))
        if edits and edits[0].symbol == "?" and not self.goes_back:
            return edits
        why = "" if planned and self.goes_back else position_of(world, self.broker).contradiction
        state = None if isinstance(world.services, Unknown) else world.services.get(NodeId(self.broker))
        if self.goes_back and not planned and isinstance(state, Stopped):
            restart = "start (it is down): write the file, start"
        else:
            restart = "restart: stop, write the file, start" + (f" ({why})" if why else "")
        return (*edits, Action(">", where, restart))

    def _edits(self, world: World, raw: bytes | None) -> tuple[Action, ...]:
        where, path = f"broker {self.broker}", self.node(world).config
        found = None if raw is None else self.file(world, raw)
        if raw is None or not isinstance(found, Restored):
            return (Action("?", where, f"{path} cannot be {'restored' if self.goes_back else 'read'}"),)
        if found.raw == raw and self.goes_back:
            return ()
        name = facts.file_name(world, self.broker)
        how = f"restore {name} from {found.source}" if found.source else f"edit {name}"
        edit = Action("~", where, how, tuple(diff(raw, found.raw, path)))
        return (edit, Action("=", where, f"{path} was {found.note}", found.kept)) if found.note else (edit,)

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        keys = facts.observed(world, (f"log_dirs:{self.broker}", "cluster_id:"))
        return {f"config:{self.broker}": facts.predicted_sha256(world, before, self.broker), **keys}

    def predict(self, world: World, before: Predicted) -> Predicted:
        raw = facts.predicted_config(world, before, self.broker)
        return before if raw is None else facts.with_config(before, self.broker, self.target(world, raw))

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        after = self.predict(world, before).configs.get(NodeId(self.broker))
        registered = f"session:{self.broker}" if self.without_quorum else f"registered:{self.broker}"
        found = {f"mode:{self.broker}": self.goal, registered: "yes" if self.without_quorum else self.goal}
        return found if after is None else {**found, f"config:{self.broker}": facts.sha256(after)}


def ended(step: str) -> str:
    return f"ended:{step}"


def is_registered(world: World, broker: int, *, migrating: bool) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", AFTER)
    found = world.kraft.brokers.get(NodeId(broker))
    if found is None or found.migrating is not migrating or found.fenced:
        was = "none" if found is None else registered_as(migrating=found.migrating, fenced=found.fenced)
        mode = Mode.MIGRATION if migrating else Mode.KRAFT
        what = f"broker {broker} to register in {mode} mode and unfence (now: {was})"
        return NotYet(what, f"broker {broker}", AFTER, progress=was)
    disks = facts.disks(world, broker)
    if isinstance(disks, Unknown):
        return disks
    here = {entry.id for entry in disks.directories}
    if here != set(found.log_dirs):
        return Refused(
            f"broker {broker} registered directories {sorted(found.log_dirs)}, its disks hold "
            f"{sorted(str(entry) for entry in here)}"
        )
    return Ready()
