"""`kraft-migrate metadata`: dump as a process (lines, exit codes, broken pipes), image and export."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import kraft_migrate, process
from tests.kraft.logs import D1, register, snapshot

DATA = Path(__file__).parents[1] / "data" / "metadata"


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """The captured log of a real migration."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(gzip.decompress((DATA / "finalized.log.gz").read_bytes()))
    return path


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command, as a user calls it."""
    command = [sys.executable, "-m", "migrate", "metadata", "dump", *arguments]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment}, timeout=60)


def test_a_log_and_a_checkpoint_are_printed_one_after_the_other(captured: Path) -> None:
    """One JSON object a line; SCRAM keys are redacted."""
    answer = run(str(DATA / "bootstrap.checkpoint"), str(captured))
    assert (answer.returncode, answer.stderr) == (0, b"")
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert lines[0]["type"] == "SNAPSHOT_HEADER"
    assert lines[3]["type"] == "LEADER_CHANGE"
    assert {line["data"]["salt"] for line in lines if line["type"] == "USER_SCRAM_CREDENTIAL_RECORD"} == {"(redacted)"}


def test_output_is_utf_8_whatever_the_locale_says(captured: Path) -> None:
    """The same bytes under C and under UTF-8."""
    ascii_only = run("--show-secrets", str(captured), LC_ALL="C", PYTHONIOENCODING="ascii")
    assert ascii_only.returncode == 0
    assert ascii_only.stdout == run("--show-secrets", str(captured), LC_ALL="C.UTF-8").stdout


def test_a_damaged_file_ends_with_1_and_names_the_place(captured: Path) -> None:
    """What is whole before it was printed; the message has id, place and next step."""
    captured.write_bytes(captured.read_bytes()[:-1])
    answer = run(str(captured))
    assert answer.returncode == 1
    assert len(answer.stdout.splitlines()) > 2000
    text = answer.stderr.decode()
    assert "E-BATCH-02" in text
    assert f"{captured} at position" in text
    assert "Traceback" not in text


def test_a_reader_that_stops_early_is_no_error(captured: Path) -> None:
    """`metadata dump ... | head -1`."""
    command = [sys.executable, "-m", "migrate", "metadata", "dump", str(captured), str(captured)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["type"] == "LEADER_CHANGE"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_no_path_is_a_usage_error() -> None:
    """64, as for every command."""
    assert run().returncode == 64


@pytest.fixture
def directory(captured: Path) -> Path:
    """The captured log in a metadata directory of its own."""
    part = captured.parent / "meta" / "__cluster_metadata-0"
    part.mkdir(parents=True)
    captured.rename(part / captured.name)
    return part.parent


@pytest.mark.slow
def test_an_image_says_where_it_stands_and_what_is_there(directory: Path) -> None:
    """Text for people, JSON for machines; `--kind` and `--at` limit them."""
    text = process("metadata", "image", directory)
    assert (text.code, text.err) == (0, "")
    assert "tail unproven: 0 of 3 voters available, 2 are a majority" in text.out
    assert "partitions 212, replicas 527" in text.out
    answer = process("metadata", "image", directory, "--at", 100, "--kind", "features", "-o", "json")
    found = json.loads(answer.out)
    assert (found["offset"], found["features"]) == (100, [{"feature": "metadata.version", "level": 21}])
    assert "partitions" not in found


@pytest.mark.slow
def test_a_told_high_watermark_proves_the_image(directory: Path) -> None:
    """The operator knows it from elsewhere; what lies beyond is not there."""
    found = json.loads(process("metadata", "image", directory, "--high-watermark", 2000, "-o", "json").out)
    assert (found["offset"], found["high_watermark"], found["unproven"]) == (1999, 2000, None)
    beyond = process("metadata", "image", directory, "--high-watermark", 9000)
    assert (beyond.code, "E-KRAFT-05" in beyond.err) == (1, True)


@pytest.mark.slow
def test_an_export_names_its_tables_and_overwrites_nothing(directory: Path) -> None:
    """Rows a table; the second time it is refused."""
    to = directory / "export"
    first = process("metadata", "export", directory, "--to", to, "-o", "json")
    tables = json.loads(first.out)["tables"]
    assert (first.code, tables["partitions"], tables["replicas"]) == (0, 212, 527)
    assert sorted(path.stem for path in to.iterdir()) == sorted(tables)
    again = process("metadata", "export", directory, "--to", to)
    assert (again.code, "E-KRAFT-06" in again.err) == (1, True)
    text = process("metadata", "export", directory, "--to", directory / "other")
    assert "partitions.parquet: 212 rows" in text.out


def test_wrong_words_are_usage_errors(directory: Path) -> None:
    """No directory, no folder, a kind that is none, an offset below 0."""
    for words in (
        ["image"],
        ["export", directory],
        ["image", directory, "--kind", "x"],
        ["image", directory, "--at", -1],
    ):
        assert kraft_migrate("metadata", *words).code == 64


@pytest.mark.slow
def test_a_checkpoint_that_disagrees_with_its_name_is_an_error(tmp_path: Path) -> None:
    """Epoch and end offset stand in the name; a broker registered behind the end contradicts it."""
    raw = snapshot(register(1, 40, [D1]))
    path = tmp_path / "00000000000000000041-0000000003.checkpoint"
    path.write_bytes(raw)
    assert kraft_migrate_dump(path) == (0, "")
    for name, says in (
        ("00000000000000000040-0000000003", "broker 1 was registered at offset 40"),
        ("00000000000000000041-0000000004", "a batch of epoch 3; the snapshot's name says 4"),
    ):
        wrong = tmp_path / f"{name}.checkpoint"
        wrong.write_bytes(raw)
        code, err = kraft_migrate_dump(wrong)
        assert (code, "E-KRAFT-02" in err, says in err) == (1, True, True)


def kraft_migrate_dump(path: Path) -> tuple[int, str]:
    """Exit code and standard error of a dump."""
    answer = run(str(path))
    return answer.returncode, answer.stderr.decode()
