"""JAAS texts: a login file (java.security.auth.login.config), and the value of a sasl.jaas.config.  All pure.

Java's `StreamTokenizer` reads both: in `sun.security.provider.ConfigFile` as `NAME { MODULE FLAG OPTION=VALUE ...; };`,
in `JaasConfig` of Kafka's clients as one `MODULE FLAG OPTION=VALUE ...;`.  No reason repeats a word of the text: it may
hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.outcome import Unknown

TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<mark>[{};=])
    |(?P<word>[^\s{};="']+)
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
FLAGS: Final = ("required", "requisite", "sufficient", "optional")
UNREADABLE: Final = Unknown("its sasl.jaas.config cannot be read as one login module with its options")


@dataclass(frozen=True, slots=True)
class LoginModule:
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


def options(text: str) -> dict[str, str] | Unknown:
    """Options of the module in a sasl.jaas.config, {} for no text; Unknown where Kafka would refuse it."""
    if not text.strip():
        return {}
    try:
        tokens = _tokens(text)
        module, end = _module(tokens, 0)
    except ValueError:
        return UNREADABLE
    return dict(module.options) if end == len(tokens) else UNREADABLE


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"the text ends within quotes (line {text.count(chr(10), 0, at) + 1})")
        at = match.end()
        if (quoted := match["double"] if match["single"] is None else match["single"]) is not None:
            found.append(("text", ESCAPE.sub(_unescaped, quoted)))
        elif match["skip"] is None:
            found.append(("mark", match["mark"]) if match["mark"] else ("text", match["word"]))
    return found


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    return chr(int(letter, 8)) if letter[0] in "01234567" else CONTROLS.get(letter, letter)
