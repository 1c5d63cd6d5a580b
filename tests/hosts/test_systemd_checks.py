"""A unit is looked at once, by one function, with all that could stop a run at it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts import host_program
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed
from migrate.hosts.systemd import (
    Service,
    SystemdServices,
    find_access_faults,
    find_faults,
    reload_due,
    restarts_halted,
    unit_of,
    user_of,
)
from migrate.model.launch import VIEW, Unit, kept_from, unfit
from migrate.model.outcome import Unknown
from tests.testing import worlds

SHOWN = "LoadState=loaded\nActiveState=active\nTimeoutStopUSec=10min\nNeedDaemonReload=no\nUser=kafka\n"
NODE = replace(worlds.inventory().controllers[0], unit="kafka.service")

FINE: dict[str, Any] = {
    "user": "kafka",
    "group": "kafka",
    "config": {"exists": True, "path_readable_by_user": True, "readable_by_user": True},
    "metadata_directory": {"exists": True, "writable_by_user": True, "mount_point": True, "can_be_made": False},
    "kafka_home": {"storage_tool": "/opt/kafka/bin/kafka-storage.sh", "exists": True, "executable_by_user": True},
    "java": "/usr/bin/java",
}


class Answers:
    """A host program that says what it is told to say."""

    host = NODE.host

    def __init__(self, shown: str, facts: str = json.dumps(FINE)) -> None:
        self.answers = {"unit-show": shown, "unit-is-enabled": "enabled", "boot-units": "", "facts": facts}

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
        """One of them, or a refusal where there is none."""
        answer = self.answers[words[0]]
        return Completed(0, answer.encode(), "") if answer else Completed(65, b"", "it is no node of this host")


def seen(runner: Answers) -> Unit | Unknown:
    """What is known of the unit."""
    service = Service(NODE.id, NODE.unit, NODE.config, runner, RemoteFiles({NODE.id: runner}))
    services = SystemdServices({NODE.id: service}, None)  # type: ignore[arg-type]
    return unit_of(services, worlds.inventory(), NODE)


def test_a_unit_without_fault_is_fit() -> None:
    """And who it runs as is known."""
    found = seen(Answers(SHOWN))
    assert isinstance(found, Unit)
    assert (found.user, unfit(found)) == ("kafka", ())


@pytest.mark.parametrize(
    ("shown", "code", "says"),
    [
        ("LoadState=not-found\nActiveState=inactive\n", "B-OPS-09", "not-found"),
        ("LoadState=masked\nActiveState=inactive\n", "B-OPS-09", "masked"),
        (SHOWN + "TimeoutStopUSec=1min 30s\nSendSIGKILL=yes\n", "B-OPS-06", "kills it 90 s after"),
        (SHOWN + "TimeoutStopUSec=5min\n", "B-OPS-06", "kills it 300 s after"),
        (SHOWN.replace("TimeoutStopUSec", "Other"), "B-OPS-06", "not known"),
        (SHOWN + "NeedDaemonReload=yes\n", "B-CFG-29", "changed on disk"),
        (SHOWN + "KillMode=none\n", "B-OPS-09", "KillMode=none"),
    ],
)
def test_a_unit_that_cannot_be_used_is_told_beforehand(shown: str, code: str, says: str) -> None:
    """Not in the night: with its code, for `assess`, `plan`, doctor, the run and its gates."""
    found = seen(Answers(shown))
    assert isinstance(found, Unit)
    ((told, what, advice),) = unfit(found)
    assert told == code
    assert says in what
    assert advice


def test_what_its_user_may_not_do_is_told_and_an_answer_that_is_none_is_unknown() -> None:
    """Never read as fine."""
    barred = seen(Answers(SHOWN, json.dumps({**FINE, "java": ""})))
    assert isinstance(barred, Unit)
    assert [code for code, _, _ in unfit(barred)] == ["B-OPS-12"]
    for facts in ("", "what", "[]", "{}"):
        found = seen(Answers(SHOWN, facts))
        assert isinstance(found, Unit)
        assert isinstance(found.access, Unknown)


def test_a_host_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its error."""

    def silent(*_words: object, **_more: object) -> Completed:
        raise HostUnreachable("no connection", where=NODE.host)

    runner = Answers(SHOWN)
    monkeypatch.setattr(runner, "run", silent)
    found = seen(runner)
    assert isinstance(found, Unknown)
    assert "E-HOST-22" in found.reason


BROKER, CONTROLLER = worlds.inventory().brokers[0], worlds.inventory().controllers[0]


def told(**parts: object) -> dict[str, Any]:
    """The answer of a host; of a part some entries changed, or the part itself."""
    found = deepcopy(FINE)
    for name, changed in parts.items():
        found[name] = {**found[name], **changed} if isinstance(changed, dict) else changed
    return found


def test_a_host_where_nothing_is_missing() -> None:
    """A directory or a file that is not there yet is fine where it can be made."""
    new = {"exists": False, "writable_by_user": False, "can_be_made": True}
    for answer in (FINE, told(config={"exists": False, "readable_by_user": False}), told(metadata_directory=new)):
        assert list(find_access_faults(answer, CONTROLLER)) == []
    assert list(find_access_faults(told(metadata_directory=None, kafka_home={"exists": False}, java=""), BROKER)) == []


@pytest.mark.parametrize(
    ("answer", "says", "advice"),
    [
        (told(config={"readable_by_user": False}), f"cannot read {CONTROLLER.config}", "chmod g+r"),
        (told(config={"path_readable_by_user": False, "readable_by_user": False}), "may not enter", "chmod g+x"),
        (told(metadata_directory={"writable_by_user": False}), "cannot write into", "chown kafka:"),
        (told(metadata_directory={"exists": False, "writable_by_user": False}), "is not there", "install -d -o kafka"),
        (told(kafka_home={"exists": False, "executable_by_user": False}), "is not there for user", "kafka_home"),
        (told(kafka_home={"executable_by_user": False}), "cannot run /opt/kafka", "chmod +x"),
        (told(java=""), "has no java", "JAVA_HOME"),
    ],
)
def test_what_would_stop_a_run_is_named_with_what_to_do(answer: object, says: str, advice: str) -> None:
    """One fact, one sentence."""
    ((what, to_do),) = find_access_faults(answer, CONTROLLER)
    assert says in what
    assert advice in to_do


@pytest.mark.parametrize("answer", [None, {}, told(config=None), told(config={"exists": "yes"}), told(java=None)])
def test_an_answer_that_is_none_is_an_error(answer: object) -> None:
    """And never fine."""
    with pytest.raises(TypeError, match="answer"):
        list(find_access_faults(answer, CONTROLLER))


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
    assert list(find_faults({**PLAIN, **changed}, CONFIG, [0, 1])) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"RefuseManualStop": "yes"}, "refuses to stop it"),
        ({"RefuseManualStart": "yes"}, "refuses to start it"),
        ({"RemainAfterExit": "yes"}, "after its process has ended"),
        ({"Type": "oneshot"}, "no process of it"),
        ({"KillMode": "none"}, "while its process runs"),
        ({"KillSignal": "9"}, "kills the process"),
        ({"SendSIGKILL": "no", "TimeoutStopUSec": "1min 30s"}, "while its process runs"),
        ({"SendSIGKILL": "no", "TimeoutStopUSec": "soon"}, "while its process runs"),
        ({"ExecStart": command(START, "/etc/kafka/server.properties")}, f"the inventory says {CONFIG}"),
        (
            {"ExecStart": command("/bin/sh", "-c", f"'{START} /etc/kafka/k.properties'")},
            "/etc/kafka/k.properties",
        ),
        ({"ExecStart": command("/usr/sbin/runuser", "-u", "kafka", "--", START, CONFIG)}, "give the unit User="),
        ({"ExecStart": command("/bin/su", "kafka", "-c", f"{START} {CONFIG}")}, "kills Kafka two seconds after"),
        ({"ExecStop": command(STOP)}, "which ends node 0, 1 of this host, too"),
    ],
)
def test_a_unit_that_would_stop_a_run_is_told_with_the_reason(changed: dict[str, str], says: str) -> None:
    """One fault each, in words that name the setting."""
    (found,) = find_faults({**PLAIN, **changed}, CONFIG, [0, 1])
    assert says in found


def test_a_script_that_ends_every_kafka_is_fine_where_there_is_but_one() -> None:
    """Kafka's own script signals all Kafka processes of the host."""
    assert list(find_faults({**PLAIN, "ExecStop": command(STOP)}, CONFIG, [])) == []


def test_what_systemd_was_not_asked_is_no_fault_and_an_unsaid_reload_is_unknown() -> None:
    """An old systemd, or a stand-in."""
    assert list(find_faults({}, CONFIG, [0])) == []
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
    looked_at = {*PLAIN, *VIEW, "ExecStart", "ExecStop", "NeedDaemonReload", "RestartPreventExitStatus", "User"}
    assert looked_at - {*asked} == set()


HOME, ETC, DISK, OPT, SUB = "/home/kafka/f", "/etc/kafka/f", "/srv/kafka/disk1", "/opt/k/f", "/opt/k/sub/f"


@pytest.mark.parametrize(
    ("view", "unseen", "unwritten"),
    [
        ("", "", ""),
        ("ProtectHome=yes", HOME, HOME),
        ("ProtectHome=read-only", "", HOME),
        ("ProtectHome=tmpfs", HOME, HOME),
        ("ProtectHome=yes;BindPaths=/home/kafka:/home/kafka:rbind", HOME, HOME),
        ("ProtectHome=tmpfs;BindPaths=/home/kafka:/home/kafka:rbind", "", ""),
        ("ProtectSystem=full", "", ETC),
        ("ProtectSystem=strict", "", f"{ETC} {DISK} {OPT} {SUB} /tmp/f"),
        ("ProtectSystem=strict;ReadWritePaths=/srv/kafka/disk1 -/nonexist", "", f"{ETC} {OPT} {SUB} /tmp/f"),
        ("ProtectSystem=strict;PrivateTmp=yes", "/tmp/f", f"{ETC} {DISK} {OPT} {SUB} /tmp/f"),
        ("InaccessiblePaths=/opt/k;ReadWritePaths=/opt/k/sub", f"{OPT} {SUB}", f"{OPT} {SUB}"),
        ("ReadOnlyPaths=/opt;ReadWritePaths=/opt/k/sub", "", OPT),
        ("ReadOnlyPaths=+/opt/k/sub;ReadWritePaths=/opt", "", SUB),
        ("TemporaryFileSystem=/opt:ro;BindReadOnlyPaths=/opt/k/sub:/opt/k/sub:rbind", OPT, f"{OPT} {SUB}"),
        ("BindPaths=/srv/k:/opt/k:rbind", f"{OPT} {SUB}", f"{OPT} {SUB}"),
        ("DynamicUser=yes", "/tmp/f", f"{HOME} {ETC} {DISK} {OPT} {SUB} /tmp/f"),
        ("ProtectSystem=strict;StateDirectory=kafka", "", f"{ETC} {DISK} {OPT} {SUB} /tmp/f"),
        ("RootDirectory=/srv", f"{HOME} {ETC} {DISK} {OPT} {SUB} /tmp/f", f"{HOME} {ETC} {DISK} {OPT} {SUB} /tmp/f"),
    ],
)
def test_a_unit_sees_and_writes_what_systemd_lets_it(view: str, unseen: str, unwritten: str) -> None:
    """As tried on systemd 252, `tests/bed/test_views.py`."""
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in view.split(";") if one))
    paths = (HOME, ETC, DISK, OPT, SUB, "/tmp/f")
    assert " ".join(path for path in paths if kept_from(pairs, path)) == unseen
    assert " ".join(path for path in paths if kept_from(pairs, path, written=True)) == unwritten
    assert not kept_from((("ProtectSystem", "strict"), ("StateDirectory", "kafka")), "/var/lib/kafka/d", written=True)
