"""Which bytes a broker's file goes back to: those of a copy that was kept, proven to be the one (pure).

A copy is the one only if the forward steps make of it exactly the file that lies there now: then nobody changed the
file since, and nothing of the copy is guessed.  That is told by the files alone, so a lost journal takes nothing away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from migrate.errors import InputError, RestoreRefused
from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import Readiness, Ready, Refused, Unknown
from migrate.model.views import HostFile
from migrate.model.world import World
from migrate.steps import configuration, facts

SHOWN = 8  # keys in a message


@dataclass(frozen=True, slots=True)
class Restored:
    """The bytes to write, and where they come from."""

    raw: bytes = field(repr=False)
    source: str


def to_zookeeper(world: World, broker: int, raw: bytes) -> Restored | Refused | Unknown:
    """The file of before the migration: a copy in ZooKeeper mode that leads to `raw`."""
    if facts.mode_of(parse(raw)) == "zookeeper":
        return Restored(raw, "the file as it lies there")
    copies = _copies(world, broker, "zookeeper")
    if isinstance(copies, Unknown):
        return copies
    node = _node(world, broker)
    leading = [copy for copy in copies if raw in _forward(world, node, copy.raw)]
    return _only(leading) or _why_none(world, node, raw, copies)


def to_migration(world: World, broker: int, raw: bytes) -> Restored | Refused | Unknown:
    """The file of migration mode: the copy made before the second roll, else what the first roll makes of the original.

    Either way the original must be there and lead to it: the next step goes back to that one.
    """
    if facts.mode_of(parse(raw)) == "migration":
        return Restored(raw, "the file as it lies there")
    copies = _copies(world, broker, "migration")
    if isinstance(copies, Unknown):
        return copies
    original = to_zookeeper(world, broker, raw)
    if not isinstance(original, Restored):
        return original
    wanted = configuration.migration_mode(original.raw, world.inventory)
    kept = [copy for copy in copies if copy.raw == wanted]
    return _only(kept) or Restored(wanted, f"{original.source}, with what migration mode adds")


def to_flagged(world: World, controller: int, raw: bytes) -> Restored | Refused | Unknown:
    """A controller's file with the flag: the copy of which finalize makes `raw`."""
    if facts.mode_of(parse(raw)) == "controller":
        return Restored(raw, "the file as it lies there")
    copies = _copies(world, controller, "controller")
    if isinstance(copies, Unknown):
        return copies
    leading = [copy for copy in copies if _tried(partial(configuration.finalized_controller, copy.raw)) == raw]
    return _only(leading) or Refused(f"no copy of controller {controller}'s file with the flag leads to the one there")


def restorable(found: Restored | Refused | Unknown) -> Readiness:
    """As a gate."""
    return Ready() if isinstance(found, Restored) else found


def bytes_of(found: Restored | Refused | Unknown, broker: int) -> bytes:
    """The bytes; RestoreRefused where there are none."""
    if isinstance(found, Restored):
        return found.raw
    raise RestoreRefused(found.reason, where=f"broker {broker}")


def _node(world: World, broker: int) -> BrokerNode:
    return next(node for node in world.inventory.brokers if node.id == broker)


def _copies(world: World, broker: int, mode: str) -> list[HostFile] | Unknown:
    """The copies of a broker's file in that mode, each content once."""
    kept = world.backups
    if not isinstance(kept, Unknown):
        found = kept.get(NodeId(broker), Unknown(f"the copies of broker {broker} were not looked at"))
        if not isinstance(found, Unknown):
            by_content = {copy.sha256: copy for copy in reversed(found.configs) if _mode(copy.raw) == mode}
            return sorted(by_content.values(), key=lambda copy: copy.path)
        return found
    return kept


def _mode(raw: bytes) -> str:
    """A damaged copy has no mode, and is none that anybody would go back to."""
    try:
        return facts.mode_of(parse(raw))
    except InputError:
        return "unreadable"


def _forward(world: World, node: BrokerNode, original: bytes) -> tuple[bytes, ...]:
    """What the two rolls make of it."""
    rolled = _tried(lambda: configuration.migration_mode(original, world.inventory))
    if rolled is None:
        return ()
    kraft = _tried(lambda: configuration.kraft_mode(rolled, world.inventory, node))
    return (rolled,) if kraft is None else (rolled, kraft)


def _tried(edit: Callable[[], bytes]) -> bytes | None:
    try:
        return edit()
    except InputError:
        return None


def _only(copies: list[HostFile]) -> Restored | Refused | None:
    """The one copy; Refused where several lead to the same file, None where none does."""
    if not copies:
        return None
    if len(copies) > 1:
        paths = ", ".join(copy.path for copy in copies)
        return Refused(f"{paths} all lead to the file that lies there: move away those that are not the original")
    return Restored(copies[0].raw, f"the copy {copies[0].path} (SHA-256 {copies[0].sha256[:12]})")


def _why_none(world: World, node: BrokerNode, raw: bytes, copies: list[HostFile]) -> Refused:
    """No copy at all, or copies that lead to another file: then which keys differ, never with which values."""
    if not copies:
        return Refused(f"no copy of {node.config} of before the migration lies beside it")
    there, keys = parse(raw), set[str]()
    for copy in copies:
        for made in _forward(world, node, copy.raw):
            if facts.mode_of(parse(made)) != facts.mode_of(there):
                continue
            values = parse(made)
            keys |= {key for key in values.keys() | there.keys() if values.get(key) != there.get(key)}
    named = ", ".join(sorted(keys)[:SHOWN]) + (" and more" if len(keys) > SHOWN else "")
    differs = f"it differs in {named}" if keys else "it differs in comments or order"
    return Refused(
        f"{node.config} is not what was made of {', '.join(copy.path for copy in copies)}: {differs}; another hand "
        "changed it, or the inventory did. Put it back, or make the same change in the copy"
    )
