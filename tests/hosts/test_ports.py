"""What listens on a host, from the kernel's own tables: against real sockets, and against texts that are none."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import HostCommandUnknown
from migrate.hosts.executors import Executor, executor_of
from migrate.hosts.ports import listening, parse_listening
from migrate.hosts.runner import Completed
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.ports_seen import Listening
from tests.testing import worlds
from tests.testing.host_program import broker, installed
from tests.testing.host_program import here as host_program

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
    """This host's."""
    return executor_of(replace(worlds.inventory(), executor_options={"state": str(tmp_path)}))


def test_a_real_socket_is_seen_here_and_through_commands(tmp_path: Path) -> None:
    """The same answer both ways; and gone once it is closed."""
    here = executor(tmp_path)
    by_command = replace(here, runners={TWO: host_program(installed(tmp_path / "program", [broker(0, "/etc/x")]))})
    with listener(socket.AF_INET, "127.0.0.1") as port:
        found = listening(by_command, [ONE, TWO])
        for node in (ONE, TWO):
            seen = found[node]
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
