"""The journal: append-only lines, each with its length, CRC-32C and the hash of the line before.

A line is `LENGTH CRC JSON`: eight hex digits each, then the JSON text.  File and folder are fsynced before `append`
returns.  A torn last line is what a kill leaves: it is cut off when the journal is opened to go on; any other damage is
refused.  What the events mean stands in `migrate.model.history`.

Durations are those of our own acts and proofs, so they are bounds from above: the cluster was never without a
controller for longer than from the first stop that the quorum noticed to the znode's deletion, and no broker away for
longer than from its stop to its proof.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import google_crc32c

from migrate.errors import JournalDamaged, JournalUnwritable
from migrate.hosts.files import read_within
from migrate.model import strict_json
from migrate.model.history import ENDED_WELL, Event, misshapen
from migrate.model.outcome import Refused
from migrate.model.trusted import distrust_at

START: Final = "0" * 64
HEAD: Final = 18  # two times eight hex digits, each with a blank behind it


@dataclass(frozen=True, slots=True)
class Reading:
    events: tuple[Event, ...]
    good_bytes: int
    last_hash: str
    torn: bool


class Writer(Protocol):
    """Appends an event, and shows it to whoever listens."""

    def __call__(self, name: str, **data: Any) -> None: ...


def _line(number: int, time: float, name: str, data: Mapping[str, Any], previous: str) -> bytes:
    body = {"n": number, "t": round(time, 3), "event": name, "data": data, "prev": previous}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return b"%08x %08x %s\n" % (len(text), google_crc32c.value(text), text)


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def read(path: pathlib.Path) -> Reading:
    """Read and check a journal; JournalDamaged where a line that is not the last is wrong, or it is too large."""
    try:
        return decode(read_within(path, "journal"), str(path))
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise JournalDamaged(str(error), where=str(path)) from error


def decode(raw: bytes, where: str) -> Reading:
    """The same of its bytes (pure); `where` is for the error."""
    events: list[Event] = []
    previous, good = START, 0
    for number, line in enumerate(raw.splitlines(keepends=True)):
        event = _event(line, number, previous)
        if isinstance(event, Refused):
            if good + len(line) == len(raw) and not _is_whole(line) and _may_be_torn(line):
                return Reading(tuple(events), good, previous, torn=True)
            raise JournalDamaged(f"line {number + 1}: {event.reason}", where=where)
        events.append(event)
        previous = _hash(line)
        good += len(line)
    return Reading(tuple(events), good, previous, torn=False)


def _may_be_torn(line: bytes) -> bool:
    """Could a kill have left this?  Not if the line is longer than it announces: two ran together."""
    try:
        announced = int(line[:8], 16)
    except ValueError:
        return len(line) < HEAD
    return len(line) <= HEAD + announced + 1


def _is_whole(line: bytes) -> bool:
    text = line[HEAD:-1]
    return line.endswith(b"\n") and line[:HEAD] == b"%08x %08x " % (len(text), google_crc32c.value(text))


def _event(line: bytes, number: int, previous: str) -> Event | Refused:
    if not _is_whole(line):
        return Refused("its length or checksum does not fit")
    try:
        body = strict_json.loads(line[HEAD:-1])
    except strict_json.NotStrictJson as error:
        return Refused(str(error))
    if not isinstance(body, dict) or set(body) != {"n", "t", "event", "data", "prev"}:
        return Refused("it lacks a field")
    kinds = (("n", int), ("t", int | float), ("event", str), ("data", dict), ("prev", str))
    if not all(isinstance(body[name], kind) for name, kind in kinds):
        return Refused("a field is of another type")
    if body["n"] != number or body["prev"] != previous:
        return Refused("it does not follow the line before it")
    event = Event(body["n"], body["t"], body["event"], body["data"])
    return Refused(problem) if (problem := misshapen(event)) else event


class Journal:
    """A journal that is being written; made by `begin` or `resume`."""

    def __init__(self, path: pathlib.Path, reading: Reading) -> None:
        self.path = path
        self._events = list(reading.events)
        self._previous = reading.last_hash
        self._good = reading.good_bytes
        self.between: Callable[[str], None] = lambda _: None  # a crash point between the write and its fsync
        try:
            self._file = path.open("r+b" if path.exists() else "x+b", buffering=0)
            self._file.truncate(reading.good_bytes)
            self._file.seek(reading.good_bytes)
            path.chmod(0o600)
        except OSError as error:
            raise JournalUnwritable(f"the journal cannot be opened: {error}", where=str(path)) from error

    @classmethod
    def begin(cls, path: pathlib.Path, time: float, header: Mapping[str, Any]) -> Journal:
        journal = cls(path, Reading((), 0, START, torn=False))
        journal.append(time, "run", header)
        return journal

    @classmethod
    def opened(cls, path: pathlib.Path, time: float, header: Mapping[str, Any]) -> Journal:
        """Go on with the journal that is there; begin it where there is none, or a kill left half a first line."""
        if not path.exists():
            return cls.begin(path, time, header)
        journal = cls.resume(path)
        if not journal.events:
            journal.append(time, "run", header)
        return journal

    @classmethod
    def resume(cls, path: pathlib.Path) -> Journal:
        """Go on with a journal; a torn last line is cut off.

        Raises JournalDamaged where another user could have written it: its sums are no secret.
        """
        if problem := distrust_at(path):
            raise JournalDamaged(f"it cannot be trusted: {problem}", where=str(path))
        return cls(path, read(path))

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def append(self, time: float, name: str, data: Mapping[str, Any]) -> Event:
        """Write one event; it is on disk when this returns.  JournalUnwritable if it cannot be.

        Names of files may hold what is no UTF-8: it is written as `?`, for a reader refuses it.
        """
        text = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        event = Event(len(self._events), round(time, 3), name, strict_json.mapping(text))
        line = _line(event.number, event.time, name, event.data, self._previous)
        try:
            _write_whole(self._file, line)
            self.between(f"unsynced:{name}")
            os.fsync(self._file.fileno())
            _sync_folder(self.path.parent)
        except OSError as error:
            self._cut_back()
            raise JournalUnwritable(f"the journal cannot be written: {error}", where=str(self.path)) from error
        except BaseException:  # Ctrl-C: what comes next must not stand behind half a line
            self._cut_back()
            raise
        self._events.append(event)
        self._previous = _hash(line)
        self._good += len(line)
        return event

    def _cut_back(self) -> None:
        """To the last line that was written whole; where even that fails, the next reader cuts it off."""
        with contextlib.suppress(OSError):
            self._file.truncate(self._good)
            self._file.seek(self._good)

    def close(self) -> None:
        self._file.close()


def _write_whole(file: io.FileIO, line: bytes) -> None:
    """An unbuffered file on a disk that fills up takes a part of the line, and says no more than how much."""
    written = file.write(line)
    if written != len(line):
        raise OSError(errno.ENOSPC, f"{written} of {len(line)} bytes were taken")


def _sync_folder(folder: pathlib.Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_complete(events: Iterable[Event]) -> bool:
    """Is its plan carried out to the end?"""
    return any(event.name == "end" for event in events)


def begun(events: tuple[Event, ...]) -> frozenset[str]:
    """Ids of the steps with an intent: their effects may have happened, in part or in whole."""
    return frozenset(event.data["step"] for event in events if event.name == "intend")


def starts(events: Iterable[Event]) -> Iterator[tuple[str, int]]:
    """Step and node of each start that a run has ordered."""
    for event in events:
        if event.name == "effect" and event.data["effect"] == "start":
            yield event.data["step"], int(event.data["node"])


def notes(events: tuple[Event, ...]) -> dict[str, str]:
    """The facts that the run noted; the last value of a key holds."""
    return {event.data["key"]: event.data["value"] for event in events if event.name == "note"}


CONTROLLER: Final = "/controller"
GAP: Final = "gap:controller"
AWAY: Final = "away:"


@dataclass(frozen=True, slots=True)
class Gap:
    """From the stop that takes the quorum's majority to the end of /controller's deletion, in the epoch's seconds."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def controller_gap(events: Iterable[Event], stop_step: str = "stop-controllers") -> Gap | None:
    """The gap of a rollback; None where /controller was not deleted, or no controller stopped by this journal.

    A majority is lost with the second stop of three: half of the stops, rounded up.
    """
    stops, deleted, pending = [], None, False
    for event in events:
        deletes = event.name in ("effect", "effected") and event.data["effect"] == "delete-znode"
        deletes = deletes and event.data["node"] == CONTROLLER
        if pending or (deletes and event.name == "effected"):
            deleted, pending = event.time, False  # its end; killed before it was written: the next sign of life
        if event.name == "effect" and event.data["effect"] == "stop" and event.data["step"].endswith(stop_step):
            stops.append(event.time)
        pending = deletes and event.name == "effect"
    if not stops or deleted is None:
        return None
    return Gap(stops[len(stops) // 2], deleted)


def away(events: Iterable[Event]) -> dict[int, float]:
    """Node -> seconds from the first order to stop it, in each step, to that step's proof, added up."""
    stopped: dict[str, tuple[int, float]] = {}
    found: dict[int, float] = {}
    for event in events:
        if event.name == "effect" and event.data["effect"] == "stop" and not event.data["step"].endswith("controllers"):
            stopped.setdefault(event.data["step"], (int(event.data["node"]), event.time))
        elif event.name == "conclude" and event.data["step"] in stopped:
            if event.data["outcome"] not in ENDED_WELL:
                continue  # refused half way: the node is still down
            node, began = stopped.pop(event.data["step"])
            found[node] = found.get(node, 0.0) + event.time - began
    return found


def measures(events: Iterable[Event]) -> Mapping[str, str]:
    """Both as the journal's notes: `gap:controller`, `away:1`; seconds as text."""
    listed = tuple(events)
    found = {f"{AWAY}{node}": f"{seconds:.1f}" for node, seconds in sorted(away(listed).items())}
    gap = controller_gap(listed)
    return found if gap is None else {GAP: f"{gap.seconds:.1f}", **found}
