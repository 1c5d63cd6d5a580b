"""The value of a sasl.jaas.config: one login module with its options (pure); no word of it stands in a reason.

Source: `JaasConfig` of Kafka's clients: MODULE FLAG NAME=VALUE ... ; as `StreamTokenizer` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from migrate.model.outcome import Unknown

TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<double>(?:[^"\\\n]|\\[^\n])*)"
    |'(?P<single>(?:[^'\\\n]|\\[^\n])*)'
    |(?P<mark>[=;])
    |(?P<word>[^\s=;"']+)
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|.)")
CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
UNREADABLE: Final = Unknown("its sasl.jaas.config cannot be read as one login module with its options")


def options(text: str) -> dict[str, str] | Unknown:
    """The module's options, {} for no text; Unknown where Kafka would refuse it, or might read it otherwise."""
    if not text.strip():
        return {}
    try:
        tokens = list(_tokens(text))
    except ValueError:
        return UNREADABLE
    if len(tokens) < 3 or tokens[-1] != ("mark", ";") or "mark" in {kind for kind, _ in tokens[:2]}:
        return UNREADABLE
    triples, found = tokens[2:-1], {}
    for (kind, name), equals, (other, value) in zip(triples[::3], triples[1::3], triples[2::3], strict=False):
        if "mark" in (kind, other) or equals != ("mark", "="):
            return UNREADABLE
        found[name] = value
    return UNREADABLE if len(triples) % 3 else found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(at)
        at = match.end()
        for kind in ("double", "single"):
            if match[kind] is not None:
                yield "text", ESCAPE.sub(_unescaped, match[kind])
        if match["mark"]:
            yield "mark", match["mark"]
        elif match["word"]:
            yield "text", match["word"]


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    return chr(int(letter, 8) & 0xFF) if letter[0] in "01234567" else CONTROLS.get(letter, letter)
