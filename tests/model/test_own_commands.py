"""Commands that would kill a node, or end others too, are known by their words."""

from __future__ import annotations

import pytest

from migrate.model.inventory import OwnCommands
from migrate.model.own_commands import find_command_faults, to_confirm


def own(*stop: str) -> OwnCommands:
    """A node with that stop command."""
    return OwnCommands("kafka", ("/usr/bin/sv", "start", "kafka"), stop, 330.0)


@pytest.mark.parametrize(
    ("stop", "fault"),
    [
        ("/usr/bin/docker stop kafka", "docker stop without -t and whole seconds: it kills after 10 s. Give it -t 330"),
        ("/usr/bin/docker stop --time 60 kafka", "with -t 60"),
        ("/usr/bin/docker stop -t30 kafka", "with -t 30"),
        ("/usr/bin/podman stop --time=329 kafka", "podman stop with -t 329"),
        ("/usr/bin/podman stop --time -1 kafka", "podman stop with -t -1"),
        ("/usr/bin/podman stop -t 330.5 kafka", "without -t and whole seconds"),
        ("/usr/bin/docker compose stop kafka", "it kills after 10 s"),
        ("/usr/bin/docker-compose stop kafka", "docker-compose stop without -t"),
        ("/usr/bin/podman-compose stop kafka", "podman-compose stop without -t"),
        ("/usr/sbin/runuser -u kafka -- /usr/bin/podman stop kafka", "podman stop without -t"),
        ("/usr/bin/docker kill kafka", "docker kill or rm"),
        ("/usr/bin/docker rm -f kafka", "docker kill or rm"),
        ("/usr/bin/podman kill -s TERM kafka", "podman kill or rm"),
        ("/usr/bin/podman stop -t 330 -a", "ends every container"),
        ("/usr/bin/docker compose stop -t 330", "every service of the compose file"),
        ("/usr/bin/docker-compose -f /etc/kafka.yml down --timeout=330", "every service of the compose file"),
        ("/usr/bin/sv force-stop kafka", "an sv that kills"),
        ("/usr/bin/kill -9 77", "sends SIGKILL"),
        ("/usr/bin/env -i /usr/bin/kill -9 77", "sends SIGKILL"),
        ("/usr/bin/supervisorctl stop all", "ends node 2, 3000"),
        ("/opt/kafka/bin/kafka-server-stop.sh", "ends node 2, 3000"),
        ("/usr/bin/pkill -f kafka.Kafka", "ends node 2, 3000"),
    ],
)
def test_a_stop_that_kills_or_ends_other_nodes_is_a_fault(stop: str, fault: str) -> None:
    """Beside a controller and another broker."""
    (found,) = find_command_faults(own(*stop.split()), (2, 3000))
    assert fault in found


@pytest.mark.parametrize(
    "stop",
    [
        "/usr/bin/docker stop --time 330 kafka",
        "/usr/bin/docker stop --timeout=400 kafka",
        "/usr/bin/docker stop -t 330 kafka",
        "/usr/bin/docker stop --time -1 kafka",  # waits without end
        "/usr/bin/podman stop -t330 kafka",
        "/usr/sbin/runuser -u kafka -- /usr/bin/podman stop -t 330 kafka",  # the containers of that user
        "/usr/bin/docker compose -f /etc/kafka.yml stop -t 330 kafka",
        "/usr/bin/docker-compose stop --timeout=330 kafka",
        "/usr/bin/sv -w 330 stop /etc/service/kafka",
        "/usr/bin/supervisorctl stop kafka",
        "/opt/kafka/bin/kafka-server-stop.sh --node-id=1",
        "/opt/ops/stop-kafka",
    ],
)
def test_a_proper_stop_has_no_fault_and_a_text_to_confirm(stop: str) -> None:
    """What its supervisor does is not seen."""
    assert list(find_command_faults(own(*stop.split()), (2, 3000))) == []
    assert "330" in to_confirm(own(*stop.split()))


def test_alone_on_its_host_a_wide_stop_ends_nobody_else() -> None:
    """Whose other nodes are on other hosts."""
    assert list(find_command_faults(own("/opt/kafka/bin/kafka-server-stop.sh"), ())) == []
