"""Moves between directories hold a roll: refused, or waited for where the playbook says `moves: wait` (pure)."""

from __future__ import annotations

from migrate.model.moves import moves, told
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.world import World

CODE = "B-DIR-12"
HOW_TO_END = "`kafka-reassign-partitions --verify` shows them; to end one, move the replica to where it lies now"


def ended(world: World) -> Readiness:
    """No replica of any broker is moving between its directories."""
    found = moves(world.disks)
    if isinstance(found, Unknown):
        return found
    if not found:
        return Ready()
    if isinstance(world.playbook, Unknown) or not world.playbook.wait_for_moves:
        return Refused(f"{told(found)}: wait until they are done, or let the playbook wait (moves: wait)", (CODE,))
    return NotYet(
        f"the end of {told(found)}",
        "whoever started them, and the brokers' move threads (replica.alter.log.dirs.io.max.bytes.per.second)",
        f"nothing: a finished move swaps the copies by itself; {HOW_TO_END}",
        progress=f"{len(found)} {sum(move.done for move in found)}",
    )


def none_half_done(world: World, broker: int) -> Readiness:
    """A stopped broker that is to start in KRaft mode has no future copy: it could be made the current one, unfinished.

    A move that began between the last look and the stop; nobody goes on with it while the broker is down.
    """
    found = moves(world.disks)
    if isinstance(found, Unknown):
        return found
    here = [move for move in found if move.broker == broker]
    if not here:
        return Ready()
    folders = ", ".join(f"{move.target}/{move.folder}" for move in here[:3])
    return Refused(
        f"broker {broker} was stopped in the middle of {told(here)}: delete the unfinished copy ({folders}) while it "
        "is down, or start it with the file of before and let the move end; then run the same command again",
        (CODE,),
    )
