"""The protocol of a migration as a pure machine: from any state, half-done ones too, what may come next, both ways."""

from migrate.model.machine.back import back
from migrate.model.machine.forward import forward
from migrate.model.machine.moves import EVERY, Act, Choice, Done, Guard, Guards, Move, Moves, Stop, Wait
from migrate.model.machine.standing import (
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
