"""The matrix of the controllers' files beside the brokers': what is equal, what differs, what is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks.parity import Cell, Row, matrix, table_rows, unset
from migrate.hosts.collect_disks import HIDDEN
from migrate.model.config_keys import Fate
from migrate.model.ids import NodeId
from migrate.model.stage import Stage
from tests.testing.worlds import with_values, world_at

ONE, TWO, C1, C2 = map(NodeId, (1, 2, 3000, 3001))


def row(key: str, brokers: list[str | None], controllers: list[str | None]) -> Row:
    """The one row of a matrix of files with that key alone."""
    (found,) = matrix(
        {NodeId(at): {} if value is None else {key: value} for at, value in enumerate(brokers)},
        {NodeId(3000 + at): {} if value is None else {key: value} for at, value in enumerate(controllers)},
    )
    return found


@pytest.mark.parametrize(
    ("brokers", "controller", "cell"),
    [
        (["2", "2"], "2", Cell.EQUAL),
        (["2", " 2 "], "2", Cell.EQUAL),
        (["2", "+2"], "02", Cell.EQUAL),
        (["two", "2"], "2", Cell.DIFFERS),
        (["2", "2"], "1", Cell.DIFFERS),
        (["2", "3"], "2", Cell.DIFFERS),
        (["2", "2"], None, Cell.MISSING),
        (["2", None], None, Cell.MISSING),
        ([None, None], "2", Cell.ONLY_HERE),
        (["${file:/a:b}"], "${file:/a:b}", Cell.BY_REFERENCE),
        (["${file:/a:b}"], "${file:/a:c}", Cell.DIFFERS),
        ([HIDDEN], HIDDEN, Cell.HIDDEN),
        (["x"], HIDDEN, Cell.HIDDEN),
        (["", ""], "", Cell.EQUAL),
    ],
)
def test_a_cell_says_how_a_controllers_value_compares(
    brokers: list[str | None], controller: str | None, cell: Cell
) -> None:
    """One text that two nodes resolve each for itself, or that was not collected, is never called equal."""
    assert row("min.insync.replicas", brokers, [controller]).controllers == {NodeId(3000): cell}


@pytest.mark.parametrize(
    ("brokers", "told", "alike"),
    [
        (["2", "2", "2"], "2", True),
        (["2", "02", "+2"], "2", True),
        (["2", None, "2"], "2 (on 2 of 3)", False),
        (["2", "3", "2"], "2 values on 3 of 3", False),
        ([None, None, None], "-", False),
        (["x" * 60] * 3, "x" * 48 + "...", True),
    ],
)
def test_the_brokers_are_told_as_one_or_as_what_they_are(brokers: list[str | None], told: str, alike: bool) -> None:
    """Never the first broker's value for all."""
    found = row("num.partitions", brokers, ["2"])
    assert (found.brokers, found.alike) == (told, alike)


@pytest.mark.parametrize(
    "key", ["password.encoder.secret", "ssl.key.password", "listener.name.internal.plain.sasl.jaas.config"]
)
def test_no_secret_stands_in_a_row(key: str) -> None:
    """Compared, and never shown."""
    found = row(key, ["canary-1"], ["canary-2"])
    assert (found.brokers, found.controllers[NodeId(3000)]) == ("(sensitive)", Cell.DIFFERS)
    assert "canary" not in repr((found, list(table_rows((found,)))))


def test_rows_are_what_controllers_take_in_the_tables_order_and_what_they_have_beside_it() -> None:
    """A broker's own keys, and those that the tool sets, are no matter of parity."""
    brokers = {ONE: {"broker.id": "1", "ssl.b": "x", "num.partitions": "3", "super.users": "u", "custom": "1"}}
    controllers = {C1: {"node.id": "3000", "super.users": "u", "metric.reporters": "a.B"}}
    found = matrix(brokers, controllers)
    assert [(entry.key, entry.controllers[C1]) for entry in found] == [
        ("super.users", Cell.EQUAL),
        ("num.partitions", Cell.MISSING),
        ("ssl.b", Cell.MISSING),
        ("metric.reporters", Cell.ONLY_HERE),
    ]
    assert [entry.rule for entry in found] == [Fate.KEPT, Fate.EQUAL, Fate.KEPT, Fate.LEFT]
    assert unset(found) > 40


def test_the_table_has_a_column_for_each_controller() -> None:
    """As the plan prints it."""
    found = matrix({ONE: {"num.partitions": "3"}, TWO: {"num.partitions": "3"}}, {C1: {"num.partitions": "3"}, C2: {}})
    assert list(table_rows(found)) == [
        {
            "key": "num.partitions",
            "must be": "equal",
            "brokers": "3",
            "controller 3000": "equal",
            "controller 3001": "missing",
        }
    ]


def test_what_a_check_of_its_own_is_about_is_told_once() -> None:
    """B-SEC-04 speaks of the secret; the matrix's warning does not repeat it."""
    world = with_values(world_at(Stage.PREPARE), 3000, password__encoder__secret="other")
    codes = {finding.code for finding in checks.run(world, target=Stage.CONTROLLERS)}
    assert "B-SEC-04" in codes
    assert "W-CFG-16" not in codes


def test_brokers_that_differ_are_named_by_value_and_secrets_by_who_has_them() -> None:
    """Whom to ask is half of the answer."""
    world = with_values(world_at(Stage.ASSESS), 1, num__partitions="3", password__encoder__old__secret="canary")
    found = [finding for finding in checks.run(world, target=Stage.PREPARE) if finding.code == "W-CFG-17"]
    assert [finding.evidence for finding in found] == [
        "none: [0, 2]; (sensitive): [1]",
        "none: [0, 2]; 3: [1]",
    ]
    assert "canary" not in repr(found)


def test_values_that_were_not_collected_are_no_difference() -> None:
    """The collector may leave a secret out on one host."""
    world = with_values(world_at(Stage.ASSESS), 1, delegation__token__max__lifetime__ms=HIDDEN)
    assert not [finding for finding in checks.run(world, target=Stage.PREPARE) if finding.code == "W-CFG-17"]


def test_controllers_are_not_blamed_for_what_the_brokers_disagree_in() -> None:
    """There is no value to follow then: W-CFG-17 says it."""
    world = with_values(world_at(Stage.PREPARE), 1, min__insync__replicas="1")
    codes = [finding.code for finding in checks.run(replace(world), target=Stage.CONTROLLERS)]
    assert "W-CFG-17" in codes
    assert "W-CFG-16" not in codes
