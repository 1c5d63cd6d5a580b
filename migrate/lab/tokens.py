"""Delegation tokens of a lab: created by the seed, and proven unchanged at the end.

A token's hmac is its password.  It is kept nowhere: what is written down are SHA-256 sums of ids and hmacs, both of
which are random or keyed and cannot be guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from migrate.errors import LabProofFailed, MigrateError, SeedRefused
from migrate.hosts.files import replace_file
from migrate.kafka.connection import Connection
from migrate.lab import seed_data as data
from migrate.lab.configure import inventory_of
from migrate.lab.ready import wait_until
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import Topology
from migrate.model.inventory import BrokerNode
from migrate.protocol.messages import CREATE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN, Code, error_name

TOKENS_FILE: Final = "tokens.json"
CALL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it may be stored: a hash of its password, times in milliseconds since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    ends: int
    hmac_sum: str


def create_tokens(topology: Topology, wanted: Sequence[data.SeedToken]) -> int:
    """Make the seed's tokens that are not there yet, and write down what they are; how many there are then.

    Raises:
        SeedRefused: no broker makes them.
        LabNotReady: a broker does not learn of them.
    """
    wait_until("asking for delegation tokens", lambda: _agree(topology, 0), *_watched(topology))
    there = {(token.owner, token.renewers) for token in _of_any(topology).values()}
    for token in wanted:
        if (f"User:{token.owner}", tuple(sorted(f"User:{user}" for user in token.renewers))) not in there:
            _create(topology, token)
    wait_until("waiting for delegation tokens", lambda: _agree(topology, len(wanted)), *_watched(topology))
    found = _of_any(topology)
    kept = {key: asdict(token) for key, token in sorted(found.items())}
    replace_file(str(topology.folder(TOKENS_FILE)), (json.dumps(kept, indent=1) + "\n").encode())
    return len(found)


def _watched(topology: Topology) -> tuple[Supervisor, list[str]]:
    return Supervisor(topology.processes), [broker.name for broker in topology.brokers]


def _agree(topology: Topology, least: int) -> str:
    """Does every broker return the same tokens, and that many?  "" if so, else what is missing."""
    told = [_ask(topology, broker) for broker in inventory_of(topology).brokers]
    for found in told:
        if isinstance(found, str):
            return found
        if found != told[0] or len(found) < least:
            return f"brokers tell {len(told[0])} and {len(found)} tokens"
    return ""


def _create(topology: Topology, token: data.SeedToken) -> None:
    """Only the broker that is controller makes tokens in ZooKeeper mode: each is asked until one does."""
    body = {
        "ownerPrincipalType": "User",
        "ownerPrincipalName": token.owner,
        "renewers": [{"principalType": "User", "principalName": user} for user in token.renewers],
        "maxLifetimeMs": -1,
    }
    said: list[str] = []
    inventory = inventory_of(topology)
    for broker in inventory.brokers:
        try:
            with Connection(broker.address, inventory.access_of(broker)) as connection:
                answer = connection.call(CREATE_DELEGATION_TOKEN, body, seconds=CALL_SECONDS)
        except MigrateError as error:
            said.append(error.what)
            continue
        if answer["errorCode"] == Code.NONE:
            return
        said.append(f"broker {broker.id}: {error_name(answer['errorCode'])}")
    raise SeedRefused(f"no broker made a delegation token for {token.owner}", why="; ".join(said))


def _ask(topology: Topology, broker: BrokerNode) -> dict[str, Token] | str:
    """Hash of its id -> each token that a broker returns, or why it returns none."""
    try:
        with Connection(broker.address, inventory_of(topology).access_of(broker)) as connection:
            answer = connection.call(DESCRIBE_DELEGATION_TOKEN, {"owners": None}, seconds=CALL_SECONDS)
            connection.refuse(DESCRIBE_DELEGATION_TOKEN, answer["errorCode"])
    except MigrateError as error:
        return f"broker {broker.id}: {error.what}"
    return dict(map(_token, answer["tokens"]))


def _of_any(topology: Topology) -> dict[str, Token]:
    """The tokens of the first broker that answers; LabProofFailed where none does."""
    told = [_ask(topology, broker) for broker in inventory_of(topology).brokers]
    for found in told:
        if not isinstance(found, str):
            return found
    raise LabProofFailed("no broker tells its delegation tokens", why="; ".join(map(str, told)))


def _token(entry: Mapping[str, Any]) -> tuple[str, Token]:
    """The sum of its id, and the token (pure)."""
    return _sum(entry["tokenId"].encode()), Token(
        owner=f"{entry['principalType']}:{entry['principalName']}",
        requester=f"{entry['tokenRequesterPrincipalType']}:{entry['tokenRequesterPrincipalName']}",
        renewers=tuple(sorted(f"{one['principalType']}:{one['principalName']}" for one in entry["renewers"])),
        issued=entry["issueTimestamp"],
        ends=entry["maxTimestamp"],
        hmac_sum=_sum(entry["hmac"]),
    )


def compared(topology: Topology, now_ms: int) -> tuple[int, str]:
    """How many of the seed's tokens are due now, and what is wrong with them ("" for nothing).

    A token whose end has passed may be gone.  Raises LabProofFailed where no broker answers.
    """
    path = topology.folder(TOKENS_FILE)
    before: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    now = {key: json.loads(json.dumps(asdict(token))) for key, token in _of_any(topology).items()}
    return _judged(before, now, now_ms)


def _judged(before: Mapping[str, Any], now: Mapping[str, Any], now_ms: int) -> tuple[int, str]:
    due = {key: told for key, told in before.items() if told["ends"] > now_ms}
    changed = sum(now.get(key) != told for key, told in due.items())
    strange = len(now.keys() - before.keys())
    against = [f"{changed} of {len(due)} are missing or not the same"] if changed else []
    return len(due), "; ".join([*against, *([f"{strange} came from nowhere"] if strange else [])])


def _sum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
