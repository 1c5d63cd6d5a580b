"""A start's verdict: that of Kafka's own classes for every ensemble and mode, with the file and the mend in words."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
import re
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts.kafka_start import look_for_start
from migrate.hosts.meta_properties import decode
from migrate.model.broker_modes import Mode
from migrate.model.kafka_start import Asked, Start, decide_start
from migrate.model.views import MetaBroken, MetaProperties
from tests.testing.ensembles import CLUSTER, ENSEMBLES, FILES, MODES, NODE, OTHER_CLUSTER, Ensemble, file, v0, v1
from tests.testing.kafka_starts import KafkaSays, KafkaStarts, captured, kafka_starts, says

REMEDY = re.compile(
    r"\b(Install|Put|Restore|Write|Complete|Repair|Move|Name|Spell|Find out|format"
    r"|Is the disk mounted|Are the disks mounted)\b"
)
# what Kafka says -> what we say
SAYINGS = {
    "No readable meta.properties files found": "no meta.properties can be read",
    "ZK-based brokers that are not migrating only support version 0": "version 0 only",
    "Invalid cluster.id in": "has cluster.id",
    "Stored node id": "has node id",
    "Invalid resrved directory ID": "which Kafka reserves",
    "Duplicate directory ID": "meta.properties",
    "Duplicate log directory found": "one directory",
    "Encountered I/O error in metadata log directory": "it is the metadata directory",
    "Found unexpected metadata location": "it belongs in",
    "No `meta.properties` found in": "is not there",
    "Error: node ID not found": "has no node id",
    "Error: cluster ID not found": "has no cluster.id",
    "halt": "no log directory can be used",
}


def verdict(ensemble: Ensemble, mode: str, base: Path) -> Start:
    """Ours, on the ensemble made below `base`."""
    log_dirs, metadata_dir = ensemble.make(base)
    asked = Asked(Mode(mode), CLUSTER, NODE, tuple(log_dirs), metadata_dir)
    return decide_start(asked, look_for_start(asked))


def spoken(found: Start, base: Path) -> tuple[bool, tuple[str, ...]]:
    """What is compared with Kafka."""
    return found.starts, tuple(sorted(str(Path(path).relative_to(base)) for path in found.failed))


def named(name: str) -> Ensemble:
    """That one."""
    (found,) = (ensemble for ensemble in ENSEMBLES if ensemble.name == name)
    return found


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    """Every ensemble in every mode has an answer of Kafka's; both answers are common in each mode."""
    answers = captured()
    assert len({ensemble.name for ensemble in ENSEMBLES}) == len(ENSEMBLES) >= 40
    assert set(answers) == {(ensemble.name, mode) for ensemble in ENSEMBLES for mode in MODES}
    for mode in MODES:
        starts = [said.starts for (_, where), said in answers.items() if where == mode]
        assert min(starts.count(True), starts.count(False)) >= 25, mode
    assert sum(bool(said.failed) for said in answers.values()) >= 60


@pytest.mark.parametrize("mode", MODES)
def test_our_verdict_is_that_of_kafkas_own_classes(mode: str, tmp_path: Path) -> None:
    """Starts or not, and which directories failed; the reason is Kafka's, and names the same file."""
    answers = captured()
    for number, ensemble in enumerate(ENSEMBLES):
        base = tmp_path / str(number)
        found, kafka = verdict(ensemble, mode, base), answers[ensemble.name, mode]
        assert spoken(found, base) == (kafka.starts, kafka.failed), (ensemble.name, found, kafka)
        if kafka.said:
            (said,) = (ours for theirs, ours in SAYINGS.items() if theirs in kafka.said)
            assert said in found.reason, (ensemble.name, found, kafka)
            assert _same_place(kafka, found, base), (ensemble.name, found, kafka)


def _same_place(kafka: KafkaSays, found: Start, base: Path) -> bool:
    """The directory that Kafka names last is named by us as well."""
    places = re.findall(r"/(d\d|m)\b", kafka.said)
    return not places or f"{base}/{places[-1]}" in found.reason


@pytest.mark.parametrize("mode", MODES)
def test_every_refusal_and_every_failed_directory_names_the_place_and_the_remedy(mode: str, tmp_path: Path) -> None:
    """For whoever stands before a host at night."""
    for number, ensemble in enumerate(ENSEMBLES):
        base = tmp_path / str(number)
        found = verdict(ensemble, mode, base)
        if not found.starts:
            assert str(base) in found.reason, ensemble.name
            assert REMEDY.search(found.reason), (ensemble.name, found.reason)
        for path in found.failed:
            (told,) = (line for line in found.warnings if line.startswith(f"{path} counts as failed"))
            assert REMEDY.search(told), told


@pytest.mark.parametrize(
    "name",
    ["an empty file", "blank lines", "64 zero bytes", "torn between two keys", "a byte order mark", "no version"],
)
@pytest.mark.parametrize("mode", MODES)
def test_what_kafka_takes_in_silence_is_a_warning(name: str, mode: str, tmp_path: Path) -> None:
    """Kafka starts (the ZooKeeper modes), gives the directory a new id, and every replica in it is misplaced."""
    ensemble = named(f"{name}, as the second")
    log_dirs, metadata_dir = ensemble.make(tmp_path / "e")
    (Path(log_dirs[1]) / "t-0").mkdir()
    (Path(log_dirs[1]) / f"t-1.{'0' * 32}-stray").mkdir()  # nobody's loss
    asked = Asked(Mode(mode), CLUSTER, NODE, tuple(log_dirs), metadata_dir)
    found = decide_start(asked, look_for_start(asked))
    told = [line for line in found.warnings if f"{log_dirs[1]}/meta.properties" in line]
    assert any("cannot be trusted" in line for line in told)
    loses_id = name not in ("no version", "a byte order mark")
    assert any("1 replica is in it" in line and "wrong directory" in line for line in told) is (
        loses_id and mode != "zookeeper"
    )
    assert captured()[ensemble.name, mode].failed == found.failed == ()


def test_kraft_does_not_know_its_cluster_so_we_say_it(tmp_path: Path) -> None:
    """All directories of another cluster: the process starts, the controllers refuse it."""
    found = verdict(named("all of another cluster"), "kraft", tmp_path / "e")
    assert found.starts
    assert sum(OTHER_CLUSTER in line and "refuse" in line for line in found.warnings) == 2


def test_version_1_starts_in_migration_mode_and_stops_a_rollback(tmp_path: Path) -> None:
    """KAFKA-20762: what kafka-storage wrote on a replaced disk."""
    found = verdict(named("version 1, as the second"), "migration", tmp_path / "e")
    assert found.starts
    assert any("rollback" in line for line in found.warnings)
    back = verdict(named("version 1, as the second"), "zookeeper", tmp_path / "z")
    assert not back.starts
    assert "version=0, broker.id" in back.reason


def test_a_healthy_node_has_no_warnings(tmp_path: Path) -> None:
    """In any mode: a warning must mean something."""
    for mode in MODES:
        found = verdict(named("three good ones"), mode, tmp_path / mode)
        assert found == Start(True, "Kafka would start with 3 directories", (), ())


def test_the_empty_directory_of_a_kraft_node_is_formatted_and_one_with_replicas_is_not(tmp_path: Path) -> None:
    """kafka-storage would give replicas a new directory.id."""
    ensemble = named("no file, as the second")
    assert f"--cluster-id={CLUSTER}" in verdict(ensemble, "kraft", tmp_path / "e").reason
    log_dirs, metadata_dir = ensemble.make(tmp_path / "r")
    (Path(log_dirs[1]) / "t-0").mkdir()
    asked = Asked(Mode.KRAFT, CLUSTER, NODE, tuple(log_dirs), metadata_dir)
    reason = decide_start(asked, look_for_start(asked)).reason
    assert "kafka-storage" not in reason
    assert f"version=0, broker.id={NODE}, cluster.id={CLUSTER}" in reason


# -- against the real classes ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def kafka() -> Any:
    """One JVM for all of it."""
    with kafka_starts() as starts:
        yield starts


@pytest.mark.kafka
def test_kafkas_classes_still_say_what_was_captured(kafka: KafkaStarts, tmp_path: Path) -> None:
    """Every ensemble in every mode, asked again: the file that the fast tests go by is true."""
    answers = captured()
    for number, ensemble in enumerate(ENSEMBLES):
        for mode in MODES:
            said = says(kafka, ensemble, mode, tmp_path / f"{number}-{mode}")
            then = answers[ensemble.name, mode]
            assert (said.starts, said.failed) == (then.starts, then.failed), (ensemble.name, mode, said)


def _mutations(count: int, seed: int) -> list[bytes]:
    """Files with a few bytes changed, taken away, doubled or cut off: many still parse."""
    chance = random.Random(seed)
    found = []
    bases = [*FILES.values(), v0(1), v1(1), v0(1), v1(1)]
    for _ in range(count):
        raw = bytearray(chance.choice(bases) or b"version=0\n")
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(raw))
            match chance.randrange(5):
                case 0:
                    raw[at] = chance.choice(b"=: \\\n\r\t\f#!u0129-+A_\x00\xff")
                case 1:
                    del raw[at : at + chance.randint(1, 4)]
                case 2:
                    raw[at:at] = raw[at : at + chance.randint(1, 12)]
                case 3:
                    raw[at:at] = chance.choice([b"\\u0031", b"\\", b"\r\n", b"  ", b"\\\n "])
                case _:
                    del raw[max(at, 40) :]
            raw = raw or bytearray(b"x")
        found.append(bytes(raw))
    return found


@pytest.mark.kafka
def test_files_of_random_damage_are_read_as_kafka_reads_them(kafka: KafkaStarts, tmp_path: Path) -> None:
    """Values or failure, file by file, by Kafka's own loader in one call."""
    files = _mutations(1500, 858)
    for number, raw in enumerate(files):
        file(raw)(tmp_path / str(number))
    ours = {str(tmp_path / str(number)): decode(raw, strict=False) for number, raw in enumerate(files)}
    theirs = kafka.loaded([*ours])
    kinds = {type(found) for found in ours.values()}
    assert kinds == {MetaProperties, MetaBroken}
    for path, found in ours.items():
        expected = theirs[path]
        if isinstance(found, MetaBroken):
            assert expected is None, (Path(path, "meta.properties").read_bytes(), found, expected)
        else:
            values = (found.version, found.cluster_id, found.node_id, found.directory_id)
            assert expected == values, (Path(path, "meta.properties").read_bytes(), found)
