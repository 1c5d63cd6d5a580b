"""Rollback readiness in lines and as values: the word first, then the cost, then every reason with what to do."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from migrate.checks.rollback.readiness import FIND_COPY, rollback_readiness
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import Reason, RollbackReadiness, Weight
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from migrate.report.status import rollback_lines, rollback_values
from tests.checks.rollback.test_readiness import GOOD, KEPT
from tests.steps.looks import service, whole


def answers(stage: Stage) -> RollbackReadiness:
    """A healthy cluster's answer."""
    return rollback_readiness(whole(stage), GOOD)


def test_the_word_comes_first_then_how_then_what_it_costs() -> None:
    """With the basis of every duration."""
    said = list(rollback_lines(rollback_values(answers(Stage.SOAK))))
    assert said[0] == "READY, from: kraft-mode"
    assert said[1].startswith("roll the KRaft brokers to migration mode")
    assert said[2].startswith("2 rolls (6 restarts), about 40 s to 1 min, 4 s without a controller [10 s per restart")
    assert len(said) == 3


def test_a_gap_that_is_unknown_is_null_and_never_none() -> None:
    """A person reads that it is unknown, and why."""
    world = replace(whole(Stage.SOAK), disks=Unknown("not checked"))
    values = rollback_values(rollback_readiness(world, replace(GOOD, gap=None)))
    assert values["cost"]["gap_seconds"] is None
    assert "an unknown time without a controller" in list(rollback_lines(values))[2]
    assert "not checked" in list(rollback_lines(values))[2]


def test_where_nothing_is_restarted_there_is_no_line_of_cost() -> None:
    """From stage controllers on only znodes and controllers are touched: the procedure says all."""
    said = list(rollback_lines(rollback_values(answers(Stage.CONTROLLERS))))
    assert said == ["READY, from: controllers", "stop the controllers, delete /migration"]


def test_each_reason_stands_with_its_next_step() -> None:
    """The bars before the work."""
    bent = service(1, Stopped())(whole(Stage.COPY))
    found = rollback_readiness(bent, replace(GOOD, configs={**KEPT, NodeId(2): Unknown("permission denied")}))
    said = list(rollback_lines(rollback_values(found)))
    assert said[0].startswith("NOT READY")
    assert said[1].startswith("once it is ready: ")
    assert said[3] == "blocked by: broker 2: its backup is not known: permission denied"
    assert said[4] == f"  fix: {FIND_COPY}"
    assert said[5] == "needs: broker 1: it is down"


def test_one_reason_of_several_brokers_is_said_once() -> None:
    """Programs get each."""
    configs = {node: Unknown("permission denied") for node in KEPT}
    found = rollback_readiness(whole(Stage.COPY), replace(GOOD, configs=configs))
    said = [line for line in rollback_lines(rollback_values(found)) if "permission denied" in line]
    assert said == ["blocked by: brokers 0, 1, 2: its backup is not known: permission denied"]
    assert len(found.reasons) == len(KEPT)


def test_a_way_that_is_gone_has_no_price() -> None:
    """And says so in one line, too."""
    found = answers(Stage.FINALIZE)
    (said,) = rollback_lines(rollback_values(found))
    assert said.startswith("not possible any more: the migration is finalized")
    assert found.line.startswith("NOT READY from finalize; the KRaft metadata: the migration is finalized")


def test_values_are_plain() -> None:
    """Through JSON and back they are the same, at every stage."""
    for stage in Stage:
        values = rollback_values(answers(stage))
        assert json.loads(json.dumps(values, default=asdict)) == {
            **values,
            "reasons": [*map(asdict, values["reasons"])],
        }
        assert values["readiness"] in ("READY", "READY WITH WORK", "NOT READY")


def test_text_from_the_cluster_is_made_safe() -> None:
    """A path may hold anything."""
    found = answers(Stage.COPY)
    hostile = replace(found, reasons=(Reason(Weight.BAR, "disk", "/d\x1b[2J", "x\u202ey", "do"),))
    assert not any("\x1b" in line or "\u202e" in line for line in rollback_lines(rollback_values(hostile)))
