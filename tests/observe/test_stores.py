"""The stores that nodes start from: which they are, whether their own user can open them, how long they last."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts.disks import CollectorDisks, Configs
from migrate.hosts.remote_files import RemoteFiles
from migrate.lab.secured import Authority, span
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, AddedProperties, Inventory
from migrate.model.launch import JAAS_FILE, KRB5, OPENED, Launch
from migrate.model.listeners import DENIED, GONE, StoreFile, stores_named
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, NoFile
from migrate.observe.identities import Resolve, started_with, stores_of
from tests.testing import worlds
from tests.testing.certificates import PASSWORD
from tests.testing.host_program import broker, here, installed
from tests.testing.this_host import LocalFiles, disks_here

NODE, UID = NodeId(7), 65534
PYTHON = Path("/usr/bin/python3")  # one that every user may run
KEY = "listener.name.tls.ssl.keystore.location"
TLS = {"listeners": "TLS://h:1", "listener.security.protocol.map": "TLS:SASL_SSL", "inter.broker.listener.name": "TLS"}
VALID = span(5)
LAST_DAY = VALID[1].date().isoformat()
OPEN = {"listener.name.tls.ssl.keystore.password": PASSWORD}
STORES_OF_ZOOKEEPER = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.keystore.location": "/k"}
ZOOKEEPERS = "zookeeper.ssl.truststore.location"
PLAIN = Launch("/c")
STORES = {"ssl.keystore.location": "/k", "ssl.truststore.location": "/t"}


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (STORES, []),
        ({**TLS, **STORES}, ["ssl.keystore.location", "ssl.truststore.location"]),
        ({**TLS, **STORES, KEY: "/own"}, [KEY, "ssl.truststore.location"]),
        ({**TLS, "listener.name.other.ssl.keystore.location": "/k", "ssl.truststore.location": " "}, []),
        ({**TLS, "ssl.keystore.certificate.chain": "PEM"}, ["ssl.keystore.certificate.chain"]),
        ({"listener.name.ctl.ssl.truststore.location": "/t"}, []),
        ({f"zookeeper.{key}": path for key, path in STORES.items()}, []),
        ({"zookeeper.ssl.client.enable": "true", ZOOKEEPERS: "/t"}, [ZOOKEEPERS]),
        ({"listeners": "X://h:1", **STORES}, ["ssl.keystore.location", "ssl.truststore.location"]),
    ],
)  # fmt: skip
def test_stores_are_those_of_listeners_with_tls_and_of_zookeeper(values: dict[str, str], found: list[str]) -> None:
    """A listener's own go before those of all; of an unknown protocol it may be any."""
    assert list(stores_named(values, "CTL", "PLAINTEXT")) == found


def test_the_stores_by_which_controllers_are_called_are_started_from_too() -> None:
    """A broker without a listener of TLS: the protocol of the controllers' listener is not in its map yet."""
    values = {"listener.name.ctl.ssl.truststore.location": "/t", "ssl.keystore.location": "/k"}
    assert set(stores_named(values, "ctl", "SASL_SSL")) == set(values)


def of(
    values: Mapping[str, str],
    files: RemoteFiles | LocalFiles | None = None,
    resolve: Resolve | None = None,
    launch: Launch | Unknown = PLAIN,
    node: NodeId = NODE,
) -> tuple[StoreFile, ...]:
    """What is found of a node of those values."""
    return stores_of(node, values, launch, worlds.inventory(), files or LocalFiles(), resolve or disks_here().told)


def served_by(folder: Path, content: bytes | None, **more: str) -> StoreFile:
    """The store of a broker whose listener TLS has that key store."""
    path = folder / "store"
    if content is not None:
        path.write_bytes(content)
    (found,) = of({**TLS, KEY: str(path), **more})
    return found


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_the_last_day_of_a_stores_certificate_is_read(tmp_path: Path, kind: str) -> None:
    """A PEM needs no password; Java opens a PKCS12 store under the type JKS, too."""
    issued = Authority.make("authority").issue("b", ("localhost",), VALID)
    content, more = (issued.pem, {}) if kind == "PEM" else (issued.pkcs12(PASSWORD), OPEN)
    found = served_by(tmp_path, content, **{"ssl.keystore.type": kind, **more})
    assert found == StoreFile(KEY, str(tmp_path / "store"), LAST_DAY)


def test_a_certificate_that_stands_in_the_file_has_its_last_day_too() -> None:
    """Of that listener, or of all; a reference is resolved on the node alone."""
    chain = Authority.make("authority").issue("b", ("localhost",), VALID).pem.decode()
    for key in ("ssl.keystore.certificate.chain", "listener.name.tls.ssl.keystore.certificate.chain"):
        assert of({**TLS, key: chain}) == (StoreFile(key, "", LAST_DAY),)
        (found,) = of({**TLS, key: "${file:/f:chain}"})
        assert isinstance(found.ends, Unknown)


def test_the_key_store_for_zookeeper_is_opened_by_its_own_keys(tmp_path: Path) -> None:
    """Its type is told by its ending."""
    path = tmp_path / "zk.p12"
    path.write_bytes(Authority.make("authority").issue("b", ("localhost",), VALID).pkcs12(PASSWORD))
    key = "zookeeper.ssl.keystore.location"
    values = {key: str(path), "zookeeper.ssl.keystore.password": PASSWORD, "zookeeper.ssl.client.enable": "true"}
    assert of({**values, "ssl.keystore.password": "another"}) == (StoreFile(key, str(path), LAST_DAY),)


def test_a_store_that_is_gone_is_no_unknown_one(tmp_path: Path) -> None:
    """A link that leads nowhere neither; a truststore that is there has no day, and one behind a link is read."""
    assert served_by(tmp_path, None) == StoreFile(KEY, str(tmp_path / "store"), "", GONE)
    (tmp_path / "store").symlink_to("nowhere")
    assert served_by(tmp_path, None).fault == GONE
    (tmp_path / "ca.pem").write_bytes(Authority.make("authority", span(-5)).pem)
    (tmp_path / "link").symlink_to("ca.pem")
    (found,) = of({**TLS, "ssl.truststore.location": f"{tmp_path}/link"})
    assert found == StoreFile("ssl.truststore.location", f"{tmp_path}/link", "")


@pytest.mark.parametrize(
    ("content", "more", "says"),
    [
        (b"no store", {**OPEN, "ssl.keystore.type": "PKCS12"}, "cannot be opened"),
        (b"no store", {"ssl.keystore.type": "PEM"}, "no certificate that can be read"),
        (b"x", {"listener.name.tls.ssl.keystore.password": "${file:/f:k}"}, "configuration provider"),
        (None, {KEY: "/"}, "cannot be read"),
        (None, {KEY: "conf/b.p12"}, "on the node alone"),
    ],
)
def test_a_store_that_cannot_be_read_says_why(
    tmp_path: Path, content: bytes | None, more: dict[str, str], says: str
) -> None:
    """No password is in the reason; a relative path is resolved by the process."""
    found = served_by(tmp_path, content, **more)
    assert isinstance(found.ends, Unknown)
    assert says in found.ends.reason
    assert PASSWORD not in found.ends.reason


def test_a_store_that_nobody_read_as_the_nodes_user_may_be_closed_to_it(tmp_path: Path) -> None:
    """Its day is known all the same."""
    (tmp_path / "store").write_bytes(Authority.make("authority").issue("b", ("localhost",), VALID).pem)
    values = {**TLS, KEY: f"{tmp_path}/store", "ssl.keystore.type": "PEM"}
    (found,) = of(values, resolve=lambda _node, _paths: Unknown("another account"))
    assert (found.ends, found.fault) == (LAST_DAY, Unknown("another account"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that every user may enter."""
    made = Path(tempfile.mkdtemp(prefix="kraft-migrate-stores-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON.exists(), reason="other users need root")
@pytest.mark.parametrize(
    ("mode", "above", "fault"),
    [
        (0o644, 0o755, ""),
        (0o640, 0o755, ""),  # by its group
        (0o600, 0o755, DENIED),
        (0o644, 0o700, DENIED),
        (0o644, 0o744, DENIED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("link", [False, True])
def test_a_store_is_opened_as_the_user_of_the_nodes_unit(
    tmp_path: Path, folder: Path, mode: int, above: int, fault: str, *, link: bool
) -> None:
    """By root's host program: the file's mode, its group, and each folder above it decide, also behind a link."""
    access = installed(tmp_path / "program", [broker(7, folder / "f")], user=UID, python=str(PYTHON))
    runners = {NODE: here(access)}
    store = folder / "tls" / "b.pem"
    store.parent.mkdir()
    store.write_bytes(Authority.make("authority").issue("b", ("localhost",), VALID).pem)
    os.chown(store, 0, UID)
    store.chmod(mode)
    store.parent.chmod(above)
    (folder / "link").symlink_to(store)
    path = str(folder / "link" if link else store)
    values = {**TLS, KEY: path, "ssl.keystore.type": "PEM"}
    launch = Launch("/c", files={JAAS_FILE: path})
    found, jaas, *_ = of(values, files=RemoteFiles(runners), resolve=CollectorDisks(runners).told, launch=launch)
    assert found == StoreFile(KEY, path, "" if fault else LAST_DAY, fault)
    assert jaas == StoreFile(JAAS_FILE, path, "", fault)


KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab='{folder}/{name}';"
GSSAPI = "listener.name.tls.gssapi.sasl.jaas.config"
BY_PASSWORD = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
SECURE = {"zookeeper_properties": ("zookeeper.client.secure",)}
ZOOKEEPERS_WORDS = {word: f"/{word}" for word in OPENED[2:]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jaas", "values", "more", "found"),
    [
        (None, {}, {}, [JAAS_FILE]),
        ("Client { %s };", {}, {}, ["Client of {jaas}", KRB5]),
        ("Client { %s };", {}, {"zookeeper_section": ""}, []),
        ("KafkaServer { %s }; KafkaClient { %s };", {}, {}, []),  # no listener of SASL
        ("KafkaServer { %s }; KafkaClient { %s };", TLS, {}, ["KafkaServer of {jaas}", KRB5]),
        ("KafkaServer { %s }; tls.KafkaServer { %s };", TLS, {}, ["tls.KafkaServer of {jaas}", KRB5]),
        ("KafkaServer { %s };", {**TLS, GSSAPI: KERBEROS}, {}, [GSSAPI, KRB5]),
        ("", {**TLS, **BY_PASSWORD, GSSAPI: KERBEROS}, {}, []),
        ("KafkaServer { x required useKeyTab=false keyTab='/k'; };", TLS, {}, []),
        ("", {}, {"files": ZOOKEEPERS_WORDS}, []),
        ("", {}, {**SECURE, "files": ZOOKEEPERS_WORDS}, list(ZOOKEEPERS_WORDS)),
        ("", STORES_OF_ZOOKEEPER, {**SECURE, "files": ZOOKEEPERS_WORDS}, [OPENED[3]]),
    ],
)  # fmt: skip
def test_files_that_the_command_line_and_logins_name_are_looked_at_where_a_start_opens_them(
    tmp_path: Path, jaas: str | None, values: dict[str, str], more: dict[str, Any], found: list[str]
) -> None:
    """Each of them is gone here, as is krb5.conf: it counts where a keytab does."""
    path, tab = tmp_path / "jaas", KERBEROS.format(folder=tmp_path, name="gone")
    if jaas is not None:
        path.write_text(jaas.replace("%s", tab))
    values = {key: tab if key == GSSAPI else value for key, value in values.items()}
    launch = replace(PLAIN, **{**more, "files": {JAAS_FILE: str(path), KRB5: "/gone", **more.get("files", {})}})
    told = [store.key for store in of(values, launch=launch) if store.fault == GONE]
    assert [key for key in told if not key.startswith("zookeeper.")] == [name.format(jaas=path) for name in found]


def test_the_keytab_by_which_a_broker_calls_the_controllers_is_looked_at() -> None:
    """Its own listeners take passwords alone."""
    key = "listener.name.ctl.gssapi.sasl.jaas.config"
    inventory = replace(worlds.inventory(), controller_access=Access("SASL_PLAINTEXT", "GSSAPI"))
    values = {**TLS, **BY_PASSWORD, key: KERBEROS.format(folder="/nowhere", name="gone")}
    found = stores_of(NODE, values, PLAIN, inventory, LocalFiles(), disks_here().told)
    assert [(store.key, store.fault) for store in found] == [(key, GONE)]


def test_logins_that_cannot_be_read_or_seen_are_unknown(tmp_path: Path) -> None:
    """A text that is none, a relative path; a broker whose process nobody sees, and nothing of a controller's."""
    (tmp_path / "jaas").write_text("KafkaServer {")
    for path in (f"{tmp_path}/jaas", "conf/jaas", "file:/etc/jaas"):
        assert isinstance(of({}, launch=Launch("/c", files={JAAS_FILE: path}))[-1].ends, Unknown)
    broker = worlds.inventory().brokers[0].id
    assert [store.ends for store in of({}, launch=Unknown("down"), node=broker)] == [Unknown("down")]
    assert of({}, launch=Unknown("down"), node=worlds.inventory().controllers[0].id) == ()


CONTROLLER = worlds.inventory().controllers[0]


def planned(**more: object) -> Inventory:
    """With TLS at the controllers' listener."""
    return replace(worlds.inventory(), controller_access=Access("SSL"), **more)  # type: ignore[arg-type]


def file_of(node: int, values: Mapping[str, str]) -> ConfigFile:
    """A node's."""
    return ConfigFile(NodeId(node), "/f", b"", "0" * 64, values)


def test_a_controller_that_is_not_rendered_yet_starts_from_its_sources() -> None:
    """The first broker's stores, what the playbook and the inventory put in their place; nothing is guessed without."""
    added = AddedProperties("", {"ssl.truststore.location": "/added"})
    inventory, playbook = planned(controller_properties=added), worlds.playbook()
    first = inventory.brokers[0]
    configs: Configs = {first.id: file_of(int(first.id), {**TLS, **STORES}), CONTROLLER.id: NoFile("/c")}
    values = started_with(CONTROLLER, configs, inventory, playbook)
    assert not isinstance(values, Unknown)
    assert (values["ssl.keystore.location"], values["ssl.truststore.location"]) == ("/k", "/added")
    unknowns: list[Configs] = [{**configs, first.id: Unknown("x")}, {CONTROLLER.id: NoFile("/c")}]
    for unknown in unknowns:
        assert isinstance(started_with(CONTROLLER, unknown, inventory, playbook), Unknown)
    assert isinstance(started_with(CONTROLLER, configs, inventory, Unknown("none")), Unknown)


def test_a_broker_starts_from_what_the_inventory_adds_at_its_first_restart() -> None:
    """Not again afterwards; a node whose file is not known has none."""
    inventory = planned(broker_properties=AddedProperties("", {"ssl.keystore.location": "/added"}))
    node = inventory.brokers[0]
    for values, path in (({}, "/added"), ({"zookeeper.metadata.migration.enable": "true", **STORES}, "/k")):
        found = started_with(node, {node.id: file_of(int(node.id), values)}, inventory, worlds.playbook())
        assert not isinstance(found, Unknown)
        assert found["ssl.keystore.location"] == path
    assert isinstance(started_with(node, {}, inventory, worlds.playbook()), Unknown)
    assert isinstance(started_with(node, {node.id: NoFile("/b")}, inventory, worlds.playbook()), Unknown)
