"""A keytab's principals by its bytes; logins by Kerberos at a real node, and each way in which they fail."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import (
    AccessRefused,
    ConnectionClosed,
    KdcUnreachable,
    KerberosRefused,
    KerberosUnusable,
    MigrateError,
    SecretUnreadable,
)
from migrate.kafka import gssapi
from migrate.kafka.connection import RELOGIN_ATTEMPTS, Connection
from migrate.kafka.gssapi import ask_kdc, principals, ticket_seconds
from migrate.kafka.live import metadata
from migrate.model.inventory import Access, Kerberos
from tests.kafka.fake_node import Close, FakeNode
from tests.testing.kerberos import KerberosNode, RunningKdc, needs_kdc, running_kdc

ENTRY = bytes.fromhex("0001 0004 52454c4d 0004 75736572 00000001 00000000 01 0012 0002 0000")


def test_a_keytab_names_its_principals() -> None:
    """In its order, each once; what was removed is passed over."""
    size = len(ENTRY).to_bytes(4, "big")
    removed = (-6).to_bytes(4, "big", signed=True) + bytes(6)
    assert principals(b"\x05\x02" + size + ENTRY + removed + size + ENTRY) == ("user@RELM",)
    assert principals(b"\x05\x02" + size + ENTRY + bytes(4) + b"as MIT") == ("user@RELM",)  # 0 ends the list
    for damaged in (b"", b"\x05\x01", b"\x05\x02" + size + ENTRY[:-3]):
        with pytest.raises(ValueError, match=r"keytab|entry"):
            principals(damaged)


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        *((number, None) for number in (6, 12, 14, 18, 23, 24, 37)),
        (32, KerberosUnusable),  # a cache's ticket has ended: there is nothing to ask with
        (195, KerberosUnusable),  # no cache
        (156, KdcUnreachable),
    ],
)
def test_whatever_a_kdc_answers_it_answers(
    number: int, raised: type[MigrateError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A revoked client, a policy, an encryption type: no restart waits for them."""

    def failing(*_: object) -> None:
        raise gssapi._Failed(gssapi.FAILED, gssapi.BASE + number)

    monkeypatch.setattr(gssapi, "library", lambda: None)
    monkeypatch.setattr(gssapi, "_words", lambda *_: "as it was told")
    monkeypatch.setattr(gssapi, "_credential", failing)
    with nullcontext() if raised is None else pytest.raises(raised):
        ask_kdc(Kerberos("tool@LAB.TEST"))


def test_nothing_is_released_at_the_end_of_the_process() -> None:
    """A thread that was left behind may still use it."""
    program = "from migrate.kafka.gssapi import _Handle; kept = _Handle(lambda *_: print('released'))"
    for more, said in (("", ""), ("; del kept", "released")):
        ended = subprocess.run([sys.executable, "-c", program + more], capture_output=True, text=True, check=True)
        assert ended.stdout.strip() == said


def test_a_missing_library_is_said_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback of ctypes."""
    monkeypatch.setattr(gssapi, "LIBRARY", "libgssapi-is-not-here.so.9")
    gssapi.library.cache_clear()
    with pytest.raises(KerberosUnusable, match=r"libgssapi-is-not-here\.so\.9") as caught:
        gssapi.library()
    gssapi.library.cache_clear()
    assert "apt install libgssapi-krb5-2" in (caught.value.next_step or "")


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKdc]:
    """A KDC with a node, the tool, and a principal that no node has a key of."""
    needs_kdc()
    with running_kdc(tmp_path_factory.mktemp("kdc"), "kafka/localhost", "migrator", "other/localhost") as found:
        yield found


@pytest.fixture(scope="module")
def node(kdc: RunningKdc) -> Iterator[KerberosNode]:
    """A node of Kafka whose listeners take GSSAPI alone."""
    found = KerberosNode(kdc, kdc.folder / "node")
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.mark.kafka
def test_brokers_and_controllers_take_a_login_by_kerberos(kdc: RunningKdc, node: KerberosNode, tmp_path: Path) -> None:
    """By a keytab and by a ticket cache; from several threads at once; no ticket is written to a file."""
    access = kdc.access("migrator")
    with Connection(node.broker, access) as connection:
        assert metadata(connection).brokers == (1,)
    Connection(node.controller, access).close()
    kdc.kinit("migrator", tmp_path / "cache")
    assert access.kerberos is not None
    cached = replace(access, kerberos=replace(access.kerberos, keytab="", ccache=f"FILE:{tmp_path / 'cache'}"))
    Connection(node.broker, cached).close()
    assert ticket_seconds(kdc.login("migrator")) > 3600
    failed: list[MigrateError] = []

    def often() -> None:
        try:
            for _ in range(10):
                Connection(node.broker, access).close()
        except MigrateError as error:
            failed.append(error)

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_a_kdc_is_asked_past_every_ticket_that_is_known(tmp_path: Path) -> None:
    """By a keytab and by a cache: it answers; it is away; it is back."""
    needs_kdc()
    with running_kdc(tmp_path / "asked", "migrator") as kdc:
        kdc.kinit("migrator", tmp_path / "cache")
        logins = (kdc.login("migrator"), Kerberos("migrator@LAB.TEST", ccache=f"FILE:{tmp_path / 'cache'}"))
        for login in logins:
            ask_kdc(login)
            assert ticket_seconds(login) > 3600
        kdc.stop()
        for login in logins:
            assert ticket_seconds(login) > 3600
            with pytest.raises(KdcUnreachable, match="no KDC of"):
                ask_kdc(login)
        kdc.start()
        for login in logins:
            ask_kdc(login)


def changed(kdc: RunningKdc, **changes: str) -> Access:
    """The tool's access with another part of its login."""
    found = kdc.access("migrator")
    assert found.kerberos is not None
    return replace(found, kerberos=replace(found.kerberos, **changes))


@pytest.mark.kafka
def test_each_wrong_login_says_what_is_wrong(kdc: RunningKdc, node: KerberosNode, tmp_path: Path) -> None:
    """With a class, whose id is stable, and the words that help."""
    open_to_all = tmp_path / "open.keytab"
    shutil.copy(kdc.keytab("migrator"), open_to_all)
    open_to_all.chmod(0o644)
    (tmp_path / "none.keytab").touch(0o600)
    by_ip = node.broker.replace("localhost", "127.0.0.1")
    cases: list[tuple[str, Access, type[MigrateError], str]] = [
        (node.broker, changed(kdc, service="nope"), KerberosRefused, "knows no principal for nope@localhost"),
        (by_ip, changed(kdc), KerberosRefused, r"knows no principal for kafka@127\.0\.0\.1"),
        (node.broker, changed(kdc, service="other"), AccessRefused, "user migrator@LAB.TEST was refused"),
        (node.broker, changed(kdc, keytab="/no/keytab"), SecretUnreadable, "the keytab cannot be read"),
        (node.broker, changed(kdc, keytab=str(open_to_all)), SecretUnreadable, "the keytab has mode 0644"),
        (node.broker, changed(kdc, keytab=str(tmp_path / "none.keytab")), KerberosUnusable, "this is no keytab"),
        (node.broker, changed(kdc, principal="x@LAB.TEST"), KerberosUnusable, "the keytab has no key of x@LAB.TEST"),
        (node.broker, changed(kdc, keytab="", ccache=f"FILE:{tmp_path}/no"), KerberosUnusable, "no credentials of"),
    ]
    for address, access, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            Connection(address, access)
        assert caught.value.next_step or caught.value.hint


@pytest.mark.kafka
def test_a_login_whose_key_or_principal_the_kdc_does_not_have_is_refused(kdc: RunningKdc, node: KerberosNode) -> None:
    """The key was made anew after the keytab was written; the principal was deleted."""
    kdc.make("rolled", "gone")
    kdc.administer("cpw -randkey rolled", "delprinc -force gone")
    for name, message in (("rolled", "has another key"), ("gone", "knows no principal gone@LAB.TEST")):
        with pytest.raises(KerberosRefused, match=message):
            Connection(node.broker, kdc.access(name))


@pytest.mark.kafka
def test_a_kdc_that_is_away_is_something_to_wait_for(
    kdc: RunningKdc, node: KerberosNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down or silent: within the deadline, named, retryable.  Who has tickets goes on without it."""
    Connection(node.broker, kdc.access("migrator")).close()
    monkeypatch.setattr(gssapi, "KDC_SECONDS", 1.0)
    kdc.stop()
    try:
        Connection(node.broker, kdc.access("migrator")).close()
        with pytest.raises(KdcUnreachable, match=re.escape("no KDC of the realm answers")):
            Connection(node.broker, kdc.access("other/localhost"))
        with socket.create_server(("127.0.0.1", kdc.kdc.port)):
            began = time.monotonic()
            for _ in range(2):  # the second finds the first's thread still waiting
                with pytest.raises(KdcUnreachable, match=r"realm LAB\.TEST answered within 1 s"):
                    Connection(node.broker, kdc.access("other/localhost"))
            assert time.monotonic() - began < 10
    finally:
        kdc.start()


@pytest.mark.kafka
def test_a_connection_that_is_closed_during_the_login_is_tried_again(kdc: RunningKdc) -> None:
    """As nodes do for a moment while they log in to the KDC again."""
    with FakeNode({"SaslHandshake": lambda _version, _body: Close()}) as closing:
        with pytest.raises(ConnectionClosed):
            Connection(closing.address.replace("127.0.0.1", "localhost"), kdc.access("migrator"))
        assert closing.connections == RELOGIN_ATTEMPTS
