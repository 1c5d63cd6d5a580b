"""Kafka's encoder of password configurations in ZooKeeper (`org.apache.kafka.security.EncryptingPasswordEncoder`).

An encoded value is `name:value,name:value,...`; the key is PBKDF2 of `password.encoder.secret`.  CBC and GCM modes of
AES are read, which are those that Kafka documents; what is written is Kafka's default.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from migrate.errors import PasswordUndecodable

HASHES: Final[dict[str, type[hashes.HashAlgorithm]]] = {
    "PBKDF2WithHmacSHA512": hashes.SHA512,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA1": hashes.SHA1,
}
CBC: Final = "AES/CBC/PKCS5Padding"
GCM: Final = "AES/GCM/NoPadding"
BLOCK_BITS: Final = 128
MAX_ITERATIONS: Final = 10_000_000  # a znode must not be able to hold us up for hours
GCM_TAG_BITS: Final = 128


def encode(password: str, secret: str, iterations: int = 4096, key_bits: int = 128) -> str:
    """The password as Kafka's default encoder would write it (a new salt and initialization vector each time)."""
    salt, vector = secrets.token_bytes(256), secrets.token_bytes(16)
    padder = padding.PKCS7(BLOCK_BITS).padder()
    padded = padder.update(password.encode()) + padder.finalize()
    key = _key(secret, "PBKDF2WithHmacSHA512", salt, iterations, key_bits)
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    fields = {
        "keyFactoryAlgorithm": "PBKDF2WithHmacSHA512",
        "cipherAlgorithm": CBC,
        "keyLength": str(key_bits),
        "salt": base64.b64encode(salt).decode(),
        "iterations": str(iterations),
        "encryptedPassword": base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode(),
        "passwordLength": str(_java_length(password)),
        "initializationVector": base64.b64encode(vector).decode(),
    }
    return ",".join(f"{name}:{value}" for name, value in fields.items())


class PasswordDecoder:
    """Decodes values with one `password.encoder.secret`; the secret never leaves it."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "PasswordDecoder(***)"

    def decode(self, encoded: str, where: str) -> str:
        """The clear password; PasswordUndecodable names `where`, and says neither value nor secret."""
        fields = dict(part.partition(":")[::2] for part in encoded.split(","))
        if "encryptedPassword" not in fields:
            raise PasswordUndecodable(
                "the value is not encoded: was it set by a broker without password.encoder.secret?", where=where
            )
        try:
            clear = self._decrypt(fields).decode("utf-8")
            if _java_length(clear) != int(fields["passwordLength"]):
                raise PasswordUndecodable(
                    "the decoded password has another length: the secret is not the brokers'", where=where
                )
        except KeyError as error:
            raise PasswordUndecodable(f"the encoded value lacks {error}", where=where) from None
        except (ValueError, InvalidTag, OverflowError):  # UnicodeDecodeError and binascii.Error are ValueErrors
            raise PasswordUndecodable("the value cannot be decoded with this secret", where=where) from None
        return clear

    def _decrypt(self, fields: dict[str, str]) -> bytes:
        salt, vector = _base64(fields["salt"]), _base64(fields["initializationVector"])
        encrypted = _base64(fields["encryptedPassword"])
        factory = fields.get("keyFactoryAlgorithm", "PBKDF2WithHmacSHA512")
        key = _key(self._secret, factory, salt, int(fields["iterations"]), int(fields["keyLength"]))
        if fields["cipherAlgorithm"] == GCM:
            if int(fields.get("authenticationTagLength", GCM_TAG_BITS)) != GCM_TAG_BITS:
                message = "only the whole GCM tag is read"
                raise ValueError(message)
            return AESGCM(key).decrypt(vector, encrypted, None)
        if fields["cipherAlgorithm"] != CBC:
            message = "cipher not known"
            raise ValueError(message)
        decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
        unpadder = padding.PKCS7(BLOCK_BITS).unpadder()
        return unpadder.update(decryptor.update(encrypted) + decryptor.finalize()) + unpadder.finalize()


def _key(secret: str, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    if factory not in HASHES or not 0 < iterations <= MAX_ITERATIONS or bits not in (128, 192, 256):
        message = "key derivation not known"
        raise ValueError(message)
    return PBKDF2HMAC(HASHES[factory](), bits // 8, salt, iterations).derive(secret.encode())


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError from error


def _java_length(text: str) -> int:
    """`String.length()`: UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2
