"""What the inventory names reaches the readers, and nothing more than is needed is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.remote_files import LOG
from migrate.model.ids import NodeId
from migrate.model.inventory import SecretFile
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.views import ConfigFile, Running, ServiceState, ZookeeperView
from migrate.observe.sources import Sources
from migrate.protocol import records
from tests.hosts.test_remote_files_metadata import remote
from tests.kraft.logs import batch
from tests.observe.test_metadata_files import controller
from tests.observe.test_metadata_logs import VOTERS, hybrid
from tests.testing import worlds
from tests.testing.golden_trees import golden
from tests.testing.host_program import broker, installed
from tests.testing.kafka_encoder import encode
from tests.testing.worlds import CONTROLLERS
from tests.testing.zookeeper_server import create, load_tree, running_server

KEY = "listener.name.internal.ssl.key.password"
STORE = "listener.name.internal.ssl.keystore.password"


def secret(folder: Path, name: str) -> SecretFile:
    """A secret's file, with its name in it."""
    path = folder / name
    path.write_text(f"{name}\n", encoding="utf-8")
    path.chmod(0o600)
    return SecretFile(str(path))


@pytest.mark.zookeeper
def test_both_encoder_secrets_reach_the_reader(tmp_path: Path) -> None:
    """Of a live tree with one password of each: with both all is compared, with one a password stays blind."""
    config = {KEY: encode("clear-1", "old", iterations=2), STORE: encode("clear-2", "new", iterations=2)}
    new, old = secret(tmp_path, "new"), secret(tmp_path, "old")
    seen = {}
    with running_server(tmp_path / "zookeeper") as server:
        with server.client() as client:
            load_tree(client, golden("zk-before"))
            create(client, "/config/brokers/77", json.dumps({"version": 1, "config": config}).encode())
        for name, current, older in (("both", new, old), ("new", new, None), ("none", None, None)):
            inventory = replace(
                worlds.inventory(),
                zookeeper=server.address,
                password_encoder_secret=current,
                password_encoder_old_secret=older,
            )
            sources = Sources(inventory, Unknown("no playbook"), None)
            view = sources.zookeeper()
            sources.close()
            assert isinstance(view, ZookeeperView)
            rows = [key for where, key in zip(view.entities.where, view.entities.name, strict=True) if "/77" in where]
            blind = [spot for spot in view.blind_spots if "/config/brokers/77" in spot]
            seen[name] = (sorted(rows), len(blind), [where for where in view.undecodable if "/77" in where])
            assert "clear-" not in repr(view)
    assert seen["both"][:2] == ([KEY, STORE], 0)
    assert [KEY in where for where in seen["both"][2]] == [True]
    assert seen["new"] == ([STORE], 1, [f"/config/brokers/77 {KEY}"])
    assert seen["none"] == ([], 2, [])


@pytest.mark.zookeeper
def test_passwords_of_files_and_of_zookeeper_have_digests_of_one_key(tmp_path: Path) -> None:
    """An equal one is seen to be equal; a reference is none; neither is in what is printed of the file."""
    path = tmp_path / "broker.properties"
    path.write_text(f"broker.id=0\n{KEY}=clear-1\n{STORE}=clear-3\nssl.key.password=${{file:/k:p}}\n")
    config = {KEY: encode("clear-1", "new", iterations=2), STORE: encode("clear-2", "new", iterations=2)}
    known = worlds.inventory()
    first = broker(0, path)
    access = installed(tmp_path / "program", [first])
    with running_server(tmp_path / "zookeeper") as server:
        with server.client() as client:
            load_tree(client, golden("zk-before"))
            create(client, "/config/brokers/77", json.dumps({"version": 1, "config": config}).encode())
        inventory = replace(
            known,
            brokers=(first, *known.brokers[1:]),
            executor="local",
            executor_options={"host_program": access.program, "sudo": "no"},
            zookeeper=server.address,
            password_encoder_secret=secret(tmp_path, "new"),
        )
        sources = Sources(inventory, Unknown("no playbook"), None)
        view, configs = sources.zookeeper(), sources.configs()
        sources.close()
    assert isinstance(view, ZookeeperView)
    assert not isinstance(configs, Unknown)
    file, rows = configs[first.id], view.entities
    assert isinstance(file, ConfigFile)
    stored = {
        name: value for where, name, value in zip(rows.where, rows.name, rows.value, strict=True) if "/77" in where
    }
    assert set(file.passwords) == {KEY, STORE}
    assert file.passwords[KEY] == stored[KEY]
    assert file.passwords[STORE] != stored[STORE]
    assert "clear" not in repr(file)


NODES = tuple(map(NodeId, VOTERS))
STARTED: dict[NodeId, ServiceState] = dict.fromkeys(NODES, Running(1, 1.0, None))


@pytest.mark.slow
def test_stopped_controllers_logs_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is looked; anew where a controller may have run since, and as long as nothing was told."""
    raw, end, epoch = hybrid()
    homes = {node: controller(tmp_path, int(node), raw) for node in NODES}
    nodes = [replace(node, metadata_directory=str(homes[node.id])) for node in worlds.inventory().controllers]
    sources = Sources(replace(worlds.inventory(), controllers=tuple(nodes)), Unknown("no playbook"), None)
    places = {node: str(home) for node, home in homes.items()}
    sources._executor = replace(sources._executor, metadata=remote(tmp_path, places))
    first = sources.logs_on_disk()
    assert isinstance(first, MetadataLogs)
    assert first.view is not None
    assert (first.end, first.view.offset, first.view.committed) == (end, end - 1, True)
    assert sources.logs_on_disk() is first
    sources.metadata_logs(STARTED, rehearse=False)
    again = sources.logs_on_disk()
    assert again == first
    assert again is not first
    for home in homes.values():  # as a controller that starts, and is elected
        with next((home / LOG).glob("*.log")).open("ab") as file:
            file.write(batch((records.NO_OP, {}), base=end, epoch=epoch))
        (home / LOG / "quorum-state.tmp").write_bytes((home / LOG / "quorum-state").read_bytes())
        (home / LOG / "quorum-state.tmp").replace(home / LOG / "quorum-state")
    later = sources.logs_on_disk()
    assert isinstance(later, MetadataLogs)
    assert later.end == end + 1
    monkeypatch.setattr("migrate.observe.sources.metadata_logs", lambda *_: Unknown("unreadable"))
    sources.metadata_logs(STARTED, rehearse=False)
    assert sources.logs_on_disk() == Unknown("unreadable")
    monkeypatch.undo()
    assert sources.logs_on_disk() == later
    sources.close()


@pytest.mark.slow
def test_a_controller_that_runs_without_a_log_where_it_should_be_is_told(tmp_path: Path) -> None:
    """A directory that may not be listed, or is another one, looks empty: read later, it would prove nothing."""
    places = {node: controller(tmp_path, int(node), hybrid()[0]) for node in CONTROLLERS[:2]}
    known = worlds.inventory()
    nodes = tuple(
        replace(node, metadata_directory=str(places.get(node.id, tmp_path / "elsewhere"))) for node in known.controllers
    )
    sources = Sources(replace(known, controllers=nodes), worlds.playbook(), None)
    copies = remote(tmp_path, {node.id: node.metadata_directory for node in nodes})
    sources._executor = replace(sources._executor, metadata=copies)
    found = sources.logs_on_disk(growing=CONTROLLERS)
    assert isinstance(found, Unknown)
    assert str(tmp_path / "elsewhere") in found.reason
    found = sources.logs_on_disk(growing=CONTROLLERS[:2])  # the third is down, and its disk lost
    assert isinstance(found, MetadataLogs)
    assert found.holders == tuple(map(int, CONTROLLERS[:2]))
    sources.close()
