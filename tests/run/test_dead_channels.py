"""Brokers whose thread that speaks to the controller has died are found by their logs, and by no other lines."""

from __future__ import annotations

import pytest

from migrate.run.dead_channels import dead, next_step, why

LINE = "[2026-11-21 22:00:03,001] ERROR [zk-broker-1-to-controller-{}-channel-manager]: Error due to (kafka.server.X)"


@pytest.mark.parametrize("channel", ["alter-partition", "forwarding", "quorum"])
def test_each_channel_of_a_broker_is_known_by_its_thread(channel: str) -> None:
    """Each of them is a NodeToControllerRequestThread."""
    assert dead(["x", LINE.format(channel), "java.lang.IllegalArgumentException: A metric"]) == (channel,)


def test_several_are_told_in_order_and_each_once() -> None:
    """A log may say a line twice."""
    lines = [LINE.format(name) for name in ("forwarding", "alter-partition", "forwarding")]
    assert dead(lines) == ("forwarding", "alter-partition")


@pytest.mark.parametrize(
    "line",
    [
        "[x] INFO [zk-broker-1-to-controller-alter-partition-channel-manager]: Recorded new ZK controller",
        "[x] INFO [zk-broker-1-to-controller-alter-partition-channel-manager]: Shutdown completed",
        "[x] ERROR [ReplicaFetcher replicaId=1, leaderId=0, fetcherId=0] Error due to (x)",
        "",
    ],
)
def test_other_lines_are_not_taken_for_it(line: str) -> None:
    """Neither what the thread says while it lives, nor another thread's end."""
    assert dead([line]) == ()


def test_who_has_none_is_not_told() -> None:
    """Where nobody has one, nothing is said and nothing advised."""
    found = {0: (), 1: ("alter-partition",)}
    (line,) = why(found)
    assert line.startswith("broker 1: ")
    assert next_step(found).startswith("restart broker 1 with the file that lies there")
    assert "brokers [0, 1], one by one," in next_step({0: ("forwarding",), 1: ("alter-partition",)})
    assert why({0: ()}) == ()
    assert next_step({0: ()}) == ""
