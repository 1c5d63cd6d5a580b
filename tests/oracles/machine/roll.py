"""Rolling brokers one at a time, from whatever half-done state: what both directions share."""

from __future__ import annotations

from tests.oracles.machine.moves import WRITES, Act, Choice, Guard, Guards, Move, Moves, Stop, Wait, on_each
from tests.oracles.machine.standing import BrokerAt, Metadata, Mode, Standing


def roll(standing: Standing, to: Mode, guards: Guards, *, assign: bool = False) -> Choice | None:
    """The next moves of a roll of all brokers into a mode; None when every broker is there, and whole.

    A broker that is half way goes on first, and alone: stop, write, start.  With `assign`, directories may be sent for
    brokers that are still to be rolled.
    """
    half = [number for number, entry in enumerate(standing.brokers) if entry.half or entry.process is Mode.DOWN]
    if standing.metadata is Metadata.POST_MIGRATION and not half:
        # a controller without the flag takes no registration of a ZooKeeper-mode broker: it is whole in KRaft mode only
        half = [n for n, entry in enumerate(standing.brokers) if entry.process is not to and not entry.whole]
    others = [entry for number, entry in enumerate(standing.brokers) if number not in half]
    if Guard.WHOLE in guards:
        if len(half) > 1:
            return Wait("more than one broker is down or half way: only their owner may start the others")
        if not all(_fit(entry, to, guards) for entry in others):
            return Wait("every other broker to be whole")
    if half:
        return _go_on(half[0], standing.brokers[half[0]], to, guards)
    left = [number for number, entry in enumerate(standing.brokers) if entry.file is not to]
    if not left:
        return None
    moves = on_each(Act.STOP, left)
    if assign:
        unproven = [number for number in left if not standing.brokers[number].verified]
        moves = Moves((*moves.of, *on_each(Act.ASSIGN, unproven).of))
    return moves


def _fit(entry: BrokerAt, to: Mode, guards: Guards) -> bool:
    """Is this broker no reason to wait?  In KRaft mode its replicas must be VERIFIED, too, where more are to follow."""
    proven = entry.verified or to is not Mode.KRAFT or entry.process is not Mode.KRAFT or Guard.LEDGER not in guards
    return entry.whole and proven


def _go_on(number: int, entry: BrokerAt, to: Mode, guards: Guards) -> Choice:
    """The missing rest of one broker's restart."""
    if entry.process is to:  # a half-done rollback (or on) has changed its file only: nothing has to be restarted
        return Moves((Move(WRITES[to], number),))
    if not entry.healthy and to is not Mode.ZOOKEEPER and Guard.DISKS in guards:
        return Stop("the broker that is half way has a failed directory", Guard.DISKS)
    if entry.process is not Mode.DOWN:
        return Moves((Move(Act.STOP, number),))
    if entry.file is not to:
        return Moves((Move(WRITES[to], number),))
    if entry.session_left and Guard.SESSION in guards:
        return Wait("the ZooKeeper session of the broker's last process to end")
    return Moves((Move(Act.START, number),))
