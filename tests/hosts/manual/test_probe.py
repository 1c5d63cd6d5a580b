"""A broker is gone once no other one names it, or once the metadata says that its registration is fenced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from migrate.hosts.manual.probe import NetworkWitness
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MetadataAnswer
from tests.testing import worlds

NODE = NodeId(0)
NAMING = MetadataAnswer((0,), (0, 1, 2), 6, ())
WITHOUT = MetadataAnswer((1,), (1, 2), 6, ())


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> Callable[..., NetworkWitness]:
    """A witness to whom brokers 1 and 2 say that."""

    def made(first: Any, second: Any) -> NetworkWitness:
        world = worlds.world_at(Stage.COPY)
        said = {NODE: NAMING, NodeId(1): first, NodeId(2): second}
        seen = replace(worlds.live(world), metadata=said)
        monkeypatch.setattr("migrate.hosts.manual.probe.live.look", lambda *_, **__: seen)
        return NetworkWitness(world.inventory)

    return made


def test_nobody_names_it(witness: Callable[..., NetworkWitness]) -> None:
    """What it says itself does not count; one that does not answer names nobody."""
    assert witness(WITHOUT, WITHOUT).named_by(NODE) == ""
    assert witness(WITHOUT, Unknown("refused")).named_by(NODE) == ""


def test_whoever_names_it_is_told(witness: Callable[..., NetworkWitness]) -> None:
    """And that no metadata says otherwise."""
    assert witness(NAMING, WITHOUT).named_by(NODE).startswith("brokers [1] still name it")


@pytest.mark.parametrize(("fenced", "gone"), [(True, True), (False, False), (Unknown("no controller answers"), False)])
def test_in_dual_write_a_fenced_registration_is_enough(
    witness: Callable[..., NetworkWitness], fenced: bool | Unknown, gone: bool
) -> None:
    """Brokers of ZooKeeper mode go on naming it there; what is unknown is no proof."""
    seen = witness(NAMING, NAMING)
    seen.fenced = lambda node: fenced if node == NODE else Unknown("another one was asked about")
    assert (seen.named_by(NODE) == "") is gone


def test_where_nobody_answers_nothing_is_proven(witness: Callable[..., NetworkWitness]) -> None:
    """Not even by the metadata: a network that is cut looks the same."""
    seen = witness(Unknown("refused"), Unknown("refused"))
    seen.fenced = lambda _: True
    assert "nobody says" in seen.named_by(NODE)
