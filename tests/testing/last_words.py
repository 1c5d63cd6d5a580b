"""What an error's next step wants a person to do before the same command again."""

from __future__ import annotations

import re
from typing import Final

RESTART: Final = re.compile(r"restart brokers? \[?([\d, ]+)\]?,?[a-z ,]* with the current file")


def told_to_restart(text: str) -> list[int]:
    """Brokers that it wants restarted: a channel of theirs was lost, a fault of Kafka's (tests/lab/dead_channel.py)."""
    found = RESTART.search(" ".join(text.split()))
    return [int(node) for node in found[1].split(",") if node.strip()] if found else []
