"""Kafka's encoder of password configurations in ZooKeeper (`org.apache.kafka.security.EncryptingPasswordEncoder`).

An encoded value is `name:value,name:value,...`; the key is made of `password.encoder.secret`.  What Kafka writes by
default is decoded: AES/CBC/PKCS5Padding under PBKDF2WithHmacSHA512, or PBKDF2WithHmacSHA1 where Java has no other, with
any key length.  Other ciphers and key factories that the configuration can name are refused by their names.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.errors import PasswordUndecodable

HASHES: Final = {  # by their names in cryptography, which is imported where a password is decoded: few trees have one
    "PBKDF2WITHHMACSHA512": "SHA512",
    "PBKDF2WITHHMACSHA1": "SHA1",
}
DEFAULT_FACTORY: Final = "PBKDF2WithHmacSHA512"
FIELDS: Final = (
    "cipherAlgorithm",
    "keyLength",
    "salt",
    "iterations",
    "encryptedPassword",
    "passwordLength",
    "initializationVector",
)
CIPHER: Final = "AES/CBC/PKCS5Padding"
ALGORITHM: Final = re.compile(r"[A-Za-z0-9/._-]{1,60}")  # a name that may be shown
BLOCK_BITS: Final = 128
MAX_ITERATIONS: Final = 10_000_000  # a znode must not be able to hold us up for hours
MAX_KEY_BITS: Final = 4096


@dataclass(frozen=True, slots=True)
class EncoderSecrets:
    """`password.encoder.secret` and, while one is being replaced, `password.encoder.old.secret`; they never leave it.

    A value that only the old one opens is refused by `decode` with that reason, since controllers do not try it when
    they copy; `decode_old` answers it, so that it can be compared all the same.
    """

    secret: str = field(repr=False)
    old: str | None = field(default=None, repr=False)

    def decode(self, encoded: str, where: str) -> str:
        """The clear password; PasswordUndecodable names `where`, and says neither value nor secret."""
        fields = dict(part.partition(":")[::2] for part in encoded.split(","))
        if "encryptedPassword" not in fields:
            raise PasswordUndecodable(
                "the value is not encoded: was it set by a broker without password.encoder.secret?", where=where
            )
        if missing := [name for name in FIELDS if name not in fields]:
            raise PasswordUndecodable(f"the encoded value lacks {missing[0]!r}", where=where)
        refused = _unsupported(fields)
        if refused:
            raise PasswordUndecodable(
                f"{refused} is not supported: set the configuration anew with Kafka's default password.encoder.*"
                " settings, or decode it with Kafka's own tool",
                where=where,
            )
        clear = self._opened(fields, self.secret)
        if clear is not None:
            return clear
        if self.old is not None and self._opened(fields, self.old) is not None:
            raise PasswordUndecodable(
                "the value is still encoded with password.encoder.old.secret: restart that broker, which encodes it"
                " anew",
                where=where,
            )
        raise PasswordUndecodable(
            "the value cannot be decoded with this password.encoder.secret: it is not the brokers', or the value is"
            " damaged",
            where=where,
        )

    def decode_old(self, encoded: str) -> str | None:
        fields = dict(part.partition(":")[::2] for part in encoded.split(","))
        if self.old is None or any(name not in fields for name in FIELDS) or _unsupported(fields):
            return None
        return self._opened(fields, self.old)

    def _opened(self, fields: Mapping[str, str], secret: str) -> str | None:
        """Decode with that secret; None where it does not fit."""
        try:
            key = derive_key(
                secret,
                fields.get("keyFactoryAlgorithm", DEFAULT_FACTORY),
                base64.b64decode(fields["salt"], validate=True),
                int(fields["iterations"]),
                int(fields["keyLength"]),
            )
            vector = base64.b64decode(fields["initializationVector"], validate=True)
            data = base64.b64decode(fields["encryptedPassword"], validate=True)
            clear = _decrypted(key, vector, data).decode("utf-8")
            # a wrong key may make text by chance where no padding or tag tells
            return clear if java_length(clear) == int(fields["passwordLength"]) else None
        except (ValueError, OverflowError):  # UnicodeDecodeError and binascii.Error are ValueErrors
            return None


def _unsupported(fields: Mapping[str, str]) -> str:
    """The algorithm of the value that is not Kafka's default, by name; "" where all are (pure)."""
    factory = fields.get("keyFactoryAlgorithm", DEFAULT_FACTORY)
    for what, name, known in (
        ("cipher", fields["cipherAlgorithm"], (CIPHER.upper(),)),
        ("key factory", factory, tuple(HASHES)),
    ):
        if name.upper() not in known:  # Java reads names in any case
            return f"the value's {what} {name if ALGORITHM.fullmatch(name) else 'of an odd name'}"
    return ""


def _decrypted(key: bytes, vector: bytes, data: bytes) -> bytes:
    """The clear bytes; ValueError: the bytes are not what the cipher makes with that key."""
    from cryptography.hazmat.primitives import padding  # noqa: PLC0415 - see HASHES
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    chained = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    unpadder = padding.PKCS7(BLOCK_BITS).unpadder()
    clear = unpadder.update(chained.update(data) + chained.finalize())
    return clear + unpadder.finalize()


def derive_key(secret: str, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    """`SecretKeyFactory.generateSecret(PBEKeySpec)`; ValueError: a number out of bounds."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - see HASHES
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC  # noqa: PLC0415

    if not 0 < iterations <= MAX_ITERATIONS or not 0 < bits <= MAX_KEY_BITS:
        raise ValueError("a key that nobody makes")
    digest = getattr(hashes, HASHES[factory.upper()])()
    return PBKDF2HMAC(digest, bits // 8, salt, iterations).derive(secret.encode())


def java_length(text: str) -> int:
    """`String.length()`: UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2
