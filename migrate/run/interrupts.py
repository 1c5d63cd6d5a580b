"""Ctrl-C, SIGTERM and SIGHUP: the first asks the run to park, the second stops it where it is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from migrate.model.history import Event

SIGNALS: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class ParkRequest:
    """Did somebody ask the run to park?  `by` names what: Ctrl-C, SIGTERM, SIGHUP."""

    def __init__(self) -> None:
        self.by = ""


@contextmanager
def parking_on_interrupt(request: ParkRequest, say: Callable[[str], None]) -> Iterator[None]:
    """While this lasts the first signal only asks to park; the second raises KeyboardInterrupt where it hits.

    A closed terminal sends SIGHUP, some send it twice: it only asks, and under `nohup` not even that.

    Outside of the main thread nothing is changed: Python handles signals there only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: object) -> None:
        if request.by and number == signal.SIGHUP:
            return
        if request.by:
            raise KeyboardInterrupt
        request.by = SIGNALS[signal.Signals(number)]
        say(f"{request.by}: the run parks at the next safe point; once more stops it now, with a step half done")

    ours = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]
    before: dict[int, Any] = {number: signal.signal(number, handle) for number in ours}
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
