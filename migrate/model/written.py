"""How operators write values: the types of fields in files, which `migrate.playbook` reads by pydantic.

A section is a frozen value, so that it has no twin for the file.  Its fields are annotated with what pydantic asks for
a schema when a file is read; nothing here imports it before.  Scalars arrive as text, so that YAML 1.1's readings of
`no`, `0755` and `22:22` never happen.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, Final, TypeVar

from migrate.model.ids import KafkaUuid, NodeId
from migrate.model.kafka_values import IPV6, connect_string, listener_name
from migrate.model.patterns import PatternRefused, compiled

T = TypeVar("T")
SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION: Final = re.compile(r"(0|[1-9][0-9]{0,5})([smhd])")
MOST_A_SECOND: Final = 1_000_000
WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,9}")
ADDRESS: Final = re.compile(rf"(\[{IPV6}\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):([1-9][0-9]{{0,4}})")
# systemd.unit(5): the characters of a unit's name; ours must name a service, and never begins like an option
UNIT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.@\\-]{0,246}\.service")

SYSTEM: Final = re.compile(
    r"/|/(bin|boot|dev|etc|home|lib(32|64|x32)?|proc|root|run|sbin|sys|tmp|usr|var|usr/local)"
    r"|/var/(cache|lib|log|run|spool|tmp)"
    r"|/(bin|boot|dev(?!/shm/)|etc|lib(32|64|x32)?|proc|sbin|sys|usr/bin|usr/lib)/.*"
)


class Quoted(str):
    """Text that the file quotes: numbers and booleans refuse it."""

    __slots__ = ()


def section(
    later: Mapping[str, str] | None = None, gone: Mapping[str, str] | None = None, **written: str
) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass that is a mapping of a file: unknown keys are errors.

    `written` gives fields another key; `later` and `gone` are as in `migrate.playbook.fields.Section`.
    """

    def marked(cls: type[T]) -> type[T]:
        found: Any = cls
        found.__pydantic_config__ = {
            "extra": "forbid",
            "alias_generator": lambda name: written.get(name, name),
            "json_schema_extra": {"description": inspect.getdoc(cls)},
        }
        found.later, found.gone = later or {}, gone or {}
        return cls

    return marked


def keys_of(cls: Any) -> dict[str, Any]:
    """The keys of a section in the order of its fields, each with its annotated type."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {cls.__pydantic_config__["alias_generator"](entry.name): hints[entry.name] for entry in fields(cls)}


# -- what annotates a field ------------------------------------------------------------------------------------------
class Form:
    """How a file writes a value, for pydantic: `make` is given its `core_schema`, the type and a handler of types."""

    def __init__(self, make: Callable[[Any, Any, Any], Any]) -> None:
        self.make = make

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - not before a file is read

        return self.make(core_schema, source, handler)


def _read(read: Callable[[Any], Any], **written: Any) -> Form:
    """The value is made of what the file has, before anything looks at it; `written` is the core schema of that."""
    return Form(
        lambda core, source, handler: core.no_info_before_validator_function(
            read, handler(source), json_schema_input_schema=written
        )
    )


def _check(check: Callable[[Any], Any]) -> Form:
    """The value, read so far, is as it must be; the check gives it back, or raises ValueError with what is expected."""
    return Form(lambda core, source, handler: core.no_info_after_validator_function(check, handler(source)))


def one_of(*words: str) -> Form:
    """The file has one of these words; the value may be another one where the file says nothing."""
    return Form(
        lambda core, _, handler: core.literal_schema(
            list(words), serialization=core.plain_serializer_function_ser_schema(str, return_schema=handler(str))
        )
    )


BESIDE: Final = Form(  # a path relative to the file: what reads the file says where that is, and the path is made whole
    lambda core, source, handler: core.with_info_after_validator_function(
        lambda path, info: info.context(path), handler(source)
    )
)


def lasting(least: float, most: float = math.inf) -> Form:
    """The seconds of a `Duration` are not fewer and not more."""
    return _check(_between(least, most))


def whole(least: int, most: int) -> Form:
    """A whole number that is not less and not more."""
    return Form(
        lambda core, source, handler: core.no_info_before_validator_function(
            lambda value: _between(least, most)(_whole(value)),
            handler(source),
            json_schema_input_schema=core.int_schema(ge=least, le=most),
        )
    )


def sized(**bounds: int) -> Form:
    """A list has at least `min_length` entries, and at most `max_length`."""
    return Form(lambda _, source, handler: {**handler(source), **bounds})


def _between(least: float, most: float) -> Callable[[float], float]:
    def check(number: float) -> float:
        if not least <= number <= most:
            bound = f"less than or equal to {most}" if number > most else f"greater than or equal to {least}"
            raise ValueError(f"input should be {bound}")
        return number

    return check


def _like(expected: re.Pattern[str], what: str) -> Form:
    def check(text: str) -> str:
        if not expected.fullmatch(text):
            raise ValueError(what)
        return text

    return _check(check)


def _whole(value: Any) -> int:
    if isinstance(value, Quoted) or not isinstance(value, str) or not WHOLE.fullmatch(value):
        raise ValueError("a whole number without quotes is expected, such as 3001")
    return int(value)


def _node_id(number: int) -> NodeId:
    if number >= 2**31:
        raise ValueError("a node id is 0 to 2147483647")
    return NodeId(number)


def _rate(number: int) -> int:
    if not 1 <= number <= MOST_A_SECOND:
        raise ValueError(f"operations a second are 1 to {MOST_A_SECOND}; without the key there is no limit")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text is expected")  # noqa: TRY004 - pydantic collects ValueErrors
    if not value.strip():
        raise ValueError("a value is missing")
    return str(value)


def _flag(value: Any) -> bool:
    if isinstance(value, Quoted) or value not in ("true", "false"):
        raise ValueError("true or false is expected, without quotes")
    return bool(value == "true")


def _duration(value: Any) -> float:
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration is expected: a whole number with s, m, h or d, such as 15m or 24h")
    return float(int(match[1]) * SECONDS[match[2]])


def _address(text: str) -> str:
    match = ADDRESS.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ValueError("host:port is expected, such as broker1:9093, with a port from 1 to 65535")
    return text


def _connect(text: str) -> str:
    try:
        connect_string(text)
    except ValueError as error:
        raise ValueError(f"zk1:2181,zk2:2181/kafka is expected: {error}") from error
    return text


def _pattern(text: str) -> str:
    try:
        found = compiled(text)
    except PatternRefused as error:
        raise ValueError(f"no pattern of topic names: {error}") from error
    if all(found.fullmatch(name) for name in ("q", "X.9_-", "zz" * 100)):
        raise ValueError("this pattern matches every topic: name the topics that may become unavailable")
    return text


def _uuid(text: str) -> str:
    return str(KafkaUuid(text))


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ValueError("a day is expected, such as 2026-12-01") from error


def _of_kafka(text: str) -> str:
    """A directory that a quorum may have for itself: files in it are made, and moved at a rollback."""
    path = os.path.normpath(text)
    path = path[1:] if path.startswith("//") else path  # normpath leaves two slashes at the beginning
    if SYSTEM.fullmatch(path):
        raise ValueError(f"{path} belongs to the system: a controller needs a directory of its own, as in its log.dirs")
    return text


# -- types of fields -------------------------------------------------------------------------------------------------
Text = Annotated[str, _read(_text, type="str")]
Flag = Annotated[bool, _read(_flag, type="bool")]
NodeNumber = Annotated[NodeId, _read(_whole, type="int", ge=0, le=2**31 - 1), _check(_node_id)]
Rate = Annotated[int, _read(_whole, type="int", ge=1, le=MOST_A_SECOND), _check(_rate)]
Duration = Annotated[float, _read(_duration, type="str", pattern=f"^{DURATION.pattern}$")]
Address = Annotated[Text, _check(_address)]
ZookeeperConnect = Annotated[Text, _check(_connect)]
TopicPattern = Annotated[Text, _check(_pattern)]
ClusterId = Annotated[Text, _check(_uuid)]
Day = Annotated[Text, _check(_day)]
Host = Annotated[
    Text,
    _like(
        re.compile(rf"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|{IPV6}"),
        "a host name or address is expected; its first character is a letter or digit",
    ),
]
ListenerName = Annotated[  # in capitals: Kafka looks for controller.listener.names among names that it made so
    Text,
    _like(re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*"), "a listener's name is expected, such as CONTROLLER"),
    _check(listener_name),
]
Name = Annotated[
    Text,
    _like(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"),
        "a short name is expected: letters, digits, dots, dashes, at most 63",
    ),
]
UnitName = Annotated[Text, _like(UNIT, "a systemd service is expected as systemctl shows it, such as kafka.service")]
UserName = Annotated[  # useradd(8)
    Text, _like(re.compile(r"[a-z_][a-z0-9_-]{0,31}"), "the name of an account is expected, such as kafka")
]
VariableName = Annotated[
    Text, _like(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}"), "the name of an environment variable is expected")
]
PRINCIPAL: Final = _like(
    re.compile(r"[^/@\s]+(/[^/@\s]+)?@[^/@\s]+"), "a principal with its realm is expected, such as migrator@EXAMPLE.COM"
)
Principal = Annotated[Text, _like(re.compile(r"User:[^;,]+"), "a principal is expected, such as User:broker")]
TokenEndpoint = Annotated[
    Text,
    _like(re.compile(r"https?://[^\s/@?#]+(/[^\s?#@]*)?"), "a URL is expected, such as https://issuer.example/token"),
]
CommandWord = Annotated[Text, _like(re.compile(r"[^\n\x00]{1,4096}"), "a word of a command in one line is expected")]
HostPath = Annotated[Text, _like(re.compile(r"[^\n\t]{1,4096}"), "a path in one line is expected")]  # as it is written
FilePath = Annotated[HostPath, BESIDE]
MetadataPath = Annotated[HostPath, _check(_of_kafka)]
