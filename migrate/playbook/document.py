"""Strict YAML as plain data with its places: the walk over PyYAML's events that reads every YAML file of ours.

None of PyYAML's loaders is used: they take duplicate keys in silence, read `no` as False and `22:22` as 1342, and a
few hundred bytes of aliases expand to hundreds of millions of leaves.  Here scalars stay text; what they mean is
decided by the schema that asks for them.  `kind_of_file` says what a file is where another one was meant.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import os
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from migrate.errors import DocumentNotTrusted, DocumentUnreadable, InputError, MigrateError, YamlRefused
from migrate.model import limits
from migrate.model.trusted import distrust_at
from migrate.model.written import Quoted

MAX_BYTES: Final = limits.most("playbook")
MAX_DEPTH: Final = 32
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH}"
MERGE_KEY: Final = "<<"
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its parser runs


Refusal = TypeVar("Refusal", bound=MigrateError)
Location = tuple[str | int, ...]  # keys and indexes that lead to a place in a document


@dataclass(frozen=True, slots=True)
class Document:
    """A file that passed the walk: its lists, dicts and text, where each of them stands, and the hash of its bytes.

    `places` are lines and columns, counted from 1: of a key, else of an item of a list.
    """

    path: Path
    data: object
    places: Mapping[Location, tuple[int, int]]
    sha256: str

    def where(self, location: Location) -> str:
        """File, line and column of that place, or of the nearest one above it that exists."""
        while location not in self.places:
            location = location[:-1]
        line, column = self.places[location]
        return f"{self.path}:{line}:{column}"

    @property
    def kind(self) -> str:
        """What the file says under `kind`; "" where it says no text."""
        found = self.data.get("kind") if isinstance(self.data, dict) else None
        return str(found) if isinstance(found, str) else ""

    def beside(self, text: str) -> str:
        """A path that the file names: relative to the file's folder."""
        return os.path.normpath(self.path.absolute().parent / text)


def read_deciding(path: Path) -> Document:
    """Read and parse a file by which something is done.

    Raises as `read_document`, and DocumentNotTrusted where others could have written it: an inventory runs commands.
    """
    with contextlib.suppress(OSError, ValueError):  # reading it says more
        _refuse_distrusted(path)
    return read_document(path)


def read_trusted(path: Path) -> bytes:
    """Read a file that another program obeys, as ssh its configuration.  DocumentNotTrusted, OSError."""
    with path.open("rb") as file:
        _refuse_distrusted(path, os.fstat(file.fileno()))
        return file.read()


def _refuse_distrusted(path: Path, status: os.stat_result | None = None) -> None:
    if problem := distrust_at(path, status):
        raise DocumentNotTrusted(problem, where=str(path), next_step="look at it, then chown it, or chmod go-w")


def read_document(path: Path) -> Document:
    """Read and parse one file.

    Raises DocumentUnreadable for what is no UTF-8 text of at most 256 KiB, YamlRefused for what strict YAML forbids.
    """
    try:
        raw = _beginning(path)
    except (OSError, ValueError) as error:  # ValueError: the path is invalid
        why = error.strerror if isinstance(error, OSError) else error
        raise DocumentUnreadable(
            f"the file cannot be read: {why}", where=str(path), next_step=_meant(path, error)
        ) from error
    return parse_document(raw, path)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _meant(path: Path, error: Exception) -> str:
    """The file of a like name in the same folder, where no such file is there; "" where nothing like it is."""
    if not isinstance(error, FileNotFoundError):
        return ""
    with contextlib.suppress(OSError):
        close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
        if close:
            return f"did you mean {path.with_name(close[0])}?"
    return "give the path of a file that is there"


def parse_document(raw: bytes, path: Path) -> Document:
    """The document in these bytes (pure); `path` is for messages.  Raises as read_document does."""
    if (kind := _kind_of_bytes(raw)) is not None:
        raise kind.refusal(DocumentUnreadable, "a playbook or an inventory", path)
    if len(raw) > MAX_BYTES:
        raise DocumentUnreadable(
            f"the file is larger than {MAX_BYTES // 1024} KiB",
            where=str(path),
            why="no playbook or inventory comes near that size: it is probably the wrong file",
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentUnreadable(
            f"the file is not UTF-8: byte {error.start} ({raw[error.start]:#04x}) {error.reason}", where=str(path)
        ) from error
    walk = _Walk(path)
    return Document(path, walk.document(text), walk.places, hashlib.sha256(raw).hexdigest())


class _Walk:
    """Builds the data from events; refuses at the first thing that strict YAML forbids."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[Location, tuple[int, int]] = {}

    def document(self, text: str) -> object:
        events = self._events(text)
        root: object = None
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise self._refused(event, "a second document begins here", "a file holds one document")
                if event.version or event.tags:
                    raise self._refused(event, "a % directive", "directives change how YAML is read; none is needed")
                root = self._value(next(events), events, ())
        if root is None:
            raise YamlRefused(
                "the file is empty",
                where=f"{self.path}:1:1",
                next_step="start from one of playbooks/, or from `kraft-migrate inventory init`",
            )
        return root

    def _events(self, text: str) -> Iterator[Event]:
        """PyYAML's events; its errors, of every class, become ours."""
        try:
            yield from yaml.parse(text, Loader=LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            problem = error.problem or error.context or ""
            # the parser looks ahead for the end of a key, so its own limit may be met before ours
            what = TOO_DEEP if "nesting depth" in problem else f"invalid YAML: {problem}"
            whole = "".join(text.split("\n")[mark.line : mark.line + 1]) if mark else ""
            before = whole[: len(whole) - len(whole.lstrip())]
            if "\t" in before and "cannot start any token" in problem:
                raise YamlRefused(
                    "a tab in the indentation",
                    where=f"{self.path}{place}",
                    why="YAML is indented by spaces alone",
                    next_step="write spaces in place of the tab",
                ) from error
            if mark and problem == "did not find expected key" and mark.column == len(before):
                raise YamlRefused(
                    "the line is indented otherwise than the keys above it",
                    where=f"{self.path}{place}",
                    why=f"{what}: keys of one section begin in the same column",
                    next_step="move the line to the column of the keys that it belongs to",
                ) from error
            raise YamlRefused(what, where=f"{self.path}{place}", why=error.context or "") from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 1
            raise YamlRefused(
                f"a character that YAML does not allow: {error.reason}", where=f"{self.path}:{line}:1"
            ) from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:  # an escape beyond Unicode is a bare ValueError
            raise YamlRefused(f"invalid YAML: {str(error).splitlines()[0]}", where=f"{self.path}:1:1") from error

    def _value(self, event: Event, events: Iterator[Event], at: Location) -> object:
        self._check(event, len(at))
        self.places.setdefault(at, _place(event))  # a key's place is there already
        match event:
            case ScalarEvent():
                return Quoted(self._text(event)) if event.style else self._text(event)
            case SequenceStartEvent():
                items = itertools.takewhile(lambda found: not isinstance(found, SequenceEndEvent), events)
                return [self._value(item, events, (*at, index)) for index, item in enumerate(items)]
            case MappingStartEvent():
                entries: dict[str, object] = {}
                for key in itertools.takewhile(lambda found: not isinstance(found, MappingEndEvent), events):
                    name = self._key(key, at)
                    self.places[*at, name] = _place(key)
                    entries[name] = self._value(next(events), events, (*at, name))
                return entries
            case _:
                raise self._refused(event, "a value is missing", "")

    def _key(self, event: Event, at: Location) -> str:
        self._check(event, len(at) + 1)
        if not isinstance(event, ScalarEvent):
            raise self._refused(event, "a key that is no text", "keys are plain words")
        key = self._text(event)
        if key == MERGE_KEY:
            raise self._refused(event, "a merge key (<<)", "what a file means must be where it is read")
        if not key:
            raise self._refused(event, "an empty key", "keys are plain words")
        if (first := self.places.get((*at, key))) is not None:
            why = f"it is in line {first[0]} already, and only one of them can be meant"
            raise self._refused(event, f"the key {key!r} appears twice", why)
        return key

    def _check(self, event: Event, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._refused(event, TOO_DEEP, "no file of ours needs that")
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            what = f"an alias (*{anchor})" if isinstance(event, AliasEvent) else f"an anchor (&{anchor})"
            raise self._refused(event, what, "what a file means must be where it is read")
        if tag is not None:
            raise self._refused(event, f"a tag ({tag})", "types come from the schema, never from the file")

    def _text(self, event: ScalarEvent) -> str:
        text: str = event.value
        bad = next((letter for letter in text if _forbidden(letter)), None)
        if bad is not None:
            raise self._refused(
                event, f"a control character (U+{ord(bad):04X}) in a value", "names and paths have none"
            )
        return text

    def _refused(self, event: Event, what: str, why: str) -> YamlRefused:
        line, column = _place(event)
        return YamlRefused(what, where=f"{self.path}:{line}:{column}", why=why)


def _forbidden(letter: str) -> bool:
    number = ord(letter)
    return (number < 0x20 and letter not in "\n\t") or 0x7F <= number < 0xA0 or 0xD800 <= number < 0xE000


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    assert mark is not None
    return mark.line + 1, mark.column + 1


INIT: Final = "kraft-migrate inventory init --zookeeper HOST:PORT/CHROOT writes an inventory of a running cluster"


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is, with its article, and the command that takes it; FILE stands for its path."""

    name: str
    use: str
    why: str = ""

    def used(self, path: Path) -> str:
        named = {"FILE": path, "TEXT": path.with_suffix(".txt")}
        return re.sub("FILE|TEXT", lambda word: shlex.quote(str(named[word[0]])), self.use)

    def refusal(self, error: type[Refusal], wanted: str, path: Path) -> Refusal:
        """The error of a command that takes something else, such as `a bundle`."""
        return error(f"this is {self.name}, not {wanted}", where=str(path), why=self.why, next_step=self.used(path))


PLAYBOOK: Final = FileKind("a playbook", "kraft-migrate plan FILE")
INVENTORY: Final = FileKind("an inventory", "kraft-migrate status --inventory FILE")
FLEET: Final = FileKind("a fleet", "kraft-migrate fleet assess FILE")
OURS: Final = {
    "MigrationPlaybook": PLAYBOOK,
    "DirectoryPlaybook": PLAYBOOK,
    "ProtocolPlaybook": PLAYBOOK,
    "Inventory": INVENTORY,
    "Fleet": FLEET,
    "AcceptedDifferences": FileKind(
        "a list of accepted differences", "name it in a playbook: diff.accept of the stage hybrid"
    ),
}
SAVED_PLAN: Final = FileKind("a saved plan", "read its text, TEXT; kraft-migrate status FILE says where it stands")
BUNDLE: Final = FileKind("a bundle", "kraft-migrate bundle show FILE")
BACKUP: Final = FileKind("a backup of ZooKeeper", "kraft-migrate backup restore FILE PLAYBOOK --path PATH")
JOURNAL: Final = FileKind("the journal of a run", "kraft-migrate report, with the run's id or folder")
STRIMZI: Final = FileKind(
    "a Strimzi resource",
    "kraft-migrate explain B-OPS-01",
    "Strimzi migrates the clusters that it operates, and this tool does not",
)
COMPOSE: Final = FileKind("a Docker Compose file", INIT, "the hosts of a cluster are named in an inventory")
ANSIBLE: Final = FileKind("an Ansible file", INIT, "the hosts of a cluster are named in an inventory of ours")
HEAD: Final = 512  # bytes
WRITTEN: Final = (
    (SAVED_PLAN, rb'\{\s*"schema": "kraft-migrate/plan/'),
    (BUNDLE, rb"manifest\.json\0"),
    (BACKUP, rb'\{.*"kraft-migrate/zookeeper-tree/'),
    (JOURNAL, rb"[0-9a-f]{8} [0-9a-f]{8} \{"),
    (ANSIBLE, rb"(\s*([#;].*)?\n)*\[[\w.-]+(:(children|vars))?\]\s*\n"),  # its inventories may be INI files
)


def read_kind(path: Path) -> FileKind | None:
    """What the file at that path is; None where it cannot be read, or is none that is known."""
    try:
        if path.is_dir():
            return None
        raw = _beginning(path)
        return _kind_of_bytes(raw) or kind_of_file(parse_document(raw, path))
    except (InputError, OSError, ValueError):
        return None


def inventory_named(document: Document) -> str:
    """The inventory that a playbook names, as a shell takes it; "" where it names none."""
    match document.data:
        case {"spec": {"cluster": {"inventory": str(text)}}}:
            return shlex.quote(document.beside(text))
    return ""


def refuse_other(error: type[MigrateError], wanted: FileKind, path: Path, next_step: str = "") -> None:
    """Raise the error where the file is another one that is known.

    `next_step` is for a playbook or an inventory: how what is wanted comes of it.
    """
    found = read_kind(path)
    if found is None or found == wanted:
        return
    refusal = found.refusal(error, wanted.name, path)
    if next_step and found in (PLAYBOOK, INVENTORY):
        refusal.next_step = next_step
    raise refusal


def _kind_of_bytes(raw: bytes) -> FileKind | None:
    """What this tool wrote, by its first bytes; None where people write it."""
    if raw.startswith(b"\x1f\x8b"):
        with contextlib.suppress(zlib.error):
            raw = zlib.decompressobj(wbits=31).decompress(raw, HEAD)
    head = raw[:HEAD]
    return next((kind for kind, mark in WRITTEN if re.match(mark, head)), None)


def kind_of_file(document: Document) -> FileKind | None:
    """What a document is (pure); None where it is none that is known."""
    match document.data:
        case [dict(first), *_] if {"hosts", "import_playbook"} & first.keys():
            return ANSIBLE
        case {"apiVersion": str(version)} if version.startswith("kafka.strimzi.io/"):
            return STRIMZI
        case {"kind": _} | {"apiVersion": _}:
            return OURS.get(document.kind)
        case {"services": dict()}:
            return COMPOSE
        case {"all": dict(every)} if {"hosts", "children", "vars"} & every.keys():
            return ANSIBLE
    return None
