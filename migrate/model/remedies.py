"""What to do about a replica whose row in the ledger is not VERIFIED, and what a broker's own answer says against it.

Pure.  A wrong value in the metadata is no matter of the ISR: AlterPartition does not look at directories, so that a
follower with a foreign directory is back in a full ISR within 0.3 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.model.ids import NodeId
from migrate.model.ledger import LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, LogDirAnswer, Registration
from migrate.model.words import plural
from migrate.model.world import World

RESCUE = "`directories rescue`"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, in words; `send` is the directory id that belongs into the metadata, "" where none is proven."""

    words: str
    send: str = ""


def remedy_of(row: LedgerRow, world: World) -> Remedy | None:
    """What to do about a row; None for a VERIFIED one."""
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(NodeId(row.broker))
    match row.state:
        case ReplicaState.VERIFIED:
            return None
        case ReplicaState.UNKNOWN:
            return Remedy("make what the reason names visible, and look again; until then nothing is known of it")
        case ReplicaState.TWO_COPIES:
            return Remedy(
                "a broker refuses to start on two copies: stop it, find out which one it used (the newer segments), "
                "move the other out of log.dirs, start it"
            )
        case ReplicaState.NOT_ON_DISK:
            return _not_on_disk(row, world)
        case ReplicaState.NOT_REGISTERED:
            return Remedy(
                "the broker runs without that directory, or has another id in its registration: restart it with all "
                f"its disks whole, it registers anew; until then see {RESCUE}"
            )
        case ReplicaState.MOVING:
            return Remedy("a move between directories is under way: wait for its end before the broker is restarted")
        case ReplicaState.MIGRATING | ReplicaState.UNASSIGNED:
            return _not_reported(row, registration)
        case ReplicaState.LOST | ReplicaState.MISMATCH:
            return _wrong(row, registration)


def _not_on_disk(row: LedgerRow, world: World) -> Remedy:
    said = (
        Unknown("it was not asked") if isinstance(world.live, Unknown) else world.live.log_dirs.get(NodeId(row.broker))
    )
    if isinstance(said, tuple) and any(answer.error for answer in said):
        return Remedy(f"a directory of broker {row.broker} is dead, the replica may lie there: see {RESCUE}")
    return Remedy("it is being created, or its disk is gone: look again; if it stays, look at the broker's log")


def _not_reported(row: LedgerRow, registration: Registration | None) -> Remedy:
    """The disk is well: the broker reports it by itself once it is in KRaft mode."""
    if registration is None:
        return Remedy("the broker is not registered: it reports its directories when it is")
    if row.on_disk not in registration.log_dirs:
        return Remedy("its directory is not registered: restart the broker with all its disks whole")
    send = f"`directories assign {row.broker}` sends the directory on disk"
    if registration.migrating:
        return Remedy(f"as it must be before the broker's restart into KRaft mode; {send} earlier", row.on_disk)
    return Remedy(f"the broker reports it within a second: if not, look at its log; {send}", row.on_disk)


def _wrong(row: LedgerRow, registration: Registration | None) -> Remedy:
    if registration is None:
        return Remedy("the broker is not registered with log directories: start it in migration mode")
    if row.in_metadata == row.on_disk:
        return Remedy("the two replica lists do not both name this broker: a reassignment is under way, or they differ")
    if row.on_disk not in registration.log_dirs:
        return Remedy("its directory is not registered: restart the broker with all its disks whole")
    by_itself = "a broker in migration mode never corrects it" if registration.migrating else "look again in a second"
    return Remedy(
        f"its disk fails without a failover, whatever the ISR says; {by_itself}: {RESCUE} sends the one on disk",
        row.on_disk,
    )


# -- DescribeLogDirs against the disks ---------------------------------------------------------------------------
def told_otherwise(world: World) -> Iterator[str]:
    """Where a broker's own answer differs from what lies on its disks; and whom nobody could ask."""
    if isinstance(world.disks, Unknown) or isinstance(world.live, Unknown):
        return
    for node in world.inventory.brokers:
        disks = world.disks.get(node.id, Unknown("its disks were not looked at"))
        said = world.live.log_dirs.get(node.id, Unknown("it was not asked"))
        if isinstance(said, Unknown):
            yield f"broker {int(node.id)} does not tell its log directories: {said.reason}"
        elif not isinstance(disks, Unknown):
            yield from _broker_told(int(node.id), disks, {answer.path: answer for answer in said})


def _broker_told(broker: int, disks: BrokerDisks, said: dict[str, LogDirAnswer]) -> Iterator[str]:
    for directory in disks.directories:
        answer = said.pop(directory.path, None)
        where = f"{directory.path} of broker {broker}"
        if answer is None:
            yield f"{where} is in its file, and the broker does not know it: it was started with another file"
        elif answer.error and directory.healthy:
            yield f"{where} is offline to the broker (error {answer.error}) and healthy on the disk: restart the broker"
        elif answer.error:
            yield f"{where} is dead: offline to the broker (error {answer.error}), {directory.problem or 'not healthy'}"
        elif directory.problem:
            yield f"{where} is broken ({directory.problem}), and the broker has not noticed yet"
        else:
            here = sum(kind == "current" for kind in directory.replicas.kind)
            if here != answer.replicas:
                yield f"{where} holds {plural(here, 'replica')}, the broker tells of {answer.replicas}"
    for path in said:
        yield f"{path} is a directory of broker {broker}, and not in its file"
