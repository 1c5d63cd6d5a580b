"""Every code that the tool prints, explained: errors, findings and causes of a stuck migration."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from migrate import checks, errors
from migrate.checks import stuck
from migrate.checks.words import WordDoc, all_words, family, key
from migrate.errors import MigrateError, Retryable, UnknownCode
from migrate.model.findings import CodeDoc, WaitDoc

MIN_LETTERS: Final = 2  # of a word that tells something


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


Doc = ErrorDoc | CodeDoc | WaitDoc | WordDoc
ExplainAnswer = list[ErrorDoc | WaitDoc | CodeDoc | WordDoc]


def error_docs() -> dict[str, ErrorDoc]:
    """Every error of the tree that has an id of its own, by id."""
    found: dict[str, ErrorDoc] = {}
    for name, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, MigrateError) and "id" in vars(cls) and cls is not MigrateError:
            meaning = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
            retried = issubclass(cls, Retryable)
            found[cls.id] = ErrorDoc(cls.id, name, meaning, cls.exit_code, cls.hint, retried)
    return dict(sorted(found.items()))


def all_docs() -> dict[str, ErrorDoc | CodeDoc | WaitDoc]:
    """The text of every code: errors, findings, waits."""
    return {**error_docs(), **checks.CODES, **stuck.CODES}


def find(code: str) -> Doc:
    """The text of a code, a family or a word, in any case; UnknownCode with the nearest ones for any other."""
    wanted = code.strip().upper()
    known, words = all_docs(), all_words()
    if wanted in known:
        return known[wanted]
    if (word := words.get(key(code))) is not None:
        return word
    if (codes := family(code, {name: title(doc) for name, doc in known.items()})) is not None:
        return codes
    near = [words[one].code for one in difflib.get_close_matches(key(code), words, n=1, cutoff=0.75)]
    if not near and (wanted[1:2] == "-" or any(map(str.isdigit, wanted))):  # else it is no code that was mistyped
        near = difflib.get_close_matches(wanted, [*known, *families(known)], n=3, cutoff=0.5)
    near = near or _about(code, words.values()) or _about(code, known.values())
    raise UnknownCode(
        f"no code or word {code.strip()[:40]!r}",
        next_step=f"did you mean {', '.join(near)}?" if near else UnknownCode.hint,
    )


def _about(asked: str, words: Iterable[Doc]) -> list[str]:
    """Those that speak of what was asked for, such as `offline` or `log dir`, most of it first; three at most."""
    wanted = [short for one in key(asked).split() if len(short := one.rstrip("s")) > MIN_LETTERS]
    said = {word.code: f"{word.code} {title(word)}".lower() for word in words}
    hits = {code: sum(one in re.split(r"\W+|s\b", text) for one in wanted) for code, text in said.items()}
    return [code for code in sorted(hits, key=lambda code: -hits[code]) if hits[code]][:3]


def families(codes: Iterable[str]) -> list[str]:
    """The beginnings that codes share, such as `B-DIR`."""
    return list(dict.fromkeys(code.rpartition("-")[0] for code in codes))


def title(doc: Doc) -> str:
    """What a code or a word means, in a line."""
    return doc.meaning if isinstance(doc, ErrorDoc) else doc.title
