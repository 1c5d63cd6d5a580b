"""Identifiers with their ranges, and Kafka's reserved directory ids.

Source: `server-common/.../common/DirectoryId.java`, `clients/.../common/Uuid.java` (3.9).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final, Self

UUID_TEXT_LENGTH: Final = 22
_UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")  # Python's decoder would let the plain alphabet's + and / pass
RESERVED_DIRECTORY_IDS: Final = 100  # msb 0 and lsb below this


class NodeId(int):
    """A broker's or controller's id: 0 to 2^31 - 1.  Brokers and controllers share one id space."""

    def __new__(cls, value: int | str) -> Self:
        """Raise ValueError outside the range."""
        number = int(value)
        if not 0 <= number < 2**31:
            message = f"node id {number} is outside 0..2147483647"
            raise ValueError(message)
        return super().__new__(cls, number)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, schema_of: Callable[[type], Any]) -> Any:
        """In the JSON Schema of an answer it is a number."""
        return schema_of(int)


class KafkaUuid(str):
    """A Kafka UUID in its text form: base64url of 16 bytes without padding, 22 characters."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Raise ValueError for anything else."""
        if not _UUID_TEXT.fullmatch(text):
            message = f"{text!r} is no Kafka UUID: {UUID_TEXT_LENGTH} characters of base64url expected"
            raise ValueError(message)
        return super().__new__(cls, text)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """The text form of 16 bytes (msb first)."""
        return cls(base64.urlsafe_b64encode(raw).rstrip(b"=").decode())

    @property
    def raw(self) -> bytes:
        return base64.urlsafe_b64decode(self + "==")


class TopicId(KafkaUuid):
    """A topic's id."""

    __slots__ = ()


class DirectoryId(KafkaUuid):
    """A log directory's id (`directory.id` of meta.properties)."""

    __slots__ = ()

    @property
    def reserved(self) -> bool:
        """True for the ids Kafka keeps for itself: the first hundred."""
        return int.from_bytes(self.raw, "big") < RESERVED_DIRECTORY_IDS


MIGRATING: Final = DirectoryId("AAAAAAAAAAAAAAAAAAAAAA")
UNASSIGNED: Final = DirectoryId("AAAAAAAAAAAAAAAAAAAAAQ")
LOST: Final = DirectoryId("AAAAAAAAAAAAAAAAAAAAAg")
_DIRECTORY_NAMES: Final = {str(MIGRATING): "MIGRATING", str(UNASSIGNED): "UNASSIGNED", str(LOST): "LOST"}
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")


def directory_name(directory: str) -> str:
    """A directory id as people read it: MIGRATING, UNASSIGNED and LOST by name."""
    return _DIRECTORY_NAMES.get(directory, directory)
