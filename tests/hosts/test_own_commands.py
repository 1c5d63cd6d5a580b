"""Nodes under supervisord, runit, Podman and scripts, all real: what /proc shows counts, not what a command answers."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
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

from migrate.errors import HostCommandRefused, HostCommandUnknown, ProcessNotStarted, ProcessNotStopped, UnitNotUsable
from migrate.hosts import own_commands
from migrate.hosts.about import rights_of
from migrate.hosts.collect_disks import processes_of
from migrate.hosts.launches import decode_command_line
from migrate.hosts.own_commands import HostServices, own_unit_of
from migrate.lab.topology import free_ports
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
    needs,
    podman,
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
    if estate.status:
        assert services.last_words(NODE, 5)


@pytest.mark.parametrize("name", ["supervisord", "runit", "podman"])
def test_a_supervisor_that_starts_a_killed_node_again_is_stopped_by_its_own_stop_alone(place: Place, name: str) -> None:
    """A command that ends the process and does not tell its supervisor is found out: the node is back at once."""
    make: Estate = ESTATES[name]
    with make(place.folder, place.command) as own:
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
    """Success that starts or stops nothing is a failure; failure that did it is none."""
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
        becomes = script(place.folder / "becomes.sh", f"#!/bin/sh\nexec {' '.join((*AS_USER, *place.command))}\n")
        services = place.services(replace(own, start=(becomes,)))
        (program,) = place.folder.glob("program-*/host")
        text = program.read_text()
        assert "START_SECONDS, STATUS_SECONDS = 60" in text
        program.write_text(text.replace("START_SECONDS, STATUS_SECONDS = 60", "START_SECONDS, STATUS_SECONDS = 1"))
        services.start(NODE)
        os.kill(running(services).pid, signal.SIGKILL)


def test_what_may_be_the_node_is_unknown(place: Place) -> None:
    """Two of them, another user's, what names the file and is no Kafka yet, and a port that somebody has."""
    with scripts(place.folder, place.command) as own:
        services = place.services(own)
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
            assert f"port {place.port} is listened on" in reason(services.state(NODE))
        other = place.folder / "etc/another.properties"
        other.write_text("broker.id=8\n")
        with place.process(*AS_USER, *place.command[:-1], str(other)):
            assert isinstance(services.state(NODE), Stopped)


def test_what_waits_for_kafka_is_no_second_kafka(place: Place) -> None:
    """`runuser` names the same words as Kafka for as long as it lives; alone, it may start it at any time."""
    needs("runuser")
    (place.folder / "bin").mkdir()
    java = place.folder / "bin/java"
    java.symlink_to(PYTHON)
    command = (str(java), *place.command[1:])
    with scripts(place.folder, place.command) as own:
        services = place.services(own)
        with place.process("sh", "-c", "sleep 60; :", *command):
            assert "may be starting it" in reason(services.state(NODE))
        with place.process("runuser", "-u", "nobody", "--", *command) as waits:
            wait_for("it to be seen", lambda: isinstance(services.state(NODE), Running))
            pid, found = running(services).pid, processes_of(str(place.config))  # the collector's
            kills = services.sees(NODE)  # it sends KILL two seconds behind a TERM
            os.kill(pid, signal.SIGTERM)
            assert waits.wait(30) == 0
            assert pid != waits.pid
            assert f"process {waits.pid} (runuser) is above Kafka and takes TERM in its place" in " ".join(kills)
            assert [process["pid"] for process in found or ()] == [pid]
    needs("catatonit")
    with podman(place.folder, command, words=("--init",)) as own:
        services = place.services(own)
        services.start(NODE)
        wait_for("it to be seen", lambda: isinstance(services.state(NODE), Running))
        assert services.sees(NODE) == ()
        services.stop(NODE, 30)
        assert isinstance(services.state(NODE), Stopped)


def contained(place: Place, mounts: str) -> tuple[str, ...]:
    """The stand-in with mounts of its own, as in a container."""
    return ("unshare", "-m", "sh", "-c", f"{mounts}; exec {' '.join((*AS_USER, *place.command))}")


def test_a_process_in_a_container_is_the_node_where_it_sees_the_same_places(place: Place) -> None:
    """The same path with another file in it is not known to be; a file or a disk that is not the host's is a fault."""
    needs("unshare")
    (place.folder / "elsewhere").mkdir()
    shutil.copy(place.config, place.folder / "elsewhere")
    etc, elsewhere, data = place.config.parent, place.folder / "elsewhere", place.folder / "data"
    with scripts(place.folder, place.command) as own:
        services, inventory = place.services(own), inventory_of(place.folder, place.node(own))

        def faults() -> str:
            wait_for("it to be seen", lambda: isinstance(services.state(NODE), Running))
            unit = own_unit_of(services, inventory, place.node(own), own)
            assert isinstance(unit, Unit), unit
            return " ".join(what for code, what, _ in unfit(unit) if code == "B-OPS-09")

        with place.process(*contained(place, f"export KAFKA_CFG_LOG_DIRS=x; mount --bind {etc} {etc}")):
            assert faults() == ""
            assert "KAFKA_CFG_LOG_DIRS" in (services.variables(NODE, running(services).pid) or ())
        with place.process(*contained(place, f"mount --bind {place.config} {place.config}")):
            assert "is mounted into its container as a file" in faults()
        with place.process(*contained(place, f"mount --bind {elsewhere} {data}")):
            assert f"sees another place at {data}" in faults()
        with place.process(*contained(place, f"mount --bind {elsewhere} {etc}")):
            wait_for("it to be doubted", lambda: isinstance(services.state(NODE), Unknown))
            assert "mounts of its own, and another file" in reason(services.state(NODE))
        (place.folder / "copy").mkdir()  # a link within a container would lead to the host's own file, seen from here
        os.link(place.config, place.folder / "copy/server.properties")
        link = f"mount -t tmpfs none {etc}; ln -s {place.folder}/copy/server.properties {place.config}"
        with place.process(*contained(place, f"{link}; mount --bind {elsewhere} {place.folder}/copy")):
            wait_for("it to be doubted", lambda: isinstance(services.state(NODE), Unknown))
            assert "mounts of its own, and another file" in reason(services.state(NODE))


def test_a_container_of_podman_is_the_node_where_it_sees_the_same_places(place: Place) -> None:
    """A file that is mounted alone is named; replaced, it is another one, and no stop command is given.

    So is a shell as the first process: TERM ends there, and Kafka is killed once the time of `podman stop` is over.
    """
    elsewhere, etc, data = place.folder / "elsewhere", place.config.parent, place.folder / "data"
    elsewhere.mkdir()
    shell = ("/bin/sh", "-c", f"{shlex.join(place.command)}; :")  # as an image whose script does not end with `exec`
    with podman(place.folder, shell, {etc: elsewhere, place.config: place.config, data: elsewhere}) as own:
        services = place.services(own)
        services.start(NODE)
        assert Path(f"/proc/{running(services).pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
        unit = own_unit_of(services, inventory_of(place.folder, place.node(own)), place.node(own), own)
        assert isinstance(unit, Unit), unit
        faults = [what for code, what, _ in unfit(unit) if code == "B-OPS-09"]
        assert len(faults) == 3
        assert "is mounted into its container as a file" in faults[0]
        assert f"sees another place at {data}" in faults[1]
        assert re.search(r"process \d+ \((ba|da)?sh\) is above Kafka and takes TERM in its place", faults[2])
        anew = etc / "anew"
        anew.write_text("broker.id=7\n# changed\n")
        anew.rename(place.config)
        assert "mounts of its own, and another file" in reason(services.state(NODE))
        with pytest.raises(ProcessNotStopped, match="was not given"):
            services.stop(NODE, 30)


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
        with pytest.raises(HostCommandRefused, match="it is no unit"):
            place.services(own).at_boot(NODE, wanted=True)


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
