"""`doctor`: what it finds, and what it says to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from migrate.cli.doctor import LAB_MEMORY_MB, doctor, memory
from migrate.cli.doctor_items import Health
from migrate.errors import UsageWrong
from tests.cli.commands import inventory_in, kraft_migrate


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache: nothing of the test host's is read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def ask(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and items by name."""
    ended = kraft_migrate("doctor", "--output", "json", *arguments)
    answer = json.loads(ended.out)
    return ended.code, {"ready": answer["ready"], **{item["name"]: item for item in answer["items"]}}


def test_a_whole_host_is_called_ready() -> None:
    """Everything the tool needs is installed here; the jars come by themselves."""
    code, found = ask()
    assert code == 0
    assert found["ready"] is True
    assert found["java"]["health"] == "ok"
    assert found["kafka jars"]["health"] == "later"
    assert found["ivy"]["found"].startswith("ivy-")


def test_nothing_is_changed_by_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the cache's folder is made."""
    monkeypatch.chdir(tmp_path)
    ask()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_java_is_missing_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error's own words and next step; exit code 1."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, found = ask()
    assert code == 1
    assert found["ready"] is False
    assert found["java"]["health"] == "missing"
    assert "E-JAVA-02" in found["java"]["found"]
    assert "unset" in found["java"]["to_do"]


def test_a_kafka_home_is_looked_into(tmp_path: Path) -> None:
    """One without Kafka is told before a lab is tried with it."""
    code, found = ask("--kafka-home", str(tmp_path))
    assert code == 1
    assert "E-JAVA-03" in found["kafka jars"]["found"]
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.9.2.jar").touch()
    code, found = ask("--kafka-home", str(tmp_path))
    assert code == 0
    assert "3.9.2, 1 jars" in found["kafka jars"]["found"]


@pytest.mark.parametrize(("megabytes", "health"), [(LAB_MEMORY_MB, Health.GOOD), (LAB_MEMORY_MB - 1, Health.MISSING)])
def test_too_little_memory_is_told(tmp_path: Path, megabytes: int, health: Health) -> None:
    """Against what a lab and Spark need together."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:   {megabytes * 1024} kB\n")
    assert memory(tmp_path / "meminfo").health is health


def test_a_person_gets_lines_and_a_sentence() -> None:
    """What is missing has an arrow to what to do."""
    result = CliRunner().invoke(doctor, ["--kafka-home", "/nonexistent"], standalone_mode=False)
    assert "missing  kafka jars" in result.output
    assert "-> name the folder" in result.output
    assert result.output.endswith("missing: kafka jars\n")


@pytest.mark.slow
def test_an_inventory_is_checked_and_its_rate_told(tmp_path: Path) -> None:
    """The command line's rate counts more than the file's; a wrong file is missing with its line."""
    plain, limited = inventory_in(tmp_path), tmp_path / "limited.yaml"
    limited.write_text(plain.read_text().replace("  zookeeper:", "  zookeeper_rate: 250\n  zookeeper:"))
    assert ask("--inventory", str(plain))[1]["zookeeper rate"]["found"] == "reads of its znodes: as fast as it answers"
    assert ask("--inventory", str(limited))[1]["zookeeper rate"]["found"].endswith("at most 250 operations a second")
    limited.write_text(limited.read_text().replace("250", "0"))
    code, found = ask("--inventory", str(limited))
    assert code == 1
    assert "zookeeper_rate" in found["inventory"]["found"]


@pytest.mark.slow
def test_rights_are_asked_of_an_inventory_and_each_part_answers_by_itself(tmp_path: Path) -> None:
    """A cluster that is not there: ZooKeeper and brokers are missing, controllers may come later."""
    wrong = CliRunner().invoke(doctor, ["--rights"])
    assert isinstance(wrong.exception, UsageWrong)
    code, found = ask("--rights", "--inventory", str(inventory_in(tmp_path)))
    assert code == 1
    assert found["zookeeper rights"]["health"] == found["broker rights"]["health"] == "missing"
    assert found["controller rights"]["health"] == "later"
    assert "E-KAFKA-01" in found["broker rights"]["found"]
