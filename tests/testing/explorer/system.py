"""The whole model: one cluster, two engines with the pure protocol, the lock, and a bounded number of faults.

A state is one integer: the cluster's number above, engines, lock and faults left below.  What can follow a cluster is
computed once for each cluster, however many states of engines meet it.

An engine looks, chooses one move, and acts; between look and act anything may happen.  Before the act it asks the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.oracles.machine import EVERY, Act, Choice, Done, Guard, Guards, Metadata, Moves, Stop, Wait, back, forward
from tests.oracles.machine.standing import Flag, Mode, Owner, Znode
from tests.testing.explorer import effects, faults, kafka
from tests.testing.explorer.cluster import (
    B,
    C,
    Cluster,
    G,
    folded,
    in_zookeeper_mode,
    plain_ints,
    put,
    standing,
    with_broker,
    with_controller,
)
from tests.testing.explorer.faults import Fault

OFF, RUNNING, PAUSED = 0, 1, 2
STATUS, BACK, LATE, ACT_SHIFT, ENGINE_BITS = 0b11, 0b100, 0b1000, 4, 9
ENGINE: Final = (1 << ENGINE_BITS) - 1
LOCK_SHIFT, FAULT_SHIFT, WORD_BITS = 2 * ENGINE_BITS, 2 * ENGINE_BITS + 2, 2 * ENGINE_BITS + 4
WORD: Final = (1 << WORD_BITS) - 1

WRITES: Final = frozenset({Act.TO_ZOOKEEPER, Act.TO_MIGRATION, Act.TO_KRAFT})

Step = tuple[str, int, str]  # what happens, the state after it, the breach ("" for none)
Branch = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the model is: nodes, engines, faults, and which faults."""

    brokers: int = 2
    controllers: int = 3
    engines: int = 2
    faults: int = 2
    kinds: frozenset[Fault] = frozenset(Fault)
    backward: bool = True  # may engines be asked for the rollback?
    # a paused engine wakes without a lock: whatever it had chosen is refused.  Not carrying the choice along keeps the
    # two-fault model small; the visit with one fault carries it, and shows that the refusal holds for every choice
    short_pauses: bool = False


class System:
    """The model's transitions, with every cluster met so far."""

    def __init__(self, bounds: Bounds, guards: Guards = EVERY) -> None:
        self.bounds = bounds
        self.guards = guards
        self._numbers: dict[Cluster, int] = {}
        self.clusters: list[Cluster] = []
        self._moves: list[tuple[Branch, ...] | None] = []
        self._faults: list[tuple[tuple[Fault, str, int], ...] | None] = []
        self._bad: list[str] = []
        self._looks: dict[int, tuple[Branch, ...] | str] = {}
        self._acts: dict[int, tuple[str, int, str]] = {}
        self._unmarked: dict[int, int] = {}
        self._twins: dict[int, int] = {}

    def start(self) -> int:
        """A cluster in ZooKeeper mode, no engine runs, no fault has befallen it."""
        cluster = in_zookeeper_mode(self.bounds.brokers, self.bounds.controllers)
        return self._number(cluster) << WORD_BITS | self.bounds.faults << FAULT_SHIFT

    def folded(self, state: int) -> int:
        """The one state that stands for this one and for the one with the engines' names exchanged."""
        word = state & WORD
        first, second = word & ENGINE, word >> ENGINE_BITS & ENGINE
        lock = word >> LOCK_SHIFT & 0b11
        if first < second or (first == second and lock != 2):
            return state
        number = state >> WORD_BITS
        twin = self._twins.get(number)
        if twin is None:
            twin = self._number(_exchanged(self.clusters[number]))
            self._twins[number] = twin
        swapped = second | first << ENGINE_BITS | (0, 2, 1)[lock] << LOCK_SHIFT | word >> FAULT_SHIFT << FAULT_SHIFT
        return twin << WORD_BITS | swapped

    def asked_back(self, state: int) -> bool:
        """Does an engine run, and was it asked for the rollback?"""
        word = state & WORD
        engines = (word & ENGINE, word >> ENGINE_BITS & ENGINE)
        return any(own & STATUS and own & BACK for own in engines)

    def cluster(self, state: int) -> Cluster:
        """The cluster of a state."""
        return self.clusters[state >> WORD_BITS]

    def _number(self, cluster: Cluster) -> int:
        number = self._numbers.get(cluster)
        if number is None:
            cluster = plain_ints(cluster)
            number = len(self.clusters)
            self._numbers[cluster] = number
            self.clusters.append(cluster)
            self._moves.append(None)
            self._faults.append(None)
            self._bad.append(breach_of(cluster))
        return number

    # -- transitions -----------------------------------------------------------------------------------------------
    def steps(self, state: int) -> Iterator[Step]:
        """Everything that may happen next."""
        number, word = state >> WORD_BITS, state & WORD
        for text, after in self._cluster_moves(number):
            yield text, after << WORD_BITS | word, self._bad[after]
        for engine in range(self.bounds.engines):
            yield from self._engine(number, word, engine)
        if word >> FAULT_SHIFT:
            yield from self._misfortunes(number, word)

    def _cluster_moves(self, number: int) -> tuple[Branch, ...]:
        found = self._moves[number]
        if found is None:
            found = tuple((text, self._number(after)) for text, after in kafka.moves(self.clusters[number]))
            self._moves[number] = found
        return found

    def _misfortunes(self, number: int, word: int) -> Iterator[Step]:
        found = self._faults[number]
        if found is None:
            found = tuple(
                (kind, text, self._number(after))
                for kind, text, after in faults.befall(self.clusters[number])
                if kind in self.bounds.kinds
            )
            self._faults[number] = found
        late = word - (1 << FAULT_SHIFT)
        for engine in range(self.bounds.engines):
            if (word >> engine * ENGINE_BITS & ENGINE) >> ACT_SHIFT:
                late |= LATE << engine * ENGINE_BITS
        for _, text, after in found:
            yield "FAULT: " + text, after << WORD_BITS | late, self._bad[after]
        for engine in range(self.bounds.engines):
            status = word >> engine * ENGINE_BITS & STATUS
            if status and Fault.KILL in self.bounds.kinds:
                after, off = self._off(number, late, engine)
                yield f"FAULT: engine {'AB'[engine]} is killed", after << WORD_BITS | off, ""
            if status == RUNNING and Fault.PAUSE in self.bounds.kinds:
                after, paused = self._paused(number, late, engine)
                yield f"FAULT: engine {'AB'[engine]} is paused beyond its session", after << WORD_BITS | paused, ""

    def _paused(self, number: int, word: int, engine: int) -> tuple[int, int]:
        """A paused engine has lost its lock; with `short_pauses`, what it had chosen is not carried along."""
        if self.bounds.short_pauses:
            after, off = self._off(number, word, engine)
            return after, off | PAUSED << engine * ENGINE_BITS
        return number, _unlocked(word ^ (RUNNING ^ PAUSED) << engine * ENGINE_BITS, engine)

    def _engine(self, number: int, word: int, engine: int) -> Iterator[Step]:
        shift, name = engine * ENGINE_BITS, "AB"[engine]
        own = word >> shift & ENGINE
        status = own & STATUS
        if status == OFF:
            if not word >> LOCK_SHIFT & 0b11:
                held = word | (engine + 1) << LOCK_SHIFT
                yield f"engine {name} takes the lock: forward", number << WORD_BITS | held | RUNNING << shift, ""
                if self.bounds.backward:
                    rollback_plan = held | (RUNNING | BACK) << shift
                    yield f"engine {name} takes the lock: back", number << WORD_BITS | rollback_plan, ""
        elif status == PAUSED:
            if self.bounds.short_pauses:
                after, off = self._off(number, word, engine)
                yield f"engine {name} wakes, finds its lock lost, and ends", after << WORD_BITS | off, ""
            else:
                yield f"engine {name} wakes", number << WORD_BITS | word ^ (RUNNING ^ PAUSED) << shift, ""
        elif own >> ACT_SHIFT:
            yield self._acts_now(number, word, engine, own)
        else:
            yield from self._looks_now(number, word, engine, own)

    def _looks_now(self, number: int, word: int, engine: int, own: int) -> Iterator[Step]:
        found = self._choices(number, engine, own)
        if isinstance(found, str):
            after, off = self._off(number, word, engine)
            breach = found.removeprefix("done: ") if found.startswith("done: ") else ""
            yield f"engine {'AB'[engine]} ends: {found}", after << WORD_BITS | off, breach
            return
        for text, packed in found:  # the packed part: cluster and act
            after, act = divmod(packed, 32)
            chosen = word | act << ACT_SHIFT + engine * ENGINE_BITS
            yield f"engine {'AB'[engine]} looks: {text}", after << WORD_BITS | chosen, ""

    def _choices(self, number: int, engine: int, own: int) -> tuple[Branch, ...] | str:
        key = (number * 2 + engine) * 2 + bool(own & BACK)
        found = self._looks.get(key)
        if found is None:
            found = self._choose(number, engine, back_wanted=bool(own & BACK))
            self._looks[key] = found
        return found

    def _choose(self, number: int, engine: int, *, back_wanted: bool) -> tuple[Branch, ...] | str:
        cluster = self.clusters[number]
        seen = standing(cluster)
        choice: Choice = back(seen, self.guards) if back_wanted else forward(seen, self.guards)
        match choice:
            case Moves(of=moves):
                found: dict[int, str] = {}
                for move in moves:
                    after = _marked(cluster, move.act, move.node, engine + 1)
                    found.setdefault(self._number(after) * 32 + move.act, _said(move.act))
                return tuple((text, packed) for packed, text in found.items())
            case Wait(what=what):
                return f"waits for {what}, and gives up"
            case Stop(why=why):
                return f"stops: {why}"
            case Done():
                wrong = not_back(cluster) if back_wanted else not_finalized(cluster)
                return f"done: {wrong}" if wrong else "its goal is reached"

    def _acts_now(self, number: int, word: int, engine: int, own: int) -> Step:
        name, holds = "AB"[engine], word >> LOCK_SHIFT & 0b11 == engine + 1
        if not holds and Guard.LOCK in self.guards:
            after, off = self._off(number, word, engine)
            return f"engine {name} finds its lock lost, and ends", after << WORD_BITS | off, ""
        if Guard.STALENESS in self.guards and self._written_over(number, engine, own >> ACT_SHIFT):
            after, off = self._off(number, word, engine)  # write-config names the hash that it expects to find
            return f"engine {name} finds another file than it looked at, and ends", after << WORD_BITS | off, ""
        text, after, breach = self._act(number, engine, own >> ACT_SHIFT, late=bool(own & LATE))
        if not holds:
            breach = "G6: an engine that lost its lock acts"
        rest = word & ~((ENGINE ^ STATUS ^ BACK) << engine * ENGINE_BITS)
        return f"engine {name} acts: {text}", after << WORD_BITS | rest, breach or self._bad[after]

    def _written_over(self, number: int, engine: int, act: int) -> bool:
        cluster = self.clusters[number]
        return act in WRITES and bool(cluster[0][_marked_node(cluster, Act(act), engine + 1)][B.HAND])

    def _act(self, number: int, engine: int, act: int, *, late: bool) -> tuple[str, int, str]:
        key = ((number * 2 + engine) * 2 + late) * 32 + act
        found = self._acts.get(key)
        if found is None:
            cluster, what = self.clusters[number], Act(act)
            node = _marked_node(cluster, what, engine + 1)
            after, breach = effects.act(cluster, what, node, late=late)
            found = _said(what), self._number(_without_mark(after, engine + 1)), breach
            self._acts[key] = found
        return found

    def _off(self, number: int, word: int, engine: int) -> tuple[int, int]:
        """Cluster and word after an engine has ended: its mark and its lock are gone."""
        key = number * 2 + engine
        after = self._unmarked.get(key)
        if after is None:
            after = self._number(_without_mark(self.clusters[number], engine + 1))
            self._unmarked[key] = after
        return after, _unlocked(word & ~(ENGINE << engine * ENGINE_BITS), engine)


def _unlocked(word: int, engine: int) -> int:
    if word >> LOCK_SHIFT & 0b11 == engine + 1:
        return word & ~(0b11 << LOCK_SHIFT)
    return word


def _said(act: Act) -> str:
    return act.name.lower().replace("_", "-")


def _marked(cluster: Cluster, act: Act, node: int, mark: int) -> Cluster:
    if act.subject == "broker":
        return with_broker(cluster, node, (B.MARK, cluster[0][node][B.MARK] | mark))
    if act.subject == "controller":
        return with_controller(cluster, node, (C.MARK, cluster[1][node][C.MARK] | mark))
    return cluster


def _marked_node(cluster: Cluster, act: Act, mark: int) -> int:
    if act.subject == "broker":
        return next(number for number, entry in enumerate(cluster[0]) if entry[B.MARK] & mark)
    if act.subject == "controller":
        return next(number for number, entry in enumerate(cluster[1]) if entry[C.MARK] & mark)
    return -1


def _exchanged(cluster: Cluster) -> Cluster:
    """The same with the marks of both engines exchanged."""
    brokers = [put(entry, (B.MARK, (0, 2, 1, 3)[entry[B.MARK]])) for entry in cluster[0]]
    others = [put(entry, (C.MARK, (0, 2, 1, 3)[entry[C.MARK]])) for entry in cluster[1]]
    return folded(brokers, others, cluster[2])


def _without_mark(cluster: Cluster, mark: int) -> Cluster:
    brokers = [put(entry, (B.MARK, entry[B.MARK] & ~mark)) if entry[B.MARK] & mark else entry for entry in cluster[0]]
    others = [put(entry, (C.MARK, entry[C.MARK] & ~mark)) if entry[C.MARK] & mark else entry for entry in cluster[1]]
    return folded(brokers, others, cluster[2])


# -- invariants ----------------------------------------------------------------------------------------------------
def breach_of(cluster: Cluster) -> str:
    """What no state may show, whoever brought it about."""
    common = cluster[2]
    if common[G.EMPTIED]:
        return "G1: ZooKeeper is emptied"
    if common[G.STRAY]:
        return "G1: a broker has set its logs aside"
    if common[G.LOST]:
        return "G3: what was made in hybrid is lost on the rollback"
    return ""


def not_back(cluster: Cluster) -> str:
    """What is missing where the rollback says that it is done (G3)."""
    brokers, controllers, common = cluster
    if any(entry[B.PROCESS] != Mode.ZOOKEEPER or not entry[B.WHOLE] for entry in brokers):
        return "G3: the rollback ends with a broker that is not whole in ZooKeeper mode"
    if common[G.ZNODE] != Znode.ABSENT:
        return "G3: the rollback leaves /migration behind"
    if common[G.OWNER] != Owner.ZOOKEEPER or any(entry[C.PROCESS] or entry[C.FORMATTED] for entry in controllers):
        return "G3: the rollback leaves a KRaft controller behind"
    return ""


def not_finalized(cluster: Cluster) -> str:
    """What is missing where the way forward says that it is done (G2)."""
    brokers, controllers, common = cluster
    if common[G.META] != Metadata.POST_MIGRATION:
        return "G2: said to be finalized, and is not"
    if any(entry[B.PROCESS] != Mode.KRAFT for entry in brokers):
        return "G2: said to be finalized with a broker that is not in KRaft mode"
    if any(entry[C.FILE] != Flag.OFF for entry in controllers):
        return "G2: said to be finalized with the flag in a controller's file"
    return ""
