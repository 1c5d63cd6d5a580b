"""Worlds as a step sees them: with the ledger and the comparison that it asks for, and hands that only remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Readiness, Ready, Refused, Unknown, Verified
from migrate.model.rollback_readiness import StateBehind
from migrate.model.stage import Stage
from migrate.model.views import MetaProperties, PartitionHealth, Running, ServiceState
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.worlds import OFFSET, kraft, live

SICK = PartitionHealth("orders", 3, 1, (1,), (0, 1))
WRONG = Difference("topic-config", "orders", "retention.ms", DifferenceClass.DIFFERS, "1", "2")


@cache
def whole(stage: Stage) -> World:
    """The healthy world at that stage, ledger and comparison included."""
    world = worlds.world_at(stage)
    report = DiffReport(OFFSET, 0, {"topic": {"EQUAL": 6, "EXPECTED": 2}}, ())
    copied = Stage.COPY <= stage < Stage.FINALIZE
    return replace(
        world, ledger=pure_ledger(world), diff=report if copied else Unknown("they are compared in MIGRATION only")
    )


def relook(world: World) -> World:
    """The ledger of a bent world, recomputed from its views."""
    return replace(world, ledger=pure_ledger(world))


# -- what may be wrong ---------------------------------------------------------------------------------------------
Bend = Callable[[World], World]


def unhealthy(world: World) -> World:
    """A partition lacks an ISR member, as broker 1 sees it."""
    answer = live(world).metadata[NodeId(1)]
    assert not isinstance(answer, Unknown)
    return worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): replace(answer, unhealthy=(SICK,))})


def silent_broker(world: World) -> World:
    """Broker 1 does not answer."""
    return worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): Unknown("connection refused")})


def no_leader(world: World) -> World:
    """The quorum has no leader."""
    return worlds.with_live(world, quorum=Unknown("no controller leads"))


def voter_behind(world: World) -> World:
    """The last voter is far from the high watermark."""
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    voters = (*quorum.voters[:-1], replace(quorum.voters[-1], log_end_offset=OFFSET - 50))
    return worlds.with_live(world, quorum=replace(quorum, voters=voters))


def different(world: World) -> World:
    """One difference that nothing excuses."""
    return replace(world, diff=DiffReport(OFFSET, 0, {"topic-config": {"DIFFERS": 1}}, (WRONG,)))


def unsettled(world: World) -> World:
    """One field that moved in every look, everything else equal."""
    return replace(world, diff=DiffReport(OFFSET, 0, {"topic": {"EQUAL": 6}}, (), unsettled=(WRONG,), looks=6))


def row_in(state: ReplicaState, row: int = 0) -> Bend:
    """One row of the ledger in that state."""

    def bend(world: World) -> World:
        assert isinstance(world.ledger, Ledger)
        rows = list(world.ledger.rows)
        rows[row] = replace(rows[row], state=state)
        return replace(world, ledger=replace(world.ledger, rows=tuple(rows)))

    return bend


def broken_disk(broker: int) -> Bend:
    """One log directory of a broker died."""
    return lambda world: relook(
        worlds.with_directory(world, broker, 2, lambda entry: replace(entry, problem="input/output error"))
    )


def service(node: int, state: ServiceState) -> Bend:
    """One process in that state."""

    def bend(world: World) -> World:
        assert not isinstance(world.services, Unknown)
        return replace(world, services={**world.services, NodeId(node): state})

    return bend


def registration(node: int, **changes: object) -> Bend:
    """One registration changed."""

    def bend(world: World) -> World:
        brokers = kraft(world).brokers
        bent = replace(brokers[NodeId(node)], **changes)  # type: ignore[arg-type]
        return worlds.with_kraft(world, brokers={**brokers, NodeId(node): bent})

    return bend


def without(part: str) -> Bend:
    """One part of the world unknown."""
    return lambda world: replace(world, **{part: Unknown(f"{part} hidden")})  # type: ignore[arg-type]


def running(world: World, node: int, sha256: str | None) -> World:
    """A process that was started with that file."""
    return service(node, Running(1000 + node, 1.0, sha256))(world)


def silent(_world: World, _stage: Stage, **_: object) -> Readiness:
    """Stands in for `gates.no_blockers` where a step's own gates are tried alone: no check finds anything."""
    return Ready()


def answer(found: Readiness | Verified | object) -> str:
    """The answer's name, and its text: `refused: ...`, `notyet: ...`."""
    match found:
        case Ready() | Verified():
            return type(found).__name__.lower()
        case Refused(reason=text) | Unknown(reason=text) | NotYet(what=text) | AlreadyDone(how=text):
            return f"{type(found).__name__.lower()}: {text}"
        case _:
            raise AssertionError(found)


def rows(*states: ReplicaState, broker: int = 2, in_metadata: str = "") -> Ledger:
    """A ledger with one row in each of these states."""
    found = tuple(
        LedgerRow("orders", "T" * 22, number, broker, state, "D" * 22, in_metadata)
        for number, state in enumerate(states)
    )
    return Ledger(found, OFFSET, "pure")


@dataclass(slots=True)
class Remembered:
    """Implements `migrate.model.ports.Effects`: `done` lists what was asked for."""

    done: list[str] = field(default_factory=list)
    written: dict[int, bytes] = field(default_factory=dict)
    same: dict[int, tuple[int, Mapping[str, MetaProperties]]] = field(
        default_factory=dict
    )  # how a start must find them
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)  # nodes that must be down as a znode is deleted

    @property
    def asked(self) -> dict[int, tuple[str, ...]]:
        """Which directories were looked at before the start."""
        return {node: tuple(metas) for node, (_, metas) in self.same.items()}

    def write_config(self, node: NodeId, path: str, content: bytes, expect_sha256: str | None) -> None:
        """Remember the file."""
        self.done.append(f"write {int(node)} {path} over {'nothing' if expect_sha256 is None else expect_sha256[:8]}")
        self.written[int(node)] = content

    def backup_files(self, node: NodeId, paths: Sequence[str]) -> None:
        """Remember them."""
        self.done.append(f"keep {int(node)} {', '.join(paths)}")

    def backup_zookeeper(self, name: str = "zookeeper") -> None:
        """Remember it."""
        self.done.append(f"back up {name}")

    def stop_zookeeper(self, address: str) -> None:
        """Remember it."""
        self.done.append(f"stop zookeeper {address}")

    def mask_zookeeper(self, address: str) -> None:
        """Remember it."""
        self.done.append(f"mask zookeeper {address}")

    def make_directory(self, node: NodeId, path: str) -> None:
        """Remember it."""
        self.done.append(f"make {int(node)} {path}")

    def format_storage(self, nodes: Sequence[NodeId], cluster_id: str, release_version: str, voters: str = "") -> None:
        """Remember it."""
        which = ",".join(str(int(node)) for node in nodes)
        self.done.append(f"format {which} {cluster_id} {release_version}{f' {voters}' if voters else ''}")

    def format_directories(self, node: NodeId, cluster_id: str, release_version: str) -> None:
        """Remember it."""
        self.done.append(f"format what is bare {int(node)} {cluster_id} {release_version}")

    def require_empty(self, node: NodeId, path: str) -> None:
        """Remember it."""
        self.done.append(f"look into {int(node)} {path}")

    def require_same(self, node: NodeId, metas: Mapping[str, MetaProperties]) -> None:
        """Remember what was asked for, and after how many of the other acts."""
        self.same[int(node)] = (len(self.done), metas)

    def stop(self, node: NodeId) -> None:
        """Remember it."""
        self.done.append(f"stop {int(node)}")

    def start(self, node: NodeId) -> None:
        """Remember it."""
        self.done.append(f"start {int(node)}")

    def assign_directories(self, broker: NodeId) -> None:
        """Remember it."""
        self.done.append(f"assign {int(broker)}")

    def release_zookeeper_lock(self) -> None:
        """Remember it."""
        self.done.append("release")

    def raise_versions(self, states: Sequence[StateBehind], owner: int | None, down: Sequence[NodeId]) -> None:
        """Remember them."""
        told = ", ".join(f"{it.path} {it.version} -> {it.partition_epoch}" for it in states)
        self.done.append(f"raise {told} with {owner} while {[int(node) for node in down]} are down")

    def set_aside(self, node: NodeId, path: str) -> None:
        """Remember it."""
        self.done.append(f"aside {int(node)} {path}")

    def remove_copy(self, node: NodeId, path: str) -> None:
        """Remember it."""
        self.done.append(f"remove {int(node)} {path}")

    def set_metadata_aside(self, node: NodeId, directory: str) -> None:
        """Remember it."""
        self.done.append(f"aside {int(node)} {directory}")

    def set_znode(self, path: str, data: bytes, version: int) -> None:
        """Remember it."""
        self.done.append(f"set {path} {data.decode()} over {version}")

    def delete_znode(self, path: str, version: int, down: Sequence[NodeId] = ()) -> None:
        """Remember it."""
        self.done.append(f"delete {path} at {version}")
        self.held[path] = tuple(int(node) for node in down)

    def note_measures(self) -> None:
        """Remember it."""
        self.done.append("measures")

    def note(self, key: str, value: str) -> None:
        """Remember it."""
        self.done.append(f"note {key}={value}")
