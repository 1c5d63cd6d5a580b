"""Stage retire-zookeeper: nobody uses ZooKeeper any more; a last archive, then each server is stopped for good.

No step deletes ZooKeeper's data.  A mask is taken back by `systemctl unmask`; the migration stays final.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.ensemble import EnsembleServer, ServerUnit
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.words import duration
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.base import BaseStep
from migrate.steps.cleanup import free_of_zookeeper
from migrate.steps.look import CLOCK
from migrate.steps.named_gates import Gate
from migrate.steps.prepare import backup_told

NOW: Final = "now"  # the fact: seconds since the epoch, by the run's clock
ARCHIVE: Final = "zookeeper-last"  # its name in the run's folder, and in the journal's note
LOOK: Final = frozenset({Need.KRAFT, Need.CONFIGS, Need.SERVICES, Need.ENSEMBLE})
OWNER: Final = "whoever runs ZooKeeper"
LOOK_SECONDS: Final = 60.0  # between two looks while the time of keep_zookeeper passes


class OfRetirement(BaseStep):
    """What all steps of the stage share."""

    __slots__ = ()

    stage_is = Stage.RETIRE_ZOOKEEPER
    needs = LOOK
    proof_needs = LOOK
    waits_for = frozenset()  # a look asks each server for a line, and nothing else tells who uses it


@dataclass(frozen=True, slots=True)
class ProveUnused(OfRetirement):
    until: float  # seconds since the epoch: the cleanup's proof and keep_zookeeper behind it

    kind = "prove-unused"
    name = "unused"
    undo = "nothing to undo: it looks"
    titled = "prove that ZooKeeper was kept for long enough, and that nobody uses it"
    proof = "keep_zookeeper has passed; no server has a client, and no znode is another application's"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        if isinstance(world.ensemble, Unknown):
            return (Action("=", "ZooKeeper", f"not seen: {world.ensemble.reason}"),)
        return tuple(Action("=", server.address, told(server)) for server in world.ensemble.servers)

    def own_gates(self) -> tuple[Gate, ...]:
        return (Gate("keep_zookeeper has passed since the proof of the cleanup", self._kept), *unused())

    def _kept(self, world: World) -> Readiness:
        if NOW not in world.facts:
            return Unknown("what time it is was not told")
        left = self.until - float(world.facts[NOW])
        if left <= 0:
            return Ready()
        return NotYet(
            f"the end of keep_zookeeper: {duration(left)} left",
            CLOCK,
            "nothing; park the run and apply the same plan later if you like",
            progress=f"{left:.0f}",
            pace=min(LOOK_SECONDS, left),
        )

    def verify(self, world: World) -> Outcome:
        return gates.as_outcome(self.check(world), *_lines(world), "no znode is another application's")


@dataclass(frozen=True, slots=True)
class ArchiveZookeeper(OfRetirement):
    kind = "archive-zookeeper"
    name = "archive"
    titled = "make the last archive of ZooKeeper"
    undo = "not needed: ZooKeeper is not changed"
    proof = "the archive's SHA-256 is in the journal"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        what = f"write every znode to backup/{ARCHIVE}.jsonl.gz in the run's folder (gzip of JSON lines)"
        return (Action("+", "here", what),)

    def own_gates(self) -> tuple[Gate, ...]:
        return unused()

    def do(self, world: World, effects: Effects) -> None:
        effects.backup_zookeeper(ARCHIVE)

    def verify(self, world: World) -> Outcome:
        kept = world.facts.get(f"backup:{ARCHIVE}")
        found = Ready() if kept else Refused("no last archive of ZooKeeper is in the journal")
        return gates.as_outcome(found, backup_told(kept or ""))


@dataclass(frozen=True, slots=True)
class RetireServer(OfRetirement):
    server: str  # its address

    kind = "retire-server"
    name = "stop-{server}"
    titled = "stop ZooKeeper's server {server}, and mask its unit"
    undo = "by hand: `systemctl unmask UNIT`, then `systemctl enable --now UNIT`; its data directory is as it was"
    proof = "its unit is inactive, and masked or disabled; its host refuses connections to its port"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        named = (entry for entry in world.inventory.zookeeper_servers if entry.address == self.server)
        return tuple(
            Action("~", f"{entry.host}", f"systemctl stop {entry.unit}, then disable and mask it; nothing is deleted")
            for entry in named
        )

    def own_gates(self) -> tuple[Gate, ...]:
        seen = Gate(f"the unit of {self.server} can be seen", self._unit_seen)
        return (seen, *unused())

    def _seen(self, world: World) -> EnsembleServer | Unknown:
        return world.ensemble if isinstance(world.ensemble, Unknown) else world.ensemble.server(self.server)

    def _unit_seen(self, world: World) -> Readiness:
        found = self._seen(world)
        if isinstance(found, Unknown):
            return found
        if isinstance(found.unit, ServerUnit):
            return Ready()
        return found.unit or Unknown(f"the inventory names no unit of {self.server} that can be worked from here")

    def progress(self, world: World) -> Progress:
        found = self._seen(world)
        if isinstance(found, Unknown):
            return found
        if isinstance(found.unit, Unknown):
            return found.unit
        if found.retired:
            return AlreadyDone("it is stopped, and no boot starts it")
        return NotBegun() if found.unit is None or found.unit.runs else HalfDone("it is stopped, and not masked")

    def resume(self, world: World) -> Readiness:
        return self._unit_seen(world)

    def do(self, world: World, effects: Effects) -> None:
        """What is missing of both; a server that was stopped by hand is masked all the same."""
        found = self._seen(world)
        assert isinstance(found, EnsembleServer)
        assert isinstance(found.unit, ServerUnit)
        if found.unit.runs:
            effects.stop_zookeeper(self.server)
        if found.unit.runs or not found.unit.stays_down:
            effects.mask_zookeeper(self.server)

    def verify(self, world: World) -> Outcome:
        found = self._seen(world)
        return found if isinstance(found, Unknown) else gates.as_outcome(_retired(world, found), *_ended(found))


@dataclass(frozen=True, slots=True)
class ProveRetired(OfRetirement):
    data: str  # where the servers' data is, as they said when it was planned; "" where none did

    kind = "prove-retired"
    name = "prove"
    undo = "nothing to undo: it looks, and people stop what has no unit here"
    titled = "prove that ZooKeeper is stopped, and the cluster whole without it"
    proof_needs = LOOK | {Need.LIVE}
    proof = "every server refuses connections, units are masked or disabled; every ISR is full, the quorum healthy"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        servers = () if isinstance(world.ensemble, Unknown) else world.ensemble.servers
        by_hand = (server.address for server in servers if server.unit is None and not server.retired)
        people = (Action("=", address, f"a person stops it: {_by_hand(world, address)}") for address in by_hand)
        return (*people, Action("=", "ZooKeeper's hosts", self._left()))

    def own_gates(self) -> tuple[Gate, ...]:
        return (Gate("every server of ZooKeeper is stopped, and starts with no boot", all_retired),)

    def _left(self) -> str:
        where = self.data or "the dataDir and dataLogDir of each server's configuration"
        return f"ZooKeeper's data stays where it is, with secrets in it: {where}. People delete it, no run does"

    def verify(self, world: World) -> Outcome:
        if isinstance(world.ensemble, Unknown):
            return world.ensemble
        servers = world.ensemble.servers
        found = gates.first(
            *(gate.holds(world) for gate in free_of_zookeeper()),
            all_retired(world),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
        kept = world.facts.get(f"backup:{ARCHIVE}")
        archive = f"the last archive: {backup_told(kept)}" if kept else "this run has made no archive of ZooKeeper"
        ended = [line for server in servers for line in _ended(server)]
        return gates.as_outcome(found, *ended, archive, "every ISR is full", left=(self._left(),))


def unused() -> tuple[Gate, ...]:
    return (
        *free_of_zookeeper(),
        Gate("no server of ZooKeeper has a client", no_clients),
        Gate("every znode is Kafka's, this tool's or ZooKeeper's own", no_strangers),
    )


def no_clients(world: World) -> Readiness:
    """Each server that listens tells how many; one that cannot be asked may have any number."""
    if isinstance(world.ensemble, Unknown):
        return world.ensemble
    for server in world.ensemble.servers:
        for seen in (server.listens, server.clients):
            if isinstance(seen, Unknown):
                return Unknown(f"whether somebody uses ZooKeeper is not known: {seen.reason}")
    used = [server for server in world.ensemble.servers if server.clients]
    if not used:
        return Ready()
    return NotYet(
        f"clients of ZooKeeper to leave it: {'; '.join(map(told, used))}",
        "whoever runs those clients",
        "stop each of them, or take it to another ensemble: this one is about to be stopped for good",
        progress=" ".join(f"{server.address}={server.clients}" for server in used),
    )


def no_strangers(world: World) -> Readiness:
    """While a server serves: without a quorum nothing can be read, and nothing was there before the first stop."""
    if isinstance(world.ensemble, Unknown):
        return world.ensemble
    found = world.ensemble.strangers
    if not world.ensemble.serves or found == ():
        return Ready()
    if isinstance(found, Unknown):
        return found
    shown = ", ".join(map(ascii, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return Refused(
        f"ZooKeeper holds znodes that are not Kafka's: {shown}. They are another application's: the ensemble is not "
        "stopped. Once their owner has moved them and deleted them here, give the same command again"
    )


def told(server: EnsembleServer) -> str:
    """`zk1:2181: follower, 2 clients, from 10.0.0.7`."""
    if isinstance(server.listens, Unknown):
        return server.listens.reason
    if not server.listens:
        return f"{server.address}: stopped"
    count = server.clients
    clients = "clients unknown" if isinstance(count, Unknown) else f"{count} {'client' if count == 1 else 'clients'}"
    hosts = f", from {', '.join(server.hosts)}" if server.hosts else ""
    return f"{server.address}: {server.role or 'without a quorum'}, {clients}{hosts}"


def _lines(world: World) -> Iterator[str]:
    if not isinstance(world.ensemble, Unknown):
        yield from map(told, world.ensemble.servers)


def _ended(server: EnsembleServer) -> Iterator[str]:
    unit = f", {server.unit.name} is {server.unit.word}" if isinstance(server.unit, ServerUnit) else ""
    yield f"{server.address} refuses connections{unit}"


def all_retired(world: World) -> Readiness:
    if isinstance(world.ensemble, Unknown):
        return world.ensemble
    return gates.first(*(_retired(world, server) for server in world.ensemble.servers))


def _by_hand(world: World, address: str) -> str:
    named = (one for one in world.inventory.zookeeper_servers if one.address == address)
    where, unit = next(((f"on {one.host}", one.unit) for one in named), ("on its host", "UNIT"))
    return f"{where} `systemctl stop {unit}`, then `systemctl mask {unit}`; nothing is deleted"


def _retired(world: World, server: EnsembleServer) -> Readiness:
    if isinstance(server.listens, Unknown):
        return server.listens
    if isinstance(server.unit, Unknown):
        return server.unit
    if server.retired:
        return Ready()
    if server.unit is None or server.unit.runs or server.listens:
        return NotYet(f"ZooKeeper's server {server.address} to be stopped", OWNER, _by_hand(world, server.address))
    return Refused(
        f"{server.unit.name} is {server.unit.word}: a boot may start it again. `systemctl mask` it, or take away what "
        "starts it, then give the same command again"
    )
