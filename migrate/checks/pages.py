"""Every code that the tool prints, explained: errors, findings and causes of a stuck migration."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import asdict, dataclass

from migrate import checks, errors
from migrate.checks import stuck
from migrate.checks.registry import CHECKS, NEVER
from migrate.errors import MigrateError, Retryable, UnknownCode
from migrate.model.findings import CodeDoc, WaitDoc
from migrate.model.stage import Stage


@dataclass(frozen=True, slots=True)
class ErrorDoc:
    """What is said of an error: `meaning` is its class's docstring, `next_step` its hint."""

    code: str
    name: str
    meaning: str
    exit_code: int
    next_step: str
    retried: bool


@dataclass(frozen=True, slots=True)
class ErrorAnswer(ErrorDoc):
    """What `explain` answers of an error."""

    blocks: str = ""


@dataclass(frozen=True, slots=True)
class WaitAnswer(WaitDoc):
    """What `explain` answers of a wait."""

    blocks: str = ""


@dataclass(frozen=True, slots=True)
class CodeAnswer(CodeDoc):
    """What `explain` answers of a finding; `blocks` are the stages, in words."""

    blocks: str


ExplainAnswer = list[ErrorAnswer | WaitAnswer | CodeAnswer]


def answer(doc: ErrorDoc | CodeDoc | WaitDoc) -> ErrorAnswer | WaitAnswer | CodeAnswer:
    """The text of a code as `explain` answers it."""
    match doc:
        case CodeDoc():
            return CodeAnswer(**asdict(doc), blocks=blocks(doc.code))
        case WaitDoc():
            return WaitAnswer(**asdict(doc))
        case ErrorDoc():
            return ErrorAnswer(**asdict(doc))


def error_docs() -> dict[str, ErrorDoc]:
    """Every error of the tree that has an id of its own, by id."""
    found: dict[str, ErrorDoc] = {}
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, MigrateError) and "id" in vars(cls) and cls is not MigrateError:
            meaning = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
            retried = issubclass(cls, Retryable)
            found[cls.id] = ErrorDoc(cls.id, name, meaning, cls.exit_code, cls.hint, retried)
    return dict(sorted(found.items()))


def blocks(code: str) -> str:
    """Which stages a finding of that code blocks, in words."""
    first = CHECKS[code].blocks_from
    return "no stage" if first == NEVER else f"{Stage(first).label} and later"


def all_docs() -> dict[str, ErrorDoc | CodeDoc | WaitDoc]:
    """The text of every code: errors, findings, waits."""
    return {**error_docs(), **checks.CODES, **stuck.CODES}


def find(code: str) -> ErrorDoc | CodeDoc | WaitDoc:
    """The text of a code, in any case; UnknownCode with the nearest ones for any other."""
    wanted = code.strip().upper()
    known = all_docs()
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    raise UnknownCode(
        f"no code {code.strip()[:40]!r}", next_step=f"did you mean {', '.join(near)}?" if near else UnknownCode.hint
    )
