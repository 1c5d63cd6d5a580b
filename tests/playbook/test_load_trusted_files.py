"""Files that decide are refused where another user could have written them: real files, of another owner or open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.cli.given import load_plan
from migrate.errors import DocumentNotTrusted, JournalDamaged, MigrateError, PlanUnreadable
from migrate.playbook.load import load_inventory, load_playbook
from migrate.run.journal import Journal
from tests.cli.commands import playbook_in

NOBODY = 65_534
Spoil = Callable[[Path], None]


def given_away(path: Path) -> None:
    """It belongs to another user, who may change it tomorrow."""
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    os.chown(path, NOBODY, NOBODY)


def opened(path: Path) -> None:
    """Everybody may write it."""
    path.chmod(0o666)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A playbook and its inventory, by ssh with a configuration and with added properties; a plan; a journal."""
    playbook_in(tmp_path)
    (tmp_path / "ssh_config").write_text("Host *\n")
    (tmp_path / "added").write_text("num.io.threads=8\n")
    (tmp_path / "added").chmod(0o600)
    text = (tmp_path / "inventory.yaml").read_text()
    (tmp_path / "inventory.yaml").write_text(text)
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "plan.json").write_text("{}")
    Journal.begin(tmp_path / "journal.jsonl", 1.0, {"plan": "a", "tool": "1"}).close()
    return tmp_path


HOSTS = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {name: lab}
spec:
  zookeeper: zk:2181
  controller_listener: CTL
  executor: {kind: ssh, kafka_home: /opt/kafka, ssh_config: ssh_config}
  brokers:
    properties: added
    nodes:
      - {id: 0, host: b0, address: 'b0:9092', config: /etc/kafka/b0.properties, unit: kafka.service}
  controllers:
    nodes:
      - {id: 3000, host: c0, address: 'c0:9090', config: /etc/kafka/c0.properties, unit: kafka-c.service,
         metadata_directory: /data/c0}
"""
READ: dict[str, tuple[type[MigrateError], Callable[[Path], object]]] = {
    "playbook.yaml": (DocumentNotTrusted, lambda folder: load_playbook(folder / "playbook.yaml")),
    "inventory.yaml": (DocumentNotTrusted, lambda folder: load_inventory(folder / "inventory.yaml")),
    "hosts.yaml": (DocumentNotTrusted, lambda folder: load_inventory(folder / "hosts.yaml")),
    "ssh_config": (DocumentNotTrusted, lambda folder: load_inventory(folder / "hosts.yaml")),
    "added": (MigrateError, lambda folder: load_inventory(folder / "hosts.yaml")),
    "plan.json": (PlanUnreadable, lambda folder: load_plan(folder / "plan.json")),
    "journal.jsonl": (JournalDamaged, lambda folder: Journal.resume(folder / "journal.jsonl").close()),
}


@pytest.mark.parametrize("spoil", [given_away, opened], ids=["of another user", "open to all"])
@pytest.mark.parametrize("name", READ)
def test_no_file_decides_that_another_user_could_have_written(folder: Path, name: str, spoil: Spoil) -> None:
    """The file is named; the same file of our own is taken."""
    error, read = READ[name]
    if name != "plan.json":
        read(folder)
    spoil(folder / name)
    with pytest.raises(error) as caught:
        read(folder)
    assert name in caught.value.where
    if error is PlanUnreadable:
        assert "cannot be trusted" in caught.value.what


@pytest.mark.parametrize("name", READ)
def test_no_file_decides_in_a_folder_that_others_may_write(folder: Path, name: str) -> None:
    """They could put another file in its place, an older one of ours."""
    error, read = READ[name]
    folder.chmod(0o777)
    with pytest.raises(error, match="everybody may write it"):
        read(folder)
    folder.chmod(0o1777)
    if name != "plan.json":
        read(folder)


@pytest.mark.parametrize(
    ("file", "text"), [("ssh_config", "Host b\n"), ("added", "num.io.threads=9\n"), ("hosts.yaml", "")]
)
def test_the_inventorys_sum_is_of_the_files_that_it_names_as_well(folder: Path, file: str, text: str) -> None:
    """They say how hosts are reached and what is written there: a plan is bound to them."""
    before = load_inventory(folder / "hosts.yaml").sha256
    assert load_inventory(folder / "hosts.yaml").sha256 == before
    path = folder / file
    path.write_text(text or path.read_text() + "# another hand\n")
    assert load_inventory(folder / "hosts.yaml").sha256 != before
