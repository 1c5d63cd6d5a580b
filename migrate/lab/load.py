"""The demo's load as a process of its own: `python -m migrate.lab.load DIR`.

`start_load` has the supervisor start it, so that it lives on when we are killed; `find_load` finds it again, and
`stop_load` ends it cleanly.  Everything it writes is in DIR/load/:

| file | what |
|---|---|
| `load.process.json`, `load.running` | the supervisor's: how it is started, and which process it is |
| `settings.json` | brokers, access (the password by reference), topics, rate: what the process reads when it starts |
| `lock` | held by the process, so that two never run, whoever started them |
| `tag` | names this load in every record |
| `history-NNNN.bin` | ids sent and acknowledged, one file an epoch (load_history) |
| `watch.jsonl`, `consumer.jsonl` | samples of the metadata; the reading group's lag and gaps |
| `isr.jsonl` | partitions below min.insync.replicas, from the same samples (load_isr) |
| `status.json` | running totals, once a second |
| `probe.jsonl` | records acknowledged and given up since the line before, once a second: for `policy.probes.history` |
| `load.log` | what the process says |
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import migrate
from migrate.errors import LoadAlreadyRuns, LoadNotStarted, MigrateError, ProcessNotStarted
from migrate.hosts.supervisor import SPEC_SUFFIX as SUFFIX
from migrate.hosts.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.kafka.tls import client_config
from migrate.lab.load_history import TAG_BYTES, LoadTopic
from migrate.lab.load_watch import append_lines
from migrate.model.inventory import Access, Inventory, SecretFile, Store
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped

LOG: Final = logging.getLogger("migrate.lab.load")
NAME: Final = "load"
RATE: Final = 200.0
# all that the process needs: the description is on disk, and this environment may contain secrets
INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")
READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 60.0
TOPICS_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class LoadSettings:
    bootstrap: str
    access: Access
    topics: tuple[str, ...]
    rate: float

    def text(self) -> str:
        password = self.access.password.path if isinstance(self.access.password, SecretFile) else None
        trusted = None if self.access.truststore is None else [self.access.truststore.path, self.access.truststore.kind]
        access = [self.access.protocol, self.access.mechanism, self.access.username, password, trusted]
        return json.dumps({"bootstrap": self.bootstrap, "access": access, "topics": self.topics, "rate": self.rate})

    @classmethod
    def parse(cls, text: str) -> LoadSettings:
        data = json.loads(text)
        protocol, mechanism, username, password, *rest = data["access"]
        trusted = Store(*rest[0]) if rest and rest[0] else None
        access = Access(protocol, mechanism, username, SecretFile(password) if password else None, trusted)
        return cls(data["bootstrap"], access, tuple(data["topics"]), float(data["rate"]))


def load_folder(lab_dir: Path) -> Path:
    return lab_dir.absolute() / "load"


def find_load(lab_dir: Path) -> ServiceState:
    """Does the load of this lab run, whichever process started it?"""
    folder = load_folder(lab_dir)
    if not (folder / f"{NAME}{SUFFIX}").exists():
        return Stopped()
    return Supervisor(folder).state(NAME)


def start_load(lab_dir: Path, inventory: Inventory, topics: Sequence[str], *, rate: float = RATE) -> int:
    """Start the load detached and wait until its first record is acknowledged; its pid.

    Raises:
        LoadAlreadyRuns: one lives (`find_load` adopts it), or cannot be excluded.
        LoadNotStarted: it ended at once, or nothing was acknowledged in time.
    """
    state = find_load(lab_dir)
    if not isinstance(state, Stopped):
        raise _already(lab_dir, state)
    folder = load_folder(lab_dir)
    folder.mkdir(parents=True, exist_ok=True)
    brokers, access = inventory.cluster_access
    settings = LoadSettings(",".join(broker.address for broker in brokers), access, tuple(topics), rate)
    _replace(folder / "settings.json", settings.text())
    (folder / "status.json").unlink(missing_ok=True)
    write_spec(folder, _spec(lab_dir))
    supervisor = Supervisor(folder)
    try:
        supervisor.start(NAME)
    except ProcessNotStarted as error:
        state = supervisor.state(NAME)
        raise (_already(lab_dir, state) if isinstance(state, Running) else error) from error
    return _await_ready(lab_dir, supervisor)


def _already(lab_dir: Path, state: Running | Unknown) -> LoadAlreadyRuns:
    what = f"the load runs as process {state.pid}" if isinstance(state, Running) else f"it may run: {state.reason}"
    return LoadAlreadyRuns(what, where=str(lab_dir))


def _spec(lab_dir: Path) -> ProcessSpec:
    folder = load_folder(lab_dir)
    source = str(Path(migrate.__file__).parents[1])
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (source, environment.get("PYTHONPATH"))))
    log = str(folder / "load.log")
    return ProcessSpec(
        name=NAME,
        node=None,
        argv=(sys.executable, "-m", "migrate.lab.load", str(lab_dir.absolute())),
        directory=str(folder),
        log=log,
        output=log,
        config=str(folder / "settings.json"),
        environment=environment,
    )


def _await_ready(lab_dir: Path, supervisor: Supervisor) -> int:
    log = str(load_folder(lab_dir) / "load.log")
    deadline = time.monotonic() + READY_SECONDS
    pause = threading.Event()
    while not load_status(lab_dir).get("acknowledged"):
        if isinstance(supervisor.state(NAME), Stopped):
            said = "\n         ".join(supervisor.last_words(NAME, 3))
            raise LoadNotStarted("the load ended before a record was acknowledged", where=log, why=said)
        if time.monotonic() > deadline:
            raise LoadNotStarted(f"no record was acknowledged within {READY_SECONDS:g} s", where=log)
        pause.wait(0.1)
    state = supervisor.state(NAME)
    if not isinstance(state, Running):
        raise LoadNotStarted("the load ended right after its first record", where=log)
    return state.pid


def stop_load(lab_dir: Path, *, timeout: float = STOP_SECONDS) -> None:
    """Stop the load (SIGTERM; it waits for records in flight) and wait until it is gone; nothing if none runs.

    Raises:
        ProcessNotStopped: it lives on after `timeout` seconds, or its state is unknown.
    """
    if not isinstance(find_load(lab_dir), Stopped):
        Supervisor(load_folder(lab_dir)).stop(NAME, timeout)


def load_status(lab_dir: Path) -> dict[str, int]:
    """The totals (epoch, sent, acknowledged, failed, read, lag), at most a second old; empty before the first."""
    try:
        data = json.loads((load_folder(lab_dir) / "status.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return {str(key): int(value) for key, value in data.items()}


# -- the process -------------------------------------------------------------------------------------------------
def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the load's lock while the process runs."""
    with (folder / "lock").open("a", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LoadAlreadyRuns("another load process holds the lock", where=str(folder)) from error
        yield


def _tag(folder: Path) -> bytes:
    path = folder / "tag"
    if not path.exists():
        _replace(path, secrets.token_hex(TAG_BYTES))
    return bytes.fromhex(path.read_text(encoding="ascii").strip())


def _describe(config: dict[str, Any], names: Sequence[str], stop: threading.Event) -> tuple[LoadTopic, ...]:
    """Partitions and replication factor of the topics in the cluster.

    A cluster that has just started answers in parts, or not yet: what is absent is asked for again.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as below
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - the starter needs no client library

    admin = AdminClient(config, logger=LOG)
    deadline = time.monotonic() + TOPICS_SECONDS
    while True:
        try:
            known = admin.list_topics(timeout=5.0).topics
            absent = [name for name in names if name not in known or not known[name].partitions]
            if not absent:
                break
            problem = f"no such topics: {', '.join(absent)}"
        except KafkaException as error:
            problem = f"the cluster does not answer: {error.args[0]}"
        if time.monotonic() > deadline or stop.wait(0.25):
            raise LoadNotStarted(problem)
    found = {name: known[name].partitions for name in names}
    return tuple(LoadTopic(name, len(parts), len(parts[0].replicas)) for name, parts in found.items())


def _run(folder: Path, stop: threading.Event) -> None:
    from migrate.lab.load_client import LoadPlan, Tally, produce, read_along, watch  # noqa: PLC0415 - as above

    settings = LoadSettings.parse((folder / "settings.json").read_text(encoding="utf-8"))
    config: dict[str, Any] = client_config(settings.bootstrap, settings.access)
    plan = LoadPlan(config, folder, _tag(folder), _describe(config, settings.topics, stop), settings.rate)
    tally = Tally()
    threads = [
        threading.Thread(target=watch, args=(plan, stop)),
        threading.Thread(target=read_along, args=(plan, tally, stop)),
        threading.Thread(target=_report, args=(folder, tally, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        produce(plan, tally, stop)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        _replace(folder / "status.json", json.dumps(tally.data()))


def _report(folder: Path, tally: Any, stop: threading.Event) -> None:
    passed, failed = 0, 0
    with append_lines(folder / "probe.jsonl") as probe:
        while not stop.wait(1.0 if tally.acknowledged else 0.1):
            _replace(folder / "status.json", json.dumps(tally.data()))
            now = (tally.acknowledged, tally.failed)
            if now == (0, 0):
                continue  # it has not begun
            probe.write(json.dumps({"time": time.time(), "ok": now[0] - passed, "failed": now[1] - failed}) + "\n")
            probe.flush()
            passed, failed = now


def main(argv: Sequence[str]) -> int:
    """Run the load of the lab directory `argv[0]` until SIGTERM or SIGINT."""
    folder = load_folder(Path(argv[0]))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with _only_one(folder):
            LOG.info("the load begins (process %d)", os.getpid())
            _run(folder, stop)
            LOG.info("the load ends")
    except MigrateError as error:
        LOG.error("%s: %s", error.id, error)  # noqa: TRY400 - expected: no traceback
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
