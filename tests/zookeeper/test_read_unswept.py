"""While very many values are built, Python does not search them for cycles; afterwards all is as it was."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from migrate.model.columns import unswept
from migrate.model.secrets import Digester
from migrate.zookeeper import read
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.rate_limit import Pace
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import load_tree


@pytest.fixture(autouse=True)
def collector_is_on() -> Iterator[None]:
    """As in every program that does not say otherwise."""
    assert gc.isenabled()
    yield
    gc.enable()


def test_the_collector_rests_while_any_block_runs() -> None:
    """A block inside another one does not wake it, an error does."""
    with unswept():
        with unswept():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(RuntimeError), unswept():
        raise RuntimeError
    assert gc.isenabled()


def test_it_stays_off_where_somebody_turned_it_off() -> None:
    """Who embeds us decides."""
    gc.disable()
    with unswept():
        pass
    assert not gc.isenabled()


def test_blocks_of_several_threads_may_overlap() -> None:
    """The last one that ends turns it on."""
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with unswept():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    with unswept():
        thread.start()
        assert inside.wait(20)
    assert not gc.isenabled()
    leave.set()
    thread.join(20)
    assert gc.isenabled()


@pytest.mark.zookeeper
@pytest.mark.parametrize("rate", [None, 100_000])
def test_a_whole_read_is_unswept_unless_it_is_held_back(
    rate: int | None, client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read at the operator's pace may last for an hour."""
    load_tree(client, golden("zk-before"))
    client.pace = Pace(rate)
    seen: list[bool] = []
    view_of = read.view_of

    def looked(*arguments: object) -> object:
        seen.append(gc.isenabled())
        return view_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(read, "view_of", looked)
    assert len(read.read_view(client, Digester()).partitions) == 212
    assert seen == [rate is not None]
    assert gc.isenabled()
