"""What `directories rescue` answers: what was found and what was done, for a person and as JSON (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NotRequired

from typing_extensions import TypedDict

from migrate.model.ids import directory_name
from migrate.model.outcome import Unknown
from migrate.model.rescue import Found, Stranded
from migrate.model.words import plural

if TYPE_CHECKING:
    from migrate.run.rescue import Rescued

SHOWN: Final = 30
ONE_REPLICA: Final = (
    "no other replica: it has no leader until its disk is back. Repair the disk, start the broker; where it still has "
    "no leader then, this command elects one (ElectLeaders PREFERRED). A new disk has none of its records."
)


def as_text(found: Found) -> Iterator[str]:
    """What was found, for a person."""
    yield f"at metadata offset {found.offset}:"
    for entry in found.dead:
        identity = f"not proven: {entry.id.reason}" if isinstance(entry.id, Unknown) else f"directory {entry.id}"
        yield f"dead: {entry.path} of broker {entry.broker}, {identity}"
        for proof in entry.proofs:
            yield f"        {proof}"
    for line in found.unseen:
        yield f"not seen: {line}"
    hanging = [row for row in found.stranded if row.hangs]
    for row in sorted(found.stranded, key=lambda one: not one.hangs)[:SHOWN]:
        yield _row(row)
    if len(found.stranded) > SHOWN:
        yield f"... and {len(found.stranded) - SHOWN} more (--output json has them all)"
    for one in found.leaderless[:SHOWN]:
        yield f"no leader: {one.topic}-{one.partition}, whose replica on broker {one.broker} is online again"
    if not found.dead and not found.stranded and not found.leaderless:
        among = " among what was seen" if found.unseen else ""
        none = "no directory of a running broker is dead, no replica's is wrong, no leader is missing"
        yield f"nothing to rescue{among}: {none}"
        yield "kraft-migrate status shows what is broken under a broker that is down"
        return
    for broker in found.brokers:
        for directory, rows in found.to_send(broker).items():
            yield f"to be sent for broker {broker}: directory {directory}, {plural(len(rows), 'replica')}"
    yield f"{plural(len(hanging), 'partition replica')} holding a partition up, of {len(found.stranded)} stranded"


def _row(row: Stranded) -> str:
    what = "HANGS" if row.hangs else "stranded"
    role = "leads" if row.leads else "in the ISR" if row.in_isr else "not in the ISR"
    alone = f"; {ONE_REPLICA}" if row.alone and row.hangs else ""
    named = directory_name(row.in_metadata) or "nothing"
    where = f"{row.topic}-{row.partition} on broker {row.broker} ({role})"
    return f"{what}  {where}: {row.kind}, the metadata says {named}{alone}"


def done_text(done: Rescued) -> Iterator[str]:
    """What was done, for a person."""
    if done.sent:
        yield f"sent: {plural(done.sent, 'replica')} in {plural(done.requests, 'request')}"
        freed = plural(done.freed, "replica")
        yield f"proven by the metadata at offset {done.offset}: {freed} that held a partition up hold it up no longer"
    if done.elected:
        yield f"elected: {plural(done.elected, 'leader')}"
    for row in done.lost[:SHOWN]:
        yield f"left: {row.topic}-{row.partition}: {ONE_REPLICA}"


class Identity(TypedDict):
    """A directory's id; null where nothing proves it, and `why`."""

    id: str | None
    why: str | None


class DeadRow(Identity):
    """A dead directory, and what proves its id."""

    broker: int
    path: str
    proofs: Sequence[str]


class StrandedRow(TypedDict):
    """A replica in it, or one whose directory in the metadata is wrong; `send` is the id to be sent."""

    topic: str
    topic_id: str
    partition: int
    broker: int
    kind: str
    in_metadata: str
    send: Identity
    leads: bool
    in_isr: bool
    alone: bool
    hangs: bool


class LeaderlessRow(TypedDict):
    """A partition without leader although the replica on that broker is online again."""

    topic: str
    partition: int
    broker: int


class RescueAnswer(TypedDict):
    """What `directories rescue` answers: what was found, and what was sent."""

    offset: int
    dead: list[DeadRow]
    stranded: list[StrandedRow]
    leaderless: list[LeaderlessRow]
    unseen: Sequence[str]
    sent: bool
    requests: NotRequired[int]
    elected: NotRequired[int]
    freed: NotRequired[int]


def as_json(found: Found) -> RescueAnswer:
    """What was found, as JSON takes it."""

    def told(value: object) -> Identity:
        return {"id": None, "why": value.reason} if isinstance(value, Unknown) else {"id": str(value), "why": None}

    return {
        "offset": found.offset,
        "dead": [
            {"broker": entry.broker, "path": entry.path, **told(entry.id), "proofs": list(entry.proofs)}
            for entry in found.dead
        ],
        "stranded": [
            {
                "topic": row.topic,
                "topic_id": row.topic_id,
                "partition": row.partition,
                "broker": row.broker,
                "kind": row.kind.name.lower(),
                "in_metadata": row.in_metadata,
                "send": told(row.send),
                "leads": row.leads,
                "in_isr": row.in_isr,
                "alone": row.alone,
                "hangs": row.hangs,
            }
            for row in found.stranded
        ],
        "leaderless": [
            {"topic": entry.topic, "partition": entry.partition, "broker": entry.broker} for entry in found.leaderless
        ],
        "unseen": found.unseen,
        "sent": False,
    }
