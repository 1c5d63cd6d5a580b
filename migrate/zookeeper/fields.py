"""Strict access to the JSON that Kafka writes into znodes: each doubt is a MalformedZnode that names the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NoReturn, cast

from migrate.errors import MalformedZnode
from migrate.model import strict_json

INT32: Final = 2**31
INT64: Final = 2**63


def refuse(path: str, what: str) -> NoReturn:
    """Raise MalformedZnode for that path."""
    raise MalformedZnode(what, where=path, why="it is not what Kafka 3.9 writes there, and nothing is guessed")


def parse_json(path: str, data: bytes | None) -> Any:
    """Return the JSON value in a znode: UTF-8, each key once, no NaN, no lone surrogates.

    Its size is ZooKeeper's matter: with jute.maxbuffer raised it takes more than 1 MiB.
    """
    if not data:
        refuse(path, "the znode has no data")
    try:
        return strict_json.loads(data)
    except strict_json.NotStrictJson as error:
        refuse(path, f"the data is no JSON that can be trusted ({error})")


class JsonZnode:
    """A JSON object of a znode (or inside one), read field by field with types and ranges."""

    __slots__ = ("_values", "path")

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        self.path = path
        self._values = values

    @classmethod
    def parse(cls, path: str, data: bytes | None) -> JsonZnode:
        """The znode's data as an object."""
        return cls.of(path, parse_json(path, data))

    @classmethod
    def of(cls, path: str, value: Any) -> JsonZnode:
        """A JSON value that must be an object."""
        if not isinstance(value, dict):
            refuse(path, "a JSON object is expected")
        return cls(path, value)

    def _field(self, name: str) -> Any:
        if name not in self._values:
            refuse(self.path, f"the field {name!r} is missing")
        return self._values[name]

    def has(self, name: str) -> bool:
        """Is the field there, and not null?"""
        return self._values.get(name) is not None

    def version(self, known: Sequence[int], name: str = "version") -> int:
        """The schema's version, which must be one that we know."""
        found = self.integer(name, low=-INT32, high=INT32)
        if found not in known:
            refuse(self.path, f"version {found} is not known (known: {', '.join(map(str, known))})")
        return found

    def text(self, name: str) -> str:
        """A string."""
        value = self._field(name)
        if not isinstance(value, str):
            refuse(self.path, f"the field {name!r} is no string")
        return value

    def integer(self, name: str, *, low: int = -1, high: int = INT32) -> int:
        """A whole number with low <= number < high."""
        return whole_number(self.path, name, self._field(name), low=low, high=high)

    def number(self, name: str) -> float:
        """A number >= 0 that need not be whole."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < INT32:
            refuse(self.path, f"the field {name!r} is no number in its range")
        return float(value)

    def integer_text(self, name: str, *, high: int = INT64) -> int:
        """A whole number >= 0 that Kafka writes as a string."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit()) or len(value) > 19 or int(value) >= high:
            refuse(self.path, f"the field {name!r} is no number in a string")
        return int(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._field(name)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            refuse(self.path, f"the field {name!r} is no list of strings")
        return tuple(value)

    def node_ids(self, name: str) -> list[int]:
        """A list of broker ids, each once."""
        return node_ids(self.path, name, self._field(name))

    def objects(self, name: str) -> tuple[JsonZnode, ...]:
        """A list of objects."""
        value = self._field(name)
        if not isinstance(value, list):
            refuse(self.path, f"the field {name!r} is no list")
        return tuple(JsonZnode.of(self.path, entry) for entry in value)

    def object(self, name: str) -> JsonZnode:
        """An object."""
        value = self._field(name)
        if not isinstance(value, dict):
            refuse(self.path, f"the field {name!r} is no object")
        return JsonZnode(self.path, value)

    def assignment(self, name: str) -> dict[int, list[int]]:
        """Partition number -> broker ids; an absent field is an empty one (topics of versions 1 and 2)."""
        if not self.has(name):
            return {}
        pairs = self.object(name).items()
        plain = _plain_assignment(pairs)
        return _strict_assignment(self.path, name, pairs) if plain is None else plain

    def items(self) -> list[tuple[str, Any]]:
        """The raw fields."""
        return list(self._values.items())


def _plain_assignment(pairs: Sequence[tuple[str, Any]]) -> dict[int, list[int]] | None:
    """All of an assignment, looked at as one where it is beyond doubt; None: look at it entry by entry.

    A cluster's partitions by the hundred thousand go through here.
    """
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    if {*map(type, values)} - {list}:
        return None
    ids = [*chain.from_iterable(values)]
    if {*map(type, ids)} - {int} or (ids and (min(ids) < 0 or max(ids) >= INT32)):
        return None
    if sum(map(len, map(set, values))) != len(ids):  # a broker stands twice in one of them
        return None
    try:
        numbers = [*map(int, keys)]
    except ValueError:
        return None
    if [*map(str, numbers)] != keys or (numbers and (min(numbers) < 0 or max(numbers) >= INT32)):
        return None
    return dict(zip(numbers, values, strict=True))


def _strict_assignment(path: str, name: str, pairs: Sequence[tuple[str, Any]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, value in pairs:
        if not (key.isascii() and key.isdigit()) or str(int(key[:11])) != key or int(key) >= INT32:
            refuse(path, f"{key!r} in {name!r} is no partition number")
        found[int(key)] = node_ids(path, name, value)
    return found


def whole_number(path: str, name: str, value: Any, *, low: int, high: int) -> int:
    """A JSON number that is whole and with low <= number < high (true and false are no numbers)."""
    if type(value) is not int or not low <= value < high:
        refuse(path, f"the field {name!r} is no whole number in its range")
    return value


def node_ids(path: str, name: str, value: Any) -> list[int]:
    """A JSON list of broker ids, each once."""
    if type(value) is not list or (
        value and ({*map(type, value)} != {int} or min(value) < 0 or max(value) >= INT32)  # a hot path
    ):
        refuse(path, f"{name!r} holds something that is no list of broker ids")
    if len(set(value)) != len(value):
        refuse(path, f"{name!r} names a broker twice")
    return cast("list[int]", value)
