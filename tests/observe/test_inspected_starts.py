"""Real starts of a KRaft broker on bent directories: as `directories inspect` said, before it was started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.hosts.kafka_start import look_for_start
from migrate.model.broker_modes import Mode
from migrate.model.kafka_start import Asked, Start, decide_start
from tests.testing.kraft_cluster import BROKER, CLUSTER_ID, KraftCluster

META = "meta.properties"


def inspected(cluster: KraftCluster) -> Start:
    """Our verdict on the broker's directories as they are."""
    paths = tuple(str(cluster.data(BROKER, index)) for index in range(3))
    asked = Asked(Mode.KRAFT, CLUSTER_ID, int(BROKER), paths, paths[0])
    return decide_start(asked, look_for_start(asked))


@pytest.fixture
def bent(kraft_cluster: KraftCluster) -> Iterator[Path]:
    """The last directory's file, of a broker that is down; whole and up again afterwards."""
    assert inspected(kraft_cluster).starts
    kraft_cluster.kill(BROKER)
    path = kraft_cluster.data(BROKER, 2) / META
    raw = path.read_bytes()
    try:
        yield path
    finally:
        path.write_bytes(raw)
        kraft_cluster.start(BROKER)
        kraft_cluster.wait_until_ready()


@pytest.mark.kafka
def test_a_real_broker_starts_or_not_as_was_said(kraft_cluster: KraftCluster, bent: Path) -> None:
    """A cloned disk, and a file that is gone: both end the start, each with Kafka's own word for it."""
    raw = bent.read_bytes()
    log = kraft_cluster.folder / f"{BROKER}.log"
    for content, word in (
        (raw.replace(b"directory.id=", b"#"), None),  # only told: Kafka gives it a new id
        ((kraft_cluster.data(BROKER, 1) / META).read_bytes(), "Duplicate directory ID"),
        (None, "No `meta.properties` found in"),
    ):
        bent.unlink()
        if content is not None:
            bent.write_bytes(content)
        found = inspected(kraft_cluster)
        assert found.starts is (word is None)
        if word is None:
            assert any("has no directory.id" in line for line in found.warnings)
            continue
        assert str(bent) in found.reason
        before = len(log.read_bytes())
        kraft_cluster.start(BROKER)
        assert kraft_cluster.processes.pop(BROKER).wait(timeout=60) != 0
        assert word in log.read_bytes()[before:].decode()
        bent.touch()
