"""Versions of partition states, held to the partition epochs of stopped controllers' logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.outcome import Unknown
from migrate.model.rollback_evidence import MetadataLogs, StateBehind
from migrate.model.views import ZookeeperView
from migrate.observe.states_behind import states_behind
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.layout import partition_states
from migrate.zookeeper.read import view_of
from migrate.zookeeper.znode import Absent, Znode
from tests.kraft.logs import STAGES, captured_log
from tests.observe.test_metadata_files import DIGESTER
from tests.observe.test_metadata_logs import VOTERS, hybrid, looked_at
from tests.testing.golden_trees import golden

AT = "first-broker-kraft"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> MetadataLogs:
    """Of a real migration, as its first broker was in KRaft mode."""
    found = looked_at(tmp_path_factory.mktemp("logs"), dict.fromkeys(VOTERS, hybrid()[0]))
    assert isinstance(found, MetadataLogs)
    return found


def viewed(tree: BackupTree) -> ZookeeperView:
    """The view of that tree."""
    return view_of(tree, "test:2181", DIGESTER, None)


def first_with_epoch(logs: MetadataLogs) -> tuple[str, int]:
    """(state znode, partition epoch) of a partition that was changed in KRaft."""
    of = logs.partitions
    row = next(row for row, epoch in enumerate(of.revision) if epoch > 0)
    return partition_states(of.topic[row], [of.partition[row]])[0], of.revision[row]


def with_state(tree: BackupTree, path: str, version: int) -> BackupTree:
    """The tree with another version of that znode."""
    znode = tree.znodes[path]
    assert isinstance(znode, Znode)
    return BackupTree(tree.connect, {**tree.znodes, path: znode._replace(version=version)})


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "controllers-up"])
def test_in_a_real_migration_that_makes_no_topic_in_dual_write_none_is_behind(stage: str, tmp_path: Path) -> None:
    """212 partitions, each version at least the partition epoch, at each stage."""
    seen = looked_at(tmp_path, dict.fromkeys(VOTERS, captured_log()[: STAGES[stage][0]]))
    assert isinstance(seen, MetadataLogs)
    assert len(seen.partitions) == 212
    tree = golden(stage)
    assert states_behind(lambda: tree, seen, viewed(tree)) == ()


def test_a_version_below_the_partition_epoch_is_found_and_an_equal_one_is_not(logs: MetadataLogs) -> None:
    """Brokers take what is not below what they know (`Partition.makeFollower`)."""
    path, epoch = first_with_epoch(logs)
    for version, behind in ((epoch - 1, (StateBehind(path, epoch - 1, epoch),)), (epoch, ())):
        tree = with_state(golden(AT), path, version)
        assert states_behind(lambda tree=tree: tree, logs, viewed(tree)) == behind  # type: ignore[misc]


def test_a_topic_made_anew_or_gone_is_none_of_the_metadatas(logs: MetadataLogs) -> None:
    """Its partitions begin to count again."""
    path, _ = first_with_epoch(logs)
    topic = path.split("/")[3]
    tree = with_state(golden(AT), path, 0)
    view = viewed(tree)
    of = view.partitions
    other = [("x" * 22) if name == topic else found for name, found in zip(of.topic, of.topic_id, strict=True)]
    anew = replace(view, partitions=replace(of, topic_id=other))
    assert states_behind(lambda: tree, logs, anew) == ()
    gone = replace(view, partitions=replace(of, topic=[f"no-{name}" for name in of.topic]))
    assert states_behind(lambda: tree, logs, gone) == ()


@pytest.mark.parametrize("why", [Absent.MISSING, Absent.DENIED])
def test_a_state_that_cannot_be_read_makes_all_unknown(logs: MetadataLogs, why: Absent) -> None:
    """By its path: never taken for one that is high enough."""
    path, _ = first_with_epoch(logs)
    tree = golden(AT)
    view = viewed(tree)
    hidden = BackupTree(tree.connect, {**tree.znodes, path: why})
    found = states_behind(lambda: hidden, logs, view)
    assert isinstance(found, Unknown)
    assert f"{path} is {why.value}" in found.reason


def test_without_logs_or_a_tree_nothing_is_read(logs: MetadataLogs) -> None:
    """And the reason is theirs."""

    def nobody() -> BackupTree:
        raise AssertionError

    view = viewed(golden(AT))
    assert states_behind(nobody, Unknown("controller 3000 runs"), view) == Unknown("controller 3000 runs")
    assert states_behind(nobody, logs, Unknown("no session")) == Unknown("no session")
