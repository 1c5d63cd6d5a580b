"""The types that fields of a document have, and typed errors with a place: text in, values out, no coercion.

Scalars arrive as text (`document.plain`), so that YAML 1.1's readings of `no`, `0755` and `22:22` never happen.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from migrate.errors import DocumentInvalid, NotSupportedYet
from migrate.model.ids import KafkaUuid
from migrate.model.inventory import UNIT, USER
from migrate.model.kafka_values import IPV6, connect_string, listener_name
from migrate.model.patterns import PatternRefused, compiled
from migrate.playbook.document import OURS, Document, Location, Quoted, kind_of_file

API_VERSION: Final = "kraft-migrate/v1"
SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION: Final = re.compile(r"(0|[1-9][0-9]{0,5})([smhd])")
MOST_A_SECOND: Final = 1_000_000
WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,9}")
ADDRESS: Final = re.compile(rf"(\[{IPV6}\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):([1-9][0-9]{{0,4}})")
HOST: Final = re.compile(rf"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|{IPV6}")
LISTENER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Section(BaseModel):
    """A mapping of a document: unknown keys are errors, values are frozen.

    `later` names keys that the format reserves and this release does not act on, each with what to do instead; `gone`
    those that earlier releases had.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)
    later: ClassVar[Mapping[str, str]] = {}
    gone: ClassVar[Mapping[str, str]] = {}


def _whole(value: Any) -> int:
    if isinstance(value, Quoted) or not isinstance(value, str) or not WHOLE.fullmatch(value):
        raise ValueError("a whole number without quotes is expected, such as 3001")
    return int(value)


def _node_id(number: int) -> int:
    if number >= 2**31:
        raise ValueError("a node id is 0 to 2147483647")
    return number


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


def _like(expected: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not expected.fullmatch(text):
            raise ValueError(what)
        return text

    return AfterValidator(check)


def _uuid(text: str) -> str:
    return str(KafkaUuid(text))


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ValueError("a day is expected, such as 2026-12-01") from error


Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str)]
Flag = Annotated[bool, BeforeValidator(_flag, json_schema_input_type=bool)]
Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]
NodeNumber = Annotated[Whole, AfterValidator(_node_id), Field(json_schema_extra={"minimum": 0, "maximum": 2**31 - 1})]
Rate = Annotated[Whole, AfterValidator(_rate), Field(json_schema_extra={"minimum": 1, "maximum": MOST_A_SECOND})]
Duration = Annotated[
    float, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": f"^{DURATION.pattern}$"})
]
Address = Annotated[Text, AfterValidator(_address)]
ZookeeperConnect = Annotated[Text, AfterValidator(_connect)]
TopicPattern = Annotated[Text, AfterValidator(_pattern)]
ClusterId = Annotated[Text, AfterValidator(_uuid)]
Day = Annotated[Text, AfterValidator(_day)]
Host = Annotated[Text, _like(HOST, "a host name or address is expected; its first character is a letter or digit")]
ListenerName = Annotated[  # in capitals: Kafka looks for controller.listener.names among names that it made so
    Text, _like(LISTENER, "a listener's name is expected, such as CONTROLLER"), AfterValidator(listener_name)
]
Name = Annotated[
    Text,
    _like(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"),
        "a short name is expected: letters, digits, dots, dashes, at most 63",
    ),
]
UnitName = Annotated[Text, _like(UNIT, "a systemd service is expected as systemctl shows it, such as kafka.service")]
UserName = Annotated[Text, _like(USER, "the name of an account is expected, such as kafka")]
VariableName = Annotated[
    Text, _like(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}"), "the name of an environment variable is expected")
]
CommandWord = Annotated[Text, _like(re.compile(r"[^\n\x00]{1,4096}"), "a word of a command in one line is expected")]
FilePath = Annotated[Text, _like(re.compile(r"[^\n\t]{1,4096}"), "a path in one line is expected")]


class Metadata(Section):
    """Who this is about, and under which change; it goes into every report."""

    name: Name
    change: Text | None = None


class SecretReference(Section):
    """A secret by one of: `file` of mode 0600 with nothing else, `env` variable, `command` that prints it."""

    file: FilePath | None = None
    env: VariableName | None = None
    command: Annotated[list[CommandWord], Field(min_length=1)] | None = None  # no shell: a list of words

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(one is not None for one in (self.file, self.env, self.command)) != 1:
            raise ValueError("exactly one of file, env and command is expected")
        if self.command is not None and not self.command[0].startswith("/"):
            raise ValueError("the command's first word is the absolute path of a program")
        return self


S = TypeVar("S", bound=Section)
SHOWN: Final = 60  # characters of a wrong value
MESSAGES: Final = {  # pydantic's type -> ours, where pydantic speaks of Python
    "model_type": "a mapping (key: value lines) is expected",
    "dict_type": "a mapping (key: value lines) is expected",
    "list_type": "a list is expected",
    "string_type": "text is expected",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule over several keys that does not hold; `at` is the key to look at."""

    at: Location
    what: str
    why: str = ""
    next_step: str = ""


def validate(document: Document, schema: type[S]) -> S:
    """The document as that schema's value.

    Raises DocumentInvalid with every problem inside (NotSupportedYet if there are none but such); for a file of
    another kind, that alone.
    """
    _refuse_other_kind(document, schema)
    try:
        return schema.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, schema, entry) for entry in error.errors()]
    raise_all(problems)  # out here: pydantic's own error holds the values, and a traceback would show them
    raise AssertionError("a ValidationError holds at least one error")


def _refuse_other_kind(document: Document, schema: type[Section]) -> None:
    field = schema.model_fields.get("kind")
    expected = {OURS[name] for name in typing.get_args(field.annotation)} if field is not None else set()
    found = kind_of_file(document)
    if expected and found is not None and found not in expected:
        raise DocumentInvalid(
            f"this is {found.name}, not {' or '.join(kind.name for kind in expected)}",
            where=str(document.path),
            why=found.why,
            next_step=found.used(document.path),
        )


def refuse(document: Document, faults: Iterable[Fault]) -> None:
    """Raise DocumentInvalid with every fault, if there is one."""
    raise_all(
        [
            DocumentInvalid(fault.what, where=document.where(fault.at), why=fault.why, next_step=fault.next_step)
            for fault in faults
        ]
    )


def raise_all(problems: list[DocumentInvalid]) -> None:
    """Raise the first problem with all of them inside; nothing if there is none."""
    if not problems:
        return
    first = next((problem for problem in problems if not isinstance(problem, NotSupportedYet)), problems[0])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise type(first)(
        first.what + more, where=first.where, why=first.why, next_step=first.next_step, problems=tuple(problems)
    )


def _problem(document: Document, schema: type[Section], error: Any) -> DocumentInvalid:
    location: Location = tuple(step for step in error["loc"] if step != "[key]")
    where = document.where(location)
    path = dotted(location)
    match error["type"]:
        case "extra_forbidden":
            return _unknown_key(schema, location, where)
        case "missing":
            return DocumentInvalid(f"{path} is missing", where=where, next_step=f"add `{location[-1]}` here")
        case "literal_error":
            expected = error["ctx"]["expected"].replace("'", "")
            return DocumentInvalid(
                f"{path} is {_shown(error['input'])}, expected {expected}", where=where, why=_near(error, expected)
            )
        case "value_error":
            return DocumentInvalid(f"{path} is {_told(location, error)}: {error['ctx']['error']}", where=where)
        case other:
            message = MESSAGES.get(other, error["msg"][0].lower() + error["msg"][1:])
            shown = _told(location, error)
            return DocumentInvalid(f"{path} is {shown}: {message}", where=where)


def _unknown_key(schema: type[Section], location: Location, where: str) -> DocumentInvalid:
    key = str(location[-1])
    owner = section_at(schema, location[:-1])
    known = [info.alias or name for name, info in owner.model_fields.items()] if owner else []
    if owner is not None and key in owner.later:
        return NotSupportedYet(
            f"{dotted(location)} is not supported yet", where=where, next_step=f"take it out: {owner.later[key]}"
        )
    if owner is not None and key in owner.gone:
        return DocumentInvalid(f"{dotted(location)} is no key any more", where=where, next_step=owner.gone[key])
    near = difflib.get_close_matches(key, known, n=1)
    meant = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
    return DocumentInvalid(f"unknown key {dotted(location)}", where=where, why=meant)


def section_at(schema: type[Section], location: Location) -> type[Section] | None:
    """The section that a path of keys and indexes leads to, None where it leads elsewhere."""
    here: Any = schema
    for step in location:
        if isinstance(here, type) and issubclass(here, Section):
            fields = {info.alias or name: info for name, info in here.model_fields.items()}
            if step not in fields:
                return None
            here = fields[str(step)].annotation
        else:
            arguments = [found for found in typing.get_args(here) if found is not type(None)]
            here = arguments[-1] if arguments else None
        here = _without_none(here)
    return here if isinstance(here, type) and issubclass(here, Section) else None


def _without_none(annotation: Any) -> Any:
    arguments = typing.get_args(annotation)
    if type(None) in arguments:
        return next(found for found in arguments if found is not type(None))
    return annotation


def _told(location: Location, error: Any) -> str:
    return "a value of its own" if _may_be_secret(location) else _shown(error["input"])


def _may_be_secret(location: Location) -> bool:
    """Did somebody write a password where only the place of one may stand?  A URL may hold a token."""
    return any(word in str(step) for step in location for word in ("password", "secret", "url"))


def _near(error: Any, expected: str) -> str:
    choices = [word.strip() for part in expected.split(" or ") for word in part.split(",")]
    near = difflib.get_close_matches(str(error["input"]), choices, n=1) if isinstance(error["input"], str) else []
    return f"did you mean {near[0]}?" if near else ""


def dotted(location: Location) -> str:
    """`spec.stages[2].name`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".") or "the document"


def _shown(value: object) -> str:
    match value:
        case str():
            return repr(str(value) if len(value) <= SHOWN else value[:SHOWN] + "...")
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return "missing"
