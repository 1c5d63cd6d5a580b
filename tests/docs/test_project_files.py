"""What contributors and hosts of the project read is there, and agrees with the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from migrate import __version__
from tests.__main__ import PARTS

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_version_is_written_once() -> None:
    """The distribution has the package's, and the changelog begins with it."""
    asked = [sys.executable, "setup.py", "--version"]
    built = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert built.stdout.strip().splitlines()[-1] == __version__
    versions = re.findall(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == __version__
    assert versions[-1] == "0.1.0"


def test_each_version_has_an_upgrade_note() -> None:
    """Before anything else."""
    for part in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        if part.startswith("Unreleased"):
            continue
        assert part.splitlines()[1].startswith("### Upgrade"), part.splitlines()[0]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    """Links, and paths in the text."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
    for path in re.findall(r"`((?:migrate|tests|docs|playbooks)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_what_the_recipes_name_is_in_its_file() -> None:
    """Each name beside the file that has it."""
    for name, path in (
        ("KINDS", "migrate/steps/registry.py"),
        ("def steps_of", "migrate/plan/build.py"),
        ("COMMANDS", "migrate/cli/main.py"),
        ("MANUALS", "migrate/cli/examples.py"),
        ("class Playbook", "migrate/model/inventory.py"),
        ("class Case", "tests/checks/cases.py"),
        ("parts", "tests/testing/tiers.py"),
    ):
        assert name.split()[-1] in CONTRIBUTING
        assert path in CONTRIBUTING
        assert name in (ROOT / path).read_text(encoding="utf-8"), path


def test_the_page_for_contributors_is_written_once() -> None:
    """A link: an edit of a copy would be lost."""
    assert (ROOT / "docs" / "contributing.md").readlink() == Path("../CONTRIBUTING.md")


def test_every_marker_is_explained() -> None:
    """Whoever reads the table knows each tier."""
    known = re.findall(r'^    "(\w+): ', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert known
    assert [name for name in known if not re.search(rf"-m [\"\w ]*\b{name}\b", CONTRIBUTING)] == []


def test_the_workflow_runs_what_is_run_by_hand() -> None:
    """One list of what CI runs: `.ci/run`, whose parts the workflow runs side by side."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["tests"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run ${{ matrix.part }}"]
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["part"] == ["lint", *PARTS]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}  # the tools of the virtual environment
