"""Whatever stands in files and views, and whatever cannot be seen: checks answer, they do not fail."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate import checks
from migrate.checks.registry import CHECKS
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from tests.checks.cases import CASES
from tests.testing import worlds
from tests.testing.blocking import blocking
from tests.testing.worlds import world_at

PARTS = ("zookeeper", "kraft", "disks", "live", "configs", "services", "ledger", "diff", "playbook")
NODES = (*worlds.BROKERS, *worlds.CONTROLLERS)
STAGES = st.sampled_from(list(Stage))
ASKED_FOR = {
    "control.plane.listener.name",
    "reserved.broker.max.id",
    "zookeeper.set.acl",
    "sasl.mechanism.controller.protocol",
}


def keys() -> set[str]:
    """Every key of a healthy cluster's files at any stage, and some that only checks know."""
    found = set(ASKED_FOR)
    for stage in Stage:
        configs = world_at(stage).configs
        assert not isinstance(configs, Unknown)
        found |= {key for file in configs.values() if isinstance(file, ConfigFile) for key in file.values}
    return found


KEYS = st.sampled_from(sorted(keys()))
GARBAGE = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            " ",
            "-1",
            "9" * 40,
            "\u0661",
            ":",
            "::,",
            "@",
            "1@",
            "a@b:c,",
            ";;",
            "SASL_SSL",
            "X:SASL_PLAINTEXT",
            "${a:b}",
        ]
    ),
)


def hits(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    """What is really found, apart from what is not seen."""
    return {(entry.code, entry.about) for entry in findings if entry.severity is not Severity.BLIND_SPOT}


@pytest.mark.slow
@given(STAGES, st.lists(st.tuples(st.sampled_from(NODES), KEYS, GARBAGE), max_size=6))
def test_any_value_in_any_file_is_an_answer(stage: Stage, changes: list[tuple[NodeId, str, str | None]]) -> None:
    """Files are written by people and by templates."""
    world = world_at(stage)
    assert not isinstance(world.configs, Unknown)
    for node, key, value in changes:
        if isinstance(world.configs.get(node), ConfigFile):
            world = worlds.with_values(world, node, **{key.replace(".", "__"): value})
    for entry in checks.run(world, target=stage):
        assert entry.about.isprintable()
        assert entry.message.isprintable()


@pytest.mark.slow
@given(STAGES, st.sets(st.sampled_from(PARTS)))
def test_what_is_hidden_never_turns_into_a_pass_of_what_depends_on_it(stage: Stage, hidden: set[str]) -> None:
    """Every check that could speak before either speaks still, is blind, or belongs to another phase now."""
    world = world_at(stage)
    less = replace(world, **{part: Unknown("hidden") for part in hidden})  # type: ignore[arg-type]
    for entry in checks.run(less, target=stage):
        if entry.severity is Severity.BLIND_SPOT:
            assert entry.blocks_from == (checks.NEVER if CHECKS[entry.code].proof else CHECKS[entry.code].blocks_from)
            assert entry.evidence
    if {"zookeeper", "kraft", "disks", "live", "configs"} <= hidden and stage < Stage.CLEANUP:
        assert blocking(checks.run(less, target=stage), Stage.FINALIZE)


@pytest.mark.slow
@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("playbook", "services")])
def test_a_blocker_whose_view_is_hidden_is_blind_or_still_found(part: str) -> None:
    """Hiding a view from a cluster with a fault never lets a plan through: the code is there in either form."""
    for case in CASES:
        if case.code[0] == "B":
            bent = replace(case.bend(world_at(case.stage)), **{part: Unknown("hidden")})  # type: ignore[arg-type]
            assert case.code in {entry.code for entry in checks.run(bent, target=Stage.CLEANUP)}, case.name


@pytest.mark.slow
@given(st.integers(0, 2), st.integers(0, 2))
def test_the_order_of_brokers_and_directories_means_nothing(broker: int, index: int) -> None:
    """The same findings when the disks' mapping is turned around."""
    world = worlds.with_directory(
        world_at(Stage.HYBRID), broker, index, lambda entry: replace(entry, problem="is gone")
    )
    assert not isinstance(world.disks, Unknown)
    turned = replace(world, disks=dict(reversed(list(world.disks.items()))))
    assert hits(checks.run(world, target=Stage.COPY)) == hits(checks.run(turned, target=Stage.COPY))


@pytest.mark.slow
def test_one_partition_of_a_hundred_thousand_replicas_is_judged_in_linear_time() -> None:
    """In ZooKeeper and in the metadata; it took a minute and more, and takes some seconds of CPU now."""
    many = list(range(100_000))
    for stage in (Stage.ASSESS, Stage.COPY):
        world = world_at(stage)
        for view in (world.zookeeper, world.kraft):
            if isinstance(view, Unknown) or not len(view.partitions):
                continue
            rows = view.partitions
            for column in fields(rows):
                getattr(rows, column.name).append(getattr(rows, column.name)[0])
            rows.topic[-1], rows.replicas[-1], rows.isr[-1] = "wide", many, many
            rows.directories[-1] = rows.directories[0][:1] * len(many)
        began = time.process_time()
        found = checks.run(world, target=stage)
        assert time.process_time() - began < 20
        assert found
