"""`cons` tells who has a session; a server that will not say is unknown, never empty."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from migrate.lab.topology import free_ports
from migrate.model.outcome import Unknown
from migrate.model.views import ZookeeperSession
from migrate.zookeeper.lock import MOST_BYTES, ask_server, parse_sessions, sessions
from tests.testing.answering import answering
from tests.testing.zookeeper_server import ZookeeperServer, running_server

ANSWER = (
    " /10.1.0.7:50506[1](queued=0,recved=5,sent=5,sid=0x1000a2b3c4d0001,lop=PING,est=1,to=18000,lcxid=0x3,llat=0)\n"
    " /0:0:0:0:0:0:0:1%lo:4242[1](queued=0,recved=1,sent=1,sid=0xf000000000000001,lop=PING)\n"
    " /10.1.0.9:50510[0](queued=0,recved=1,sent=0)\n\n"
)


def test_each_line_is_an_address_and_a_session() -> None:
    """The connection that asks has no session; ids are signed as ephemeralOwner is."""
    assert parse_sessions(ANSWER) == [
        ZookeeperSession("10.1.0.7", 0x1000A2B3C4D0001),
        ZookeeperSession("0:0:0:0:0:0:0:1", 0xF000000000000001 - 2**64),
    ]
    assert parse_sessions("garbage\n\x00[](") == []


def test_a_port_where_nobody_listens_is_unknown() -> None:
    """With the server's name."""
    (port,) = free_ports(1)
    found = sessions(f"127.0.0.1:{port}/kafka", seconds=1.0)
    assert isinstance(found, Unknown)
    assert str(port) in found.reason


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "nothing"),
        (b"cons is not executed because it is not in the whitelist.\n", "whitelist"),
        (b"x" * (MOST_BYTES + 1), "more than"),
    ],
    ids=["mute", "closed", "too much"],
)
def test_a_server_that_does_not_say_is_unknown(said: bytes, why: str) -> None:
    """A mute port, a closed word, and an answer of which only the beginning was read."""
    with answering(said) as server:
        found = ask_server(server.address, b"cons", 5.0)
    assert isinstance(found, Unknown)
    assert why in found.reason


@pytest.mark.slow
def test_an_answer_that_drips_is_not_waited_for_without_end() -> None:
    """Each piece comes in time, and the last one never."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                while not over.wait(0.01):
                    client.sendall(b".")

        thread = threading.Thread(target=drip)
        thread.start()
        guard = threading.Timer(5, over.set)
        guard.start()
        found = ask_server(f"127.0.0.1:{listener.getsockname()[1]}", b"cons", 0.05)
        over.set()
        guard.cancel()
        thread.join()
    assert isinstance(found, Unknown)
    assert "does not end" in found.reason


@pytest.mark.zookeeper
def test_a_real_server_names_our_session(server: ZookeeperServer) -> None:
    """By the id that ephemeral znodes carry."""
    with server.client() as client:
        found = sessions(server.address)
        assert not isinstance(found, Unknown)
        assert client.session in {entry.session for entry in found}


@pytest.mark.zookeeper
def test_a_real_server_with_the_default_whitelist_is_unknown(tmp_path: Path) -> None:
    """One of two servers that is mute makes the whole unknown."""
    with running_server(tmp_path, "4lw.commands.whitelist=srvr\n") as mute:
        found = sessions(mute.address)
    assert isinstance(found, Unknown)
    assert "whitelist" in found.reason
