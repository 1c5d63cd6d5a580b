"""ZKN: who still uses a ZooKeeper that the cluster does not need any more; asked once the cleanup was proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from migrate.checks.phase import Phase
from migrate.checks.registry import Blind, Hit, Result, check
from migrate.checks.sight import Sight, node_configs
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.ensemble import Ensemble
from migrate.model.outcome import Unknown
from migrate.model.ports import Observer
from migrate.model.words import plural
from migrate.model.world import NOT_ASKED, Need, World

FINALIZED: Final = frozenset({Phase.FINALIZED})
SHOWN: Final = 5  # znodes by name
ITSELF: Final = "ZooKeeper's servers"


class Use(Enum):
    """`UNKNOWN`: nothing was seen of a user, and something could not be seen."""

    USED = "used"
    UNKNOWN = "unknown"
    UNUSED = "unused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ZookeeperUse:
    """What was seen of it: each user, and each thing that could not be seen."""

    users: tuple[Hit, ...]
    unseen: tuple[Blind, ...]
    stopped: bool

    @property
    def use(self) -> Use:
        if self.users:
            return Use.USED
        if self.unseen:
            return Use.UNKNOWN
        return Use.STOPPED if self.stopped else Use.UNUSED


def with_ensemble(observer: Observer, world: World, proven: Mapping[str, str]) -> World:
    """The world with ZooKeeper's servers in it where the cleanup was proven: before that everybody uses them.

    `proven` is what journals prove: facts for people, on which no plan rests.
    """
    if CLEANUP_PROVEN not in proven or not world.inventory.zookeeper:
        return world
    return replace(world, ensemble=observer.observe(frozenset({Need.ENSEMBLE}), proven).ensemble)


def use_of(world: World) -> ZookeeperUse | None:
    """None where nobody asked."""
    found = world.ensemble
    if found is NOT_ASKED:
        return None
    files = node_configs(world)
    users = [
        Hit(f"node {int(node)}: {file.path}", f"it names ZooKeeper: {', '.join(keys)}")
        for node, file in (files.value or {}).items()
        if (keys := sorted(key for key in file.values if key.startswith("zookeeper.")))
    ]
    unseen = [Blind(*missing) for missing in files.missing]
    if isinstance(found, Unknown):
        return ZookeeperUse(tuple(users), (*unseen, Blind(ITSELF, found.reason)), stopped=False)
    for seen in _of_servers(found):
        if isinstance(seen, Hit):
            users.append(seen)
        else:
            unseen.append(seen)
    return ZookeeperUse(tuple(users), tuple(unseen), found.stopped)


def _of_servers(found: Ensemble) -> Iterator[Hit | Blind]:
    for server in found.servers:
        doubts = (part for part in (server.listens, server.clients) if isinstance(part, Unknown))
        if (doubt := next(doubts, None)) is not None:
            yield Blind(f"the clients of {server.address}", doubt.reason)
        elif server.clients:
            yield Hit(f"ZooKeeper's server {server.address}", server.line)
    if found.stopped:
        return
    if isinstance(found.unasked, Unknown):
        yield Blind("ZooKeeper's members", found.unasked.reason)
    else:
        for member in found.unasked:
            yield Blind(member, "it is a member, and no client port of it is known: name it in `zookeeper`")
    if found.strangers == ():
        return
    if isinstance(found.strangers, Unknown):
        yield Blind("what else ZooKeeper stores", found.strangers.reason)
        return
    shown = ", ".join(map(ascii, found.strangers[:SHOWN]))
    more = f" and {len(found.strangers) - SHOWN} more" if len(found.strangers) > SHOWN else ""
    yield Hit("ZooKeeper's tree", f"it holds znodes that are not Kafka's: {shown}{more}")


def _use(world: World) -> Sight[ZookeeperUse]:
    return Sight(use_of(world))


@check(
    "W-ZKN-24",
    "somebody still uses this ZooKeeper",
    "The cluster does not need it any more. Whoever does would fail with its servers, or lose its znodes. It is a "
    "monitor, a partition tool, an old consumer, another application or another Kafka cluster.",
    "Before you stop its servers: find out who it is by the address or the znode, and move it elsewhere.",
    "ZooKeeper's four letter words srvr, cons and conf; /zookeeper/config; the names of its znodes",
).sees(_use, when=FINALIZED)
def users(found: ZookeeperUse, world: World) -> Result:
    """A server that cannot be asked may have any number of clients."""
    yield from found.users
    yield from found.unseen


@check(
    "I-ZKN-25",
    "nobody uses this ZooKeeper any more",
    "No node's file names it, no member has a client, and no znode is another application's: it can be stopped.",
    "A person stops its servers and removes them: docs/after-the-migration.md has the commands.",
    "ZooKeeper's four letter word srvr; the names of its znodes",
).sees(_use, when=FINALIZED)
def unused(found: ZookeeperUse, world: World) -> Result:
    if found.use is Use.UNUSED and not isinstance(world.ensemble, Unknown):
        count = plural(len(world.ensemble.servers), "server")
        yield Hit(ITSELF, f"{count}, no client but this look, no znode of another application")
