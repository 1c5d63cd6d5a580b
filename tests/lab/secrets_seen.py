"""What any process could read of a secret: the words and the environment of others, and every form of it in bytes.

`/proc` is looked at all the while a run goes on: children live for a second, and their words are anybody's to read.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import urllib.parse
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

PROC: Final = Path("/proc")
SECONDS: Final = 0.5  # between two looks
SHORTEST: Final = 6  # bytes: a form that is shorter would be found anywhere


def forms(secret: str) -> frozenset[bytes]:
    """A secret as it may stand in a file: plain, escaped, in hex, in base64 wherever it begins in what is encoded."""
    raw = secret.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), urllib.parse.quote(secret, safe="").encode()}
    found.add(json.dumps(secret)[1:-1].encode())
    for before in range(3):  # the letters that hold a neighbour's bits, too, are left out
        whole = len(raw) - (before + len(raw)) % 3
        text = base64.b64encode(b"\0" * before + raw[:whole])[-(-before * 8 // 6) :]
        found |= {text, text.replace(b"+", b"-").replace(b"/", b"_")}
    return frozenset(form for form in found if len(form) >= SHORTEST)


def holding(content: bytes, secrets: frozenset[str]) -> list[str]:
    """The secrets of which some form stands in the content."""
    return [secret for secret in secrets if any(form in content for form in forms(secret))]


@dataclass
class Processes:
    """Words and environments of our children and theirs, and of whatever names the folder, as long as it watches."""

    folder: Path
    seen: set[tuple[int, bytes, bytes]] = field(default_factory=set)  # (process, its words, its environment)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        """It begins."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """It ends."""
        self._end.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(SECONDS):
            self.look()

    def look(self) -> None:
        """All of them once; one that has just ended, or is another user's, tells nothing."""
        with self._looking:  # two threads that look at once would each forget what the other one saw
            self._look()

    def _look(self) -> None:
        parents: dict[int, int] = {}
        told: dict[int, bytes] = {}
        for entry in PROC.iterdir():
            with suppress(OSError, ValueError):
                process = int(entry.name)
                parents[process] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                told[process] = (entry / "cmdline").read_bytes()
        known, found = {(process, words) for process, words, _ in self.seen}, set()
        for process, words in told.items():
            if process != os.getpid() and (process, words) not in known:
                with suppress(OSError):
                    environment = (PROC / str(process) / "environ").read_bytes()
                    if _descends(process, parents) or os.fsencode(self.folder) in words + environment:
                        found.add((process, words, environment))
        self.seen = self.seen | found  # never changed in place: others read it

    def of(self, word: bytes) -> int:
        """How many were seen with that in their words."""
        return len({process for process, words, _ in self.seen if word in words})


def _descends(process: int, parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False
