"""The KRaft view from metadata directories, with the identity that their meta.properties tell."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import InputError, MetadataDiverges, WorldError
from migrate.hosts import meta_properties
from migrate.hosts.files import read_within
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.kraft.quorum_files import MetadataDirectory, judge, read_directory, view_of
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, MetaBroken, MetaMissing, MetaProperties

LOG: Final = logging.getLogger("migrate.observe")


@dataclass(frozen=True, slots=True)
class MetadataRead:
    """A view from files, the end of what could be read (exclusive), what was left out, and why; and where it was read.

    `directory` is the one that the view was read from.
    """

    view: KraftView
    end: int
    notes: tuple[str, ...]
    directory: MetadataDirectory


def read_metadata(paths: Sequence[Path], digester: Digester) -> MetadataRead:
    """The image in these directories at what they prove to be committed.

    The cluster id is "" where no directory tells it.  With several directories a damaged one is left out, and noted: it
    does not count for a majority.  Raises what `read_directory`, `judge` and `view_of` raise.
    """
    found: list[MetadataDirectory] = []
    notes: list[str] = []
    clusters: dict[str, Path] = {}
    for path in dict.fromkeys(path.resolve() for path in paths):
        meta = _identity(path)
        if isinstance(meta, MetaBroken):
            notes.append(f"{path}: {META_PROPERTIES} is not trusted: {meta.reason}")
        if isinstance(meta, MetaProperties) and meta.cluster_id is not None:
            clusters.setdefault(meta.cluster_id, path)
        try:
            told = (meta.node_id, meta.directory_id) if isinstance(meta, MetaProperties) else (None, None)
            found.append(read_directory(path, told[0], str(told[1]) if told[1] is not None else None))
        except InputError as error:
            if len(paths) == 1:
                raise
            notes.append(f"{path}: left out: {error.id} {error}")
            damaged = error
    if len(clusters) > 1:
        what = f"the directories belong to different clusters: {', '.join(sorted(clusters))}"
        raise MetadataDiverges(what, where=", ".join(map(str, clusters.values())))
    if not found:
        raise damaged
    tail = judge(found)
    view = view_of(tail, digester, cluster_id=next(iter(clusters), ""))
    for note in (*notes, *tail.notes):
        LOG.info("%s", note)
    return MetadataRead(view, tail.end, (*notes, *tail.notes), tail.directory)


def _identity(path: Path) -> MetaProperties | MetaBroken | MetaMissing:
    home = path.parent if path.name == PARTITION_DIRECTORY else path
    try:
        return meta_properties.decode(read_within(home / META_PROPERTIES, "meta-properties"))
    except (FileNotFoundError, NotADirectoryError):
        return MetaMissing()
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=str(home / META_PROPERTIES)) from error
