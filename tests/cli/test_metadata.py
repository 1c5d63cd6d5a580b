"""`kraft-migrate metadata`: dump as a process: lines, exit codes, broken pipes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_a_log_and_a_checkpoint_are_printed_one_after_the_other(captured: Path) -> None:
    """One JSON object a line; SCRAM keys are redacted."""
    answer = run(str(DATA / "bootstrap.checkpoint"), str(captured))
    assert (answer.returncode, answer.stderr) == (0, b"")
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert lines[0]["type"] == "SNAPSHOT_HEADER"
    assert lines[3]["type"] == "LEADER_CHANGE"
    assert {line["data"]["salt"] for line in lines if line["type"] == "USER_SCRAM_CREDENTIAL_RECORD"} == {"(redacted)"}


@pytest.mark.slow
def test_output_is_utf_8_whatever_the_locale_says(captured: Path) -> None:
    """The same bytes under C and under UTF-8."""
    ascii_only = run("--show-secrets", str(captured), LC_ALL="C", PYTHONIOENCODING="ascii")
    assert ascii_only.returncode == 0
    assert ascii_only.stdout == run("--show-secrets", str(captured), LC_ALL="C.UTF-8").stdout


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_no_path_is_a_usage_error() -> None:
    """64, as for every command."""
    assert run().returncode == 64


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
