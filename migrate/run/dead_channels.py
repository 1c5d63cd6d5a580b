"""Brokers whose thread that speaks to the controller has died: named by their own logs, where a wait stood still.

Kafka 3.9's channels of one broker (alter-partition, forwarding, quorum) name their sensors by the broker alone, so two
of them that are remade at once, as control goes from KRaft to ZooKeeper or back, may leave metrics behind that nobody
removes (Selector.SelectorMetrics).  The next time the channel is remade, its thread ends with `A metric named ...
already exists` (NodeToControllerRequestThread.maybeResetNetworkClient; seen), and the broker lives on: partitions that
it leads never take a replica back into their ISR.  Only its restart makes the thread anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

DEAD: Final = re.compile(r"-to-controller-([a-z-]+)-channel-manager\]?: Error due to")


def dead(lines: Iterable[str]) -> tuple[str, ...]:
    """Channels whose thread has ended, by the lines of one life of a broker, in order, each once (pure)."""
    return tuple(dict.fromkeys(match[1] for line in lines if (match := DEAD.search(line))))


def why(found: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    """A line for each broker that has such a channel (pure)."""
    return tuple(
        f"broker {node}: its thread of channel {', '.join(channels)} has died (a fault of Kafka's, as control changed "
        "hands); what it leads takes no replica back into the ISR"
        for node, channels in found.items()
        if channels
    )


def next_step(found: Mapping[int, Sequence[str]]) -> str:
    """What brings them back; "" where none is dead (pure)."""
    nodes = [node for node, channels in found.items() if channels]
    if not nodes:
        return ""
    named = f"broker {nodes[0]}" if len(nodes) == 1 else f"brokers {nodes}, one by one,"
    return f"restart {named} with the file that lies there, then give the same command again"
