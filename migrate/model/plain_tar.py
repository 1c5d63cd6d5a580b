"""The one form of tar that files of ours have: plain USTAR members with short names, and nothing between them.

A general reader believes what headers say of sizes: a sparse member or an extended header of 200 bytes makes gigabytes.
Here a header is right only where it is byte for byte the one that we would write.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Mapping
from typing import Final

BLOCK: Final = 512


class NotPlainTar(ValueError):
    """The bytes are no archive of ours; the message says why."""


def pack(members: Mapping[str, bytes], mtime: int = 0) -> bytes:
    """The archive, members in the order given, each of mode 0600."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            archive.addfile(_header(name, len(content), mtime), io.BytesIO(content))
    return out.getvalue()


def unpack(raw: bytes, names: Collection[str] | None = None) -> dict[str, bytes]:
    """Name to content.  Raises NotPlainTar; with `names`, also for a member of another name."""
    found: dict[str, bytes] = {}
    view, at = memoryview(raw), 0
    while header := bytes(view[at : at + BLOCK]).rstrip(b"\0"):
        name, content = _member(view, at, header)
        if name in found or (names is not None and name not in names):
            raise NotPlainTar(f"member {name!r} stands twice, or belongs in no file of this kind")
        found[name] = content
        at += BLOCK + -(-len(content) // BLOCK) * BLOCK
    if any(view[at:]):
        raise NotPlainTar("there is more behind its last member")
    return found


def _member(view: memoryview, at: int, header: bytes) -> tuple[str, bytes]:
    try:
        name = header[:100].partition(b"\0")[0].decode("ascii")
        size, mtime = int(header[124:135], 8), int(header[136:147], 8)
        right = _header(name, size, mtime).tobuf(tarfile.USTAR_FORMAT).rstrip(b"\0")
    except (ValueError, OverflowError) as error:
        raise NotPlainTar(f"the header at byte {at} is none of ours") from error
    if header != right:
        raise NotPlainTar(f"the header at byte {at} is none of ours")
    content = bytes(view[at + BLOCK : at + BLOCK + size])
    if len(content) != size:
        raise NotPlainTar(f"member {name!r} is cut off")
    return name, content


def _header(name: str, size: int, mtime: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, mtime, 0o600
    return info
