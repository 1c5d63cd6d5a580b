"""The protocol of a migration as a pure machine: from any state, half-done ones too, what may come next, both ways."""

from tests.oracles.machine.back import back
from tests.oracles.machine.forward import forward
from tests.oracles.machine.moves import EVERY, Act, Choice, Done, Guard, Guards, Move, Moves, Stop, Wait
from tests.oracles.machine.standing import (
    BrokerAt,
    ControllerAt,
    Flag,
    Metadata,
    Mode,
    Owner,
    Registered,
    Standing,
    Views,
    Znode,
)

__all__ = [
    "EVERY",
    "Act",
    "BrokerAt",
    "Choice",
    "ControllerAt",
    "Done",
    "Flag",
    "Guard",
    "Guards",
    "Metadata",
    "Mode",
    "Move",
    "Moves",
    "Owner",
    "Registered",
    "Standing",
    "Stop",
    "Views",
    "Wait",
    "Znode",
    "back",
    "forward",
]
