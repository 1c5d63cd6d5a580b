"""A JAAS file (java.security.auth.login.config) read for its sections; passwords stay in values that are never shown.

Source: `sun.security.provider.ConfigFile`: `NAME { MODULE FLAG OPTION=VALUE ...; ... };`, comments as Java's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<quoted>(?:[^"\\\n]|\\.)*)"
    |(?P<mark>[{};=])
    |(?P<word>[^\s{};="]+)
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
FLAGS: Final = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One module of a section."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def sections(text: str) -> dict[str, tuple[LoginModule, ...]]:
    """Section -> its modules; ValueError, without a word of the text, where Java would refuse it."""
    tokens = _tokens(text)
    found: dict[str, tuple[LoginModule, ...]] = {}
    at = 0
    while at < len(tokens):
        name, opened = tokens[at], tokens[at + 1 : at + 2]
        if opened != [("mark", "{")] or name[0] == "mark":
            raise ValueError(f"word {at + 1} begins no section")
        at += 2
        modules = []
        while tokens[at : at + 1] != [("mark", "}")]:
            module, at = _module(tokens, at)
            modules.append(module)
        if tokens[at + 1 : at + 2] != [("mark", ";")]:
            raise ValueError(f"a section ends without a semicolon (word {at + 1})")
        found[name[1]] = tuple(modules)
        at += 2
    return found


def _module(tokens: list[tuple[str, str]], at: int) -> tuple[LoginModule, int]:
    name, flag = ([*tokens[at : at + 2], ("mark", ""), ("mark", "")])[:2]
    if name[0] == "mark" or flag[1].lower() not in FLAGS:
        raise ValueError(f"word {at + 1} begins no module")
    at += 2
    options = {}
    while tokens[at : at + 1] != [("mark", ";")]:
        key, equals, value = ([*tokens[at : at + 3], ("mark", ""), ("mark", ""), ("mark", "")])[:3]
        if key[0] == "mark" or equals != ("mark", "=") or value[0] == "mark":
            raise ValueError(f"word {at + 1} is no option")
        options[key[1]] = value[1]
        at += 3
    return LoginModule(name[1], options), at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"the text ends within quotes (line {text.count(chr(10), 0, at) + 1})")
        at = match.end()
        if match["quoted"] is not None:
            found.append(("quoted", ESCAPE.sub(r"\1", match["quoted"])))
        elif match["skip"] is None:
            found.append(("mark", match["mark"]) if match["mark"] else ("word", match["word"]))
    return found
