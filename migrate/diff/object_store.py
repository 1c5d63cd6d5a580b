"""A file of an object store, copied to this host by `pyarrow.fs`, with the login of the environment or of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow.fs import FileSystem

from migrate.errors import NotVisible

CHUNK: Final = 1 << 20
NEXT: Final = "try the URI with `pyarrow.fs` on the host that reads it; docs/fleet.md says where its login comes from"


def copy_from_store(uri: str, target: Path, most: int) -> None:
    """Copy the file that the URI names, at most `most` bytes and one more of it, so that a reader sees a longer one.

    Raises:
        NotVisible: the store cannot be asked, or has no such file.
    """
    try:
        store, path = FileSystem.from_uri(uri)
        with store.open_input_stream(path) as source, target.open("wb") as copy:
            left = most + 1
            while left and (chunk := source.read(min(CHUNK, left))):
                left -= copy.write(chunk)
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0][:200]
        raise NotVisible("the object store cannot be read", where=uri, why=why, next_step=NEXT) from error
