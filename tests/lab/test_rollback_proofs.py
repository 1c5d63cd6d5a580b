"""The lab's own proofs of a rollback: each fault alone is seen by the proof that it belongs to, and by no other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.errors import LabProofFailed
from migrate.lab import rollback_proofs
from migrate.lab.cluster import Lab
from migrate.lab.rollback_proofs import (
    BROKER_CONFIG,
    TOPIC_CONFIG,
    hash_broker_files,
    missing_objects,
    name_of,
    prove_rollback,
)
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import plan_topology
from migrate.zookeeper.backup import load_backup, write_backup
from migrate.zookeeper.client import ZookeeperClient
from tests.testing.golden_trees import tree_of
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree, running_server

pytestmark = pytest.mark.zookeeper
STAGE = "hybrid"
EPOCH = 5
NAME = name_of(STAGE)
CHROOTS = itertools.count()
END, FILES, VERSIONS, TREE, MADE, STRAYS, ASIDE = range(7)
ZNODES = {
    "/cluster/id": {"version": "1", "id": "AAAAAAAAAAAAAAAAAAAAAA"},
    "/brokers/ids": None,
    "/brokers/topics": None,
    f"/brokers/topics/{NAME}": {"version": 3, "topic_id": "x", "partitions": {"0": [0, 1, 2]}},
    f"/config/topics/{NAME}": {"version": 1, "config": dict([TOPIC_CONFIG])},
    "/config/brokers/2": {"version": 1, "config": dict([BROKER_CONFIG])},
    f"/config/users/{NAME}": {"version": 1, "config": {"producer_byte_rate": "1", "SCRAM-SHA-256": "salt=x"}},
    f"/config/clients/{NAME}": {"version": 1, "config": {"consumer_byte_rate": "1"}},
    f"/kafka-acl/Topic/{NAME}": {"version": 1, "acls": [{"principal": f"User:{NAME}"}]},
    f"/kafka-acl-extended/prefixed/Topic/{NAME}-": {"version": 1, "acls": [{"principal": f"User:{NAME}"}]},
    "/controller_epoch": str(EPOCH + 1),
}


@dataclass(frozen=True)
class Back:
    """A lab's folder and tree as a rollback leaves them."""

    lab: Lab
    client: ZookeeperClient
    folder: Path
    before: dict[str, str]

    def against(self) -> list[int]:
        """Which proofs speak against it."""
        found = list(prove_rollback(self.lab, self.client, STAGE, self.before, self.folder, EPOCH))
        assert len(found) == 7
        assert all(proof.text for proof in found)
        return [number for number, proof in enumerate(found) if proof.against]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """One for the module."""
    with running_server(tmp_path_factory.mktemp("rolled-back")) as running:
        yield running


@pytest.fixture
def back(server: ZookeeperServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Back]:
    """As it should be; the records, which only a cluster has, are taken for read."""
    monkeypatch.setattr(rollback_proofs, "require_records", lambda *_: "50 records read")
    topology = plan_topology(tmp_path / "lab")
    for broker in topology.brokers:
        topology.config(broker.name).parent.mkdir(parents=True, exist_ok=True)
        topology.config(broker.name).write_text(f"broker.id={broker.id}\n")
        for directory in broker.log_dirs:
            Path(directory).mkdir(parents=True)
            Path(directory, "meta.properties").write_text("version=0\nbroker.id=0\n")
    for controller in topology.controllers:
        aside = Path(controller.metadata_directory, "kraft-migrate-aside-20260101T000000")
        aside.mkdir(parents=True)
        (aside / "meta.properties").write_text("version=1\n")
    lab = Lab(topology, Supervisor(topology.processes))
    chroot = f"/c{next(CHROOTS)}"
    with server.client() as root:
        root.kazoo.create(chroot)
    with server.client(chroot) as client:
        load_tree(client, tree_of(ZNODES))
        (tmp_path / "run" / "backup").mkdir(parents=True)
        write_backup(client, str(tmp_path / "run" / "backup" / "zookeeper.jsonl.gz"))
        create(client, "/controller", b'{"version":2,"brokerid":1,"kraftControllerEpoch":-1}', ephemeral=True)
        for broker in topology.brokers:
            create(client, f"/brokers/ids/{broker.id}", b"{}", ephemeral=True)
        yield Back(lab, client, tmp_path / "run", hash_broker_files(lab))


def test_a_lab_that_is_back_has_nothing_against_it(back: Back) -> None:
    """All seven, and the tree as it was proven is kept."""
    assert back.against() == []
    kept = load_backup(str(back.folder / "after-rollback.jsonl.gz"))
    assert list(missing_objects(kept, STAGE, 2)) == []


def persistent_controller(back: Back) -> None:
    """As KRaft leaves it."""
    back.client.kazoo.delete("/controller")
    create(back.client, "/controller", b'{"version":2,"brokerid":3000,"kraftControllerEpoch":4}')


def changed_config(back: Back) -> None:
    """What was made is not what it was."""
    back.client.kazoo.set("/config/brokers/2", b"{}")


def version_one(back: Back) -> None:
    """A disk that was formatted."""
    Path(back.lab.topology.brokers[1].log_dirs[2], "meta.properties").write_text("version=1\nnode.id=1\n")


def stray(back: Back) -> None:
    """A replica that a broker took for none of its own."""
    Path(back.lab.topology.brokers[0].log_dirs[0], "events-07-0.abc-stray").mkdir()


def lost_metadata(back: Back) -> None:
    """A controller's metadata was deleted instead."""
    aside = Path(back.lab.topology.controllers[0].metadata_directory, "kraft-migrate-aside-20260101T000000")
    (aside / "meta.properties").unlink()


def other_file(back: Back) -> None:
    """A file was created again."""
    back.lab.topology.config("broker-1").write_text("broker.id=1\n# another\n")


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (lambda back: create(back.client, "/migration", b"{}"), [END]),
        (persistent_controller, [END]),
        (lambda back: back.client.kazoo.delete("/controller"), [END]),
        (lambda back: back.client.kazoo.set("/controller_epoch", str(EPOCH).encode()), [END]),
        (lambda back: back.client.kazoo.delete("/brokers/ids/2"), [END]),
        (other_file, [FILES]),
        (version_one, [VERSIONS]),
        (lambda back: back.client.kazoo.delete(f"/config/clients/{NAME}"), [TREE, MADE]),
        (changed_config, [TREE, MADE]),
        (lambda back: (back.folder / "backup" / "zookeeper.jsonl.gz").unlink(), [TREE]),
        (stray, [STRAYS]),
        (lost_metadata, [ASIDE]),
    ],
)
def test_each_fault_alone_is_seen_by_its_proof(back: Back, fault: Callable[[Back], object], seen: list[int]) -> None:
    """And by no other."""
    fault(back)
    assert back.against() == seen


def test_a_topic_that_was_made_anew_is_not_the_one_that_was_there(back: Back) -> None:
    """The same name with another id is a loss."""
    anew = {"version": 3, "topic_id": "y", "partitions": {"0": [0, 1, 2]}}
    back.client.kazoo.set(f"/brokers/topics/{NAME}", json.dumps(anew).encode())
    assert back.against() == [TREE]


def test_records_that_do_not_come_back_are_a_loss(back: Back, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though every znode is there."""

    def lost(*_: object) -> str:
        raise LabProofFailed("49 of 50 records came back")

    monkeypatch.setattr(rollback_proofs, "require_records", lost)
    assert back.against() == [MADE]


@pytest.mark.parametrize("path", [path for path in ZNODES if NAME in path or path.endswith("/2")])
def test_each_thing_that_was_made_is_missed_where_it_is_not(path: str) -> None:
    """Of an empty tree, all eight."""
    without = tree_of({key: value for key, value in ZNODES.items() if key != path})
    assert 1 <= len(list(missing_objects(without, STAGE, 2))) <= 2
    assert len(list(missing_objects(tree_of({}), STAGE, 2))) == 8
