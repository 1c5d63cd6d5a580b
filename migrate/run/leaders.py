"""Gives partitions back to their preferred leaders: found, sent in batches, proven by the store before the next batch.

What is asked for was seen to be away in the look right before, so a run that was killed asks only for what is left.
An answer proves nothing: the next look does.  Between two batches every ISR is full, the quorum is whole, and the
clients' error budget is not spent.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from migrate.errors import LeadersNotRestored, Retryable
from migrate.model import preferred
from migrate.model.outcome import Readiness, Ready, Unknown
from migrate.model.ports import Clock, Observer
from migrate.model.preferred import Away, Leaders, by_topic
from migrate.model.views import ControllerZnode
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.protocol.messages import Code, error_name
from migrate.steps import gates

LOG: Final = logging.getLogger("migrate.run")
IN_QUORUM: Final = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS})
IN_ZOOKEEPER: Final = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS})
STILL_SECONDS: Final = 60.0  # without any progress
POLL_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 2.0  # behind a request that was lost or not accepted
DECIDED_BY_THE_NEXT_LOOK: Final = (
    Code.NONE,
    Code.ELECTION_NOT_NEEDED,
    Code.UNKNOWN_TOPIC_OR_PARTITION,  # deleted in between
    Code.PREFERRED_LEADER_NOT_AVAILABLE,  # left the ISR in between
    Code.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    Code.NOT_CONTROLLER,
    Code.REQUEST_TIMED_OUT,  # ZooKeeper's controller waits until the leader has moved, and says so if that took long
)

Answers = Mapping[tuple[str, int], int]


class Elector(Protocol):
    """ElectLeaders PREFERRED: topic -> partitions; an error code a partition."""

    def by_quorum(self, partitions: Mapping[str, Sequence[int]]) -> Answers: ...

    def by_broker(self, broker: int, partitions: Mapping[str, Sequence[int]]) -> Answers:
        """Asked of that broker, which is ZooKeeper's controller."""


@dataclass(frozen=True, slots=True)
class LeaderRestorer:
    """`restore` is the effect.

    `still_ours` is asked before each request, `clients` whether their error budget holds; `tell` is told of each
    request before it is sent, `reached` of each that was answered.
    """

    observer: Observer
    elector: Elector
    clock: Clock
    still_ours: Callable[[], None]
    clients: Callable[[], Readiness] = Ready
    reached: Callable[[str], None] = lambda _: None
    tell: Callable[[str], None] = LOG.info

    def restore(self, most: int, *, zookeeper: bool) -> str:
        """Ask until no partition is left that an election gives back; answers what was asked for.

        Raises:
            LeadersNotRestored: nothing moved for a minute, an answer that no repetition mends, or nobody can be seen.
            AccessRefused: ALTER on Cluster is missing.
        """
        asked: set[str] = set()
        still, requests, seen = self.clock.monotonic(), 0, None
        while True:
            world, leaders, holds = self._look(zookeeper=zookeeper)
            wanted = leaders.electable if isinstance(leaders, Leaders) else ()
            if isinstance(leaders, Leaders) and not wanted:
                return f"{plural(len(asked), 'partition')} in {plural(requests, 'request')}; {leaders.told}"
            now = (len(wanted), str(holds))
            if now != seen:
                seen, still = now, self.clock.monotonic()
            elif self.clock.monotonic() - still > STILL_SECONDS:
                raise LeadersNotRestored(f"nothing moved for {STILL_SECONDS:.0f} s: {_what(leaders, holds)}")
            if isinstance(holds, Ready):
                batch = wanted[:most]
                requests += 1
                self.tell(
                    f"request {requests}: {plural(len(batch), 'partition')} of {len(wanted)}, {batch[0].name} first"
                )
                accepted = self._ask(world, batch, zookeeper=zookeeper)
                asked.update(entry.name for entry in batch)
                self.reached(f"elected:{requests}")
                self._settle(batch, seconds=STILL_SECONDS if accepted else AGAIN_SECONDS, zookeeper=zookeeper)
            else:
                LOG.info("leaders are not moved while %s", _what(leaders, holds))
                self.clock.sleep(POLL_SECONDS)

    def _look(self, *, zookeeper: bool) -> tuple[World, Leaders | Unknown, Readiness]:
        world = self.observer.observe(IN_ZOOKEEPER if zookeeper else IN_QUORUM, {})
        leaders = _leaders(world, zookeeper=zookeeper)
        quorum = Ready() if zookeeper else gates.quorum_healthy(world)
        unseen = leaders if isinstance(leaders, Unknown) else Ready()
        return world, leaders, gates.first(unseen, quorum, gates.replicas_full(world), self.clients())

    def _ask(self, world: World, batch: Iterable[Away], *, zookeeper: bool) -> bool:
        """One request; was all of it accepted?  Else it is repeated as far as the next looks find it undone."""
        self.still_ours()
        partitions = by_topic(batch)
        try:
            if zookeeper:
                answers = self.elector.by_broker(_controller(world), partitions)
            else:
                answers = self.elector.by_quorum(partitions)
        except Retryable as error:
            LOG.info("the election is looked at again: %s", error)
            return False
        wrong = {key: code for key, code in answers.items() if code not in DECIDED_BY_THE_NEXT_LOOK}
        if wrong:
            (topic, partition), code = next(iter(wrong.items()))
            raise LeadersNotRestored(f"no leader was elected for {topic}-{partition}: {error_name(code)}")
        return all(code in (Code.NONE, Code.ELECTION_NOT_NEEDED) for code in answers.values())

    def _settle(self, batch: Iterable[Away], *, seconds: float, zookeeper: bool) -> None:
        """Wait until the store names the leaders that were asked for; the outer loop ends what does not come."""
        names, began, left = {entry.name for entry in batch}, self.clock.monotonic(), -1
        while self.clock.monotonic() - began <= seconds:
            world = self.observer.observe(IN_ZOOKEEPER if zookeeper else IN_QUORUM, {})
            found = _leaders(world, zookeeper=zookeeper)
            if not isinstance(found, Unknown):
                now = sum(entry.name in names for entry in found.electable)
                if now == 0:
                    return
                if now != left:
                    left, began = now, self.clock.monotonic()
            self.clock.sleep(POLL_SECONDS)


def _leaders(world: World, *, zookeeper: bool) -> Leaders | Unknown:
    if zookeeper:
        return world.zookeeper if isinstance(world.zookeeper, Unknown) else preferred.of_zookeeper(world.zookeeper)
    return world.kraft if isinstance(world.kraft, Unknown) else preferred.of_kraft(world.kraft)


def _controller(world: World) -> int:
    """The broker that owns /controller; NotController (by another's answer) is for the next look to mend."""
    assert not isinstance(world.zookeeper, Unknown)
    owner = world.zookeeper.controller
    if not isinstance(owner, ControllerZnode) or not owner.ephemeral:
        raise LeadersNotRestored(f"no broker owns /controller ({owner}), so no election can be requested")
    return int(owner.id)


def _what(leaders: Leaders | Unknown, holds: Readiness) -> str:
    if not isinstance(holds, Ready):
        return str(getattr(holds, "what", getattr(holds, "reason", holds)))
    if isinstance(leaders, Unknown):
        return leaders.reason
    brokers = Counter(entry.preferred for entry in leaders.electable)
    each = ", ".join(f"{number} of broker {broker}" for broker, number in sorted(brokers.items()))
    return f"{plural(len(leaders.electable), 'partition')} are led by another replica than their first ({each})"
