"""What the cluster says to a seed (the whole seed, on real Kafka: test_cluster)."""

from __future__ import annotations

import pytest

from migrate.errors import SeedRefused
from migrate.lab.seed import not_yet

WHAT = "configuration max.message.bytes of topic 'events-03'"
DONE = {"errorCode": 0, "errorMessage": None}


def test_a_topic_that_a_broker_has_not_learned_of_yet_is_waited_for() -> None:
    """It was made by the broker before; on a slow host the one that is asked hears of it a moment later."""
    unknown = {"errorCode": 3, "errorMessage": "The topic 'events-03' does not exist."}
    assert not_yet([unknown], WHAT) == "The topic 'events-03' does not exist."
    assert not_yet([DONE], WHAT) == ""


def test_what_the_cluster_refuses_is_told_at_once() -> None:
    """Waiting would not help: a wrong value, a missing right."""
    with pytest.raises(SeedRefused, match="events-03' refused") as caught:
        not_yet([DONE, {"errorCode": 40, "errorMessage": "Invalid value"}], WHAT)
    assert caught.value.why == "40: Invalid value"
