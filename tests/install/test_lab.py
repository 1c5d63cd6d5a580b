"""A fresh installation runs a real cluster up to KRaft controllers, without a network and without Spark."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from migrate.java.jars import cached_jars
from tests.install.venvs import built_wheels, copied_sources, installed, run
from tests.lowest import declared
from tests.release import LOCKS

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.long,
    pytest.mark.skipif(cached_jars() is None, reason="Kafka's jars are not cached, and there is no network here"),
]
LAB = """
"$0" lab demo --dir lab --until controllers
code=$?
"$0" status --inventory lab/inventory.yaml
"$0" lab down --dir lab
exit $code
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`kraft-migrate` in a venv that has what a lab needs, and neither Spark nor Arrow."""
    found = declared()
    small = [line for line in found["install_requires"] if not line.startswith(LOCKS["requirements-small.txt"])]
    needed, wheelhouse = [*small, *found["extras_require"]["lab"]], tmp_path / "wheelhouse"
    wheel = built_wheels(copied_sources(tmp_path), wheelhouse, ["--no-deps"])
    run(sys.executable, "-m", "pip", "wheel", "-w", wheelhouse, *needed, cwd=tmp_path, alone=False)
    programs = installed(tmp_path / "venv", wheelhouse, needed)
    run(programs / "python", "-m", "pip", "install", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    return programs / "kraft-migrate"


def test_a_fresh_installation_brings_up_the_controllers_of_a_lab(program: Path, tmp_path: Path) -> None:
    """ZooKeeper, three brokers and three controllers; the comparison, which needs Spark, comes later."""
    said = run("sh", "-c", LAB, program, cwd=tmp_path)
    assert re.search(r"^stage +controllers$", said, re.MULTILINE), said
    assert "E-SYS-03" not in said
