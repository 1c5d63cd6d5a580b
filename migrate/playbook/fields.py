"""Files against their sections: typed errors with a place, for a section that is a value and for one that is not."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from migrate.errors import DocumentInvalid, NotSupportedYet
from migrate.model.written import Name, Text, keys_of
from migrate.playbook.document import (
    FLEET,
    INVENTORY,
    OURS,
    PLAYBOOK,
    Document,
    Location,
    inventory_named,
    kind_of_file,
)

API_VERSION: Final = "kraft-migrate/v1"


class Section(BaseModel):
    """A mapping of a document that becomes a value of another shape: unknown keys are errors.  Others are values.

    `later` names keys that the format reserves and this release does not act on, each with what to do instead; `gone`
    those that earlier releases had.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)
    later: ClassVar[Mapping[str, str]] = {}
    gone: ClassVar[Mapping[str, str]] = {}


class Metadata(Section):
    """Who this is about, and under which change; it goes into every report."""

    name: Name
    change: Text | None = None


class WholeFile(Section):
    """What every file of ours has; each kind narrows `kind` and adds its `spec`."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: str
    metadata: Metadata


S = TypeVar("S", bound=Section)
SHOWN: Final = 60  # characters of a wrong value
MESSAGES: Final = {  # pydantic's type -> ours, where pydantic speaks of Python
    "model_type": "a mapping (key: value lines) is expected",
    "dataclass_type": "a mapping (key: value lines) is expected",
    "dict_type": "a mapping (key: value lines) is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
    "string_type": "text is expected",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule over several keys that does not hold; `at` is the key to look at."""

    at: Location
    what: str
    why: str = ""
    next_step: str = ""


def validate(document: Document, schema: type[S], beside: Callable[[str], str] | None = None) -> S:
    """The document as that schema's value; its paths are made whole by `beside`, the document's own without it.

    Raises DocumentInvalid with every problem inside (NotSupportedYet if there are none but such); for a file of
    another kind, that alone.
    """
    _refuse_other_kind(document, schema)
    try:
        return schema.model_validate(document.data, context=beside or document.beside)
    except ValidationError as error:
        problems = [_problem(document, schema, entry) for entry in error.errors()]
    raise_all(problems)  # out here: pydantic's own error holds the values, and a traceback would show them
    raise AssertionError("a ValidationError holds at least one error")


def _refuse_other_kind(document: Document, schema: type[Section]) -> None:
    field = schema.model_fields.get("kind")
    expected = {OURS[name] for name in typing.get_args(field.annotation)} if field is not None else set()
    found = kind_of_file(document)
    if expected and found is not None and found not in expected:
        use = found.used(document.path)
        if found == PLAYBOOK and INVENTORY in expected and (named := inventory_named(document)):
            use = f"give the inventory that it names: {named}"
        if found in (PLAYBOOK, INVENTORY) and FLEET in expected:
            use = "name its cluster in a fleet, as playbooks/fleet-example.yaml; `kraft-migrate assess` looks at one"
        raise DocumentInvalid(
            f"this is {found.name}, not {' or '.join(kind.name for kind in expected)}",
            where=str(document.path),
            why=found.why,
            next_step=use,
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
        case "extra_forbidden" | "unexpected_keyword_argument":
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
            message = MESSAGES.get(other, error["msg"][0].lower() + error["msg"][1:]).replace("tuple", "list")
            shown = _told(location, error)
            return DocumentInvalid(f"{path} is {shown}: {message}", where=where)


def _unknown_key(schema: type[Section], location: Location, where: str) -> DocumentInvalid:
    key = str(location[-1])
    owner = section_at(schema, location[:-1])
    if owner is not None and key in owner.later:
        return NotSupportedYet(
            f"{dotted(location)} is not supported yet", where=where, next_step=f"take it out: {owner.later[key]}"
        )
    if owner is not None and key in owner.gone:
        return DocumentInvalid(f"{dotted(location)} is no key any more", where=where, next_step=owner.gone[key])
    known = list(_keys(owner))
    near = difflib.get_close_matches(key, known, n=1)
    meant = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
    return DocumentInvalid(f"unknown key {dotted(location)}", where=where, why=meant)


def section_at(schema: type[Section], location: Location) -> Any:
    """The section that a path of keys and indexes leads to, None where it leads elsewhere."""
    here: Any = schema
    for step in location:
        if keys := _keys(here):
            here = keys.get(str(step))
        else:
            arguments = [found for found in typing.get_args(here) if found not in (type(None), ...)]
            here = arguments[-1] if arguments else None
        here = _bare(here)
    return here if _keys(here) else None


def _keys(section: Any) -> Mapping[str, Any]:
    """The keys of a section with their types; none for what is no section."""
    if isinstance(section, type) and issubclass(section, BaseModel):
        return {info.alias or name: info.annotation for name, info in section.model_fields.items()}
    return keys_of(section) if is_dataclass(section) else {}


def _bare(annotation: Any) -> Any:
    """The type without what annotates it, and without None."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    arguments = typing.get_args(annotation)
    if type(None) in arguments:
        return _bare(next(found for found in arguments if found is not type(None)))
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
