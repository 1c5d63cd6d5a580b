"""The journal keeps of an observation what a report draws: cells of the ledger, counts of the comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from migrate.model.causes import REPEAT
from migrate.model.copied import NoLook
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.plan.build import build
from migrate.run.snapshots import COPY_CHECK, write
from tests.steps.looks import WRONG, broken_disk, relook, whole, without
from tests.testing import worlds
from tests.testing.clusters import directory_id

STEP = build(whole(Stage.COPY), worlds.playbook(), target=Stage.HYBRID, only=True, created=1.0).steps[0]


def kept(world: World) -> dict[str, dict[str, Any]]:
    """The events that this world leaves, by name."""
    found: dict[str, dict[str, Any]] = {}

    def append(name: str, **data: Any) -> None:
        found[name] = data

    write(append, STEP, world)
    return found


def test_the_ledger_is_kept_by_broker_and_directory() -> None:
    """Nine cells, two replicas in each; with path and id."""
    data = kept(whole(Stage.KRAFT_MODE))["ledger"]
    assert (data["step"], data["offset"], data["engine"]) == ("hybrid/hybrid", 500, "pure")
    assert [(cell["broker"], cell["path"]) for cell in data["cells"]] == [
        (node, f"/data/b{node}/d{index}") for node in range(3) for index in range(3)
    ]
    assert {tuple(cell["states"].items()) for cell in data["cells"]} == {(("VERIFIED", 2),)}
    assert data["cells"][4]["directory"] == directory_id(1, 1)


def test_before_they_have_ids_directories_are_told_apart_by_their_paths() -> None:
    """In ZooKeeper mode there is no directory.id."""
    data = kept(whole(Stage.ASSESS))["ledger"]
    assert [cell["directory"] for cell in data["cells"]] == [""] * 9
    assert {tuple(cell["states"].items()) for cell in data["cells"]} == {(("MIGRATING", 2),)}


def test_replicas_of_a_dead_directory_have_no_place() -> None:
    """They are counted all the same."""
    data = kept(broken_disk(1)(whole(Stage.KRAFT_MODE)))["ledger"]
    assert "/data/b1/d2" not in [cell["path"] for cell in data["cells"]]
    assert [cell["states"] for cell in data["cells"] if cell["path"] == ""] == [{"NOT ON DISK": 2}]
    assert sum(sum(cell["states"].values()) for cell in data["cells"]) == 18


def test_unseen_disks_leave_the_rows_without_a_place() -> None:
    """By broker, none lost."""
    world = relook(without("disks")(whole(Stage.KRAFT_MODE)))
    cells = kept(world)["ledger"]["cells"]
    assert [(cell["broker"], cell["path"], cell["states"]) for cell in cells] == [
        (node, "", {"UNKNOWN": 6}) for node in range(3)
    ]


def test_one_broker_whose_disks_are_unseen_leaves_its_own_rows_without_a_place() -> None:
    """The others keep theirs."""
    world = whole(Stage.KRAFT_MODE)
    assert not isinstance(world.disks, Unknown)
    world = relook(replace(world, disks={**world.disks, NodeId(1): Unknown("no mount")}))
    cells = kept(world)["ledger"]["cells"]
    assert [(cell["path"], cell["states"]) for cell in cells if cell["broker"] == 1] == [("", {"UNKNOWN": 6})]
    assert len([cell for cell in cells if cell["path"]]) == 6


def test_the_comparison_is_kept_as_counts_and_rules() -> None:
    """No values: they may be long, and are in the answer of `diff`."""
    excused = Difference("topic", "t", "f", DifferenceClass.EXPECTED, "a", "b", rule="MIGRATION-ZNODES")
    counts = {"topic": {"EQUAL": 6, "EXPECTED": 2}, "topic-config": {"DIFFERS": 1}}
    report = DiffReport(500, 3, counts, (WRONG, excused, excused), ("a blind spot",))
    data = kept(replace(whole(Stage.COPY), diff=report))["diff"]
    assert data == {
        "step": "hybrid/hybrid",
        "offset": 500,
        "lag": 3,
        "counts": counts,
        "unexcused": 1,
        "expected": {"MIGRATION-ZNODES": 2},
        "blind_spots": ["a blind spot"],
        "samples": [
            {
                "about": "DIFFERS topic-config orders retention.ms",
                "zookeeper": "1",
                "kraft": "2",
                "cause": "the znode was written past Kafka, or dual write of it failed",
                "what_to_do": REPEAT,
            }
        ],
    }


def test_what_was_not_looked_at_leaves_nothing() -> None:
    """An empty ledger in the journal would read like no replicas."""
    assert kept(replace(whole(Stage.COPY), ledger=Unknown("x"), diff=Unknown("y"), copy=Unknown("z"))) == {}


def test_the_check_of_the_copy_is_kept_with_names_and_without_values() -> None:
    """What is lost may be a secret's digest; a run that kept no look says so."""
    lost = Difference("scram", "bob", "SCRAM-SHA-256.salt", DifferenceClass.ONLY_ZK, "hmac:77", None)
    known = Difference("topic-config", "ghost", "retention.ms", DifferenceClass.EXPECTED, "1", None, "W-ZKN-21")
    data = kept(replace(whole(Stage.COPY), copy=replace(worlds.COPY_HELD, lost=(lost,), known=(known,))))[COPY_CHECK]
    assert (data["lost"], data["samples"]) == (1, ["scram bob SCRAM-SHA-256.salt"])
    assert data["known"] == {"W-ZKN-21": [["topic-config", "ghost", "retention.ms"]]}
    assert "hmac:77" not in str(data)
    none = kept(replace(whole(Stage.COPY), copy=NoLook("none was kept")))[COPY_CHECK]
    assert none == {"step": "hybrid/hybrid", "at_end": False, "not_checked": "none was kept"}
