"""The backup before the copy is found in whichever run's folder it is, and with the check that was made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate.model.inventory import Inventory
from migrate.run.past_runs import NOTE, kept_before_copy
from tests.run.test_past_runs import journal
from tests.testing import worlds

DIGEST, OTHER = "a" * 64, "b" * 64


def here(tmp_path: Path) -> Inventory:
    """A cluster whose runs' folder is empty."""
    return replace(worlds.inventory(), runs=str(tmp_path / "runs"))


def noted(digest: str) -> dict[str, Any]:
    """The note of such a backup."""
    name = "zookeeper-before-copy.jsonl.gz"
    return {"key": NOTE, "value": f"{name}: denied 0, path /x/{name}, sha256 {digest}, znodes 3, zxid 7"}


def checked(**changes: Any) -> dict[str, Any]:
    """The event of a check that found nothing lost."""
    return {
        "step": "copy/copy",
        "zxid": 7,
        "offset": 40,
        "at_end": True,
        "counts": {},
        "lost": 0,
        "miscounted": [],
        **changes,
    }


def test_none_is_kept_where_no_journal_names_one(tmp_path: Path) -> None:
    """The backup of stage prepare is another one."""
    inventory = here(tmp_path)
    other = {**noted(DIGEST), "key": "backup:zookeeper"}
    journal(inventory, "one", (2.0, "note", other))
    journal(inventory, "two", (2.0, "note", noted(DIGEST)), cluster="another")
    assert kept_before_copy(inventory) is None


def test_the_newest_of_all_runs_is_found(tmp_path: Path) -> None:
    """A run that was killed and planned anew goes on with what was kept."""
    inventory = here(tmp_path)
    journal(inventory, "one", (5.0, "note", noted(OTHER)))
    folder = journal(inventory, "two", (3.0, "note", noted(OTHER)), (9.0, "note", noted(DIGEST)))
    found = kept_before_copy(inventory)
    assert found is not None
    assert (found.path, found.sha256) == (str(folder / "backup" / "zookeeper-before-copy.jsonl.gz"), DIGEST)
    assert (found.run, found.concluded) == ("two", None)


def test_a_check_counts_for_the_look_before_it_alone(tmp_path: Path) -> None:
    """Where nothing was lost, and the copy's own end was seen."""
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"lost": 1}, False),
        ({"at_end": False}, False),
        ({"miscounted": ["TOPIC_RECORD: 1, 0"]}, False),
        ({"zxid": 8}, True),
    ]
    for number, (changes, counts) in enumerate(cases):
        inventory = here(tmp_path / str(number))
        journal(inventory, "one", (2.0, "note", noted(DIGEST)), (3.0, "copy-check", checked(**changes)))
        found = kept_before_copy(inventory)
        assert found is not None
        assert (found.concluded is not None) is counts
        journal(inventory, "two", (4.0, "note", noted(OTHER)))  # a second attempt
        later = kept_before_copy(inventory)
        assert later is not None
        assert later.concluded is None


def test_a_check_without_a_look_counts_for_nothing(tmp_path: Path) -> None:
    """It said that nothing was kept."""
    inventory = here(tmp_path)
    journal(inventory, "one", (2.0, "copy-check", {"step": "copy/copy", "at_end": False, "not_checked": "no look"}))
    assert kept_before_copy(inventory) is None
