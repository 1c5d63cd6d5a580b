"""The page of a soak from its report: `python -m tests.long.soak.page REPORT... > docs/runs/soak.md`.

Several reports make one page: the longest run first, then those that were added to it (a row repeated after a mend).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.long.soak.account import GOOD, read

HEAD: Final = """\
# Hours of there and back
Apache Kafka 3.9.2, three brokers with three log directories each, three controllers, on one host of two cores that
others used at the same time. Written from the soak's own report by `python -m tests.long.soak.page`.

A round is a fresh cluster under load (100 records a second, `acks=all`, idempotent), all of it by the real command:

1. **There**: to hybrid, kraft-mode or soak, by one plan or by one for each stage.
2. **Used in dual write**: a topic with records, configurations, quotas, a SCRAM user, ACLs; `diff` must say equal.
3. **Back**: `rollback plan`, `rollback apply`; then the tree of ZooKeeper, every broker's file, every folder is held
   against what was before the migration, and what was made meanwhile must be there.
4. **Used in ZooKeeper mode**, and **again**: one plan to the end; `directories verify`, a topic and a restart with
   ZooKeeper stopped, every delegation token, every record that was made.
5. The load is stopped and every partition read whole: nothing acknowledged may be missing or doubled. The cluster is
   stopped, and no process, open port, temporary file, draft, or mount of the round may be left.

Each of the three ways has one fault, drawn from the round's seed: which, at which step, how long after its beginning,
on whom, for how long. After a fault that ended the tool a person mends what is broken and gives the same command again
(a stale plan is created again). A round is bad when anything at all speaks against it.

    python -m tests.long.soak --minutes 120 --seed 1 --dir DIR --report FILE    # needs root, for its small disks
    python -m tests.long.soak --round-seed 123456789 --dir DIR --report FILE    # one round again
"""
FOUND: Final = """
## What it found
- A run whose disk was full stopped by name (E-RUN-02), and then a report that could not be written hid that behind a
  traceback; a draft of it stayed. Now it is said, with the command that writes the report later
  (`tests/cli/test_no_room.py`).
- With its disk full after the last stage a call ended with a bare OSError (round seed 276049747, the way there again);
  nothing was lost, and the same command went on to the end. One such place is mended since: a table that pyspark
  hands over by a file in the run's folder (`tests/diff/test_no_room.py`). That round was not repeated.
- The rollback of the round with seed 274947497 stood still (E-RUN-06, five calls) until a person mended three znodes by
  hand, so it is good by that help alone; the next round stood still at the same place and was given up with the soak.
  The cause: [the rollback](../rollback.md), *A topic whose followers are not heard*. Mended since by the step
  `copy/raise-state-versions`, seen on a real cluster with 137 states behind (`tests/lab/test_rollback.py`, entry
  `versions-behind`), and at work in the soak of seed 7: states of the topic that was made in dual write went from
  version 8 to 9, and every ISR filled by itself.
- In rounds 1 and 3 of seed 7 a run stood still for three minutes and named a broker that was well (E-RUN-06): another
  one's process had ended with its disk, or lived on without it. Now such a wait begins by saying whose process has
  ended, or which log directory is offline (`tests/steps/test_gates.py`).
- In round 9 of seed 7 the rollback stood still with 70 partitions (E-RUN-06, two calls): the thread of broker 2 that
  asks for changes of ISRs had died as control changed hands while ZooKeeper was killed
  ([the rollback](../rollback.md#a-broker-whose-thread-to-the-controller-died)). The stop did not say so, for the line
  lay behind some ten thousand others in that broker's log: now 50,000 are looked through, and the broker is named (with
  that very log). Restarted by a person, as the page says, it had its followers back within twenty seconds.

## The faults
"""
FAULTS: Final = """\
| fault | what it is |
| --- | --- |
| `tool-killed`, `tool-interrupted` | SIGKILL, SIGINT to this tool |
| `tool-paused` | SIGSTOP to this tool, beyond its session with ZooKeeper or not, then SIGCONT |
| `second-apply` | the same command a second time while the first runs: must end with 7 |
| `run-folder-full` | no free byte for journal, plans and reports |
| `broker-killed`, `zookeeper-killed`, `active-controller-killed` | SIGKILL; the last one is the quorum's leader, or \
the broker that is controller |
| `zookeeper-paused`, `active-controller-paused` | SIGSTOP, then SIGCONT |
| `link-cut` | a broker is cut off the controllers by a proxy |
| `disk-gone` | a log directory is no directory any more; put back, and its broker restarted, when the tool has ended |
"""


def page(reports: Sequence[dict[str, Any]]) -> str:
    """The whole page."""
    return "".join([HEAD, *(part for report in reports for part in _run(report)), FOUND, FAULTS])


def _run(report: dict[str, Any]) -> Iterator[str]:
    totals, ended = report["totals"], [one for one in report["rounds"] if one["ended"]]
    day = time.strftime("%Y-%m-%d", time.gmtime(report["began"]))
    yield f"\n## {day}, seed {report['seed']}\n"
    yield (
        f"{_state(report)}: {totals['rounds']} rounds, {totals['good']} good; {totals['faults']} faults struck, "
        f"{totals['calls']} calls of `apply`; {totals['acknowledged']:,} records acknowledged, {totals['missing']} "
        f"missing, {totals['doubled']} doubled. Commit {report['commit'][:10]}.\n\n"
    )
    yield "| round | seed | there to | there | back | again | took | records | longest wait | verdict |\n"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    yield from (_row(one) for one in ended)
    yield "\n*There*, *back*, *again*: the fault, and the exit codes of the calls until the plan was carried out.\n"
    if against := [
        f"- Round {one['number']}: {text}\n"
        for one in ended
        for text in (said.replace(one["folder"], "DIR") for said in one["against"])
    ]:
        yield "\nWhat spoke against rounds:\n\n"
        yield from against
    yield from _codes(ended)


def _state(report: dict[str, Any]) -> str:
    took = f"{report['seconds'] / 60:.0f} minutes"
    return {"ended": took, "running": f"{took} so far"}.get(report["state"], f"{report['state']} after {took}")


def _row(one: dict[str, Any]) -> str:
    legs = {leg["name"]: _leg(leg) for leg in one["legs"]}
    cells = [
        str(one["number"]),
        str(one["seed"]),
        one["goal"],
        *(legs.get(name, "") for name in ("there", "back", "again")),
    ]
    load = one["load"]
    cells += [f"{one['seconds']:.0f} s", f"{load.get('acknowledged', 0):,}, {load.get('missing', 0)} missing"]
    cells += [f"{load.get('longest_wait', 0)} s", "good" if one["verdict"] == GOOD else "**bad**"]
    return f"| {' | '.join(cells)} |\n"


def _leg(leg: dict[str, Any]) -> str:
    codes = [attempt["code"] for attempt in leg["attempts"]]
    shown = [
        code for place, code in enumerate(codes) if code or place == len(codes) - 1
    ]  # stages that went well: one 0
    where = f" at {leg['step']}" if leg["step"] else " (not struck)"
    return f"{leg['fault']}{where}: {', '.join(map(str, shown))}"


def _said(text: str, folder: str) -> str:
    """The first sentence, fit for a cell; the round's folder has no name of this machine's."""
    return text.split(";", maxsplit=1)[0].replace(folder, "DIR").replace("|", "/")


def _codes(ended: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What the tool said when it did not end with 0, by fault."""
    said = Counter(
        (leg["fault"], attempt["code"], _said(attempt["said"], one["folder"]))
        for one in ended
        for leg in one["legs"]
        for attempt in leg["attempts"]
        if attempt["code"]
    )
    if said:
        yield "\n| fault | exit code | what the tool said | times |\n| --- | --- | --- | --- |\n"
        for (fault, code, text), times in sorted(said.items()):
            yield f"| {fault} | {code} | {text} | {times} |\n"


if __name__ == "__main__":
    sys.stdout.write(page([read(Path(name)) for name in sys.argv[1:]]))
