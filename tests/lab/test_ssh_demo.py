"""A migration whose nodes are reached by the real OpenSSH client, or by instructions to a person, killed on its way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.lab import host
from migrate.lab.cluster import Lab
from migrate.playbook.load import load_inventory
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine"),
]
BY_HAND = "tests.lab.by_hand"
CONFLUENTS = b"confluent.support.metrics.enable=false\nconfluent.metrics.reporter.bootstrap.servers=localhost:1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; what runs in it is stopped at the end."""
    try:
        yield tmp_path / "lab"
    finally:
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


@pytest.mark.long
@pytest.mark.parametrize("executor", ["ssh", "manual"])
def test_by_hosts_a_killed_run_goes_on_and_every_step_is_proven(folder: Path, executor: str) -> None:
    """Files, formats, starts and stops by commands that we or a person run; killed before a broker's start."""
    module, words = "migrate", ["lab", "demo", "--dir", str(folder), "--executor", "ssh", "--no-load"]
    words += ["--until", "migration-mode"]
    if executor == "manual":
        module, words = BY_HAND, [str(folder), "migration-mode"]
    link = with_a_linked_file(folder) if executor == "ssh" else None
    killed = kraft_migrate(*words, module=module, crash="before:start:1")
    assert killed.returncode == -9, killed.stderr[-3000:]
    ended = kraft_migrate(*words, module=module)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert load_inventory(folder / "inventory.yaml").executor == executor
    (journal,) = (folder / "runs").glob("*/journal.jsonl")
    told = [event.data for event in journals.read(journal).events if event.name == "effect"]
    assert {data["node"] for data in told if data["effect"] == "start"} == {"0", "1", "2", "3000", "3001", "3002"}
    assert {data["node"] for data in told if data["effect"] == "format"} == {"3000", "3001", "3002"}
    status = kraft_migrate("status", "--inventory", str(folder / "inventory.yaml"))
    rows = [line.split() for line in status.stdout.splitlines()]
    assert [row[0] for row in rows if row[1:] == ["running", "migration", "migration"]] == ["0", "1", "2"], (
        status.stdout
    )
    if link is not None:
        (plan,) = (folder / "runs").glob("*/plan.txt")
        planned = " ".join(plan.read_text().split())  # long paths are on lines of their own
        assert f"{link} -> {link.resolve()}" in planned
        assert "W-OPS-14" in planned
        assert link.is_symlink()
        assert CONFLUENTS in link.read_bytes()
        assert not any(b"confluent." in file.read_bytes() for file in link.parent.glob("controller-*.properties"))
        assert b"zookeeper.metadata.migration.enable=true" in link.read_bytes()
        assert [path.name for path in link.parent.glob(f"{link.name}.*")] == []
        (copy,) = link.resolve().parent.glob(f"{link.resolve().name}{BACKUP_SUFFIX}*")
        assert b"zookeeper.metadata.migration.enable" not in copy.read_bytes()


def with_a_linked_file(folder: Path) -> Path:
    """A lab over SSH: broker 2 has a file that is a link, with keys of Confluent's, since before it was started."""
    ended = kraft_migrate("lab", "up", "--dir", str(folder), "--executor", "ssh")
    assert ended.returncode == 0, ended.stderr[-3000:]
    lab = Lab.open(folder)
    lab.supervisor.stop("broker-2", 120)
    link, real = Path(lab.inventory.node(2).config), folder / "elsewhere" / "two.properties"
    real.parent.mkdir()
    link.rename(real)
    with real.open("ab") as file:
        file.write(CONFLUENTS)
    link.symlink_to(real)
    host.install(lab.topology, lab.inventory)
    lab.supervisor.start("broker-2")
    return link


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("executor", ["ssh", "manual"])
def test_by_hosts_there_is_a_rollback_from_half_of_the_second_roll(folder: Path, executor: str) -> None:
    """Under load; what stopped controllers last wrote is read from their hosts before control is handed back."""
    if executor == "manual":
        ended = kraft_migrate(str(folder), "prepare", "half-kraft-mode", module=BY_HAND)
    else:
        words = ("lab", "demo", "--dir", str(folder), "--executor", executor)
        ended = kraft_migrate(*words, "--rollback-from", "half-kraft-mode", "--until", "prepare")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert json.loads((folder / "runs" / "rehearsal.json").read_text())["proven"] is True


@pytest.mark.long
@pytest.mark.spark
def test_a_demo_by_a_person_is_proven_to_its_end(folder: Path) -> None:
    """Topics that were created after the last instruction have their directories on disk as well."""
    ended = kraft_migrate(str(folder), "cleanup", module=BY_HAND)
    assert ended.returncode == 0, ended.stderr[-3000:]
