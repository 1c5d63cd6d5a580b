"""Java's ciphers by their names (`AES/CBC/PKCS5Padding`), as far as Kafka's password encoder can use them (pure).

`cipher/mode/padding`, case does not matter: AES, DES, DESede and Blowfish in CBC, PCBC, CFB, OFB, CTR and CTS, AES in
GCM and in key wrap, and ChaCha20-Poly1305.  The library decrypts blocks; the chaining is ours, since it has neither
PCBC, nor CTS, nor feedback of other widths.  ECB and stream ciphers have no initialization vector: Kafka refuses them.
Source: the JDK's SunJCE provider (`CipherCore`, `CipherFeedback`, `OutputFeedback`, `PCBC`, `CipherTextStealing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish, TripleDES
from cryptography.hazmat.primitives import keywrap
from cryptography.hazmat.primitives.ciphers import BlockCipherAlgorithm, Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES

Block = Callable[[bytes], bytes]

CHACHA: Final = "CHACHA20-POLY1305"
MAX_BYTES: Final = 1 << 16  # of ciphertext: feedback of eight bits costs a block a byte
KEY_WRAP_VECTOR: Final = bytes.fromhex("a6a6a6a6a6a6a6a6")  # RFC 3394
TAG_BITS: Final = (96, 104, 112, 120, 128)
CIPHERS: Final[Mapping[str, Callable[[bytes], BlockCipherAlgorithm]]] = {
    "AES": AES,
    "DES": lambda key: TripleDES(_sized(key, 8) * 3),
    "DESEDE": lambda key: TripleDES(_sized(key, 24)),
    "BLOWFISH": Blowfish,
}


def decrypt(name: str, key: bytes, vector: bytes, data: bytes, tag_bits: int = 128) -> bytes:
    """The clear bytes.  `tag_bits` is for GCM.

    Raises:
        ValueError: the cipher is none of those, or the bytes are not what it makes with that key.
    """
    if len(data) > MAX_BYTES:
        raise ValueError("too much of it")
    try:
        if name.upper() == CHACHA:
            return ChaCha20Poly1305(key).decrypt(vector, data, None)
        cipher, mode, padding = name.upper().split("/")
        algorithm = CIPHERS[cipher](key)
        if (mode, padding) == ("GCM", "NOPADDING") and cipher == "AES":
            return _gcm(algorithm, vector, data, tag_bits)
        if mode == "KW" and cipher == "AES":
            return _unpadded(_unwrapped(key, vector, data), 8, padding)
        clear = _chained(algorithm, mode, vector, data)
    except (KeyError, InvalidTag, UnsupportedAlgorithm, keywrap.InvalidUnwrap) as error:
        raise ValueError("no such cipher, or another key") from error
    return _unpadded(clear, algorithm.block_size // 8, padding)


def _sized(key: bytes, size: int) -> bytes:
    if len(key) != size:
        raise ValueError("a key of another length")
    return key


def _gcm(algorithm: BlockCipherAlgorithm, vector: bytes, data: bytes, tag_bits: int) -> bytes:
    size = tag_bits // 8
    if tag_bits not in TAG_BITS or len(data) < size:
        raise ValueError("no whole tag")
    opened = Cipher(algorithm, modes.GCM(vector, data[-size:], min_tag_length=size)).decryptor()
    return opened.update(data[:-size]) + opened.finalize()


def _unwrapped(key: bytes, vector: bytes, data: bytes) -> bytes:
    if vector != KEY_WRAP_VECTOR:
        raise ValueError("another vector than RFC 3394's")
    return keywrap.aes_key_unwrap(key, data)


def _unpadded(clear: bytes, block: int, padding: str) -> bytes:
    """Without the padding, whose last byte is its length."""
    if padding == "NOPADDING":
        return clear
    size = clear[-1] if clear else 0
    if not 1 <= size <= min(block, len(clear)):
        raise ValueError("no padding")
    if padding == "PKCS5PADDING" and clear[-size:] != bytes([size]) * size:
        raise ValueError("no padding")
    if padding not in ("PKCS5PADDING", "ISO10126PADDING"):
        raise ValueError("the padding is not known")
    return clear[:-size]


# -- chaining ------------------------------------------------------------------------------------------------------
def _chained(algorithm: BlockCipherAlgorithm, mode: str, vector: bytes, data: bytes) -> bytes:
    size = algorithm.block_size // 8
    if len(vector) != size:
        raise ValueError("a vector of another length")
    plain = Cipher(algorithm, modes.ECB())  # noqa: S305 - a single block; the chaining is below
    forward, back = plain.encryptor().update, plain.decryptor().update
    feedback, width = mode[:3], mode[3:]
    if feedback in ("CFB", "OFB"):
        step = int(width) // 8 if width else size
        if not (width or "8").isdecimal() or int(width or 8) % 8 or not 0 < step <= size:
            raise ValueError("no such feedback")
        return b"".join(_fed_back(forward, vector, data, step, own_output=feedback == "OFB"))
    if mode == "CTR":
        return b"".join(_counted(forward, vector, data))
    if mode == "CTS":
        return _stolen(back, vector, data)
    if mode not in ("CBC", "PCBC") or len(data) % size:
        raise ValueError("no such mode, or no whole blocks")
    return b"".join(_blocks(back, vector, data, plain_too=mode == "PCBC"))


def _xor(one: bytes, two: bytes) -> bytes:
    """As long as the shorter one."""
    return bytes(a ^ b for a, b in zip(one, two, strict=False))


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _blocks(back: Block, vector: bytes, data: bytes, *, plain_too: bool) -> Iterator[bytes]:
    """CBC, or PCBC, which chains the clear block with the encrypted one."""
    for piece in _pieces(data, len(vector)):
        clear = _xor(back(piece), vector)
        vector = _xor(clear, piece) if plain_too else piece
        yield clear


def _fed_back(forward: Block, register: bytes, data: bytes, step: int, *, own_output: bool) -> Iterator[bytes]:
    """CFB and OFB of `step` bytes: what is shifted in is the encrypted text, or the cipher's own output."""
    for piece in _pieces(data, step):
        made = forward(register)[:step]
        register = register[step:] + (made if own_output else piece)
        yield _xor(made, piece)


def _counted(forward: Block, vector: bytes, data: bytes) -> Iterator[bytes]:
    """CTR: the vector is a number that grows by one."""
    size, number = len(vector), int.from_bytes(vector, "big")
    for index, piece in enumerate(_pieces(data, size)):
        yield _xor(forward(((number + index) % (1 << 8 * size)).to_bytes(size, "big")), piece)


def _stolen(back: Block, vector: bytes, data: bytes) -> bytes:
    """CBC with ciphertext stealing, the last two blocks always exchanged (CS3)."""
    size = len(vector)
    if len(data) < size:
        raise ValueError("less than a block")
    if len(data) == size:
        return _xor(back(data), vector)
    rest = len(data) % size or size
    head, last, part = data[: -size - rest], data[-size - rest : -rest], data[-rest:]
    opened = back(last)
    whole = part + opened[rest:]
    return b"".join(_blocks(back, vector, head + whole, plain_too=False)) + _xor(opened, part)
