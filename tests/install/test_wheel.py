"""The wheel installs from a wheelhouse without a network, and has everything that the package reads."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate import __version__
from tests.install.venvs import ROOT, built_wheels, copied_sources, installed, run

SETUPTOOLS = "setuptools>=77.0.3"  # as in pyproject.toml
pytestmark = [pytest.mark.slow, pytest.mark.long]
DATA = (  # one of each kind
    "migrate/checks/data/advisor.json",
    "migrate/hosts/host_program.py",
    "migrate/java/kafka-3.9.2.sha256.txt",
    "migrate/playbooks/playbook.schema.json",
    "migrate/playbooks/production-example.yaml",
    "migrate/protocol/schemas/ApiVersionsRequest.json",
    "migrate/py.typed",
    "migrate/report/templates/assessment.html.jinja",
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A wheel, and the programs of a venv in which it is installed."""

    sources: Path
    wheel: Path
    programs: Path


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Installation]:
    """A plain installation, with Spark; its 1.3 GB are removed at the end."""
    sources, wheelhouse = copied_sources(tmp_path), tmp_path / "wheelhouse"
    wheel = built_wheels(sources, wheelhouse, [SETUPTOOLS])
    yield Installation(sources, wheel, installed(tmp_path / "venv", wheelhouse, [str(wheel)]))
    for folder in (sources, wheelhouse, tmp_path / "venv"):
        shutil.rmtree(folder)


def test_a_plain_installation_works_without_a_network(fresh: Installation, tmp_path: Path) -> None:
    """One test for all: it takes one or two minutes to make the installation."""
    every_data_file_is_in_the_wheel(fresh)
    the_program_answers(fresh)
    an_example_playbook_is_valid(fresh, tmp_path)
    the_installation_is_complete(fresh)
    the_archive_of_the_sources_has_documentation_and_tests(fresh)


def every_data_file_is_in_the_wheel(fresh: Installation) -> None:
    """Whatever stands beside the modules, and the playbooks of the top level."""
    kept = {path for path in (ROOT / "migrate").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    wanted = {str(path.relative_to(ROOT)) for path in kept}
    wanted |= {f"migrate/playbooks/{path.name}" for path in (ROOT / "playbooks").iterdir() if path.suffix != ".md"}
    with zipfile.ZipFile(fresh.wheel) as archive:
        names = set(archive.namelist())
    assert wanted - names == set()
    assert set(DATA) - names == set()


def the_program_answers(fresh: Installation) -> None:
    """Without a network."""
    program = fresh.programs / "kraft-migrate"
    assert run(program, "--version", cwd=fresh.programs) == f"kraft-migrate, version {__version__}\n"
    assert "B-ZKN-01" in run(program, "explain", "B-ZKN-01", cwd=fresh.programs)


def an_example_playbook_is_valid(fresh: Installation, tmp_path: Path) -> None:
    """With its inventory beside it, as a user copies them."""
    shutil.copy(ROOT / "playbooks" / "production-example.yaml", tmp_path)
    shutil.copy(ROOT / "playbooks" / "inventory-example.yaml", tmp_path / "inventory.yaml")
    said = run(fresh.programs / "kraft-migrate", "playbook", "lint", "production-example.yaml", cwd=tmp_path)
    assert said.endswith(": ok\n")


def the_installation_is_complete(fresh: Installation) -> None:
    """Pip finds nothing that is missing or out of bounds."""
    assert "No broken requirements" in run(fresh.programs / "python", "-m", "pip", "check", cwd=fresh.programs)


def the_archive_of_the_sources_has_documentation_and_tests(fresh: Installation) -> None:
    """And the files of the top level."""
    tools = fresh.sources / "tools"
    wanted = ("--no-index", "--find-links", fresh.wheel.parent, "--target", tools, SETUPTOOLS)
    run(fresh.programs / "python", "-m", "pip", "install", *wanted, cwd=fresh.sources)
    program = f"import sys; sys.path.insert(0, {str(tools)!r}); from setuptools import build_meta as build; "
    run(fresh.programs / "python", "-c", program + "build.build_sdist('dist')", cwd=fresh.sources)
    (archive,) = (fresh.sources / "dist").iterdir()
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    assert {"mkdocs.yml", "Makefile", "CHANGELOG.md", "docs/install.md", "docs/generate.py", ".ci/run"} <= names
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")} <= names
    assert not [name for name in names if name.endswith(".pyc")]
