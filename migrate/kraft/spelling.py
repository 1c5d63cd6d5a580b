"""How the KRaft view spells entity keys and enum values, so that they compare with ZooKeeper's.

Names are those of Kafka's enums: `ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType`, `ScramMechanism`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from migrate.protocol.fields import Values

DEFAULT: Final = "<default>"
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

CONFIG_KINDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        TOPIC_RESOURCE: "topic-config",
        BROKER_RESOURCE: "broker-config",
        8: "broker-logger-config",
        16: "client-metrics-config",
        32: "group-config",
    }
)
SCRAM_MECHANISMS: Final[Mapping[int, str]] = MappingProxyType({1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"})

_RESOURCES: Final = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
_PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS: Final = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
)
_PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")


def _named(names: tuple[str, ...], code: int) -> str:
    """The enum's name; a code that 3.9 lacks stays visible as its number."""
    return names[code] if 0 <= code < len(names) else f"UNKNOWN({code})"


def acl_key(values: Values) -> str:
    """`TOPIC|LITERAL|name|principal|host|READ|ALLOW` of an AccessControlEntryRecord."""
    return "|".join(
        (
            _named(_RESOURCES, values["resourceType"]),
            _named(_PATTERNS, values["patternType"]),
            *(quote(values[name], safe="*:") for name in ("resourceName", "principal", "host")),
            _named(_OPERATIONS, values["operation"]),
            _named(_PERMISSIONS, values["permissionType"]),
        )
    )


def quota_key(entity: Iterable[Values]) -> str:
    """`client-id=a/user=<default>` of a ClientQuotaRecord's entity: parts sorted by type, names quoted."""
    parts = sorted(
        ((part["entityType"], part["entityName"]) for part in entity), key=lambda part: (part[0], part[1] or "")
    )
    return "/".join(f"{kind}={DEFAULT if name is None else quote(name, safe='')}" for kind, name in parts)


def config_kind(resource_type: int) -> str:
    """The entity kind of a ConfigRecord's resource type."""
    return CONFIG_KINDS.get(resource_type, f"config-{resource_type}")


def config_key(resource_type: int, name: str) -> str:
    """The entity key: a broker's id, `<default>` for all brokers, else the resource's name."""
    return DEFAULT if resource_type == BROKER_RESOURCE and not name else name


def scram_mechanism(code: int) -> str:
    """The mechanism's name."""
    return SCRAM_MECHANISMS.get(code, f"SCRAM-UNKNOWN({code})")


def endpoint(values: Values) -> str:
    """`NAME://host:port` of a registration's endpoint; an IPv6 host stands in brackets, as in `listeners`."""
    host = f"[{values['host']}]" if ":" in values["host"] else values["host"]
    return f"{values['name']}://{host}:{values['port']}"
