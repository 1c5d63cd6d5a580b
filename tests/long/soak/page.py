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
# Hours of migrations and rollbacks
Apache Kafka 3.9.2, three brokers with three log directories each, three controllers, on one host of two cores that
others used at the same time. Written from the soak's own report by `python -m tests.long.soak.page`.

A round uses a new cluster under load (100 records per second, `acks=all`, idempotent) and the real command:

1. **There**: to hybrid, kraft-mode or soak, by one plan or by one for each stage.
2. **In dual write**: a topic with records, configurations, quotas, a SCRAM user and ACLs are created; `diff` must
   find no difference.
3. **Back**: `rollback plan`, `rollback apply`; then ZooKeeper's tree, every broker's file and every folder are compared
   with their state before the migration, and what was created meanwhile must exist.
4. **In ZooKeeper mode**, and **again**: one plan to the end; `directories verify`, a topic and a restart with
   ZooKeeper stopped, every delegation token, every record that was written.
5. The load is stopped and every partition is read completely: nothing acknowledged may be missing or doubled. The
   cluster is stopped, and no process, open port, temporary file, draft, or mount of the round may be left.

*There*, *back* and *again* have one fault each. The round's seed determines the fault, its step, its time after the
step's begin, its target and its duration. If it ended the tool, a person repairs the damage and runs the same command
again (a stale plan is created again). A round is bad if any check fails.

    python -m tests.long.soak --minutes 120 --seed 1 --dir DIR --report FILE    # needs root, for its small disks
    python -m tests.long.soak --round-seed 123456789 --dir DIR --report FILE    # one round again
"""
FOUND: Final = """
## What it found
- A run whose disk was full stopped with E-RUN-02, but then a report that could not be written hid this behind a
  traceback, and its draft was left. Now the run reports it, with the command that writes the report later
  (`tests/cli/test_no_room.py`).
- With its disk full after the last stage a call ended with a bare OSError (round seed 276049747, *again*). Nothing was
  lost, and the same command completed the migration. One such place was fixed: a table that pyspark passes as a file in
  the run's folder (`tests/diff/test_no_room.py`). That round was not repeated.
- The rollback of the round with seed 274947497 was stuck (E-RUN-06, five calls) until a person repaired three znodes,
  so the round is good only because of this help. The next round was stuck at the same place and was given up with the
  soak. The cause: [the rollback](../rollback.md), *A topic whose followers are not heard*. Fixed by the step
  `copy/raise-state-versions`: seen on a real cluster with 137 states behind (`tests/lab/test_rollback.py`, entry
  `versions-behind`), and in the soak of seed 7, in which states of the topic that was created in dual write went from
  version 8 to 9, and every ISR became full without help.
- In rounds 1 and 3 of seed 7 a run was stuck for three minutes and named a healthy broker (E-RUN-06): the process of
  another one had ended because of its disk, or continued without it. Now such a wait first names the process that has
  ended, or the log directory that is offline (`tests/steps/test_gates.py`).
- In round 9 of seed 7 the rollback was stuck with 70 partitions (E-RUN-06, two calls): the thread of broker 2 that
  sends AlterPartition requests had died when control was handed back while ZooKeeper was killed ([the
  rollback](../rollback.md#a-broker-whose-thread-to-the-controller-died)). The message did not say so, because the
  line was followed by some ten thousand others in that broker's log. Now 50,000 lines are searched, and the broker is
  named (tried with that log). After a person restarted it, as the page says, its followers were back within twenty
  seconds.

## The faults
"""
FAULTS: Final = """\
| fault | what it is |
| --- | --- |
| `tool-killed`, `tool-interrupted` | SIGKILL, SIGINT to this tool |
| `tool-paused` | SIGSTOP to this tool, beyond its session with ZooKeeper or not, then SIGCONT |
| `second-apply` | the same command a second time while the first runs: must end with 7 |
| `run-folder-full` | no free space for journal, plans and reports |
| `broker-killed`, `zookeeper-killed`, `active-controller-killed` | SIGKILL; the last one is the quorum's leader, or \
the broker that is controller |
| `zookeeper-paused`, `active-controller-paused` | SIGSTOP, then SIGCONT |
| `link-cut` | a proxy cuts a broker off from the controllers |
| `disk-gone` | a log directory is replaced by a file; restored, and its broker restarted, when the tool has ended |
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
