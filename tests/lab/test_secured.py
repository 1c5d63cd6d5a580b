"""A secured cluster on real Kafka: into hybrid, back from it, its logins, its rights; the commit picks one of them.

SASL_SSL on every listener, brokers, controllers and the tool each with a name of its own, ZooKeeper with SASL and ACLs.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from migrate.errors import AccessRefused, MigrateError, TlsRefused, ZookeeperDenied
from migrate.hosts.properties import parse
from migrate.kafka.connection import Connection
from migrate.kafka.live import describe_log_dirs, metadata
from migrate.kafka.secrets import read_secret
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.seed_data import SCRAM_USERS
from migrate.lab.topology import CONTROLLER, INTERNAL, Shape
from migrate.model.inventory import Access, OAuth, SecretFile, ZookeeperLogin
from migrate.zookeeper.client import access_of, connect
from migrate.zookeeper.layout import CONTROLLERS_WRITE, USER_CONFIGS, Absent
from tests.lab.commands import kraft_migrate, to_its_end
from tests.lab.least_rights import Limited, a_run_with_each_right_taken_away, doctor_says, each_right_in_turn, let_in
from tests.lab.least_rights_back import the_rollback_with_each_right_taken_away
from tests.lab.mutual_tls import by_certificates
from tests.lab.one_topic import make_topic
from tests.lab.secrets_seen import Processes, holding
from tests.lab.wrong_files import found_before_the_start
from tests.testing.certificates import secret
from tests.testing.tiers import parts

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def migrated(directory: Path, *until: str) -> str:
    """The demo gets there, and none of the lab's secrets stands in what it says and writes; what it said."""
    ended = to_its_end(directory, "-v", "lab", "demo", "--secured", "--dir", str(directory), *until)
    assert ended.returncode == 0, ended.stderr[-4000:]
    lab = Lab.open(directory)
    for broker in lab.topology.brokers:
        values = parse(lab.topology.config(broker.name).read_bytes())
        assert "User:controller" in values["super.users"].split(";")
    for controller in lab.topology.controllers:
        values = parse(lab.topology.config(controller.name).read_bytes())
        assert set(values["super.users"].split(";")) == {"User:broker", "User:controller", "User:admin"}
    nothing_told(directory, ended.stdout + ended.stderr)
    return ended.stdout + ended.stderr


def nothing_told(directory: Path, *said: str) -> None:
    """No password of brokers, controllers, tool, ZooKeeper, stores, encoder or tokens, in whatever form."""
    secrets = frozenset(path.read_text().strip() for path in (directory / "secrets").iterdir() if "." not in path.name)
    assert len(secrets) >= 8
    for folder in ("runs", "load", "spark", "logs", "processes"):
        for path in (directory / folder).rglob("*"):
            assert not (told(path) and holding(path.read_bytes(), secrets)), path
    assert not [one for text in said for one in holding(text.encode(), secrets)]


def into_hybrid(directory: Path) -> None:
    """Controllers run, every broker was restarted, the copy is made and compared; no process was told a secret."""
    with Processes(directory) as processes:
        assert "parked after stage hybrid" in migrated(directory, "--until", "hybrid")
    secrets = frozenset(path.read_text().strip() for path in (directory / "secrets").iterdir() if "." not in path.name)
    assert processes.of(b"kafka.Kafka")
    assert not [words[:200] for _, words, around in processes.seen if holding(words + around, secrets)]


def to_the_end(directory: Path) -> None:
    """Proven, as the one in clear is."""
    assert "PROVEN" in migrated(directory)


def tokens(directory: Path) -> None:
    """OAUTHBEARER everywhere, in sessions of a minute: proven to the end; a token that nobody signed opens nothing."""
    assert "PROVEN" in migrated(directory, "--mechanism", "OAUTHBEARER", "--keep")
    lab = Lab.open(directory)
    words = ({"alg": "none"}, {"sub": "broker", "iat": int(time.time()), "exp": int(time.time()) + 600})
    said = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in words)
    unsigned = OAuth(token=secret(directory, ".".join((*said, "")), "unsigned"))
    for node in lab.inventory.nodes:
        access = lab.inventory.access_of(node)
        assert access.oauth is not None
        Connection(node.address, access).close()
        with pytest.raises(AccessRefused, match="user broker was refused"):
            Connection(node.address, replace(access, username="broker", oauth=unsigned))


def rights(directory: Path) -> None:
    """Least rights on real Kafka: each request, doctor, and a run with one right after the other taken away."""
    lab = Lab.create(directory, Shape(secured=True))
    let_in(lab)
    migrated(directory, "--until", "hybrid")
    limited = Limited.of(Lab.open(directory))
    each_right_in_turn(limited)
    doctor_says(limited)
    a_run_with_each_right_taken_away(limited)


def rights_back(directory: Path) -> None:
    """Least rights in ZooKeeper: the rollback from hybrid with one right after the other taken away, then with all."""
    lab = Lab.create(directory, Shape(secured=True))
    let_in(lab)
    migrated(directory, "--until", "hybrid")
    the_rollback_with_each_right_taken_away(Limited.of(Lab.open(directory)))


def rollback(directory: Path) -> None:
    """Back from hybrid: everything that was made survives, znodes stay the brokers' alone, users and ACLs hold."""
    words = ("lab", "demo", "--secured", "--dir", str(directory), "--rollback-from", "hybrid", "--until", "assess")
    ended = kraft_migrate(*words, "--keep")
    assert ended.returncode == 0, ended.stderr[-4000:]
    story = json.loads((directory / "runs" / "rehearsal.json").read_text())
    assert story["proven"] is True
    assert story["load"]["missing"] == story["load"]["duplicated"] == 0
    lab = Lab.open(directory)
    with connect(lab.inventory.zookeeper, access=access_of(lab.inventory.zookeeper_login)) as client:
        found = dict(zip(CONTROLLERS_WRITE, client.acls(CONTROLLERS_WRITE), strict=True))
        users = client.children([USER_CONFIGS])[0]
    for path, acl in found.items():
        if not isinstance(acl, Absent):
            assert (31, "sasl", "kafka") in acl, path
            assert not [entry for entry in acl if entry[1] == "world" and entry[0] & ~1], path
    assert isinstance(users, tuple)
    assert {user for user, _, _ in SCRAM_USERS} <= set(users)
    access = lab.inventory.broker_access
    assert asked(lab, access) == 3
    assert log_dirs_as(lab, access) == 3
    alice = replace(access, username="alice", password=SecretFile(str(lab.topology.folder("secrets", "alice"))))
    with pytest.raises(AccessRefused, match="it needs DESCRIBE on Cluster"):
        log_dirs_as(lab, alice)
    nothing_told(directory, ended.stdout, ended.stderr)


def log_dirs_as(lab: Lab, access: Access) -> int:
    """How many directories a broker tells that user of."""
    with Connection(lab.inventory.brokers[0].address, access) as connection:
        return len(describe_log_dirs(connection))


def told(path: Path) -> bool:
    """Reports, journals, plans and logs; the kept copies of the operators' own files hold what those hold."""
    return path.is_file() and "backup" not in path.parts


def asked(lab: Lab, access: Access) -> int:
    """How many brokers a broker tells of."""
    with Connection(lab.inventory.brokers[0].address, access) as connection:
        return len(metadata(connection).brokers)


def patiently(question: Callable[[], int]) -> int:
    """A credential reaches each broker through ZooKeeper, a moment after it was written."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return question()
        except AccessRefused:
            if time.monotonic() > deadline:
                raise


def logins(directory: Path) -> None:
    """Each right login is let in; each wrong one is an error that names it."""
    lab = Lab.create(directory, Shape(secured=True))
    lab.up()
    right = lab.inventory.broker_access
    assert right.password is not None
    assert asked(lab, right) == 3
    wrong = secret(directory, "canary-wrong", "wrong")
    admin, word = AdminClient(settings_for(lab.topology)), read_secret(right.password)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    credential = UserScramCredentialUpsertion("admin", info, word.encode())
    for future in admin.alter_user_scram_credentials([credential]).values():
        future.result(30)
    scram = replace(right, mechanism="SCRAM-SHA-512")
    assert patiently(lambda: asked(lab, scram)) == 3
    refused: list[tuple[Access, type[MigrateError], str]] = [
        (replace(right, password=wrong), AccessRefused, "user admin was refused"),
        (replace(scram, password=wrong), AccessRefused, "user admin was refused"),
        (replace(right, mechanism="SCRAM-SHA-256"), AccessRefused, "the listener offers"),
        (replace(right, truststore=None), TlsRefused, "is not accepted"),
    ]
    for access, kind, message in refused:
        with pytest.raises(kind, match=message) as caught:
            asked(lab, access)
        assert "canary" not in f"{caught.value!r}{vars(caught.value)}"
    zookeeper(lab, wrong)


def zookeeper(lab: Lab, wrong: SecretFile) -> None:
    """Users are closed to all but the brokers' identity; a wrong password is told as such."""
    with connect(lab.inventory.zookeeper, access=access_of(lab.inventory.zookeeper_login)) as client:
        assert client.data(["/config/users"])[0] is not Absent.DENIED
    with connect(lab.inventory.zookeeper) as client:
        assert client.data(["/config/users"]) == [Absent.DENIED]
    with (
        pytest.raises(ZookeeperDenied),
        connect(lab.inventory.zookeeper, access=access_of(ZookeeperLogin("kafka", wrong))) as client,
    ):
        client.data(["/config/users"])


def wrong_files(directory: Path) -> None:
    """Files of controllers and brokers, a JAAS file, an ACL, as a person might leave them: no controller starts."""
    lab = Lab.create(directory, Shape(secured=True))
    lab.up()
    make_topic(lab)
    found_before_the_start(lab)


def mutual_tls(directory: Path) -> None:
    """Brokers, controllers and the tool are who their certificates say, between nodes; to KRaft mode."""
    lab = Lab.create(directory, Shape(secured=True))
    access = by_certificates(lab)
    with pytest.MonkeyPatch.context() as patched:  # the lab itself waits for its brokers by their INTERNAL listener
        patched.setattr("migrate.lab.ready.inner_access", lambda _: access)
        lab.up()
        make_topic(lab)
    ended = kraft_migrate("plan", str(lab.playbook_path), "--to", "kraft-mode", "--output", "json")
    assert ended.returncode == 2, ended.stdout[-3000:] + ended.stderr[-3000:]
    plan = Path(lab.inventory.runs) / json.loads(ended.stdout)["fingerprint"][:8] / "plan.json"
    ended = kraft_migrate("apply", str(plan))
    assert ended.returncode == 0, ended.stderr[-4000:]
    names = [broker.name for broker in lab.topology.brokers] + [node.name for node in lab.topology.controllers]
    for name in names:
        values = parse(lab.topology.config(name).read_bytes())
        kinds = dict(entry.split(":") for entry in values["listener.security.protocol.map"].split(","))
        assert (kinds[INTERNAL], kinds[CONTROLLER]) == ("SSL", "SSL"), name
    for words in (("directories", "verify"), ("diff",)):
        said = kraft_migrate(*words, "--inventory", str(lab.inventory_path))
        assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-2000:]
    nothing_told(directory, ended.stdout, ended.stderr)


PARTS: dict[str, Callable[[Path], None]] = {
    "into-hybrid": into_hybrid,
    "logins": logins,
    "rights": rights,
    "rights-back": rights_back,
    "rollback": rollback,
    "wrong-files": wrong_files,
}
AT_LENGTH: dict[str, Callable[[Path], None]] = {"mutual-tls": mutual_tls, "to-the-end": to_the_end, "tokens": tokens}


@pytest.mark.parametrize("part", parts(PARTS, each_commit=["into-hybrid"]))
def test_a_secured_cluster(part: str, directory: Path) -> None:
    """The part's own words say what holds."""
    PARTS[part](directory)


@pytest.mark.long
@pytest.mark.parametrize("part", tuple(AT_LENGTH))
def test_a_secured_cluster_at_length(part: str, directory: Path) -> None:
    """The part's own words say what holds."""
    AT_LENGTH[part](directory)
