"""Every code that the tool prints, explained: errors, findings and causes of a stuck migration."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass

from migrate import checks, errors
from migrate.checks import stuck
from migrate.errors import MigrateError, Retryable, UnknownCode
from migrate.model.findings import CodeDoc, WaitDoc


@dataclass(frozen=True, slots=True)
class ErrorDoc:
    """What is said of an error: `meaning` is its class's docstring, `next_step` its hint."""

    code: str
    name: str
    meaning: str
    exit_code: int
    next_step: str
    retried: bool
    blocks: str = ""  # as every code answers: no stage


Doc = ErrorDoc | CodeDoc | WaitDoc
ExplainAnswer = list[ErrorDoc | WaitDoc | CodeDoc]


def error_docs() -> dict[str, ErrorDoc]:
    """Every error of the tree that has an id of its own, by id."""
    found: dict[str, ErrorDoc] = {}
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, MigrateError) and "id" in vars(cls) and cls is not MigrateError:
            meaning = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
            retried = issubclass(cls, Retryable)
            found[cls.id] = ErrorDoc(cls.id, name, meaning, cls.exit_code, cls.hint, retried)
    return dict(sorted(found.items()))


def all_docs() -> dict[str, Doc]:
    """The text of every code: errors, findings, waits."""
    return {**error_docs(), **checks.CODES, **stuck.CODES}


def find(code: str) -> Doc:
    """The text of a code, in any case; UnknownCode with the nearest ones for any other."""
    wanted = code.strip().upper()
    known = all_docs()
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    raise UnknownCode(
        f"no code {code.strip()[:40]!r}", next_step=f"did you mean {', '.join(near)}?" if near else UnknownCode.hint
    )
