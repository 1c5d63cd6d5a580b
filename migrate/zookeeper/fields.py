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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast
from urllib.parse import quote, unquote_plus

from migrate.errors import MalformedZnode, PasswordUndecodable
from migrate.model import strict_json
from migrate.model.config_keys import DEFAULT_ENTITY
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester, is_password_config
from migrate.zookeeper.password_encoder import EncoderSecrets

INT32: Final = 2**31
INT64: Final = 2**63


def refuse(path: str, what: str) -> NoReturn:
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
        return cls.of(path, parse_json(path, data))

    @classmethod
    def of(cls, path: str, value: Any) -> JsonZnode:
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
        found = self.integer(name, low=-INT32, high=INT32)
        if found not in known:
            refuse(self.path, f"version {found} is not known (known: {', '.join(map(str, known))})")
        return found

    def text(self, name: str) -> str:
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
        value = self._field(name)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            refuse(self.path, f"the field {name!r} is no list of strings")
        return tuple(value)

    def node_ids(self, name: str) -> list[int]:
        return node_ids(self.path, name, self._field(name))

    def objects(self, name: str) -> tuple[JsonZnode, ...]:
        value = self._field(name)
        if not isinstance(value, list):
            refuse(self.path, f"the field {name!r} is no list")
        return tuple(JsonZnode.of(self.path, entry) for entry in value)

    def object(self, name: str) -> JsonZnode:
        value = self._field(name)
        if not isinstance(value, dict):
            refuse(self.path, f"the field {name!r} is no object")
        return JsonZnode(self.path, value)

    def assignment(self, name: str) -> dict[int, list[int]]:
        """Partition number -> broker ids; an absent field is an empty one (topics of versions 1 and 2)."""
        if not self.has(name):
            return {}
        found: dict[int, list[int]] = {}
        for key, value in self.object(name).items():
            number = int(key) if key.isascii() and key.isdigit() and len(key) < 11 else -1
            if not 0 <= number < INT32 or str(number) != key:
                refuse(self.path, f"{key!r} in {name!r} is no partition number")
            found[number] = node_ids(self.path, name, value)
        return found

    def items(self) -> list[tuple[str, Any]]:
        return list(self._values.items())


def whole_number(path: str, name: str, value: Any, *, low: int, high: int) -> int:
    if type(value) is not int or not low <= value < high:
        refuse(path, f"the field {name!r} is no whole number in its range")
    return value


def node_ids(path: str, name: str, value: Any) -> list[int]:
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
WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}")
WHOLE_QUOTAS: Final = {"producer_byte_rate": INT64, "consumer_byte_rate": INT64, "connection_creation_rate": INT32}
ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
ONLY_OLD: Final = " (only password.encoder.old.secret opens it: a restart of that broker encodes it again)"
ACL_TYPE: Final = re.compile("Topic|Group|Cluster|TransactionalId|DelegationToken|User")
ACL_OPERATION: Final = re.compile(
    "All|Read|Write|Create|Delete|Alter|Describe|ClusterAction|DescribeConfigs|AlterConfigs|IdempotentWrite|"
    "CreateTokens|DescribeTokens"
)
ACL_PERMISSION: Final = re.compile("Allow|Deny")
WORD_ENDS: Final = re.compile("(?<=[a-z])(?=[A-Z])")

Row = tuple[str, str, str, str]  # kind, key, name and value of a row of EntityColumns


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is needed to compare secrets: the run's digester, and the brokers' password.encoder.secret (or None).

    Gathered while reading: `undecodable` is what the secret does not open, `blind` what cannot be compared.
    """

    digester: Digester
    encoder: EncoderSecrets | None
    undecodable: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)


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


def topic_configs(path: str, topic: str, data: bytes | None) -> Iterator[Row]:
    for name, value in config(path, data).items():
        yield "topic-config", topic, name, value


def broker_configs(path: str, broker: str, data: bytes | None, secrets: Secrets) -> Iterator[Row]:
    if broker != DEFAULT_ENTITY:
        try:
            NodeId(broker)
        except ValueError:
            refuse(path, "the znode's name is neither a broker id nor <default>")
    for name, value in config(path, data).items():
        if not is_password_config(name):
            yield "broker-config", broker, name, value
        elif secrets.encoder is None:
            secrets.blind.append(f"{path}: {name} is encoded, and no password.encoder.secret was given to compare it")
        else:
            try:
                clear = secrets.encoder.decode(value, f"{path} {name}")
            except PasswordUndecodable as error:
                older = secrets.encoder.decode_old(value)
                secrets.undecodable.append(f"{path} {name}{ONLY_OLD if older is not None else ''}")
                if older is None:
                    secrets.blind.append(str(error))
                    continue
                clear = older
            yield "broker-config", broker, name, secrets.digester.digest(clear)


def quota_entity(path: str, parts: Mapping[str, str]) -> str:
    """The key of a client quota: entity type -> znode name becomes `client-id=app/user=bob%40x.y`."""
    return "/".join(
        f"{kind}={name if name == DEFAULT_ENTITY else quote(desanitize(path, name), safe='')}"
        for kind, name in sorted(parts.items())
    )


def quotas(path: str, parts: Mapping[str, str], data: bytes | None) -> Iterator[Row]:
    """Of a client id, an ip, or a user alone or with a client id: all of the configuration but credentials of users."""
    others = SCRAM_MECHANISMS if [*parts] == ["user"] else ()
    for name, value in config(path, data).items():
        if name in others:
            continue
        number = float(value) if NUMBER.fullmatch(value) else math.nan
        if not math.isfinite(number):
            refuse(path, f"the quota {name!r} is no number")
        limit = WHOLE_QUOTAS.get(name)
        if limit is not None and not (WHOLE.fullmatch(value) and -limit <= int(value) < limit):
            refuse(path, f"the quota {name!r} is no whole number, and no broker starts with it")  # QuotaConfigHandler
        yield "client-quota", quota_entity(path, parts), name, repr(number)


def scrams(path: str, user: str, data: bytes | None, digester: Digester) -> Iterator[Row]:
    """`ScramCredentialUtils.credentialFromString`; no part of the credential stands in a message."""
    values = config(path, data)
    for mechanism in SCRAM_MECHANISMS:
        if mechanism not in values:
            continue
        name = desanitize(path, user)
        parts = dict(part.partition("=")[::2] for part in values[mechanism].split(","))
        iterations = parts.get("iterations", "")
        if set(parts) != {*SCRAM_FIELDS, "iterations"} or not re.fullmatch("[0-9]{1,9}", iterations):
            refuse(path, f"the {mechanism} credential is not salt, stored_key, server_key and iterations")
        for part in SCRAM_FIELDS:
            try:
                raw = base64.b64decode(parts[part], validate=True)
            except (binascii.Error, ValueError):
                refuse(path, f"the {part} of the {mechanism} credential is no base64")
            yield "scram", name, f"{mechanism}.{part}", digester.digest(raw)
        yield "scram", name, f"{mechanism}.iterations", str(int(iterations))


def _constant(word: str) -> str:
    """The name of the enum's constant: TransactionalId is TRANSACTIONAL_ID."""
    return WORD_ENDS.sub("_", word).upper()


def acls(path: str, kind: str, pattern: str, name: str, data: bytes | None) -> Iterator[Row]:
    """Of one resource, sorted, each once: an ACL is a set in Kafka (`AclEntry.fromBytes`)."""
    if not ACL_TYPE.fullmatch(kind):
        refuse(path, f"{kind!r} is no resource type")
    if not data:
        return
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    found: set[str] = set()
    for entry in fields.objects("acls"):
        operation, permission = entry.text("operation"), entry.text("permissionType")
        if not ACL_OPERATION.fullmatch(operation) or not ACL_PERMISSION.fullmatch(permission):
            refuse(path, "an ACL has an operation or permission type that Kafka does not know")
        parts = (name, entry.text("principal"), entry.text("host"))
        quoted = "|".join(quote(part, safe="*:") for part in parts)
        found.add(f"{_constant(kind)}|{pattern}|{quoted}|{_constant(operation)}|{_constant(permission)}")
    for key in sorted(found):
        yield "acl", key, "present", "true"


def token(path: str, name: str, data: bytes | None, digester: Digester) -> Iterator[Row]:
    """`DelegationTokenManagerZk.fromBytes`, versions 1 to 3; 1 and 2 know no requester: it is the owner.

    Its password is of the znode's name in ZooKeeper mode, and of its own id in KRaft mode: they must be one.
    """
    fields = JsonZnode.parse(path, data)
    version = fields.version((1, 2, 3))
    owner = _principal(path, fields.text("owner"))
    requester = _principal(path, fields.text("tokenRequester")) if version > 2 else owner
    renewers = sorted(_principal(path, renewer) for renewer in fields.texts("renewers"))
    issued, ends, expiry = (
        fields.integer(one, low=-INT64, high=INT64) for one in ("issueTimestamp", "maxTimestamp", "expiryTimestamp")
    )
    if fields.text("tokenId") != name:
        refuse(path, "its tokenId is not the znode's name: its password changes with KRaft mode")
    key = digester.digest(name)
    for part, value in (
        ("owner", owner),
        ("requester", requester),
        ("renewers", ",".join(renewers)),
        ("issue_timestamp", str(issued)),
        ("max_timestamp", str(ends)),
        ("expiration_timestamp", str(expiry)),
    ):
        yield "delegation-token", key, part, value


def _principal(path: str, text: str) -> str:
    """`SecurityUtils.parseKafkaPrincipal` of a sanitized text: the copy ends on one without a type."""
    name = desanitize(path, text)
    if ":" not in name:
        refuse(path, "a principal has no type: User:NAME")
    return name
