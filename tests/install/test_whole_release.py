"""One command makes a release; its single file works without a network and without Spark."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrate import __version__
from tests.docs.examples import cluster_in
from tests.install.venvs import ROOT, run
from tests.release import LOCKS, single_file_name

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("build", "cyclonedx_py", "pex", "piplicenses", "uv")),
        reason="the extra `release` is not installed",
    ),
]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the commit that is checked out."""
    out = tmp_path_factory.mktemp("release") / "out"
    subprocess.run([sys.executable, "-m", "tests", "release", out], cwd=ROOT, check=True)
    return out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A playbook, its inventory and a bundle of its cluster; a home without a cache."""
    cluster_in(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_release_is_whole_and_its_checksums_are_right(release: Path) -> None:
    """Nothing but what the page on releases names."""
    name = f"kraft-migrate-{__version__}"
    files = {
        f"{name}-man.tar.gz",
        f"{name}-licences.txt",
        f"{name}.cdx.json",
        f"{name}-small.cdx.json",
        single_file_name(__version__),
    }
    built = {f"kafka_kraft_migrate-{__version__}-py3-none-any.whl", f"kafka_kraft_migrate-{__version__}.tar.gz"}
    assert {path.name for path in release.iterdir()} == files | built | {*LOCKS, "Containerfile", "SHA256SUMS"}
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=release)


def test_the_sbom_names_every_package_of_its_lock(release: Path) -> None:
    """The package itself, too; the small one has no Spark."""
    found = {}
    for lock, part in zip(LOCKS, ("", "-small"), strict=True):
        bom = json.loads((release / f"kraft-migrate-{__version__}{part}.cdx.json").read_text(encoding="utf-8"))
        found[lock] = {component["name"] for component in bom["components"]}
        lines = (release / lock).read_text(encoding="utf-8").splitlines()
        assert {line.partition("==")[0] for line in lines if "==" in line} == found[lock]
    small, whole = found["requirements-small.txt"], found["requirements.txt"]
    assert "kafka-kraft-migrate" in small
    of_pandas = {"numpy", "pandas", "python-dateutil", "pytz", "six"}
    spark = {"py4j", "pyarrow", "pyspark"}
    assert spark <= whole - small <= spark | of_pandas  # of these a small one may need some for itself


def test_every_package_of_a_lock_has_its_licence_in_the_file(release: Path) -> None:
    """With its version; our own stands first."""
    text = (release / f"kraft-migrate-{__version__}-licences.txt").read_text(encoding="utf-8")
    named = {line.partition(", ")[0].lower().replace("_", "-") for line in text.splitlines()}
    lines = (release / "requirements.txt").read_text(encoding="utf-8").splitlines()
    here = {line.partition("==")[0] for line in lines if "==" in line and "sys_platform == 'win32'" not in line}
    assert here - named == set()
    assert text.lstrip().startswith("Apache License")


def test_a_commit_gives_the_same_bytes_twice(release: Path, tmp_path: Path) -> None:
    """With the versions of the lock files that are there already."""
    again = tmp_path / "again"
    again.mkdir()
    for lock in LOCKS:
        shutil.copy(release / lock, again)
    subprocess.run([sys.executable, "-m", "tests", "release", again], cwd=ROOT, check=True)
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_the_single_file_looks_plans_and_explains(release: Path, folder: Path) -> None:
    """Without a network, and without a package of the Python that runs it."""
    program = release / single_file_name(__version__)
    assert program.stat().st_size < 30e6
    assert run(program, "--version", cwd=folder) == f"kraft-migrate, version {__version__}\n"
    assert "B-ZKN-01" in run(program, "explain", "B-ZKN-01", cwd=folder)
    assert run(program, "playbook", "lint", "playbook.yaml", cwd=folder) == "playbook.yaml: ok\n"
    assert "READY" in run(program, "assess", "--from-bundle", "cluster.tar.gz", cwd=folder)
    assert "stage" in run(program, "status", "playbook.yaml", cwd=folder)
    for words, code, error in (
        (("plan", "playbook.yaml"), 1, "E-VIEW-01"),
        (("directories", "verify", "playbook.yaml"), 1, "E-VIEW-01"),
        (("rollback", "plan", "playbook.yaml"), 3, "E-PLAN-04"),
        (("rollback", "apply", "plan.json"), 1, "E-PLAN-01"),
    ):
        assert error in run(program, *words, cwd=folder, code=code), words


def test_a_command_that_needs_spark_says_what_to_install(release: Path, folder: Path) -> None:
    """What the line installs into the virtual environment whose Python runs the file is found by it."""
    program = release / single_file_name(__version__)
    said = run(program, "diff", "playbook.yaml", cwd=folder, code=1)
    assert said.startswith("E-SYS-03: the package pyspark<5,>=4.0 is not installed")
    assert "-m pip install 'pyspark<5,>=4.0'" in said
    run(sys.executable, "-m", "venv", "--without-pip", folder / "beside", cwd=folder)
    (packages,) = (folder / "beside" / "lib").glob("python*/site-packages")
    (packages / "pyspark").mkdir()
    (packages / "pyspark" / "__init__.py").touch()
    said = run(folder / "beside" / "bin" / "python", program, "diff", "playbook.yaml", cwd=folder, code=1)
    assert said.startswith("E-SYS-03: the package pyarrow>=18 is not installed")


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_the_man_pages_are_found(release: Path, folder: Path) -> None:
    """Unpacked in a folder of MANPATH."""
    shutil.unpack_archive(release / f"kraft-migrate-{__version__}-man.tar.gz", folder / "man", filter="data")
    assert "SYNOPSIS" in run("man", "-M", folder / "man", "kraft-migrate-rollback-plan", cwd=folder)
