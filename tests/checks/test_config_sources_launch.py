"""What the brokers' processes were started with: refused where the tool would edit in vain, told elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks import NEVER
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.launch import UnitNotes
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from tests.checks.bends import launched, unit_of
from tests.testing.worlds import world_at

PLAIN = world_at(Stage.ASSESS)


def of(world: World, code: str) -> list[Finding]:
    """The findings of one code."""
    return [finding for finding in checks.run(world, target=Stage.PREPARE) if finding.code == code]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("log.dirs", "B-CFG-23"),
        ("zookeeper.connect", "B-CFG-23"),
        ("zookeeper.session.timeout.ms", "B-CFG-23"),
        ("broker.id", "B-CFG-23"),
        ("listener.security.protocol.map", "B-CFG-23"),
        ("inter.broker.protocol.version", "B-CFG-23"),
        ("num.io.threads", "W-CFG-24"),
        ("ssl.key.password", "W-CFG-24"),
    ],
)
def test_an_override_of_what_is_ours_stops_and_of_others_is_told(key: str, code: str) -> None:
    """By the table of keys."""
    world = launched(1, overrides={key: "(sensitive)"})(PLAIN)
    assert {
        finding.code for finding in checks.run(world, target=Stage.PREPARE) if "command line" in finding.message
    } == {code}


@pytest.mark.parametrize("path", ["/conf/b1.properties", "/conf//b1.properties", "/conf/./b1.properties"])
def test_one_path_has_many_spellings(path: str) -> None:
    """Doubled slashes are no other file."""
    assert of(launched(1, config=path)(PLAIN), "B-CFG-27") == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"config": "config/server.properties"}, "relative path"), ({"main_class": None, "config": None}, "no class")],
)
def test_a_command_line_that_does_not_tell_its_file_is_a_blind_spot(changed: dict[str, object], says: str) -> None:
    """Neither a fault nor a pass."""
    (found,) = of(launched(1, **changed)(PLAIN), "B-CFG-27")
    assert found.severity is Severity.BLIND_SPOT
    assert says in found.evidence


def test_many_variables_are_not_a_page() -> None:
    """Six names, and how many more."""
    names = tuple(f"KAFKA_CFG_{letter}" for letter in "ABCDEFGH")
    (found,) = of(launched(1, environment=names)(PLAIN), "B-CFG-26")
    assert found.message.endswith("KAFKA_CFG_F and 2 more")


def test_what_was_not_looked_at_is_told_and_does_not_stop_a_run_on_hosts() -> None:
    """An executor that cannot read an environment says so under the code."""
    world = launched(1, environment=Unknown("not read"), unit=UnitNotes((), ()))(PLAIN)
    (found,) = of(world, "B-CFG-26")
    assert (found.severity, found.evidence, found.blocks_from) == (Severity.BLIND_SPOT, "not read", NEVER)
    old = unit_of(1, reload_due=Unknown("old systemd"))(PLAIN)
    (found,) = of(old, "B-CFG-29")
    assert (found.severity, found.evidence, found.blocks_from) == (Severity.BLIND_SPOT, "old systemd", NEVER)


def test_a_broker_that_is_down_is_a_blind_spot_of_its_own() -> None:
    """The others are judged."""
    assert not isinstance(PLAIN.launches, Unknown)
    down = {**PLAIN.launches, NodeId(2): Unknown("it does not run")}
    world = launched(0, config="/x")(replace(PLAIN, launches=down))
    assert [(found.about, found.severity) for found in of(world, "B-CFG-27")] == [
        ("broker 0", Severity.BLOCKER),
        ("how broker 2 was started", Severity.BLIND_SPOT),
    ]


def test_a_process_without_a_unit_has_no_unit_to_judge() -> None:
    """The lab's own, or a script's."""
    world = launched(1, unit=None)(PLAIN)
    assert of(world, "I-CFG-28") == []
