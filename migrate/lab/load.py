"""The demo's load: a VerifiableProducer of Kafka's for each topic, a VerifiableConsumer, and a watcher of leaders.

Each is a process of its own under a supervisor in DIR/load/, so that it lives on when we are killed: `start_load`
starts them, `find_load` finds them again, `stop_load` ends them cleanly.

| file | what |
|---|---|
| `NAME.process.json`, `NAME.running` | the supervisor's: how each is started, and which process it is |
| `producer-TOPIC-NNNN.jsonl` | what a producer printed: each record that was acknowledged or given up. NNNN counts the
  starts, and is the prefix of its values, so that no value stands twice |
| `consumer.jsonl` | what the consumer printed |
| `watch.jsonl`, `isr.jsonl` | samples of the metadata (load_watch) |
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import migrate
from migrate.checks.oauth import FETCHER, LOGIN_HANDLER, PACKAGE
from migrate.errors import LoadAlreadyRuns, LoadHistoryBroken, LoadNotStarted, ProcessNotStarted
from migrate.hosts.files import replace_file
from migrate.java.find import Java, find_java
from migrate.java.run import java_argv
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import cluster_config
from migrate.lab.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.lab.topology import Topology, load_topology
from migrate.model.inventory import Access, Inventory
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped

RATE: Final = 200.0  # records a second, of all topics
WATCH: Final = "watch"
CONSUMER: Final = "consumer"
GROUP: Final = "kraft-migrate-load"
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"  # what the labs' listeners ask for
TOOLS: Final = "org.apache.kafka.tools"
READY_SECONDS: Final = 120.0
TOPICS_SECONDS: Final = 10.0
STOP_SECONDS: Final = 60.0
ACKED: Final = "producer_send_success"
FAILED: Final = "producer_send_error"
NUMBERED: Final = re.compile(r"producer-(.+)-(\d{4,})\.jsonl")
# the consumer takes what is its own of these.  A record that a restart delays is acknowledged late, which shows as a
# gap: it is never given up for it
CLIENTS: Final = {
    "retries": "2147483647",
    "enable.idempotence": "true",
    "delivery.timeout.ms": "1800000",
    "max.block.ms": "1800000",
    "linger.ms": "200",  # batches of a few records: a request for each would cost the brokers three times as much
    "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "metadata.max.age.ms": "5000",
    "retry.backoff.ms": "50",
    "retry.backoff.max.ms": "500",
    "reconnect.backoff.max.ms": "500",
}


def load_folder(lab_dir: Path) -> Path:
    return lab_dir.absolute() / "load"


def client_file(topology: Topology) -> Path:
    """How Kafka's clients reach the brokers: among the lab's secrets, as the password is in it (mode 0600)."""
    return topology.folder("secrets", "load.properties")


def histories(lab_dir: Path) -> list[tuple[str, int, Path]]:
    """(topic, number of the start, file) of everything that producers printed, in order."""
    paths = load_folder(lab_dir).glob("producer-*.jsonl")
    found = ((match, path) for path in paths if (match := NUMBERED.fullmatch(path.name)))
    return sorted((match[1], int(match[2]), path) for match, path in found)


def printed(path: Path) -> Iterator[dict[str, Any]]:
    """What a tool of Kafka printed, a value a line; a torn last line, left by a kill, is left out.

    Raises:
        LoadHistoryBroken: another line is none of the tool's.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                return
            try:
                yield dict(json.loads(line))
            except (ValueError, TypeError) as error:
                raise LoadHistoryBroken(f"line {number} is none of the tool's: {error!r}", where=str(path)) from error


def find_load(lab_dir: Path) -> ServiceState:
    """Does anything of the load of this lab run, whoever started it?"""
    supervisor = Supervisor(load_folder(lab_dir))
    states = [supervisor.state(name) for name in supervisor.specs()]
    return next((state for state in states if not isinstance(state, Stopped)), Stopped())


def start_load(lab_dir: Path, inventory: Inventory, topics: Sequence[str], *, rate: float = RATE) -> None:
    """Start the load detached, and wait until a record of each topic is acknowledged and a sample is taken.

    Raises:
        LoadAlreadyRuns: one lives (`find_load` adopts it), or cannot be excluded.
        LoadNotStarted: a process of it ended at once, or nothing was acknowledged in time.
    """
    state = find_load(lab_dir)
    if not isinstance(state, Stopped):
        raise _already(lab_dir, state)
    _require_topics(inventory, topics)
    folder, topology = load_folder(lab_dir), load_topology(lab_dir)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _, access = inventory.cluster_access
    replace_file(str(client_file(topology)), client_properties(access).encode(), mode=0o600)
    number = max((found for _, found, _ in histories(lab_dir)), default=0) + 1
    supervisor = Supervisor(folder)
    specs = load_specs(topology, find_java(), topics, number, rate)
    for spec in specs:
        write_spec(folder, spec)
    try:
        for spec in specs:
            supervisor.start(spec.name)
    except ProcessNotStarted as error:
        state = find_load(lab_dir)
        raise (_already(lab_dir, state) if isinstance(state, Running) else error) from error
    _await_ready(supervisor, specs)


def _require_topics(inventory: Inventory, topics: Sequence[str]) -> None:
    """A cluster that has just started answers in parts, or not yet: what is absent is asked for again."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - who looks for a load needs no client library
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - as above

    admin, pause = AdminClient(cluster_config(inventory)), threading.Event()
    deadline = time.monotonic() + TOPICS_SECONDS
    while True:
        try:
            known = admin.list_topics(timeout=5.0).topics
            absent = [name for name in topics if name not in known or not known[name].partitions]
            problem = f"no such topics: {', '.join(absent)}" if absent else ""
        except KafkaException as error:
            problem = f"the cluster does not answer: {error.args[0]}"
        if not problem:
            return
        if time.monotonic() > deadline:
            raise LoadNotStarted(problem)
        pause.wait(0.25)


def _already(lab_dir: Path, state: Running | Unknown) -> LoadAlreadyRuns:
    what = f"the load runs as process {state.pid}" if isinstance(state, Running) else f"it may run: {state.reason}"
    return LoadAlreadyRuns(what, where=str(lab_dir))


def client_properties(access: Access) -> str:
    """The settings of Kafka's clients for these brokers; a password is in them.

    Raises:
        SecretUnreadable: the password's file.
    """
    values = {"security.protocol": access.protocol, **CLIENTS}
    if access.password is not None:
        password = read_secret(access.password)
        values |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": f'{PLAIN} required username="{access.username}" password="{password}";',
        }
    if access.oauth is not None and access.oauth.client_secret is not None:
        client = f'clientId="{access.oauth.client_id}" clientSecret="{read_secret(access.oauth.client_secret)}"'
        values |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required {client};",
            LOGIN_HANDLER: FETCHER,
            "sasl.oauthbearer.token.endpoint.url": access.oauth.endpoint or "",
        }
    if access.truststore is not None:
        values |= {"ssl.truststore.location": access.truststore.path, "ssl.truststore.type": access.truststore.kind}
    return "".join(f"{key}={value}\n" for key, value in values.items())


def load_specs(topology: Topology, java: Java, topics: Sequence[str], number: int, rate: float) -> list[ProcessSpec]:
    """The processes of a load whose values begin with that number."""
    classpath = topology.classpath()
    folder = topology.folder("load")
    config = client_file(topology)
    to = ("--bootstrap-server", topology.bootstrap)
    source = os.pathsep.join(filter(None, (str(Path(migrate.__file__).parents[1]), os.environ.get("PYTHONPATH"))))

    def spec(name: str, argv: Sequence[str], output: Path, log: Path) -> ProcessSpec:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "PYTHONPATH": source}
        return ProcessSpec(name, None, tuple(argv), str(folder), str(log), str(output), str(config), environment)

    def tool(name: str, main: str, output: str, words: Sequence[str]) -> ProcessSpec:
        log = topology.log(f"load-{name}")
        conf = topology.folder("conf", "log4j.properties")
        options = ("-Xmx64m", f"-Dlab.log={log}", f"-Dlog4j.configuration=file:{conf}")
        return spec(name, java_argv(java, classpath, f"{TOOLS}.{main}", (*words, *to), options), folder / output, log)

    watcher = (sys.executable, "-m", "migrate.lab.load_watch", topology.directory)
    return [
        spec(WATCH, watcher, folder / "watch.log", folder / "watch.log"),
        *(
            tool(
                f"producer-{topic}",
                "VerifiableProducer",
                f"producer-{topic}-{number:04d}.jsonl",
                (
                    *("--topic", topic, "--producer.config", str(config), "--value-prefix", str(number)),
                    *("--throughput", str(round(rate / len(topics)))),
                ),
            )
            for topic in topics
        ),
        tool(
            CONSUMER,
            "VerifiableConsumer",
            "consumer.jsonl",
            ("--topic", topics[0], "--group-id", GROUP, "--consumer.config", str(config)),
        ),
    ]


def _await_ready(supervisor: Supervisor, specs: Sequence[ProcessSpec]) -> None:
    deadline, pause = time.monotonic() + READY_SECONDS, threading.Event()
    first = {spec.name: Path(spec.output) for spec in specs if spec.name not in (WATCH, CONSUMER)}
    while waits := {name for name, path in first.items() if not _began(path)}:
        ended = [spec.name for spec in specs if isinstance(supervisor.state(spec.name), Stopped)]
        name = next(iter(ended or sorted(waits)))
        if ended or time.monotonic() > deadline:
            said = "\n         ".join(supervisor.last_words(name, 3))
            what = "ended before a record was acknowledged" if ended else f"had none in {READY_SECONDS:g} s"
            raise LoadNotStarted(f"{name} of the load {what}", where=supervisor.spec(name).log, why=said)
        pause.wait(0.2)


def _began(path: Path) -> bool:
    return path.exists() and any(entry["name"] == ACKED for entry in printed(path))


def stop_load(lab_dir: Path, *, timeout: float = STOP_SECONDS) -> None:
    """Stop the load (producers first: they wait for records in flight) until all is gone; nothing if none runs.

    Raises:
        ProcessNotStopped: a process lives on after `timeout` seconds, or its state is unknown.
    """
    supervisor = Supervisor(load_folder(lab_dir))
    for name in sorted(supervisor.specs(), key=lambda name: (name == WATCH, name == CONSUMER)):
        supervisor.stop(name, timeout)
