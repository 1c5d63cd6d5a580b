"""Everything that a release consists of, with checksums: `python -m tests release OUT` (docs/releasing.md).

It is made from the commit that is checked out, never from uncommitted files, and needs a network and the extra
`release`.  Where OUT has lock files already, their versions are kept.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email import message_from_bytes
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SUMS: Final = "SHA256SUMS"
LOCKS: Final = {  # and what each leaves out
    "requirements.txt": (),
    "requirements-small.txt": ("pandas", "pyarrow", "pyspark"),
}
UNKNOWN: Final = "UNKNOWN"  # what pip-licenses writes for what a package does not say
OLDEST: Final = "3.11"  # the Python for which versions are chosen; markers and hashes are for all


class LicenceUnknownError(Exception):
    """A package that would be shipped says nothing of its licence."""


def run(words: Sequence[str]) -> int:
    """Make the release; 0, or the exit code of the program that failed."""
    parser = argparse.ArgumentParser(prog="python -m tests release", description=__doc__)
    parser.add_argument("out", metavar="OUT", type=Path, help="the folder of the release; it is made")
    out: Path = parser.parse_args(words).out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="kraft-migrate-release-") as folder:
            make(out, Path(folder))
    except subprocess.CalledProcessError as error:
        print(f"failed with exit code {error.returncode}: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return error.returncode or 1
    except LicenceUnknownError as error:
        print(error, file=sys.stderr)
        return 1
    for name, size in ((path.name, path.stat().st_size) for path in sorted(out.iterdir())):
        print(f"{size / 1e6:9.2f} MB  {name}")
    return 0


def make(out: Path, work: Path) -> None:
    """Each file, in the order in which they need each other."""
    sources = work / "sources"
    seconds = exported(sources)
    module("build", sources, "--outdir", out, SOURCE_DATE_EPOCH=str(seconds))
    wheel = newest(out, "*.whl")
    version = wheel.name.split("-")[1]
    for lock, left_out in LOCKS.items():
        write_lock(out / lock, wheel, left_out)
        bom = f"kraft-migrate-{version}{lock.removeprefix('requirements').removesuffix('.txt')}.cdx.json"
        module("cyclonedx_py", "requirements", out / lock, "--output-reproducible", "--of", "JSON", "-o", out / bom)
    write_licences(out / f"kraft-migrate-{version}-licences.txt", out, sources, work / "installed")
    packed(newest(out, "*.tar.gz"), seconds)
    single_file(out / single_file_name(version), out, work / "wheels", seconds)
    write_man_pages(out / f"kraft-migrate-{version}-man.tar.gz", sources, seconds)
    shutil.copy(sources / "docs" / "Containerfile", out)
    write_sums(out)


def module(name: str, *words: str | Path, **environment: str) -> None:
    """Run a tool of the extra `release`, or pip, and show what it printed if it fails."""
    print(f"== {name} {words[0]}", flush=True)
    command = [sys.executable, "-m", name, *map(str, words)]
    ended = subprocess.run(
        command, check=False, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if ended.returncode:
        print(ended.stdout.decode(errors="replace"), file=sys.stderr)
        ended.check_returncode()


def exported(folder: Path) -> int:
    """Export the commit into that folder; when it was made, in seconds since the epoch."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        members.extractall(folder, filter="data")
    told = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return int(told)


def newest(folder: Path, pattern: str) -> Path:
    """The file that was written last."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)


def requirements(wheel: Path) -> Iterator[str]:
    """What the wheel needs without any extra."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    for line in metadata.get_all("Requires-Dist", []):
        if "extra ==" not in line:
            yield line


def write_lock(lock: Path, wheel: Path, left_out: Sequence[str]) -> None:
    """Every package that is installed, the wheel too, with its version and its hashes."""
    wanted = [line for line in requirements(wheel) if re.split(r"[^\w.-]", line)[0].lower() not in left_out]
    with tempfile.NamedTemporaryFile("w", suffix=".in") as given:
        given.write("\n".join(wanted))
        given.flush()
        words = ("--universal", "--python-version", OLDEST, "--generate-hashes", "--no-header", "--no-annotate")
        module("uv", "pip", "compile", *words, "-o", lock, given.name)
    name, version, *_ = wheel.name.split("-")
    with lock.open("a", encoding="utf-8") as file:
        file.write(f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{sha256(wheel)}\n")


def single_file_name(version: str) -> str:
    """It has compiled packages: for one minor version of Python, and one processor."""
    major, minor, *_ = platform.python_version_tuple()
    return f"kraft-migrate-{version}-cp{major}{minor}-{platform.machine()}.pex"


def write_licences(target: Path, out: Path, sources: Path, installed: Path) -> None:
    """The licence and the notices of this package, of Kafka's files in it, and of each package that a lock installs."""
    module("uv", "venv", "--python", sys.executable, installed)
    python = installed / "bin" / "python"
    words = ("--no-deps", "--require-hashes", "--find-links", out, "-r", out / "requirements.txt")
    module("uv", "pip", "install", "--python", python, *words)
    theirs = installed / "licences.json"
    shape = ("--format", "json", "--with-urls", "--with-license-file", "--with-notice-file", "--no-license-path")
    module("piplicenses", "--python", python, *shape, "--output-file", theirs)
    notice = sources / "migrate" / "protocol" / "schemas" / "NOTICE.txt"
    ours = [path.read_text(encoding="utf-8").strip("\n") for path in (sources / "LICENSE", notice)]
    parts = [*ours, *map(licence_of, json.loads(theirs.read_text(encoding="utf-8")))]
    target.write_text(f"\n\n{'-' * 80}\n".join(parts) + "\n", encoding="utf-8")


def licence_of(package: Mapping[str, str]) -> str:
    """Of a package as pip-licenses describes it; LicenceUnknownError where it names none."""
    if package["License"] == UNKNOWN:
        raise LicenceUnknownError(f"{package['Name']} {package['Version']} names no licence: it is not shipped")
    head = ", ".join(package[key] for key in ("Name", "Version", "License", "URL") if package[key] != UNKNOWN)
    texts = [package[key].strip("\n") for key in ("LicenseText", "NoticeText") if package[key] != UNKNOWN]
    return "\n\n".join([head, *(texts or ["The package brings no text of its licence."])])


def packed(archive: Path, seconds: int) -> None:
    """Pack an archive again: its members by name, of nobody, with one time, so that a commit gives the same bytes."""
    with tarfile.open(archive) as read:
        found = sorted(read.getmembers(), key=lambda member: member.name)
        files = [(member, read.extractfile(member)) for member in found]
        members = [(member, file.read() if file else b"") for member, file in files]
    write_archive(archive, members, seconds)


def write_archive(target: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]], seconds: int) -> None:
    """A .tar.gz with nothing in it but names, modes, that one time, and bytes."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for given, content in members:
            member = tarfile.TarInfo(given.name)
            member.type, member.size, member.mtime = given.type, len(content), seconds
            member.mode = 0o755 if given.mode & 0o100 else 0o644
            archive.addfile(member, io.BytesIO(content))


def single_file(target: Path, out: Path, wheels: Path, seconds: int) -> None:
    """A PEX of the small lock.  Packages of the Python that runs it are seen last: Spark can be installed there."""
    lock = out / "requirements-small.txt"
    words: tuple[str | Path, ...] = ("--no-deps", "--require-hashes", "--find-links", out, "-r", lock, "-w", wheels)
    module("pip", "wheel", *words, SOURCE_DATE_EPOCH=str(seconds))
    words = ("--no-pypi", "--intransitive", "--inherit-path=fallback", "--python-shebang", "/usr/bin/env python3")
    module("pex", "-o", target, "-c", "kraft-migrate", *words, *sorted(wheels.glob("*.whl")))


def write_man_pages(target: Path, sources: Path, seconds: int) -> None:
    """An archive to be unpacked in a folder of MANPATH; the same bytes for the same commit."""
    pages = sources / "man" / "man1"
    subprocess.run([sys.executable, sources / "docs" / "man.py", pages], cwd=sources, check=True)
    found = [(tarfile.TarInfo(f"man1/{path.name}"), path.read_bytes()) for path in sorted(pages.iterdir())]
    write_archive(target, found, seconds)


def sha256(path: Path) -> str:
    """Of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(out: Path) -> None:
    """As `sha256sum --check` reads them."""
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name not in (SUMS, ".gitignore"))
    (out / SUMS).write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files), encoding="utf-8")
