"""A dynamic quorum (KIP-853) on real processes: there, back, and there again; and a controller whose disk is lost."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.lab.cluster import Lab
from tests.lab.commands import kraft_migrate

pytestmark = pytest.mark.kafka


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; what runs in it is stopped at the end."""
    try:
        yield tmp_path / "lab"
    finally:
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


def demo(folder: Path, *words: str) -> None:
    """`lab demo --quorum dynamic`, proven."""
    ended = kraft_migrate("lab", "demo", "--dir", str(folder), "--quorum", "dynamic", "--no-load", *words)
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.long
def test_a_migration_goes_back_from_hybrid_and_again_to_its_end_with_new_directory_ids(folder: Path) -> None:
    """Each claim of the demo is proven; an id that was used is never used again."""
    demo(folder, "--rollback-from", "hybrid")
    used: list[str] = []
    for path in (folder / "runs").glob("*/plan.json"):
        used += set(re.findall(r"3000@[0-9.:]+:([\w-]{22})", path.read_text("utf-8")))
    assert len(used) == len(set(used)) == 2


def test_a_controller_whose_disk_is_lost_votes_again_after_the_commands_that_are_printed(folder: Path) -> None:
    """Formatted without voters it follows without a vote: B-QRM-05 says under which id, and what to give."""
    demo(folder, "--until", "controllers", "--keep")
    lab = Lab.open(folder)
    node, spec = lab.topology.controllers[-1], lab.supervisor.spec(lab.topology.controllers[-1].name)
    assert found(folder) == []
    lab.supervisor.stop(node.name, 60)
    cluster = re.findall("cluster.id=(.*)", Path(node.metadata_directory, "meta.properties").read_text("ascii"))[0]
    shutil.rmtree(node.metadata_directory)
    Path(node.metadata_directory).mkdir()
    words = [f"--cluster-id={cluster}", "-c", spec.config, "--release-version", "3.9", "--no-initial-controllers"]
    subprocess.run([*spec.format_argv, *words], check=True, capture_output=True, env=spec.environment)
    lab.supervisor.start(node.name)
    deadline = time.monotonic() + 120
    while not (hits := found(folder)):
        assert time.monotonic() < deadline
    assert [hit["about"] for hit in hits] == [f"controller {node.id}"]
    commands = re.findall(r"`kafka-metadata-quorum.sh ([^`]*)`", hits[0]["fix"])
    assert [command.split()[2] for command in commands] == ["remove-controller", "--command-config"]
    java = [spec.argv[0], "-cp", ":".join(lab.topology.classpath()), "org.apache.kafka.tools.MetadataQuorumCommand"]
    for command in commands:
        subprocess.run([*java, *command.split()], check=True, capture_output=True, env=spec.environment)
    while found(folder):
        assert time.monotonic() < deadline


def found(folder: Path) -> list[Any]:
    """What `assess` finds of the quorum."""
    ended = kraft_migrate("assess", str(folder / "playbook.yaml"), "--output", "json")
    return [entry for entry in json.loads(ended.stdout)["findings"] if "-QRM-" in entry["code"] and entry["code"] < "W"]
