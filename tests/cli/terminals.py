"""A real terminal (a pty of its own size) for a process, and what it wrote there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import tty
from pathlib import Path
from typing import NamedTuple

from tests.cli.commands import run_main

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*words: object, code: str, columns: int = 160, rows: int = 50, timeout: float = 120.0) -> str:
    """All that the program `code` wrote to its terminal, control sequences too; its exit code must be 0."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        env={**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1"},
    )
    os.close(theirs)
    said = bytearray()
    try:
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not part:
                break
            said += part
        code_ = child.wait(timeout)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    text = said.decode("utf-8", "replace")
    assert code_ == 0, text
    return text


def plain(text: str) -> str:
    """Without colours and cursor movements."""
    return ANSI.sub("", text).replace("\r", "")


class Shown(NamedTuple):
    """How a command ended, and what it put on the screen: both streams, in the order that they came in."""

    code: int
    text: str


def shown(kind: str, *words: object, columns: int = 400) -> Shown:
    """Run the command here with both streams a real `file`, or a real `terminal` without line discipline."""
    ours, theirs = pty.openpty() if kind == "terminal" else os.pipe()
    if kind == "terminal":
        tty.setraw(theirs)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    said = bytearray()

    def collect() -> None:
        with contextlib.suppress(OSError):  # EIO: the other side of a terminal is closed
            while part := os.read(ours, 65536):
                said.extend(part)

    reader = threading.Thread(target=collect)
    reader.start()
    try:
        with os.fdopen(theirs, "w", encoding="utf-8", errors="strict", buffering=1) as stream:
            code = run_main(words, stream, stream)
    finally:
        reader.join()
        os.close(ours)
    return Shown(code, said.decode("utf-8"))
