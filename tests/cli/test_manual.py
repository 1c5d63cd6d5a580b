"""`manual` as a user calls it: looks are rendered, and `could not` has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.hosts.manual.desk import Instruction
from migrate.playbook.inventory import dump_inventory
from tests.cli.commands import kraft_migrate
from tests.testing import worlds
from tests.testing.person import Bench, bench


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """Two hosts nobody looked at yet, with their inventory beside them."""
    found = bench(tmp_path)
    text = dump_inventory(found.desk.inventory)
    (tmp_path / "inventory.yaml").write_text(text)
    return found


def left_open(hosts: Bench) -> None:
    """A run that was killed while a person was to make a folder."""

    def killed(_: Instruction) -> None:
        raise KeyboardInterrupt

    hosts.act = killed
    with pytest.raises(KeyboardInterrupt):
        hosts.files.make_directory(hosts.desk.inventory.controllers[0].id, "/data/meta")


@pytest.mark.slow
def test_a_look_is_rendered_for_every_node(hosts: Bench) -> None:
    """Followed to the letter, no node is without an answer any more."""
    where = str(hosts.root / "inventory.yaml")
    said = kraft_migrate("manual", "look", "--inventory", where)
    assert said.code == 0
    assert said.out.count("no answer yet") == 2
    for node in (0, 3000):
        assert str(hosts.root / f"runs/manual/look-{node}") in said.out
        hosts.follow(hosts.root / f"runs/manual/look-{node}")
    assert "no answer yet" not in kraft_migrate("manual", "look", "--inventory", where).out


def test_could_not_needs_an_open_instruction_and_a_reason(hosts: Bench) -> None:
    """The reason lies in the instruction's folder, where the waiting run finds it."""
    where = str(hosts.root / "inventory.yaml")
    words = ("manual", "could-not", "--inventory", where, "--reason")
    assert kraft_migrate(*words, "no disk").code == 64
    left_open(hosts)
    assert kraft_migrate(*words, "  ").code == 64
    assert kraft_migrate(*words, "no disk").code == 0
    waiting = hosts.desk.open()
    assert waiting is not None
    assert waiting.refusal.read_text() == "no disk\n"


def test_another_executor_has_no_instructions(tmp_path: Path) -> None:
    """Said by name."""
    (tmp_path / "inventory.yaml").write_text(dump_inventory(worlds.inventory()))
    said = kraft_migrate("manual", "look", "--inventory", str(tmp_path / "inventory.yaml"))
    assert said.code != 0
    assert said.out == ""
