"""`metadata dump` equals Kafka's own text, hides what is secret, and re-encodes to the same bytes."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from migrate.errors import BatchCrcError, BatchCutError, BatchError, DecodeError, MetadataFileError, SnapshotError
from migrate.java.find import find_java
from migrate.java.jars import KAFKA_VERSION, kafka_jars
from migrate.java.run import run_tool
from migrate.kraft.dump import REDACTED, dump_lines, java_double
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.protocol import records
from migrate.protocol.batches import Batch, Record, split
from migrate.protocol.loader import BOOL, FLOAT64, Field, Struct, Values, parse
from migrate.protocol.records import RECORDS, decode_control
from tests.kraft.logs import (
    D1,
    DATA,
    STAGES,
    T1,
    T2,
    Entry,
    captured_dump,
    captured_log,
    change,
    log,
    partition,
    rewritten,
    snapshot,
    topic,
)
from tests.testing.encoding import build
from tests.testing.kafka_schemas import schemas_in
from tests.testing.newer_kafka import KAFKAS

SEGMENT = "00000000000000000000.log"
NUMBERS = (0.0, -0.0, 1.0, 150.0, 0.001, 0.00095, 9999999.5, 1e7, 1.5e7, 777500.25, 1e-7, 1e21, 1.7976931348623157e308)


def written(tmp_path: Path, raw: bytes, name: str = SEGMENT) -> Path:
    """A file with these bytes."""
    path = tmp_path / name
    path.write_bytes(raw)
    return path


def dumped(path: Path, *, show_secrets: bool = True) -> list[str]:
    """All lines of one path."""
    return list(dump_lines([path], show_secrets=show_secrets))


def payloads(lines: list[str]) -> list[str]:
    """Our lines as Kafka's tool prints payloads: without offset and epoch, and without control records."""
    return ["{" + line[line.index('"type"') :] for line in lines if not json.loads(line).get("control")]


class TestAgainstKafka:
    """Kafka's own words."""

    @pytest.mark.parametrize("stage", STAGES)
    def test_every_captured_stage_equals_kafkas_dump_record_by_record(self, tmp_path: Path, stage: str) -> None:
        """As text: order of fields and spelling of values included."""
        size, count = STAGES[stage]
        found = payloads(dumped(written(tmp_path, captured_log()[:size])))
        assert len(found) == count
        assert found == captured_dump()[:count]

    @pytest.mark.parametrize("raw", [captured_log(), (DATA / "bootstrap.checkpoint").read_bytes()], ids=["log", "boot"])
    def test_every_captured_batch_is_written_again_byte_for_byte(self, raw: bytes) -> None:
        """The log of a whole migration, and a bootstrap.checkpoint; a lab's own: tests/lab/test_demo.py."""
        assert rewritten(raw, "captured") == raw

    @pytest.mark.kafka
    @pytest.mark.parametrize("release", KAFKAS)
    def test_kafkas_own_tool_reads_what_we_write_and_says_the_same(self, tmp_path: Path, release: str) -> None:
        """Every record type in every version that the release knows, extreme numbers, and text beyond ASCII."""
        jars = kafka_jars(java=find_java(), release=KAFKAS[release])
        package = "kafka.tools" if release == KAFKA_VERSION else "org.apache.kafka.tools"
        schemas = [parse(text) for text in schemas_in(jars.classpath).values() if '"type": "metadata"' in text]
        known = {schema.name: schema.versions for schema in schemas}
        samples = [entry for table in RECORDS.values() if table.name in known for entry in _samples(table)]
        entries = [(table, values, version) for table, values, version in samples if version in known[table.name]]
        path = written(tmp_path, log(*entries))
        arguments = ["--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(path)]
        answer = run_tool(find_java(), jars.classpath, f"{package}.DumpLogSegments", arguments, 120)
        theirs = [line.split("payload: ", 1)[1] for line in answer.stdout.split("\n") if "payload: " in line]
        assert "isvalid: false" not in answer.stdout
        assert "invalid bytes" not in answer.stdout
        assert payloads(dumped(path)) == theirs

    @pytest.mark.kafka
    def test_kafkas_own_tool_reads_our_snapshots(self, tmp_path: Path) -> None:
        """Header, data, footer."""
        raw = snapshot(topic("a", T1), partition(T1, 0, [1], [D1]))
        path = written(tmp_path, raw, "00000000000000000002-0000000003.checkpoint")
        arguments = ["--cluster-metadata-decoder", "--files", str(path)]
        jars = kafka_jars(java=find_java())
        answer = run_tool(find_java(), jars.classpath, "kafka.tools.DumpLogSegments", arguments, 120)
        lines = dumped(path)
        header, footer = (json.dumps(json.loads(lines[at])["data"], separators=(",", ":")) for at in (0, -1))
        assert f"SnapshotHeader {header}" in answer.stdout
        assert f"SnapshotFooter {footer}" in answer.stdout


def _samples(table: Struct) -> list[tuple[Struct, Values, int]]:
    """Each version of a record: bare, and with every field set."""
    found: list[tuple[Struct, Values, int]] = []
    for version in range(table.versions.low, table.versions.high + 1):
        present = [entry for entry in table.fields if version in entry.versions]
        found += [(table, {}, version), (table, {entry.name: _sample(entry, version) for entry in present}, version)]
    if table is records.CLIENT_QUOTA:
        found += [(table, {"key": "k", "value": number}, 0) for number in NUMBERS]
    return found


def _sample(entry: Field, version: int) -> object:
    if entry.type is BOOL:
        return True
    if entry.type is FLOAT64:
        return 2.5
    return SAMPLES.get(entry.name, entry.default_value(version))


SAMPLES = {
    "name": 'ünï\u2028 "q" \\ \t <&> 😀',
    "rack": "r",
    "value": None,
    "endPoints": [{"name": "A", "host": "::1", "port": 65535, "securityProtocol": -1}],
    "features": [{"name": "f", "minSupportedVersion": -1, "maxSupportedVersion": 32767}],
    "logDirs": [D1, T1],
    "cordonedLogDirs": [T1],
    "topicName": "t",
    "controllerId": 3002,
    "replicas": [1, 2**31 - 1, -(2**31)],
    "isr": [],
    "leader": 7,
    "leaderRecoveryState": 1,
    "directories": [D1],
    "eligibleLeaderReplicas": [1],
    "lastKnownElr": [],
    "removingReplicas": [3],
    "addingReplicas": [4],
    "brokerEpoch": 2**63 - 1,
    "fenced": 1,
    "inControlledShutdown": 1,
    "salt": b"\x00\xff\xfe",
    "storedKey": b"",
    "serverKey": b"abc",
    "renewers": ["User:a", "User:b"],
    "entity": [{"entityType": "user", "entityName": None}],
    "reason": "because",
    "topicId": T2,
}


@cache
def captured_records() -> list[list[Record]]:
    """Offset, key and value of each captured record, batch by batch."""
    return [list(found.records()) for found in split(captured_log(), where="captured")]


class TestLines:
    """The shape of a line."""

    def test_a_metadata_record_is_one_object(self, tmp_path: Path) -> None:
        """Keys in the promised order; absent tagged fields are absent."""
        (line,) = dumped(written(tmp_path, log(change(T1, 3, leader=2), epoch=5)))
        data = f'{{"partitionId":3,"topicId":"{T1}","leader":2}}'
        assert line == f'{{"offset":0,"epoch":5,"type":"PARTITION_CHANGE_RECORD","version":1,"data":{data}}}'

    def test_control_records_say_so(self) -> None:
        """The captured bootstrap.checkpoint: header, one feature, footer."""
        lines = [json.loads(line) for line in dumped(DATA / "bootstrap.checkpoint")]
        assert [(line["offset"], line.get("control"), line["type"]) for line in lines] == [
            (0, True, "SNAPSHOT_HEADER"),
            (1, None, "FEATURE_LEVEL_RECORD"),
            (2, True, "SNAPSHOT_FOOTER"),
        ]
        first = json.loads(dumped_first_line())
        assert (first["type"], first["data"]["leaderId"]) == ("LEADER_CHANGE", 3001)

    def test_bytes_are_base64(self, tmp_path: Path) -> None:
        """As Jackson prints them."""
        scram = {"name": "a", "mechanism": 1, "salt": b"\xff\xfe", "storedKey": b"k", "serverKey": b"", "iterations": 1}
        (line,) = dumped(written(tmp_path, log((records.USER_SCRAM_CREDENTIAL, scram))))
        assert json.loads(line)["data"]["salt"] == base64.b64encode(b"\xff\xfe").decode()

    @pytest.mark.parametrize(
        ("number", "text"),
        [
            (0.0, "0.0"),
            (150.0, "150.0"),
            (9999999.5, "9999999.5"),
            (1e7, "1.0E7"),
            (12345678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.00095, "9.5E-4"),
            (-1e21, "-1.0E21"),
            (float("nan"), '"NaN"'),
            (float("-inf"), '"-Infinity"'),
        ],
    )
    def test_doubles_are_spelled_as_java_spells_them(self, number: float, text: str) -> None:
        """`Double.toString`; what JSON cannot say is quoted, as Jackson does."""
        assert java_double(number) == text


def dumped_first_line() -> str:
    """The first record of the captured log."""
    raw = captured_log()
    batch = next(iter(split(raw, where="captured")))
    ((_, key, value),) = batch.records()
    name, _, version, values = decode_control(key, value)
    return json.dumps({"type": name, "version": version, "data": values})


S = "s3cret"
TOKEN: Entry = (
    records.DELEGATION_TOKEN,
    {"owner": f"User:{S}", "requester": f"User:{S}", "renewers": [S], "tokenId": S, "maxTimestamp": 5},
)
SCRAM: Entry = (
    records.USER_SCRAM_CREDENTIAL,
    {"name": "alice", "salt": S.encode(), "storedKey": S.encode(), "serverKey": S.encode()},
)


class TestSecrets:
    """Nothing secret is shown unless it is asked for."""

    def test_scram_tokens_and_passwords_are_redacted(self, tmp_path: Path) -> None:
        """Names, numbers and plain configs are shown."""
        raw = log(
            TOKEN,
            (records.REMOVE_DELEGATION_TOKEN, {"tokenId": S}),
            SCRAM,
            (records.CONFIG, {"resourceType": 4, "name": "ssl.key.password", "value": S}),
            (records.CONFIG, {"resourceType": 4, "name": "listener.name.x.sasl.jaas.config", "value": S}),
            (records.CONFIG, {"resourceType": 4, "name": "ssl.key.password", "value": None}),
            (records.CONFIG, {"resourceType": 2, "name": "retention.ms", "value": "5"}),
        )
        lines = dumped(written(tmp_path, raw), show_secrets=False)
        text = "\n".join(lines)
        assert S not in text
        assert base64.b64encode(S.encode()).decode() not in text
        data = [json.loads(line)["data"] for line in lines]
        assert data[0]["tokenId"] == data[1]["tokenId"] == data[2]["salt"] == data[3]["value"] == REDACTED
        assert (data[0]["maxTimestamp"], data[2]["name"], data[5]["value"], data[6]["value"]) == (5, "alice", None, "5")

    def test_they_are_shown_on_demand(self, tmp_path: Path) -> None:
        """`--show-secrets`."""
        text = "\n".join(dumped(written(tmp_path, log(TOKEN, SCRAM))))
        assert S in text
        assert base64.b64encode(S.encode()).decode() in text

    @pytest.mark.slow
    def test_the_rest_of_the_captured_log_is_the_same_either_way(self, tmp_path: Path) -> None:
        """Only its two SCRAM records differ."""
        path = written(tmp_path, captured_log())
        shown, hidden = dumped(path), dumped(path, show_secrets=False)
        differing = [json.loads(one)["type"] for one, other in zip(shown, hidden, strict=True) if one != other]
        assert set(differing) == {"USER_SCRAM_CREDENTIAL_RECORD"}


class TestPaths:
    """Files, directories, several of them."""

    def test_a_directory_gives_snapshots_then_segments(self, tmp_path: Path) -> None:
        """Each by offset; the metadata directory above gives the same."""
        directory = tmp_path / PARTITION_DIRECTORY
        directory.mkdir()
        written(directory, log(topic("b", T2), base=1), "00000000000000000001.log")
        written(directory, log(topic("a", T1)))
        written(directory, snapshot(topic("a", T1)), "00000000000000000001-0000000003.checkpoint")
        written(tmp_path, snapshot(), "bootstrap.checkpoint")
        lines = dumped(directory)
        types = [json.loads(line)["type"] for line in lines]
        assert types == ["SNAPSHOT_HEADER", "TOPIC_RECORD", "SNAPSHOT_FOOTER", "TOPIC_RECORD", "TOPIC_RECORD"]
        assert dumped(tmp_path) == lines

    def test_a_freshly_formatted_directory_gives_its_bootstrap(self, tmp_path: Path) -> None:
        """It is all that there is."""
        (tmp_path / "bootstrap.checkpoint").write_bytes((DATA / "bootstrap.checkpoint").read_bytes())
        assert len(dumped(tmp_path)) == 3

    def test_a_directory_without_metadata_is_an_error(self, tmp_path: Path) -> None:
        """No output would say: empty."""
        with pytest.raises(MetadataFileError):
            dumped(tmp_path)

    @pytest.mark.parametrize("name", ["nothing", "nothing.log"])
    def test_a_path_that_does_not_exist_is_an_error(self, tmp_path: Path, name: str) -> None:
        """Whatever its name would promise."""
        with pytest.raises(MetadataFileError, match="no such file") as caught:
            dumped(tmp_path / name)
        assert caught.value.where == str(tmp_path / name)

    def test_a_file_of_another_kind_is_an_error(self, tmp_path: Path) -> None:
        """An index holds no records."""
        with pytest.raises(MetadataFileError, match="ends neither"):
            dumped(written(tmp_path, b"", "00000000000000000000.index"))

    def test_lines_come_before_the_file_is_read_to_its_end(self, tmp_path: Path) -> None:
        """Streamed: what is whole is shown, then the error."""
        path = written(tmp_path, log(topic("a", T1)) + b"\0" * 5)
        lines = dump_lines([path], show_secrets=True)
        assert json.loads(next(lines))["type"] == "TOPIC_RECORD"
        with pytest.raises(BatchCutError):
            next(lines)


class TestDamage:
    """Damage is found, named, and never shown as data."""

    def test_a_checkpoint_cut_at_any_byte_is_an_error(self, tmp_path: Path) -> None:
        """The footer is what makes it whole."""
        raw = (DATA / "bootstrap.checkpoint").read_bytes()
        for end in range(len(raw)):
            path = written(tmp_path, raw[:end], "bootstrap.checkpoint")
            with pytest.raises((BatchCutError, SnapshotError)) as caught:
                dumped(path)
            assert str(path) in caught.value.where

    @pytest.mark.slow
    def test_every_flipped_bit_of_a_checkpoint_is_found_or_leaves_the_records_alone(self, tmp_path: Path) -> None:
        """What no CRC covers and no rule binds is the epoch of a batch."""
        raw = (DATA / "bootstrap.checkpoint").read_bytes()
        good = [json.loads(line) for line in dumped(written(tmp_path, raw, "bootstrap.checkpoint"))]
        for bit in range(len(raw) * 8):
            damaged = bytearray(raw)
            damaged[bit // 8] ^= 1 << (bit % 8)
            try:
                found = dumped(written(tmp_path, bytes(damaged), "bootstrap.checkpoint"))
            except (BatchError, SnapshotError):
                continue
            assert [{**json.loads(line), "epoch": 0} for line in found] == good

    @pytest.mark.slow
    @settings_of_hypothesis(max_examples=60, deadline=None)
    @given(bit=st.integers(0, 142911 * 8 - 1))
    def test_a_flipped_bit_anywhere_in_the_captured_log_is_found_or_leaves_the_records_alone(self, bit: int) -> None:
        """Anywhere in a real log of 1,700 batches; only an epoch may differ unseen."""
        damaged = bytearray(captured_log())
        damaged[bit // 8] ^= 1 << (bit % 8)
        try:
            found = [list(batch.records()) for batch in split(bytes(damaged), where="damaged")]
        except BatchError as error:
            place = error.where
        else:
            place, captured = "damaged at position", captured_records()
            assert found == captured
        assert place.startswith("damaged at position")

    @pytest.mark.slow
    @settings_of_hypothesis(max_examples=40, deadline=None)
    @given(end=st.integers(0, 142911))
    def test_a_log_cut_anywhere_is_an_error_except_between_two_batches(self, end: int) -> None:
        """What is whole before the cut is right."""
        whole = list(split(captured_log(), where="whole"))
        ends = [0, *(found.position + len(found.raw) for found in whole)]
        seen: list[Batch] = []
        try:
            seen.extend(split(captured_log()[:end], where="whole"))
            assert end in ends
        except BatchCutError:
            assert end not in ends
        assert seen == whole[: sum(limit <= end for limit in ends) - 1]

    def test_a_flipped_payload_bit_is_a_crc_error_with_its_place(self, tmp_path: Path) -> None:
        """File and position of the batch."""
        first = log(topic("a", T1))
        raw = bytearray(first + log(topic("b", T2), base=1))
        raw[-3] ^= 1
        path = written(tmp_path, bytes(raw))
        with pytest.raises(BatchCrcError) as caught:
            dumped(path)
        assert caught.value.where == f"{path} at position {len(first)}"

    def test_an_unknown_record_version_is_named_with_file_and_offset(self, tmp_path: Path) -> None:
        """A log of a newer release."""
        path = written(tmp_path, build(0, 1, [(None, b"\1\3\3\0")]))
        with pytest.raises(DecodeError, match="PartitionRecord version 3 is unknown") as caught:
            dumped(path)
        assert caught.value.id == "E-WIRE-03"
        assert caught.value.where == f"{path} at position 0, offset 0"
