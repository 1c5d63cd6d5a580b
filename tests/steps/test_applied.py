"""The proof of the second roll asks a broker what it applied of what is stored for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks.registry import run_all
from migrate.checks.stored_values import NotApplied, compare_applied, not_applied, to_apply
from migrate.model.columns import EntityColumns
from migrate.model.difference import DifferenceClass, DiffReport
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Denied, NotYet, Readiness, Ready, Unknown
from migrate.model.stage import Stage
from migrate.model.world import NOT_ASKED, World
from migrate.steps import applied
from tests.testing import worlds

STORED = {
    ("1", "num.io.threads"): "16",
    ("<default>", "log.cleaner.backoff.ms"): "16000",
    ("1", "listener.name.client.ssl.keystore.location"): "/new.pem",
    ("1", "listener.name.client.ssl.keystore.password"): "hmac:0",  # no broker tells it
    ("1", "log.cleaner.threads"): "x",  # left out by every broker, in every mode
    ("1", "log.dirs"): "/x",  # not dynamic
    ("1", "foo"): "bar",
    ("2", "num.io.threads"): "99",
}
SAID = {
    "num.io.threads": " 016",
    "log.cleaner.backoff.ms": "16000",
    "listener.name.client.ssl.keystore.location": "/new.pem",
    "log.cleaner.threads": "1",
    "log.dirs": "/data",
}


def world(stored: dict[tuple[str, str], str], said: object) -> World:
    """Broker 1 in KRaft mode, with that in the metadata and that answer."""
    rows = EntityColumns()
    for (entity, name), value in stored.items():
        rows.add("broker-config", entity, name, value)
    found = worlds.with_kraft(worlds.world_at(Stage.KRAFT_MODE), entities=rows)
    return replace(found, applied=said if isinstance(said, Unknown) else {NodeId(1): said})  # type: ignore[dict-item]


def says(stored: dict[tuple[str, str], str], said: object, **facts: str) -> Readiness:
    """What the proof says of broker 1."""
    return applied.runs_with_what_is_stored(replace(world(stored, said), facts=facts), 1)


def test_a_broker_that_applied_everything_is_proven() -> None:
    """Spelled otherwise, and besides what no broker applies or tells."""
    assert says(STORED, SAID) == Ready()
    assert applied.evidence(world(STORED, SAID), 1) == ("it runs with 3 of 3 stored dynamic configurations",)


@pytest.mark.parametrize(
    "key", ["num.io.threads", "log.cleaner.backoff.ms", "listener.name.client.ssl.keystore.location"]
)
def test_what_a_broker_lost_is_waited_for_by_name(key: str) -> None:
    """It has another value, or none of that key."""
    for said in (SAID | {key: "7"}, {name: value for name, value in SAID.items() if name != key}):
        found = says(STORED, said)
        assert isinstance(found, NotYet)
        assert f"{key}=" in found.what
        assert "could not be applied" in found.next_step


def test_what_it_did_not_run_with_before_the_roll_is_no_loss() -> None:
    """Kafka refuses such a value in ZooKeeper mode, too."""
    lost = SAID | {"num.io.threads": "8"}
    assert says(STORED, lost, **{"unapplied:1": "num.io.threads"}) == Ready()
    assert isinstance(says(STORED, lost, **{"unapplied:1": "log.cleaner.backoff.ms"}), NotYet)
    noted: dict[str, str] = {}

    class Notes:
        """Takes facts alone."""

        def note(self, name: str, value: str) -> None:
            """Keep it."""
            noted[name] = value

    applied.note_before(world(STORED, lost), 1, Notes())  # type: ignore[arg-type]
    assert noted == {"unapplied:1": "num.io.threads"}


def test_an_answer_that_is_missing_proves_nothing() -> None:
    """Nor does a right that is missing."""
    assert says(STORED, NOT_ASKED) == NOT_ASKED
    assert says(STORED, Unknown("it is down")) == Unknown("it is down")
    assert says({}, Unknown("it is down")) == Ready()
    no = Denied("no DESCRIBE_CONFIGS")
    for stored, wanted in ((STORED, no), ({}, Ready())):
        there = replace(world(stored, SAID), applied={NodeId(1): no})
        assert applied.runs_with_what_is_stored(there, 1) == wanted


def test_a_right_that_is_missing_is_told_before_the_plan() -> None:
    """As a blind spot; not where nothing is dynamic, and not of a broker that is down."""
    found = worlds.world_at(Stage.ASSESS)
    rows = EntityColumns()
    rows.add("broker-config", "1", "log.cleaner.backoff.ms", "16000")
    there = worlds.with_zk(found, entities=rows)
    no = {node.id: Denied("grant DESCRIBE_CONFIGS") for node in found.inventory.brokers}
    for one, wanted in ((replace(there, applied=no), ["grant DESCRIBE_CONFIGS"]), (replace(found, applied=no), [])):
        seen = [entry for entry in run_all(one) if entry.code == "B-CFG-38"]
        assert [entry.evidence for entry in seen] == wanted
        assert {entry.severity for entry in seen} <= {Severity.BLIND_SPOT}
    down = replace(there, applied={node: Unknown("it is down") for node in no})
    assert not [entry for entry in run_all(down) if entry.code == "B-CFG-38"]


def test_dynamic_listeners_are_told_before() -> None:
    """W-CFG-20 says that they take all others with them."""
    assert says(STORED | {("1", "advertised.listeners"): "A://b:1"}, {}) == Ready()


def test_the_comparison_has_a_row_for_what_a_broker_lost() -> None:
    """And a blind spot for a broker that did not say it."""
    report = DiffReport(1, 0, {"topic": {"EQUAL": 1}}, ())
    found = compare_applied(report, world(STORED, SAID | {"num.io.threads": "8"}))
    (row,) = found.differences
    assert (row.kind, row.key, row.field, row.cls) == (
        "applied-config",
        "1",
        "num.io.threads",
        DifferenceClass.ONLY_KRAFT,
    )
    assert (row.kraft, "it runs with 8" in row.kraft_where) == ("16", True)
    assert found.counts["applied-config"] == {"EQUAL": 2, "ONLY_KRAFT": 1}
    assert found.unexcused == (row,)
    assert [spot[:40] for spot in found.blind_spots] == [
        "what broker 0 applied of its dynamic con",
        "what broker 2 applied of its dynamic con",
    ]
    assert compare_applied(report, worlds.world_at(Stage.KRAFT_MODE)) == report


def test_the_brokers_own_value_goes_before_the_default() -> None:
    """As Kafka applies them."""
    there = worlds.kraft(world({("1", "num.io.threads"): "16", ("<default>", "num.io.threads"): "4"}, SAID))
    assert to_apply(there, 1) == {"num.io.threads": ("1", "16")}
    assert to_apply(there, 2) == {"num.io.threads": ("<default>", "4")}
    assert not_applied(there, 2, {}) == (NotApplied(NodeId(2), "<default>", "num.io.threads", "4", None),)
