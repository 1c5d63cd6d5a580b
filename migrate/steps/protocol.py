"""Raise inter.broker.protocol.version to 3.9, by a roll of its own, before a migration; and that roll back.

A migration begins with 3.9 on every broker (B-VER-02, B-VER-04).  The key is changed in the broker's own file, between
stop and start, and proven by what the running broker says to DescribeConfigs: a file says nothing of the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.checks.registry import CHECKS
from migrate.checks.releases import PROTOCOL
from migrate.model.broker_modes import Mode, positions
from migrate.model.config_keys import IBP
from migrate.model.detect import detect
from migrate.model.ids import NodeId
from migrate.model.kafka_values import version_name
from migrate.model.outcome import NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, Running
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import configuration, facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.gates import Gate, gate, requires
from migrate.steps.prepare import BackUpBroker
from migrate.steps.restore import Restored, to_protocol
from migrate.steps.roll import FULL_ISRS, SEEN, Roll
from migrate.steps.rollback import gates as back

LOOK: Final = SEEN | {Need.BACKUPS, Need.PROTOCOLS}
RAISED_FROM: Final = (3, 0)  # before it, log.message.format.version decides how records are written
BROKERS_AREAS: Final = ("DIR", "HLT", "ZKN")  # of checks: log directories, availability, ZooKeeper's tree
# Codes that say nothing against a restart of ZooKeeper-mode brokers: of KRaft, of the controllers to come, of versions.
ELSEWHERE: Final = frozenset(
    code
    for code, check in CHECKS.items()
    if check.blocks_from > (Stage.MIGRATION_MODE if code[2:5] in BROKERS_AREAS else Stage.PREPARE)
)


def said_by(world: World, broker: int) -> str | Unknown:
    """The version that a broker says it runs with; the two names of 3.9 are one."""
    if isinstance(world.protocols, Unknown):
        return world.protocols
    found = world.protocols.get(NodeId(broker), Unknown("it was not asked"))
    if isinstance(found, Unknown):
        return Unknown(f"the {IBP} that broker {broker} runs with is not known: {found.reason}")
    return version_name(found)


def in_file(world: World, broker: int) -> str | Unknown:
    """The version that a broker of this file starts with: without the key 3.9, the newest of its software."""
    file = facts.config(world, broker)
    if not isinstance(file, ConfigFile):
        return file if isinstance(file, Unknown) else Unknown(f"broker {broker} has no file {file.path}")
    return version_name(file.values.get(IBP, "") or PROTOCOL)


@requires("no migration has begun, and every broker's file is of ZooKeeper mode")
def not_begun(world: World) -> Readiness:
    """Nothing of a migration is in ZooKeeper, in a controller's metadata or in a broker's file."""
    here = detect(world)
    if isinstance(here, Unknown):
        return here
    if here.stage > Stage.ASSESS or here.half is not None:
        return Refused(
            f"a migration has begun (stage {here.words}: {here.how}), and its brokers keep their {IBP}: end it, or "
            "roll it back with the MigrationPlaybook first"
        )
    for one in positions(world):
        if isinstance(one.file, Unknown):
            return one.file
        if one.file is not Mode.ZOOKEEPER:
            return Refused(
                f"the file of broker {int(one.broker)} is of {one.file.words}: roll back the migration first"
            )
    return Ready()


@requires(
    f"every broker says itself which {IBP} it runs with, each is 3.0 or later, and none has it from elsewhere than its "
    "file"
)
def versions_fit(world: World) -> Readiness:
    """Every broker says itself which version it runs with, and each can be raised from there."""
    return gates.first(*(_fits(world, broker) for broker in facts.brokers(world)))


def _fits(world: World, broker: int) -> Readiness:
    said, wanted = said_by(world, broker), in_file(world, broker)
    if isinstance(said, Unknown) or isinstance(wanted, Unknown):
        return said if isinstance(said, Unknown) else wanted if isinstance(wanted, Unknown) else Ready()
    for version in (said, wanted):
        found = re.match(r"(\d+)\.(\d+)(?![^-])", version)
        line = (int(found[1]), int(found[2])) if found else None
        if line is None or not RAISED_FROM <= line <= (3, 9):
            return Refused(
                f"broker {broker} has {IBP}={version}: it is raised from 3.0 and later alone. Below 3.0 "
                "log.message.format.version decides how records are written, and from 3.0 on it is ignored: raise it "
                "to 3.0 first, as Kafka's upgrade notes say"
            )
    state = Unknown("") if isinstance(world.services, Unknown) else world.services.get(NodeId(broker))
    file = facts.config(world, broker)
    same = isinstance(state, Running) and isinstance(file, ConfigFile) and state.config_sha256 == file.sha256
    return _other(world, broker, said, wanted) if same and said != wanted else Ready()


def _other(world: World, broker: int, said: str, wanted: str) -> Refused:
    return Refused(
        f"broker {broker} runs with {IBP} {said}, and its file {world.inventory.node(broker).config} says {wanted}: "
        "something else than the file decides, such as --override on its command line (B-CFG-23). Take it out"
    )


def runs_as_filed(world: World, broker: int) -> Readiness:
    """The running broker itself says the version of its file."""
    said, wanted = said_by(world, broker), in_file(world, broker)
    if isinstance(wanted, Unknown) or said == NOT_ASKED:
        return wanted if isinstance(wanted, Unknown) else NOT_ASKED
    if isinstance(said, Unknown):
        return NotYet(f"broker {broker} to answer ({said.reason})", f"broker {broker}", back.AFTER)
    return Ready() if said == wanted else _other(world, broker, said, wanted)


@dataclass(frozen=True, slots=True)
class KeepProtocolFiles(BackUpBroker):
    kind = "keep-protocol-files"
    name = "keep-{broker}"
    stage_is = Stage.PROTOCOL


@dataclass(frozen=True, slots=True)
class RaiseProtocol(Roll):
    kind = "raise-protocol"
    stage_is = Stage.PROTOCOL
    goal = Mode.ZOOKEEPER
    goes_back = True
    titled = "restart broker {broker} with inter.broker.protocol.version 3.9"
    needs = LOOK | gates.FOR_BLOCKERS | {Need.LAUNCHES, Need.PORTS, Need.LISTENERS}
    proof_needs = LOOK | {Need.LISTENERS}
    waits_for = NARROW | {Need.ZOOKEEPER, Need.PROTOCOLS}
    undo = "`rollback plan` with this playbook: the same roll with the file from before, while no migration has begun"
    proof = (
        "the running broker itself says the version of its file (DescribeConfigs), it has a new session in ZooKeeper, "
        "every ISR is full"
    )

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return Restored(configuration.with_protocol(raw), "")

    def start_gates(self) -> tuple[Gate, ...]:
        """Where it may begin, and go on after an interruption."""
        return (
            gate(not_begun),
            gate(back.zookeeper_controls),
            gate(gates.disks_healthy, self.broker),
            gate(back.session_ended, self.broker),
        )

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            *self.start_gates(),
            gate(versions_fit),
            Gate(
                "no check finds a blocker of a restart in ZooKeeper mode, and each was made",
                lambda world: gates.no_blockers(world, Stage.MIGRATION_MODE, besides=ELSEWHERE),
            ),
            gate(gates.stop_is_accepted, self.broker),
            gate(gates.replicas_full),
        )

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.new_session(world)
        yield back.zookeeper_controls(world)
        yield runs_as_filed(world, self.broker)
        yield back.whole_after(world, self.broker)

    def evidence(self, world: World) -> tuple[str, ...]:
        return f"broker {self.broker} itself says {IBP} {said_by(world, self.broker)}", FULL_ISRS


@dataclass(frozen=True, slots=True)
class LowerProtocol(RaiseProtocol):
    kind = "lower-protocol"
    name = "back-{broker}"
    titled = "restart broker {broker} with its file from before inter.broker.protocol.version was raised"
    undo = "`plan` with this playbook: it raises the version again"

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return to_protocol(world, self.broker, raw)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            *self.start_gates(),
            Gate(f"a copy of broker {self.broker}'s file from before is proven", self.restorable),
            gate(gates.stop_is_accepted, self.broker),
            gate(back.whole_before, self.broker),
        )


@dataclass(frozen=True, slots=True)
class ProveProtocol(BaseStep):
    raised: str  # yes: every broker runs with 3.9; no: each runs with the version of its file from before
    restarted: str  # brokers of the plan's roll, comma-separated
    since: int  # the newest session of a broker as it was planned: the same plan is never carried out twice

    kind = "prove-protocol"
    name = "prove"
    stage_is = Stage.PROTOCOL
    titled = "prove every broker's inter.broker.protocol.version"
    proof_needs = LOOK
    waits_for = RaiseProtocol.waits_for
    proof = "every broker itself says the version of its file, every ISR is full"

    def verify(self, world: World) -> Outcome:
        brokers = facts.brokers(world)
        found = gates.first(
            not_begun(world),
            back.zookeeper_controls(world),
            *(runs_as_filed(world, broker) for broker in brokers),
            *(self._restarted(world, int(broker)) for broker in self.restarted.split(",") if broker),
            gates.replicas_full(world),
        )
        said = {broker: said_by(world, broker) for broker in brokers}
        old = [broker for broker in brokers if said[broker] != PROTOCOL]
        if isinstance(found, Ready) and self.raised == "yes" and old:
            found = Refused(f"broker {old[0]} runs with {IBP} {said[old[0]]}")
        told = ", ".join(f"broker {broker}: {version}" for broker, version in said.items())
        return gates.as_outcome(found, f"{IBP}, as each running broker says it: {told}", FULL_ISRS)

    def _restarted(self, world: World, broker: int) -> Readiness:
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        found = world.zookeeper.brokers.get(NodeId(broker))
        newer = found is not None and found.epoch > self.since
        return Ready() if newer else Refused(f"broker {broker} was not restarted since the plan was made")
