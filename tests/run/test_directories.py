"""A KRaft cluster in memory gets log directories and gives them back: killed at every effect, and refused by name."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DirectoriesRefused, DirectoryInUse, NothingToPlan, PlanIsStale, PlanStopped
from migrate.model.history import concluded
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import PlanKind
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ConfigFile, MetaProperties
from migrate.model.world import World
from migrate.steps.registry import rebuild
from tests.run.test_engine import Labels, run
from tests.steps.looks import SICK
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID
from tests.testing.killing import memory_folder
from tests.testing.simulated import KillAt, Killed
from tests.testing.simulated_kraft import NEW, KraftCluster, plan_for

CONFIGS = {node: f"/conf/b{node}.properties" for node in (0, 1, 2)}


def start() -> KraftCluster:
    """One directory a broker."""
    return KraftCluster.with_one_directory()


def grown(folder: Path) -> KraftCluster:
    """Three directories a broker, by our own run; what was done until then is forgotten."""
    cluster = start()
    carry_out(cluster, folder)
    cluster.done.clear()
    return cluster


def carry_out(cluster: KraftCluster, folder: Path, kill: KillAt | None = None, *, back: bool = False) -> None:
    """Plan from where it stands, and run."""
    folder.mkdir(exist_ok=True)
    run(cluster, plan_for(cluster, back=back), folder, kill)


def stopped(cluster: KraftCluster, folder: Path, *, back: bool = False) -> str:
    """Why the run stops."""
    with pytest.raises(PlanStopped) as caught:
        carry_out(cluster, folder, back=back)
    return str(caught.value)


# -- there -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_each_broker_gets_its_directories_one_at_a_time(tmp_path: Path) -> None:
    """Stopped, written, formatted by Kafka's tool, started; the metadata log's directory stays the first."""
    cluster = start()
    plan = plan_for(cluster)
    events = run(cluster, plan, tmp_path)
    turn = ("stop {0}", "write {0} kraft", "format {0} 2", "start {0} kraft")
    assert cluster.done == [act.format(node) for node in (0, 1, 2) for act in turn]
    for node in (0, 1, 2):
        assert cluster.paths(node) == (f"/data/b{node}/d0", *NEW[NodeId(node)])
        assert len(cluster.registered_ids[node]) == 3
    assert concluded(events) == {step.id for step in plan.steps}
    proof = next(e for e in events if e.name == "conclude" and e.data["step"] == "directories/1")
    assert "3 directories as on disk" in " ".join(proof.data["evidence"])
    assert any(event.data.get("key") == "formatted:1" for event in events if event.name == "note")


@pytest.mark.slow
def test_nothing_else_of_the_file_changes_and_a_copy_is_kept(tmp_path: Path) -> None:
    """One key, in place; metadata.log.dir is not invented."""
    cluster = start()
    before = dict(cluster.files)
    carry_out(cluster, tmp_path)
    for node, path in CONFIGS.items():
        old, new = before[node, path], cluster.files[node, path]
        changed = set(new.splitlines()) ^ set(old.splitlines())
        assert all(line.startswith(b"log.dirs=") for line in changed)
        assert b"metadata.log.dir" not in new
        assert cluster.files[node, f"{path}.kraft-migrate-backup"] == old


@pytest.mark.slow
def test_killed_before_or_after_any_effect_the_run_ends_the_same(tmp_path: Path) -> None:
    """Nothing happens twice; a broker is never started on a bare directory (the simulated one would refuse)."""
    reference, count = start(), KillAt()
    carry_out(reference, tmp_path / "reference", count)
    plan = plan_for(start())
    with memory_folder() as memory:
        for point in range(1, count.passed + 1):
            cluster, folder = start(), memory / str(point)
            folder.mkdir()
            with pytest.raises(Killed):
                run(cluster, plan, folder, KillAt(point))
            run(cluster, plan, folder)
            acts = [act for act in cluster.done if not act.startswith("format")]
            assert acts == [act for act in reference.done if not act.startswith("format")], f"killed at point {point}"
            assert set(cluster.files) == set(reference.files)
            assert cluster.registered_ids.keys() == reference.registered_ids.keys()
            assert all(len(ids) == 3 for ids in cluster.registered_ids.values())


@pytest.mark.slow
def test_killed_anywhere_a_new_plan_without_the_journal_ends_the_same(tmp_path: Path) -> None:
    """What is left is found in the brokers' files: a broker that is down has to be started first, by its owner."""
    points = Labels()
    carry_out(start(), tmp_path / "reference", points)
    behind = [number for number, label in enumerate(points.labels, 1) if label.startswith("after:")]
    assert len(behind) > 5
    with memory_folder() as memory:
        for point in (1, *behind):  # what a new plan finds between two effects is one
            cluster = start()
            with pytest.raises(Killed):
                carry_out(cluster, memory / str(point), KillAt(point))
            for node in (0, 1, 2):
                if node not in cluster.running:
                    bare = len(cluster.ids(node)) < len(cluster.paths(node))
                    if bare:
                        cluster.format_storage(NodeId(node), CLUSTER_ID, "3.9-IV0", ignore_formatted=True)
                    cluster.start(NodeId(node))
            carry_out(cluster, memory / f"{point}-anew")
            assert all(len(ids) == 3 for ids in cluster.registered_ids.values())


@pytest.mark.slow
def test_a_second_plan_has_nothing_to_change(tmp_path: Path) -> None:
    """It looks, and proves."""
    cluster = grown(tmp_path)
    plan = plan_for(cluster)
    assert [step.kind for step in plan.steps] == ["prove-directories"]
    assert not any(step.actions for step in plan.steps)
    (tmp_path / "again").mkdir()
    run(cluster, plan, tmp_path / "again")
    assert cluster.done == []


@pytest.mark.slow
def test_only_brokers_that_lack_a_directory_are_restarted(tmp_path: Path) -> None:
    """Lists may differ; one broker gets none."""
    cluster = start()
    cluster.wanted = {NodeId(0): NEW[NodeId(0)][:1], NodeId(2): NEW[NodeId(2)]}
    carry_out(cluster, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 0", "stop 2"]
    assert cluster.paths(1) == ("/data/b1/d0",)


@pytest.mark.slow
def test_a_migrated_cluster_is_fine_too(tmp_path: Path) -> None:
    """POST_MIGRATION, as our own migration leaves it."""
    cluster = start()
    cluster.state_is = ZkMigrationState.POST_MIGRATION
    carry_out(cluster, tmp_path)
    assert all(len(ids) == 3 for ids in cluster.registered_ids.values())


# -- back ------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_empty_directories_are_taken_away_again_and_nothing_is_deleted(tmp_path: Path) -> None:
    """The files are those of before; each meta.properties has another name."""
    cluster = grown(tmp_path / "there")
    plan = plan_for(cluster, back=True)
    assert plan.kind is PlanKind.DIRECTORIES_BACK
    assert plan.needs_confirmation
    metas = [key for key in cluster.files if key[1].startswith("/new") and key[1].endswith("/meta.properties")]
    kept = {key: cluster.files[key] for key in metas}
    assert len(kept) == 6
    carry_out(cluster, tmp_path / "back", back=True)
    for node, path in CONFIGS.items():
        assert cluster.files[node, path] == start().files[node, path]
        assert len(cluster.registered_ids[node]) == 1
    for (node, path), raw in kept.items():
        assert (node, path) not in cluster.files
        name = f"{path}.kraft-migrate-set-aside"
        aside = [key for key in cluster.files if key[0] == node and key[1].startswith(name)]
        assert [cluster.files[key] for key in aside] == [raw]


@pytest.mark.slow
def test_there_back_and_there_again(tmp_path: Path) -> None:
    """What the rollback leaves in a directory does not make it another one's."""
    cluster = grown(tmp_path / "there")
    carry_out(cluster, tmp_path / "back", back=True)
    carry_out(cluster, tmp_path / "again")
    assert all(len(ids) == 3 for ids in cluster.registered_ids.values())


@pytest.mark.slow
def test_a_rollback_killed_at_any_effect_ends_the_same(tmp_path: Path) -> None:
    """As the way there."""
    start_of_it, count = grown(tmp_path / "there"), KillAt()
    reference = deepcopy(start_of_it)
    carry_out(reference, tmp_path / "reference", count, back=True)
    plan = plan_for(start_of_it, back=True)
    with memory_folder() as memory:
        for point in range(1, count.passed + 1):
            cluster, folder = deepcopy(start_of_it), memory / str(point)
            folder.mkdir()
            with pytest.raises(Killed):
                run(cluster, plan, folder, KillAt(point))
            run(cluster, plan, folder)
            assert cluster.done == reference.done, f"killed at point {point}"
            assert set(cluster.files) == set(reference.files)


def test_replicas_in_a_directory_are_named_with_what_moves_them(tmp_path: Path) -> None:
    """No plan, nothing done."""
    cluster = grown(tmp_path / "there")
    cluster.plant(1, "/new/b1/e0")
    with pytest.raises(DirectoriesRefused, match=r"/new/b1/e0 of broker 1 holds 1 replicas: late-0") as caught:
        plan_for(cluster, back=True)
    assert "kafka-reassign-partitions.sh" in caught.value.next_step


@pytest.mark.slow
def test_a_replica_that_comes_as_the_broker_stops_is_found_and_the_broker_started_as_it_was(tmp_path: Path) -> None:
    """Between the look and the stop a topic was made."""
    cluster = grown(tmp_path / "there")
    before = dict(cluster.files)
    cluster.when_stopped = lambda node: cluster.plant(1, "/new/b1/e1") if node == 1 else None
    with pytest.raises(DirectoryInUse, match="late-0"):
        carry_out(cluster, tmp_path / "back", back=True)
    assert cluster.files[1, CONFIGS[1]] == before[1, CONFIGS[1]]
    assert 1 in cluster.running
    assert cluster.done[-2:] == ["stop 1", "start 1 kraft"]


# -- refused ---------------------------------------------------------------------------------------------------------
def broken(cluster: KraftCluster) -> None:
    """The disk is not there."""
    cluster.broken["/new/b1/e0"] = "does not exist"


def strange(cluster: KraftCluster) -> None:
    """Something lies in it."""
    cluster.files[1, "/new/b1/e0/photos"] = b""


def used(cluster: KraftCluster) -> None:
    """Another broker's log directory, by another path."""
    cluster.taken["/new/b1/e0"] = "/data/b2/d0 of node 2"


def formatted_for_another(cluster: KraftCluster) -> None:
    """A disk that came from another broker."""

    def bend(world: World) -> World:
        assert not isinstance(world.new_directories, Unknown)
        entries = world.new_directories[NodeId(1)]
        assert not isinstance(entries, Unknown)
        meta = MetaProperties(1, CLUSTER_ID, 9, None)
        bent = replace(entries[0], directory=replace(entries[0].directory, meta=meta))
        return replace(world, new_directories={**world.new_directories, NodeId(1): (bent, *entries[1:])})

    cluster.bend = bend


def holds_replicas(cluster: KraftCluster) -> None:
    """A disk with data."""
    cluster.plant(1, "/new/b1/e0")


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (broken, "does not exist"),
        (strange, "not empty: photos"),
        (used, "is, contains or is in /data/b2/d0 of node 2"),
        (formatted_for_another, "cluster .* and node 9"),
        (holds_replicas, "holds replicas: late-0"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_directory_that_is_not_fit_is_refused_by_name(bend: object, says: str) -> None:
    """Before anything is planned."""
    cluster = start()
    bend(cluster)  # type: ignore[operator]
    with pytest.raises(DirectoriesRefused, match=rf"/new/b1/e0 cannot become a log directory of broker 1: .*{says}"):
        plan_for(cluster)


@pytest.mark.parametrize("bend", [broken, strange, used, holds_replicas], ids=lambda value: value.__name__)
def test_what_becomes_unfit_after_the_plan_stops_the_run_before_that_broker(tmp_path: Path, bend: object) -> None:
    """Looked at again before each stop."""
    cluster = start()
    plan = plan_for(cluster)
    bend(cluster)  # type: ignore[operator]
    with pytest.raises(PlanStopped, match="/new/b1/e0 cannot become a log directory of broker 1"):
        run(cluster, plan, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 0"]
    assert cluster.running.keys() >= {0, 1, 2}


def test_a_metadata_version_without_directories_is_refused_with_what_raises_it() -> None:
    """We say how, and never do it."""
    cluster = start()
    cluster.level = 16
    with pytest.raises(NothingToPlan, match=r"metadata.version is 16, directories need 17") as caught:
        plan_for(cluster)
    assert "kafka-features.sh" in str(caught.value)


@pytest.mark.parametrize("state", [ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION])
def test_a_cluster_with_zookeeper_is_refused(state: ZkMigrationState) -> None:
    """Its own playbook first."""
    cluster = start()
    cluster.state_is = state
    with pytest.raises(NothingToPlan, match="ZooKeeper is part of this cluster"):
        plan_for(cluster)


def test_a_node_of_both_roles_is_refused_with_the_reason() -> None:
    """Its restart would take a voter away."""
    cluster = start()
    path = CONFIGS[1]
    cluster.files[1, path] = cluster.files[1, path].replace(b"process.roles=broker", b"process.roles=broker,controller")
    with pytest.raises(NothingToPlan, match="a node of both roles is not supported, because"):
        plan_for(cluster)


def test_what_cannot_be_seen_is_never_fine() -> None:
    """The look at the directories, the metadata."""
    for part, says in (("new_directories", "hidden"), ("kraft", "the metadata cannot be read")):
        cluster = start()
        cluster.bend = lambda world, part=part: replace(world, **{part: Unknown("hidden")})  # type: ignore[misc]
        with pytest.raises((DirectoriesRefused, NothingToPlan), match=says):
            plan_for(cluster)


# -- gates -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_cluster_that_is_not_whole_is_not_touched(tmp_path: Path) -> None:
    """Under-replicated: waited for, then left alone."""
    cluster = start()
    plan = plan_for(cluster)

    def bend(world: World) -> World:
        answers = worlds.live(world).metadata
        one = answers[NodeId(1)]
        assert not isinstance(one, Unknown)
        return worlds.with_live(world, metadata={**answers, NodeId(1): replace(one, unhealthy=(SICK,))})

    cluster.bend = bend
    with pytest.raises(Exception, match="full ISR"):
        run(cluster, plan, tmp_path)
    assert cluster.done == []


def test_a_dead_directory_anywhere_stops_the_run(tmp_path: Path) -> None:
    """Not only one of the broker at hand."""
    cluster = start()
    plan = plan_for(cluster)
    cluster.broken["/data/b2/d0"] = "input/output error"
    with pytest.raises(PlanStopped, match="broker 2 has log directories that are not healthy"):
        run(cluster, plan, tmp_path)
    assert cluster.done == []


def test_a_metadata_log_that_moved_is_no_proof(tmp_path: Path) -> None:
    """What adding in front of the list would have done."""
    cluster = start()

    def bend(world: World) -> World:
        bent = worlds.with_directory(world, 0, 0, lambda entry: replace(entry, holds_metadata_log=False))
        return worlds.with_directory(bent, 0, 1, lambda entry: replace(entry, holds_metadata_log=True))

    plan = plan_for(cluster)
    cluster.bend = lambda world: bend(world) if len(cluster.paths(0)) > 1 else world
    with pytest.raises(PlanStopped, match=r"the metadata log of broker 0 is in \['/new/b0/e0'\]"):
        run(cluster, plan, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 0"]


def test_a_file_that_another_hand_changed_makes_the_plan_stale(tmp_path: Path) -> None:
    """Bound to its hash, of every broker."""
    cluster = start()
    plan = plan_for(cluster)
    cluster.files[2, CONFIGS[2]] += b"num.io.threads=3\n"
    with pytest.raises(PlanIsStale):
        run(cluster, plan, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == []


@pytest.mark.slow
def test_every_step_is_rebuilt_from_its_parameters_and_says_how_it_is_undone_and_proven(tmp_path: Path) -> None:
    """A saved plan is enough."""
    cluster = grown(tmp_path)
    plans = (plan_for(start()), plan_for(cluster, back=True))
    for planned in (step for plan in plans for step in plan.steps):
        step = rebuild(planned.kind, planned.params)
        assert (step.id, step.stage, step.title) == (planned.id, Stage.DIRECTORIES, planned.title)
        assert planned.proof
        assert planned.undo
    there = next(step for step in plans[0].steps if step.id == "directories/0")
    assert [action.symbol for action in there.actions] == ["+", "+", "~", ">"]
    assert "+log.dirs=/data/b0/d0,/new/b0/e0,/new/b0/e1" in there.actions[2].diff
    assert there.actions[0].what.startswith("format /new/b0/e0")


@pytest.mark.slow
def test_the_plan_file_of_one_direction_is_not_the_others(tmp_path: Path) -> None:
    """Fingerprints differ, although brokers and directories are the same."""
    cluster = grown(tmp_path)
    assert plan_for(cluster, back=True).fingerprint != plan_for(start()).fingerprint


@pytest.mark.slow
def test_log_dirs_spelled_with_spaces_or_singular_keep_their_own(tmp_path: Path) -> None:
    """`log.dir` alone, and a list with spaces: the new ones come behind."""
    cluster = start()
    for node, line in ((0, b"log.dir=/data/b0/d0"), (1, b"log.dirs= /data/b1/d0 ,")):
        raw = cluster.files[node, CONFIGS[node]]
        cluster.files[node, CONFIGS[node]] = raw = raw.replace(b"log.dirs=/data/b%d/d0" % node, line)
        cluster.running[node] = worlds.config_file(NodeId(node), CONFIGS[node], raw).sha256
    carry_out(cluster, tmp_path)
    assert cluster.paths(0) == ("/data/b0/d0", "/new/b0/e0", "/new/b0/e1")
    assert cluster.paths(1) == ("/data/b1/d0", "/new/b1/e0", "/new/b1/e1")


def test_a_config_file_stays_a_value() -> None:
    """The simulated cluster is what the tests say it is."""
    world = start().observe(frozenset(), {})
    assert not isinstance(world.configs, Unknown)
    file = world.configs[NodeId(0)]
    assert isinstance(file, ConfigFile)
    assert file.values["log.dirs"] == "/data/b0/d0"
    assert "zookeeper.connect" not in file.values
