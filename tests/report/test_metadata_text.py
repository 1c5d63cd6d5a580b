"""`metadata image` as text and JSON: counts first, directories by name, secrets as digests."""

from __future__ import annotations

import json

from migrate.kraft.image import Image
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.report.metadata_text import KINDS, image_json, image_lines
from tests.kraft.logs import D1, STAGES, T1, captured_log, log, partition, register, topic


def captured(stage: str = "finalized") -> KraftView:
    """The captured image of a stage."""
    image = Image(Digester(b"k" * 32))
    image.apply_batches(captured_log()[: STAGES[stage][0]], below=None)
    return image.view("cluster", 2394, "a test")


def reserved() -> KraftView:
    """One partition with a replica in each reserved directory, and one in a real one."""
    image = Image(Digester())
    listed = [str(MIGRATING), str(UNASSIGNED), str(LOST), D1]
    image.apply_batches(log(topic("a", T1), partition(T1, 0, [1, 2, 3, 4], listed), register(4, 2, [D1])), below=None)
    return image.view("", Unknown("tail unproven: a test"), "a test")


def test_reserved_directories_are_named_and_counted() -> None:
    """MIGRATING, UNASSIGNED, LOST; any other by its id."""
    found = image_json(reserved(), (), ())
    assert found["partitions"][0]["directories"] == ["MIGRATING", "UNASSIGNED", "LOST", D1]
    assert {name: found["counts"][f"replicas {name}"] for name in ("MIGRATING", "UNASSIGNED", "LOST")} == {
        "MIGRATING": 1,
        "UNASSIGNED": 1,
        "LOST": 1,
    }
    assert found["brokers"][0]["log_dirs"] == [D1]


def test_an_unproven_tail_is_said_and_never_a_number() -> None:
    """In JSON and in text; an unknown cluster is null."""
    found = image_json(reserved(), (), ("left out",))
    assert (found["high_watermark"], found["unproven"], found["cluster_id"]) == (None, "tail unproven: a test", None)
    lines = list(image_lines(reserved(), (), ("left out",)))
    assert lines[0].startswith("cluster ?, metadata offset 2")
    assert "tail unproven: a test" in lines
    assert "note: left out" in lines


def test_the_captured_image_is_whole_in_json() -> None:
    """Every kind, as many as there are."""
    found = json.loads(json.dumps(image_json(captured(), (), ())))
    counts = found["counts"]
    assert (found["offset"], found["high_watermark"], found["migration_state"]) == (2393, 2394, "POST_MIGRATION")
    assert {name: len(found[name]) for name in ("brokers", "controllers", "topics", "partitions")} == {
        "brokers": 3,
        "controllers": 3,
        "topics": 24,
        "partitions": 212,
    }
    for kind in ("topic-config", "broker-config", "client-quota", "scram", "acl", "producer-ids"):
        assert len(found[kind]) == counts[kind] > 0
    assert all(
        value.startswith("hmac:")
        for entry in found["scram"]
        for name, value in entry["values"].items()
        if not name.endswith("iterations")
    )


def test_a_kind_limits_what_follows_the_counts() -> None:
    """Counts stay whole."""
    everything = image_json(captured(), (), ())
    for kind in KINDS:
        found = image_json(captured(), (kind,), ())
        assert found["counts"] == everything["counts"]
        assert [name for name in KINDS if name in found] == [kind]
        assert found[kind] == everything[kind]


def test_the_text_has_counts_before_objects_and_one_line_an_object() -> None:
    """A line for each partition, under its heading."""
    lines = list(image_lines(captured(), ("partitions", "features"), ()))
    assert "brokers 3, controllers 3, topics 24, partitions 212, replicas 527" in lines[3]
    assert lines[lines.index("features:") + 1] == "  feature metadata.version  level 21"
    assert len(lines[lines.index("partitions:") + 1 :]) == 212


def test_before_the_copy_the_registrations_are_there_and_no_topics() -> None:
    """An early stage is an image too."""
    found = image_json(captured("controllers-up"), (), ())
    assert (found["counts"]["brokers"], found["counts"]["topics"], found["partitions"]) == (0, 0, [])
