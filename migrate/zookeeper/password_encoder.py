"""Kafka's encoder of password configurations in ZooKeeper (`org.apache.kafka.security.EncryptingPasswordEncoder`).

An encoded value is `name:value,name:value,...`; the key is made of `password.encoder.secret`.  AES in the modes CBC
(Kafka's default), CTR and GCM is decoded, with every key factory; any other cipher that
`password.encoder.cipher.algorithm` can name is refused by its name.
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
    "PBKDF2WITHHMACSHA512/256": "SHA512_256",
    "PBKDF2WITHHMACSHA512/224": "SHA512_224",
    "PBKDF2WITHHMACSHA384": "SHA384",
    "PBKDF2WITHHMACSHA256": "SHA256",
    "PBKDF2WITHHMACSHA224": "SHA224",
    "PBKDF2WITHHMACSHA1": "SHA1",
}
PLAIN_KEY: Final = re.compile(r"PBEWITH\w+AND\w+")  # com.sun.crypto.provider.PBEKeyFactory: ASCII, and nothing derived
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
CBC: Final = "AES/CBC/PKCS5Padding"
CTR: Final = "AES/CTR/NoPadding"
GCM: Final = "AES/GCM/NoPadding"
CIPHERS: Final = (CBC, CTR, GCM)
BLOCK_BITS: Final = 128
MAX_ITERATIONS: Final = 10_000_000  # a znode must not be able to hold us up for hours
MAX_KEY_BITS: Final = 4096
GCM_TAG_BITS: Final = 128
GCM_TAGS: Final = (96, 104, 112, 120, 128)


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
        if fields["cipherAlgorithm"].upper() not in map(str.upper, CIPHERS):  # Java reads names in any case
            raise PasswordUndecodable(
                f"the cipher of the value is not supported (supported: {', '.join(CIPHERS)}): set the configuration"
                " anew with a default password.encoder.cipher.algorithm, or decode it with Kafka's own tool",
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
            " damaged, or its key factory is not known",
            where=where,
        )

    def decode_old(self, encoded: str) -> str | None:
        fields = dict(part.partition(":")[::2] for part in encoded.split(","))
        if self.old is None or any(name not in fields for name in FIELDS):
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
            tag_bits = int(fields.get("authenticationTagLength", GCM_TAG_BITS))
            clear = _decrypted(fields["cipherAlgorithm"].upper(), key, vector, data, tag_bits).decode("utf-8")
            # a wrong key may make text by chance where no padding or tag tells
            return clear if java_length(clear) == int(fields["passwordLength"]) else None
        except (ValueError, OverflowError):  # UnicodeDecodeError and binascii.Error are ValueErrors
            return None


def _decrypted(cipher: str, key: bytes, vector: bytes, data: bytes, tag_bits: int) -> bytes:
    """The clear bytes; ValueError: the bytes are not what that cipher makes with that key."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see HASHES
    from cryptography.hazmat.primitives import padding  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    algorithm = algorithms.AES(key)
    if cipher == GCM.upper():
        size = tag_bits // 8
        if tag_bits not in GCM_TAGS or len(data) < size:
            raise ValueError("no whole tag")
        opened = Cipher(algorithm, modes.GCM(vector, data[-size:], min_tag_length=size)).decryptor()
        try:
            return opened.update(data[:-size]) + opened.finalize()
        except InvalidTag as error:
            raise ValueError("another key") from error
    if cipher == CTR.upper():
        counted = Cipher(algorithm, modes.CTR(vector)).decryptor()
        return counted.update(data) + counted.finalize()
    if cipher != CBC.upper():
        raise ValueError("the cipher is not supported")
    chained, unpadder = Cipher(algorithm, modes.CBC(vector)).decryptor(), padding.PKCS7(BLOCK_BITS).unpadder()
    clear = unpadder.update(chained.update(data) + chained.finalize())
    return clear + unpadder.finalize()


def derive_key(secret: str, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    """`SecretKeyFactory.generateSecret(PBEKeySpec)`: PBKDF2, or the secret itself for the older PBE factories."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - see HASHES
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC  # noqa: PLC0415

    name = factory.upper()
    plain = PLAIN_KEY.fullmatch(name) and secret.isascii()
    if not 0 < iterations <= MAX_ITERATIONS or not 0 < bits <= MAX_KEY_BITS or not (plain or name in HASHES):
        raise ValueError("key derivation not known")
    if plain:
        return secret.encode()
    return PBKDF2HMAC(getattr(hashes, HASHES[name])(), bits // 8, salt, iterations).derive(secret.encode())


def java_length(text: str) -> int:
    """`String.length()`: UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2
