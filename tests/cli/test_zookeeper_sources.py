"""How fast ZooKeeper is read is the operator's to say; and its files stand in for it wherever a command looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.observe.sources import Sources
from migrate.zookeeper.layout import Znode
from migrate.zookeeper.offline.files import ZookeeperFiles, open_files
from tests.cli.commands import Ended, inventory_in, kraft_migrate, playbook_in
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.golden_trees import golden
from tests.testing.kept import KeptSources, sources_of
from tests.zookeeper.offline.written import Kept, acl, create, data_dir, log, snapshot

ONE, OTHER = acl((31, "sasl", "kafka")), acl((31, "sasl", "admin"))


# -- the rate ------------------------------------------------------------------------------------------------------
@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The rates of the sources that commands open, on a world in which there is little to say."""
    seen: list[int | None] = []
    opened = sources_of(whole(Stage.COPY))

    def sources(inventory: Inventory, *rest: Any) -> KeptSources:
        seen.append(inventory.zookeeper_rate)
        found: KeptSources = opened(inventory, *rest)
        return found

    monkeypatch.setattr("migrate.observe.bundled.look_for_bundle", lambda observer: observer.observe(frozenset(), {}))
    monkeypatch.setattr("migrate.observe.sources.Sources", sources)
    monkeypatch.setattr("migrate.observe.analysis.with_diff", lambda _, world: world)
    return seen


@pytest.mark.parametrize(
    "words",
    [
        ("assess", "PLAYBOOK"),
        ("plan", "PLAYBOOK"),
        ("diff", "PLAYBOOK"),
        ("status", "PLAYBOOK"),
        ("directories", "show", "PLAYBOOK"),
        ("bundle", "create", "BUNDLE", "PLAYBOOK"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_looks_takes_a_rate(words: tuple[str, ...], rates: list[int | None], tmp_path: Path) -> None:
    """The command line's, else the inventory's, else none."""
    playbook = playbook_in(tmp_path)
    inventory = tmp_path / "inventory.yaml"
    named = {"PLAYBOOK": playbook}

    def run(number: int, *more: object) -> None:
        answer = kraft_migrate(
            *(named.get(word, tmp_path / f"b{number}" if word == "BUNDLE" else word) for word in words), *more
        )
        assert answer.code != 64, answer.err

    run(1)
    run(2, "--zookeeper-rate", 70)
    inventory.write_text(inventory.read_text().replace("  zookeeper:", "  zookeeper_rate: 250\n  zookeeper:"))
    run(3)
    run(4, "--zookeeper-rate", 70)
    assert rates == [None, 70, 250, 70]


def test_assess_tells_what_it_asked_of_zookeeper(rates: list[int | None], tmp_path: Path) -> None:
    """In words and in JSON; by a connect string alone too."""
    words = ("assess", "--zookeeper", "zk:2181", "--zookeeper-rate", 70)
    answer = kraft_migrate(*words)
    assert answer.out.splitlines()[-1] == "ZooKeeper was read by 0 operations, at most 70 operations a second"
    found = json.loads(kraft_migrate(*words, "-o", "json").out)
    assert found["zookeeper_reads"] == {"operations": 0, "most_a_second": 70}
    assert rates == [70, 70]
    unlimited = kraft_migrate("assess", "--inventory", inventory_in(tmp_path))
    assert unlimited.out.splitlines()[-1] == "ZooKeeper was read by 0 operations, as fast as it answers"


@pytest.mark.parametrize("rate", ["0", "-3", "fast", "1000001", "2.5"])
def test_a_rate_that_is_none_is_wrong_usage(rate: str) -> None:
    """Before anything is opened."""
    assert kraft_migrate("assess", "--zookeeper", "zk:2181", "--zookeeper-rate", rate).code == 64


# -- files ---------------------------------------------------------------------------------------------------------
def files_of(stage: str, folder: Path, acls: dict[str, int] | None = None, later: bytes = b"") -> Path:
    """A dataDir that holds a captured cluster's tree; `acls` maps paths to 1 (one identity) or 2 (another one)."""
    tree = golden(stage)
    znodes = {
        path: Kept(znode.data, zxid=1, owner=znode.ephemeral_owner, acl=(acls or {}).get(path, -1))
        for path, znode in sorted(tree.znodes.items(), key=lambda entry: (entry[0].count("/"), entry[0]))
        if path != "/" and isinstance(znode, Znode)
    }
    snap = snapshot(znodes, acls={1: ONE, 2: OTHER}, last=1)
    return data_dir(folder / "zookeeper", snapshot_1=snap, **({"log_2": later} if later else {}))


def plan_of(tmp_path: Path, *words: object) -> Ended:
    """A plan on nothing but those files: no node of the inventory is there."""
    return kraft_migrate("plan", playbook_in(tmp_path), *words)


def test_plan_reads_the_tree_from_files_and_saves_nothing(tmp_path: Path) -> None:
    """What the files say is judged, and that they are files is said; a plan of what was then is for reading."""
    out = tmp_path / "plan.json"
    answer = plan_of(tmp_path, "--zookeeper-files", files_of("zk-before", tmp_path), "--out", out)
    assert answer.code == 3
    assert "not as it is now" in answer.out
    assert "ZooKeeper: E-ZK" not in answer.out
    assert not list(tmp_path.glob("runs/*/plan.json"))
    assert "not as it is now" in out.read_text()


def test_damaged_files_and_a_wrong_chroot_end_the_command(tmp_path: Path) -> None:
    """With the typed error, for every command that takes them."""
    files, playbook = files_of("zk-before", tmp_path), playbook_in(tmp_path)
    for command in ("plan", "diff", "assess"):
        lost = kraft_migrate(command, playbook, "--zookeeper-files", files, "--chroot", "/none")
        assert (lost.code, "\nE-ZK-03: " in f"\n{lost.err}") == (1, True)
    (files / "version-2" / "snapshot.1").write_bytes(b"ZKSN")
    for command in ("plan", "diff", "assess"):
        assert "E-ZKF-02" in kraft_migrate(command, playbook, "--zookeeper-files", files).err


def test_diff_of_files_and_no_metadata_says_so(tmp_path: Path) -> None:
    """Never equal; and what files can be compared at all."""
    inventory_in(tmp_path)
    answer = kraft_migrate(
        "diff", "--inventory", tmp_path / "inventory.yaml", "--zookeeper-files", files_of("hybrid-after-copy", tmp_path)
    )
    assert (answer.code, answer.out) == (1, "")
    assert "the metadata is unknown" in answer.err
    assert "only where a running server writes them" in answer.err


@pytest.mark.parametrize(
    ("acls", "code"),
    [
        ({"/config/topics": 1, "/brokers/topics": 2}, "B-SEC-05"),
        ({"/config/topics": 1, "/brokers/topics": 1}, "W-SEC-14"),
    ],
)
def test_acls_in_files_are_judged_as_those_of_a_server(acls: dict[str, int], code: str, tmp_path: Path) -> None:
    """Files hold every ACL: no identity is needed to see them, so there is no blind spot."""
    answer = kraft_migrate("assess", "--zookeeper-files", files_of("zk-before", tmp_path, acls), "-o", "json")
    found = {entry["code"]: entry for entry in json.loads(answer.out)["findings"]}
    assert code in found
    assert found[code]["severity"] != "BLIND_SPOT"
    assert "kafka" in found[code]["evidence"] or "kafka" in found[code]["message"]


def test_an_acl_that_the_files_do_not_hold_is_a_blind_spot(tmp_path: Path) -> None:
    """A znode names an ACL that the snapshot's table lacks: unknown, and not as if everybody might write."""
    answer = kraft_migrate("assess", "--zookeeper-files", files_of("zk-before", tmp_path, {"/config/topics": 9}))
    assert "the ACLs of ZooKeeper's znodes: /config/topics: its ACL is not known" in " ".join(answer.out.split())
    blind = answer.out[answer.out.index("the ACLs of ZooKeeper's znodes") :]
    assert "B-SEC-05" in blind
    assert "W-SEC-14" in blind


def test_files_are_read_again_at_each_look(tmp_path: Path) -> None:
    """A server that runs on writes on: what came later is seen by the next look."""
    folder = files_of("hybrid-after-copy", tmp_path)
    sources = Sources(worlds.inventory(), Unknown("none"), None)
    sources.use_zookeeper_files(open_files(ZookeeperFiles((str(folder),))))
    first = sources.zookeeper()
    assert not isinstance(first, Unknown)
    offset = sources.dual_write_offset()
    assert offset > 0
    topic = create("/admin/delete_topics/orders")
    (folder / "version-2" / "log.2").write_bytes(log(2, [topic]))
    second = sources.zookeeper()
    assert not isinstance(second, Unknown)
    assert (first.pending.deletions, second.pending.deletions) == ((), ("orders",))
    assert sources.dual_write_offset() == offset
    sources.close()
