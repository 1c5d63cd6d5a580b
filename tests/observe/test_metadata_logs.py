"""What stopped controllers' logs prove: how far a majority wrote, and the image of that."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, ZookeeperView
from migrate.observe.metadata_logs import metadata_logs, states_behind
from migrate.protocol import records
from migrate.protocol.batches import split
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.layout import Absent, Znode, partition_states
from migrate.zookeeper.read import view_of
from tests.kraft.logs import DATA, STAGES, T1, batch, captured_log, snapshot, topic
from tests.observe.test_metadata_files import DIGESTER, controller
from tests.testing.encoding import build, encode_control
from tests.testing.golden_trees import golden

VOTERS = (3000, 3001, 3002)


def hybrid(*more: bytes) -> tuple[bytes, int, int]:
    """The log of a real migration as a broker is in KRaft mode: with it the end and the last epoch."""
    raw = captured_log()[: STAGES["first-broker-kraft"][0]] + b"".join(more)
    last = list(split(raw, where="test"))[-1]
    return raw, last.last_offset + 1, last.epoch


def looked_at(folder: Path, logs: dict[int, bytes]) -> MetadataLogs | Unknown:
    """Directories with these logs; controllers without one have none."""
    made = {node: controller(folder, node, raw) for node, raw in logs.items()}
    return metadata_logs({NodeId(node): made.get(node, folder / f"none-{node}") for node in VOTERS}, DIGESTER)


def test_a_real_log_tells_its_end_and_its_image(tmp_path: Path) -> None:
    """A quiet quorum writes a NoOp twice a second: it moves the end, and nothing of the image."""
    raw, end, epoch = hybrid()
    found = looked_at(tmp_path, dict.fromkeys(VOTERS, raw))
    assert isinstance(found, MetadataLogs)
    assert (found.end, found.state, found.holders) == (end, ZkMigrationState.MIGRATION, VOTERS)
    assert found.epoch >= epoch
    assert found.registered == (0, 1, 2)
    longer = raw + batch((records.NO_OP, {}), base=end, epoch=epoch)
    again = looked_at(tmp_path / "noop", dict.fromkeys(VOTERS, longer))
    assert isinstance(again, MetadataLogs)
    assert again.end == end + 1
    assert image(again).entities == image(found).entities
    assert (image(again).offset, image(again).committed) == (end, True)


def test_directories_of_a_dynamic_quorum_that_never_ran_tell_the_voters_they_were_formatted_with(
    tmp_path: Path,
) -> None:
    """They hold no metadata: the list is what counts, and a log ends it."""
    voters = {3000: "h" * 21 + "A", 3001: "i" * 21 + "A"}
    listed = [
        {
            "voterId": node,
            "voterDirectoryId": identity,
            "endpoints": [{"name": "CTL", "host": "::1" if node == 3001 else "c0", "port": 9090}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        for node, identity in voters.items()
    ]
    head = [encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 0})]
    head.append(encode_control("KRAFT_VOTERS", {"version": 0, "voters": listed}))
    raw = build(0, 0, head, control=True)
    raw += build(2, 0, [encode_control("SNAPSHOT_FOOTER", {"version": 0})], control=True)
    for node in voters:
        part = tmp_path / str(node) / PARTITION_DIRECTORY
        part.mkdir(parents=True)
        (part / f"{0:020d}-{0:010d}.checkpoint").write_bytes(raw)
    places = {NodeId(node): tmp_path / str(node) for node in voters}
    text = f"3000@c0:9090:{voters[3000]},3001@[::1]:9090:{voters[3001]}"
    assert metadata_logs(places, DIGESTER) == MetadataLogs(formatted=dict.fromkeys(places, text))


def image(found: MetadataLogs | Unknown) -> KraftView:
    """The image at the committed end."""
    assert isinstance(found, MetadataLogs)
    assert found.view is not None
    return found.view


def test_a_topic_made_at_the_last_moment_is_in_the_image(tmp_path: Path) -> None:
    """Behind it a NoOp."""
    raw, end, epoch = hybrid()
    topic = batch((records.TOPIC, {"name": "late", "topicId": T1}), base=end, epoch=epoch)
    raw += topic + batch((records.NO_OP, {}), base=end + 1, epoch=epoch)
    found = looked_at(tmp_path, dict.fromkeys(VOTERS, raw))
    assert isinstance(found, MetadataLogs)
    assert found.end == end + 2
    assert "late" in image(found).entities.key


def test_what_only_the_leader_wrote_was_promised_to_nobody(tmp_path: Path) -> None:
    """No majority has it: it is not committed, and not missed."""
    raw, end, epoch = hybrid()
    late = raw + batch((records.TOPIC, {"name": "late", "topicId": T1}), base=end, epoch=epoch)
    found = looked_at(tmp_path, {3000: late, 3001: raw, 3002: raw})
    assert isinstance(found, MetadataLogs)
    assert found.end == end
    assert "late" not in image(found).entities.key
    two = looked_at(tmp_path / "two", {3000: late, 3001: late, 3002: raw})
    assert isinstance(two, MetadataLogs)
    assert two.end == end + 1
    assert "late" in image(two).entities.key


def test_too_few_logs_prove_no_end(tmp_path: Path) -> None:
    """One of three may lack what the others have."""
    raw, _, _ = hybrid()
    found = looked_at(tmp_path, {3000: raw})
    assert isinstance(found, MetadataLogs)
    assert isinstance(found.end, Unknown)
    assert found.holders == (3000,)


def test_a_damaged_log_counts_for_nothing(tmp_path: Path) -> None:
    """Beside two whole ones, which heard of an epoch that the third may have led; alone nothing is known."""
    raw, _, _ = hybrid()
    found = looked_at(tmp_path, {3000: raw, 3001: raw, 3002: raw[:-5]})
    assert isinstance(found, MetadataLogs)
    assert isinstance(found.end, Unknown)
    alone = looked_at(tmp_path / "alone", {3000: raw[:-5]})
    assert isinstance(alone, Unknown)
    assert "E-BATCH-02" in alone.reason


def test_formatted_directories_hold_no_log(tmp_path: Path) -> None:
    """What kafka-storage makes is a bootstrap.checkpoint; and nothing at all is nothing, too."""
    assert looked_at(tmp_path, {}) == MetadataLogs()
    home = tmp_path / "c3000"
    home.mkdir()
    shutil.copy(DATA / "bootstrap.checkpoint", home)
    assert metadata_logs({NodeId(3000): home}, DIGESTER) == MetadataLogs()


@pytest.mark.slow
def test_the_epoch_is_the_newest_that_the_directory_heard_of(tmp_path: Path) -> None:
    """A controller that stood for election after the last record, or the log's own where nothing else tells."""
    raw, _, epoch = hybrid()
    made = {NodeId(node): controller(tmp_path, node, raw) for node in VOTERS}
    for heard, told in ((epoch, epoch), (epoch + 3, epoch + 3), (None, epoch)):
        for path in made.values():
            state = path / "__cluster_metadata-0" / "quorum-state"
            if heard is None:
                state.unlink()
            else:
                body = json.loads(state.read_text("utf-8"))
                state.write_text(json.dumps({**body, "leaderEpoch": heard}), "utf-8")
        found = metadata_logs(made, DIGESTER)
        assert isinstance(found, MetadataLogs)
        assert found.epoch == told


def test_a_directory_with_a_snapshot_alone_counts(tmp_path: Path) -> None:
    """A controller that had fetched it and was stopped before the log went on."""
    part = tmp_path / "c3000" / "__cluster_metadata-0"
    part.mkdir(parents=True)
    (part / f"{9:020d}-{3:010d}.checkpoint").write_bytes(snapshot(topic("a", T1)))
    found = metadata_logs({NodeId(3000): tmp_path / "c3000"}, DIGESTER)
    assert isinstance(found, MetadataLogs)
    assert found.holders == (3000,)


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


@pytest.mark.slow
@pytest.mark.parametrize("stage", [name for name in STAGES if name != "controllers-up"])
def test_in_a_real_migration_that_makes_no_topic_in_dual_write_none_is_behind(stage: str, tmp_path: Path) -> None:
    """212 partitions, each version at least the partition epoch, at each stage."""
    seen = looked_at(tmp_path, dict.fromkeys(VOTERS, captured_log()[: STAGES[stage][0]]))
    assert isinstance(seen, MetadataLogs)
    assert len(seen.partitions) == 212
    tree = golden(stage)
    assert states_behind(lambda: tree, seen, viewed(tree)) == ()


@pytest.mark.slow
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
