"""The table of configuration keys: whole, without contradictions, and what the steps really do."""

from __future__ import annotations

from collections import Counter

import pytest

from migrate.hosts.properties import parse
from migrate.model import config_keys
from migrate.model.broker_modes import FLAG
from migrate.model.config_keys import ANY, TABLE, Fate, Moment, fate, override_fault, row_of, taken
from migrate.steps import configuration
from tests.testing import worlds

KNOWN = worlds.inventory()
BROKER, CONTROLLER = KNOWN.brokers[1], KNOWN.controllers[1]
RAW = worlds.BROKER_FILE.format(id=1).encode()


def set_at(moment: Moment) -> tuple[str, ...]:
    """The keys that the tool sets then, in the table's order."""
    return tuple(row.name for row in TABLE if row.at(moment) is Fate.SET)


def test_every_key_has_one_row_with_a_reason_and_a_source() -> None:
    """Two rows of one key would be two answers; a row without a reason is a guess."""
    assert [name for name, count in Counter(row.name for row in TABLE).items() if count > 1] == []
    assert [row.name for row in TABLE if not row.why or not row.source] == []
    assert [row.name for row in TABLE if ANY in row.name[:-2] or "|" in row.why + row.source] == []
    assert len(TABLE) >= 70


def test_controllers_take_what_matters() -> None:
    """About forty keys, of which none may be forgotten in a rendered file."""
    assert sum(row.rendered in (Fate.EQUAL, Fate.KEPT) for row in TABLE) >= 40
    for key in ("super.users", "password.encoder.secret", "delegation.token.secret.key", "inter.broker.listener.name"):
        assert fate(key, Moment.RENDERED) in (Fate.EQUAL, Fate.KEPT)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_no_row_contradicts_itself(row: config_keys.KeyRow) -> None:
    """`equal` and `left out` are about rendered files; what is refused once is never set before."""
    edits = (row.first_roll, row.second_roll, row.finalize)
    assert not {Fate.EQUAL, Fate.LEFT} & set(edits)
    assert row.rendered is not Fate.REMOVED
    if Fate.REFUSED in (row.second_roll, row.finalize):
        assert Fate.SET not in (row.rendered, *edits)
    if row.name.startswith("zookeeper."):
        assert (row.second_roll, row.finalize) == (Fate.REMOVED, Fate.REMOVED), "nothing of ZooKeeper in KRaft"


@pytest.mark.parametrize(
    ("key", "row"),
    [
        ("zookeeper.connect", "zookeeper.connect"),
        ("zookeeper.ssl.keystore.location", "zookeeper.ssl.*"),
        ("zookeeper.set.acl", "zookeeper.set.acl"),
        ("zookeeper.something.new", "zookeeper.*"),
        ("metadata.log.dir", "metadata.log.dir"),
        ("metadata.log.segment.bytes", "metadata.*"),
        ("controller.quorum.voters", "controller.quorum.voters"),
        ("controller.quorum.fetch.timeout.ms", "controller.quorum.*"),
        ("config.providers.file.class", "config.providers.*"),
    ],
)
def test_a_key_of_its_own_goes_before_its_family_and_the_longest_family_first(key: str, row: str) -> None:
    """As `zookeeper.ssl.*` is taken into a controller's file and the rest of `zookeeper.*` is not."""
    found = row_of(key)
    assert found is not None
    assert found.name == row


@pytest.mark.parametrize("key", ["num.replica.fetchers", "zookeeperx", "sasl", "custom.key", "Broker.id", ""])
def test_a_key_without_a_row_is_the_operators(key: str) -> None:
    """Kept where it stands, never carried; and a playbook may set it."""
    assert row_of(key) is None
    assert fate(key, Moment.RENDERED) is Fate.LEFT
    assert {fate(key, moment) for moment in Moment if moment is not Moment.RENDERED} == {Fate.KEPT}
    assert override_fault(key) is None


def test_the_steps_set_exactly_what_the_table_says() -> None:
    """Held against what they write: a row that nobody carries out is as wrong as an edit without a row."""
    migrating = configuration.migration_mode(RAW, KNOWN)
    kraft = configuration.kraft_mode(migrating, KNOWN, BROKER)
    rendered = configuration.controller({**parse(RAW), "authorizer.class.name": "x"}, KNOWN, CONTROLLER)
    first, second = parse(migrating), parse(kraft)
    assert {key for key in first if first[key] != parse(RAW).get(key)} == set(set_at(Moment.FIRST_ROLL))
    assert {*set_at(Moment.SECOND_ROLL)} <= {*second}
    assert {key for key in second if second[key] != first.get(key)} <= {*set_at(Moment.SECOND_ROLL)}
    assert {*set_at(Moment.RENDERED)} <= {*parse(rendered)}
    assert {*parse(rendered)} == {*set_at(Moment.RENDERED), *taken(parse(RAW))}
    assert set_at(Moment.FINALIZE) == ()


def test_the_steps_remove_exactly_what_the_table_says() -> None:
    """A file with every key of the table, through every stage."""
    names = [row.name.removesuffix(ANY) + ".x" * row.name.endswith(ANY) for row in TABLE]
    full = {name: "1" for name in names if fate(name, Moment.FIRST_ROLL) is not Fate.REFUSED}
    raw = "".join(f"{key}={value}\n" for key, value in full.items()).encode()
    rolled = configuration.migration_mode(raw, KNOWN)
    taken = {name for name in full if fate(name, Moment.FIRST_ROLL) is Fate.REMOVED}
    assert {*full} - {*parse(rolled)} == taken == {"controller.quorum.bootstrap.servers"}
    kraft = configuration.kraft_mode(rolled, KNOWN, BROKER)
    gone = {row for row in parse(rolled) if fate(row, Moment.SECOND_ROLL) is Fate.REMOVED}
    assert {*parse(rolled)} - {*parse(kraft)} == gone
    assert {"broker.id", "zookeeper.connect", FLAG, "zookeeper.x", "control.plane.listener.name"} <= gone
    rendered = configuration.controller(full, KNOWN, CONTROLLER)
    final = configuration.finalized_controller(rendered)
    left = {*parse(rendered)} - {*parse(final)}
    assert left == {key for key in parse(rendered) if key.startswith("zookeeper.")}
    assert FLAG in left


def test_an_edit_that_the_table_does_not_announce_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is what people were shown."""
    without = {name: row for name, row in config_keys.EXACT.items() if name != "process.roles"}
    monkeypatch.setattr(config_keys, "EXACT", without)
    with pytest.raises(AssertionError, match=r"process\.roles"):
        configuration.kraft_mode(RAW, KNOWN, BROKER)


def test_what_is_taken_comes_in_the_tables_order_and_families_in_the_files() -> None:
    """A rendered file does not depend on the order of the broker's single keys."""
    keys = ["ssl.b", "num.partitions", "ssl.a", "super.users", "log.dirs", "custom"]
    assert list(taken(keys)) == ["super.users", "num.partitions", "ssl.b", "ssl.a"]
    assert list(taken(reversed(keys))) == ["super.users", "num.partitions", "ssl.a", "ssl.b"]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("process.roles", "sets this key itself"),
        (FLAG, "sets this key itself"),
        ("zookeeper.connect", "sets this key itself"),
        ("password.encoder.secret", "must be the brokers'"),
        ("min.insync.replicas", "must be the brokers'"),
        ("controller.quorum.bootstrap.servers", "must not have"),
        ("broker.id", "a broker's alone"),
        ("advertised.listeners", "a broker's alone"),
    ],
)
def test_a_playbook_cannot_set_what_is_not_its_own(key: str, why: str) -> None:
    """Each with its reason."""
    assert why in (override_fault(key) or "")


@pytest.mark.parametrize("key", ["num.io.threads", "ssl.keystore.location", "super.users", "metric.reporters"])
def test_a_playbook_may_set_what_differs_by_host_or_load(key: str) -> None:
    """A controller has a certificate and a load of its own."""
    assert override_fault(key) is None
