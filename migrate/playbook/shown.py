"""A playbook as it is understood: every value with where it comes from, a line of the file or a default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Final

from migrate.model.inventory import Inventory, Playbook
from migrate.model.stage import Stage
from migrate.model.windows import label
from migrate.model.written import keys_of
from migrate.playbook.document import Document, Location, read_document
from migrate.playbook.fields import Section, dotted, validate
from migrate.playbook.load import KINDS, kind_of, load_playbook
from migrate.playbook.schema import STAGE_KEYS, StageSection

DEFAULT: Final = "default"
UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


@dataclass(frozen=True, slots=True)
class Shown:
    """One value: its key (dotted), its text, and `line 12` or `default` or what it follows from."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPlaybook(Playbook):
    """What `playbook show` answers of a playbook: its fields, and the text and origin of every value."""

    kind: str
    values: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownInventory(Inventory):
    """What `playbook show` answers of an inventory: its fields; `values` is empty."""

    kind: str
    values: tuple[Shown, ...]


ShowAnswer = ShownPlaybook | ShownInventory


def shown(path: str | Path) -> list[Shown]:
    """Every value of a playbook, in the order of the schema; raises as load_playbook does."""
    document = read_document(Path(path))
    schema = KINDS[kind_of(path)]
    found = list(_section(validate(document, schema, str), document, ()))
    playbook = load_playbook(path)
    found.append(Shown("inventory", playbook.inventory, "beside the playbook"))
    one_roll = playbook.of_directories or playbook.of_protocol
    found += _of_roll(playbook) if one_roll else _followed(playbook)
    rollback = playbook.windows.get(playbook.rollback_window)
    window = label(rollback) if rollback else "at any time"
    return [*found, Shown("rollback: window", window, "rollback.window; none unless it is named")]


def _of_roll(playbook: Playbook) -> Iterator[Shown]:
    for broker, paths in playbook.new_directories.items():
        yield Shown(f"broker {int(broker)}: new directories", ", ".join(paths), "its own list, else `add`")
    window = playbook.window_of(playbook.stages[0])
    origin = "no window binds it" if window is None else "window, else windows.default"
    yield Shown("window", "at any time" if window is None else f"{window.name}: {label(window)}", origin)


def _section(section: Section, document: Document, at: Location) -> Iterator[Shown]:
    for name, info in type(section).model_fields.items():
        key = info.alias or name
        if isinstance(section, StageSection) and STAGE_KEYS.get(key, section.stage) is not section.stage:
            continue  # this stage takes no such key
        yield from _value(getattr(section, name), document, (*at, key))


def _value(value: Any, document: Document, at: Location) -> Iterator[Shown]:
    if isinstance(value, Section):
        yield from _section(value, document, at)
    elif is_dataclass(value):
        for key in keys_of(type(value)):
            yield from _value(getattr(value, key), document, (*at, key))
    elif isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _value(entry, document, (*at, key))
    elif isinstance(value, list) and value and isinstance(value[0], Section):
        for index, entry in enumerate(value):
            yield from _value(entry, document, (*at, index))
    else:
        place = document.places.get(at)
        yield Shown(dotted(at), _text(value), DEFAULT if place is None else f"line {place[0]}")


def _text(value: Any) -> str:
    """The value as the file would write it; `-` for nothing."""
    match value:
        case None | [] | dict():
            return "-"
        case bool():
            return "true" if value else "false"
        case float():
            return seconds_text(value)
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def seconds_text(value: float) -> str:
    """Seconds as a playbook writes them: `7d`, `90s`."""
    for size, unit in UNITS:
        if value and value % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}s"


def _followed(playbook: Playbook) -> Iterator[Shown]:
    """What follows from several keys: the window of each stage, waits of stages."""
    for stage in playbook.stages:
        window = playbook.window_of(stage)
        if window is not None:
            own = stage in playbook.stage_windows
            origin = "named by the stage" if own else "windows.default binds every stage that acts"
            yield Shown(f"stage {stage.label}: window", f"{window.name}: {label(window)}", origin)
        else:
            yield Shown(f"stage {stage.label}: window", "at any time", "no window binds it")
    if Stage.SOAK in playbook.stages:
        yield Shown("stage soak: duration", seconds_text(playbook.soak_seconds), "the stage's duration, else 7d")
    waits = [("a wait ends after", playbook.no_progress_seconds, "policy's no_progress_timeout")]
    for stage, seconds in playbook.stage_patience.items():
        waits.append((f"stage {stage.label}: a wait ends after", seconds, "the stage's no_progress_timeout"))
    yield from (Shown(key, f"{seconds_text(seconds)} without progress", origin) for key, seconds, origin in waits)
