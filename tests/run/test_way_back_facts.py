"""What runs left behind: backups are looked at now, and durations come from proven restarts only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts.files import LocalFiles
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.way_back import KeptFile, Measured
from migrate.run.journal import Journal
from migrate.run.way_back_facts import way_back_facts
from migrate.steps import configuration
from tests.testing import worlds
from tests.testing.worlds import BROKER_FILE

Data = Mapping[str, Any]
ZOOKEEPER_MODE = BROKER_FILE.format(id=0).encode()
MIGRATION_MODE = configuration.migration_mode(ZOOKEEPER_MODE, worlds.inventory())


def here(tmp_path: Path) -> Inventory:
    """The inventory of a cluster whose files lie in this folder."""
    known = worlds.inventory()
    brokers = tuple(replace(node, config=str(tmp_path / f"b{int(node.id)}.properties")) for node in known.brokers)
    return replace(known, brokers=brokers, runs=str(tmp_path / "runs"))


def journal(inventory: Inventory, run: str, *events: tuple[float, str, Data], cluster: str = "lab") -> Path:
    """A run's folder with those events in its journal."""
    folder = Path(inventory.runs) / run
    folder.mkdir(parents=True, exist_ok=True)
    written = Journal.begin(folder / "journal.jsonl", events[0][0] if events else 1.0, {"cluster": cluster})
    for time, name, data in events:
        written.append(time, name, data)
    written.close()
    return folder


def kept(inventory: Inventory, run: str, raw: bytes, *, time: float = 1.0) -> tuple[Path, Path]:
    """Broker 0's file kept as `backup_file` keeps it: (beside it, in the run's folder)."""
    path = inventory.brokers[0].config
    beside = Path(f"{path}.kraft-migrate-backup")
    if beside.exists() and beside.read_bytes() != raw:
        beside = Path(f"{beside}-{hashlib.sha256(raw).hexdigest()[:8]}")
    value = f"{beside} (SHA-256 {hashlib.sha256(raw).hexdigest()})"
    folder = journal(inventory, run, (time, "note", {"key": f"backup:0:{path}", "value": value}))
    copy = folder / "backup" / "0" / path.strip("/").replace("/", "_")
    copy.parent.mkdir(parents=True)
    for where in (beside, copy):
        where.write_bytes(raw)
    return beside, copy


def found(inventory: Inventory) -> KeptFile | Unknown:
    """What is said of broker 0's backup."""
    return way_back_facts(inventory, LocalFiles()).configs[NodeId(0)]


def test_a_backup_that_is_what_was_kept_is_good(tmp_path: Path) -> None:
    """Beside the file first; where that one is gone or changed, the copy in the run's folder."""
    inventory = here(tmp_path)
    beside, copy = kept(inventory, "one", ZOOKEEPER_MODE)
    assert found(inventory) == KeptFile(str(beside))
    beside.write_bytes(b"broker.id=0\n")
    assert found(inventory) == KeptFile(str(copy))
    beside.unlink()
    assert found(inventory) == KeptFile(str(copy))
    copy.write_bytes(b"")
    said = found(inventory)
    assert isinstance(said, KeptFile)
    assert said.problem.startswith("it cannot be read")
    beside.write_bytes(b"broker.id=7\n")
    said = found(inventory)
    assert isinstance(said, KeptFile)
    assert "SHA-256 is another" in said.problem


def test_the_file_of_before_the_first_roll_is_found_behind_a_later_runs_backup(tmp_path: Path) -> None:
    """A second plan begins in migration mode and keeps that file: it is not the one to go back to."""
    inventory = here(tmp_path)
    beside, _ = kept(inventory, "one", ZOOKEEPER_MODE, time=1.0)
    kept(inventory, "two", MIGRATION_MODE, time=2.0)
    assert found(inventory) == KeptFile(str(beside))


def test_without_any_journal_the_copy_beside_the_file_is_told_by_its_content(tmp_path: Path) -> None:
    """Its own broker's, and of ZooKeeper mode; a missing one is missing, an unreadable one unknown."""
    inventory = here(tmp_path)
    beside = Path(f"{inventory.brokers[0].config}.kraft-migrate-backup")
    said = found(inventory)
    assert isinstance(said, KeptFile)
    assert "no backup" in said.problem
    for raw, problem in (
        (ZOOKEEPER_MODE, ""),
        (MIGRATION_MODE, "it is no file of ZooKeeper mode"),
        (BROKER_FILE.format(id=1).encode(), "it is broker 1's"),
    ):
        beside.write_bytes(raw)
        assert found(inventory) == KeptFile(str(beside), problem)
    beside.unlink()
    beside.mkdir()
    assert isinstance(found(inventory), Unknown)


def test_the_journals_of_another_cluster_and_damaged_ones_vouch_for_nothing(tmp_path: Path) -> None:
    """Both may lie in the same folder."""
    inventory = here(tmp_path)
    folder = journal(inventory, "other", (1.0, "note", {"key": "gap:controller", "value": "3.0"}), cluster="other")
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "journal.jsonl").write_text("nothing of ours\nat all\n")
    facts = way_back_facts(inventory, LocalFiles())
    assert facts.gap is None
    assert isinstance(facts.zookeeper, Unknown)


def test_the_tree_that_a_journal_names_is_held_against_its_hash(tmp_path: Path) -> None:
    """The newest one; changed or gone, it is no backup."""
    inventory = here(tmp_path)
    raw = b"the tree"
    digest = hashlib.sha256(raw).hexdigest()
    note = {"key": "backup:zookeeper", "value": f"zookeeper.jsonl.gz: denied 0, sha256 {digest}, znodes 3, zxid 7"}
    tree = journal(inventory, "one", (1.0, "note", note)) / "backup" / "zookeeper.jsonl.gz"
    tree.parent.mkdir()
    tree.write_bytes(raw)
    assert way_back_facts(inventory, LocalFiles()).zookeeper == KeptFile(str(tree))
    tree.write_bytes(b"another")
    said = way_back_facts(inventory, LocalFiles()).zookeeper
    assert isinstance(said, KeptFile)
    assert said.problem


def stop(time: float, node: int, step: str) -> tuple[float, str, Data]:
    """The order to stop a node."""
    return time, "effect", {"effect": "stop", "node": str(node), "step": step, "detail": ""}


def end(time: float, step: str, outcome: str = "Verified") -> tuple[float, str, Data]:
    """The end of a step."""
    return time, "conclude", {"step": step, "outcome": outcome}


def test_restarts_are_measured_from_the_order_to_stop_to_the_proof(tmp_path: Path) -> None:
    """The middle one of those that ended well; refused ones, killed ones and controllers do not count."""
    inventory = here(tmp_path)
    journal(
        inventory,
        "one",
        stop(10, 0, "roll/0"),
        end(15, "roll/0"),
        stop(20, 1, "roll/1"),
        end(27, "roll/1"),
        stop(30, 2, "roll/2"),
        end(90, "roll/2", "Failed"),
        stop(100, 2, "roll/2"),
        (500, "session", {}),
        end(510, "roll/2"),
        stop(600, 3000, "finalize/1"),
        end(700, "finalize/1"),
    )
    assert way_back_facts(inventory, LocalFiles()).restart == Measured(6.0, 2)


def test_gaps_are_those_that_rollbacks_noted(tmp_path: Path) -> None:
    """Numbers only."""
    inventory = here(tmp_path)
    notes = [(1.0, "note", {"key": "gap:controller", "value": value}) for value in ("4.5", "6", "soon")]
    journal(inventory, "one", *notes)
    assert way_back_facts(inventory, LocalFiles()).gap == Measured(5.25, 2)


@pytest.mark.parametrize(
    ("step", "node", "want"), [("finalize/1-of-3", 3001, (3001,)), ("controllers/start", 3001, ())]
)
def test_a_controller_started_in_finalize_is_remembered(
    tmp_path: Path, step: str, node: int, want: tuple[int, ...]
) -> None:
    """Its start is written before it happens: from there on nothing is reversible."""
    inventory = here(tmp_path)
    journal(inventory, "one", (1.0, "effect", {"effect": "start", "node": str(node), "step": step, "detail": ""}))
    assert way_back_facts(inventory, LocalFiles()).unflagged == want
