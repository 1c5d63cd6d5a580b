"""Controllers that call ZooKeeper with a certificate: whose name the closed znodes must carry (B-SEC-21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from migrate.checks.zookeeper_access import KEYSTORE
from migrate.model.findings import Severity
from migrate.model.inventory import Kerberos, ZookeeperLogin
from migrate.model.launch import JaasLogin, NoZookeeperClient, ZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZnodeAcl, ZookeeperView
from migrate.model.world import World
from tests.checks.bends import OPEN_READ, acls, launched, of, then, values
from tests.testing.blocking import blocking
from tests.testing.worlds import world_at

NODES = (3000, 3001, 3002)
STORE = "/etc/kafka/zk.p12"
NO_LOGIN = NoZookeeperClient("no JAAS file")
LOGIN = ZookeeperClient("kafka", accepted=True)


def world(subject: str | Unknown | None, *writers: str, login: object = NO_LOGIN) -> World:
    """Every controller names that store, of that subject (None: it was not looked at); znodes are the writers'."""
    owned = tuple(ZnodeAcl(31, *who.split(":", 1)) for who in writers)
    bend = then(
        acls({"/config": (OPEN_READ, *owned), "/brokers/topics": (OPEN_READ, *owned)}),
        *(values(node, **{KEYSTORE.replace(".", "__"): STORE}) for node in NODES),
        *(launched(node, zookeeper_client=login) for node in NODES),
    )
    found = bend(world_at(Stage.PREPARE))
    assert isinstance(found.configs, Mapping)
    subjects = {} if subject is None else {STORE: subject}
    told = {
        node: replace(file, subjects=subjects) if isinstance(file, ConfigFile) and int(node) in NODES else file
        for node, file in found.configs.items()
    }
    return replace(found, configs=told)


def test_the_writers_own_certificate_is_silent() -> None:
    """Also beside a login that may do nothing: the session has both names."""
    assert of(world("CN=kafka,O=x", "x509:CN=kafka,O=x"), "B-SEC-21") == []
    assert of(world("CN=kafka", "x509:CN=kafka", "sasl:kafka"), "B-SEC-21") == []
    assert of(world("CN=other", "x509:CN=kafka", "sasl:kafka", login=LOGIN), "B-SEC-21") == []


def test_another_certificate_is_stopped_before_the_controllers_start() -> None:
    """It would stay up and try for ever."""
    found = of(world("CN=controller", "x509:CN=kafka"), "B-SEC-21")
    assert {entry.about for entry in found} == {f"controller {node}" for node in NODES}
    assert all("x509:CN=controller, and x509:CN=kafka may write" in entry.message for entry in found)
    assert blocking(found, Stage.CONTROLLERS) == tuple(found)


@pytest.mark.parametrize(
    ("subject", "writer", "said"),
    [
        (None, "x509:CN=kafka", "was not looked at"),
        (Unknown("the store cannot be opened"), "x509:CN=kafka", "cannot be opened"),
        ("CN=kafka", "x509:kafka.example.org", "by other names"),
    ],
)
def test_a_name_that_cannot_be_told_is_a_blind_spot(subject: str | Unknown | None, writer: str, said: str) -> None:
    """As a JAAS file that cannot be seen: told, and never taken for right."""
    found = of(world(subject, writer), "B-SEC-21")
    assert {entry.severity for entry in found} == {Severity.BLIND_SPOT}
    assert said in repr(found)


def test_a_certificate_does_not_help_where_only_a_login_may_write() -> None:
    """The znodes are a SASL user's: the keystore is for TLS alone there."""
    found = of(world("CN=kafka", "sasl:kafka"), "B-SEC-21")
    assert {entry.severity for entry in found} == {Severity.BLOCKER}
    assert of(world("CN=kafka", "sasl:kafka", login=LOGIN), "B-SEC-21") == []


def by_kerberos(theirs: str, caller: str | Unknown, ours: str = "", *, broker: str = "", owner: str = "kafka") -> World:
    """Controllers of that principal; we have `ours`, which ZooKeeper calls `caller`; a broker's JAAS file names one."""
    login = ZookeeperClient("", Unknown("it was not tried"), theirs)
    found = world(None, f"sasl:{owner}", login=login)
    if broker:
        client = {"Client": (JaasLogin("com.sun.security.auth.module.Krb5LoginModule", principal=broker),)}
        found = launched(1, logins=client, realm="R")(found)
    known = ZookeeperLogin(kerberos=Kerberos(ours) if ours else None)
    assert isinstance(found.zookeeper, ZookeeperView)
    return replace(
        found,
        zookeeper=replace(found.zookeeper, caller=caller),
        inventory=replace(found.inventory, zookeeper_login=known),
    )


UNASKED = Unknown("before 3.7")


@pytest.mark.parametrize(
    ("found", "controllers", "own"),
    [
        # what ZooKeeper made of ours tells what it makes of theirs
        (by_kerberos("kafka/c1@R", "kafka", "kafka/tool@R"), None, None),
        (by_kerberos("kraft/c1@R", "kafka", "kafka/tool@R"), Severity.BLOCKER, None),
        (by_kerberos("kafka/c1@R", "ops", "ops/tool@R"), None, Severity.WARNING),
        (by_kerberos("kafka/c1@R", "kafka/tool@R", "kafka/tool@R"), Severity.BLOCKER, Severity.WARNING),
        # of a principal without a host nothing is learnt about hosts; a broker's login tells it, as does the same one
        (by_kerberos("kafka/c1@R", "kafka", "kafka@R"), Severity.BLIND_SPOT, None),
        (by_kerberos("kafka/c1@R", "kafka", "kafka@R", broker="kafka/b1"), None, None),
        (by_kerberos("kafka@R", "kafka", "kafka@R"), None, None),
        (by_kerberos("kafka@R", "kafka@R", "kafka@R", owner="kafka@R"), None, None),
        # other rules than the two: what they make of another principal is not known
        (by_kerberos("kafka/c1@R", "kafka", "kt01@R"), Severity.BLIND_SPOT, None),
        # a server that does not say it: by the brokers' login, else nothing is known
        (by_kerberos("kafka/c1@R", UNASKED, "kafka/tool@R", broker="kafka/b1@R"), None, None),
        (by_kerberos("kafka/c1@R", UNASKED, "ops/tool@R", broker="kafka/b1@R"), None, Severity.WARNING),
        (by_kerberos("kafka/c1@R", UNASKED, "kafka/tool@R"), Severity.BLIND_SPOT, Severity.BLIND_SPOT),
        (by_kerberos("kafka/c1@R", "", broker="kafka/b1@R"), None, Severity.WARNING),
    ],
)
def test_a_principals_name_in_zookeeper_is_told_by_what_it_made_of_others(
    found: World, controllers: Severity | None, own: Severity | None
) -> None:
    """Only its servers know whether hosts and realms are taken off: nothing is guessed."""
    assert {entry.severity for entry in of(found, "B-SEC-21")} == ({controllers} if controllers else set())
    assert {entry.severity for entry in of(found, "W-SEC-18")} == ({own} if own else set())
