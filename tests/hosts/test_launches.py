"""How processes of hosts were started, on real processes; and what is not seen is Unknown."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import HostCommandUnknown
from migrate.hosts.executors import Executor, executor_of
from migrate.hosts.launches import (
    MAIN_CLASSES,
    decode_command_line,
    decode_unit,
    launch_of,
    listening,
    split_command_line,
)
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed
from migrate.hosts.sockets import parse_listening
from migrate.hosts.systemd import Service, SystemdServices
from migrate.model.ids import NodeId
from migrate.model.launch import JAAS_FILE, Launch, Listening, UnitNotes
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped
from tests.testing import worlds
from tests.testing.host_program import broker, installed
from tests.testing.host_program import here as host_program

NODE = NodeId(0)
WAITING = "import sys; print('up', flush=True); sys.stdin.read()"


@contextmanager
def process(*words: str, **environment: str) -> Iterator[int]:
    """A process that waits, with words behind its own."""
    argv = [sys.executable, "-c", WAITING, *words]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        try:
            yield child.pid
        finally:
            child.stdin.close()


def here(tmp_path: Path) -> Executor:
    """An executor whose hosts are not asked."""
    return executor_of(replace(worlds.inventory(), executor="local", executor_options={"host_program": str(tmp_path)}))


def running(pid: int) -> dict[NodeId, ServiceState]:
    """One node's process."""
    return {NODE: Running(pid, 0.0, None)}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Stopped(0), "it does not run"),
        (Unknown("no such record"), "no such record"),
    ],
)
def test_what_does_not_run_or_cannot_be_seen_is_unknown(tmp_path: Path, state: ServiceState, says: str) -> None:
    """How it would be started is not foretold."""
    found = launch_of(here(tmp_path), NODE, state)
    assert isinstance(found, Unknown)
    assert says in found.reason


def test_a_host_that_only_people_touch_is_not_taken_for_this_one(tmp_path: Path) -> None:
    """A process of the same number here, and the sockets of this host, say nothing of it."""
    options = {"inbox": str(tmp_path)}
    by_people = executor_of(replace(worlds.inventory(), executor="manual", executor_options=options))
    with process("kafka.Kafka", "/etc/other.properties") as pid:
        assert isinstance(launch_of(by_people, NODE, running(pid)[NODE]), Unknown)
    assert isinstance(listening(by_people, [NODE])[NODE], Unknown)


class Host:
    """A host program that knows one process; without one its host is out of reach."""

    host = "b0"

    def __init__(self, pid: int | None = None) -> None:
        self.pid = pid

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1.0) -> Completed:
        """As the host program answers."""
        del stdin, seconds
        match tuple(words), self.pid:
            case (_, None):
                raise HostCommandUnknown("no answer", where="b0")
            case (("process", "kafka.service", pid), mine):
                known = int(pid) == mine
                refused = Completed(65, b"", f"kraft-migrate-host: process {pid}: it is not the main process")
                return Completed(0, Path(f"/proc/{pid}/cmdline").read_bytes(), "") if known else refused
            case (("unit-show", "kafka.service"), _):
                return Completed(0, b"LoadState=loaded\nActiveState=active\nNeedDaemonReload=yes\n", "")
        raise AssertionError(words)


def there(tmp_path: Path, host: Host) -> Executor:
    """The same process as a unit of that host."""
    service = Service(NODE, "kafka.service", "/etc/b0.properties", host, RemoteFiles({NODE: host}))
    services = SystemdServices({NODE: service}, None)  # type: ignore[arg-type]
    return replace(here(tmp_path), runners={NODE: host}, services=services)


def test_a_process_on_a_host_is_read_by_the_host_program_alone(tmp_path: Path) -> None:
    """Its environment is not fetched; an unreachable host is Unknown, not an error."""
    with process("kafka.Kafka", "/etc/b0.properties", KAFKA_CFG_A="x") as pid:
        found = launch_of(there(tmp_path, Host(pid)), NODE, running(pid)[NODE])
    assert isinstance(found, Launch)
    assert found.config == "/etc/b0.properties"
    assert isinstance(found.environment, Unknown)
    assert found.unit is not None
    gone = launch_of(there(tmp_path, Host(pid)), NODE, running(2**22 + 7)[NODE])
    far = launch_of(there(tmp_path, Host()), NODE, running(1)[NODE])
    assert isinstance(gone, Unknown)
    assert "not the main process" in gone.reason
    assert isinstance(far, Unknown)
    assert "no answer" in far.reason


FILE = "/etc/kafka/server.properties"


def line(*words: str) -> bytes:
    """As /proc/PID/cmdline has it."""
    return "".join(word + "\0" for word in words).encode()


JAVA = ("/usr/bin/java", "-Xmx1g", "-Dkafka.logs.dir=/var/log", "-cp", "/opt/kafka/libs/*")


def test_a_plain_start_names_its_class_and_its_file() -> None:
    """As kafka-server-start.sh makes it."""
    found = decode_command_line(line(*JAVA, "kafka.Kafka", FILE))
    assert (found.main_class, found.config, found.overrides) == ("kafka.Kafka", FILE, {})
    assert (found.zookeeper_properties, found.jaas_file) == ((), None)
    assert isinstance(found.environment, Unknown)
    assert found.unit is None


@pytest.mark.parametrize(
    ("words", "overrides"),
    [
        (["--override", "log.dirs=/a,/b"], {"log.dirs": "/a,/b"}),
        (["--override=log.dirs=/a"], {"log.dirs": "/a"}),
        (["--override", "a=1", "--override", "b=2", "--override", "a=3"], {"a": "3", "b": "2"}),
        (["--override", "empty="], {"empty": ""}),
        (["--override", "log.dir=b=c"], {"log.dir": "b=c"}),
        (["--override", "none"], {"none": ""}),
        (["--override"], {}),
        (["--overrides", "a=1"], {}),
    ],
)
def test_override_words_are_read_as_kafka_reads_them(words: list[str], overrides: dict[str, str]) -> None:
    """Behind the file, the last of a key wins."""
    found = decode_command_line(line(*JAVA, "kafka.Kafka", FILE, *words))
    assert (found.config, found.overrides) == (FILE, overrides)


def test_a_secret_on_the_command_line_is_told_by_name_alone() -> None:
    """It is there for every user of the host to read already; we do not carry it further."""
    words = ("--override", "ssl.key.password=canary", "--override=listener.name.a.plain.sasl.jaas.config=canary")
    found = decode_command_line(line(*JAVA, "kafka.Kafka", FILE, *words))
    assert set(found.overrides) == {"ssl.key.password", "listener.name.a.plain.sasl.jaas.config"}
    assert "canary" not in repr(found)
    secret = decode_command_line(line("java", "-Dzookeeper.ssl.keyStore.password=canary", "kafka.Kafka", FILE))
    assert secret.zookeeper_properties == ("zookeeper.ssl.keyStore.password",)
    assert "canary" not in repr(secret)


@pytest.mark.parametrize(
    ("words", "bytes_"),
    [
        ((), None),
        (("-Djute.maxbuffer=8388608",), 8388608),
        (("-Djute.maxbuffer=0x9fffff",), 0x9FFFFF),
        (("-Djute.maxbuffer=1", "-Djute.maxbuffer=4194304"), 4194304),
        (("-Djute.maxbuffer=much",), None),
    ],
)
def test_the_largest_answer_that_zookeepers_client_takes_is_read(words: tuple[str, ...], bytes_: int | None) -> None:
    """As java and ZKClientConfig read it; none where it is not set."""
    assert decode_command_line(line("java", *words, "kafka.Kafka", FILE)).jute_maxbuffer == bytes_


def test_the_release_is_told_by_the_jars_of_the_class_path() -> None:
    """As kafka-run-class.sh names them; a wildcard names none."""
    jars = "/opt/kafka/bin/../libs/activation-1.1.1.jar:/opt/kafka/bin/../libs/kafka-clients-3.9.2.jar:/opt/kafka/x.jar"
    assert decode_command_line(line("java", "-cp", jars, "kafka.Kafka", FILE)).release == "3.9.2"
    own = "/libs/kafka-clients-3.9.1-acme.jar"
    assert decode_command_line(line("java", "-cp", own, "kafka.Kafka", FILE)).release == "3.9.1-acme"
    assert decode_command_line(line(*JAVA, "kafka.Kafka", FILE)).release == ""


def test_a_units_process_that_runs_a_container_is_known_by_its_tool() -> None:
    """Docker under systemd: the process of the unit is the tool's, and Kafka's own words are not in it."""
    found = decode_command_line(line("/usr/bin/docker", "run", "--name", "kafka", "apache/kafka:3.9.2"))
    assert (found.container, found.main_class) == ("docker", None)
    assert decode_command_line(line("/usr/bin/conmon", "--api-version", "1")).container == "conmon"
    assert decode_command_line(line("/bin/python3", "/usr/bin/docker-compose", "up")).container == "docker-compose"
    assert decode_command_line(line("/bin/sh", "/opt/start.sh")).container == ""
    assert decode_command_line(line(*JAVA, "kafka.Kafka", FILE)).container == ""


def test_zookeepers_properties_and_the_jaas_file_are_those_of_the_jvm_alone() -> None:
    """What stands behind the class is Kafka's, not Java's."""
    jaas = "-Djava.security.auth.login.config="
    words = (
        "-Dzookeeper.client.secure=true",
        jaas + "/old",
        jaas + "/etc/jaas.conf",
        "-Dzookeeper.client.secure=false",
        "-Dzookeeper.ssl.keyStore.location==/k",
        "-Dzookeeper.ssl.keyStore.password=secret",
    )
    found = decode_command_line(line("java", *words, "kafka.Kafka", FILE, "-Dzookeeper.no=1"))
    assert found.zookeeper_properties[0] == "zookeeper.client.secure"
    assert found.files == {JAAS_FILE: "/etc/jaas.conf", "-Dzookeeper.ssl.keyStore.location": "/k"}
    assert "secret" not in repr(found)


@pytest.mark.parametrize("raw", [b"", line("sleep", "60"), line("java", "-jar", "own-launcher.jar", FILE)])
def test_a_process_without_kafkas_class_says_nothing_of_a_file(raw: bytes) -> None:
    """Never guessed from a word that ends in .properties."""
    found = decode_command_line(raw)
    assert (found.main_class, found.config, found.overrides) == (None, None, {})


def test_no_file_is_none() -> None:
    """An option in its place is not one."""
    assert decode_command_line(line("java", "kafka.Kafka")).config is None
    assert decode_command_line(line("java", "kafka.Kafka", "--override", "a=b")).config is None


@pytest.mark.slow
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), max_size=12))
def test_any_command_line_is_read(words: list[str]) -> None:
    """Empty words, control characters, any script."""
    raw = line(*words)
    found = decode_command_line(raw)
    assert found.main_class in (None, "kafka.Kafka", "io.confluent.support.metrics.SupportedKafka")
    if words and words[-1]:
        assert split_command_line(raw) == words


@given(st.binary(max_size=200))
def test_any_bytes_are_read(raw: bytes) -> None:
    """The kernel promises no encoding."""
    found = decode_command_line(raw)
    assert found.main_class in (None, *MAIN_CLASSES)
    assert found.overrides == {} or b"--override" in raw


def test_a_units_files_and_drop_ins_are_read() -> None:
    """As `systemctl show` prints them."""
    found = decode_unit(
        {
            "EnvironmentFiles": "/etc/default/kafka (ignore_errors=yes) /etc/kafka/my env (ignore_errors=no)",
            "DropInPaths": "/etc/systemd/system/kafka.service.d/10-opts.conf /run/systemd/system/k.service.d/x.conf",
        }
    )
    assert found.environment_files == ("/etc/default/kafka", "/etc/kafka/my env")
    assert [path.rpartition("/")[2] for path in found.drop_ins] == ["10-opts.conf", "x.conf"]
    assert decode_unit({}) == UnitNotes((), ())


@pytest.mark.parametrize(
    ("words", "section"),
    [
        ((), "Client"),
        (("-Dzookeeper.sasl.clientconfig=Z1", "-Dzookeeper.sasl.clientconfig=Z2"), "Z2"),
        (("-Dzookeeper.sasl.client=false", "-Dzookeeper.sasl.clientconfig=Z"), ""),
    ],
)
def test_the_jaas_section_of_zookeeper_s_client_is_read(words: tuple[str, ...], section: str) -> None:
    """Java takes the last of equal properties; SASL may be switched off."""
    assert decode_command_line(line("java", *words, "kafka.Kafka", FILE)).zookeeper_section == section


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  0  0 1 1 0 100 0 0 10 0\n"
ONE, TWO = NodeId(3000), NodeId(3001)


@pytest.mark.parametrize(
    ("local", "state", "found"),
    [
        ("00000000:2383", "0A", Listening("0.0.0.0", 9091)),
        ("0100007F:1F90", "0A", Listening("127.0.0.1", 8080)),
        ("0201A8C0:2384", "0A", Listening("192.168.1.2", 9092)),
        ("00000000000000000000000000000000:2383", "0A", Listening("::", 9091)),
        ("0000000000000000FFFF00000100007F:2383", "0A", Listening("127.0.0.1", 9091)),
        ("00000000000000000000000001000000:0016", "0A", Listening("::1", 22)),
        ("0100007F:1F90", "01", None),
        ("0100007F:1F90", "06", None),
    ],
)
def test_a_row_of_the_kernels_table(local: str, state: str, found: Listening | None) -> None:
    """Little-endian words; only sockets that listen; Java's IPv4 within IPv6 is IPv4."""
    assert parse_listening(HEAD + ROW.format(local=local, state=state)) == (() if found is None else (found,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kraft-migrate-host: /proc/net/tcp: Permission denied\n",
        HEAD + "rubbish\n",
        HEAD + ROW.format(local="0100:1", state="0A"),
    ],
)
def test_what_is_no_table_is_an_error(text: str) -> None:
    """Never an empty host."""
    with pytest.raises(ValueError, match=r"not a|does not appear"):
        parse_listening(text)


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_a_table_or_an_error(text: str) -> None:
    """A host may print what it likes before its answer."""
    with contextlib.suppress(ValueError):
        found = parse_listening(HEAD + text)
        assert len(found) <= text.count("0A")


@contextlib.contextmanager
def listener(family: socket.AddressFamily, address: str) -> Iterator[int]:
    """A socket that listens on a free port."""
    with socket.socket(family) as found:
        found.bind((address, 0))
        found.listen()
        yield int(found.getsockname()[1])


def executor(tmp_path: Path) -> Executor:
    """One whose hosts are not asked."""
    return executor_of(replace(worlds.inventory(), executor="local", executor_options={"host_program": str(tmp_path)}))


def test_a_real_socket_is_seen(tmp_path: Path) -> None:
    """And gone once it is closed."""
    program = host_program(installed(tmp_path / "program", [broker(0, "/etc/x")]))
    here = replace(executor(tmp_path), runners={ONE: program})
    with listener(socket.AF_INET, "127.0.0.1") as port:
        seen = listening(here, [ONE])[ONE]
        assert not isinstance(seen, Unknown)
        assert Listening("127.0.0.1", port) in seen
    after = listening(here, [ONE])[ONE]
    assert not isinstance(after, Unknown)
    assert Listening("127.0.0.1", port) not in after


class Told:
    """A host that answers each table with the same."""

    host = "c0"

    def __init__(self, tables: dict[str, Completed] | None) -> None:
        self.tables = tables
        self.asked = 0

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1.0) -> Completed:
        """One table."""
        del stdin, seconds
        self.asked += 1
        if self.tables is None:
            raise HostCommandUnknown("no answer", where="c0")
        return self.tables[words[-1]]


GOOD = Completed(0, (HEAD + ROW.format(local="00000000:2383", state="0A")).encode(), "")
NONE = Completed(1, b"", "kraft-migrate-host: /proc/net/tcp6: No such file or directory")
DENIED = Completed(1, b"", "kraft-migrate-host: /proc/net/tcp: Permission denied")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ({"tcp": GOOD, "tcp6": NONE}, (Listening("0.0.0.0", 9091),)),
        ({"tcp": GOOD, "tcp6": GOOD}, (Listening("0.0.0.0", 9091),) * 2),
        ({"tcp": NONE, "tcp6": GOOD}, None),
        ({"tcp": DENIED, "tcp6": GOOD}, None),
        ({"tcp": GOOD, "tcp6": DENIED}, None),
        ({"tcp": Completed(0, b"hello", ""), "tcp6": NONE}, None),
        (None, None),
    ],
)
def test_a_host_without_ipv6_is_fine_and_every_other_silence_is_unknown(
    tmp_path: Path, tables: dict[str, Completed] | None, found: tuple[Listening, ...] | None
) -> None:
    """A table that could not be read is not an empty one."""
    answer = listening(replace(executor(tmp_path), runners={ONE: Told(tables)}), [ONE])[ONE]
    assert isinstance(answer, Unknown) if found is None else answer == found


def test_a_host_of_two_controllers_is_asked_once(tmp_path: Path) -> None:
    """Each table."""
    host = Told({"tcp": GOOD, "tcp6": NONE})
    listening(replace(executor(tmp_path), runners={ONE: host, TWO: host}), [ONE, TWO])
    assert host.asked == 2
