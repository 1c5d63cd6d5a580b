"""The floor of a run on real hosts: the same files, formats and restarts by a plain shell script over ssh (floor.sh).

`python -m tests.bed floor DIR`, on a bed of shape `plain` or `apart` whose brokers are in ZooKeeper mode.  The script
changes a file, restarts, and waits for what the next change cannot do without: no plan, no proof, no journal.
With `--run FOLDER` nothing is done, and the same lines are read from a run's journal, for the two to be compared.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.run import journal
from tests.bed.bed import Bed

SCRIPT: Final = Path(__file__).with_suffix(".sh")
SECONDS: Final = 1200
FIRST: Final = "controllers"
ALIKE: Final = "the script is for hosts that are alike, with units of systemd's and a file at /etc/kafka"


def floor(bed: Bed) -> Iterator[str]:
    """Take the cluster through the whole migration by the script: seconds of each stage, and starts of units."""
    shape = bed.shape
    unlike = (shape.by_runit, shape.last_unlike, shape.linked_configuration, shape.linked_disks)
    assert not any(unlike), ALIKE
    before = starts(bed)
    told = {
        "SSH_CONFIG": str(bed.folder / "ssh_config"),
        "HOSTS": " ".join(str(n) for n in range(1, shape.hosts + 1)),
        "CONTROLLERS": " ".join(f"{node}:{n}" for node, n in shape.controllers.items()),
        "BROKER_UNIT": shape.unit,
        "METADATA": shape.metadata_directory,
        "JAVA": str(find_java().home / "bin" / "java"),
        "JARS": os.pathsep.join(kafka_jars().classpath),
    }
    words = bed.room.outside(["env", *(f"{key}={value}" for key, value in told.items()), str(SCRIPT)], bed.folder)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-1000:]} {done.stderr[-3000:]}"
    times = {name: float(at) for name, at in (line.split() for line in done.stdout.splitlines())}
    yield from lines(times, starts(bed) - before)


def of_run(bed: Bed, folder: Path) -> Iterator[str]:
    """The same of a run that has ended: from its first step on controllers to its end, by stage."""
    times: dict[str, float] = {}
    stage = ""
    for event in journal.read(folder / "journal.jsonl").events:
        stage = str(event.data.get("stage", stage))
        if stage == FIRST:
            times.setdefault("begin", event.time)
        if "begin" in times:
            times[stage] = event.time
    yield from lines(times, starts(bed) - bed.shape.hosts)


def starts(bed: Bed) -> int:
    """How often systemd has started brokers' and controllers' units, on all hosts together."""
    units = f"-u {bed.shape.unit} -u kafka-controller.service"
    count = f"journalctl --quiet -o cat _PID=1 {units} | grep -c '^Started ' || true"
    return sum(int(bed.must(host, count)) for host in bed.hosts)


def lines(times: dict[str, float], started: int) -> Iterator[str]:
    """Seconds of each stage from the time of its end; then the whole, and the load of now."""
    begun = last = times.pop("begin")
    soak = 0.0
    for name, at in times.items():
        yield f"{name}: {at - last:.1f} s"
        soak += at - last if name == "soak" else 0.0
        last = at
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    less = f" ({last - begun - soak:.1f} s without the soak)" if soak else ""
    yield f"total: {last - begun:.1f} s{less}, {started} starts of units (load {load})"
