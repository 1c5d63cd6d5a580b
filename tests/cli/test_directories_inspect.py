"""`directories inspect`: one verdict on this host's directories, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import Ended, kraft_migrate
from tests.testing.ensembles import CLUSTER, IDS, MODES, NODE, bare, file, v0, v1


def inspect(mode: str, *words: object) -> Ended:
    """The command."""
    return kraft_migrate("directories", "inspect", *words, "--mode", mode, f"--cluster-id={CLUSTER}", "--node-id", NODE)


@pytest.mark.parametrize("mode", MODES)
def test_healthy_directories_start_in_every_mode(mode: str, tmp_path: Path) -> None:
    """Exit 0, and JSON of exactly four keys."""
    dirs = [tmp_path / f"d{index}" for index in range(2)]
    for index, path in enumerate(dirs):
        file(v0(index))(path)
    answer = inspect(mode, *dirs, "--output", "json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["result"] == {
        "starts": True,
        "reason": "Kafka would start with 2 directories",
        "failed": [],
        "warnings": [],
    }
    assert inspect(mode, *dirs).out == "Kafka would start with 2 directories\n"


def test_what_would_not_start_is_3_with_file_and_mend(tmp_path: Path) -> None:
    """A disk that was cloned."""
    for name in ("d0", "d1"):
        file(v0(0))(tmp_path / name)
    answer = inspect("kraft", tmp_path / "d0", tmp_path / "d1")
    assert answer.code == 3
    assert answer.out.startswith(f"Kafka would not start: {tmp_path}/d1/meta.properties has directory.id {IDS[0]}")
    assert "remove directory.id from the copy's file" in answer.out


def test_failed_directories_are_told_although_it_starts(tmp_path: Path) -> None:
    """Version 7 in one of two."""
    file(v0(0))(tmp_path / "d0")
    file(b"version=7\n")(tmp_path / "d1")
    answer = inspect("kraft", tmp_path / "d0", tmp_path / "d1", "-o", "json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert set(found["result"]) == {"starts", "reason", "failed", "warnings"}
    assert found["failed"] == [f"{tmp_path}/d1"]
    assert "version 7 is neither 0 nor 1" in found["warnings"][0]
    text = inspect("kraft", tmp_path / "d0", tmp_path / "d1").out.splitlines()
    assert text[0].endswith("1 of them failed")
    assert text[1] == f"failed: {tmp_path}/d1"
    assert text[2].startswith("warning: ")


def test_the_first_directory_holds_the_metadata_unless_it_is_said(tmp_path: Path) -> None:
    """__cluster_metadata-0 in the second: right only where --metadata-dir names it."""
    for index in range(2):
        file(v1(index))(tmp_path / f"d{index}")
    (tmp_path / "d1" / "__cluster_metadata-0").mkdir()
    dirs = (tmp_path / "d0", tmp_path / "d1")
    assert inspect("kraft", *dirs).code == 3
    assert inspect("kraft", *dirs, "--metadata-dir", dirs[1]).code == 0
    bare(tmp_path / "m")
    apart = inspect("kraft", dirs[0], "--metadata-dir", tmp_path / "m")
    assert apart.code == 3
    assert f"{tmp_path}/m/meta.properties is not there" in apart.out


@pytest.mark.parametrize("mode", MODES)
def test_a_folder_of_no_replica_ends_every_start_as_b_dir_26_says(mode: str, tmp_path: Path) -> None:
    """lost+found in a log directory; in a metadata directory that lies apart Kafka does not look."""
    for index, name in enumerate(("d0", "m")):
        file(v0(index))(tmp_path / name)
        (tmp_path / name / "lost+found").mkdir()
    answer = inspect(mode, tmp_path / "d0", "--metadata-dir", tmp_path / "m")
    assert answer.code == 3
    assert f"{tmp_path}/d0 holds what is no replica: lost+found" in answer.out
    assert "rm -df" in answer.out
    (tmp_path / "d0" / "lost+found").rmdir()
    (tmp_path / "d0" / "remote-log-index-cache").mkdir()  # tiered storage: Kafka skips it
    assert inspect(mode, tmp_path / "d0", "--metadata-dir", tmp_path / "m").code == 0


def test_an_id_may_begin_with_a_dash(tmp_path: Path) -> None:
    """--cluster-id=-X..., as kafka-storage wants it."""
    file(v0(cluster="-ther233dFSJKhrlnVHSna"))(tmp_path / "d0")
    words = ("directories", "inspect", tmp_path / "d0", "--mode", "migration", "--node-id", 1)
    assert kraft_migrate(*words, "--cluster-id=-ther233dFSJKhrlnVHSna").code == 0


@pytest.mark.parametrize("words", ["", "--mode raft", "--mode kraft", "--mode kraft --cluster-id=x", "--node-id -1"])
def test_what_is_not_said_is_wrong_usage(words: str, tmp_path: Path) -> None:
    """64: mode, cluster and node are never guessed."""
    assert kraft_migrate("directories", "inspect", tmp_path, *words.split()).code == 64
