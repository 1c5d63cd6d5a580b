"""From what pydantic says, and from our own rules over several keys, to typed errors with a place and a hint."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from migrate.errors import DocumentInvalid, NotSupportedYet
from migrate.playbook.document import Document, plain, position_of
from migrate.playbook.fields import Section

Location = tuple[str | int, ...]
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

    Raises DocumentInvalid with every problem inside (NotSupportedYet if there are none but such).
    """
    try:
        return schema.model_validate(plain(document.root))
    except ValidationError as error:
        problems = [_problem(document, schema, entry) for entry in error.errors()]
    raise_all(problems)  # out here: pydantic's own error holds the values, and a traceback would show them
    raise AssertionError("a ValidationError holds at least one error")


def refuse(document: Document, faults: Iterable[Fault]) -> None:
    """Raise DocumentInvalid with every fault, if there is one."""
    raise_all(
        [
            DocumentInvalid(
                fault.what,
                where=document.where(position_of(document.root, fault.at)),
                why=fault.why,
                next_step=fault.next_step,
            )
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
    where = document.where(position_of(document.root, location))
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
    """Did somebody write a password where only the place of one may stand?"""
    return any(word in str(step) for step in location for word in ("password", "secret"))


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
