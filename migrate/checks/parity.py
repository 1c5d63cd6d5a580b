"""Parity of the controllers' files with the brokers': the matrix, and what of it is worth a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.checks.config import brought_along
from migrate.checks.forms import meaning
from migrate.checks.registry import Hit, Result, check
from migrate.checks.sight import Configs, both_configs, broker_configs
from migrate.hosts.collect_disks import HIDDEN
from migrate.hosts.properties import for_people
from migrate.model.config_keys import EXACT, TABLE, Fate, Moment, fate, taken
from migrate.model.ids import NodeId
from migrate.model.kafka_values import REFERENCE
from migrate.model.world import World

SHOWN: Final = 48  # characters of a value
JUDGED_ELSEWHERE: Final = frozenset(  # by B-CFG-06, B-SEC-04, B-SEC-10, W-SEC-11
    {
        "inter.broker.listener.name",
        "security.inter.broker.protocol",
        "password.encoder.secret",
        "delegation.token.secret.key",
        "delegation.token.master.key",
        "zookeeper.set.acl",
    }
)
Files = Mapping[NodeId, Mapping[str, str]]


class Cell(StrEnum):
    """A controller's value beside the brokers'."""

    EQUAL = "equal"
    DIFFERS = "differs"
    MISSING = "missing"
    ONLY_HERE = "only here"
    ABSENT = "-"
    BY_REFERENCE = "by reference"  # one text, resolved on each node: whether the values are equal is not known
    HIDDEN = "not seen"  # collected without its value


@dataclass(frozen=True, slots=True)
class Row:
    """One key: the brokers' values, and how each controller's compares."""

    key: str
    rule: Fate
    brokers: str  # the value as it may be shown, or that the brokers differ or lack it
    alike: bool  # do all brokers have it, and one value of it?
    controllers: Mapping[NodeId, Cell]


def matrix(brokers: Files, controllers: Files) -> tuple[Row, ...]:
    """A row for each key that controllers take and that any broker or controller has; the table's order (pure)."""
    of_brokers = dict.fromkeys(key for values in brokers.values() for key in values)
    of_controllers = dict.fromkeys(key for values in controllers.values() for key in values)
    keys = dict.fromkeys((*taken(of_brokers), *taken(of_controllers)))
    extra = [key for key in of_controllers if key not in keys and fate(key, Moment.RENDERED) is Fate.LEFT]
    place, rows = {row.name: at for at, row in enumerate(TABLE)}, []
    for key in (*sorted(keys, key=lambda key: (place.get(key, len(place)), key)), *extra):
        values = [found[key].strip() for found in brokers.values() if key in found]
        alike = len(values) == len(brokers) and all(meaning(key, one) == meaning(key, values[0]) for one in values)
        cells = {node: _cell(key, found.get(key), values) for node, found in controllers.items()}
        rows.append(
            Row(
                key,
                fate(key, Moment.RENDERED),
                _as_shown(key, values[:1] * len(values) if alike else values, len(brokers)),
                alike,
                cells,
            )
        )
    return tuple(rows)


def unset(rows: tuple[Row, ...]) -> int:
    """How many keys of the table stand in no file: Kafka's default holds on every node alike."""
    seen = {row.key for row in rows}
    return sum(row.rendered in (Fate.EQUAL, Fate.KEPT) and row.name in EXACT and row.name not in seen for row in TABLE)


def _cell(key: str, own: str | None, theirs: list[str]) -> Cell:
    if own is None:
        return Cell.MISSING if theirs else Cell.ABSENT
    if not theirs:
        return Cell.ONLY_HERE
    if HIDDEN in (own, *theirs):
        return Cell.HIDDEN
    if any(meaning(key, value) != meaning(key, own.strip()) for value in theirs):
        return Cell.DIFFERS
    return Cell.BY_REFERENCE if REFERENCE in own else Cell.EQUAL


def _as_shown(key: str, values: list[str], count: int) -> str:
    if not values:
        return "-"
    if len(set(values)) > 1:
        return f"{len(set(values))} values on {len(values)} of {count}"
    value = values[0]
    text = for_people(key, value)
    text = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return text if len(values) == count else f"{text} (on {len(values)} of {count})"


def _values(configs: Configs) -> Files:
    return {node: file.values for node, file in configs.items()}


@check(
    "W-CFG-16",
    "a controller decides by another value than the brokers, or than the inventory's properties",
    "From the copy on the controllers decide by their own files: new topics, leaders, tokens and limits would follow "
    "the controller's value, and another one after each change of the active controller.",
    "Make the key equal in every broker's and every controller's file; `plan` shows the whole matrix. What "
    "controllers.properties have since then no run writes: before the controllers' first start move their files away, "
    "and plan again; later write it into each file, and restart the controllers one by one.",
    "ReplicationControlManager; ConfigurationControlManager; seen on 3.9.2",
).sees(both_configs)
def controllers_decide_alike(seen: tuple[Configs, Configs], world: World) -> Result:
    """Keys that must be equal, but for those that a check of their own is about."""
    brokers, controllers = (_values(part) for part in seen)
    paths = {node: file.path for node, file in seen[1].items()}
    for row in matrix(brokers, controllers):
        if row.rule is Fate.EQUAL and row.key not in JUDGED_ELSEWHERE and row.alike:
            for node, cell in row.controllers.items():
                if cell in (Cell.DIFFERS, Cell.MISSING):
                    said = f"{row.key} {'is missing' if cell is Cell.MISSING else 'differs'}, the brokers have"
                    yield Hit(f"controller {node}: {paths[node]}", f"{said} {row.brokers}")
    added = world.inventory.controller_properties
    for node, values in controllers.items():
        for key, value in ({} if added is None else added.values).items():
            own = values.get(key)
            if key != "super.users" and own != HIDDEN and (own is None or meaning(key, own) != meaning(key, value)):
                said = f"{key} is {'missing' if own is None else for_people(key, own)}"
                given = f"the inventory's controllers.properties have {for_people(key, value)}"
                yield Hit(f"controller {node}: {paths[node]}", f"{said}, {given}")


@check(
    "W-CFG-17",
    "the brokers' files differ in what the controllers take from them",
    "The controllers' files are rendered from the first broker's: what holds on that one broker alone would hold for "
    "the whole cluster.",
    "Make the key equal in every broker's file, or set it in the playbook's controllers.overrides where that may be.",
    "-",
).sees(broker_configs)
def brokers_agree(configs: Configs, world: World) -> Result:
    for row in matrix(_values(configs), {}):
        watched = row.key not in JUDGED_ELSEWHERE and (row.rule is Fate.EQUAL or row.key == "super.users")
        hidden = any(file.values.get(row.key) == HIDDEN for file in configs.values())
        if watched and not row.alike and not hidden:
            yield Hit("the brokers' files", f"{row.key}: {row.brokers}", _who(row.key, configs))
    for key in sorted({key for file in configs.values() for key in brought_along(file.values)}):
        values = [file.values.get(key, "") for file in configs.values()]
        if len(set(values)) > 1 and HIDDEN not in values:
            shown = _as_shown(key, [value for value in values if value], len(values))
            yield Hit("the brokers' files", f"{key}: {shown}", _who(key, configs))


def _who(key: str, configs: Configs) -> str:
    """Which brokers have which value; of a secret only who has it."""
    groups: dict[str, list[int]] = {}
    for node, file in configs.items():
        groups.setdefault(file.values.get(key, "").strip(), []).append(int(node))
    told = ((for_people(key, value), on) for value, on in groups.items())
    return "; ".join(f"{value or 'none'}: {on}" for value, on in told)


def table_rows(rows: tuple[Row, ...]) -> Iterator[Mapping[str, str]]:
    """The matrix as rows of text, a column for each controller."""
    for row in rows:
        cells = {f"controller {int(node)}": str(cell) for node, cell in row.controllers.items()}
        yield {"key": row.key, "must be": "equal" if row.rule is Fate.EQUAL else "any", "brokers": row.brokers, **cells}
