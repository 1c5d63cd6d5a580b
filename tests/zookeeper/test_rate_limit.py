"""No more operations reach ZooKeeper than the operator allows; each is counted, whatever carries it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.secrets import Digester
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.multiread import MAX_OPERATIONS, MultiRead
from migrate.zookeeper.rate_limit import AT_ONCE_SECONDS, Pace
from migrate.zookeeper.read import read_migration, read_view
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree


class FakeClock:
    """Time that passes only by sleeping, or when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


def paced(rate: int | None, clock: FakeClock) -> Pace:
    """A pace on that clock."""
    return Pace(rate, monotonic=clock.monotonic, sleep=clock.sleep)


def most_within(sent: Sequence[tuple[float, int]], seconds: float) -> int:
    """The most operations that any such window of time saw."""
    return max(sum(n for at, n in sent if start <= at < start + seconds) for start, _ in sent)


@pytest.mark.slow
@given(
    st.integers(1, 20_000),
    st.lists(st.tuples(st.integers(1, 2_000), st.floats(0, 3)), min_size=1, max_size=40),
)
def test_no_window_of_time_sees_more_than_the_rate(rate: int, requests: list[tuple[int, float]]) -> None:
    """However the caller pauses: what was not used is not saved up beyond a tenth of a second."""
    clock = FakeClock()
    pace = paced(rate, clock)
    sent: list[tuple[float, int]] = []
    for count, pause in requests:
        part = min(count, pace.at_once(MAX_OPERATIONS))
        pace.take(part)
        sent.append((clock.now, part))
        clock.now += pause
    for seconds in (0.5, 1.0, 5.0):
        assert most_within(sent, seconds) <= rate * (seconds + 2 * AT_ONCE_SECONDS) + 1
    assert pace.operations == sum(n for _, n in sent)


@pytest.mark.parametrize("rate", [1, 7, 100, 5_000, 100_000])
def test_the_rate_is_used_up_where_there_is_enough_to_ask(rate: int) -> None:
    """A limit costs what it says, and no more: the fake clock only moves by the pace's own sleeping."""
    clock = FakeClock()
    pace = paced(rate, clock)
    begun, left = clock.now, 20 * rate
    while left:
        part = min(left, pace.at_once(MAX_OPERATIONS))
        pace.take(part)
        left -= part
    assert 20 * 0.95 - 1 <= clock.now - begun <= 20


def test_an_oversleeping_clock_is_caught_up() -> None:
    """A busy machine wakes us late: the rate is still reached."""
    clock = FakeClock()
    pace = Pace(1000, monotonic=clock.monotonic, sleep=lambda seconds: clock.sleep(seconds + 0.02))
    begun = clock.now
    for _ in range(100):
        pace.take(pace.at_once(MAX_OPERATIONS))
    assert clock.now - begun < 10 * 1.05


def test_without_a_rate_nothing_waits_and_everything_is_counted() -> None:
    """And requests are as large as the server takes them."""
    clock = FakeClock()
    pace = paced(None, clock)
    for _ in range(50):
        pace.take(500)
    assert (pace.operations, clock.slept, pace.at_once(MAX_OPERATIONS)) == (25_000, [], MAX_OPERATIONS)
    assert str(pace) == "as fast as it answers"
    assert str(paced(1500, clock)) == "at most 1,500 operations a second"


@pytest.mark.parametrize("rate", [0, -5])
def test_a_rate_below_one_is_no_rate(rate: int) -> None:
    """It would wait for ever."""
    with pytest.raises(ValueError, match="operations a second"):
        Pace(rate)


def test_a_read_that_is_held_back_is_said_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """A minute without a word looks like a hang; a line a request would be noise."""
    clock = FakeClock()
    pace = paced(10, clock)
    with caplog.at_level(logging.INFO, "migrate.zookeeper"):
        for _ in range(600):
            pace.take(1)
    assert 10 <= len(caplog.messages) <= 12
    assert caplog.messages[0].endswith("operations asked for, at most 10 a second")


def counted(client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> list[tuple[float, int]]:
    """(time, operations) of every request that is handed to the connection from now on."""
    sent: list[tuple[float, int]] = []
    call = client.kazoo._call

    def seen(request: object, result: object) -> object:
        kind = getattr(request, "type", 0)
        sent.append((clock.now, len(request.paths) if isinstance(request, MultiRead) else int(kind > 0)))
        return call(request, result)

    monkeypatch.setattr(client.kazoo, "_call", seen)
    return sent


@pytest.mark.zookeeper
@pytest.mark.parametrize("multiread", [True, False], ids=["multiread", "one by one"])
def test_a_whole_view_is_read_within_the_rate(
    multiread: bool, server: ZookeeperServer, chroot: str, client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operation that reaches the connection was let through by the pace, and the view is the same."""
    load_tree(client, golden("hybrid-after-copy"))
    digester, clock = Digester(), FakeClock()
    free = read_view(client, digester)
    with connect(server.address + chroot, pace=paced(50, clock)) as slow:
        slow.multiread = multiread
        before, sent = slow.pace.operations, counted(slow, monkeypatch, clock)
        view = read_view(slow, digester)
        assert sum(number for _, number in sent) == slow.pace.operations - before
        assert max(number for _, number in sent) <= slow.pace.at_once(MAX_OPERATIONS) == 5
        assert sum(number for _, number in sent) > 200
        assert most_within(sent, 1.0) <= 50 * 1.2 + 1
        assert slow.multiread is multiread
    assert (view.partitions, view.entities, view.brokers) == (free.partitions, free.entities, free.brokers)


@pytest.mark.zookeeper
def test_few_requests_carry_many_operations_where_nothing_limits_them(
    client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three znodes of the takeover are one request, and three operations."""
    create(client, layout.CONTROLLER_EPOCH, b"1")
    before, sent = client.pace.operations, counted(client, monkeypatch, FakeClock())
    read_migration(client)
    assert [number for _, number in sent] == [3]
    assert client.pace.operations - before == 3


@pytest.mark.zookeeper
def test_writes_are_not_held_back(server: ZookeeperServer, chroot: str) -> None:
    """A lock that is given back late helps nobody."""
    clock = FakeClock()
    with connect(server.address + chroot, pace=paced(1, clock)) as client:
        slept = list(clock.slept)
        for number in range(20):
            transaction = client.kazoo.transaction()
            transaction.create(f"/{number}", b"")
            client.commit(transaction, "/")
        assert clock.slept == slept
