"""Model and reality keep each other honest: what real runs did, the model can follow, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.testing.explorer.follow import CannotFollow, Follower
from tests.testing.explorer.record import Event, lines, read

TRACES: Final = sorted((Path(__file__).parents[1] / "data" / "traces").glob("*.jsonl"))
KEYS: Final = frozenset(("at", "event", "effect", "node", "step", "state", "mode", "before", "after", "what", "znode"))
MIGRATION: Final = next(path for path in TRACES if path.stem == "migration")


def follower() -> Follower:
    """The lab's cluster."""
    return Follower((0, 1, 2), (3000, 3001, 3002))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_model_follows_every_kept_trace(path: Path) -> None:
    """Of real Kafka: effects are moves of the machine and break no promise, the rest are moves of the cluster."""
    events = read(path)
    here = follower()
    here.follow(events)
    assert here.followed == len(events) > 50
    assert here.states


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_kept_traces_hold_nothing_of_their_machine(path: Path) -> None:
    """No path, no name of a host or of a topic; and they are written as they are read."""
    text = path.read_text()
    assert {key for event in read(path) for key in event} <= KEYS
    assert not any(word in text for word in ("/home", "/tmp", "/work", "localhost", "127.0.0.1", "password"))
    assert lines(read(path)) == text


def index_of(events: list[Event], **wanted: object) -> int:
    """Where the first such event stands."""
    return next(number for number, event in enumerate(events) if wanted.items() <= event.items())


def refused(events: list[Event]) -> str:
    """The model cannot follow this; what it says."""
    with pytest.raises(CannotFollow) as caught:
        follower().follow(events)
    return str(caught.value)


def test_a_copy_before_the_last_registration_cannot_be_followed() -> None:
    """Two lines exchanged, and the model says which one cannot be, and where it stands."""
    events = read(MIGRATION)
    early = events.pop(index_of(events, event="driver", after="BECOME_CONTROLLER"))
    events.insert(index_of(events, event="registered", node=2), early)
    said = refused(events)
    assert "BECOME_CONTROLLER" in said
    assert "brokers mm" in said
    assert "log PRE_MIGRATION" in said


@pytest.mark.parametrize(
    "drop",
    [
        {"event": "effect", "effect": "stop", "node": 1},
        {"event": "effect", "effect": "start", "node": 2},
        {"event": "effect", "effect": "format", "node": 3001},
        {"event": "elected", "node": 3001},
        {"event": "registered", "node": 2, "mode": "migrating"},
        {"event": "registered", "node": 0, "mode": "kraft"},
        {"event": "directories", "node": 1},
        {"event": "state", "state": "MIGRATION"},
        {"event": "driver", "after": "DUAL_WRITE"},
        {"event": "elected", "node": 3000},
        {"event": "effect", "effect": "write-config", "node": 3002, "step": "finalize/2-of-3"},
    ],
    ids=lambda drop: "-".join(str(value) for value in drop.values()),
)
def test_a_trace_without_one_of_its_events_cannot_be_followed(drop: dict[str, object]) -> None:
    """Each of them was needed for what came after it."""
    events = read(MIGRATION)
    del events[index_of(events, **drop)]
    refused(events)


def test_a_second_broker_stopped_beside_the_first_cannot_be_followed() -> None:
    """The machine does not allow it, whatever Kafka would have done."""
    events = read(MIGRATION)
    second = {**events[index_of(events, effect="stop", node=0)], "node": 1}
    events.insert(index_of(events, effect="stop", node=0) + 1, second)
    assert "'node': 1" in refused(events)


def test_a_controller_that_another_hand_starts_without_the_flag_is_followed_to_its_election() -> None:
    """What is outside of the plan stands in a trace as what it is."""
    events = read(MIGRATION)[: index_of(read(MIGRATION), effect="stop", node=3000)]
    ends: Event = {"at": 1.0, "event": "outside", "node": 3001, "what": "ends"}
    elected: Event = {"at": 2.0, "event": "elected", "node": 3000}
    here = follower()
    here.follow([*events, ends, {**ends, "what": "starts"}, elected])
    said = refused([*events, ends, {**ends, "what": "starts"}, elected, {"event": "state", "state": "POST_MIGRATION"}])
    assert "POST_MIGRATION" in said  # each of them had the flag


def test_an_event_of_no_known_kind_is_refused() -> None:
    """The converter and the model are changed together."""
    assert "no such event" in refused([{"at": 0.0, "event": "rebalance"}])
