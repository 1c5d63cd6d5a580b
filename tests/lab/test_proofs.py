"""What the demo's proofs count, by metadata records written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from migrate.lab.proofs import SeededBefore, seeded_before, strays
from migrate.lab.topology import plan_topology
from migrate.model.ids import MIGRATING, UNASSIGNED

DISK, OTHER = "N_aFHZPCY43Hc3suO2ge9w", "Wh6r5IoGOlF9rpEK0fE79w"
Record = tuple[str, dict[str, Any]]


def created(topic: str, directory: str = str(MIGRATING)) -> Record:
    """A partition of broker 2."""
    return "PARTITION_RECORD", {"topicId": topic, "partitionId": 0, "replicas": [2], "directories": [directory]}


def sent(topic: str, directory: str = DISK) -> Record:
    """Its directory, assigned."""
    return "PARTITION_CHANGE_RECORD", {"topicId": topic, "partitionId": 0, "directories": [directory]}


def removed(topic: str) -> Record:
    """The topic, deleted."""
    return "REMOVE_TOPIC_RECORD", {"topicId": topic}


def registered(*, migrating: bool = False) -> Record:
    """Broker 2, with one log directory."""
    return "REGISTER_BROKER_RECORD", {"brokerId": 2, "isMigratingZkBroker": migrating, "logDirs": [DISK]}


def found(*written: Record, sent_from: dict[int, int]) -> SeededBefore:
    """What is said of broker 2; a record's offset is its place."""
    records = [{"type": kind, "offset": offset, "data": data} for offset, (kind, data) in enumerate(written)]
    (seeded,) = seeded_before(records, [2], sent_from)
    return seeded


def test_a_topic_that_was_deleted_before_the_registration_is_not_counted() -> None:
    """Clients that create and delete topics beside a run leave many of them in the log."""
    log = (registered(migrating=True), created("a"), created("b", str(UNASSIGNED)), sent("a"), removed("b"))
    assert found(*log, registered(), sent_from={}) == SeededBefore(2, 5, 1, 1)


def test_a_topic_created_after_the_look_that_directories_were_sent_from_is_counted_apart() -> None:
    """It lives at the registration, and no request could name it."""
    log = (created("a"), sent("a"), created("late", str(UNASSIGNED)), registered())
    assert found(*log, sent_from={2: 1}) == SeededBefore(2, 3, 1, 1, later=1)
    assert found(*log, sent_from={}) == SeededBefore(2, 3, 2, 1)


def test_a_topic_that_existed_at_that_look_and_was_never_sent_is_counted() -> None:
    """Created in dual write or copied from ZooKeeper: the claim of policy drive does not hold."""
    for directory in (MIGRATING, UNASSIGNED):
        log = (created("a"), created("forgotten", str(directory)), sent("a"), registered())
        assert found(*log, sent_from={2: 1}) == SeededBefore(2, 3, 2, 1)


def test_a_directory_of_another_broker_is_told_however_late_its_topic_is() -> None:
    """Nobody may have sent it."""
    log = (created("a"), sent("a"), created("late", OTHER), registered())
    assert found(*log, sent_from={2: 1}).elsewhere == 1


def test_what_is_assigned_behind_the_registration_does_not_count() -> None:
    """The first registration in KRaft mode is the bar."""
    assert found(created("a"), registered(), sent("a"), registered(), sent_from={}) == SeededBefore(2, 1, 1, 0)


def test_a_stray_folder_counts_only_where_its_topic_exists(tmp_path: Path) -> None:
    """What a client deletes while one of its brokers is down is left as stray by that broker, and nobody lacks it."""
    lab = plan_topology(tmp_path)
    for broker in lab.brokers:
        for directory in broker.log_dirs:
            Path(directory).mkdir(parents=True)
    disk = Path(lab.brokers[0].log_dirs[1])
    for name in ("orders.v1-eu-3.1f0c-stray", "churn-7-0.9b2e-stray", "orders.v1-eu-4", "orders.v1-eu-5.77aa-delete"):
        (disk / name).mkdir()
    assert strays(lab, {"orders.v1-eu"}) == [str(disk / "orders.v1-eu-3.1f0c-stray")]
    assert strays(lab, {"orders"}) == []
