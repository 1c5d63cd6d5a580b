"""What runs left behind: backups are looked at now, and durations come from proven restarts only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import RestoreRefused
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.durations import Durations
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import KeptFile, Measured
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, HostFile, KeptFiles, NoFile
from migrate.model.world import World
from migrate.plan import rollback
from migrate.run.journal import Journal
from migrate.run.past_runs import by_journals, durations_of, rollback_facts, samples_of
from tests.testing import worlds
from tests.testing.worlds import BROKER_FILE, config_file

Data = Mapping[str, Any]
ZOOKEEPER_MODE = BROKER_FILE.format(id=0).encode()


def here(tmp_path: Path) -> World:
    """A world in hybrid, whose runs lie in this folder."""
    world = worlds.world_at(Stage.COPY)
    return replace(world, inventory=replace(world.inventory, runs=str(tmp_path / "runs")))


def journal(inventory: Inventory, run: str, *events: tuple[float, str, Data], cluster: str = "lab") -> Path:
    """A run's folder with those events in its journal."""
    folder = Path(inventory.runs) / run
    folder.mkdir(parents=True, exist_ok=True)
    written = Journal.begin(folder / "journal.jsonl", events[0][0] if events else 1.0, {"cluster": cluster})
    for time, name, data in events:
        written.append(time, name, data)
    written.close()
    return folder


def with_copy(world: World, raw: bytes | None) -> World:
    """Broker 0 with that copy beside its file, or with none."""
    path = "/conf/b0.properties.kraft-migrate-backup"
    copies = () if raw is None else (HostFile(path, raw, hashlib.sha256(raw).hexdigest()),)
    return replace(world, backups=dict.fromkeys(worlds.BROKERS, KeptFiles(copies, ())))


def test_a_file_that_does_not_lead_to_migration_mode_is_told_as_the_plan_refuses_it(tmp_path: Path) -> None:
    """A KRaft broker goes back by way of migration mode, whose file has the key that a person put in here."""
    world = replace(worlds.world_at(Stage.KRAFT_MODE), inventory=here(tmp_path).inventory)
    assert not isinstance(world.configs, Unknown)
    file = world.configs[NodeId(0)]
    assert isinstance(file, ConfigFile)
    edited = config_file(file.node, file.path, file.raw + b"zookeeper.metadata.migration.enable=false\n")
    world = with_copy(replace(world, configs={**world.configs, file.node: edited}), ZOOKEEPER_MODE)
    found = rollback_facts(world).configs[NodeId(0)]
    assert isinstance(found, KeptFile)
    assert "zookeeper.metadata.migration.enable has neither the value from before" in found.problem
    with pytest.raises(RestoreRefused, match=re.escape(f"broker 0: {found.problem}")):
        rollback.build(world, worlds.playbook(), created=1.0)


def test_a_backup_is_what_a_rollback_would_restore_from(tmp_path: Path) -> None:
    """The copy that leads to what lies there; another one, or none, is told as the rollback would tell it."""
    world = here(tmp_path)
    good = rollback_facts(with_copy(world, ZOOKEEPER_MODE)).configs[NodeId(0)]
    assert isinstance(good, KeptFile)
    assert (good.problem, "kraft-migrate-backup" in good.path) == ("", True)
    none = rollback_facts(with_copy(world, None)).configs[NodeId(0)]
    assert isinstance(none, KeptFile)
    assert "no copy of /conf/b0.properties" in none.problem
    edited = ZOOKEEPER_MODE.replace(b"min.insync.replicas=2", b"min.insync.replicas=1")
    other = rollback_facts(with_copy(world, edited)).configs[NodeId(0)]
    assert isinstance(other, KeptFile)
    assert (other.problem, "kept: min.insync.replicas" in other.note) == ("", True)


def test_copies_that_nobody_looked_at_are_unknown(tmp_path: Path) -> None:
    """So are files that cannot be read, or are not there."""
    world = here(tmp_path)
    assert isinstance(rollback_facts(world).configs[NodeId(0)], Unknown)
    assert isinstance(rollback_facts(replace(world, configs=Unknown("hidden"))).configs[NodeId(0)], Unknown)
    gone = replace(world, configs={NodeId(0): NoFile("/conf/b0.properties")})
    assert isinstance(rollback_facts(gone).configs[NodeId(0)], Unknown)


def test_the_journals_of_another_cluster_and_damaged_ones_vouch_for_nothing(tmp_path: Path) -> None:
    """Both may lie in the same folder."""
    world = here(tmp_path)
    folder = journal(
        world.inventory, "other", (1.0, "note", {"key": "gap:controller", "value": "3.0"}), cluster="other"
    )
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "journal.jsonl").write_text("nothing of ours\nat all\n")
    facts = rollback_facts(world)
    assert facts.gap is None
    assert isinstance(facts.zookeeper, Unknown)


def test_the_tree_that_a_journal_names_is_held_against_its_hash(tmp_path: Path) -> None:
    """The newest one; changed or gone, it is no backup."""
    world = here(tmp_path)
    raw = b"the tree"
    digest = hashlib.sha256(raw).hexdigest()
    note = {"key": "backup:zookeeper", "value": f"zookeeper.jsonl.gz: denied 0, sha256 {digest}, znodes 3, zxid 7"}
    tree = journal(world.inventory, "one", (1.0, "note", note)) / "backup" / "zookeeper.jsonl.gz"
    tree.parent.mkdir()
    tree.write_bytes(raw)
    assert rollback_facts(world).zookeeper == KeptFile(str(tree))
    tree.write_bytes(b"another")
    said = rollback_facts(world).zookeeper
    assert isinstance(said, KeptFile)
    assert said.problem


def end(time: float, step: str, outcome: str = "Verified") -> tuple[float, str, Data]:
    """The end of a step that restarted a broker."""
    return time, "conclude", {"step": step, "kind": "roll-to-kraft", "outcome": outcome}


def acts(time: float, step: str) -> tuple[float, str, Data]:
    """A step acts."""
    return time, "intend", {"step": step}


def test_durations_are_those_of_this_clusters_runs(tmp_path: Path) -> None:
    """What ended well of each of them, and nothing of another cluster's; the playbook's estimate beside it."""
    world = here(tmp_path)
    journal(world.inventory, "one", (10, "session", {}), acts(12, "roll/0"), end(15, "roll/0"), acts(17, "roll/1"))
    journal(world.inventory, "two", (30, "session", {}), acts(31, "roll/2"), end(90, "roll/2", "Failed"))
    three = journal(world.inventory, "three", (600, "session", {}), acts(601, "roll/1"), end(607, "roll/1"))
    journal(world.inventory, "other", (1, "session", {}), acts(2, "roll/0"), end(5, "roll/0"), cluster="other")
    known = Durations(900.0, {"roll-to-kraft": (5.0, 7.0), "broker": (5.0, 7.0)})
    assert durations_of(world) == known
    assert rollback_facts(world).durations == known
    assert samples_of(three.parent, "lab", but=three) == {"roll-to-kraft": (5.0,), "broker": (5.0,)}


def test_gaps_are_those_that_rollbacks_noted(tmp_path: Path) -> None:
    """Numbers only."""
    world = here(tmp_path)
    notes = [(1.0, "note", {"key": "gap:controller", "value": value}) for value in ("4.5", "6", "soon")]
    journal(world.inventory, "one", *notes)
    assert rollback_facts(world).gap == Measured(5.25, 2)


@pytest.mark.parametrize(
    ("step", "node", "want"), [("finalize/1-of-3", 3001, (3001,)), ("controllers/start", 3001, ())]
)
def test_a_controller_started_in_finalize_is_remembered(
    tmp_path: Path, step: str, node: int, want: tuple[int, ...]
) -> None:
    """Its start is written before it happens: from there on nothing is reversible."""
    world = here(tmp_path)
    journal(world.inventory, "one", (1.0, "effect", {"effect": "start", "node": str(node), "step": step, "detail": ""}))
    assert rollback_facts(world).unflagged == want


def test_a_look_undoes_no_proof_and_a_change_does(tmp_path: Path) -> None:
    """A plan that was applied after the end only to look leaves the cluster at its end."""
    known = here(tmp_path).inventory

    def concluded(at: float, step: str, stage: str) -> tuple[float, str, Data]:
        return at, "conclude", {"step": step, "kind": "a", "outcome": "Verified", "stage": stage}

    journal(known, "aaaa", concluded(2.0, "cleanup/prove-final", "cleanup"))
    journal(known, "bbbb", concluded(3.0, "discover/discover", "discover"), concluded(4.0, "assess/assess", "assess"))
    assert by_journals(known) == {CLEANUP_PROVEN: "run aaaa"}
    journal(known, "cccc", concluded(5.0, "hybrid/back-1", "hybrid"))
    assert by_journals(known) == {}
