"""Bundles: everything that the views hold, in one archive with hashes, to be looked at where there is no cluster.

A tar.gz of `manifest.json` and one JSON file a part of the World.  The views are kept, not raw znodes: they are what
checks and comparison work on, and have no secrets.  An archive is read in memory, piece by piece against the manifest;
nothing of it is ever written to disk.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import secrets
import typing
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from migrate import __version__
from migrate.errors import BundleDamaged, BundleExists, BundleOtherVersion, MigrateError
from migrate.hosts import properties
from migrate.hosts.collect_disks import Digest, keyed, redact, redacted_value
from migrate.hosts.files import read_no_follow, replace_file
from migrate.model import limits, plain_tar, strict_json
from migrate.model.codec import NotDecodable, decode, encode
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.inventory import URI
from migrate.model.outcome import Unknown
from migrate.model.views import (
    ConfigFile,
    KraftView,
    NoFile,
    PartlyRead,
    Running,
    ServiceState,
    ZnodeAcl,
    ZookeeperView,
)
from migrate.model.world import World
from migrate.observe.sources import KEPT
from migrate.observe.views import VIEWS

Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]


def without_secrets(world: World, key: bytes) -> World:
    """The world with digests under that key in the place of secrets."""
    digest = keyed(key)
    return replace(
        world,
        zookeeper=_tree(world.zookeeper, digest),
        kraft=_image(world.kraft, digest),
        configs=_files(world.configs, digest),
        services=_services(world, digest),
    )


def _tree(view: ZookeeperView | Unknown, digest: Digest) -> ZookeeperView | Unknown:
    if isinstance(view, PartlyRead):
        return replace(view, view=_whole_tree(view.view, digest))
    return view if isinstance(view, Unknown) else _whole_tree(view, digest)


def _whole_tree(view: ZookeeperView, digest: Digest) -> ZookeeperView:
    acls = view.acls
    if not isinstance(acls, Unknown):
        acls = {path: tuple(_acl(entry, digest) for entry in entries) for path, entries in acls.items()}
    return replace(view, entities=_entities(view.entities, digest), acls=acls)


def _acl(entry: ZnodeAcl, digest: Digest) -> ZnodeAcl:
    """digest:user:SHA1 lets the password be guessed: the user stays."""
    user, colon, sum_ = entry.identity.partition(":")
    return replace(entry, identity=f"{user}:{digest(sum_)}") if colon and entry.scheme == "digest" else entry


def _image(view: KraftView | Unknown, digest: Digest) -> KraftView | Unknown:
    return view if isinstance(view, Unknown) else replace(view, entities=_entities(view.entities, digest))


def _entities(rows: EntityColumns, digest: Digest) -> EntityColumns:
    """Configs that may be secrets and are none of Kafka's own passwords, which are digests already."""
    values = [
        redacted_value(name, value, digest) if kind.endswith("-config") and not value.startswith("hmac:") else value
        for kind, name, value in zip(rows.kind, rows.name, rows.value, strict=True)
    ]
    return replace(rows, value=values)


def _files(configs: Configs | Unknown, digest: Digest) -> Configs | Unknown:
    if isinstance(configs, Unknown):
        return configs
    return {node: _file(file, digest) if isinstance(file, ConfigFile) else file for node, file in configs.items()}


def _file(file: ConfigFile, digest: Digest) -> ConfigFile:
    return properties.with_content(file, redact(file.raw, digest))


def _services(world: World, digest: Digest) -> Mapping[NodeId, ServiceState] | Unknown:
    """A process still runs with its node's file, or with another one: the sums of neither are told."""
    if isinstance(world.services, Unknown):
        return world.services
    files: Mapping[NodeId, Any] = {} if isinstance(world.configs, Unknown) else world.configs
    return {node: _service(state, files.get(node), digest) for node, state in world.services.items()}


def _service(state: ServiceState, file: Any, digest: Digest) -> ServiceState:
    if not isinstance(state, Running) or state.config_sha256 is None:
        return state
    same = isinstance(file, ConfigFile) and file.sha256 == state.config_sha256
    return replace(state, config_sha256=_file(file, digest).sha256 if same else digest(state.config_sha256))


FORMAT: Final = "kraft-migrate-bundle"
VERSION: Final = 5  # 5: inventories without the keys that went with 0.3, launches without Java and log4j
MANIFEST: Final = "manifest.json"
PARTS: Final = ("inventory", "playbook", *(VIEWS[need].part for need in KEPT))
PACKED_AT_MOST: Final = 50  # times: JSON of ours is 10 to 30 times as long as its gzip
FREE_BYTES: Final = 96 * 2**20  # whatever the archive's size: 200,000 partitions that are all alike take a third
FREE_ROOM: Final = 320_000_000  # bytes of a part's values: of 200,000 partitions they take nine tenths
ROOM_A_BYTE: Final = 40  # of the archive


@dataclass(frozen=True, slots=True)
class Bundle:
    """A world as it was seen; `created` is our clock then, in seconds since 1970; `sizes` are bytes a part."""

    path: str
    tool: str
    created: int
    world: World
    sizes: Mapping[str, int]


# -- writing -------------------------------------------------------------------------------------------------------
def write_bundle(path: str, world: World, created: int) -> Bundle:
    """Keep the world, secrets replaced, whole or not at all, with mode 0600.

    Raises:
        BundleExists: there is something at that path.
        FileNotReplaced: the folder does not take it.
    """
    refuse_existing(path)
    handed_on = without_secrets(world, secrets.token_bytes(32))
    parts = {name: _bytes(encode(getattr(handed_on, name))) for name in PARTS}
    replace_file(path, _archive(parts, world.inventory.name, created))
    return Bundle(path, __version__, created, handed_on, {name: len(content) for name, content in parts.items()})


def refuse_existing(path: str) -> None:
    if os.path.lexists(path):
        raise BundleExists("there is something already", where=path)


def _archive(parts: Mapping[str, bytes], cluster: str, created: int) -> bytes:
    body = {
        "tool": __version__,
        "created": created,
        "cluster": cluster,
        "parts": {name: {"sha256": _sum(content), "bytes": len(content)} for name, content in parts.items()},
    }
    manifest = {"format": FORMAT, "version": VERSION, "sha256": _sum(_bytes(body)), "body": body}
    packed = io.BytesIO()
    members = {MANIFEST: _bytes(manifest), **{f"{part}.json": raw for part, raw in parts.items()}}
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=created) as stream:
        stream.write(plain_tar.pack(members, created))
    return packed.getvalue()


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# -- reading -------------------------------------------------------------------------------------------------------
def read_bundle(path: str) -> Bundle:
    """The bundle in that file.

    Raises:
        BundleDamaged: it cannot be read, is none, or is not what its manifest says.
        BundleOtherVersion: another format's version.
    """
    content, packed = _unpacked(path)
    files = _members(content, path)
    body = _manifest(files.pop(MANIFEST, b""), path)
    try:
        stated = {f"{name}.json": part["sha256"] for name, part in body["parts"].items()}
        tool, created = str(body["tool"]), int(body["created"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleDamaged("its manifest is not one of ours", where=path) from error
    if files.keys() != stated.keys() or files.keys() != {f"{name}.json" for name in PARTS}:
        raise BundleDamaged("it does not hold the parts that its manifest names", where=path)
    for name, content in files.items():
        if _sum(content) != stated[name]:
            raise BundleDamaged(f"the SHA-256 of {name} is not the one of its manifest", where=path)
    hints = typing.get_type_hints(World)
    try:
        room = FREE_ROOM + ROOM_A_BYTE * packed
        found = {part: decode(hints[part], _json(files[f"{part}.json"], room), part) for part in PARTS}
    except (NotDecodable, RecursionError) as error:
        raise BundleDamaged(
            f"a part is not what this release writes: {error}",
            where=path,
            why=f"release {tool} wrote it, before or after a change of that part: its sums are right",
            next_step="write it again with this release, where the cluster is: `kraft-migrate bundle create`",
        ) from error
    sizes = {part: len(files[f"{part}.json"]) for part in PARTS}
    return Bundle(path, tool, created, World(**found), sizes)


def read_bundle_at(where: str) -> Bundle:
    """The bundle at that path, or at that URI of an object store.

    Raises what `read_bundle` raises, and NotVisible where the store cannot be asked.
    """
    if URI not in where:
        return read_bundle(where)
    from migrate.diff.object_store import copy_from_store

    with TemporaryDirectory(prefix="kraft-migrate-") as scratch:
        copy = Path(scratch, "bundle")
        copy_from_store(where, copy, limits.most("bundle"))
        try:
            return replace(read_bundle(str(copy)), path=where)
        except MigrateError as error:
            error.where = error.where.replace(str(copy), where)
            raise


def _unpacked(path: str) -> tuple[bytes, int]:
    """What is in the archive, and how many bytes the archive itself has."""
    try:
        packed = read_no_follow(path, limit=limits.most("bundle"))
        limit = min(limits.most("bundle-content"), FREE_BYTES + PACKED_AT_MOST * len(packed))
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            first = stream.read(plain_tar.BLOCK)
            if not first.startswith(MANIFEST.encode() + b"\0"):
                raise BundleDamaged("no archive of ours: it does not begin with a manifest", where=path)
            content = first + stream.read(limit + 1 - len(first))
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BundleDamaged(f"cannot be read: {reason}", where=path) from error
    if len(content) > limit:
        raise BundleDamaged(f"its {len(packed)} bytes hold more than {limit}, which no bundle does", where=path)
    return content, len(packed)


def _members(content: bytes, path: str) -> dict[str, bytes]:
    """Name to content.  Only plain files with our own names are taken: no folder, no link, no other path."""
    try:
        return plain_tar.unpack(content, {MANIFEST, *(f"{name}.json" for name in PARTS)})
    except plain_tar.NotPlainTar as error:
        raise BundleDamaged(f"no archive of ours: {error}", where=path) from error


def _manifest(raw: bytes, path: str) -> Mapping[str, Any]:
    try:
        found = _json(raw)
    except NotDecodable as error:
        raise BundleDamaged(f"no bundle: its manifest is missing or damaged ({error})", where=path) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("body"), dict):
        raise BundleDamaged("no bundle: it has another manifest", where=path)
    body: Mapping[str, Any] = found["body"]
    if found.get("version") != VERSION:
        raise BundleOtherVersion(
            f"version {found.get('version')!r} by release {body.get('tool')!r}, this release reads {VERSION}",
            where=path,
        )
    if found.get("sha256") != _sum(_bytes(body)):
        raise BundleDamaged("the SHA-256 of its manifest is not that of its content", where=path)
    return body


def _json(raw: bytes, room: int = strict_json.ROOM) -> Any:
    try:
        return strict_json.loads(raw, room=room, surrogates=True)
    except strict_json.NotStrictJson as error:
        raise NotDecodable(str(error)) from error
