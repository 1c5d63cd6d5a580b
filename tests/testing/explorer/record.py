"""From a real run's folder to a trace: one line an event, in the order of time, without paths, ids or secrets.

Sources: the journals (effects of the engine), one controller's metadata log (states, registrations, directories), the
nodes' own logs (starts and ends of processes, elections, states of the migration driver).  An election that nobody
follows leaves no record in the metadata log: what it wrote is truncated.

    python -m tests.testing.explorer.record LAB_DIRECTORY > trace.jsonl
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from migrate.kraft.dump import batch_lines
from migrate.kraft.files import find, read_batches
from migrate.lab.cluster import Lab
from migrate.model import history
from migrate.model.ids import MIGRATING, UNASSIGNED
from migrate.model.stage import ZkMigrationState
from migrate.run import journal as journals

Event = dict[str, Any]  # at (seconds), event, and what it is about
STAMP: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ")
DRIVER: Final = re.compile(r"KRaftMigrationDriver id=(\d+)\] \d+ transitioning from (\w+) to (\w+) state")
ELECTED: Final = re.compile(r"RaftManager id=(\d+)\] Completed transition to Leader\(")
STARTED, ENDED = "Registered signal handlers for", "Terminating process due to signal"
FLAGLESS: Final = "Completing the ZK migration since this controller was configured with"  # as it is elected
PAIRED_SECONDS: Final = 60.0  # a JVM on a busy machine: from the effect to the process's first line
NO_FLAG: Final = "has no flag"
NOWHERE: Final = frozenset({str(MIGRATING), str(UNASSIGNED)})


def record(lab: Lab) -> list[Event]:
    """The whole trace of a lab."""
    found = list(effects(Path(lab.inventory.runs)))
    for folder in _metadata_logs(lab):
        found.extend(metadata(folder))
    nodes = {node.id: node.name for node in lab.topology.brokers}
    nodes |= {node.id: node.name for node in lab.topology.controllers}
    for node, name in nodes.items():
        found.extend(own_log(node, Path(lab.topology.log(name))))
    found.sort(key=lambda event: event["at"])
    found = list(_outside(found))
    begin = found[0]["at"]
    return [{**event, "at": round(event["at"] - begin, 3)} for event in found]


def _metadata_logs(lab: Lab) -> list[Path]:
    """One controller's log, and those that a rollback has set aside beside it."""
    here = Path(lab.topology.controllers[0].metadata_directory)
    return sorted(here.parent.glob(f"{here.name}*/__cluster_metadata-0"))


def effects(runs: Path) -> Iterator[Event]:
    """Every effect of every journal; only nodes, steps and names of effects are kept.

    The time is the intent's.  An intent without its end was a kill: whether it acted, the journal does not say.
    """
    for path in sorted(runs.glob("*/journal.jsonl")):
        written = [event for event in journals.read(path).events if event.name in ("effect", "effected")]
        for number, event in enumerate(written, 1):
            if event.name == "effect":
                whole = any(
                    after.name == "effected" and after.data == event.data for after in written[number : number + 1]
                )
                yield _effect(event) if whole else {**_effect(event), "what": "begun"}


def _effect(event: history.Event) -> Event:
    data = event.data
    found = {"at": event.time, "event": "effect", "effect": data["effect"]}
    if data["node"].isdigit():
        disk = data["effect"] == "write-config" and data["detail"].endswith("/meta.properties")
        return {**found, "node": int(data["node"]), "step": data["step"], **({"what": "a disk's"} if disk else {})}
    return {**found, "step": data["step"], **({"znode": data["node"]} if data["node"].startswith("/") else {})}


def metadata(folder: Path) -> Iterator[Event]:
    """Migration states, registrations, and the moment at which a broker's last directory became known."""
    replicas: dict[tuple[str, int], tuple[list[int], list[str]]] = {}
    known: set[int] = set()
    for segment in find(folder).segments:
        for batch in read_batches(segment.path):
            for line in batch_lines(batch, show_secrets=False):
                entry = json.loads(line)
                at = batch.timestamp / 1000
                yield from ({"at": at, **event} for event in _record(entry["type"], entry["data"], replicas))
            now = _known(replicas)
            yield from ({"at": at, "event": "directories", "node": broker} for broker in sorted(now - known))
            known = now


def _record(kind: str, data: dict[str, Any], replicas: dict[tuple[str, int], Any]) -> Iterator[Event]:
    match kind:
        case "ZK_MIGRATION_STATE_RECORD":
            yield {"event": "state", "state": ZkMigrationState(data["zkMigrationState"]).name}
        case "REGISTER_BROKER_RECORD":
            mode = "migrating" if data["isMigratingZkBroker"] else "kraft"
            yield {"event": "registered", "node": data["brokerId"], "mode": mode}
        case "PARTITION_RECORD":
            unknown = [str(MIGRATING)] * len(data["replicas"])
            replicas[data["topicId"], data["partitionId"]] = data["replicas"], data.get("directories") or unknown
        case "PARTITION_CHANGE_RECORD":
            listed, before = replicas[data["topicId"], data["partitionId"]]
            after = data.get("replicas") or listed, data.get("directories") or before
            replicas[data["topicId"], data["partitionId"]] = after
        case "REMOVE_TOPIC_RECORD":
            for key in [key for key in replicas if key[0] == data["topicId"]]:
                del replicas[key]


def _known(replicas: dict[tuple[str, int], tuple[list[int], list[str]]]) -> set[int]:
    """Brokers whose every replica has a directory."""
    brokers: set[int] = set()
    unknown: set[int] = set()
    for listed, directories in replicas.values():
        brokers.update(listed)
        unknown.update(broker for broker, where in zip(listed, directories, strict=True) if where in NOWHERE)
    return brokers - unknown


def own_log(node: int, path: Path) -> Iterator[Event]:
    """Starts, ends, elections and driver states, from a node's own log.

    A process ends with its last line, not with its signal: a controller that shuts down resigns, and another one that
    shuts down as well may still be elected (`KafkaRaftClient.GracefulShutdown` waits for a leader elsewhere).  One that
    nobody asked to end was killed, or died: at some time between its last line and the next one's first.
    """
    begun, signalled, last = 0.0, 0.0, 0.0  # of the process whose lines are read; 0: nobody has asked it to end
    for at, line in _stamped(path):
        if (driver := DRIVER.search(line)) is not None:
            if driver[2] == driver[3]:
                continue  # logged at TRACE alone: nothing changes
            yield {"at": at, "event": "driver", "node": int(driver[1]), "before": driver[2], "after": driver[3]}
        elif (elected := ELECTED.search(line)) is not None:
            yield {"at": at, "event": "elected", "node": int(elected[1])}
        elif STARTED in line:
            if last:
                yield _end(node, signalled, last)
            begun, signalled = at, 0.0
            yield {"at": at, "event": "process", "node": node, "what": "starts", "asked": at}
        elif ENDED in line:
            signalled = signalled or at
        elif FLAGLESS in line and begun:
            yield {"at": begun, "event": "process", "node": node, "what": NO_FLAG, "asked": begun}
        last = at
    if signalled:
        yield _end(node, signalled, last)


def _end(node: int, signalled: float, last: float) -> Event:
    what = "ends" if signalled else "is lost"
    return {"at": last, "event": "process", "node": node, "what": what, "asked": signalled or last}


def _stamped(path: Path) -> Iterator[tuple[float, str]]:
    """The lines that carry a time, in seconds since 1970."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stamp = STAMP.match(line)
            if stamp is not None:
                yield dt.datetime.fromisoformat(stamp[1]).astimezone().timestamp() + int(stamp[2]) / 1000, line


def _outside(events: Iterable[Event]) -> Iterator[Event]:
    """Starts and ends that no effect of the engine explains are another hand's, and so are the files of such starts."""
    theirs: set[int] = set()  # nodes that another hand has started last
    waiting: dict[tuple[int, str], float] = {}
    provisioned = False
    for event in events:
        if event["event"] == "effect":
            provisioned = True
            if event["effect"] in ("stop", "start"):
                waiting[event["node"], "ends" if event["effect"] == "stop" else "starts"] = event["at"]
            yield event
        elif event["event"] == "process":
            node, what = event["node"], event["what"]
            ours = event["asked"] - waiting.pop((node, what), -PAIRED_SECONDS) < PAIRED_SECONDS
            if what == NO_FLAG:
                ours = node not in theirs
            elif what == "starts":
                theirs = theirs - {node} if ours else theirs | {node}
            if not ours and provisioned:  # before the first effect it is the lab that comes up
                yield {"at": event["at"], "event": "outside", "node": node, "what": what}
        else:
            yield event


def lines(events: Iterable[Event]) -> str:
    """The trace as JSON lines."""
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)


def read(path: Path) -> list[Event]:
    """A kept trace."""
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    sys.stdout.write(lines(record(Lab.open(Path(sys.argv[1])))))
