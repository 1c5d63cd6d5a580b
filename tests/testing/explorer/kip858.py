"""KIP-858's protocol as a model: several brokers with several log directories, restarts, and changes of mode.

The author's own TLA+ model has one broker that never restarts.  Here brokers start in migration mode, are rolled into
KRaft mode and back, crash, come back with a dead directory or without one, and may have directories sent for them from
outside.  What is proven is what that model proves (`kip858.tla`'s names are kept):

- *TypeOK*, *UpdatesOnlyOfflinePartitions*, *BrokerHoldsPartitionsInASingleLogDir* in every state and transition;
- in every state in which nothing is left to do: the controller knows the true assignments, the broker has caught up,
  the controller knows every offline directory, and every offline replica had its leadership update.

A broker is `(mode, up, fenced, caught up, dead directories, those the controller holds for dead, replicas)`, a replica
`(directories with a copy, directory in the metadata, in the ISR)`.  Directories are bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

MIGRATION, KRAFT = 0, 1
MIGRATING: Final = 0  # the directory in the metadata is not known
GONE: Final = 64  # the id of a directory whose disk was replaced: the new one has another id
UP: Final = 1
FENCED: Final = 2
DEAD: Final = 4
TOLD: Final = 5
REPLICAS: Final = 6

Replica = tuple[int, int, int]
Broker = tuple[int, int, int, int, int, int, tuple[Replica, ...]]
State = tuple[tuple[Broker, ...], int, int]  # brokers, restarts left, disk failures left
Step = tuple[str, State, str, bool]  # what, after it, the breach ("" for none), is it progress (fair) or a fault?


class Flaw(Enum):
    """A mistake to plant: each must be found."""

    WRONG_DIRECTORY = "a directory that the broker did not register is sent from outside"
    FORGETS = "a broker forgets an assignment when its directory dies before it is sent"
    RECREATES = "a broker creates a log anew while a directory is offline that may hold it"
    SILENT = "a broker does not tell of a dead directory"


@dataclass(frozen=True, slots=True)
class Size:
    """How large the model is."""

    brokers: int = 2
    directories: int = 2
    partitions: int = 2
    restarts: int = 3
    failures: int = 2


def start(size: Size) -> State:
    """Every broker in migration mode, registered, its replicas spread over its directories, none of them known."""
    replicas = tuple(sorted((1 << number % size.directories, MIGRATING, 1) for number in range(size.partitions)))
    return ((MIGRATION, 1, 0, 1, 0, 0, replicas),) * size.brokers, size.restarts, size.failures


def steps(state: State, size: Size, flaws: frozenset[Flaw] = frozenset()) -> Iterator[Step]:
    """Everything that may happen next."""
    brokers, restarts, failures = state
    for number, broker in enumerate(brokers):
        if number and broker == brokers[number - 1]:
            continue
        for text, after, breach in _progress(broker, flaws):
            yield text, (_with(brokers, number, after), restarts, failures), breach, True
        for text, after, breach in _driven(broker, size, flaws):
            yield text, (_with(brokers, number, after), restarts, failures), breach, False
        if restarts and broker[UP]:
            for text, after in _restarts(broker):
                yield text, (_with(brokers, number, after), restarts - 1, failures), "", False
        if failures:
            for text, after in _failures(broker, size):
                yield text, (_with(brokers, number, after), restarts, failures - 1), "", False


def _with(brokers: tuple[Broker, ...], number: int, after: Broker) -> tuple[Broker, ...]:
    return tuple(sorted((*brokers[:number], after, *brokers[number + 1 :])))


def _replicas(broker: Broker, number: int, replica: Replica) -> Broker:
    mode, up, fenced, caught_up, dead, told, mine = broker
    return (mode, up, fenced, caught_up, dead, told, tuple(sorted((*mine[:number], replica, *mine[number + 1 :]))))


# -- what brokers and controller do by themselves (fair) -------------------------------------------------------------
def _progress(broker: Broker, flaws: frozenset[Flaw]) -> Iterator[tuple[str, Broker, str]]:
    mode, up, fenced, caught_up, dead, told, replicas = broker
    if not up:
        if not fenced:  # BrokerHeartbeatManager: the session ends, and with it every leadership
            out = tuple(sorted((copies, assigned, 0) for copies, assigned, _ in replicas))
            yield "a broker is fenced", (mode, 0, 1, 0, dead, told, out), ""
        else:  # its owner starts it again
            yield "a broker starts and registers", (mode, 1, 1, 0, dead, dead, replicas), ""
        return
    if not caught_up:
        yield "a broker catches up with the metadata", (mode, 1, fenced, 1, dead, told, replicas), ""
        return
    if fenced:  # setReadyToUnfence once the first image was published
        yield "a broker unfences", (mode, 1, 0, 1, dead, told, replicas), ""
        return
    if dead & ~told and mode == KRAFT and Flaw.SILENT not in flaws:
        yield _heartbeat(broker)
    for number, (copies, assigned, in_isr) in enumerate(replicas):
        alive = copies & ~dead
        if alive and not in_isr and _online(assigned, told):
            yield "a replica joins the ISR", _replicas(broker, number, (copies, assigned, 1)), ""
        if mode == KRAFT and copies and assigned != copies and not (copies & dead and Flaw.FORGETS in flaws):
            yield _assign(broker, number, copies)
        if not (dead or copies) or (Flaw.RECREATES in flaws and not alive):
            # LogManager.getOrCreateLog: not while a directory is offline that may hold it
            healthy = next(bit for bit in (1, 2, 4, 8) if not dead & bit)
            yield "a replica is created anew", _replicas(broker, number, (copies | healthy, assigned, in_isr)), ""


def _online(assigned: int, told: int) -> bool:
    """`DirectoryId.isOnline`: MIGRATING counts as online, an id that is not registered does not."""
    return assigned == MIGRATING or not (assigned & told or assigned == GONE)


def _heartbeat(broker: Broker) -> tuple[str, Broker, str]:
    """OfflineLogDirs: the controller takes leaderships of what is assigned there (`handleDirectoriesOffline`)."""
    mode, up, fenced, caught_up, dead, told, replicas = broker
    after, breach = [], ""
    for copies, assigned, in_isr in replicas:
        hit = bool(assigned & dead & ~told)
        if hit and in_isr and copies & ~dead:
            breach = "UpdatesOnlyOfflinePartitions: a replica on a living directory lost its leadership"
        after.append((copies, assigned, 0 if hit else in_isr))
    text = "a broker tells of a dead directory"
    return text, (mode, up, fenced, caught_up, dead, dead, tuple(sorted(after))), breach


def _assign(broker: Broker, number: int, directory: int) -> tuple[str, Broker, str]:
    """AssignReplicasToDirs: an id that is not online takes the replica out of the ISR there."""
    copies, _, in_isr = broker[REPLICAS][number]
    registered = directory & ~broker[TOLD] and directory in (1, 2, 4, 8)
    breach = ""
    if not registered and in_isr and copies & ~broker[DEAD]:
        breach = "UpdatesOnlyOfflinePartitions: a replica on a living directory lost its leadership"
    after = _replicas(broker, number, (copies, directory, in_isr if registered else 0))
    return "a broker's assignment is committed", after, breach


# -- what befalls them -----------------------------------------------------------------------------------------------
def _restarts(broker: Broker) -> Iterator[tuple[str, Broker]]:
    mode, _, fenced, _, dead, told, replicas = broker
    yield "a broker is killed", (mode, 0, fenced, 0, dead, told, replicas)
    text = "a broker is stopped, to start in KRaft mode" if mode == MIGRATION else "a broker is rolled back"
    yield text, (1 - mode, 0, fenced, 0, dead, told, replicas)
    if dead:
        empty = tuple(
            sorted((copies & ~dead, GONE if assigned & dead else assigned, s) for copies, assigned, s in replicas)
        )
        yield "a broker is stopped, its dead disk replaced", (mode, 0, fenced, 0, 0, told, empty)
        yield "a broker is stopped, its directory mended", (mode, 0, fenced, 0, 0, told, replicas)


def _failures(broker: Broker, size: Size) -> Iterator[tuple[str, Broker]]:
    mode, up, fenced, caught_up, dead, told, replicas = broker
    for directory in (1 << number for number in range(size.directories)):
        after = dead | directory
        if dead & directory or after == (1 << size.directories) - 1:
            continue  # with the last one the broker stops: a crash
        if mode == MIGRATION and up:  # KAFKA-16431
            yield "a directory dies, and the broker halts", (mode, 0, fenced, 0, after, told, replicas)
        else:
            yield "a directory dies", (mode, up, fenced, caught_up, after, told, replicas)


def _driven(broker: Broker, size: Size, flaws: frozenset[Flaw]) -> Iterator[tuple[str, Broker, str]]:
    """Policy drive: the true id of a living, registered directory; nothing else is ever sent."""
    if not broker[UP] or broker[FENCED]:
        return
    for number, (copies, assigned, _) in enumerate(broker[REPLICAS]):
        if assigned == MIGRATING and copies and not copies & (broker[DEAD] | broker[TOLD]):
            yield "a directory is sent from outside", *_assign(broker, number, copies)[1:]
            if Flaw.WRONG_DIRECTORY in flaws:
                foreign = 1 << size.directories | 16
                yield "a WRONG directory is sent from outside", *_assign(broker, number, foreign)[1:]


# -- what must hold --------------------------------------------------------------------------------------------------
def breach_of(state: State, size: Size) -> str:
    """TypeOK and BrokerHoldsPartitionsInASingleLogDir."""
    every = (1 << size.directories) - 1
    for mode, up, fenced, caught_up, dead, told, replicas in state[0]:
        if mode not in (MIGRATION, KRAFT) or not {up, fenced, caught_up} <= {0, 1} or (dead | told) & ~every:
            return "TypeOK: a broker is of no kind that exists"
        for copies, assigned, in_isr in replicas:
            if copies & ~every or assigned & ~(every | GONE | 16 | 1 << size.directories) or in_isr not in (0, 1):
                return "TypeOK: a replica is of no kind that exists"
            if copies & (copies - 1):
                return "BrokerHoldsPartitionsInASingleLogDir: a replica stands in two directories"
    return ""


def unfinished(state: State) -> str:
    """What eventually must hold and does not, in a state in which nothing is left to do."""
    for mode, _, _, caught_up, dead, told, replicas in state[0]:
        if not caught_up:
            return "a broker never catches up"
        if mode == KRAFT and dead != told:
            return "the controller never knows a dead directory"
        for copies, assigned, in_isr in replicas:
            if mode == KRAFT and copies and assigned != copies:
                return "the controller never knows the true directory"
            if in_isr and not copies & ~dead:
                return "an offline replica never gets its leadership update"
    return ""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a visit of the whole model showed."""

    states: int
    transitions: int
    ends: int  # states in which nothing is left to do
    breach: str
    trace: tuple[str, ...]


def prove(size: Size, flaws: frozenset[Flaw] = frozenset()) -> Proof:
    """Visit everything: safety on the way, liveness in every end; and no fair run goes round for ever."""
    first = start(size)
    parents: dict[State, tuple[State, str] | None] = {first: None}
    level, transitions, ends = [first], 0, 0
    pending: dict[State, int] = {}
    leads_to: dict[State, list[State]] = {}
    while level:
        following = []
        for state in level:
            fair = 0
            for text, after, wrong, progress in steps(state, size, flaws):
                transitions += 1
                wrong = wrong or breach_of(after, size)  # noqa: PLW2901 - of the transition, or of its end
                if after not in parents:
                    parents[after] = state, text
                    following.append(after)
                if wrong:
                    return Proof(len(parents), transitions, ends, wrong, (*_way(parents, state), text, wrong))
                if progress and after != state:
                    fair += 1
                    leads_to.setdefault(after, []).append(state)
            pending[state] = fair
            if not fair:
                ends += 1
                wrong = unfinished(state)
                if wrong:
                    return Proof(len(parents), transitions, ends, wrong, (*_way(parents, state), wrong))
        level = following
    circle = _circle(pending, leads_to)
    return Proof(len(parents), transitions, ends, circle, (circle,) if circle else ())


def _circle(pending: dict[State, int], leads_to: dict[State, list[State]]) -> str:
    """Take away ends, then what leads to ends alone: what stays goes round in a circle of fair steps."""
    left = [state for state, fair in pending.items() if not fair]
    gone = 0
    while left:
        gone += 1
        for state in leads_to.get(left.pop(), ()):
            pending[state] -= 1
            if not pending[state]:
                left.append(state)
    return "" if gone == len(pending) else f"{len(pending) - gone} states from which a fair run may never end"


def _way(parents: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    lines: list[str] = []
    found = parents[state]
    while found is not None:
        before, text = found
        lines.append(text)
        found = parents[before]
    return tuple(reversed(lines))
