"""Frees what a dead directory holds up: sends its true id, elects where that is left, and proves both by the metadata.

What is sent was found in two looks in a row, and is found again before each retry; it is journalled before and after.
Success of a request proves nothing, and neither does a full ISR: a follower with a wrong directory is back in it within
0.3 s.  The proof is the metadata: the directory as sent, the broker neither leader nor in the ISR, and a leader that
every broker names.  Which id a directory had is known from the ledgers in the journals of the cluster's runs: their
cells are of replicas that were looked at on the disk itself, and the newest that names a path is right.
"""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from migrate.errors import AssignmentRefused, DriveStopped, RescueUnproven
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import Clock, DirectoryAssigner, Observer
from migrate.model.rescue import Found, Leaderless, Proofs, RescueKind, Stranded, find, leaderless
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.protocol.messages import Code, error_name
from migrate.run.drive import chunks, raise_refused, retrying, still_wanted
from migrate.run.past_runs import readable

LOG: Final = logging.getLogger("migrate.run")
LOOK: Final = frozenset({Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS})
EFFECT: Final = {"step": "directories/rescue", "node": "", "detail": ""}  # what a journal's effects always have
PROOF_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.5
ELECTED: Final = (Code.NONE, Code.ELECTION_NOT_NEEDED)


class Controller(DirectoryAssigner, Protocol):
    def elect_leaders(self, partitions: Mapping[str, list[int]]) -> Mapping[tuple[str, int], int]:
        """ElectLeaders PREFERRED: topic -> partitions; an error code a partition."""


class Append(Protocol):
    def __call__(self, name: str, data: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was done, and what is left: partitions that no request brings back while their only disk is dead."""

    sent: int
    requests: int
    elected: int
    freed: int
    lost: tuple[Stranded, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Rescuer:
    """Acts on what was found; `still_ours` asks the lock before each request."""

    observer: Observer
    controller: Controller
    clock: Clock
    still_ours: Callable[[], None]
    append: Append
    proofs: Proofs

    def rescue(self, shown: Found) -> Rescued:
        """Send what is proven, elect what can be, and wait for the proof.

        Raises:
            AssignmentRefused: an answer that no retry mends, explained.
            DriveStopped: what is found now is not what was shown, or cannot be seen.
            RescueUnproven: the metadata does not say what it must, within a minute.
        """
        now = self.look()
        rows = tuple(row for row in shown.stranded if row in now.stranded and not isinstance(row.send, Unknown))
        requests = 0
        for broker in sorted({row.broker for row in rows}):
            wanted = replace(shown, stranded=rows).to_send(broker)
            for pending in chunks(wanted):
                self._send(NodeId(broker), pending)
                requests += 1
        if rows:
            self._await("the metadata to free every partition", lambda world: self._held(world, rows))
        elected = self._elect()
        world = self.observer.observe(LOOK, {})
        lost = tuple(row for row in rows if row.kind is RescueKind.DEAD and row.alone)
        offset = -1 if isinstance(world.kraft, Unknown) else world.kraft.offset
        done = Rescued(len(rows), requests, elected, sum(row.hangs for row in rows), lost, offset)
        self.append("rescued", {"sent": done.sent, "elected": elected, "freed": done.freed, "offset": offset})
        return done

    def look(self) -> Found:
        found = find(self.observer.observe(LOOK, {}), self.proofs)
        if isinstance(found, Unknown):
            raise DriveStopped(f"what is stranded cannot be determined: {found.reason}")
        return found

    # -- sending -------------------------------------------------------------------------------------------------
    def _send(self, broker: NodeId, pending: Mapping[str, tuple[tuple[str, int], ...]]) -> None:
        def attempt() -> None:
            world = self.observer.observe(LOOK, {})
            found = find(world, self.proofs)
            if isinstance(found, Unknown):
                raise DriveStopped(f"what is stranded cannot be determined: {found.reason}")
            request = still_wanted(pending, found.to_send(broker))
            if not request:
                return
            assert not isinstance(world.kraft, Unknown)
            self.still_ours()
            epoch = world.kraft.brokers[broker].epoch
            about = {**EFFECT, "effect": "assign-directories", "node": str(int(broker))}
            intent = {
                "broker": int(broker),
                "epoch": epoch,
                "assign": {key: list(rows) for key, rows in request.items()},
            }
            self.append("effect", {**about, **intent})
            self.still_ours()
            answers = self.controller.assign(broker, epoch, request)
            self.append("effected", {**about, "broker": int(broker), "answers": len(answers)})
            raise_refused(broker, answers)

        retrying(f"assignment of broker {int(broker)}", self.clock, attempt)

    def _elect(self) -> int:
        """ElectLeaders PREFERRED where a leader is missing that could be there; how many were asked for."""
        world = self.observer.observe(LOOK, {})
        if isinstance(world.kraft, Unknown):
            raise DriveStopped(f"the metadata cannot be read: {world.kraft.reason}")
        wanted = tuple(leaderless(world.kraft))
        if not wanted:
            return 0

        def attempt() -> None:
            self.still_ours()
            about = {**EFFECT, "effect": "elect-leaders"}
            self.append("effect", {**about, "partitions": [f"{e.topic}-{e.partition}" for e in wanted]})
            self.still_ours()
            answers = self.controller.elect_leaders(by_topic(wanted))
            self.append("effected", {**about, "answers": len(answers)})
            wrong = {key: code for key, code in answers.items() if code not in ELECTED}
            if wrong:
                (topic, partition), code = next(iter(wrong.items()))
                raise AssignmentRefused(f"no leader was elected for {topic}-{partition}: {error_name(code)}")

        retrying("the election", self.clock, attempt)

        def without(later: World) -> str:
            if isinstance(later.kraft, Unknown):
                return "the metadata cannot be read"
            left = set(leaderless(later.kraft)) & set(wanted)
            return f"{plural(len(left), 'partition')} without leader" if left else ""

        self._await("the elected leaders", without)
        return len(wanted)

    # -- proving -------------------------------------------------------------------------------------------------
    def _held(self, world: World, rows: Iterable[Stranded]) -> str:
        """What the metadata, and each broker's answer, still lack; "" for nothing."""
        if isinstance(world.kraft, Unknown) or isinstance(world.live, Unknown):
            return "the cluster cannot be seen"
        table = world.kraft.partitions
        at = {(table.topic_id[index], table.partition[index]): index for index in range(len(table))}
        leaders_missing = {
            (entry.topic, entry.partition): broker
            for broker, answer in world.live.metadata.items()
            if not isinstance(answer, Unknown)
            for entry in answer.unhealthy
            if entry.leader < 0
        }
        for row in rows:
            index = at.get(row.replica)
            if index is None or row.broker not in table.replicas[index]:
                continue  # deleted or moved away in between: nothing hangs
            named = table.directories[index][table.replicas[index].index(row.broker)]
            if named != row.send:
                return f"{row.topic}-{row.partition} has directory {named} for broker {row.broker}, {row.send} was sent"
            if row.kind is not RescueKind.DEAD:
                continue
            if table.leader[index] == row.broker:
                return f"{row.topic}-{row.partition} is still led by broker {row.broker}"
            if row.alone:
                continue
            if row.broker in table.isr[index] and len(table.isr[index]) > 1:
                return f"broker {row.broker} is still in the ISR of {row.topic}-{row.partition}"
            if table.leader[index] >= 0 and (row.topic, row.partition) in leaders_missing:
                broker = leaders_missing[row.topic, row.partition]
                return f"broker {int(broker)} knows no leader of {row.topic}-{row.partition} yet"
        return ""

    def _await(self, what: str, lacking: Callable[[World], str]) -> None:
        began, told = self.clock.monotonic(), ""
        while missing := lacking(self.observer.observe(LOOK, {})):
            if missing != told:
                LOG.info("waiting for %s: %s", what, missing)
                told = missing
            if self.clock.monotonic() - began > PROOF_SECONDS:
                raise RescueUnproven(f"{missing} after {PROOF_SECONDS:.0f} s")
            self.clock.sleep(POLL_SECONDS)


def by_topic(wanted: Iterable[Leaderless]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for entry in wanted:
        found.setdefault(entry.topic, []).append(entry.partition)
    return found


def proofs_of(inventory: Inventory) -> Proofs:
    """(broker, path) -> (directory id, which line of which journal says so)."""
    found: dict[tuple[int, str], tuple[float, str, str]] = {}
    for folder, events in readable(pathlib.Path(inventory.runs)):
        for event in events:
            for cell in event.data.get("cells", ()) if event.name == "ledger" else ():
                key = int(cell["broker"]), str(cell["path"])
                if not key[1] or not cell["directory"] or (key in found and found[key][0] > event.time):
                    continue
                source = f"the ledger in line {event.number + 1} of the journal of run {folder.name}"
                found[key] = event.time, str(cell["directory"]), source
    return {key: (identity, source) for key, (_, identity, source) in found.items()}
