"""One reader for JSON that somebody handed over: files of ours that lay elsewhere, and answers of hosts.

Python's own reader takes `Infinity`, numbers of any length, a key twice, lone surrogates, and nesting until the stack
ends.  This one takes what `json.dumps` of ours writes, and refuses everything else by one error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

DEPTH: Final = 100
DIGITS: Final = 20  # a whole number of 64 bits, with its sign
LARGEST: Final = 2.0**64
ROOM: Final = 160_000_000  # bytes that a text's values may take, by what each of these makes
TAKES: Final = {"{": 184, "[": 72, ",": 48, '"': 24}
LONG: Final = "0" * DIGITS  # by `_DIGITS`: with a sign, or one digit more, a number that is too long
WIDE: Final = 8 * 2**20  # bytes: a larger text is one of ours, which is ASCII; another takes four times its size

_DIGITS: Final = dict.fromkeys(map(ord, "123456789"), "0")
_APART: Final = re.compile(r'"[ \t\n\r]+:')
_CONTAINERS: Final = (dict, list)


@dataclass(frozen=True, slots=True)
class Each:
    """The kind of an object with any keys: each value is of that kind."""

    kind: Any


class NotStrictJson(ValueError):
    """The text is no JSON that can be trusted; the message says why."""


def loads(raw: bytes | str, *, room: int = ROOM, surrogates: bool = False) -> Any:
    """The value in a JSON text.  Raises NotStrictJson, a ValueError, for every doubt.

    `room` is how many bytes its values may take in memory, by what they are made of.  With `surrogates` lone ones are
    taken: paths of hosts have them where a name is no UTF-8.
    """
    try:
        _within(raw, room)
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value = _parsed(text)
        if not surrogates and ("\\u" in text or not text.isascii()):
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # lone surrogates
    except NotStrictJson:
        raise
    except RecursionError as error:
        raise NotStrictJson("it is nested too deep") from error
    except ValueError as error:
        raise NotStrictJson(f"it is no JSON: {error}") from error
    return value


def mapping(
    raw: bytes | str, kind: Mapping[str, Any] | None = None, *, room: int = ROOM, surrogates: bool = False
) -> dict[str, Any]:
    """The object in a JSON text, of that kind (`unlike`); NotStrictJson, also for another kind of value."""
    value = loads(raw, room=room, surrogates=surrogates)
    if not isinstance(value, dict):
        raise NotStrictJson(f"an object is expected, not {type(value).__name__}")
    if kind is not None and (problem := unlike(value, dict(kind))):
        raise NotStrictJson(problem)
    return value


def unlike(value: Any, kind: Any, where: str = "it") -> str:
    """Why a value is not of that kind; "" where it is.

    A kind is a type (float takes whole numbers, too), a list of one kind, a tuple with a kind for each member of a
    list, `Each`, or an object: its keys, a `?` behind those that may be missing, and the kind of each.  Other keys are
    not judged.
    """
    match kind:
        case dict():
            if not isinstance(value, Mapping):
                return f"{where} is no object"
            wanted = {name.removesuffix("?"): (name[-1] == "?", inner) for name, inner in kind.items()}
            absent = [name for name, (may, _) in wanted.items() if not may and name not in value]
            if absent:
                return f"{where} lacks {absent[0]}"
            found = ((value[name], inner, f"{where}.{name}") for name, (_, inner) in wanted.items() if name in value)
        case Each(kind=inner):
            if not isinstance(value, Mapping):
                return f"{where} is no object"
            found = ((entry, inner, where) for entry in value.values())
        case tuple():
            if not isinstance(value, list) or len(value) != len(kind):
                return f"{where} is no list of {len(kind)}"
            found = ((entry, inner, where) for entry, inner in zip(value, kind, strict=True))
        case [inner]:
            if not isinstance(value, list):
                return f"{where} is no list"
            found = ((entry, inner, where) for entry in value)
        case _:
            right = isinstance(value, int | float if kind is float else kind)
            return "" if right and (kind is bool or not isinstance(value, bool)) else f"{where} is no {kind.__name__}"
    return next((problem for entry in found if (problem := unlike(*entry))), "")


def _within(raw: bytes | str, room: int) -> None:
    if len(raw) > WIDE and not raw.isascii():
        raise NotStrictJson(f"more than {WIDE} bytes that are not all ASCII")
    if len(raw) * max(TAKES.values()) <= room:
        return
    taken = sum(bytes_ * _count(raw, sign) for sign, bytes_ in TAKES.items())
    if taken > room:
        raise NotStrictJson(f"its values would take {taken} bytes, and {room} are the limit")


def _count(raw: bytes | str, sign: str) -> int:
    return raw.count(sign) if isinstance(raw, str) else raw.count(sign.encode())


def _parsed(text: str) -> Any:
    """The value.  Its reader calls into Python for numbers and objects only where a doubt is left.

    Each key is followed by `":` in the text, so a text with no more of these than the value has keys has no key twice.
    """
    long = LONG in text.translate(_DIGITS)
    value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole if long else None)
    if _keys(value) != text.count('":') or _APART.search(text):
        json.loads(text, object_pairs_hook=_unique)
    return value


def _keys(value: Any) -> int:
    """How many keys its objects have; NotStrictJson where it is nested too deep."""
    level, keys = [value] if isinstance(value, _CONTAINERS) else [], 0
    for _ in range(DEPTH):
        keys += sum(len(entry) for entry in level if isinstance(entry, dict))
        inside = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [entry for inner in inside for entry in inner if isinstance(entry, _CONTAINERS)]
        if not level:
            return keys
    raise NotStrictJson(f"it is nested more than {DEPTH} levels deep")


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Nothing is kept of the object: the value was read before."""
    if len(dict(pairs)) != len(pairs):
        raise NotStrictJson("a key appears twice in one object")


def _no_constant(name: str) -> NoReturn:
    raise NotStrictJson(f"{name} is no number of JSON")


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise NotStrictJson(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not -LARGEST < value < LARGEST:  # an infinite one, too
        raise NotStrictJson(f"the number {text[:DIGITS]} is out of range")
    return value
