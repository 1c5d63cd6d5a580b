"""Znodes of configurations, quotas, SCRAM, ACLs and delegation tokens -> rows of EntityColumns (pure).

Keys, names and values are spelled as migrate.model.columns.EntityColumns wants them, so that the KRaft reader's rows
compare equal.  Secrets become keyed digests here and go no further.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_plus

from migrate.errors import PasswordUndecodable
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester, is_password_config
from migrate.zookeeper import password_encoder
from migrate.zookeeper.fields import JsonZnode, refuse
from migrate.zookeeper.layout import DEFAULT_ENTITY

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SCRAM_FIELDS: Final = ("salt", "stored_key", "server_key")
# Java's Double.parseDouble takes more (hexadecimal, NaN, Infinity); Kafka's own tools write none of it
NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
ONLY_OLD: Final = " (only password.encoder.old.secret opens it: a restart of that broker encodes it anew)"
ACL_TYPES: Final[Mapping[str, str]] = {
    "Topic": "TOPIC",
    "Group": "GROUP",
    "Cluster": "CLUSTER",
    "TransactionalId": "TRANSACTIONAL_ID",
    "DelegationToken": "DELEGATION_TOKEN",
    "User": "USER",
}
ACL_OPERATIONS: Final[Mapping[str, str]] = {
    "All": "ALL",
    "Read": "READ",
    "Write": "WRITE",
    "Create": "CREATE",
    "Delete": "DELETE",
    "Alter": "ALTER",
    "Describe": "DESCRIBE",
    "ClusterAction": "CLUSTER_ACTION",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
    "AlterConfigs": "ALTER_CONFIGS",
    "IdempotentWrite": "IDEMPOTENT_WRITE",
    "CreateTokens": "CREATE_TOKENS",
    "DescribeTokens": "DESCRIBE_TOKENS",
}
ACL_PERMISSIONS: Final[Mapping[str, str]] = {"Allow": "ALLOW", "Deny": "DENY"}


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is needed to compare secrets: the run's digester, and the brokers' password.encoder.secret (or None)."""

    digester: Digester
    encoder: password_encoder.PasswordDecoder | None
    undecodable: list[str] = field(default_factory=list)  # what the secret does not open, gathered while reading


def desanitize(path: str, name: str) -> str:
    """The name behind a znode's name, as `Sanitizer.desanitize` (URL decoding); `<default>` stays what it is."""
    if ESCAPE.search(name):
        refuse(path, "a name is not URL-encoded")
    try:
        return unquote_plus(name, errors="strict")
    except UnicodeDecodeError:
        refuse(path, "a name is not URL-encoded UTF-8")


def config(path: str, data: bytes | None) -> dict[str, str]:
    """/config/TYPE/ENTITY: key -> value; a znode without data (a parent of quotas) is an empty configuration."""
    if not data:
        return {}
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    values = fields.object("config")
    return {name: values.text(name) for name, _ in values.items()}


def add_topic_config(rows: EntityColumns, path: str, topic: str, data: bytes | None) -> None:
    """Rows of kind `topic-config`."""
    for name, value in config(path, data).items():
        rows.add("topic-config", topic, name, value, path)


def add_broker_config(rows: EntityColumns, path: str, broker: str, data: bytes | None, secrets: Secrets) -> list[str]:
    """Rows of kind `broker-config`; answers blind spots: passwords that cannot be compared."""
    if broker != DEFAULT_ENTITY:
        try:
            NodeId(broker)
        except ValueError:
            refuse(path, "the znode's name is neither a broker id nor <default>")
    blind: list[str] = []
    for name, value in config(path, data).items():
        if not is_password_config(name):
            rows.add("broker-config", broker, name, value, path)
        elif secrets.encoder is None:
            blind.append(f"{path}: {name} is encoded, and no password.encoder.secret was given to compare it")
        else:
            try:
                clear = secrets.encoder.decode(value, f"{path} {name}")
            except PasswordUndecodable as error:
                older = secrets.encoder.decode_old(value)
                secrets.undecodable.append(f"{path} {name}{ONLY_OLD if older is not None else ''}")
                if older is None:
                    blind.append(str(error))
                    continue
                clear = older
            rows.add("broker-config", broker, name, secrets.digester.digest(clear), path)
    return blind


def quota_entity(path: str, parts: Mapping[str, str]) -> str:
    """The key of a client quota: entity type -> znode name becomes `client-id=app/user=bob%40x.y`."""
    return "/".join(
        f"{kind}={name if name == DEFAULT_ENTITY else quote(desanitize(path, name), safe='')}"
        for kind, name in sorted(parts.items())
    )


def add_quotas(rows: EntityColumns, path: str, parts: Mapping[str, str], data: bytes | None) -> None:
    """Rows of kind `client-quota` of a client id, an ip, or a user together with a client id."""
    _add_quotas(rows, path, parts, config(path, data))


def _add_quotas(rows: EntityColumns, path: str, parts: Mapping[str, str], values: Mapping[str, str]) -> None:
    for name, value in values.items():
        number = float(value) if NUMBER.fullmatch(value) else math.nan
        if not math.isfinite(number):
            refuse(path, f"the quota {name!r} is no number")
        rows.add("client-quota", quota_entity(path, parts), name, repr(number), path)


def add_scram(rows: EntityColumns, path: str, user: str, data: bytes | None, secrets: Secrets) -> None:
    """Rows of kind `scram` of a user."""
    values = config(path, data)
    for mechanism in SCRAM_MECHANISMS:
        credential = values.get(mechanism)
        if credential is not None:
            _add_scram(rows, path, desanitize(path, user), mechanism, credential, digester=secrets.digester)


def add_user_quotas(rows: EntityColumns, path: str, user: str, data: bytes | None) -> None:
    """Rows of kind `client-quota` of a user: all of its configuration but the credentials."""
    values = {name: value for name, value in config(path, data).items() if name not in SCRAM_MECHANISMS}
    _add_quotas(rows, path, {"user": user}, values)


def _add_scram(
    rows: EntityColumns, path: str, user: str, mechanism: str, credential: str, *, digester: Digester
) -> None:
    """`ScramCredentialUtils.credentialFromString`; no part of the credential stands in a message."""
    parts = dict(part.partition("=")[::2] for part in credential.split(","))
    iterations = parts.get("iterations", "")
    if set(parts) != {*SCRAM_FIELDS, "iterations"} or not re.fullmatch("[0-9]{1,9}", iterations):
        refuse(path, f"the {mechanism} credential is not salt, stored_key, server_key and iterations")
    for name in SCRAM_FIELDS:
        try:
            raw = base64.b64decode(parts[name], validate=True)
        except (binascii.Error, ValueError):
            refuse(path, f"the {name} of the {mechanism} credential is no base64")
        rows.add("scram", user, f"{mechanism}.{name}", digester.digest(raw), path)
    rows.add("scram", user, f"{mechanism}.iterations", str(int(iterations)), path)


def acl_rows(path: str, kind: str, pattern: str, name: str, data: bytes | None) -> list[str]:
    """Keys of the ACLs of one resource, sorted, each once: an ACL is a set in Kafka (`AclEntry.fromBytes`)."""
    if kind not in ACL_TYPES:
        refuse(path, f"{kind!r} is no resource type")
    if not data:
        return []
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    found: set[str] = set()
    for entry in fields.objects("acls"):
        operation = ACL_OPERATIONS.get(entry.text("operation"))
        permission = ACL_PERMISSIONS.get(entry.text("permissionType"))
        if operation is None or permission is None:
            refuse(path, "an ACL has an operation or permission type that Kafka does not know")
        parts = (name, entry.text("principal"), entry.text("host"))
        quoted = "|".join(quote(part, safe="*:") for part in parts)
        found.add(f"{ACL_TYPES[kind]}|{pattern}|{quoted}|{operation}|{permission}")
    return sorted(found)


def add_token(rows: EntityColumns, path: str, data: bytes | None, digester: Digester) -> None:
    """Rows of kind `delegation-token` (`DelegationTokenManagerZk.fromBytes`), versions 1 to 3.

    Versions 1 and 2 know no requester: it is the owner.
    """
    fields = JsonZnode.parse(path, data)
    version = fields.version((1, 2, 3))
    owner = desanitize(path, fields.text("owner"))
    requester = desanitize(path, fields.text("tokenRequester")) if version > 2 else owner
    renewers = sorted(desanitize(path, renewer) for renewer in fields.texts("renewers"))
    expiry = fields.integer("expiryTimestamp", high=2**63)
    key = digester.digest(fields.text("tokenId"))
    for name, value in (
        ("owner", owner),
        ("requester", requester),
        ("renewers", ",".join(renewers)),
        ("issue_timestamp", str(fields.integer("issueTimestamp", high=2**63))),
        ("max_timestamp", str(fields.integer("maxTimestamp", high=2**63))),
        ("expiration_timestamp", str(expiry)),
    ):
        rows.add("delegation-token", key, name, value, path)
