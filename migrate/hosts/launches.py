"""How each node's process was started, and what listens on its host, by the host's /proc and the unit.

Source: `kafka.Kafka` takes one properties file and `--override key=value` words after it; `KafkaConfig` reads
ZooKeeper's client settings from -Dzookeeper.* too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.executors import HOSTS_AT_ONCE, Executor
from migrate.hosts.properties import for_people
from migrate.hosts.sockets import listening_on
from migrate.hosts.systemd import SystemdServices
from migrate.model.ids import NodeId
from migrate.model.launch import NOT_RUNNING, OPENED, Launch, Listening, UnitNotes
from migrate.model.outcome import Unknown, unknown
from migrate.model.views import Running, ServiceState

MAIN_CLASSES: Final = ("kafka.Kafka", "io.confluent.support.metrics.SupportedKafka")
OVERRIDE: Final = "--override"
ZOOKEEPER: Final = "-Dzookeeper."
ZOOKEEPER_SASL: Final = "-Dzookeeper.sasl.client."
KAFKA: Final = "-Dorg.apache.kafka."
A_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # what these values are judged as: public, but for secrets in them
SECTION: Final = "-Dzookeeper.sasl.clientconfig="  # ZKClientConfig.LOGIN_CONTEXT_NAME_KEY
NO_SASL: Final = "-Dzookeeper.sasl.client=false"  # ZKClientConfig.ENABLE_CLIENT_SASL_KEY
MAXBUFFER: Final = re.compile(r"-Djute\.maxbuffer=(?:0[xX]([0-9a-fA-F]{1,8})|([0-9]{1,10}))")  # Integer.decode
RELEASE: Final = re.compile(r"(?:^|[/:])kafka-clients-([0-9]+\.[0-9]+\.[0-9]+[^/:]*?)\.jar(?::|$)")
CONTAINERS: Final = frozenset({"docker", "docker-compose", "podman", "conmon", "nerdctl", "ctr", "runc", "crun"})
BEHIND_UNIT_FILE: Final = re.compile(r" \(ignore_errors=(?:yes|no)\)")


def split_command_line(raw: bytes) -> list[str]:
    return [word.decode(errors="replace") for word in raw.rstrip(b"\0").split(b"\0")] if raw else []


def decode_command_line(raw: bytes) -> Launch:
    """Decode a process's command line; the environment and the unit stay unknown."""
    words = split_command_line(raw)
    at = next((place for place, word in enumerate(words) if word in MAIN_CLASSES), None)
    before, after = (words, []) if at is None else (words[:at], words[at + 1 :])
    given = (word.partition("=") for word in before)  # java takes the last of equal properties
    named = [word.removeprefix(SECTION) for word in before if word.startswith(SECTION)]
    # ZKClientConfig.getInt takes decimal and hexadecimal numbers
    sizes = (found for word in before if (found := MAXBUFFER.fullmatch(word)))
    maxbuffers = [int(found[1], 16) if found[1] else int(found[2]) for found in sizes]
    tools = (name for word in words[:2] if (name := word.rpartition("/")[2]) in CONTAINERS)  # behind a shell, too
    names = (word.removeprefix("-D").partition("=")[0] for word in before if word.startswith(ZOOKEEPER))
    ours = (word.removeprefix("-D").partition("=") for word in before if word.startswith(KAFKA))
    return Launch(
        config=after[0] if after and not after[0].startswith("--") else None,  # Kafka.getPropsFromArgs
        overrides=_overrides(after),
        zookeeper_properties=tuple(sorted(set(names))),
        kafka_properties={name: for_people(A_URL, value) for name, _, value in ours},
        files={
            name: value.removeprefix("=") for name, _, value in given if name in OPENED
        },  # == reads nothing beside it
        zookeeper_sasl=tuple(sorted({word for word in before if word.startswith(ZOOKEEPER_SASL)})),
        main_class=None if at is None else words[at],
        jute_maxbuffer=maxbuffers[-1] if maxbuffers else None,
        release=next((found[1] for word in before if (found := RELEASE.search(word))), ""),
        container=next(tools, "") if at is None else "",
        zookeeper_section="" if NO_SASL in before else named[-1] if named else "Client",
    )


def _overrides(words: list[str]) -> dict[str, str]:
    """`--override a=b` and `--override=a=b`, the last of one key wins (CommandLineUtils.parseKeyValueArgs)."""
    found: dict[str, str] = {}
    texts = [after for word, after in itertools.pairwise(words) if word == OVERRIDE]
    texts += [word.removeprefix(OVERRIDE + "=") for word in words if word.startswith(OVERRIDE + "=")]
    for text in texts:
        key, _, value = text.partition("=")
        if key.strip():
            found[key.strip()] = for_people(key.strip(), value)
    return found


def decode_unit(properties: Mapping[str, str]) -> UnitNotes:
    """Decode `systemctl show`; a property that was not requested is unknown, or none."""
    *files, _ = BEHIND_UNIT_FILE.split(properties.get("EnvironmentFiles", ""))
    return UnitNotes(
        environment_files=tuple(path for file in files if (path := file.strip())),
        drop_ins=tuple(properties.get("DropInPaths", "").split()),
    )


BY_PEOPLE: Final = Unknown("only people touch its host, and the collector does not tell it")
FAR: Final = Unknown("the environment of a process is not read through commands: it may hold secrets")


def launch_of(executor: Executor, node: NodeId, state: ServiceState) -> Launch | Unknown:
    """Return the node's launch; Unknown where it does not run, or access is denied."""
    if isinstance(state, Unknown):
        return state
    services = executor.services
    if not isinstance(services, SystemdServices):
        return BY_PEOPLE
    if not isinstance(state, Running):
        return NOT_RUNNING
    try:
        raw, shown = services.command_line(node, state.pid), services.properties(node)
        return replace(decode_command_line(raw), environment=FAR, unit=decode_unit(shown) if shown else None)
    except MigrateError as error:
        return unknown(error)
    except OSError as error:
        return Unknown(f"the command line of process {state.pid} cannot be read: {error.strerror or error}")


def listening(executor: Executor, nodes: Iterable[NodeId]) -> dict[NodeId, tuple[Listening, ...] | Unknown]:
    """Return what listens on each node's host; all hosts at once, and a host with several nodes once."""
    if executor.witness is not None:
        return dict.fromkeys(nodes, BY_PEOPLE)
    asked = {node: executor.runners[node] for node in nodes}
    runners = {runner.host: runner for runner in asked.values()}
    with ThreadPoolExecutor(HOSTS_AT_ONCE, thread_name_prefix="host") as pool:
        there = dict(zip(runners, pool.map(listening_on, runners.values()), strict=True))
    return {node: there[runner.host] for node, runner in asked.items()}
