"""Patterns of foreign hands: regular expressions matched by RE2, whose time grows with the text and never explodes.

A playbook's topic patterns and a broker's ssl.principal.mapping.rules come from files that people hand over; Python's
engine takes exponential time for some of them.  RE2 refuses what it cannot match in bounded time (backreferences, looks
ahead and behind).  Kafka's rules are Java's patterns: what Java takes for something else is refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import re2

LONGEST: Final = 1000  # characters of a pattern
MEMORY: Final = 1 << 20  # bytes of a compiled one


class PatternRefused(ValueError):
    """The text is no pattern that is read here; the message says why."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern was found, and its texts: the whole at 0, then each group; "" for one that took no part."""

    begin: int
    end: int
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that is safe to use; made by `compiled` or `compiled_as_java`."""

    groups: int
    _regexp: Any = field(repr=False)

    def fullmatch(self, text: str) -> bool:
        """Does it match the whole text?  A text that is not Unicode is matched by none."""
        return _is_unicode(text) and self._regexp.fullmatch(text) is not None

    def finditer(self, text: str) -> Iterator[Match]:
        """Matches one behind the other, as `Matcher.find` of Java gives them."""
        for found in self._regexp.finditer(text) if _is_unicode(text) else ():
            texts = tuple(found.group(number) or "" for number in range(self.groups + 1))
            yield Match(found.start(), found.end(), texts)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def compiled(text: str) -> Pattern:
    """The pattern of that text, in RE2's syntax; PatternRefused where it is none, or too large."""
    if len(text) > LONGEST:
        raise PatternRefused(f"a pattern has at most {LONGEST} characters")
    if not _is_unicode(text):
        raise PatternRefused("it is no Unicode text")
    options = re2.Options()
    options.log_errors, options.max_mem = False, MEMORY
    try:
        found = re2.compile(text, options)
    except re2.error as error:
        said = error.args[0]
        raise PatternRefused(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
    return Pattern(found.groups, found)


TOKEN: Final = re.compile(
    r"""\\(?P<escaped>.)
    |(?P<set>\[\^?(?P<members>(?![\]^])(?:\\.|[^\]\\])+)\])
    |(?P<open>\((?:\?:)?(?!\?))
    |(?P<close>\))
    |(?P<times>[*+?]|\{(?P<least>[0-9]{1,4})(?P<comma>,(?P<most>[0-9]{0,4}))?\})\??
    |(?P<or>\|)
    |(?P<edge>[\^$])
    |(?P<letter>[^\\\[{(*+?])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPED: Final = re.compile(r"[^0-9A-Za-z]|[dDwWsS]", re.DOTALL)
UNLIKE_IN_SET: Final = re.compile(r"(?:^|[^\\])(?:\\\\)*(?:\[|&&|\\(?![dws])[0-9A-Za-z])")
LINE_ENDS: Final = frozenset("\n\v\r\x85\u2028\u2029")  # `.`, `$` and `\s` differ there


def compiled_as_java(text: str) -> Pattern:
    r"""The same, where Java takes it for the same pattern, for texts without LINE_ENDS; else PatternRefused.

    Java has intersections and unions of sets, and other escapes, flags and braces; and the engines differ in how often
    they repeat what may be empty, and so in its groups.
    """
    at, last, edge = 0, None, False  # may what a repetition would repeat be empty?  None: there is nothing
    frames = [[False, True]]  # of each open group: an earlier alternative may be empty; this one, so far
    while at < len(text):
        found = TOKEN.match(text, at)
        escaped = found and found["escaped"]
        if (
            found is None
            or (escaped and not ESCAPED.fullmatch(escaped))
            or UNLIKE_IN_SET.search(found["members"] or "")
        ):
            raise PatternRefused(f"not read as Java reads it, at character {at + 1}")
        at = found.end()
        if times := found["times"]:
            least = int(found["least"] or times == "+")
            most = least if found["least"] and not found["comma"] else int(found["most"] or times == "?")
            if last and (most != 1 or edge):
                raise PatternRefused(f"what is repeated may be empty, at character {at}")
            last = last or least == 0
            continue
        if last is not None:
            frames[-1][1] &= last
        last = edge = found["edge"] is not None
        if found["open"] or found["or"]:
            last = None
        if found["open"]:
            frames.append([False, True])
        elif found["or"]:
            frames[-1] = [any(frames[-1]), True]
        elif found["close"] and len(frames) > 1:
            last = any(frames.pop())
    return compiled(text)
