"""What the next upgrade meets: said where a target is named, and never where none is; what is not seen is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks.next_release import NEXT_RELEASE, RELEASES
from migrate.cli.assess import assess
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from tests.checks.bends import Bend, entity, launched, then, towards, values
from tests.checks.cases import ALLOWED, JWKS
from tests.testing import worlds
from tests.testing.worlds import world_at

CODES = {f"W-VER-{number}" for number in (20, 21, 22)} | {"I-VER-23"}


def found(world: World, code: str) -> list[Finding]:
    """The findings of one code that are no blind spots."""
    every = checks.run(world, target=Stage.CLEANUP)
    return [entry for entry in every if entry.code == code and entry.severity is not Severity.BLIND_SPOT]


def blind(world: World, code: str) -> list[str]:
    """What one code could not see."""
    every = checks.run(world, target=Stage.CLEANUP)
    return [entry.about for entry in every if entry.code == code and entry.severity is Severity.BLIND_SPOT]


@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.label)
def test_without_a_target_nothing_is_said_and_nothing_is_asked(stage: Stage) -> None:
    """Whatever is in the files; and the share of checks does not change."""
    bent = then(values(1, log__message__format__version="3.0", log__dirs="/a,"))
    world = bent(world_at(stage))
    assert not CODES & {entry.code for entry in checks.run(world, target=Stage.CLEANUP)}
    assert not CODES & set(checks.asked(world))
    assert set(checks.asked(towards("4.3")(world))) >= CODES


@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.label)
def test_the_next_release_bars_nothing_of_the_migration(stage: Stage) -> None:
    """Hits and blind spots alike: the migration stays on 3.9."""
    world = towards("4.4", values(1, log__dirs="/a,"))(world_at(stage))
    every = [entry for entry in checks.run(world, target=Stage.CLEANUP) if entry.code in CODES]
    assert {entry.blocks_from for entry in every} == {checks.NEVER}


def test_the_command_takes_the_releases_of_the_list() -> None:
    """Its choices are written out, so that `--help` needs no check."""
    (option,) = (entry for entry in assess.params if entry.name == "target")
    assert tuple(getattr(option.type, "choices", ())) == RELEASES


@pytest.mark.parametrize(("release", "hits"), [("4.0", False), ("4.1", True), ("4.4", True)])
def test_a_release_has_what_the_releases_before_it_changed(release: str, hits: bool) -> None:
    """Topics' segment.bytes got its limit in 4.1."""
    small = towards(release, entity("topic-config", "t0", "segment.bytes", "1048575"))(world_at(Stage.ASSESS))
    assert bool(found(small, "W-VER-21")) is hits
    least = towards(release, entity("topic-config", "t0", "segment.bytes", "1048576"))(world_at(Stage.ASSESS))
    assert found(least, "W-VER-21") == []


def test_keys_that_the_migration_removes_are_told_only_when_it_left_them() -> None:
    """Before its second roll a broker has to have zookeeper.connect; a controller, before finalize."""
    for stage in (Stage.ASSESS, Stage.CONTROLLERS, Stage.HYBRID):
        told = " ".join(entry.message for entry in found(towards("4.3")(world_at(stage)), "W-VER-20"))
        assert "password.encoder.secret" in told
        assert "zookeeper" not in told
        assert "inter.broker.protocol.version" not in told
    left = towards("4.3", values(1, zookeeper__connect="z:1"))(world_at(Stage.SOAK))
    assert any("zookeeper.connect" in entry.message for entry in found(left, "W-VER-20"))


def test_what_takes_the_place_of_a_key_is_named() -> None:
    """And no value is: the key may be a secret."""
    world = towards("4.0", values(1, delegation__token__master__key="canary"))(world_at(Stage.ASSESS))
    (entry,) = (entry for entry in found(world, "W-VER-20") if entry.about.startswith("broker 1"))
    assert "delegation.token.master.key (in its place: delegation.token.secret.key)" in entry.message
    assert "canary" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "hit"), [("/a,/b", False), ("/a", False), ("/a,", True), (",/a", True), ("/a,,/b", True), ("", False)]
)
def test_an_empty_entry_of_a_list_is_a_hit_from_4_2_on(text: str, hit: bool) -> None:
    """An empty list is none: 3.9 refuses it for log.dirs, and both take it for others."""
    assert bool(found(towards("4.2", values(1, log__dirs=text))(world_at(Stage.ASSESS)), "W-VER-21")) is hit
    assert found(towards("4.1", values(1, log__dirs=text))(world_at(Stage.ASSESS)), "W-VER-21") == []


def test_a_number_that_only_the_node_can_resolve_is_a_blind_spot() -> None:
    """A reference is neither large enough nor too small."""
    world = towards("4.3", values(1, log__segment__bytes="${file:/x:y}"))(world_at(Stage.ASSESS))
    assert found(world, "W-VER-21") == []
    assert "log.segment.bytes of broker 1: /conf/b1.properties" in blind(world, "W-VER-21")


@pytest.mark.parametrize(
    ("named", "added", "hit"),
    [
        (None, None, False),
        ("com.example.R", None, True),
        ("", None, True),
        ("com.example.R, org.apache.kafka.common.metrics.JmxReporter", None, False),
        ("com.example.R", "false", False),
    ],
)
def test_jmx_goes_where_it_was_added_unasked(named: str | None, added: str | None, hit: bool) -> None:
    """With auto.include.jmx.reporter=false there is none today, either."""
    bend = values(1, metric__reporters=named, auto__include__jmx__reporter=added)
    assert bool(found(towards("4.3", bend)(world_at(Stage.ASSESS)), "W-VER-22")) is hit


def test_a_default_counts_where_neither_file_nor_kafka_configs_set_the_key() -> None:
    """By broker; of tiered storage only where it is on."""
    name = "log.message.timestamp.after.max.ms"

    def unset(*bends: Bend) -> str:
        every = found(towards("4.3", *bends)(world_at(Stage.ASSESS)), "I-VER-23")
        return next((entry.evidence for entry in every if entry.about == name), "")

    assert unset() == "[0, 1, 2]"
    assert unset(values(1, log__message__timestamp__after__max__ms="5")) == "[0, 2]"
    assert unset(entity("broker-config", "2", name, "5")) == "[0, 1]"
    assert unset(entity("broker-config", "<default>", name, "5")) == ""
    tiered = towards("4.3", values(1, remote__log__storage__system__enable="true"))(world_at(Stage.ASSESS))
    (pool,) = (entry for entry in found(tiered, "I-VER-23") if entry.about.startswith("remote."))
    assert pool.evidence == "[1]"
    dark = replace(towards("4.3")(world_at(Stage.ASSESS)), zookeeper=Unknown("no session"))
    assert found(dark, "I-VER-23") == []
    assert "ZooKeeper" in blind(dark, "I-VER-23")


def test_after_the_migration_the_metadata_has_the_dynamic_configurations() -> None:
    """ZooKeeper may be gone then."""
    world = towards("4.3", entity("topic-config", "t0", "segment.bytes", "9"))(world_at(Stage.FINALIZE))
    assert found(world, "W-VER-21") == []
    worlds.kraft(world).entities.add("topic-config", "t0", "segment.bytes", "9", "offset 7")
    assert [entry.about for entry in found(world, "W-VER-21")] == ["topic t0"]


def test_files_and_launches_that_cannot_be_seen_are_told() -> None:
    """Each by name."""
    world = towards("4.3")(world_at(Stage.SOAK))
    assert not isinstance(world.configs, Unknown)
    assert not isinstance(world.launches, Unknown)
    dark = replace(
        world,
        configs={**world.configs, NodeId(1): Unknown("denied")},
        launches={**world.launches, NodeId(2): Unknown("denied")},
    )
    assert blind(dark, "W-VER-20") == ["the configuration of broker 1", "the command line of broker 2"]
    assert NEXT_RELEASE in world.facts


def test_a_url_that_the_command_line_allows_is_taken_and_an_unseen_one_is_not_known() -> None:
    """Blanks and other URLs beside it in the list make no difference."""
    bent = values(1, **{JWKS: " https://idp/jwks "})
    allowed = launched(1, kafka_properties={ALLOWED: "https://other/x, https://idp/jwks"})
    world = towards("4.3", bent)(world_at(Stage.SOAK))
    assert len(found(world, "W-VER-21")) == 1
    assert found(allowed(world), "W-VER-21") == []
    unseen = replace(world, launches=Unknown("not read"))
    assert found(unseen, "W-VER-21") == []
    assert any("jwks" in about for about in blind(unseen, "W-VER-21"))
