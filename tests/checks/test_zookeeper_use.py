"""Who still uses a ZooKeeper that the cluster does not need any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from migrate import checks
from migrate.checks.zookeeper_use import Use, use_of, with_ensemble
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.ensemble import Ensemble, EnsembleServer
from migrate.model.findings import Severity
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from tests.testing.worlds import with_values, world_at

SILENT = Unknown("zk1:2181 does not answer srvr")
IDLE = EnsembleServer("zk1:2181", listens=True, role="leader")
DOWN = EnsembleServer("zk2:2181", listens=False)


def seen(*servers: EnsembleServer, strangers: tuple[str, ...] | Unknown = ()) -> World:
    """A cleaned cluster beside these servers."""
    return replace(world_at(Stage.CLEANUP), ensemble=Ensemble(servers, strangers))


def use(world: World) -> Use:
    """Somebody asked."""
    found = use_of(world)
    assert found is not None
    return found.use


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (seen(IDLE), Use.UNUSED),
        (seen(IDLE, DOWN), Use.UNUSED),
        (seen(DOWN), Use.STOPPED),
        (seen(DOWN, strangers=Unknown("no server of ZooKeeper serves")), Use.STOPPED),
        (seen(replace(IDLE, clients=2)), Use.USED),
        (seen(IDLE, strangers=("/solr",)), Use.USED),
        (seen(replace(IDLE, clients=SILENT)), Use.UNKNOWN),
        (seen(replace(IDLE, listens=SILENT)), Use.UNKNOWN),
        (seen(DOWN, replace(IDLE, listens=SILENT)), Use.UNKNOWN),
        (seen(IDLE, strangers=Unknown("needs READ")), Use.UNKNOWN),
        (seen(replace(IDLE, role=""), strangers=Unknown("no server of ZooKeeper serves")), Use.UNKNOWN),
        (replace(world_at(Stage.CLEANUP), ensemble=Unknown("E-ZK-02")), Use.UNKNOWN),
        (with_values(seen(IDLE), 1, zookeeper__connect="zk1:2181"), Use.USED),
        (replace(seen(IDLE), configs=Unknown("no host answers")), Use.UNKNOWN),
        (replace(seen(DOWN), configs=Unknown("no host answers")), Use.UNKNOWN),
    ],
)
def test_unknown_is_not_nobody(world: World, expected: Use) -> None:
    """Every server, every znode and every file was seen, or the answer is not `nobody`."""
    assert use(world) is expected


def test_whoever_uses_it_is_named() -> None:
    """By the server and the hosts, by the znode, by the file."""
    client = replace(IDLE, clients=2, hosts=("10.0.0.7",))
    world = with_values(seen(client, strangers=("/solr", "/hbase")), 1, zookeeper__connect="zk1:2181")
    found = [entry for entry in checks.run(world, target=Stage.CLEANUP) if entry.code == "W-ZKN-24"]
    assert {entry.severity for entry in found} == {Severity.WARNING}
    text = " ".join(f"{entry.about} {entry.message}" for entry in found)
    for part in ("zk1:2181: leader, 2 clients, from 10.0.0.7", "'/solr', '/hbase'", "node 1", "zookeeper.connect"):
        assert part in text


def test_what_cannot_be_asked_is_a_blind_spot_and_no_pass() -> None:
    """It may have any number of clients."""
    found = checks.run(seen(replace(IDLE, clients=SILENT)), target=Stage.CLEANUP)
    (blind,) = [entry for entry in found if entry.code == "W-ZKN-24"]
    assert blind.severity is Severity.BLIND_SPOT
    assert "does not answer srvr" in blind.evidence
    assert "I-ZKN-25" not in {entry.code for entry in found}


@dataclass
class Asked:
    """An observer that remembers what it was asked for."""

    world: World
    needs: list[frozenset[Need]] = field(default_factory=list)

    def observe(self, needs: frozenset[Need], _facts: Mapping[str, str]) -> World:
        """The world as it is."""
        self.needs.append(needs)
        return self.world


def test_nobody_asks_before_the_cleanup_is_proven() -> None:
    """Until then the cluster itself uses every server."""
    observer = Asked(seen(IDLE))
    world = world_at(Stage.FINALIZE)
    assert use_of(with_ensemble(observer, world, world.facts)) is None
    assert observer.needs == []
    cleaned = replace(world_at(Stage.CLEANUP), facts={CLEANUP_PROVEN: "run 3f2a9c01"})
    assert use(with_ensemble(observer, cleaned, cleaned.facts)) is Use.UNUSED
    assert observer.needs == [frozenset({Need.ENSEMBLE})]
