"""Kafka's own password encoder in a JVM, and the settings that are decoded.

`python -m tests.testing.kafka_encoder` writes tests/data/zookeeper/encoded-by-kafka.json.gz anew.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from migrate.zookeeper.password_encoder import BLOCK_BITS, CIPHER, derive_key, java_length
from tests.testing.kafka_jvm import kafka_jvm

CAPTURED = Path(__file__).parents[1] / "data" / "zookeeper" / "encoded-by-kafka.json.gz"
SECRET = "sixteen-chars-ok"
PASSWORD = 'keystore,p"ss=wörd: 🔑'  # 22 UTF-16 units, 25 bytes
DEFAULT_FACTORY = "PBKDF2WithHmacSHA512"
KEYS = (128, 192, 256)
SHA1 = "PBKDF2WithHmacSHA1"


@dataclass(frozen=True)
class Setting:
    """password.encoder.*: key factory, cipher, key length, iterations."""

    factory: str
    cipher: str
    bits: int
    iterations: int


def settings() -> list[Setting]:
    """Every key length and key factory that is decoded; one spelled otherwise."""
    found = [Setting(DEFAULT_FACTORY, CIPHER, 128, 4096), Setting(SHA1, CIPHER, 128, 4096)]
    found += [Setting(DEFAULT_FACTORY, CIPHER, bits, 3) for bits in KEYS]
    found += [Setting(factory, CIPHER, 256, 7) for factory in (SHA1, DEFAULT_FACTORY)]
    found.append(Setting("pbkdf2withhmacsha512", "aes/cbc/pkcs5padding", 128, 7))
    return found


def encode(password: str, secret: str, iterations: int = 4096, key_bits: int = 128) -> str:
    """The password as Kafka's default encoder would write it (a new salt and initialization vector each time)."""
    salt, vector = secrets.token_bytes(256), secrets.token_bytes(16)
    padder = padding.PKCS7(BLOCK_BITS).padder()
    padded = padder.update(password.encode()) + padder.finalize()
    key = derive_key(secret, DEFAULT_FACTORY, salt, iterations, key_bits)
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    values = {
        "keyFactoryAlgorithm": DEFAULT_FACTORY,
        "cipherAlgorithm": CIPHER,
        "keyLength": str(key_bits),
        "salt": base64.b64encode(salt).decode(),
        "iterations": str(iterations),
        "encryptedPassword": base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode(),
        "passwordLength": str(java_length(password)),
        "initializationVector": base64.b64encode(vector).decode(),
    }
    return ",".join(f"{name}:{value}" for name, value in values.items())


class KafkaEncoder:
    """`org.apache.kafka.security.PasswordEncoder` of Kafka 3.9."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def encode(self, password: str, secret: str, setting: Setting) -> str:
        """As a broker with these settings writes it."""
        encoded: str = self._encoder(secret, setting).encode(self._password(password))
        return encoded

    def decode(self, encoded: str, secret: str, setting: Setting) -> str:
        """As a broker reads it: all but the secret stands in the value."""
        clear: str = self._encoder(secret, setting).decode(encoded).value()
        return clear

    def _encoder(self, secret: str, setting: Setting) -> Any:
        return self._jvm.org.apache.kafka.security.PasswordEncoder.encrypting(
            self._password(secret), setting.factory, setting.cipher, setting.bits, setting.iterations
        )

    def _password(self, text: str) -> Any:
        return self._jvm.org.apache.kafka.common.config.types.Password(text)


@contextlib.contextmanager
def kafka_encoder() -> Iterator[KafkaEncoder]:
    """A JVM with Kafka's classes, reached by Py4J."""
    with kafka_jvm() as gateway:
        yield KafkaEncoder(gateway.jvm)


def captured() -> list[tuple[Setting, str]]:
    """What Kafka's class made of PASSWORD once with each setting, and SECRET."""
    rows = json.loads(gzip.decompress(CAPTURED.read_bytes()))
    return [(Setting(**row["setting"]), row["encoded"]) for row in rows]


def capture() -> None:
    """Write the file anew."""
    with kafka_encoder() as kafka:
        rows = [
            {"setting": asdict(setting), "encoded": kafka.encode(PASSWORD, SECRET, setting)} for setting in settings()
        ]
    CAPTURED.write_bytes(gzip.compress(json.dumps(rows, indent=1).encode(), mtime=0))


if __name__ == "__main__":
    capture()
