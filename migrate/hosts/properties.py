"""Properties files as Kafka reads them (java.util.Properties, Latin-1), edited with all other bytes unchanged."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import javaproperties
from javaproperties.reading import KeyValue, PropertiesElement

from migrate.errors import BadProperties, ConfigUnreadable, DuplicateProperty
from migrate.hosts.collect_disks import (
    DIGEST,
    HIDDEN,
    REFERENCE,
    SECRET_INSIDE,
    is_sensitive,
    redact,
    redacted_value,
)
from migrate.model.ids import NodeId
from migrate.model.kafka_values import entries, trim
from migrate.model.ports import Files, target_of
from migrate.model.secrets import SENSITIVE, hidden
from migrate.model.views import ConfigFile, NoFile

_LINE_END = re.compile(r"\r\n|\r|\n")
_ASSIGNED: Final = re.compile(r"(?<![\w.-])([\w.-]+)(\s*=\s*|[\"']\s*:\s*)(\"[^\"]*\"|'[^']*'|[^\s,;\"')}\]]+)")
_REFUSED: Final = re.compile(r"(Invalid value )(.*)( for configuration )([\w.-]+)")
_IN_ADDRESS: Final = re.compile(r"(://)[^/\s@]*@")
_AUTHORIZATION: Final = re.compile(r"\b(basic|bearer)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_BEFORE_VALUE = re.compile(r"[ \t\f]*(?:\\.|[^=:\s\\])+[ \t\f]*[=:]?[ \t\f]*")  # of a key on one line
_DANGLING = re.compile(r"(?<!\\)((?:\\\\)*)\\$")  # a continuation that nothing follows


def load(raw: bytes, where: str = "") -> dict[str, str]:
    r"""Read key to value as java.util.Properties does, blanks behind a value included.

    The last of duplicate keys wins, and lines continue after a backslash.  `meta.properties` is read like this.

    Raises:
        BadProperties: a `\u` escape that Java refuses too.
    """
    return {element.key: element.value for element in _elements(raw, where) if isinstance(element, KeyValue)}


def parse(raw: bytes, where: str = "") -> dict[str, str]:
    """Read a node's configuration: `load`, and each value trimmed.

    Kafka trims values of every type, passwords too, before it looks at them (`ConfigDef.parseType`).  All comparisons
    see these values, so a blank at the end of a line never makes a difference.

    Raises:
        BadProperties: as `load`.
    """
    return {key: trim(value) for key, value in load(raw, where).items()}


def duplicates(raw: bytes, where: str = "") -> tuple[str, ...]:
    """Keys that appear more than once, in the order of their second appearance."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for element in _elements(raw, where):
        if isinstance(element, KeyValue):
            if element.key in seen:
                again[element.key] = None
            seen.add(element.key)
    return tuple(again)


def edit(raw: bytes, set_: Mapping[str, str], remove: Iterable[str] = (), where: str = "") -> bytes:
    """Set and remove those keys; comments, order, line ends and all other bytes stay.

    A key that has the wanted value already keeps its line.  A key that changes keeps its spelling, its separator and,
    where the new value begins with the old one, the old text with its continuation lines.  Values are escaped only
    where Java needs it: `INTERNAL:PLAINTEXT` stays that.  New keys are at the end, in the order given.

    Raises:
        DuplicateProperty: a key that would be changed appears twice: which of them a person meant is not ours to say.
        BadProperties: the file cannot be parsed.
    """
    gone = frozenset(remove)
    if both := gone & set_.keys():
        message = f"keys both set and removed: {sorted(both)}"
        raise ValueError(message)
    elements, now = _elements(raw, where), parse(raw, where)
    touched = gone | {key for key, value in set_.items() if now.get(key) != trim(value)}
    if twice := [key for key in duplicates(raw, where) if key in touched]:
        raise DuplicateProperty(f"set more than once, and to be changed: {', '.join(twice)}", where=where)
    end = "\r\n" if b"\r\n" in raw else "\n"
    lines = [_edited(element, touched, set_, end) for element in elements]
    have = set(map(_key, elements))
    text = "".join(lines)
    added = "".join(_line(key, set_[key]) + end for key in set_ if key not in have)
    after = (_closed(text, end) + added if added else text).encode("latin-1")
    wanted = {key: value for key, value in now.items() if key not in gone}
    wanted |= {key: trim(value) for key, value in set_.items()}
    if parse(after) != wanted:  # the parser must read exactly what was wanted
        message = "the edited properties do not read back as wanted"
        raise AssertionError(message)
    return after


def restore_keys(raw: bytes, earlier: bytes, keys: Iterable[str], where: str = "") -> bytes:
    """Return `raw` with those keys as `earlier` has them: its value, its line and its place, or no such key at all.

    Everything else stays as it is in `raw`: keys, comments and their order.  Where only those keys differ the result is
    `earlier` to the byte.

    Raises:
        DuplicateProperty: one of the keys appears twice in `raw`.
        BadProperties: either file cannot be parsed.
    """
    owned = frozenset(keys)
    old, now = _elements(earlier, where), _elements(raw, where)
    values = parse(earlier, where)
    back = {key: value for key, value in values.items() if key in owned}
    plain = edit(raw, back, owned - back.keys(), where)  # the same keys and values, but new lines at the end
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, [*map(_token, old)], [*map(_token, now)], autojunk=False)
    for tag, start, end, begin, stop in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(old[start:end], now[begin:stop], strict=True)
            for one, two in pairs:  # equal but for the end of the line
                same = one.source.rstrip("\r\n") == two.source.rstrip("\r\n")
                lines.append(one.source if same or _key(one) in owned else two.source)
            continue
        lines += [one.source for one in old[start:end] if _key(one) in owned]
        lines += [two.source for two in now[begin:stop] if _key(two) not in owned]
    *most, last = lines or [""]
    eol = "\r\n" if b"\r\n" in raw else "\n"
    placed = "".join([*(line if line.endswith(("\r", "\n")) else line + eol for line in most), last]).encode("latin-1")
    return placed if parse(placed, where) == parse(plain, where) else plain


def _token(element: PropertiesElement) -> str:
    """The identity of an element: its key, or a comment's text."""
    return f"={element.key}" if isinstance(element, KeyValue) else element.source.strip()


def _key(element: PropertiesElement) -> str | None:
    return element.key if isinstance(element, KeyValue) else None


def _edited(element: PropertiesElement, touched: frozenset[str], set_: Mapping[str, str], end: str) -> str:
    if not isinstance(element, KeyValue) or element.key not in touched:
        return element.source
    if element.key not in set_:
        return ""
    return _relined(element, set_[element.key]) + (end if element.source.endswith(("\r", "\n")) else "")


def _relined(element: KeyValue, value: str) -> str:
    """The key's line as its owner wrote it, with another value: the first of three texts that reads back as that."""
    old, source = trim(element.value), element.source.rstrip("\r\n")
    texts = []
    if old and value.startswith(old):
        texts.append(_DANGLING.sub(r"\1", source).rstrip() + _escaped(value[len(old) :], begins=False))
    if found := _BEFORE_VALUE.match(source):
        texts.append(found[0] + _escaped(value))
    wanted = {element.key: trim(value)}
    return next((text for text in texts if parse(text.encode("latin-1")) == wanted), _line(element.key, value))


def _line(key: str, value: str) -> str:
    return f"{javaproperties.escape(key)}={_escaped(value)}"


def _escaped(value: str, *, begins: bool = True) -> str:
    """A value as java.util.Properties reads it back; `begins`: it is the value's begin, where blanks would be lost."""
    text = "".join(char if " " <= char <= "~" and char != "\\" else javaproperties.escape(char) for char in value)
    return "\\" + text if begins and text.startswith(" ") else text


def _closed(text: str, end: str) -> str:
    """The text, with a line end that lets another line follow."""
    if not text:
        return text
    body = text.rstrip("\r\n")
    tail = text[len(body) :]
    if tail in ("", "\n", "\r", "\r\n") and (closed := _DANGLING.sub(r"\1", body)) != body:
        return _closed(closed + tail, end)  # what is before it may be a continuation, too
    return body + (tail or end)


@lru_cache(maxsize=256)
def _parsed(raw: bytes) -> tuple[PropertiesElement, ...]:
    """Cached, because every gate reads the same files of the same nodes again."""
    return tuple(javaproperties.parse(raw))


def _elements(raw: bytes, where: str) -> tuple[PropertiesElement, ...]:
    try:
        return _parsed(raw)
    except javaproperties.InvalidUEscapeError as error:
        raise BadProperties(
            f"a malformed escape: {error.escape}", where=where, why="Kafka refuses to load such a file"
        ) from error


# -- for people --------------------------------------------------------------------------------------------------
def for_people(name: str, value: str) -> str:
    """The value of that key; `(sensitive)` for what may be a secret, and for what stands in a secret's place."""
    return _anew(redacted_value(name, value, lambda _value: SENSITIVE), lambda _value: SENSITIVE)


def _anew(text: str, hide: Callable[[str], str]) -> str:
    """Digests and placeholders of a bundle or a collector's answer, hidden as the secrets themselves would be."""
    return DIGEST.sub(lambda found: hide(found[0]), text.replace(HIDDEN, hide(HIDDEN)))


def plain_value(name: str, value: str) -> str | None:
    """The value of that key; None where it may be a secret, or a text with one in it."""
    return value if for_people(name, value) == value else None


def is_secret(name: str, value: str) -> bool:
    """Is that a password, by its key or by its text, and no reference that a configuration provider resolves?"""
    return (is_sensitive(name) or SECRET_INSIDE.search(value) is not None) and not REFERENCE.fullmatch(value)


def log_line(line: str) -> str:
    """A line of a process's log as it may be shown and kept: what may be a secret in it is `(sensitive)`."""

    def assigned(found: re.Match[str]) -> str:
        return found[1] + found[2] + SENSITIVE if is_sensitive(found[1]) else found[0]

    def refused(found: re.Match[str]) -> str:  # as Kafka's ConfigException says it
        return found[1] + SENSITIVE + found[3] + found[4] if is_sensitive(found[4]) else found[0]

    text = _IN_ADDRESS.sub(rf"\1{SENSITIVE}@", _AUTHORIZATION.sub(rf"\1 {SENSITIVE}", line))
    return _ASSIGNED.sub(assigned, _REFUSED.sub(refused, text))


def diff(before: bytes, after: bytes, path: str, names: tuple[str, str] = ("now", "then")) -> list[str]:
    """Unified diff lines without line ends; what may be a secret is hidden, comments are left out; empty when equal."""
    return list(
        difflib.unified_diff(
            _shown(before, path), _shown(after, path), f"{path} ({names[0]})", f"{path} ({names[1]})", lineterm=""
        )
    )


def _shown(raw: bytes, where: str) -> list[str]:
    _elements(raw, where)  # raises where Kafka could not load it
    text = _anew(redact(raw, hidden).decode("latin-1"), hidden)
    return [_printable(line) for line in _LINE_END.split(text.rstrip("\r\n"))] if text else []


def _printable(line: str) -> str:
    """Control characters escaped: no forged lines."""
    return "".join(char if char.isprintable() or char == "\t" else f"\\x{ord(char):02x}" for char in line)


DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"  # noqa: S108 - Kafka's own default
SLASHES: Final = re.compile("/+")


def read_config(files: Files, node: NodeId, path: str) -> ConfigFile | NoFile:
    """The node's properties file, or that there is none.

    Raises:
        ConfigUnreadable: it is a link that its host does not allow, or not ours to read.
        BadProperties: Kafka would refuse to load it.
    """
    try:
        raw, target = files.read(node, path), target_of(files, node, path)
    except FileNotFoundError:
        return NoFile(path)
    except OSError as error:
        raise ConfigUnreadable(
            f"the configuration of node {node} cannot be read: {error.strerror or error}", where=path
        ) from error
    return ConfigFile(node, path, raw, hashlib.sha256(raw).hexdigest(), parse(raw, path), target=target)


def with_content(file: ConfigFile, raw: bytes) -> ConfigFile:
    """The same file, had it that content.  BadProperties: as `parse`."""
    return replace(file, raw=raw, sha256=hashlib.sha256(raw).hexdigest(), values=parse(raw, file.path))


def log_dirs(values: Mapping[str, str]) -> tuple[str, ...]:
    """log.dirs, log.dir, or Kafka's default; in the file's order, in Kafka's spelling (`KafkaConfig.logDirs`)."""
    listed = values.get("log.dirs") or values.get("log.dir") or DEFAULT_LOG_DIR
    return tuple(map(spell_as_broker, entries(listed)))


def spell_as_broker(path: str) -> str:
    """Spell a directory as its broker reports it: no doubled or trailing slash; `.`, `..` and links stay.

    DescribeLogDirs answers `java.io.File.getAbsolutePath` (`ReplicaManager.describeLogDirs`): another spelling is
    another directory to whoever looks for the one that a broker calls offline.
    """
    single = SLASHES.sub("/", path)
    return single.rstrip("/") or single


def all_directories(values: Mapping[str, str]) -> tuple[str, ...]:
    """The log directories, and the metadata directory where it is apart from them."""
    apart = metadata_log_dir(values)
    return (*log_dirs(values), *([apart] if apart else []))


def metadata_log_dir(values: Mapping[str, str]) -> str | None:
    """metadata.log.dir where it is not one of log.dirs, else None (then it is the first of them)."""
    apart = values.get("metadata.log.dir", "")
    if not apart or os.path.normpath(apart) in map(os.path.normpath, log_dirs(values)):
        return None
    return spell_as_broker(apart)
