"""One input put to a reader, and whether that ended as it must: typed, soon, in little memory, nothing else touched."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from migrate.errors import MigrateError
from tests.cli.commands import run_main
from tests.fuzz.damage import Parts

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = ROOT / "tests" / "corpus"
FOUND: Final = ROOT / "build" / "fuzz"
MOST_MEMORY: Final = 256 * 2**20
MOST_SECONDS: Final = 2.0  # of processor time
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING: Final = {
    *("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.truncate", "os.utime", "os.setxattr"),
    *("os.rename", "os.link", "os.symlink", "os.mkfifo", "os.mknod"),
}
LEAVING: Final = {
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn", "os.kill"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"),
}
PLACE: Final = re.compile(r'File "[^"]*?/(migrate/[^"]+)", line (\d+)')


@dataclass(frozen=True)
class Reader:
    """A reader of `file`, a path in a folder: `made` writes what it needs there, and returns the file's parts.

    `packed` makes the file of its parts, `wrapped` is what lies around an archive, `sealed` renews the sums of a part
    (and leaves what it cannot read), `read` reads the file in a folder as made, with that path.
    """

    name: str
    file: str
    made: Callable[[Path], Parts]
    read: Callable[[Path, Path], object]
    packed: Callable[[Parts], bytes] = lambda parts: next(iter(parts.values()))
    wrapped: Callable[[bytes], bytes] = bytes
    sealed: Mapping[str, Callable[[bytes], bytes]] = field(default_factory=dict)
    tar: Callable[[Parts], Sequence[tuple[str, bytes]]] | None = None
    edits: int = 1200  # in CI: so many edits of values at most, beside all tar headers
    drawn: int = 30  # in CI: so many inputs by hypothesis


@dataclass(frozen=True)
class Bad:
    """An outcome that must not be; `kind` and `place` tell it from others."""

    kind: str
    place: str
    said: str


class UntypedError(Exception):
    """A command ended as no command may."""


def command(*words: object) -> str:
    """Run the command's entry point here; its output.  UntypedError for a defect, or text that acts on a terminal."""
    out, err = io.StringIO(), io.StringIO()
    code = run_main(words, out, err)
    if "E-DEFECT" in err.getvalue():
        raise UntypedError(err.getvalue())
    if code and not out.getvalue() and "E-" not in err.getvalue():
        raise UntypedError(f"exit code {code!r} without an error: {err.getvalue()}")
    for text in (out.getvalue(), err.getvalue()):
        if acting := {char for char in text if char != "\n" and unicodedata.category(char) in _ACTING}:
            raise UntypedError(f"prints {sorted(map(ascii, acting))}")
        if "\nok     signature: of the key that was named" in text:
            raise UntypedError("a line of the file's own")
    return out.getvalue()


_ACTING: Final = {"Cc", "Cf", "Zl", "Zp", "Cs"}


class Bench:
    """A reader in a folder of its own, its seed read once: what is imported, compiled or cached is so by then."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader = reader
        self.folder = folder
        self.made = folder / "made"
        self.made.mkdir(parents=True)
        (folder / "tmp").mkdir()
        self.parts = dict(reader.made(self.made))
        self.tried = 0
        self.seed = self.file_of(self.parts)
        bad = self.trial(self.seed, warm=True)
        assert bad is None, bad
        bad = self.trial(self.seed)
        assert bad is None, bad

    def file_of(self, parts: Parts, *, sealed: bool = True) -> bytes:
        """The file of these parts, its sums right unless asked otherwise."""
        whole = {
            name: self.reader.sealed[name](raw) if sealed and name in self.reader.sealed else raw
            for name, raw in parts.items()
        }
        return self.reader.wrapped(self.reader.packed(whole))

    def trial(self, raw: bytes, *, warm: bool = False) -> Bad | None:
        """How reading these bytes ended, where it ended badly."""
        self.tried += 1
        place = self.folder / "trial"
        shutil.copytree(self.made, place, symlinks=True)
        path = place / self.reader.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        path.chmod(0o600)
        try:
            with tempfile_in(self.folder / "tmp"):
                return _watched(lambda: self.reader.read(place, path), self.folder, warm=warm)
        finally:
            shutil.rmtree(place)

    def kept(self, raw: bytes) -> str:
        """The command that stores an input into the corpus; the input lies in the build folder until then."""
        name = hashlib.sha256(raw).hexdigest()[:12]
        path = FOUND / self.reader.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        target = CORPUS.relative_to(ROOT) / self.reader.name / name
        return f"mkdir -p {target.parent} && cp {path.relative_to(ROOT)} {target}"


@contextlib.contextmanager
def tempfile_in(folder: Path) -> Iterator[None]:
    """Temporary files lie in that folder."""
    with patch.object(tempfile, "tempdir", str(folder)):
        yield


def _watched(read: Callable[[], object], folder: Path, *, warm: bool) -> Bad | None:
    before = _peak_from_here()
    began = time.process_time()
    touched: list[str] = []
    try:
        with contextlib.nullcontext() if warm else _looking_on(folder, touched):
            read()
    except MigrateError:
        pass
    except UntypedError as error:
        return Bad("untyped", _place(str(error)), str(error)[-3000:])
    except Exception as error:  # noqa: BLE001 - whatever it is
        text = traceback.format_exc()
        return Bad(type(error).__name__, _place(text), text[-3000:])
    if warm:
        return None
    if touched:
        return Bad("touched", touched[0].split()[0], "; ".join(touched[:5]))
    if (took := time.process_time() - began) > MOST_SECONDS:
        return Bad("slow", "", f"{took:.1f} s")
    if (more := _peak() - before) > MOST_MEMORY:
        return Bad("memory", "", f"{more >> 20} MiB")
    return None


def _place(text: str) -> str:
    found = PLACE.findall(text)
    return f"{found[-1][0]}:{found[-1][1]}" if found else text.strip().splitlines()[-1][:80] if text.strip() else ""


# -- what it touches -------------------------------------------------------------------------------------------------
_watch: list[Callable[[str, tuple[Any, ...]], None]] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watch:
        _watch[-1](event, args)


sys.addaudithook(_hook)


@contextlib.contextmanager
def _looking_on(folder: Path, touched: list[str]) -> Iterator[None]:
    """Note each change of a file outside of the folder, each program that is run and each connection."""
    inside = [True]  # is the last folder that was opened, which relative names are below, ours?

    def ours(path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return True  # a descriptor: how it was opened was seen
        text = os.fsdecode(path)
        if "/" not in text:
            return inside[0]
        return Path(os.path.normpath(text)).is_relative_to(folder) or text == "/dev/null"

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            if isinstance(flags, int) and flags & os.O_DIRECTORY == os.O_DIRECTORY:
                inside[0] = ours(path)
            writes = flags & WRITING if isinstance(flags, int) else set(mode or "") & set("wax+")
            if writes and not ours(path):
                touched.append(f"open {path!r}")
        elif event in CHANGING:
            paths = args[:2] if event in ("os.rename", "os.link") else args[1:2] if event == "os.symlink" else args[:1]
            touched.extend(f"{event} {path!r}" for path in paths if not ours(path))
        elif event in LEAVING:
            touched.append(f"{event} {args!r:.200}")

    _watch.append(note)
    try:
        with patch.object(sys, "dont_write_bytecode", new=True):
            yield
    finally:
        _watch.pop()


# -- memory ----------------------------------------------------------------------------------------------------------
def _peak_from_here() -> int:
    """Begin the peak of resident memory anew where the system lets us; the peak, in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) * 1024 if found else 0
