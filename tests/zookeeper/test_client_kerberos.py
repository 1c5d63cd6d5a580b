"""ZooKeeper by Kerberos, on a real server with a real KDC: as whom it knows us, and each way in which a login fails."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate.errors import KdcUnreachable, KerberosRefused, KerberosUnusable, ZookeeperDenied
from migrate.lab.kdc import section
from migrate.model.inventory import ZookeeperLogin
from migrate.model.outcome import Unknown
from migrate.zookeeper.client import WhoAmI, ZookeeperClient, access_of, connect
from migrate.zookeeper.layout import TOPICS, Absent
from migrate.zookeeper.lock import acquire
from migrate.zookeeper.rights import find_rights, require_rollback_rights
from tests.testing.kerberos import RunningKdc, needs_kdc, running_kdc
from tests.testing.secured_zookeeper import PROVIDER, closed
from tests.testing.zookeeper_server import ZookeeperServer, running_server

REMOVED = "kerberos.removeHostFromPrincipal=true\nkerberos.removeRealmFromPrincipal=true\n"
NAMES = ("zookeeper/localhost", "kafka/tool", "migrator", "late", "other/localhost")


@dataclass(frozen=True)
class Realm:
    """A KDC and a server of ZooKeeper that knows its principals."""

    kdc: RunningKdc
    server: ZookeeperServer

    def login(self, name: str, **changes: str) -> ZookeeperLogin:
        """As that principal, by its keytab."""
        return ZookeeperLogin(kerberos=replace(self.kdc.login(name), **changes))

    def to(self, name: str, chroot: str = "", **changes: str) -> ZookeeperClient:
        """A session."""
        where = f"localhost:{self.server.port}{chroot}"
        return connect(where, timeout=6.0, session_timeout=6.0, access=access_of(self.login(name, **changes)))


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """Both for all tests here; tickets last for seconds."""
    needs_kdc()
    folder = tmp_path_factory.mktemp("realm")
    with running_kdc(folder / "kerberos", *NAMES, lifetime="4s") as kdc:
        jaas = folder / "server.jaas"
        jaas.write_text(section("Server", kdc.keytab("zookeeper/localhost"), "zookeeper/localhost"))
        options = [f"-Djava.security.auth.login.config={jaas}", f"-Djava.security.krb5.conf={kdc.kdc.client_file}"]
        with running_server(folder / "server", PROVIDER + REMOVED, options) as server:
            yield Realm(kdc, server)


@pytest.mark.zookeeper
def test_zookeeper_says_as_whom_it_knows_a_principal(realm: Realm) -> None:
    """By its own rules: host and realm are gone; who has no login has no name."""
    for name, known in (("kafka/tool", "kafka"), ("migrator", "migrator")):
        with realm.to(name) as client:
            assert client.sasl_user == known
    both = realm.kdc.folder / "both.keytab"
    realm.kdc.kdc.make({both: ("other/localhost", "migrator", "kafka/tool")})
    for name, known in (("kafka/tool", "kafka"), ("migrator", "migrator")):
        with realm.to(name, keytab=str(both)) as client:
            assert client.sasl_user == known  # not as the first of its keytab
    with realm.server.client() as nobody:
        assert nobody.sasl_user == ""
        assert nobody.asked_name() == Unknown("ZooKeeper knows this session by 0 SASL names")


@pytest.mark.zookeeper
def test_the_brokers_principal_may_lock_and_roll_back_and_another_may_not(realm: Realm) -> None:
    """Below a chroot whose znodes are `sasl:kafka`'s: the lock's own znodes, too."""
    with realm.to("kafka/tool") as client:
        for path in ("/kafka", f"/kafka{TOPICS}", "/kafka/controller_epoch"):
            client.kazoo.ensure_path(path, closed("kafka"))
    with realm.to("kafka/tool", "/kafka") as client:
        require_rollback_rights(client)
        assert client.sasl_user == "kafka"
        assert find_rights(client, "kafka", "/kraft-migrate/lock").lacks == ()
        lock = acquire(client, "somebody", "plan", "/kraft-migrate/lock")
        assert client.acls(["/kraft-migrate/lock"]) == [((31, "sasl", "kafka"), (1, "world", "anyone"))]
        lock.release()
        client.sasl_user = Unknown("an older server does not say it")
        acquire(client, "somebody", "plan", "/older/lock").release()
        assert client.acls(["/older/lock-fence"]) == [((31, "sasl", "kafka"), (1, "world", "anyone"))]
    with realm.to("migrator", "/kafka") as client:
        with pytest.raises(ZookeeperDenied, match="may not change the znode"):
            require_rollback_rights(client)
        with pytest.raises(ZookeeperDenied):
            acquire(client, "somebody", "plan", "/another/lock")


@pytest.mark.zookeeper
def test_a_session_outlives_its_ticket_and_logs_in_again_by_a_new_one(realm: Realm) -> None:
    """The connection is cut after the ticket's end: the next one is by another ticket, and as the same."""
    with realm.to("kafka/tool") as client:
        before = client.session
        time.sleep(5)  # noqa: TID251 - the ticket is to end
        assert client.asked_name() == "kafka"
        client.kazoo._connection._socket.shutdown(socket.SHUT_RDWR)
        time.sleep(0.5)  # noqa: TID251 - kazoo is to see it
        assert client.asked_name() == "kafka"
        assert client.session == before


@pytest.mark.zookeeper
def test_a_kdc_that_is_away_is_named_and_waited_for(realm: Realm) -> None:
    """For a new session at once, for one that lost its connection when it reads; both go on once it is back."""
    with realm.to("kafka/tool") as client:
        realm.kdc.stop()
        try:
            with pytest.raises(KdcUnreachable, match="no KDC of the realm answers"):
                realm.to("late")
            time.sleep(5)  # noqa: TID251 - no ticket is left
            client.kazoo._connection._socket.shutdown(socket.SHUT_RDWR)
            time.sleep(0.5)  # noqa: TID251 - kazoo is to see it
            client.session_timeout = 0.3  # for which a read waits
            with pytest.raises(KdcUnreachable, match="no KDC of the realm answers"):
                client.data(["/"])
        finally:
            realm.kdc.start()
        client.session_timeout = 6.0
        assert client.asked_name() == "kafka"
        with realm.to("late") as late:
            assert late.sasl_user == "late"


@pytest.mark.zookeeper
def test_each_wrong_login_says_what_is_wrong(realm: Realm, tmp_path: Path) -> None:
    """Nothing is tried for long; a server that has another key refuses."""
    cases: list[tuple[dict[str, str], type[Exception], str]] = [
        ({"service": "nope"}, KerberosRefused, "knows no principal for nope@localhost"),
        ({"service": "other"}, ZookeeperDenied, "refuses this identity|authentication failed for migrator"),
        ({"principal": "x@LAB.TEST"}, KerberosUnusable, "the keytab has no key of x@LAB.TEST"),
        ({"keytab": "", "ccache": f"FILE:{tmp_path}/no"}, KerberosUnusable, "no credentials of"),
    ]
    for changes, kind, message in cases:
        with pytest.raises(kind, match=message):
            realm.to("migrator", **changes).close()
    by_ip = f"127.0.0.1:{realm.server.port}"
    with pytest.raises(KerberosRefused, match=re.escape("knows no principal for zookeeper@127.0.0.1")):
        connect(by_ip, timeout=1.0, session_timeout=6.0, access=access_of(realm.login("migrator")))
    realm.kdc.kinit("migrator", tmp_path / "cache")
    with realm.to("migrator", keytab="", ccache=f"FILE:{tmp_path / 'cache'}") as client:
        assert client.data(["/none"]) == [Absent.MISSING]
    with pytest.raises(KerberosUnusable, match=r"no credentials of late@LAB\.TEST"):
        realm.to("late", keytab="", ccache=f"FILE:{tmp_path / 'cache'}").close()
    assert os.environ["KRB5_CONFIG"] == str(realm.kdc.kdc.client_file)


@pytest.mark.zookeeper
def test_an_older_server_does_not_say_as_whom_it_knows_us(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 3.7 the request is unknown, and the server ends the connection: the session goes on."""
    monkeypatch.setattr(WhoAmI, "type", 99)
    with realm.to("migrator") as client:
        assert isinstance(client.sasl_user, Unknown)
        assert client.data(["/none"]) == [Absent.MISSING]
