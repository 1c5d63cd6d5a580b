"""A world as it may be handed on: every secret replaced by a digest under a key that is thrown away.

The views hold keyed digests already.  What is left are configuration files (and the sums of their bytes, which would
let a short password be guessed), configs whose names only sound like secrets, and identities in ACLs.  Equal secrets
stay equal, so that every comparison and every check of parity has the same answer as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from migrate.hosts import properties
from migrate.hosts.collect_disks import Digest, is_sensitive, keyed, redact
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import (
    ConfigFile,
    KraftView,
    NoFile,
    PartlyRead,
    Running,
    ServiceState,
    ZookeeperView,
)
from migrate.model.world import World
from migrate.model.znodes import ZnodeAcl

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
    """Configs that sound like secrets and are none of Kafka's own passwords: a plugin's may be."""
    values = [
        digest(value)
        if kind.endswith("-config") and value and not value.startswith("hmac:") and is_sensitive(name)
        else value
        for kind, name, value in zip(rows.kind, rows.name, rows.value, strict=True)
    ]
    return replace(rows, value=values)


def _files(configs: Configs | Unknown, digest: Digest) -> Configs | Unknown:
    if isinstance(configs, Unknown):
        return configs
    return {node: _file(file, digest) if isinstance(file, ConfigFile) else file for node, file in configs.items()}


def _file(file: ConfigFile, digest: Digest) -> ConfigFile:
    raw = redact(file.raw, digest)
    return replace(file, raw=raw, sha256=hashlib.sha256(raw).hexdigest(), values=properties.parse(raw, file.path))


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
