"""Nodes under scripts: what the status command answers and what /proc shows must agree."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate.errors import HostCommandUnknown, ProcessNotStarted, ProcessNotStopped, UnitNotUsable
from migrate.hosts import own_commands
from migrate.hosts.about import rights_of
from migrate.hosts.collect_disks import processes_of
from migrate.hosts.launches import decode_command_line
from migrate.hosts.own_commands import HostServices, own_unit_of
from migrate.lab.topology import free_ports
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, OwnCommands
from migrate.model.launch import STOP_SECONDS, Unit, unfit
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES
from migrate.model.rights import HostRights
from migrate.model.views import Running, ServiceState, Stopped
from tests.testing.estates import (
    AS_USER,
    ESTATES,
    NODE,
    inventory_of,
    loop,
    needs,
    script,
    scripts,
    services_of,
    wait_for,
)
from tests.testing.host_installation import PYTHON

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root"),
    pytest.mark.skipif(not PYTHON.exists(), reason="no python3 of the system"),
]
STANDS_IN = """import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(0)))
print("it stands in", flush=True)
while True: signal.pause()
"""


@dataclass(frozen=True)
class Place:
    """A folder that every user may enter, with a node's file in it."""

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """The node's file."""
        return self.folder / "etc/server.properties"

    @property
    def command(self) -> tuple[str, ...]:
        """A process that looks like Kafka's: the class, and the file behind it."""
        return (str(PYTHON), str(self.folder / "stands-in.py"), "kafka.Kafka", str(self.config))

    def node(self, own: OwnCommands) -> BrokerNode:
        """Under these commands."""
        return BrokerNode(NODE, "kafka-7", f"kafka-7:{self.port}", str(self.config), service=own)

    def services(self, own: OwnCommands) -> HostServices:
        """Through the real host program."""
        return services_of(self.folder, self.node(own))

    def says(self, own: OwnCommands, code: int) -> OwnCommands:
        """The same node under a status command that always ends so."""
        return replace(own, status=(script(self.folder / f"says-{code}.sh", f"#!/bin/sh\nexit {code}\n"),))

    @contextmanager
    def process(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """One that no command started; it has its own command line, which a process gets some time after its start."""
        words = argv or (*AS_USER, *self.command)
        before = ("", "setpriv") if words[: len(AS_USER)] == AS_USER else ("",)
        with subprocess.Popen(words) as process:
            try:
                line = Path(f"/proc/{process.pid}/cmdline")
                wait_for(f"{words} to run", lambda: line.read_text().split("\0")[0] not in before)
                yield process
            finally:
                process.kill()


@pytest.fixture
def place() -> Iterator[Place]:
    """With a port that nobody listens on."""
    folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-estate-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    try:
        (folder / "etc").mkdir()
        found = Place(folder, free_ports(1)[0])
        found.config.write_text(f"broker.id=7\nlog.dirs={folder}/data\n")
        (folder / "data").mkdir()
        (folder / "stands-in.py").write_text(STANDS_IN)
        yield found
    finally:
        shutil.rmtree(folder)


def running(services: HostServices) -> Running:
    """The node's state, which must be that."""
    state = services.state(NODE)
    assert isinstance(state, Running), state
    return state


def reason(state: ServiceState) -> str:
    """Of an unknown state."""
    assert isinstance(state, Unknown), state
    return state.reason


Estate = Callable[[Path, tuple[str, ...]], AbstractContextManager[OwnCommands]]


@pytest.fixture(params=sorted(ESTATES))
def estate(request: pytest.FixtureRequest, place: Place) -> Iterator[OwnCommands]:
    """Each of them, over the stand-in."""
    make: Estate = ESTATES[request.param]
    with make(place.folder, place.command) as own:
        yield own


def test_a_node_is_started_seen_and_stopped(place: Place, estate: OwnCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file that it was started with, as its user; it stays stopped; a second start is another process."""
    monkeypatch.setattr(own_commands, "SETTLED", 1.0)
    services = place.services(estate)
    assert isinstance(services.state(NODE), Stopped)
    services.start(NODE)
    first = running(services)
    assert first.config_sha256 == hashlib.sha256(place.config.read_bytes()).hexdigest()
    assert Path(f"/proc/{first.pid}").stat().st_uid == 65534
    launch = decode_command_line(services.command_line(NODE, first.pid))
    assert (launch.main_class, launch.config) == ("kafka.Kafka", str(place.config))
    with pytest.raises(ProcessNotStarted, match="runs already"):
        services.start(NODE)
    services.stop(NODE, 30)
    assert isinstance(services.state(NODE), Stopped)
    services.stop(NODE, 30)  # whoever supervises it keeps it down; nothing lives that could be harmed
    place.config.write_text("broker.id=7\n# changed\n")
    services.start(NODE)
    assert running(services).pid != first.pid
    assert running(services).config_sha256 == hashlib.sha256(place.config.read_bytes()).hexdigest()
    services.stop(NODE, 30)
    assert services.last_words(NODE, 5) == ["down"]


def test_a_supervisor_that_starts_a_killed_node_again_is_stopped_by_its_own_stop_alone(place: Place) -> None:
    """A command that ends the process and does not tell its supervisor is found out: the node is back at once."""
    with loop(place.folder, place.command) as own:
        services = place.services(own)
        services.start(NODE)
        first = running(services)
        os.kill(first.pid, signal.SIGKILL)

        def again() -> bool:
            state = services.state(NODE)
            return isinstance(state, Running) and state.pid != first.pid

        wait_for("another process", again)
        kill = script(place.folder / "kill.sh", f"#!/bin/sh\nkill {running(services).pid}\n")
        with pytest.raises(ProcessNotStopped, match="started it again"):
            place.services(replace(own, stop=(kill,))).stop(NODE, 30)
        running(services)
        services.stop(NODE, 30)
        assert isinstance(services.state(NODE), Stopped)


def test_what_commands_answer_is_not_believed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Success of a start or stop that did nothing is a failure; failure that did it is none."""
    monkeypatch.setattr(own_commands, "SEEN_WITHIN", 1.0)
    with scripts(place.folder, place.command) as own:
        with pytest.raises(ProcessNotStarted, match=r"ended with 0 and said: nothing"):
            place.services(replace(own, start=("/usr/bin/true",))).start(NODE)
        failing = script(place.folder / "fails.sh", f"#!/bin/sh\n{own.start[0]}\necho no such process\nexit 7\n")
        place.services(replace(own, start=(failing,))).start(NODE)
        before = running(place.services(own))
        with pytest.raises(ProcessNotStopped, match=r"pid \d+ lives\); the stop command ended with 0"):
            place.services(replace(own, stop=("/usr/bin/true",))).stop(NODE, 1)
        assert running(place.services(own)).pid == before.pid
        failing = script(place.folder / "fails.sh", f"#!/bin/sh\n{own.stop[0]}\nexit 7\n")
        place.services(replace(own, stop=(failing,))).stop(NODE, 30)


def test_the_status_command_may_print_a_whole_log(place: Place) -> None:
    """A broker that could not start says why, and then for a hundred lines what it shuts down."""
    says = script(place.folder / "says.sh", "#!/bin/sh\necho Exception: why\nseq -f 'INFO shutting down %f' 2000\n")
    with scripts(place.folder, place.command) as own:
        said = place.services(replace(own, status=(says,))).last_words(NODE, LOG_LINES + 1)
        assert (len(said), said[0]) == (LOG_LINES + 1, "Exception: why")


def test_what_a_command_prints_is_told_without_its_passwords(place: Place) -> None:
    """It may print a process's command line."""
    says = script(
        place.folder / "says.sh", "#!/bin/sh\necho java -Djavax.net.ssl.keyStorePassword=hunter2 kafka.Kafka\n"
    )
    with scripts(place.folder, place.command) as own:
        told = reason(place.services(replace(own, status=(says,))).state(NODE))
    assert "keyStorePassword=(sensitive) kafka.Kafka" in told


def test_the_callers_home_does_not_reach_commands_of_roots(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may run what it finds there, as `docker compose` does; not every sudo changes it."""
    monkeypatch.setenv("HOME", str(place.folder))
    says = script(place.folder / "says.sh", '#!/bin/sh\necho "$HOME"\n')
    with scripts(place.folder, place.command) as own:
        assert place.services(replace(own, status=(says,))).last_words(NODE, 1) == ["/root"]


def test_a_stop_command_without_an_end_is_unknown_and_left_alone(place: Place) -> None:
    """Nobody knows what it will still do: it is not killed, and nothing is given again."""
    with scripts(place.folder, place.command) as own:
        services = place.services(own)
        services.start(NODE)
        hangs = script(place.folder / "hangs.sh", f"#!/bin/sh\necho waiting\nsleep 3\ntouch {place.folder}/ended\n")
        slow = place.services(replace(own, stop=(hangs,), timeout=1))
        with pytest.raises(HostCommandUnknown, match=r"not ended after 1 s.*it said: waiting"):
            slow.stop(NODE, 1)
        running(services)
        wait_for("its own end", (place.folder / "ended").exists)
        with pytest.raises(UnitNotUsable, match="killed 1 s after a stop"):
            slow.stop(NODE, STOP_SECONDS)
        services.stop(NODE, 30)


def test_a_foreground_start_becomes_the_node_and_is_not_killed(place: Place) -> None:
    """The command has no end: the process that it became is seen."""
    with scripts(place.folder, place.command) as own:
        words = " ".join((*AS_USER, *place.command))
        becomes = script(place.folder / "becomes.sh", f"#!/bin/sh\necho $$ >{place.folder}/kafka.pid\nexec {words}\n")
        services = place.services(replace(own, start=(becomes,)))
        (program,) = place.folder.glob("program-*/host")
        text = program.read_text()
        assert "START_SECONDS, STATUS_SECONDS = 60" in text
        program.write_text(text.replace("START_SECONDS, STATUS_SECONDS = 60", "START_SECONDS, STATUS_SECONDS = 1"))
        services.start(NODE)
        os.kill(running(services).pid, signal.SIGKILL)


def test_what_may_be_the_node_is_unknown(place: Place) -> None:
    """Two of them, another user's, what names the file and is no Kafka yet, and a port that somebody has."""
    with scripts(place.folder, place.command) as made:
        services, stopped = place.services(place.says(made, 0)), place.services(place.says(made, 3))
        with place.process():
            running(services)
            with place.process():
                assert "several processes" in reason(services.state(NODE))
        with place.process(*place.command):
            assert "as the user with uid 0, and not as nobody" in reason(services.state(NODE))
        wrapper = (*AS_USER, "sh", "-c", "sleep 60; :", str(place.config))
        with place.process(*wrapper):
            assert "may be starting it" in reason(services.state(NODE))
            with pytest.raises(ProcessNotStarted, match="may be starting it"):
                services.start(NODE)
            with pytest.raises(ProcessNotStopped, match="was not given"):
                services.stop(NODE, 1)
        with socket.create_server(("127.0.0.1", place.port)):
            assert f"port {place.port} is listened on" in reason(stopped.state(NODE))
        other = place.folder / "etc/another.properties"
        other.write_text("broker.id=8\n")
        with place.process(*AS_USER, *place.command[:-1], str(other)):
            assert isinstance(stopped.state(NODE), Stopped)


def test_what_waits_for_kafka_is_no_second_kafka(place: Place) -> None:
    """`runuser` names the same words as Kafka for as long as it lives; alone, it may start it at any time."""
    needs("runuser")
    (place.folder / "bin").mkdir()
    java = place.folder / "bin/java"
    java.symlink_to(PYTHON)
    command = (str(java), *place.command[1:])
    with scripts(place.folder, place.command) as own:
        services = place.services(place.says(own, 0))
        with place.process("sh", "-c", "sleep 60; :", *command):
            assert "may be starting it" in reason(services.state(NODE))
        with place.process("runuser", "-u", "nobody", "--", *command) as waits:
            wait_for("it to be seen", lambda: isinstance(services.state(NODE), Running))
            pid, found = running(services).pid, processes_of(str(place.config))  # the collector's
            os.kill(pid, signal.SIGTERM)
            assert waits.wait(30) == 0
            assert pid != waits.pid
            assert [process["pid"] for process in found or ()] == [pid]


def contained(place: Place, mounts: str) -> tuple[str, ...]:
    """The stand-in with mounts of its own, as in a container."""
    return ("unshare", "-m", "sh", "-c", f"{mounts}; exec {' '.join((*AS_USER, *place.command))}")


def test_a_process_with_mounts_of_its_own_is_not_known_to_be_the_node(place: Place) -> None:
    """What it sees at the node's paths may be anything: whatever the file, no command is given."""
    needs("unshare")
    elsewhere, etc = place.folder / "elsewhere", place.config.parent
    elsewhere.mkdir()
    shutil.copy(place.config, elsewhere)
    with scripts(place.folder, place.command) as made:
        own = place.says(made, 0)
        services = place.services(own)
        for mounts in (f"mount --bind {etc} {etc}", f"mount --bind {elsewhere} {etc}"):
            with place.process(*contained(place, mounts)):
                wait_for(
                    "it to be doubted",
                    lambda: "mounts or a root of its own" in getattr(services.state(NODE), "reason", ""),
                )
                with pytest.raises(ProcessNotStopped, match="was not given"):
                    services.stop(NODE, 1)
                with pytest.raises(ProcessNotStarted, match="was not started"):
                    services.start(NODE)


@pytest.mark.parametrize("code", [1, 3, 255])
def test_a_process_that_the_status_command_does_not_confirm_is_unknown(place: Place, code: int) -> None:
    """3 says that it does not run, others say neither."""
    with scripts(place.folder, place.command) as own, place.process():
        services = place.services(place.says(own, code))
        assert f"a process runs Kafka with {place.config}" in reason(services.state(NODE))
        assert f"the status command ended with {code}" in reason(services.state(NODE))
        with pytest.raises(ProcessNotStopped, match="was not given"):
            services.stop(NODE, 1)


@pytest.mark.parametrize("code", [0, 1, 4])
def test_a_node_that_the_status_command_does_not_call_stopped_is_unknown(place: Place, code: int) -> None:
    """Its process may be where /proc does not show it."""
    with scripts(place.folder, place.command) as own:
        services = place.services(place.says(own, code))
        assert f"no process runs Kafka with {place.config}" in reason(services.state(NODE))
        with pytest.raises(ProcessNotStarted, match="was not started"):
            services.start(NODE)
        with pytest.raises(ProcessNotStopped, match="was not given"):
            services.stop(NODE, 1)


def test_a_status_command_without_an_end_is_unknown(place: Place) -> None:
    """Its time is over, and nobody knows."""
    with scripts(place.folder, place.command) as own:
        services = place.services(replace(own, status=(script(place.folder / "hangs.sh", "#!/bin/sh\nsleep 3\n"),)))
        (program,) = place.folder.glob("program-*/host")
        text = program.read_text()
        assert "START_SECONDS, STATUS_SECONDS = 60, 20" in text
        program.write_text(
            text.replace("START_SECONDS, STATUS_SECONDS = 60, 20", "START_SECONDS, STATUS_SECONDS = 60, 1")
        )
        assert "the status command has not ended" in reason(services.state(NODE))


def test_kafkas_stop_script_beside_another_node_is_a_fault(place: Place) -> None:
    """It ends every Kafka of the host; an option limits it."""
    with scripts(place.folder, place.command) as made:
        for words, faults in (((), 1), (("--node-id=7",), 0)):
            stop = (script(place.folder / "kafka-server-stop.sh", "#!/bin/sh\n"), *words)
            node = place.node(replace(made, stop=stop))
            beside = replace(node, id=NodeId(8), config=f"{place.folder}/etc/another.properties")
            inventory = inventory_of(place.folder, node)
            for others, found in (((), 0), ((beside,), faults)):
                both = replace(inventory, brokers=(node, *others))
                assert node.service is not None
                unit = own_unit_of(place.services(node.service), both, node, node.service)
                assert isinstance(unit, Unit), unit
                said = [what for code, what, _ in unfit(unit) if code == "B-OPS-09"]
                assert len(said) == found
                assert all("ends node 8 of this host, too" in what for what in said)


def test_only_programs_of_roots_and_nodes_of_the_configuration_are_given(place: Place) -> None:
    """Asked beforehand, as a run does; what others can write is refused, and a boot is not told of such a node."""
    with scripts(place.folder, place.command) as own:

        def refusals(commands: OwnCommands) -> list[str]:
            services, node = place.services(commands), place.node(commands)
            (rights,) = rights_of(inventory_of(place.folder, node), {NODE: services.runner(NODE)}).values()
            assert isinstance(rights, HostRights)
            return [entry.what for entry in rights.refused]

        assert refusals(own) == []
        Path(own.stop[0]).chmod(0o777)
        (problem,) = refusals(own)
        assert "must belong to root, be writable by nobody else" in problem
        with pytest.raises(ProcessNotStopped, match="must belong to root"):
            place.services(own).stop(NODE, 1)
        Path(own.stop[0]).chmod(0o755)
        assert "cannot be used: No such file" in refusals(replace(own, start=("/no/such/program",)))[0]
        other = place.services(replace(own, user="nobody", stop=(own.stop[0], "another word")))
        (rights,) = rights_of(inventory_of(place.folder, place.node(own)), {NODE: other.runner(NODE)}).values()
        assert isinstance(rights, HostRights)
        assert "of another inventory" in rights.refused[0].what


def test_a_word_that_is_a_file_of_kafkas_user_is_not_run_as_root(place: Place) -> None:
    """`env FILE` runs the file, whoever may write it; as the node's own user it may be run."""
    with scripts(place.folder, place.command) as own:
        theirs = script(place.folder / "start-of-kafkas-user", "#!/bin/sh\n")
        Path(theirs).chmod(0o777)

        def refusals(*start: str) -> list[str]:
            commands = replace(own, start=start)
            services, node = place.services(commands), place.node(commands)
            (rights,) = rights_of(inventory_of(place.folder, node), {NODE: services.runner(NODE)}).values()
            assert isinstance(rights, HostRights)
            return [entry.what for entry in rights.refused]

        assert "it must be root's to change alone" in refusals("/usr/bin/env", theirs)[0]
        assert "it must be root's to change alone" in refusals("/usr/bin/env", f"--file={theirs}")[0]
        assert refusals("/usr/bin/env", own.start[0], f"--file={own.start[0]}") == []
        assert refusals("/usr/bin/env", "no/such/file", "word") == []
        assert refusals("/usr/sbin/runuser", "-u", own.user, "--", theirs) == []
        assert refusals("/usr/sbin/runuser", "-u", "root", "--", theirs)


def test_what_the_user_of_a_node_with_commands_may_read_is_tried_as_that_user(place: Place) -> None:
    """As for a unit's user."""
    with scripts(place.folder, place.command) as own:
        node = place.node(own)

        def access() -> object:
            unit = own_unit_of(place.services(own), inventory_of(place.folder, node), node, own)
            assert isinstance(unit, Unit), unit
            return unit.access

        assert access() == ()
        place.config.chmod(0o600)
        assert "user nobody cannot read" in str(access())
