"""The control file: what a person asks of a run in progress in another terminal.

`control.json` in the run's folder, replaced whole by `kraft-migrate control`; the run reads it before every step and in
every wait it may leave.  One file, one request:

| field | meaning |
|---|---|
| `format` | `kraft-migrate/control/v1` |
| `request` | `run`; `pause`: wait at the next parking point; `abort`: stop there, once |
| `hold_after` | a stage's name or "": stop behind that stage, until `resume` |
| `by`, `host`, `time`, `reason` | who requested it, where, when (seconds since the epoch), why |

A file that cannot be read is never taken as no request.  No file: no request.  Files of 0.1 have `wish` for `request`.
"""

from __future__ import annotations

import json
import pathlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from migrate.errors import ControlUnreadable, ControlUnwritable, FileNotReplaced
from migrate.hosts.files import read_within, replace_file
from migrate.model import strict_json
from migrate.model.history import Event
from migrate.model.stage import Stage
from migrate.run import locks

FORMAT: Final = "kraft-migrate/control/v1"
BEFORE_0_2: Final = {"wish": "request"}
NAME: Final = "control.json"
LOCK: Final = "lock"  # beside the runs' folders


class Request(StrEnum):
    RUN = "run"
    PAUSE = "pause"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Control:
    request: Request = Request.RUN
    hold_after: str = ""
    by: str = ""
    host: str = ""
    time: float = 0.0
    reason: str = ""

    def holds_before(self, stage: Stage) -> bool:
        return bool(self.hold_after) and stage > Stage.from_label(self.hold_after)

    @property
    def said(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"by {self.by or 'somebody'} on {self.host or 'an unnamed host'}{reason}"


def read(folder: pathlib.Path) -> Control:
    path = folder / NAME
    try:
        raw = read_within(path, "control")
    except FileNotFoundError:
        return Control()
    except OSError as error:
        raise ControlUnreadable(f"it cannot be read: {error.strerror}", where=str(path)) from error
    try:
        return _parsed(strict_json.loads(raw))
    except (ValueError, TypeError, KeyError) as error:
        raise ControlUnreadable(f"it is no control file: {error}", where=str(path)) from error


def _parsed(body: Any) -> Control:
    if not isinstance(body, Mapping) or body.get("format") != FORMAT:
        message = f"format is not {FORMAT}"
        raise ValueError(message)
    if any(old in body and new in body for old, new in BEFORE_0_2.items()):
        message = "it has both the key of 0.1 and its replacement"
        raise ValueError(message)
    body = {BEFORE_0_2.get(name, name): value for name, value in body.items()}
    texts = {name: body[name] for name in ("hold_after", "by", "host", "reason")}
    odd = set(body) - {*texts, "format", "request", "time"}
    if odd or not all(isinstance(value, str) for value in texts.values()):
        message = f"unknown or wrong fields: {', '.join(sorted(odd)) or 'texts expected'}"
        raise ValueError(message)
    time = body["time"]
    if isinstance(time, bool) or not isinstance(time, int | float):
        message = f"time is {time!r}"
        raise TypeError(message)
    if texts["hold_after"]:
        Stage.from_label(texts["hold_after"])  # KeyError for a name that is none
    return Control(request=Request(body["request"]), time=float(time), **texts)


def write(folder: pathlib.Path, control: Control) -> pathlib.Path:
    """Replace the control file, whole or not at all; its path.

    Raises:
        ControlUnwritable: it cannot be written, as on a full disk; how the run is stopped all the same is said.
    """
    path = folder / NAME
    body = {"format": FORMAT, **asdict(control), "request": control.request.value}
    try:
        replace_file(str(path), json.dumps(body).encode() + b"\n")
    except FileNotReplaced as error:
        raise ControlUnwritable(
            f"the request was not written: {error.what}",
            where=str(path),
            why="the run does not know of it, and what was requested before still holds",
            next_step=_by_signal(folder) if control.request is not Request.RUN or control.hold_after else "",
        ) from error
    return path


def _by_signal(folder: pathlib.Path) -> str:
    """How a person stops the run without a file: by its process, which the lock beside the run's folder names."""
    try:
        owner = locks.file_owner(folder.parent / LOCK)
        told = strict_json.loads(owner.text.encode()) if owner is not None and owner.held else None
    except (OSError, ValueError):
        told = None
    if not isinstance(told, Mapping) or type(told.get("pid")) is not int or not isinstance(told.get("host"), str):
        return "make room or give the right; no run holds the lock beside this folder, so that none has to be stopped"
    return (
        f"to stop the run: `kill -TERM {told['pid']}` on {told['host']}, once: it stops at the next parking point"
        " (E-PARK-02); then make room, and the same `apply` resumes"
    )


def clear_abort(folder: pathlib.Path, control: Control) -> None:
    """An abort counts once: the next `apply` resumes.  A newer request that came in between stays."""
    if read(folder) == control:
        write(folder, replace(control, request=Request.RUN))


SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class ParkRequest:
    """Did somebody ask the run to park?  `by` names what: Ctrl-C, SIGTERM."""

    def __init__(self) -> None:
        self.by = ""


@contextmanager
def parking_on_interrupt(request: ParkRequest, say: Callable[[str], None]) -> Iterator[None]:
    """While this lasts the first signal only asks to park; the second raises KeyboardInterrupt where it hits.

    Outside of the main thread nothing is changed: Python handles signals there only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: object) -> None:
        if request.by:
            raise KeyboardInterrupt
        request.by = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
        say(f"{request.by}: the run parks at the next safe point; once more stops it now, with a step half done")

    before: dict[int, Any] = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def half_done(events: tuple[Event, ...]) -> str:
    step, effect = "", ""
    for event in events:
        match event.name:
            case "intend":
                step, effect = str(event.data["step"]), ""
            case "effect":
                effect = f"{event.data['effect']} of {event.data['node']}"
            case "effected":
                effect = ""
            case "conclude":
                step, effect = "", ""
            case _:
                pass
    if not step:
        return "no step is half done"
    if effect:
        return f"step {step} is half done: {effect} was begun and not seen to end"
    return f"step {step} is half done: between two effects, or not proven yet"
