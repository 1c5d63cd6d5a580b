"""`kraft-migrate metadata compare`: both sides' files, and what they agree on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import kraft_migrate
from tests.observe.test_agreement import CLUSTER, SIZE, made

DIFFERENT = [("ISR in ZooKeeper", 0, 1), ("adding in KRaft", 2, 3), ("a topic comes in KRaft", 3, 0)]


def folders(tmp_path: Path, picked: list[tuple[str, int, int]]) -> list[str]:
    """The words of the command."""
    zookeeper, kraft = made(tmp_path, picked)
    return [str(kraft), "--zookeeper-files", *zookeeper.folders]


def test_equal_files_end_with_0_and_say_what_was_excused(tmp_path: Path) -> None:
    """And what such an answer is worth."""
    answer = kraft_migrate("metadata", "compare", *folders(tmp_path, []))
    assert answer.code == 0
    first, second, third, *notes = answer.out.splitlines()
    assert first.startswith("equal: ZooKeeper after zxid 0x")
    assert f"{SIZE} partitions" in second
    assert "1 differences are expected by rules (X-FEATURE-01)" in third
    assert any("a gate compares every field" in note for note in notes)
    assert any("the metadata says NONE" in note for note in notes)
    assert any("dual write up to metadata offset -1" in note for note in notes)


def test_files_that_differ_end_with_2_and_name_topics_and_objects(tmp_path: Path) -> None:
    """Each once."""
    answer = kraft_migrate("metadata", "compare", *folders(tmp_path, DIFFERENT))
    assert answer.code == 2
    assert answer.out.startswith("not equal: ")
    for topic in (0, 2):
        assert answer.out.count(f"topic {CLUSTER[topic].name}: ") == 1
    assert "topic born-3 topic_id: ZooKeeper has none, KRaft has " in answer.out


def test_json_has_all_of_it(tmp_path: Path) -> None:
    """Schema 1."""
    answer = kraft_migrate("metadata", "compare", *folders(tmp_path, DIFFERENT), "-o", "json")
    assert answer.code == 2
    told = json.loads(answer.out)
    assert (told["schema"], told["equal"]) == ("kraft-migrate/metadata-compare/v1", False)
    assert told["topics"] == sorted([CLUSTER[0].name, CLUSTER[2].name])
    assert [(row["kind"], row["key"]) for row in told["differences"]] == [("topic", "born-3")]
    assert [(row["key"], row["rule"]) for row in told["excused"]] == [("metadata.version", "X-FEATURE-01")]
    assert told["equal_partitions"] == SIZE - 100
    assert told["notes"]


@pytest.mark.parametrize("missing", ["metadata", "zookeeper"])
def test_what_is_not_there_is_an_error_that_names_it(missing: str, tmp_path: Path) -> None:
    """Neither side is taken for empty."""
    kraft, option, zookeeper = folders(tmp_path, [])
    words = [kraft + "-gone", option, zookeeper] if missing == "metadata" else [kraft, option, zookeeper + "-gone"]
    answer = kraft_migrate("metadata", "compare", *words)
    assert answer.code == 1
    assert "-gone" in answer.err


def test_a_chroot_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    """As everywhere."""
    assert kraft_migrate("metadata", "compare", *folders(tmp_path, []), "--chroot", "kafka").code == 64
