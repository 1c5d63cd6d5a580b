"""The floor: the lab's cluster through the same stages by the barest script, for the demo's time to be compared with.

Same topology, seed, heaps, heartbeats, configuration files and restarts as the demo, those after the
migration among them; no plan, no proof, no journal, no comparison: it changes a file, restarts, and waits only for what
the next change cannot do without.

    python -m tests.bench.floor DIR      (DIR must not exist; the cluster is stopped at the end)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from migrate.errors import NoActiveController
from migrate.hosts.properties import parse
from migrate.kafka.connection import Connection, cluster_id
from migrate.kafka.controller import ActiveController
from migrate.lab.cluster import Lab
from migrate.lab.ready import brokers_agree, port_answers, wait_until
from migrate.model.ids import NodeId
from migrate.steps import configuration
from tests.testing.this_host import format_storage

STOP_SECONDS: Final = 60.0
RELEASE: Final = "3.9-IV0"
DUAL_WRITE: Final = "from KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE"
FINALIZED: Final = "POST_MIGRATION"


class Floor:
    """One pass over one lab."""

    def __init__(self, directory: Path) -> None:
        self.lab = Lab.create(directory)
        self.inventory = self.lab.inventory
        self.active = ActiveController(self.inventory)
        self.seconds: dict[str, float] = {}

    def run(self) -> dict[str, float]:
        """Seconds by stage, in order, `total` last."""
        begun = time.monotonic()
        stages: list[tuple[str, Callable[[], object]]] = [
            ("up", self.lab.up),
            ("seed", self.lab.seed),
            ("controllers", self.controllers),
            ("migration-mode", lambda: self.roll(lambda raw, _: configuration.migration_mode(raw, self.inventory))),
            ("copy", lambda: self.await_log(DUAL_WRITE)),
            ("kraft-mode", lambda: self.roll(self.kraft)),
            ("finalize", self.finalize),
            ("without-zookeeper", self.without_zookeeper),
            ("again", self.start_again),
            ("down", self.lab.down),
        ]
        for name, act in stages:
            start = time.monotonic()
            act()
            self.seconds[name] = time.monotonic() - start
        self.seconds["total"] = time.monotonic() - begun
        return self.seconds

    # -- stages --------------------------------------------------------------------------------------------------
    def controllers(self) -> None:
        """Write, format and start all controllers at once; wait for a leader."""
        values = parse(Path(self.inventory.brokers[0].config).read_bytes())
        with Connection(self.inventory.brokers[0].address, self.inventory.broker_access) as connection:
            cluster = cluster_id(connection, controller=False)

        def begin(node: NodeId) -> None:
            format_storage(self.inventory, node, cluster, RELEASE)
            self.lab.supervisor.start(node)

        for node in self.inventory.controllers:
            Path(node.config).write_bytes(configuration.controller(values, self.inventory, node))
            Path(node.metadata_directory).mkdir(parents=True, exist_ok=True)
        nodes = [node.id for node in self.inventory.controllers]
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(begin, nodes))
        self.await_quorum()

    def roll(self, change: Callable[[bytes, NodeId], bytes]) -> None:
        """Every broker: stop, change its file, start, wait until all partitions are whole."""
        for broker in self.inventory.brokers:
            self.restart(broker.id, broker.config, partial(_for_node, change, broker.id))
            self.wait("whole partitions", lambda: brokers_agree(self.lab.topology))

    def kraft(self, raw: bytes, node: NodeId) -> bytes:
        """A broker's file for KRaft mode."""
        broker = next(broker for broker in self.inventory.brokers if broker.id == node)
        return configuration.kraft_mode(raw, self.inventory, broker)

    def finalize(self) -> None:
        """Every controller without the flag, the leader last."""
        leader = self.active.quorum().leader
        for node in sorted(self.inventory.controllers, key=lambda node: node.id == leader):
            self.restart(node.id, node.config, configuration.finalized_controller)
            port = int(node.address.rpartition(":")[2])
            self.wait("the controller", partial(port_answers, port))
            self.await_quorum()
        self.await_log(FINALIZED)
        self.wait("whole partitions", lambda: brokers_agree(self.lab.topology))

    def without_zookeeper(self) -> None:
        """Stop ZooKeeper, and restart a broker without it."""
        self.lab.stop_zookeeper()
        broker = self.inventory.brokers[0]
        self.restart(broker.id, broker.config, bytes)
        self.wait("whole partitions", lambda: brokers_agree(self.lab.topology))

    def start_again(self) -> None:
        """Stop every broker and controller, and start them from their files."""
        self.lab.stop_nodes()
        self.lab.up()

    # -- parts ---------------------------------------------------------------------------------------------------
    def restart(self, node: NodeId, config: str, change: Callable[[bytes], bytes]) -> None:
        """Stop, change, start."""
        self.lab.supervisor.stop(node, STOP_SECONDS)
        path = Path(config)
        path.write_bytes(change(path.read_bytes()))
        self.lab.supervisor.start(node)

    def await_quorum(self) -> None:
        """Until a leader is there and every voter fetches: past a mark that is set now.

        A leader remembers where a stopped voter was, and right after a cold start it is often lost again.
        """
        marks: list[int] = []

        def reached() -> str:
            try:
                quorum = self.active.quorum()
            except NoActiveController as error:
                return error.why
            marks.append(max(0, quorum.high_watermark))
            behind = [int(voter.id) for voter in quorum.voters if voter.log_end_offset <= marks[0]]
            return f"voters {behind} are behind {marks[0]}" if behind else ""

        self.wait("a whole quorum", reached)

    def await_log(self, words: str) -> None:
        """Until some controller's log holds the words."""
        logs = [self.lab.topology.log(controller.name) for controller in self.lab.topology.controllers]
        self.wait(words, lambda: "" if any(words.encode() in log.read_bytes() for log in logs) else f"no {words!r}")

    def wait(self, what: str, reached: Callable[[], str]) -> None:
        """Until `reached` answers ""."""
        wait_until(what, reached, self.lab.supervisor, [])


def _for_node(change: Callable[[bytes, NodeId], bytes], node: NodeId, raw: bytes) -> bytes:
    return change(raw, node)


def main() -> None:
    """Print the seconds of one pass as JSON."""
    with tempfile.TemporaryDirectory(prefix="floor-") as scratch:
        directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "lab"
        floor = Floor(directory)
        try:
            floor.run()
        finally:
            floor.lab.down()
    sys.stdout.write(json.dumps({name: round(took, 2) for name, took in floor.seconds.items()}) + "\n")


if __name__ == "__main__":
    main()
