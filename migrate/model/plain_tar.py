"""A strict reader of tar: of files of ours, and of what a host's `tar` makes of plain files.

A general reader believes what headers say of sizes: a sparse member or an extended header of 200 bytes makes gigabytes.
Python's own takes no end with a negative size in base 256 (3.11.2 and 3.11.7), and with an extended header of digits;
its filters judge names alone.  Here a header (GNU, POSIX and busybox alike) describes a regular file or a folder, and
its size is in the archive.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

BLOCK: Final = 512
PIECE: Final = 1 << 20
MAGIC: Final = (b"ustar\x0000", b"ustar  \0")  # POSIX, GNU


class NotPlainTar(ValueError):
    """The bytes are no such archive; the message says why."""


def pack(members: Mapping[str, bytes], mtime: int = 0) -> bytes:
    """The archive, members in the order given, each of mode 0600."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), mtime, 0o600
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def unpack(raw: bytes, names: Collection[str] | None = None) -> dict[str, bytes]:
    """Name to content, of files alone.  Raises NotPlainTar; with `names`, also for a member of another name."""
    found: dict[str, bytes] = {}
    for member in members(io.BytesIO(raw)):
        if member.folder or (names is not None and member.name not in names):
            raise NotPlainTar(f"member {member.name!r} belongs in no file of this kind")
        found[member.name] = raw[member.at : member.at + member.size]
    return found


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file or a folder in an archive of a host's `tar`; a folder's `size` is 0."""

    name: str
    folder: bool
    at: int  # of its first byte
    size: int  # bytes

    def copy(self, archive: BinaryIO, target: BinaryIO) -> None:
        """Write its content, in pieces.  Raises NotPlainTar where the archive became shorter meanwhile."""
        archive.seek(self.at)
        left = self.size
        while left:
            piece = archive.read(min(left, PIECE))
            if not piece:
                raise NotPlainTar(f"member {self.name!r} is cut off")
            target.write(piece)
            left -= len(piece)


def members(archive: BinaryIO) -> Iterator[Member]:
    """The members of an archive that `tar -cf` made of plain files, read header by header.

    Raises NotPlainTar: a link, a device, a sparse file or an extended header; a name that leads out, or that stands
    twice; a size that is not in the archive; an archive without its end.
    """
    whole, at, seen = archive.seek(0, io.SEEK_END), 0, set[str]()
    while True:
        archive.seek(at)
        header = archive.read(BLOCK)
        if len(header) != BLOCK:
            raise NotPlainTar(f"it is cut off at byte {whole}")
        if not any(header):
            break
        found = _of_a_host(header, at)
        at += BLOCK + -(-found.size // BLOCK) * BLOCK
        if found.name in seen:
            raise NotPlainTar(f"member {found.name!r} appears twice")
        if at > whole:
            raise NotPlainTar(f"member {found.name!r} is cut off")
        seen.add(found.name)
        yield found
    while rest := archive.read(PIECE):
        if any(rest):
            raise NotPlainTar("there is more behind its last member")


def _of_a_host(header: bytes, at: int) -> Member:
    try:
        name = header[:100].partition(b"\0")[0].decode("ascii")
        size, told = int(header[124:136].rstrip(b"\0 "), 8), int(header[148:156].strip(b"\0 "), 8)
    except ValueError as error:
        raise NotPlainTar(f"the header at byte {at} is none of a plain file") from error
    kind, magic = header[156:157], header[257:265]
    right = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    prefix = magic == MAGIC[0] and any(header[345:500])
    if magic not in MAGIC or told != right or kind not in (b"0", b"\0", b"5") or prefix or size < 0:
        raise NotPlainTar(f"the header at byte {at} ({name!r}) is none of a plain file or a folder")
    folder = kind == b"5"
    if folder and size:
        raise NotPlainTar(f"the folder {name!r} has a size")
    if any(part in ("", ".", "..") for part in name.removesuffix("/" if folder else "").split("/")):
        raise NotPlainTar(f"the name {name!r} leads out of the folder")
    return Member(name.rstrip("/"), folder, at + BLOCK, size)
