"""The playbook's `approvals` and each stage's `approval`: who must say yes, whose names are proven by a key."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from migrate.model.approvals import DEFAULT_EXPIRY, ApprovalRule, small_order
from migrate.playbook.fields import Duration, Section, Text, Whole

ALGORITHM: Final = "ssh-ed25519"
KEY_BLOB: Final = len(ALGORITHM) + 4 + 4 + 32  # two length-prefixed fields: the algorithm's name, 32 bytes
EXPECTED: Final = "a public key in one line is expected: ssh-ed25519 AAAA... (ssh-keygen -t ed25519 makes a pair)"

WEAK: Final = "this key is a point of small order: anybody can sign for it, and its private key does not exist"


def _key(text: str) -> str:
    """The key without its comment."""
    algorithm, _, rest = text.strip().partition(" ")
    blob = rest.split(" ")[0]
    try:
        raw = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(EXPECTED) from error
    if algorithm != ALGORITHM or len(raw) != KEY_BLOB or raw[4 : 4 + len(ALGORITHM)] != ALGORITHM.encode():
        raise ValueError(EXPECTED)
    if small_order(raw[-32:]):
        raise ValueError(WEAK)
    return f"{algorithm} {blob}"


PublicKey = Annotated[Text, AfterValidator(_key)]


class ApprovalsSection(Section):
    """Groups of reviewers, and public keys: a name with a key counts only where its approval is signed."""

    groups: dict[Text, Annotated[list[Text], Field(min_length=1)]] = Field(default_factory=dict)
    keys: dict[Text, PublicKey] = Field(default_factory=dict)
    signed: Literal["required", "where-known"] = "where-known"


class ApprovalSection(Section):
    """What one stage asks for before its first step."""

    reviewers: Annotated[list[Text], Field(min_length=1)]
    min: Annotated[Whole, Field(ge=1)] = 1
    expires: Annotated[Duration, Field(ge=60)] = DEFAULT_EXPIRY
    distinct: Annotated[Literal["true"], WithJsonSchema({"const": True})] = (
        "true"  # there is no other value: one person counts once
    )
    instructions: Text | None = None
    confirm: Literal["type-cluster-name"] | None = None  # finalize always asks for it

    def rule(self) -> ApprovalRule:
        """The rule as a value."""
        return ApprovalRule(tuple(self.reviewers), self.min, self.expires, True, self.instructions or "")
