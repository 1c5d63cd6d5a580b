"""The control file: what a person wishes of a run that goes on in another terminal.

`control.json` in the run's folder, replaced whole by `kraft-migrate control`; the run reads it before every step and in
every wait it may leave.  One file, one wish:

| field | meaning |
|---|---|
| `format` | `kraft-migrate/control/v1` |
| `wish` | `run`; `pause`: wait at the next parking point; `abort`: stop there, once |
| `hold_after` | a stage's name or "": stop behind that stage, until `resume` |
| `by`, `host`, `time`, `reason` | who wished it, where, when (seconds since the epoch), why |

A file that cannot be read is never taken as no wish.  No file: no wish.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from migrate.errors import ControlUnreadable, ControlUnwritable, FileNotReplaced
from migrate.hosts.files import read_within, replace_file
from migrate.model import strict_json
from migrate.model.stage import Stage
from migrate.run import owners

FORMAT: Final = "kraft-migrate/control/v1"
NAME: Final = "control.json"
LOCK: Final = "lock"  # beside the runs' folders


class Wish(StrEnum):
    """What the run shall do at its next parking point."""

    RUN = "run"
    PAUSE = "pause"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Control:
    """The wish as it stands."""

    wish: Wish = Wish.RUN
    hold_after: str = ""
    by: str = ""
    host: str = ""
    time: float = 0.0
    reason: str = ""

    def holds_before(self, stage: Stage) -> bool:
        """Does the run stop before a step of that stage?"""
        return bool(self.hold_after) and stage > Stage.from_label(self.hold_after)

    @property
    def said(self) -> str:
        """Who wished it and why, in a few words."""
        reason = f": {self.reason}" if self.reason else ""
        return f"by {self.by or 'somebody'} on {self.host or 'an unnamed host'}{reason}"


def read(folder: pathlib.Path) -> Control:
    """The wish in a run's folder; ControlUnreadable where the file is none of ours."""
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
    texts = {name: body[name] for name in ("hold_after", "by", "host", "reason")}
    odd = set(body) - {*texts, "format", "wish", "time"}
    if odd or not all(isinstance(value, str) for value in texts.values()):
        message = f"unknown or wrong fields: {', '.join(sorted(odd)) or 'texts expected'}"
        raise ValueError(message)
    time = body["time"]
    if isinstance(time, bool) or not isinstance(time, int | float):
        message = f"time is {time!r}"
        raise TypeError(message)
    if texts["hold_after"]:
        Stage.from_label(texts["hold_after"])  # KeyError for a name that is none
    return Control(wish=Wish(body["wish"]), time=float(time), **texts)


def write(folder: pathlib.Path, control: Control) -> pathlib.Path:
    """Replace the control file, whole or not at all; its path.

    Raises:
        ControlUnwritable: it cannot be written, as on a full disk; how the run is stopped all the same is said.
    """
    path = folder / NAME
    body = {"format": FORMAT, **asdict(control), "wish": control.wish.value}
    try:
        replace_file(str(path), json.dumps(body).encode() + b"\n")
    except FileNotReplaced as error:
        raise ControlUnwritable(
            f"the wish was not written: {error.what}",
            where=str(path),
            why="the run does not know of it, and what was wished before still holds",
            next_step=_by_signal(folder) if control.wish is not Wish.RUN or control.hold_after else "",
        ) from error
    return path


def _by_signal(folder: pathlib.Path) -> str:
    """How a person stops the run without a file: by its process, which the lock beside the run's folder names."""
    try:
        owner = owners.of_file(folder.parent / LOCK)
        told = strict_json.loads(owner.text.encode()) if owner is not None and owner.held else None
    except (OSError, ValueError):
        told = None
    if not isinstance(told, Mapping) or type(told.get("pid")) is not int or not isinstance(told.get("host"), str):
        return "make room or give the right; no run holds the lock beside this folder, so that none has to be stopped"
    return (
        f"to stop the run: `kill -TERM {told['pid']}` on {told['host']}, once: it stops at the next parking point"
        " (E-PARK-02); then make room, and the same `apply` goes on"
    )


def obeyed(folder: pathlib.Path, control: Control) -> None:
    """An abort counts once: the next `apply` goes on.  A newer wish that came in between stays."""
    if read(folder) == control:
        write(folder, replace(control, wish=Wish.RUN))
