"""What of a unit keeps a run from stopping and starting its node, told before the first stop."""

from __future__ import annotations

import pytest

from migrate.hosts import host_program
from migrate.hosts.unit_faults import faults_of, reload_due, restarts_halted, user_of
from migrate.model.outcome import Unknown

CONFIG = "/etc/kafka/controller.properties"
PLAIN = {
    "Type": "simple",
    "Restart": "always",
    "RemainAfterExit": "no",
    "KillMode": "control-group",
    "KillSignal": "15",
    "SendSIGKILL": "yes",
    "TimeoutStopUSec": "6min",
    "RefuseManualStop": "no",
    "RefuseManualStart": "no",
}


def command(*words: str) -> str:
    """As `systemctl show` prints ExecStart and ExecStop."""
    line = " ".join(words)
    return f"{{ path={words[0]} ; argv[]={line} ; ignore_errors=no ; start_time=[n/a] ; pid=0 }}"


START = "/opt/kafka/bin/kafka-server-start.sh"
STOP = "/opt/kafka/bin/kafka-server-stop.sh"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"ExecStart": command(START, CONFIG)},
        {"ExecStart": command(START, "/etc/kafka//controller.properties")},
        {"ExecStart": command(START, "${KAFKA_CONFIG}")},
        {"ExecStart": command(START, "$CONF/kafka/broker.properties")},
        {"ExecStart": command("/bin/sh", "-c", f"exec {START} {CONFIG} >> /var/log/kafka.log")},
        {"ExecStart": command("/usr/local/bin/start-kafka")},
        {"ExecStart": command(START, "-Dlog4j.configuration=file:/etc/kafka/log4j.properties", CONFIG)},
        {"ExecStop": command(STOP, "--node-id=3000")},
        {"ExecStop": command(STOP, "--process-role", "controller")},
        {"ExecStop": command("/bin/kill", "-TERM", "$MAINPID")},
        {"SendSIGKILL": "no", "TimeoutStopUSec": "infinity"},
        {"SendSIGKILL": "no", "TimeoutStopUSec": "5min 30s"},
    ],
)
def test_units_that_a_run_can_work_have_no_fault(changed: dict[str, str]) -> None:
    """`Restart=always` is fine; variables and scripts are not followed; the other options of systemd are kept."""
    assert list(faults_of({**PLAIN, **changed}, CONFIG, [0, 1])) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"RefuseManualStop": "yes"}, "refuses to stop it"),
        ({"RefuseManualStart": "yes"}, "refuses to start it"),
        ({"RemainAfterExit": "yes"}, "after its process has ended"),
        ({"Type": "oneshot"}, "no process of it"),
        ({"KillMode": "none"}, "while its process lives on"),
        ({"KillSignal": "9"}, "kills the process"),
        ({"SendSIGKILL": "no", "TimeoutStopUSec": "1min 30s"}, "while its process lives on"),
        ({"SendSIGKILL": "no", "TimeoutStopUSec": "soon"}, "while its process lives on"),
        ({"ExecStart": command(START, "/etc/kafka/server.properties")}, f"the inventory says {CONFIG}"),
        (
            {"ExecStart": command("/bin/sh", "-c", f"'{START} /etc/kafka/k.properties'")},
            "/etc/kafka/k.properties",
        ),
        ({"ExecStop": command(STOP)}, "which ends node 0, 1 of this host, too"),
    ],
)
def test_a_unit_that_would_stop_a_run_is_told_with_the_reason(changed: dict[str, str], says: str) -> None:
    """One fault each, in words that name the setting."""
    (found,) = faults_of({**PLAIN, **changed}, CONFIG, [0, 1])
    assert says in found


def test_a_script_that_ends_every_kafka_is_fine_where_there_is_but_one() -> None:
    """Kafka's own script signals all Kafka processes of the host."""
    assert list(faults_of({**PLAIN, "ExecStop": command(STOP)}, CONFIG, [])) == []


def test_what_systemd_was_not_asked_is_no_fault_and_an_unsaid_reload_is_unknown() -> None:
    """An old systemd, or a stand-in."""
    assert list(faults_of({}, CONFIG, [0])) == []
    assert isinstance(reload_due({}), Unknown)
    assert (reload_due({"NeedDaemonReload": "yes"}), reload_due({"NeedDaemonReload": "no"})) == (True, False)
    assert (user_of({}), user_of({"User": "kafka"})) == ("root", "kafka")


@pytest.mark.parametrize(
    ("restart", "prevented", "again"),
    [
        ("on-failure", "", True),
        ("always", "", True),
        ("on-failure", "1", False),
        ("always", "143 1 SIGKILL", False),
        ("always", "143", True),
        ("no", "", False),
        ("on-abnormal", "", False),
    ],
)
def test_a_broker_that_halts_is_started_again_by_what_systemd_is_told(
    restart: str, prevented: str, again: bool
) -> None:
    """Kafka halts with exit code 1; systemd 252 prints codes and signals with blanks between them."""
    assert restarts_halted({"Restart": restart, "RestartPreventExitStatus": prevented}) is again


def test_a_unit_that_says_nothing_of_restarts_makes_none() -> None:
    """As systemd's default."""
    assert restarts_halted({}) is False


def test_the_host_program_asks_systemd_for_every_property_that_is_looked_at() -> None:
    """One that is not asked for would be no fault."""
    asked = host_program.UNIT_PROPERTIES.split(",")
    looked_at = {*PLAIN, "ExecStart", "ExecStop", "NeedDaemonReload", "RestartPreventExitStatus", "User"}
    assert looked_at - {*asked} == set()
