"""Before the first process is touched: confirmation, playbook, lock file and journal are what they must be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from migrate import __version__
from migrate.errors import JournalDamaged, MigrateError, NotConfirmed, PlanIsStale, RunLocked, ZookeeperUnreachable
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.observe.sources import Sources
from migrate.plan.build import build
from migrate.run import carry_out as module
from migrate.run import locks
from migrate.run.carry_out import Options, acting_alone, carry_out, folder_of
from migrate.run.clock import SystemClock
from migrate.run.journal import Journal, read
from migrate.run.locks import LockFile
from tests.steps.looks import whole
from tests.testing import worlds


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    """A cluster that is nowhere; its runs lie in the test's folder."""
    return replace(worlds.inventory(), zookeeper="not a connect string", runs=str(tmp_path / "runs"))


def plan(target: Stage = Stage.PREPARE) -> Plan:
    """A plan of that cluster."""
    return build(whole(Stage.ASSESS), worlds.playbook(), target=target, only=False, created=1.0)


def attempt(
    inventory: Inventory, made: Plan, confirm: str = "", playbook: Playbook | Unknown | None = None
) -> MigrateError:
    """Carry it out; the error that stops it."""
    sources = Sources(inventory, worlds.playbook() if playbook is None else playbook, None)
    with pytest.raises(MigrateError) as caught:
        carry_out(made, sources, Options(confirm=confirm, confirm_cluster=made.cluster))
    sources.close()
    return caught.value


# -- before anything -------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("target", [Stage.FINALIZE, Stage.CLEANUP])
@pytest.mark.parametrize("confirm", ["", "yes", "short", "upper"])
def test_the_point_of_no_return_is_confirmed_with_the_whole_fingerprint(
    target: Stage, confirm: str, inventory: Inventory, tmp_path: Path
) -> None:
    """Anything else ends with 4 and leaves no file; the fingerprint stands at the end of the plan alone."""
    made = plan(target)
    given = {"short": made.short, "upper": made.fingerprint.upper()}.get(confirm, confirm)
    error = attempt(inventory, made, given)
    assert isinstance(error, NotConfirmed)
    assert error.exit_code == 4
    assert made.fingerprint not in f"{error} {error.next_step}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_reversible_plan_needs_no_confirmation(inventory: Inventory) -> None:
    """It goes on to what is wrong next: this cluster is nowhere."""
    assert attempt(inventory, plan()).id == "E-ZK-01"
    assert attempt(inventory, plan(Stage.CLEANUP), plan(Stage.CLEANUP).fingerprint).id == "E-ZK-01"


def test_another_playbook_or_inventory_than_the_planned_one_is_stale(inventory: Inventory, tmp_path: Path) -> None:
    """Ends with 6, says the whole command of a new plan, and leaves no file."""
    made = plan()
    other = attempt(inventory, made, playbook=replace(worlds.playbook(), sha256="1" * 64))
    corrected = attempt(replace(inventory, sha256="1" * 64), made)
    for error, where in ((other, "/lab/playbook.yaml"), (corrected, made.inventory)):
        assert isinstance(error, PlanIsStale)
        assert (error.exit_code, error.where) == (6, where)
        assert f"`kraft-migrate plan /lab/playbook.yaml --to {made.target.label}`" in error.next_step
    assert list(tmp_path.iterdir()) == []


# -- locks -----------------------------------------------------------------------------
def test_a_second_run_is_refused_while_the_lock_file_is_held(inventory: Inventory) -> None:
    """By whom is said; the journal is not touched.  Any plan of the cluster: they share the folder of runs."""
    lock = LockFile(Path(inventory.runs) / "lock")
    try:
        error = attempt(inventory, plan())
        assert isinstance(error, RunLocked)
        assert error.exit_code == 7
        assert str(os.getpid()) in str(error)
        assert not folder_of(inventory, plan()).journal.exists()
        with pytest.raises(RunLocked), acting_alone(Sources(inventory, worlds.playbook(), None), "assign"):
            pytest.fail("two acted")
    finally:
        lock.release()


def test_the_lock_file_is_free_again_after_a_run_that_failed(inventory: Inventory) -> None:
    """Whatever it failed with."""
    attempt(inventory, plan())
    with pytest.raises(MigrateError), acting_alone(Sources(inventory, worlds.playbook(), None), "assign"):
        pytest.fail("there is no ZooKeeper")
    LockFile(Path(inventory.runs) / "lock").release()


@pytest.mark.slow
def test_without_zookeeper_nothing_is_done(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock could not be had: the journal has its first line, and no session."""

    def nobody(_sources: Sources) -> None:
        raise ZookeeperUnreachable("no session")

    monkeypatch.setattr(Sources, "zookeeper_client", nobody)
    assert attempt(inventory, plan()).id == "E-ZK-02"
    assert [event.name for event in read(folder_of(inventory, plan()).journal).events] == ["run"]


# -- journals ----------------------------------------------------------------------------------------------------------
def open_journal(inventory: Inventory, made: Plan) -> Journal:
    """The run's journal."""
    folder = folder_of(inventory, made)
    folder.path.mkdir(parents=True, exist_ok=True)
    return module._open_journal(folder, made, SystemClock())


def test_an_interrupted_first_look_is_made_again(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has a second line and no session: whether the plan was carried out elsewhere is still not known."""
    looks: list[BaseException] = [KeyboardInterrupt(), PlanIsStale("it was carried out elsewhere")]

    def look(_plan: Plan, _observer: object) -> str:
        raise looks.pop(0)

    monkeypatch.setattr(module, "found_by", look)
    monkeypatch.setattr(module, "_zookeeper_lock", lambda *_: SimpleNamespace(fence=None, release=lambda: None))
    monkeypatch.setattr(Sources, "host_rights", lambda _: {})
    monkeypatch.setattr(Sources, "units", lambda _: {})
    with pytest.raises(KeyboardInterrupt):
        attempt(inventory, plan())
    assert [event.name for event in read(folder_of(inventory, plan()).journal).events] == ["run", "stop"]
    assert isinstance(attempt(inventory, plan()), PlanIsStale)
    assert looks == []


@pytest.mark.slow
def test_a_new_journal_names_its_plan_first(inventory: Inventory) -> None:
    """Plan, tool, cluster, change, host."""
    journal = open_journal(inventory, plan())
    journal.close()
    (first,) = read(journal.path).events
    assert first.name == "run"
    assert first.data["plan"] == plan().fingerprint
    assert (first.data["tool"], first.data["cluster"], first.data["change"]) == (__version__, "lab", "CHG1")


@pytest.mark.slow
def test_the_same_plan_goes_on_with_its_journal(inventory: Inventory) -> None:
    """Nothing is written for that."""
    for _ in range(2):
        journal = open_journal(inventory, plan())
        journal.close()
    assert len(read(journal.path).events) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), [("plan", "f" * 64), ("tool", "0.0.1")])
def test_a_journal_of_another_plan_or_tool_is_refused(key: str, value: str, inventory: Inventory) -> None:
    """It is kept as it is."""
    folder = folder_of(inventory, plan())
    folder.path.mkdir(parents=True)
    header = {"plan": plan().fingerprint, "tool": __version__, "cluster": "lab", key: value}
    Journal.begin(folder.journal, 0.0, header).close()
    before = folder.journal.read_bytes()
    with pytest.raises(JournalDamaged, match=value[:8]):
        open_journal(inventory, plan())
    assert folder.journal.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("left", [b"", b"00", b'0000004b 12345678 {"data":{'])
def test_a_journal_killed_in_its_first_line_is_begun_anew(left: bytes, inventory: Inventory) -> None:
    """Nothing was done before that line was whole."""
    folder = folder_of(inventory, plan())
    folder.path.mkdir(parents=True)
    folder.journal.write_bytes(left)
    journal = open_journal(inventory, plan())
    journal.close()
    assert [event.name for event in read(folder.journal).events] == ["run"]


@pytest.mark.slow
def test_a_run_lies_in_a_folder_named_by_its_plan(inventory: Inventory) -> None:
    """Another plan, another folder."""
    folder = folder_of(inventory, plan())
    assert folder.path == Path(inventory.runs) / plan().short
    assert (folder.journal.name, folder.plan.name) == ("journal.jsonl", "plan.json")
    assert folder_of(inventory, plan(Stage.CONTROLLERS)).path != folder.path


# -- who is alive ------------------------------------------------------------------------------------------------------
def _process(pid: int) -> locks.Alive:
    return locks.process_alive(socket.gethostname(), pid)


def test_a_holder_is_alive_or_dead_by_its_process() -> None:
    """A process of somebody else that we may not signal lives, too."""
    assert _process(os.getpid()) is locks.Alive.LIVES
    assert _process(1) is locks.Alive.LIVES
    ended = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert _process(ended.pid) is locks.Alive.LIVES
    ended.send_signal(signal.SIGKILL)
    assert ended.stdin is not None
    ended.stdin.close()
    ended.wait()
    assert _process(ended.pid) is locks.Alive.DEAD
