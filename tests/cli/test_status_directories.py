"""What status says with a DirectoryPlaybook, by what is seen alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrate.cli import status
from migrate.cli.status import describe, named
from migrate.model.detect import detect
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.plan.directories import PLANNED_ON
from migrate.report.status import StatusAnswer, as_text
from migrate.steps import configuration
from tests.run.test_directories import CONFIGS, carry_out, start
from tests.testing.simulated_kraft import NEW, KraftCluster


def told(cluster: KraftCluster) -> StatusAnswer:
    """The answer, as the command makes it."""
    world = cluster.observe(PLANNED_ON, {})
    seen = describe(world)
    seen.pop("unknown", None)
    return named({**seen, **status.directory_stage(world)}, Path("more disks.yaml"))


def states(answer: StatusAnswer) -> list[str]:
    """In the playbook's order."""
    return [row["state"] for row in answer["new_directories"]]


def test_before_between_and_after(tmp_path: Path) -> None:
    """With the next command until all are in use."""
    cluster = start()
    before = told(cluster)
    assert states(before) == ["not yet"] * 6
    assert before["next"] == "plan 'more disks.yaml'"
    assert before["half_done"] is None
    raw = configuration.with_directories(cluster.files[1, CONFIGS[1]], NEW[NodeId(1)])
    half = start()
    half.files[1, CONFIGS[1]] = raw
    assert states(told(half)) == ["not yet"] * 2 + ["in the file, not registered"] * 2 + ["not yet"] * 2
    carry_out(cluster, tmp_path)
    after = told(cluster)
    assert states(after) == ["in use"] * 6
    assert "next" not in after
    text = as_text(after)
    assert "6 of 6 directories of the playbook are in use" in text
    assert "broker 2: /new/b2/e1: in use (directory.id " in text
    assert "rollback" not in text


def test_what_cannot_be_seen_is_unknown() -> None:
    """Never *not yet*."""
    cluster = start()
    cluster.bend = lambda world: replace(world, configs=Unknown("hidden"))
    answer = told(cluster)
    assert states(answer) == ["unknown"] * 6
    assert "6 cannot be seen" in answer["how"]


def test_a_cluster_that_never_had_zookeeper_has_nothing_to_migrate() -> None:
    """And is not taken for one whose controllers were started without the flag."""
    world = start().observe(PLANNED_ON, {})
    here = detect(world)
    assert isinstance(here, Unknown)
    assert "nothing to migrate" in here.reason
    beside = detect(replace(world, inventory=replace(world.inventory, zookeeper="zk1:2181")))
    assert isinstance(beside, Unknown)
    assert "B-MIG-02" in beside.reason
