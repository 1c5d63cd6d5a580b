"""Secrets never travel: they are compared as keyed digests, and their configuration names are a closed list.

In a text, `(sensitive 3f9a12cd)` is a value that is not shown.  Equal digits are equal values, within what one process
wrote: the key is in its memory alone, so whoever has the text cannot try a list of passwords on it.

Names: the keys of type PASSWORD among Kafka 3.9's broker configurations (`DynamicBrokerConfig.DynamicPasswordConfigs`
and `KafkaConfig`), with or without a `listener.name.<listener>.[<mechanism>.]` prefix.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

SENSITIVE: Final = "(sensitive)"
PASSWORD_CONFIGS: Final = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "password.encoder.secret",
    "password.encoder.old.secret",
    "delegation.token.secret.key",
    "delegation.token.master.key",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.truststore.password",
)


def is_password_config(name: str) -> bool:
    """Is that configuration key of Kafka's type PASSWORD (whatever its listener prefix)?"""
    return any(name == known or name.endswith("." + known) for known in PASSWORD_CONFIGS)


@dataclass(frozen=True, slots=True)
class Digester:
    """Keyed digests (HMAC-SHA-256) with a key that lives as long as one run: equal secrets compare equal, no more."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def digest(self, secret: str | bytes) -> str:
        """`hmac:` and 32 hex digits."""
        raw = secret.encode() if isinstance(secret, str) else secret
        return "hmac:" + hmac.new(self.key, raw, hashlib.sha256).hexdigest()[:32]


_OF_THIS_PROCESS: Final = Digester()
_DIGITS: Final = re.compile(r"\(sensitive [0-9a-f]{8}\)")


def hidden(value: str) -> str:
    """What is shown in place of that value: eight digits of its keyed digest."""
    raw = value.encode("utf-8", "surrogatepass")  # `\ud800` in a properties file is half of a character
    return f"(sensitive {_OF_THIS_PROCESS.digest(raw).removeprefix('hmac:')[:8]})"


def without_digits(text: str) -> str:
    """The text as every process writes it, to be compared or kept: `(sensitive)` for each hidden value."""
    return _DIGITS.sub(SENSITIVE, text)
