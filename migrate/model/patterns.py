"""Patterns of foreign hands: regular expressions matched by an engine that never backtracks twice over one place.

A playbook's topic patterns and a broker's ssl.principal.mapping.rules come from files that people hand over.  Python's
engine takes exponential time for some of them.  Here a pattern becomes a short program, and each of its instructions
runs at most once per position of the text (the bounded backtracker of RE2 does the same): the work is at most
`size * (len(text) + 1)`.  Read are literals, `.`, classes, groups, `|`, repetitions greedy and lazy, `^`, `$`; anything
else is refused with its place.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 1000  # characters of a pattern
LARGEST: Final = 600  # instructions of its program
DEEPEST: Final = 20  # groups inside groups
MOST_REPEATED: Final = 1000
MOST_STEPS: Final = 2_000_000  # about a second
SPECIAL: Final = frozenset("*+?{")
DIGITS, WORD, SPACE = (
    frozenset(string.digits),
    frozenset(string.ascii_letters + string.digits + "_"),
    frozenset(" \t\n\v\f\r"),
)
CLASSES: Final = {"d": DIGITS, "w": WORD, "s": SPACE}
LINE_ENDS: Final = frozenset("\n\r\x85\u2028\u2029")


class PatternRefused(ValueError):
    """The text is no pattern that is read here; the message says what and where."""


@dataclass(frozen=True, slots=True)
class _Letter:
    """One character: of the set, or any that is not."""

    letters: frozenset[str]
    outside: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """The text's begin, or its end."""

    end: bool


@dataclass(frozen=True, slots=True)
class _Save:
    slot: int


@dataclass(slots=True)
class _Split:
    """Two ways on, the better one first."""

    first: int = 0
    second: int = 0


@dataclass(slots=True)
class _Jump:
    to: int = 0


@dataclass(frozen=True, slots=True)
class _Repeat:
    inner: _Node
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class _Group:
    inner: _Node
    number: int | None


@dataclass(frozen=True, slots=True)
class _Row:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Either:
    ways: tuple[_Node, ...]


_Node = _Letter | _Edge | _Repeat | _Group | _Row | _Either
_Code = _Letter | _Edge | _Save | _Split | _Jump
_Saved = tuple[int, int, "_Saved | None"]


@dataclass(slots=True)
class Work:
    """Instructions that were run for one question; PatternRefused above MOST_STEPS."""

    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise PatternRefused(f"the pattern needs more than {MOST_STEPS} steps for this text")


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern was found, and its texts: the whole at 0, then each group; None for one that took no part."""

    begin: int
    end: int
    texts: tuple[str | None, ...]

    def text(self, number: int) -> str:
        """That group's text; "" for one that took no part."""
        return self.texts[number] or ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that is safe to use; made by `compiled`."""

    groups: int
    code: tuple[_Code, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Instructions, the final one among them."""
        return len(self.code) + 1

    def fullmatch(self, text: str, work: Work | None = None) -> Match | None:
        """The match of the whole text, or None.  PatternRefused where it needs more than MOST_STEPS steps."""
        return self._at(text, 0, set(), work or Work(), whole=True)

    def finditer(self, text: str) -> Iterator[Match]:
        """Matches one behind the other, as `Matcher.find` of Java gives them.  Raises as `fullmatch` does."""
        at, work = 0, Work()
        while at <= len(text):
            tried = set[int]()
            tries = (self._at(text, begin, tried, work, whole=False) for begin in range(at, len(text) + 1))
            found = next((one for one in tries if one is not None), None)
            if found is None:
                return
            yield found
            at = found.end if found.end > found.begin else found.end + 1

    def _at(self, text: str, begin: int, tried: set[int], work: Work, *, whole: bool) -> Match | None:
        """The first match there by the order of preference; `tried` holds what led nowhere before."""
        length, code = len(text), self.code
        todo: list[tuple[int, int, _Saved | None]] = [(0, begin, None)]
        while todo:
            pc, at, saved = todo.pop()
            while (key := pc * (length + 1) + at) not in tried:
                tried.add(key)
                work.step()
                if pc == len(code):
                    if whole and at != length:
                        break
                    return Match(begin, at, (text[begin:at], *self._texts(text, saved)))
                match code[pc]:
                    case _Letter(letters, outside):
                        if at == length or (text[at] in letters) is outside:
                            break
                        pc, at = pc + 1, at + 1
                    case _Split(first, second):
                        todo.append((second, at, saved))
                        pc = first
                    case _Jump(to):
                        pc = to
                    case _Save(slot):
                        pc, saved = pc + 1, (slot, at, saved)
                    case _Edge(end):
                        if at != (length if end else 0):
                            break
                        pc += 1
        return None

    def _texts(self, text: str, saved: _Saved | None) -> tuple[str | None, ...]:
        places: dict[int, int] = {}
        while saved is not None:
            slot, at, saved = saved
            places.setdefault(slot, at)
        return tuple(
            text[places[2 * number] : places[2 * number + 1]] if 2 * number + 1 in places else None
            for number in range(self.groups)
        )


def compiled(text: str) -> Pattern:
    """The pattern of that text; PatternRefused where it is none, is too large, or has what is not read here."""
    if len(text) > LONGEST:
        raise PatternRefused(f"a pattern has at most {LONGEST} characters")
    reader = _Reader(text)
    node = reader.whole()
    program = _Program()
    program.add(node)
    return Pattern(reader.groups, tuple(program.code))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self.groups = 0

    def whole(self) -> _Node:
        found = self._either()
        if self._at < len(self._text):
            raise self._refused("a ) closes no group")
        return found

    def _refused(self, why: str) -> PatternRefused:
        return PatternRefused(f"{why}, at character {self._at + 1}")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, why: str) -> str:
        letter = self._peek()
        if not letter:
            raise self._refused(why)
        self._at += 1
        return letter

    def _takes(self, words: str) -> bool:
        if not self._text.startswith(words, self._at):
            return False
        self._at += len(words)
        return True

    def _either(self) -> _Node:
        ways = [self._row()]
        while self._takes("|"):
            ways.append(self._row())
        return ways[0] if len(ways) == 1 else _Either(tuple(ways))

    def _row(self) -> _Node:
        parts: list[_Node] = []
        while (letter := self._peek()) and letter not in "|)":
            parts.append(self._repeated())
        return _Row(tuple(parts))

    def _repeated(self) -> _Node:
        found = self._one()
        if self._peek() not in SPECIAL:
            return found
        if isinstance(found, _Edge):
            raise self._refused("^ and $ are not repeated")
        least, most = self._times()
        if most is None and _may_be_empty(found):
            raise self._refused("what is repeated without end may be empty")
        lazy = self._takes("?")
        if self._peek() in SPECIAL:
            raise self._refused("one repetition follows another")
        return _Repeat(found, least, most, lazy)

    def _times(self) -> tuple[int, int | None]:
        match self._next(""):
            case "*":
                return 0, None
            case "+":
                return 1, None
            case "?":
                return 0, 1
        begin, end = self._at, self._text.find("}", self._at)
        low, comma, high = self._text[begin : max(begin, end)].partition(",")
        known = all(part.isascii() and part.isdecimal() and len(part) < 5 for part in (low, high or "0"))
        if end < 0 or not known:
            raise self._refused("a { begins {n}, {n,} or {n,m}; as a letter it is written \\{")
        self._at = end + 1
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > MOST_REPEATED or (most is not None and most < least):
            raise self._refused(f"a repetition is of 0 to {MOST_REPEATED} times, the smaller number first")
        return least, most

    def _one(self) -> _Node:
        match self._next(""):
            case ".":
                return _Letter(LINE_ENDS, outside=True)
            case "^":
                return _Edge(end=False)
            case "$":
                return _Edge(end=True)
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                letters, outside = self._escaped()
                return _Letter(letters, outside)
            case letter if letter in SPECIAL:
                raise self._refused(f"nothing before {letter} can be repeated")
            case letter:
                return _Letter(frozenset(letter))

    def _group(self) -> _Node:
        number = None
        if not self._takes("?:"):
            if self._peek() == "?":
                raise self._refused("of the groups that begin with (? only (?: is read")
            number = self.groups
            self.groups += 1
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._refused(f"more than {DEEPEST} groups are nested")
        inner = self._either()
        self._depth -= 1
        if not self._takes(")"):
            raise self._refused("a group is not closed")
        return _Group(inner, number)

    def _escaped(self) -> tuple[frozenset[str], bool]:
        letter = self._next("nothing follows a backslash")
        if letter.lower() in CLASSES:
            return CLASSES[letter.lower()], letter.isupper()
        if letter.isalnum():
            raise self._refused(f"\\{letter} is not read here")
        return frozenset(letter), False

    def _class(self) -> _Node:
        outside, found = self._takes("^"), set[str]()
        while (letter := self._next("a [ is not closed")) != "]" or not found:
            if letter in "[]&" and (letter != "&" or self._peek() == "&"):
                raise self._refused(f"{letter} inside of [ ] is written \\{letter}")
            low = self._member(letter)
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                high = self._member(self._next("a [ is not closed"))
                if len(low) != 1 or len(high) != 1 or min(low) > min(high):
                    raise self._refused("a range is of two letters, the smaller one first")
                low = frozenset(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
            found |= low
        return _Letter(frozenset(found), outside)

    def _member(self, letter: str) -> frozenset[str]:
        if letter != "\\":
            return frozenset(letter)
        letters, outside = self._escaped()
        if outside:
            raise self._refused("\\D, \\W and \\S are not read inside of [ ]")
        return letters


def _may_be_empty(node: _Node) -> bool:
    """Engines differ in how often they repeat nothing."""
    match node:
        case _Letter():
            return False
        case _Edge():
            return True
        case _Row(parts):
            return all(map(_may_be_empty, parts))
        case _Either(ways):
            return any(map(_may_be_empty, ways))
        case _Group(inner):
            return _may_be_empty(inner)
        case _Repeat(inner, least):
            return least == 0 or _may_be_empty(inner)


class _Program:
    """The instructions of a pattern; PatternRefused where they become too many."""

    def __init__(self) -> None:
        self.code: list[_Code] = []
        self._added = 0

    def _put(self, code: _Code) -> int:
        self.code.append(code)
        return len(self.code)

    def add(self, node: _Node) -> None:
        self._added += 1
        if max(len(self.code), self._added // 10) > LARGEST:
            raise PatternRefused(f"the pattern is too large: it has more than {LARGEST} parts, repetitions counted out")
        match node:
            case _Letter() | _Edge():
                self._put(node)
            case _Row(parts):
                for part in parts:
                    self.add(part)
            case _Group(inner, None):
                self.add(inner)
            case _Group(inner, int(number)):
                self._put(_Save(2 * number))
                self.add(inner)
                self._put(_Save(2 * number + 1))
            case _Either(ways):
                self._either(ways)
            case _Repeat(inner, least, most, lazy):
                for _ in range(least):
                    self.add(inner)
                if most is None:
                    self._loop(inner, lazy=lazy)
                else:
                    self._options(inner, most - least, lazy=lazy)

    def _either(self, ways: tuple[_Node, ...]) -> None:
        ends = []
        for way in ways[:-1]:
            split = _Split()
            split.first = self._put(split)
            self.add(way)
            ends.append(_Jump())
            split.second = self._put(ends[-1])
        self.add(ways[-1])
        for end in ends:
            end.to = len(self.code)

    def _loop(self, inner: _Node, *, lazy: bool) -> None:
        split = _Split()
        begin = self._put(split)
        self.add(inner)
        behind = self._put(_Jump(begin - 1))
        split.first, split.second = (behind, begin) if lazy else (begin, behind)

    def _options(self, inner: _Node, times: int, *, lazy: bool) -> None:
        splits = []
        for _ in range(times):
            splits.append(_Split())
            splits[-1].first = self._put(splits[-1])
            self.add(inner)
        for split in splits:
            split.second = len(self.code)
            if lazy:
                split.first, split.second = split.second, split.first
