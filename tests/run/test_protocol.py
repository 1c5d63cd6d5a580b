"""A ZooKeeper-mode cluster in memory gets inter.broker.protocol.version 3.9 and its old files back, killed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pytest

from migrate.errors import NoProgress, NothingToPlan, PlanStopped
from migrate.hosts.leftovers import BACKUP_SUFFIX, kept_files
from migrate.hosts.properties import parse
from migrate.model.config_keys import IBP
from migrate.model.history import concluded
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan, PlanKind
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ControllerZnode
from migrate.model.world import Need, World
from migrate.plan import protocol
from migrate.report.plan_verdict import may_begin
from migrate.run.carry_out import gone_back, what_is_found
from migrate.steps.facts import sha256
from tests.run.test_engine import run
from tests.testing import worlds
from tests.testing.killing import memory_folder
from tests.testing.simulated import KillAt, Killed, SimulatedCluster
from tests.testing.worlds import BROKERS, zk

CONFIGS = {node: f"/conf/b{node}.properties" for node in (0, 1, 2)}
NOT_SAID = Unknown("connection refused")


@dataclass(slots=True)
class ProtocolCluster(SimulatedCluster):
    """State beside the base's: with which version each process was started, and the session that it then got."""

    versions: dict[int, str] = field(default_factory=dict)
    overrides: dict[int, str] = field(default_factory=dict)  # --override on a broker's command line
    sessions: dict[int, int] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)  # brokers that do not describe their configuration
    goes_silent: bool = False  # whoever is restarted
    controller: int = 0

    @classmethod
    def of(cls, *versions: str) -> Self:
        """Three brokers whose files have these versions, or none for ""; all run with them."""
        cluster = cls.in_zookeeper_mode()
        for node, version in enumerate(versions):
            line = f"{IBP}={version}\n".encode() if version else b""
            raw = cluster.files[node, CONFIGS[node]].replace(f"{IBP}=3.9\n".encode(), line)
            cluster.files[node, CONFIGS[node]] = raw
            cluster.running[node] = sha256(raw)
            cluster.appear(node)
        return cluster

    def appear(self, node: int) -> None:
        """With the version of its file, or of its command line, and a new session."""
        value = parse(self.files[node, CONFIGS[node]]).get(IBP, "3.9-IV0")
        self.versions[node] = self.overrides.get(node, value)
        self.sessions[node] = max(self.sessions.values(), default=100) + 1

    def stop(self, node: NodeId, timeout: float) -> None:
        """Another broker takes /controller over."""
        SimulatedCluster.stop(self, node, timeout)
        if node == self.controller:
            self.controller = min(set(self.running) & set(map(int, BROKERS)))

    def start(self, node: NodeId) -> None:
        """As any process."""
        SimulatedCluster.start(self, node)
        if node in BROKERS:
            self.appear(int(node))
            self.silent |= {int(node)} if self.goes_silent else set()

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """With copies beside the files, sessions and the brokers' own words."""
        world = SimulatedCluster.observe(self, needs, facts)
        said = {
            node: NOT_SAID if int(node) in self.silent or int(node) not in self.running else self.versions[int(node)]
            for node in BROKERS
        }
        view = zk(world)
        alive = {node: replace(entry, epoch=self.sessions[int(node)]) for node, entry in view.brokers.items()}
        assert not isinstance(world.configs, Unknown)
        kept = {node: kept_files(self, node, world.configs.get(node)) for node in BROKERS}
        if isinstance(view.controller, ControllerZnode) and view.controller.ephemeral:
            view = replace(view, controller=replace(view.controller, id=self.controller))
        return replace(world, zookeeper=replace(view, brokers=alive), backups=kept, protocols=said)


def plan_for(cluster: ProtocolCluster, *, back: bool = False) -> Plan:
    """From where it stands, there or back."""
    playbook = replace(worlds.playbook(), stages=(Stage.PROTOCOL,))
    return protocol.build(cluster.observe(protocol.PLANNED_ON, {}), playbook, created=1.0, back=back)


def carry_out(cluster: ProtocolCluster, folder: Path, kill: KillAt | None = None, *, back: bool = False) -> Plan:
    """Plan, and run."""
    folder.mkdir(exist_ok=True)
    plan = plan_for(cluster, back=back)
    run(cluster, plan, folder, kill)
    return plan


# -- there and back --------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_each_broker_is_restarted_with_one_key_changed_and_the_controller_last(tmp_path: Path) -> None:
    """Broker 0 has /controller; a copy of each file is kept, and each process says the version itself."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    before = dict(cluster.files)
    plan = plan_for(cluster)
    assert plan.kind is PlanKind.PROTOCOL
    events = run(cluster, plan, tmp_path)
    turn = ("stop {0}", "write {0} zookeeper", "start {0} zookeeper")
    assert cluster.done == [act.format(node) for node in (1, 2, 0) for act in turn]
    for node, path in CONFIGS.items():
        assert cluster.files[node, path] == before[node, path].replace(b"version=3.8", b"version=3.9")
        assert cluster.files[node, f"{path}{BACKUP_SUFFIX}"] == before[node, path]
    assert concluded(events) == {step.id for step in plan.steps}
    proof = next(e for e in events if e.name == "conclude" and e.data["step"] == "protocol/1")
    assert proof.data["evidence"][0] == f"broker 1 itself says {IBP} 3.9"


@pytest.mark.slow
def test_the_files_come_back_to_the_byte_and_the_same_may_be_done_again(tmp_path: Path) -> None:
    """A plan that is made again is another one: the journal of the first would call it done."""
    cluster = ProtocolCluster.of("3.8", "3.5-IV2", "3.9")
    before = {node: cluster.files[node, path] for node, path in CONFIGS.items()}
    there = carry_out(cluster, tmp_path / "there")
    raised = {node: cluster.files[node, path] for node, path in CONFIGS.items()}
    cluster.done.clear()
    back = carry_out(cluster, tmp_path / "back", back=True)
    assert back.kind is PlanKind.PROTOCOL_BACK
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 0", "stop 1"]  # 1 has /controller now
    assert {node: cluster.files[node, path] for node, path in CONFIGS.items()} == before
    assert cluster.versions == {0: "3.8", 1: "3.5-IV2", 2: "3.9"}
    again = carry_out(cluster, tmp_path / "again")
    assert again.fingerprint != there.fingerprint
    assert {node: cluster.files[node, path] for node, path in CONFIGS.items()} == raised
    assert plan_for(cluster, back=True).fingerprint != back.fingerprint


@pytest.mark.parametrize("versions", [("3.9", "3.9-IV0", "3.9"), ("", "3.9", "")])
def test_where_every_broker_runs_with_the_version_nothing_is_restarted(
    tmp_path: Path, versions: tuple[str, ...]
) -> None:
    """Without the key it is the default of the software."""
    cluster = ProtocolCluster.of(*versions)
    plan = carry_out(cluster, tmp_path)
    assert [step.kind for step in plan.steps] == ["prove-protocol"]
    assert cluster.done == []
    with pytest.raises(NothingToPlan, match="no copy of"):
        plan_for(cluster, back=True)


def test_a_file_that_was_written_by_hand_still_needs_its_restart(tmp_path: Path) -> None:
    """It is the process that counts."""
    cluster = ProtocolCluster.of("3.9", "3.8", "3.9")
    path = CONFIGS[1]
    cluster.files[1, path] = cluster.files[1, path].replace(b"version=3.8", b"version=3.9")
    carry_out(cluster, tmp_path)
    assert cluster.done == ["stop 1", "start 1 zookeeper"]
    assert cluster.versions[1] == "3.9"


def test_a_run_that_goes_on_is_not_taken_for_one_that_was_rolled_back() -> None:
    """Its stage stands behind those of a migration, which has not begun."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    plan, world = plan_for(cluster), cluster.observe(protocol.PLANNED_ON, {})
    gone_back(plan, frozenset(step.id for step in plan.steps[:4]), world)
    assert what_is_found(plan, world).startswith("stage assess")


@pytest.mark.slow
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_killed_before_or_after_any_effect_the_run_ends_the_same(tmp_path: Path, back: bool) -> None:
    """By the same plan and its journal; no broker is restarted twice."""

    def start(folder: Path) -> ProtocolCluster:
        cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
        if back:
            carry_out(cluster, folder)
            cluster.done.clear()
        return cluster

    reference, count = start(tmp_path / "first"), KillAt()
    carry_out(reference, tmp_path / "reference", count, back=back)
    with memory_folder() as memory:
        for point in range(1, count.passed + 1):
            cluster = start(memory / f"first-{point}")
            plan, folder = plan_for(cluster, back=back), memory / str(point)
            folder.mkdir()
            with pytest.raises(Killed):
                run(cluster, plan, folder, KillAt(point))
            run(cluster, plan, folder)
            assert cluster.done == reference.done, f"killed at point {point}"
            assert cluster.files == reference.files


# -- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("2.8", "3.0 and later alone"),
        ("0.11.0", "3.0 and later alone"),
        ("4.0-IV0", "3.0 and later alone"),
        ("newest", "3.0 and later alone"),
    ],
)
def test_a_version_that_is_not_raised_is_refused_with_the_reason(version: str, says: str) -> None:
    """Before 3.0 the message format hangs on it."""
    with pytest.raises(NothingToPlan, match=says):
        plan_for(ProtocolCluster.of("3.8", version, "3.8"))


def test_a_version_that_comes_from_elsewhere_than_the_file_is_refused() -> None:
    """--override: the file's value is not the broker's."""
    cluster = ProtocolCluster.of("3.9", "3.9", "3.9")
    cluster.versions[2] = "3.8"
    with pytest.raises(NothingToPlan, match="such as --override on its command line"):
        plan_for(cluster)


def test_a_broker_that_does_not_say_its_version_is_not_guessed() -> None:
    """Nor one whose file was not read."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    cluster.silent = {1}
    with pytest.raises(NothingToPlan, match="broker 1 runs with is not known: connection refused"):
        plan_for(cluster)


def in_migration_mode(cluster: ProtocolCluster) -> None:
    """One file is of the first roll."""
    cluster.files[1, CONFIGS[1]] += b"zookeeper.metadata.migration.enable=true\n"


def with_controllers(cluster: ProtocolCluster) -> None:
    """They have made /migration."""
    cluster.bend = lambda world: replace(world, zookeeper=worlds.world_at(Stage.CONTROLLERS).zookeeper)


@pytest.mark.parametrize("bend", [in_migration_mode, with_controllers], ids=lambda bend: bend.__name__)
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_once_a_migration_has_begun_no_version_is_changed(bend: Callable[[ProtocolCluster], None], back: bool) -> None:
    """The controllers' metadata.version is the brokers' protocol version, and stays so."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    bend(cluster)
    with pytest.raises(NothingToPlan, match=r"roll back the migration first|/migration waits"):
        plan_for(cluster, back=back)


def test_what_speaks_against_a_restart_blocks_the_plan_and_what_is_krafts_does_not() -> None:
    """B-CFG-08 is about the brokers, B-CFG-03 about KRaft: the blockers of a restart count."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    assert may_begin(plan_for(cluster))

    def without_session_of_two(world: World) -> World:
        view = zk(world)
        return replace(world, zookeeper=replace(view, brokers={n: e for n, e in view.brokers.items() if n != 2}))

    cluster.bend = without_session_of_two
    plan = plan_for(cluster)
    assert not may_begin(plan)
    assert "B-CFG-08" in {entry.code for entry in plan.findings}
    cluster.bend = lambda world: worlds.with_values(world, 1, broker__id=None)
    assert may_begin(plan_for(cluster))


# -- what stops it ---------------------------------------------------------------------------------------------------
def test_a_broker_that_keeps_the_old_version_stops_the_run_before_the_next_one(tmp_path: Path) -> None:
    """The word of the process decides, whatever its file says."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    plan = plan_for(cluster)
    cluster.overrides = {1: "3.8"}
    with pytest.raises(PlanStopped, match=r"broker 1 runs with inter\.broker\.protocol\.version 3\.8, and its file"):
        run(cluster, plan, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 1"]


@pytest.mark.slow
def test_a_broker_that_does_not_answer_after_its_restart_is_waited_for(tmp_path: Path) -> None:
    """And the next one is not stopped."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    plan = plan_for(cluster)
    cluster.goes_silent = True
    with pytest.raises(NoProgress, match="broker 1 to answer"):
        run(cluster, plan, tmp_path)
    assert [act for act in cluster.done if act.startswith("stop")] == ["stop 1"]


def test_a_cluster_that_is_not_whole_is_not_touched(tmp_path: Path) -> None:
    """A directory that broke after the plan, or a copy that went."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    plan = plan_for(cluster)
    cluster.bend = lambda world: worlds.with_directory(world, 1, 0, lambda entry: replace(entry, problem="gone"))
    with pytest.raises(PlanStopped, match="not healthy"):
        run(cluster, plan, tmp_path)
    assert cluster.done == []


@pytest.mark.slow
def test_a_rollback_whose_copy_went_stops_before_the_broker(tmp_path: Path) -> None:
    """A file is never generated."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    carry_out(cluster, tmp_path / "there")
    cluster.done.clear()
    plan = plan_for(cluster, back=True)
    del cluster.files[1, f"{CONFIGS[1]}{BACKUP_SUFFIX}"]
    (tmp_path / "back").mkdir()
    with pytest.raises(PlanStopped, match=r"no copy of /conf/b1\.properties"):
        run(cluster, plan, tmp_path / "back")
    assert "stop 1" not in cluster.done


def test_the_file_of_a_broker_that_cannot_be_read_is_not_planned_back() -> None:
    """Missing is never fine."""
    cluster = ProtocolCluster.of("3.8", "3.8", "3.8")
    world = cluster.observe(protocol.PLANNED_ON, {})
    assert not isinstance(world.configs, Unknown)
    assert isinstance(world.configs[NodeId(1)], ConfigFile)
    blind = replace(world, configs={**world.configs, NodeId(1): Unknown("hidden")})
    playbook = replace(worlds.playbook(), stages=(Stage.PROTOCOL,))
    with pytest.raises(NothingToPlan, match="hidden"):
        protocol.build(blind, playbook, created=1.0, back=True)
