"""Which bytes a broker's file goes back to: those of a kept copy, or the file with the migration's own keys put back.

A copy is the one to go back to if the forward steps make of it, byte for byte, the file as it is: it is restored whole.
A file that was edited since goes back key by key: the keys that the migration set or removed get the copy's values,
and everything else stays as the file has it.  That is done only where each of those keys still has the value that the
migration gives it, or the copy's: a third value is refused by name.  Both are told by the files alone, so a lost
journal takes nothing away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from migrate.checks.forms import meaning
from migrate.checks.principals import AUTHORIZER, successor
from migrate.errors import InputError, RestoreRefused
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.properties import diff, parse, restore_keys
from migrate.model.broker_modes import FLAG, ControllerMode, Mode, node_mode
from migrate.model.config_keys import BOOTSTRAP, IBP, VOTERS
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.kafka_values import trim
from migrate.model.outcome import Refused, Unknown
from migrate.model.views import ConfigFile, HostFile
from migrate.model.world import World
from migrate.steps import configuration

SHOWN: Final = 8  # keys in a message
# they mean nothing outside of the mode that the migration set them for, so the copy's word holds whatever they are now:
# the inventory may give other controllers today than it did on the way forward
NAMES: Final = "controller.listener.names"
SPENT: Final = frozenset({FLAG, "process.roles", VOTERS, BOOTSTRAP, NAMES})


@dataclass(frozen=True, slots=True)
class Restored:
    """The bytes to write, and where they come from.

    `kept` has the lines that were edited since the migration wrote the file, as a unified diff without secrets, and
    `edited` names the keys among them: all of it stays.  Empty where a copy is restored to the byte.
    """

    raw: bytes = field(repr=False)
    source: str
    edited: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        if not self.kept:
            return ""
        return f"edited since the migration wrote it, and kept: {_named(self.edited) or 'comments or order alone'}"


@dataclass(frozen=True, slots=True)
class Written:
    copy: HostFile
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)

    @property
    def owned(self) -> tuple[str, ...]:
        before, after = parse(self.before), parse(self.after)
        return tuple(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))

    def third(self, raw: bytes) -> tuple[str, ...]:
        before, after, now = parse(self.before), parse(self.after), parse(raw)
        return tuple(
            key
            for key in dict.fromkeys((*self.owned, AUTHORIZER))  # never the class of another mode
            if not any(_same(key, now.get(key), kept.get(key)) for kept in (before, after))
            and not (key in SPENT and key not in before)
        )

    def edited(self, raw: bytes) -> tuple[str, ...]:
        after, now = parse(self.after), parse(raw)
        return tuple(sorted(key for key in after.keys() | now.keys() if after.get(key) != now.get(key)))


def _same(key: str, one: str | None, other: str | None) -> bool:
    """Is it the same value to Kafka?  A person writes it with other blanks, or in another case."""
    return one == other or (one is not None and other is not None and meaning(key, one) == meaning(key, other))


def to_the_end(world: World, broker: int, raw: bytes, *, from_kraft: bool) -> Restored | Refused | Unknown:
    """The file of ZooKeeper mode, where each file on the way to it is proven: a KRaft broker's is of migration mode."""
    found = to_migration(world, broker, raw) if from_kraft else None
    return found if isinstance(found, Refused | Unknown) else to_zookeeper(world, broker, raw)


def to_zookeeper(world: World, broker: int, raw: bytes) -> Restored | Refused | Unknown:
    """The file of ZooKeeper mode: the copy that leads to `raw`, else `raw` with the migration's keys put back."""
    node = next(node for node in world.inventory.brokers if node.id == broker)
    if node_mode(parse(raw)) is Mode.ZOOKEEPER:
        wrong = [f"{NAMES} is set"] if trim(parse(raw).get(NAMES, "")) else []
        wrong += [] if parse(raw).get("zookeeper.connect") else ["zookeeper.connect is missing"]
        if not wrong:
            return Restored(raw, "the file as it is")
        return Refused(
            f"{node.config} has neither {FLAG} nor process.roles, so that it is of ZooKeeper mode, but "
            f"{', '.join(wrong)}: Kafka does not start with it. Put the whole file from before back, or what was taken "
            "out of it; then plan the rollback again"
        )
    copies = _originals(world, broker)
    if isinstance(copies, Unknown):
        return copies
    if not copies:
        file = world.configs.get(node.id) if not isinstance(world.configs, Unknown) else None
        beside = (file.target if isinstance(file, ConfigFile) else "") or node.config
        return Refused(
            f"no copy of {node.config} from before the migration is next to it: a file is never generated. Put the "
            "file "
            f"of ZooKeeper mode from your own backup to {beside}{BACKUP_SUFFIX}, then plan the rollback again"
        )
    leading = [copy for copy in copies if raw in _forward(world, node, copy.raw)]
    writes = [
        Written(copy, copy.raw, made)
        for copy in copies
        for made in _forward(world, node, copy.raw)
        if node_mode(parse(made)) is node_mode(parse(raw))
    ]
    return _only(leading) or _by_keys(node, raw, writes, Mode.ZOOKEEPER)


def to_migration(world: World, broker: int, raw: bytes) -> Restored | Refused | Unknown:
    """The file of migration mode: the copy made before the second roll, else what the first roll makes of the original.

    Either way the original must be there and lead to it: the next step goes back to that one.
    """
    if node_mode(parse(raw)) is Mode.MIGRATION:
        return Restored(raw, "the file as it is")
    copies = _copies(world, broker, Mode.MIGRATION)
    if isinstance(copies, Unknown):
        return copies
    original = to_zookeeper(world, broker, raw)
    if not isinstance(original, Restored):
        return original
    if not original.kept:
        wanted = configuration.migration_mode(original.raw, world.inventory)
        kept = [copy for copy in copies if copy.raw == wanted]
        return _only(kept) or Restored(wanted, f"{original.source}, with what migration mode adds")
    node = next(node for node in world.inventory.brokers if node.id == broker)
    originals = _originals(world, broker)
    rolls = [] if isinstance(originals, Unknown) else [(copy, _forward(world, node, copy.raw)) for copy in originals]
    writes = [Written(copy, made[0], made[1]) for copy, made in rolls if len(made) > 1]
    found = _by_keys(node, raw, writes, Mode.MIGRATION)
    if not isinstance(found, Restored):
        return found
    after = to_zookeeper(world, broker, found.raw)
    return found if isinstance(after, Restored) else after


def to_protocol(world: World, broker: int, raw: bytes) -> Restored | Refused | Unknown:
    """The file from before its protocol version was raised; the file as it is, where it has such a version."""
    if configuration.with_protocol(raw) != raw:
        return Restored(raw, "the file as it is")
    copies = _copies(world, broker, Mode.ZOOKEEPER)
    if isinstance(copies, Unknown):
        return copies
    node = next(node for node in world.inventory.brokers if node.id == broker)
    writes = [Written(copy, copy.raw, made) for copy in copies if (made := _raised(copy)) is not None]
    if not writes and any(copy.raw == raw for copy in copies):
        return Restored(raw, "the file as it is, and as it was")
    if not writes:
        return Refused(f"no copy of {node.config} with an earlier {IBP} is next to it")
    leading = [write.copy for write in writes if write.after == raw]
    return _only(leading) or _by_keys(node, raw, writes, Mode.ZOOKEEPER)


def _raised(copy: HostFile) -> bytes | None:
    """What the raise of the protocol version makes of a copy; None of one that it leaves as it is."""
    made = _tried(partial(configuration.with_protocol, copy.raw))
    return None if made == copy.raw else made


def _originals(world: World, broker: int) -> list[HostFile] | Unknown:
    """Copies with which a migration can have begun: none has an earlier protocol version (B-VER-02)."""
    copies = _copies(world, broker, Mode.ZOOKEEPER)
    return copies if isinstance(copies, Unknown) else [copy for copy in copies if _raised(copy) is None]


def to_flagged(world: World, controller: int, raw: bytes) -> Restored | Refused | Unknown:
    """A controller's file with the flag: the copy of which finalize makes `raw`.

    To the byte alone: its last process is proven to have had the flag by the hash of the file that it was started with.
    """
    if node_mode(parse(raw)) is ControllerMode.FLAGGED:
        return Restored(raw, "the file as it is")
    copies = _copies(world, controller, ControllerMode.FLAGGED)
    if isinstance(copies, Unknown):
        return copies
    leading = [copy for copy in copies if _tried(partial(configuration.finalized_controller, copy.raw)) == raw]
    return _only(leading) or Refused(f"no copy of controller {controller}'s file with the flag leads to the one there")


def bytes_of(found: Restored | Refused | Unknown, broker: int) -> bytes:
    if isinstance(found, Restored):
        return found.raw
    raise RestoreRefused(found.reason, where=f"broker {broker}")


def _copies(world: World, broker: int, mode: Mode | ControllerMode) -> list[HostFile] | Unknown:
    if isinstance(world.backups, Unknown):
        return world.backups
    found = world.backups.get(NodeId(broker), Unknown(f"the copies of broker {broker} were not looked at"))
    if isinstance(found, Unknown):
        return found
    by_content = {copy.sha256: copy for copy in reversed(found.configs) if _mode(copy.raw) is mode}
    return sorted(by_content.values(), key=lambda copy: copy.path)


def _mode(raw: bytes) -> Mode | ControllerMode | None:
    """A damaged copy has no mode, and is none that anybody would go back to."""
    try:
        return node_mode(parse(raw))
    except InputError:
        return None


def _forward(world: World, node: BrokerNode, original: bytes) -> tuple[bytes, ...]:
    rolled = _tried(lambda: configuration.migration_mode(original, world.inventory))
    if rolled is None:
        return ()
    kraft = _tried(lambda: configuration.kraft_mode(rolled, world.inventory, node, successor(world)))
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
        return Refused(f"{paths} all lead to the current file: move away those that are not the original")
    return Restored(copies[0].raw, _told(copies[0]))


def _told(copy: HostFile) -> str:
    return f"the copy {copy.path} (SHA-256 {copy.sha256[:12]})"


# -- key by key ----------------------------------------------------------------------------------------------------
def _by_keys(node: BrokerNode, raw: bytes, writes: list[Written], mode: Mode) -> Restored | Refused:
    """The file with the migration's keys put back, where a copy proves their values and no other one contradicts."""
    proven = sorted((write for write in writes if not write.third(raw)), key=lambda write: len(write.edited(raw)))
    if not proven:
        return _unproven(node, raw, writes)
    try:
        made, *others = [restore_keys(raw, write.before, write.owned, node.config) for write in proven]
    except InputError as error:
        return Refused(f"{node.config} was edited since, and cannot be put back key by key: {error}")
    if any(parse(other) != parse(made) for other in others):
        paths = ", ".join(write.copy.path for write in proven)
        return Refused(f"{paths} all lead to the current file: move away those that are not the original")
    closest, *_ = proven
    if node_mode(parse(made)) is not mode:
        return Refused(f"{node.config} is no file of {mode} mode with the keys of {closest.copy.path}")
    kept = tuple(diff(closest.after, raw, node.config, ("as the migration wrote it", "now")))
    source = f"{_told(closest.copy)}, key by key: {_named(closest.owned)}"
    return Restored(made, source, closest.edited(raw), kept or ("",))


def _unproven(node: BrokerNode, raw: bytes, writes: list[Written]) -> Refused:
    if not writes:
        return Refused(f"no copy of {node.config} can be rolled forward to the mode that it has now")
    write = min(writes, key=lambda one: len(one.third(raw)))
    return Refused(
        f"{node.config} was edited since the migration wrote it from {write.copy.path}, and {_named(write.third(raw))} "
        "has neither the value from before nor the one that the migration writes: which one ZooKeeper mode is to have "
        "is unknown. Set each to one of the two in the file, or make the same change in the copy; if the inventory was "
        "changed since, put it back. Then plan the rollback again"
    )


def _named(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:SHOWN]) + (f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")
