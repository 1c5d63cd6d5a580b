"""What is wrong comes first: one line, one remedy, and no step forward beside it, whichever command was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.checks.problems import headline, problems
from migrate.checks.processes import BY_RUN, DISK_COMMANDS, start_those
from migrate.cli.status import describe
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from migrate.model.world import World
from migrate.report.status import as_text
from migrate.run.clock import SystemClock
from migrate.run.journal import Journal
from migrate.run.past_runs import by_journals
from tests.steps.looks import broken_disk, service, silent_broker, unhealthy, whole, without
from tests.testing import worlds

Bend = Callable[[World], World]


def both(*bends: Bend) -> Bend:
    """One after the other."""

    def bend(world: World) -> World:
        for one in bends:
            world = one(world)
        return world

    return bend


def held(node: int, run: str) -> Bend:
    """That run stopped the node; "" while a process works on it."""
    return lambda world: service(node, Stopped())(replace(world, facts={f"{BY_RUN}{node}": run}))


def unreadable_file(world: World) -> World:
    """The file of broker 1 is not for us."""
    assert not isinstance(world.configs, Unknown)
    return replace(world, configs={**world.configs, NodeId(1): Unknown("Permission denied")})


@pytest.mark.parametrize("stage", [stage for stage in Stage if Stage.ASSESS <= stage <= Stage.CLEANUP])
def test_a_healthy_cluster_has_none_at_any_stage(stage: Stage) -> None:
    """A half-done roll is none; nor is a ZooKeeper that was stopped when the migration was finalized."""
    assert problems(whole(stage)) == ()


@pytest.mark.parametrize(
    ("stage", "bend", "line", "remedy"),
    [
        (Stage.HYBRID, service(1, Stopped()), "1 PROBLEM: broker 1 is stopped on b1", "on b1: start broker 1"),
        (Stage.SOAK, both(service(1, Stopped()), unhealthy), "under-replicated", "on b1: start broker 1"),
        (Stage.SOAK, both(service(0, Stopped()), service(1, Stopped())), "brokers 0-1 are stopped on b0, b1", "on b0"),
        (Stage.SOAK, service(3001, Stopped()), "controller 3001 is stopped on c3001", "start controller 3001"),
        (Stage.SOAK, held(1, "1a2b3c4d"), "broker 1 is stopped: run 1a2b3c4d stopped it", "continue run 1a2b3c4d"),
        (Stage.COPY, without("zookeeper"), "ZooKeeper cannot be read (zookeeper hidden)", "bring ZooKeeper back"),
        (Stage.COPY, without("live"), "no node could be asked (live hidden)", "let this host reach"),
        (Stage.COPY, without("kraft"), "(S-STUCK-13)", "controllers' logs"),
        (Stage.COPY, broken_disk(1), "broker 1: /data/b1/d2: input/output error", "repair or replace that disk"),
        (Stage.COPY, both(broken_disk(1), service(1, Stopped())), "1 PROBLEM: broker 1 (stopped): /data/b1/d2", "disk"),
        (Stage.COPY, silent_broker, "runs and does not answer", "let this host reach, and the user of this tool read"),
        (Stage.COPY, unhealthy, "1 PROBLEM: ", "wait until every ISR is full"),
        (Stage.COPY, unreadable_file, "the file of broker 1 cannot be seen (Permission denied)", "let this host reach"),
    ],
)
def test_status_begins_with_what_is_wrong_and_its_next_step_is_the_remedy(
    stage: Stage, bend: Bend, line: str, remedy: str
) -> None:
    """No forward command beside it."""
    world = bend(whole(stage))
    found = problems(world)
    first, *_ = as_text(describe(world)).splitlines()
    last = as_text(describe(world)).partition("\nnext ")[2]
    assert first == headline(found)
    assert line in first
    assert remedy in found[0].remedy
    assert found[0].remedy.replace(DISK_COMMANDS, "the lines `disk` have the commands") in last
    assert "kraft-migrate plan" not in last
    assert "kraft-migrate apply" not in last


def test_a_stopped_node_is_told_with_the_time_that_its_host_knows() -> None:
    """Of several the first, and nothing where one of them is without a time."""
    first, second = service(0, Stopped(since=1_770_000_000.0)), service(1, Stopped(since=1_770_000_060.0))
    assert (
        headline(problems(first(whole(Stage.SOAK))))
        == "1 PROBLEM: broker 0 is stopped on b0 since 2026-02-02 02:40:00 UTC"
    )
    assert "on b0, b1, the first since 2026-02-02 02:40:00 UTC" in headline(
        problems(both(first, second)(whole(Stage.SOAK)))
    )
    assert "since" not in headline(problems(both(first, service(1, Stopped()))(whole(Stage.SOAK))))


def test_a_broker_that_a_run_restarts_just_now_is_no_problem() -> None:
    """Nor what its partitions lack meanwhile."""
    assert problems(both(unhealthy, held(1, ""))(whole(Stage.SOAK))) == ()


def test_many_are_counted_behind_the_first() -> None:
    """The line stays a line."""
    world = both(*(broken_disk(node) for node in (0, 1, 2)), without("zookeeper"))(whole(Stage.COPY))
    assert headline(problems(world)).startswith("4 PROBLEMS: ZooKeeper cannot be read")
    assert headline(problems(world)).endswith("; 1 more")


def test_a_finding_of_a_broker_that_a_run_stopped_is_mended_by_the_run() -> None:
    """Not by hand, while the first line says to continue the run."""
    world = held(1, "one")(whole(Stage.HYBRID))
    assert start_those(world, [1]) == "Continue run one, which stopped it: `kraft-migrate status` has the command."
    assert start_those(held(1, "")(whole(Stage.HYBRID)), [1]).startswith("Start what is down")


def test_journals_say_which_nodes_a_run_stopped_and_left(tmp_path: Path) -> None:
    """Until any run starts them, or the one that stopped them has ended."""
    known = replace(worlds.inventory(), runs=str(tmp_path))

    def told(run: str, *events: tuple[str, str]) -> dict[str, str]:
        (tmp_path / run).mkdir(exist_ok=True)
        journal = Journal.opened(tmp_path / run / "journal.jsonl", 1.0, {"cluster": "lab"})
        for name, node in events:
            data = {"effect": name.removesuffix(" meant"), "node": node, "step": "s", "detail": ""}
            for part in ("end",) if name == "end" else ("effect", "effected")[: 1 if name.endswith(" meant") else 2]:
                journal.append(SystemClock().now(), part, {} if part == "end" else data)
        journal.close()
        return dict(by_journals(known))

    assert told("one", ("stop", "1"), ("start", "1"), ("stop", "2")) == {f"{BY_RUN}2": "one"}
    assert told("two", ("start", "2"), ("stop", "0")) == {f"{BY_RUN}0": "two"}
    assert told("two", ("start meant", "0")) == {f"{BY_RUN}0": "two"}, "killed before it started it"
    assert told("two", ("end", "")) == {}
