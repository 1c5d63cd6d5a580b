"""A lab's delegation tokens, as they are told and as they are held against each other (on real Kafka: test_cluster)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from migrate.lab.tokens import Token, _judged, _token

ANSWER = {
    "principalType": "User",
    "principalName": "bob@example.org",
    "tokenRequesterPrincipalType": "User",
    "tokenRequesterPrincipalName": "admin",
    "issueTimestamp": 1000,
    "expiryTimestamp": 1500,
    "maxTimestamp": 2000,
    "tokenId": "canary-id",
    "hmac": b"canary-hmac",
    "renewers": [
        {"principalType": "User", "principalName": "carol"},
        {"principalType": "User", "principalName": "alice"},
    ],
}
BEFORE: dict[str, Any] = {"a": {"ends": 2000, "owner": "x"}, "b": {"ends": 3000, "owner": "y"}}


def test_a_token_is_kept_without_its_id_and_its_password() -> None:
    """Sums of both; who may renew it is a set."""
    key, token = _token(ANSWER)
    assert key == hashlib.sha256(b"canary-id").hexdigest()
    assert token == Token(
        owner="User:bob@example.org",
        requester="User:admin",
        renewers=("User:alice", "User:carol"),
        issued=1000,
        ends=2000,
        hmac_sum=hashlib.sha256(b"canary-hmac").hexdigest(),
    )
    assert "canary" not in repr((key, token))


@pytest.mark.parametrize(
    ("now", "clock", "verdict"),
    [
        (BEFORE, 0, (2, "")),
        ({"b": BEFORE["b"]}, 0, (2, "1 of 2 are missing or not the same")),
        ({"b": BEFORE["b"]}, 2000, (1, "")),
        ({}, 3000, (0, "")),
        ({**BEFORE, "b": {"ends": 3000, "owner": "z"}}, 0, (2, "1 of 2 are missing or not the same")),
        ({**BEFORE, "c": {}}, 0, (2, "1 came from nowhere")),
        ({"c": {}}, 0, (2, "2 of 2 are missing or not the same; 1 came from nowhere")),
    ],
)
def test_what_is_missing_changed_or_new_is_said_and_what_ended_is_not(
    now: dict[str, Any], clock: int, verdict: tuple[int, str]
) -> None:
    """Only tokens that may still be used are due."""
    assert _judged(BEFORE, now, clock) == verdict
