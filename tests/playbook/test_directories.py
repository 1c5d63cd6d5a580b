"""DirectoryPlaybook: what it comes to, and what is refused, each with its file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate.cli.playbook import playbook as command
from migrate.errors import DocumentInvalid, InputError, NotSupportedYet
from migrate.model.ids import NodeId
from migrate.model.stage import Stage
from migrate.playbook.directories import DirectoryPlaybook
from migrate.playbook.load import (
    dump_inventory,
    kind_of,
    lint,
    load_inventory,
    load_playbook,
    load_playbook_with_inventory,
)
from migrate.playbook.shown import shown
from tests.cli.commands import kraft_migrate
from tests.playbook.corpus import INVENTORY, Bad

HEAD = "apiVersion: kraft-migrate/v1\nkind: DirectoryPlaybook\nmetadata: {name: d}\n"
SPEC = HEAD + "spec:\n  cluster: {inventory: inventory.yaml}\n"
FULL = (
    SPEC
    + """\
  directories:
    add: [/disk2/kafka, disk3]
    brokers:
      1: [/nvme/kafka/]
    accept_volatile: [tmpfs]
  policy:
    availability: {accept_unavailable: ['scratch-.*']}
    rollout: {node_estimate: 5m}
    health: {samples: 4, interval: 2s}
    no_progress_timeout: 90s
  windows:
    nights: {timezone: Europe/Berlin, allow: ["Mon-Thu 21:00-05:00"]}
  window: nights
  rollback: {window: nights}
"""
)
WITHOUT_ZOOKEEPER = INVENTORY.replace("  zookeeper: zk1:2181,zk2:2181/kafka\n", "")


def lay(folder: Path, text: str, inventory: str = WITHOUT_ZOOKEEPER) -> Path:
    """The playbook with its inventory beside it."""
    (folder / "inventory.yaml").write_text(inventory, encoding="utf-8")
    path = folder / "directories.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# -- what it comes to ------------------------------------------------------------------------------------------------
def test_a_full_playbook_becomes_its_values(tmp_path: Path) -> None:
    """Paths are absolute and plain, a broker's own list stands instead of `add`."""
    found, inventory = load_playbook_with_inventory(lay(tmp_path, FULL))
    assert found.of_directories
    assert found.stages == (Stage.DIRECTORIES,)
    assert found.new_directories == {
        NodeId(0): ("/disk2/kafka", str(tmp_path / "disk3")),
        NodeId(1): ("/nvme/kafka",),
    }
    assert inventory.zookeeper == ""
    assert found.inventory == inventory.path
    assert (found.health.samples, found.no_progress_seconds, found.pace.node_estimate) == (4, 90.0, 300.0)
    assert found.accept_unavailable == ("scratch-.*",)
    assert found.accept_volatile == ("tmpfs",)
    window = found.window_of(Stage.DIRECTORIES)
    assert window is not None
    assert window.name == found.rollback_window == "nights"


def test_an_empty_list_leaves_a_broker_as_it_is(tmp_path: Path) -> None:
    """`[]` is not *as the others*."""
    text = SPEC + "  directories: {add: [/disk2], brokers: {1: []}}\n"
    assert load_playbook(lay(tmp_path, text)).new_directories == {NodeId(0): ("/disk2",)}


def test_a_migrated_clusters_inventory_may_name_its_zookeeper_still(tmp_path: Path) -> None:
    """Nobody asks it."""
    text = SPEC + "  directories: {add: [/disk2]}\n"
    found, inventory = load_playbook_with_inventory(lay(tmp_path, text, INVENTORY))
    assert inventory.zookeeper
    assert set(found.new_directories) == {NodeId(0), NodeId(1)}


def test_another_inventory_can_be_given(tmp_path: Path) -> None:
    """`--inventory FILE`: `add` is for its brokers."""
    path = lay(tmp_path, SPEC + "  directories: {add: [/disk2]}\n")
    other = tmp_path / "other.yaml"
    other.write_text(WITHOUT_ZOOKEEPER.replace("id: 1,", "id: 7,"), encoding="utf-8")
    assert set(load_playbook(path, load_inventory(other)).new_directories) == {NodeId(0), NodeId(7)}


def test_an_inventory_without_zookeeper_is_written_and_read_back(tmp_path: Path) -> None:
    """The key is absent, not empty."""
    found = load_inventory(lay(tmp_path, SPEC).parent / "inventory.yaml")
    text = dump_inventory(found)
    assert "zookeeper" not in text
    assert load_inventory(lay(tmp_path, SPEC, text).parent / "inventory.yaml") == found


def test_a_migration_wants_an_inventory_with_zookeeper(tmp_path: Path) -> None:
    """Said at the line that names the inventory."""
    text = SPEC.replace("DirectoryPlaybook", "MigrationPlaybook")
    with pytest.raises(DocumentInvalid, match="the inventory names no ZooKeeper") as caught:
        load_playbook_with_inventory(lay(tmp_path, text))
    assert caught.value.where.endswith("directories.yaml:5:13")


def test_its_kind_is_known_without_the_inventory(tmp_path: Path) -> None:
    """`playbook lint` may run elsewhere."""
    path = lay(tmp_path, FULL)
    (tmp_path / "inventory.yaml").unlink()
    assert kind_of(path) == DirectoryPlaybook.__name__
    lint(path)


def test_what_it_comes_to_is_shown_with_where_it_comes_from(tmp_path: Path) -> None:
    """Each broker's directories, the window."""
    rows = {row.key: (row.value, row.origin) for row in shown(lay(tmp_path, FULL))}
    assert rows["broker 1: new directories"] == ("/nvme/kafka", "its own list, else `add`")
    assert rows["spec.directories.add"] == ("/disk2/kafka, disk3", "line 7")
    assert rows["window"][0].startswith("nights")


@pytest.mark.slow
def test_lint_and_show_understand_it(tmp_path: Path) -> None:
    """As text and as JSON."""
    path = str(lay(tmp_path, FULL))
    run = CliRunner().invoke
    assert run(command, ["lint", path], standalone_mode=False).output == f"{path}: ok\n"
    said = json.loads(kraft_migrate("playbook", "show", "-o", "json", path).out)
    assert said["new_directories"]["1"] == ["/nvme/kafka"]
    schema = json.loads(run(command, ["schema", "DirectoryPlaybook"], standalone_mode=False).output)
    assert schema["properties"]["kind"]["const"] == "DirectoryPlaybook"


# -- what is refused -------------------------------------------------------------------------------------------------
def directories(*lines: str) -> str:
    """A playbook whose directories are these lines."""
    return SPEC + "  directories:\n" + "".join(f"    {line}\n" for line in lines)


ONE = "add: [/d]"
REFUSED = (
    Bad("no directories", SPEC, DocumentInvalid, "4:1", "spec.directories is missing"),
    Bad("nothing named", directories("add: []"), DocumentInvalid, "6:3", "no directory is named"),
    Bad("twice", directories("add: [/d, /e, /d/]"), DocumentInvalid, "7:19", "appears twice"),
    Bad("twice for one", directories(ONE, "brokers:", "  0: [/a, /a]"), DocumentInvalid, "9:15", "appears twice"),
    Bad("comma", directories("add: ['/d,/e']"), DocumentInvalid, "7:11", "a list with commas"),
    Bad("space", directories("add: [' /d']"), DocumentInvalid, "7:11", "no space around it"),
    Bad("a number", directories("add: 7"), DocumentInvalid, "7:5", "a list is expected"),
    Bad("one path, no list", directories("add: /d"), DocumentInvalid, "7:5", "a list is expected"),
    Bad("no broker id", directories(ONE, "brokers: {b1: [/e]}"), DocumentInvalid, "8:15", "no broker id"),
    Bad("no such broker", directories(ONE, "brokers: {9: [/e]}"), DocumentInvalid, "8:15", "not in the inventory"),
    Bad("a controller", directories(ONE, "brokers: {3000: [/e]}"), DocumentInvalid, "8:15", "not in the inventory"),
    Bad("unknown key", directories(ONE, "ad: [/e]"), DocumentInvalid, "8:5", "did you mean `add`"),
    Bad("remove", directories(ONE) + "  remove: [/d]\n", NotSupportedYet, "8:3", "rollback plan"),
    Bad("stages", directories(ONE) + "  stages: []\n", NotSupportedYet, "8:3", "all brokers, one at a time"),
    Bad(
        "controllers",
        directories(ONE) + "  controllers: {ids: [1]}\n",
        NotSupportedYet,
        "8:3",
        "one metadata directory",
    ),
    Bad("no such window", directories(ONE) + "  window: nights\n", DocumentInvalid, "8:3", "there is no window"),
    Bad(
        "all topics",
        directories(ONE) + "  policy: {availability: {accept_unavailable: ['.*']}}\n",
        DocumentInvalid,
        "8:48",
        "matches every topic",
    ),
    Bad(
        "other brokers",
        directories(ONE).replace("{inventory: inventory.yaml}", "{inventory: inventory.yaml, expect: {brokers: [0]}}"),
        DocumentInvalid,
        "5:49",
        "expected are the brokers [0]",
    ),
)


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: bad.name)
def test_bad_input_is_refused_with_its_line(tmp_path: Path, bad: Bad) -> None:
    """The place is the key to look at, the message says what is expected."""
    path = lay(tmp_path, bad.raw.decode())
    with pytest.raises(bad.error) as caught:
        load_playbook(path)
    assert caught.value.where == f"{path}:{bad.at}"
    assert bad.says in f"{caught.value.what} {caught.value.why} {caught.value.next_step}"


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: bad.name)
def test_lint_says_the_same(tmp_path: Path, bad: Bad) -> None:
    """What loads not, lints not."""
    with pytest.raises(InputError):
        lint(lay(tmp_path, bad.raw.decode()))


# -- the other playbook of one roll ----------------------------------------------------------------------------------
PROTOCOL = """\
apiVersion: kraft-migrate/v1
kind: ProtocolPlaybook
metadata: {name: p}
spec:
  cluster: {inventory: inventory.yaml}
"""
PROTOCOL_FULL = (
    PROTOCOL
    + """\
  policy: {lock: {path: /our/lock}, no_progress_timeout: 90s}
  windows:
    nights: {timezone: Europe/Berlin, allow: ["Mon-Thu 21:00-05:00"]}
  window: nights
"""
)


def test_a_protocol_playbook_becomes_its_values(tmp_path: Path) -> None:
    """Its one stage has the window; the lock is the migration's."""
    path = lay(tmp_path, PROTOCOL_FULL, INVENTORY)
    found, inventory = load_playbook_with_inventory(path)
    assert found.of_protocol
    assert not found.of_directories
    assert found.stages == (Stage.PROTOCOL,)
    assert found.inventory == inventory.path
    assert (found.lock_path, found.no_progress_seconds) == ("/our/lock", 90.0)
    window = found.window_of(Stage.PROTOCOL)
    assert window is not None
    assert window.name == "nights"
    assert load_playbook(path, load_inventory(inventory.path)) == found
    assert {row.key: row.value for row in shown(path)}["window"].startswith("nights")
    lint(path)


def test_a_protocol_playbook_locks_where_a_migration_does(tmp_path: Path) -> None:
    """One run at a time, of either kind."""
    assert load_playbook(lay(tmp_path, PROTOCOL, INVENTORY)).lock_path == "/kraft-migrate/lock"


def test_a_cluster_without_zookeeper_has_no_protocol_version_to_raise(tmp_path: Path) -> None:
    """metadata.version is in its place."""
    with pytest.raises(DocumentInvalid, match="names no ZooKeeper") as caught:
        load_playbook(lay(tmp_path, PROTOCOL))
    assert "metadata.version" in caught.value.why


def test_the_version_is_no_key_of_the_playbook(tmp_path: Path) -> None:
    """It is always the one that a migration begins with."""
    with pytest.raises(NotSupportedYet, match="version"):
        load_playbook(lay(tmp_path, PROTOCOL + "  version: '3.8'\n", INVENTORY))
