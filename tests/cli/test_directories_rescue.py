"""`directories rescue` as a user calls it: shown first, nothing sent unasked, nothing sent unproven."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.rescue_answer import as_json
from migrate.model.ids import MIGRATING, UNASSIGNED, NodeId
from migrate.model.outcome import Unknown
from migrate.model.rescue import Found, Leaderless
from migrate.model.world import World
from migrate.run import journal as journals
from migrate.run.journal import Journal
from migrate.run.locks import LockFile
from tests.cli.commands import Ended, inventory_in, kraft_migrate
from tests.model.test_rescue import DEAD, healthy, killed, named, remembered
from tests.testing import worlds
from tests.testing.clusters import directory_id
from tests.testing.kept import sources_of

Rescue = Callable[..., Ended]


@pytest.fixture
def rescue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rescue:
    """`directories rescue` on a world."""
    path = inventory_in(tmp_path)
    monkeypatch.setattr("migrate.run.clock.SystemClock.sleep", lambda *_: None)

    def run(world: World, *words: object) -> Ended:
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        return kraft_migrate("directories", "rescue", *words, "--inventory", path)

    return run


def hanging() -> World:
    """Broker 0's second directory is dead, its replicas MIGRATING; the registration is still in the log."""
    return killed(named(healthy(), 0, MIGRATING), DEAD, change=remembered)


def test_a_healthy_cluster_needs_none(rescue: Rescue) -> None:
    """Exit code 0, and what was looked for."""
    answer = rescue(healthy())
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-2] == (
        "nothing to rescue: no directory of a running broker is dead, no replica's is wrong, no leader is missing"
    )


def test_what_hangs_is_shown_with_the_proof_and_nothing_is_sent(rescue: Rescue) -> None:
    """Exit code 2: there is something to do."""
    answer = rescue(hanging())
    assert (answer.code, answer.err) == (2, "")
    lines = answer.out.splitlines()
    assert f"dead: {DEAD} of broker 0, directory {directory_id(0, 1)}" in lines
    assert any(line.strip().startswith(f"{directory_id(0, 1)} by the registration at offset") for line in lines)
    assert any(line.startswith("HANGS  ") and line.endswith("the metadata says MIGRATING") for line in lines)
    assert any(line.startswith(f"to be sent for broker 0: directory {directory_id(0, 1)}, ") for line in lines)
    assert lines[-1] == "dry run; pass --yes to send"


def test_json_has_every_replica_with_what_is_to_be_sent(rescue: Rescue) -> None:
    """Schema 1."""
    answer = rescue(hanging(), "-o", "json")
    assert answer.code == 2
    found = json.loads(answer.out)
    assert (found["command"], found["sent"]) == ("directories rescue", False)
    assert [entry["path"] for entry in found["dead"]] == [DEAD]
    assert found["stranded"]
    assert {row["send"]["id"] for row in found["stranded"]} == {directory_id(0, 1)}
    assert {row["kind"] for row in found["stranded"]} == {"dead"}


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_an_id_that_nothing_proves_is_refused(rescue: Rescue, words: tuple[str, ...]) -> None:
    """Exit code 3, with or without --yes; the rows are shown all the same."""
    answer = rescue(killed(named(healthy(), 0, UNASSIGNED), DEAD), *words)
    assert answer.code == 3
    assert "E-DIR-06" in answer.err
    assert "not proven" in answer.out


def test_a_broker_that_cannot_be_seen_is_no_all_clear(rescue: Rescue) -> None:
    """Its replicas may hang."""
    world = healthy()
    live = worlds.live(world)
    answer = rescue(worlds.with_live(world, log_dirs={**live.log_dirs, NodeId(2): Unknown("timed out")}))
    assert answer.code == 3
    assert "broker 2: timed out" in answer.err
    assert "nothing to rescue among what was seen" in answer.out


def test_metadata_that_cannot_be_seen_is_an_error(rescue: Rescue) -> None:
    """Not: nothing is found."""
    answer = rescue(replace(healthy(), kraft=Unknown("no controller leads")))
    assert answer.code == 1
    assert "no controller leads" in answer.err


def test_a_run_that_goes_on_is_not_disturbed(rescue: Rescue, tmp_path: Path) -> None:
    """Exit code 7 before anything is sent."""
    runs = worlds_runs(tmp_path)
    runs.mkdir(parents=True, exist_ok=True)
    held = LockFile(runs / "lock")
    try:
        answer = rescue(hanging(), "--yes")
    finally:
        held.release()
    assert answer.code == 7
    assert list(runs.glob("rescue-*")) == []


def worlds_runs(tmp_path: Path) -> Path:
    """The runs' folder of that inventory."""
    from migrate.playbook.load import load_inventory

    return Path(load_inventory(inventory_in(tmp_path)).runs)


def test_what_was_shown_can_be_kept_in_a_journal(tmp_path: Path) -> None:
    """Its values are plain, those of partitions without a leader too."""
    found = Found(7, (), (), (Leaderless("t", 0, 1),))
    Journal.begin(tmp_path / "rescue.jsonl", 0.0, {"shown": as_json(found)}).close()
    (event,) = journals.read(tmp_path / "rescue.jsonl").events
    assert event.data["shown"]["leaderless"] == [{"topic": "t", "partition": 0, "broker": 1}]
