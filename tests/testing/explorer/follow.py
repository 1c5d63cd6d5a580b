"""Follows a recorded trace in the model: every event must be a transition that the model has, from where it stands.

Not all that happens leaves a line, so the model may stand in several states at once; between two events it may make any
of the silent moves.  Nodes keep their names here: each carries its id as one more field, which no rule looks at.
An effect of the engine must also be a move that the stage machine allows, and break no promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.oracles.machine import Act, Flag, Metadata, Mode, Moves, Registered, back, forward
from tests.testing.explorer import effects, kafka
from tests.testing.explorer.cluster import (
    ABSENT,
    FIRST,
    PLAIN,
    B,
    C,
    Cluster,
    Driver,
    G,
    plain_ints,
    standing,
    told,
    with_broker,
    with_common,
    with_controller,
)
from tests.testing.explorer.record import NO_FLAG, Event

SILENT: Final = (
    "a ZooKeeper-mode broker is whole",
    "a broker in migration mode is whole, without a KRaft controller",
    kafka.JOINS_AGAIN,
    "a ZooKeeper-mode broker takes /controller",
    "a broker learns who holds /controller",
    "a client makes a topic; ZooKeeper does not have it yet",
    "dual write catches up",
)
ELECTED: Final = ("a controller with", "a controller WITHOUT")
DRIVER: Final[dict[str, tuple[Driver, tuple[str, ...]]]] = {
    "INACTIVE": (Driver.INACTIVE, ()),
    "WAIT_FOR_CONTROLLER_QUORUM": (Driver.WAITING, ()),
    "WAIT_FOR_BROKERS": (Driver.WAITING, ()),
    "BECOME_CONTROLLER": (
        Driver.BECOME,
        ("the active controller takes /controller", "the new active controller takes /controller over"),
    ),
    "ZK_MIGRATION": (Driver.COPY, ("the copy begins",)),
    "SYNC_KRAFT_TO_ZK": (
        Driver.SYNC,
        ("/migration gets the copy's offset", "the driver skips the copy: /migration says that it was made"),
    ),
    "KRAFT_CONTROLLER_TO_BROKER_COMM": (Driver.TELL, ("ZooKeeper is reconciled with the metadata",)),
    "DUAL_WRITE": (Driver.DUAL_WRITE, ("brokers are told of the KRaft controller; dual write begins",)),
}
# marks, which no engine needs here: told to stop, and it has not ended yet; said nothing more, and may have ended
ENDING, LOST = 1, 2
# by the first words of the step's id: what a written file is for
WRITES: Final = (
    ("prepare/", Act.RENDER),
    ("finalize/", Act.FLAG_OFF),
    ("hybrid/flag-back-", Act.FLAG_ON),
    ("kraft-mode/back-", Act.TO_MIGRATION),
    ("migration-mode/back-", Act.TO_ZOOKEEPER),
    ("migration-mode/", Act.TO_MIGRATION),
    ("kraft-mode/", Act.TO_KRAFT),
)
COUNTED: Final = ("/controller", "/controller_epoch")  # what is done to them follows from counters
BESIDES: Final = (  # nothing that the model holds, which ends as KRaft alone owns the cluster
    *("backup-zookeeper", "backup-file", "make-directory", "release-lock"),
)


class CannotFollow(AssertionError):
    """The trace shows what the model says cannot be."""


@dataclass
class Follower:
    """Where the model may stand, by what was seen so far."""

    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    states: set[Cluster] = field(default_factory=set)
    assigning: set[int] = field(default_factory=set)
    leading: int = -1
    succeeded: set[int] = field(default_factory=set)  # led, and their drivers may not know yet that they do no more
    followed: int = 0

    def __post_init__(self) -> None:
        """In ZooKeeper mode, each node with its id."""
        first = (
            tuple((*PLAIN, node) for node in self.brokers),
            tuple((*ABSENT, node) for node in self.controllers),
            FIRST,
        )
        self.states = {plain_ints(first)}

    def follow(self, events: Iterable[Event]) -> None:
        """All of them; CannotFollow names the first that the model does not have."""
        for number, event in enumerate(events, 1):
            before = self._closed()
            after = {found for state in before for found in self._after(state, event)}
            if not after:
                stands = "\n  ".join(sorted(told(state) for state in before)[:4])
                raise CannotFollow(f"event {number} {event} cannot follow in the model, which stands at\n  {stands}")
            self.states = after
            self.followed = number
            self._remember(event)

    def _remember(self, event: Event) -> None:
        """Whose driver may be late to learn that another one leads."""
        match event:
            case {"event": "elected", "node": int(node)}:
                self.succeeded = (self.succeeded | {self.leading}) - {node}
                self.leading = node
            case {"event": "driver", "after": "INACTIVE", "node": int(node)}:
                self.succeeded.discard(node)

    def _closed(self) -> set[Cluster]:
        """All states that silent moves reach."""
        seen, left = set(self.states), list(self.states)
        while left:
            state = left.pop()
            silent = [after for text, after in kafka.moves(state) if text in SILENT]
            for after in [*silent, *_ended(state, ENDING), *_ended(state, LOST)]:
                if after not in seen:
                    seen.add(after)
                    left.append(after)
        return seen

    def _after(self, state: Cluster, event: Event) -> Iterator[Cluster]:
        match event:
            case {"event": "effect", "what": "begun"}:
                yield state  # killed behind the intent: it may have acted, or not
                yield from self._after(state, {key: value for key, value in event.items() if key != "what"})
            case {"event": "effect", "effect": str(effect)} if effect in BESIDES:
                yield state
            case {"event": "effect", "what": "a disk's"}:
                yield state  # its version is mended (`migrate/steps/rollback`): a disk has none in the model
            case {"event": "effect", "effect": "assign-directories", "node": int(node)}:
                self.assigning.add(node)
                yield state
            case {"event": "effect", "effect": str(effect), "step": str(step)}:
                where = event.get("znode", "")
                if effect == "set-aside" and _aside_already(state, event["node"]):
                    yield state  # its file, beside a quorum that is no more
                    return
                yield from self._effect(state, effect + where, event.get("node", -1), step)
                if where in COUNTED:  # the model takes the worse of two counters, which no trace shows
                    for fields in ((G.EPOCH_LOW,), (G.VERSIONS_LOW,), (G.EPOCH_LOW, G.VERSIONS_LOW)):
                        high = with_common(state, *((name, 0) for name in fields))
                        yield from self._effect(high, effect + where, event.get("node", -1), step)
            case {"event": "elected", "node": int(node)}:
                for before in {state, kafka.resigned(state)}:  # the one that led may learn of it later than the voters
                    yield from _moved(before, ELECTED, lambda after: _leads(after, node))
            case {"event": "state", "state": str(name)}:
                if name == "MIGRATION":
                    yield from _moved(state, ("the copy's transaction is committed",))
                elif state[2][G.META] == Metadata[name]:
                    yield state
            case {"event": "driver", "before": str(before), "after": str(name), "node": int(node)}:
                if node in self.succeeded and name != "INACTIVE":
                    yield state
                yield from _driver(state, node, before, name)
            case {"event": "registered", "node": int(node), "mode": str(mode)}:
                yield from _registered(state, node, mode)
            case {"event": "directories", "node": int(node)}:
                yield from self._directories(state, node)
            case {"event": "outside", "node": int(node), "what": str(what)}:
                yield from _outside(state, node, what)
            case _:
                raise CannotFollow(f"the model knows no such event: {event}")

    # -- the engine ------------------------------------------------------------------------------------------------
    def _effect(self, state: Cluster, effect: str, node: int, step: str) -> Iterator[Cluster]:
        if any(True for _ in _ended(state, ENDING)):
            return  # the engine waits for the end of what it stops before it does anything else
        act = self._act(effect, node, step)
        nodes = state[0] if act.subject == "broker" else state[1] if act.subject == "controller" else ()
        number = next((number for number, entry in enumerate(nodes) if entry[-1] == node), -1)
        seen = standing(state)
        allowed = [move for choice in (forward(seen), back(seen)) if isinstance(choice, Moves) for move in choice.of]
        if any(move.act is act and move.node == number for move in allowed):
            after, breach = effects.act(state, act, number, late=False)
            if not breach:
                yield plain_ints(after)
                if act is Act.STOP:
                    yield with_broker(state, number, (B.MARK, ENDING))
                elif act is Act.STOP_CONTROLLER:
                    yield with_controller(state, number, (C.MARK, ENDING))

    def _act(self, effect: str, node: int, step: str) -> Act:
        broker = node in self.brokers
        match effect:
            case "write-config" | "restore-config":
                return next(act for start, act in WRITES if step.startswith(start))
            case "start":
                return Act.START if broker else Act.START_CONTROLLER
            case "stop":
                return Act.STOP if broker else Act.STOP_CONTROLLER
            case "format":
                return Act.FORMAT
            case "set-aside":
                return Act.SET_ASIDE
            case "set-znode/controller_epoch":
                return Act.RAISE_EPOCH
            case "raise-versions/brokers/topics":
                return Act.RAISE_VERSIONS
            case "delete-znode/controller":
                return Act.DELETE_CONTROLLER
            case "delete-znode/migration":
                return Act.DELETE_MIGRATION
            case _:
                raise CannotFollow(f"the model knows no effect {effect} of step {step}")

    def _directories(self, state: Cluster, node: int) -> Iterator[Cluster]:
        number, entry = _broker(state, node)
        if entry[B.DIRS] == 1:
            yield state  # a new topic's, and the model did not have to make it
        elif node in self.assigning or entry[B.PROCESS] == Mode.KRAFT:
            after, breach = effects.act(state, Act.ASSIGN, number, late=False)
            yield from _moved(state, ("a KRaft broker rep",), lambda found: _broker(found, node)[1][B.DIRS] == 1)
            if node in self.assigning and not breach and _broker(after, node)[1][B.DIRS] == 1:
                yield plain_ints(after)


# -- what the cluster did --------------------------------------------------------------------------------------------
def _moved(
    state: Cluster, texts: tuple[str, ...], where: Callable[[Cluster], bool] = lambda _: True
) -> Iterator[Cluster]:
    """The model's moves with one of these texts that lead where the event says."""
    for text, after in kafka.moves(state):
        if text.startswith(texts) and where(after):
            yield plain_ints(after)


def _ended(state: Cluster, mark: int) -> Iterator[Cluster]:
    """A process with this mark has ended: until then it votes, and what it had begun may still be seen."""
    for number, entry in enumerate(state[0]):
        if entry[B.MARK] == mark:
            yield kafka.without_broker(state, number, (B.MARK, 0))
    for number, entry in enumerate(state[1]):
        if entry[C.MARK] == mark:
            yield kafka.without_controller(state, number, (C.MARK, 0))


def _broker(state: Cluster, node: int) -> tuple[int, tuple[int, ...]]:
    return next((number, entry) for number, entry in enumerate(state[0]) if entry[-1] == node)


def _leads(state: Cluster, node: int) -> bool:
    return any(entry[-1] == node and entry[C.LEADS] for entry in state[1])


def _driver(state: Cluster, node: int, before: str, name: str) -> Iterator[Cluster]:
    if before == "UNINITIALIZED":
        yield state  # a driver is made: whether its controller leads by then depends on two threads
        return
    if name == "INACTIVE":
        # a follower's, or one that led until now and has stepped down
        led = _leads(state, node) and state[2][G.DRIVER] != Driver.INACTIVE
        yield kafka.resigned(state) if led else state
        return
    if not _leads(state, node):
        return
    wanted, texts = DRIVER[name]
    if texts:
        yield from _moved(state, texts, lambda after: after[2][G.DRIVER] == wanted)
    elif state[2][G.DRIVER] == wanted:
        yield state


def _registered(state: Cluster, node: int, mode: str) -> Iterator[Cluster]:
    before = _broker(state, node)[1]
    text = "a broker registers as migrating" if mode == "migrating" else "a broker registers in KRaft mode"
    if before[B.PROCESS] and before[B.REG] == (Registered.MIGRATING if mode == "migrating" else Registered.KRAFT):
        yield state  # a new incarnation of the same kind (ClusterControlManager.registerBroker): one state here
    yield from _moved(state, (text,), lambda after: _broker(after, node)[1] != before)


def _outside(state: Cluster, node: int, what: str) -> Iterator[Cluster]:
    """Another hand stops or starts a process with the current file; or a process says nothing any more."""
    for number, entry in enumerate(state[0]):
        if entry[-1] == node and what == "ends" and entry[B.PROCESS]:
            yield plain_ints(kafka.without_broker(state, number))
        elif entry[-1] == node and what == "is lost":
            yield with_broker(state, number, (B.MARK, LOST)) if entry[B.PROCESS] else state
        elif entry[-1] == node and what == "starts" and not entry[B.PROCESS]:
            crashed = with_broker(state, number, (B.CRASHED, 2))
            yield from _moved(
                crashed, ("a crashed broker is started",), lambda after: bool(_broker(after, node)[1][B.PROCESS])
            )
    for number, entry in enumerate(state[1]):
        if entry[-1] == node and what == "ends" and entry[C.PROCESS]:
            yield plain_ints(kafka.without_controller(state, number))
        elif entry[-1] == node and what == "is lost":
            yield with_controller(state, number, (C.MARK, LOST)) if entry[C.PROCESS] else state
        elif entry[-1] == node and what == NO_FLAG:
            yield with_controller(state, number, (C.FILE, Flag.OFF), (C.PROCESS, Flag.OFF))
        elif entry[-1] == node and what == "starts" and entry[C.FILE] != Flag.GONE and not entry[C.PROCESS]:
            crashed = with_controller(state, number, (C.CRASHED, 1))
            yield from _moved(crashed, ("a crashed controller is started",), lambda after: _runs(after, node))


def _aside_already(state: Cluster, node: int) -> bool:
    return any(entry[-1] == node and not entry[C.FORMATTED] for entry in state[1])


def _runs(state: Cluster, node: int) -> bool:
    return any(entry[-1] == node and entry[C.PROCESS] for entry in state[1])
