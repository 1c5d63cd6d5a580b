"""Strict access to the JSON that Kafka writes into znodes, and the rows of configurations, ACLs and users (pure).

Each doubt is a MalformedZnode that names the path.  Rows of EntityColumns spell keys, names and values as
migrate.model.columns.EntityColumns requires, so that the KRaft reader's rows compare equal.  Secrets become keyed
digests here and go no further.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NoReturn, cast
from urllib.parse import quote, unquote_plus

from migrate.errors import MalformedZnode, PasswordUndecodable
from migrate.model import strict_json
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester, is_password_config
from migrate.zookeeper import password_encoder
from migrate.zookeeper.layout import DEFAULT_ENTITY

INT32: Final = 2**31
INT64: Final = 2**63


def refuse(path: str, what: str) -> NoReturn:
    """Raise MalformedZnode for that path."""
    raise MalformedZnode(what, where=path, why="it is not what Kafka 3.9 writes there, and nothing is guessed")


def parse_json(path: str, data: bytes | None) -> Any:
    """Return the JSON value in a znode: UTF-8, each key once, no NaN, no lone surrogates.

    Its size is ZooKeeper's matter: with jute.maxbuffer raised it takes more than 1 MiB.
    """
    if not data:
        refuse(path, "the znode has no data")
    try:
        return strict_json.loads(data)
    except strict_json.NotStrictJson as error:
        refuse(path, f"the data is no JSON that can be trusted ({error})")


class JsonZnode:
    """A JSON object of a znode (or inside one), read field by field with types and ranges."""

    __slots__ = ("_values", "path")

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        self.path = path
        self._values = values

    @classmethod
    def parse(cls, path: str, data: bytes | None) -> JsonZnode:
        """The znode's data as an object."""
        return cls.of(path, parse_json(path, data))

    @classmethod
    def of(cls, path: str, value: Any) -> JsonZnode:
        """A JSON value that must be an object."""
        if not isinstance(value, dict):
            refuse(path, "a JSON object is expected")
        return cls(path, value)

    def _field(self, name: str) -> Any:
        if name not in self._values:
            refuse(self.path, f"the field {name!r} is missing")
        return self._values[name]

    def has(self, name: str) -> bool:
        """Is the field there, and not null?"""
        return self._values.get(name) is not None

    def version(self, known: Sequence[int], name: str = "version") -> int:
        """The schema's version, which must be one that we know."""
        found = self.integer(name, low=-INT32, high=INT32)
        if found not in known:
            refuse(self.path, f"version {found} is not known (known: {', '.join(map(str, known))})")
        return found

    def text(self, name: str) -> str:
        """A string."""
        value = self._field(name)
        if not isinstance(value, str):
            refuse(self.path, f"the field {name!r} is no string")
        return value

    def integer(self, name: str, *, low: int = -1, high: int = INT32) -> int:
        """A whole number with low <= number < high."""
        return whole_number(self.path, name, self._field(name), low=low, high=high)

    def number(self, name: str) -> float:
        """A number >= 0 that need not be whole."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < INT32:
            refuse(self.path, f"the field {name!r} is no number in its range")
        return float(value)

    def integer_text(self, name: str, *, high: int = INT64) -> int:
        """A whole number >= 0 that Kafka writes as a string."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit()) or len(value) > 19 or int(value) >= high:
            refuse(self.path, f"the field {name!r} is no number in a string")
        return int(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._field(name)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            refuse(self.path, f"the field {name!r} is no list of strings")
        return tuple(value)

    def node_ids(self, name: str) -> list[int]:
        """A list of broker ids, each once."""
        return node_ids(self.path, name, self._field(name))

    def objects(self, name: str) -> tuple[JsonZnode, ...]:
        """A list of objects."""
        value = self._field(name)
        if not isinstance(value, list):
            refuse(self.path, f"the field {name!r} is no list")
        return tuple(JsonZnode.of(self.path, entry) for entry in value)

    def object(self, name: str) -> JsonZnode:
        """An object."""
        value = self._field(name)
        if not isinstance(value, dict):
            refuse(self.path, f"the field {name!r} is no object")
        return JsonZnode(self.path, value)

    def assignment(self, name: str) -> dict[int, list[int]]:
        """Partition number -> broker ids; an absent field is an empty one (topics of versions 1 and 2)."""
        if not self.has(name):
            return {}
        pairs = self.object(name).items()
        plain = _plain_assignment(pairs)
        return _strict_assignment(self.path, name, pairs) if plain is None else plain

    def items(self) -> list[tuple[str, Any]]:
        """The raw fields."""
        return list(self._values.items())


def _plain_assignment(pairs: Sequence[tuple[str, Any]]) -> dict[int, list[int]] | None:
    """All of an assignment, looked at as one where it is beyond doubt; None: look at it entry by entry.

    A cluster's partitions by the hundred thousand go through here.
    """
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    if {*map(type, values)} - {list}:
        return None
    ids = [*chain.from_iterable(values)]
    if {*map(type, ids)} - {int} or (ids and (min(ids) < 0 or max(ids) >= INT32)):
        return None
    if sum(map(len, map(set, values))) != len(ids):  # a broker stands twice in one of them
        return None
    try:
        numbers = [*map(int, keys)]
    except ValueError:
        return None
    if [*map(str, numbers)] != keys or (numbers and (min(numbers) < 0 or max(numbers) >= INT32)):
        return None
    return dict(zip(numbers, values, strict=True))


def _strict_assignment(path: str, name: str, pairs: Sequence[tuple[str, Any]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, value in pairs:
        if not (key.isascii() and key.isdigit()) or str(int(key[:11])) != key or int(key) >= INT32:
            refuse(path, f"{key!r} in {name!r} is no partition number")
        found[int(key)] = node_ids(path, name, value)
    return found


def whole_number(path: str, name: str, value: Any, *, low: int, high: int) -> int:
    """A JSON number that is whole and with low <= number < high (true and false are no numbers)."""
    if type(value) is not int or not low <= value < high:
        refuse(path, f"the field {name!r} is no whole number in its range")
    return value


def node_ids(path: str, name: str, value: Any) -> list[int]:
    """A JSON list of broker ids, each once."""
    if type(value) is not list or (
        value and ({*map(type, value)} != {int} or min(value) < 0 or max(value) >= INT32)  # a hot path
    ):
        refuse(path, f"{name!r} holds something that is no list of broker ids")
    if len(set(value)) != len(value):
        refuse(path, f"{name!r} names a broker twice")
    return cast("list[int]", value)


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
