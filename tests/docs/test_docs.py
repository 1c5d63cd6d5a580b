"""Pages that say what the code is must be what the code is."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from migrate.checks.registry import CHECKS
from migrate.checks.releases import REFUSALS
from migrate.cli.doctor import CACHE_DISK_MB, LAB_DISK_MB, LAB_MEMORY_MB
from migrate.java.jars import KAFKA_VERSION
from migrate.model.ledger import ReplicaState
from tests.report import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LAYERS = next(
    contract["layers"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
)
ROWS = [[name.strip().removeprefix("migrate.") for name in row.split("|")] for row in LAYERS]


def _boxes() -> list[tuple[float, str]]:
    """The names in the figure, each with the height at which it stands."""
    figure = (DOCS / "architecture.svg").read_text()
    names = re.findall(r'<text x="(\d+)" y="(\d+)" class="name">([a-z]+)</text>', figure)
    return [(float(y), name) for x, y, name in names if int(x) > 200]


def test_the_figure_shows_the_layers_that_are_held() -> None:
    """Same names, same order; parts of one row stand at one height."""
    found: dict[float, list[str]] = {}
    for height, name in _boxes():
        found.setdefault(height, []).append(name)

    assert [found[height] for height in sorted(found)] == ROWS


def test_every_package_is_a_layer() -> None:
    """A new directory must be drawn, and put under the contract."""
    packages = {path.parent.name for path in (ROOT / "migrate").glob("*/__init__.py")}

    assert packages | {"errors"} == {name for row in ROWS for name in row}


def test_the_figure_is_whole_and_fetches_nothing() -> None:
    """A plain drawing."""
    figure = (DOCS / "architecture.svg").read_text()
    page = pages.read(figure)

    assert [fault for fault in page.faults if "http://www.w3.org/2000/svg" not in fault] == []


@pytest.mark.slow
def test_every_promise_is_there_and_names_tests_that_exist() -> None:
    """A promise without a test says so; each has a number of its own, without gaps."""
    text = (DOCS / "guarantees.md").read_text()
    sections = re.findall(r"^### ([A-Z])(\d+)\. (.+?)\n(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)

    found: dict[str, list[int]] = {}
    for letter, number, title, body in sections:
        found.setdefault(letter, []).append(int(number))
        promise, _, held = body.partition("Held by:")
        tests = re.findall(r"`(tests/[^`]+)`", held)
        assert promise.strip(), title
        assert tests or "not yet" in held.lower(), title
        assert [test for test in tests if not is_there(test)] == [], title
    assert {letter: list(range(1, len(numbers) + 1)) for letter, numbers in found.items()} == found
    assert len(found["G"]) == 10
    assert set(found) == set("GARO")  # the ten, when to act, what dual write loses, operators


def is_there(test: str) -> bool:
    """`path::function`."""
    path, _, function = test.partition("::")
    return function.rpartition("::")[2] in functions(path)


@cache
def functions(path: str) -> frozenset[str]:
    """Names of all functions of a file, methods too."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """Links to other pages, and paths of the package and the tests."""
    text = page.read_text()

    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (page.parent / target).exists(), target
    for path in re.findall(r"`((?:migrate|tests|docs|playbooks)/[\w./-]*)(?:::\w+)?`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.slow
def test_every_element_of_the_kip_has_a_known_state() -> None:
    """Works, or Kafka differs, each with a test that exists; partly and not yet say what is missing."""
    text = (DOCS / "kip-858.md").read_text()
    rows = re.findall(r"^## (.+?)\nState: \*\*(.+?)\*\*\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    elements = " ".join(element for element, _, _ in rows)

    assert {state for _, state, _ in rows} <= {"works", "Kafka differs", "partly", "not yet"}
    for element, state, where in rows:
        tests = re.findall(r"`(tests/[^`]+::[^`]+)`", where)
        assert tests or state in ("partly", "not yet"), element
        assert [test for test in tests if not is_there(test)] == [], element
    for wanted in (
        "directory.id",
        "metadata.log.dir",
        "reserved UUIDs",
        "LogDirs",
        "Directories",
        "OfflineLogDirs",
        "AssignReplicasToDirs",
        "QueuedReplicaToDirAssignments",
        "log.dir.failure.timeout.ms",
        "storage format",
        "fenced until",
        "metadata caching",
        "broker side",
        "LOG_DIR_NOT_FOUND 57",
        "INVALID_REQUEST 42",
        "decision table",
        "future replicas",
        "replica placement",
        "registration rules",
        "KRaft cluster without JBOD",
        "ZooKeeper-mode cluster with JBOD",
        "test plan",
        "TLA+",
    ):
        assert wanted.lower() in elements.lower(), wanted


def test_the_page_on_support_has_every_refusal_and_the_numbers_of_doctor() -> None:
    """One list of what is refused; README and install page ask for no other memory or disk than `doctor` does."""
    page = (DOCS / "support.md").read_text(encoding="utf-8")
    for what, instead in REFUSALS.items():
        codes = re.findall(r"[BWI]-[A-Z]+-\d+", instead)
        assert codes, what
        assert [code for code in codes if code not in page] == [], what
    for path in (DOCS / "support.md", DOCS / "install.md", ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert f"{LAB_MEMORY_MB} MB" in text, path
        assert f"{LAB_DISK_MB} MB" in text, path
        assert not re.search(r"\b[34] GB\b", text), path
    assert f"{CACHE_DISK_MB} MB" in page
    assert KAFKA_VERSION in page
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_decisions_are_numbered_without_gaps() -> None:
    """One file each, its number in its name and in its title."""
    records = sorted((DOCS / "adr").glob("*.md"))

    for number, record in enumerate(records, start=1):
        assert record.name.startswith(f"{number:04d}-")
        text = record.read_text()
        assert text.startswith(f"# {number}. ")
        assert all(f"**{part}" in text for part in ("Status:", "Context.", "Decision.", "Consequences."))


def test_states_that_pages_name_are_states() -> None:
    """Upper-case words in the KIP page are the ledger's own, or Kafka's."""
    text = (DOCS / "kip-858.md").read_text()

    for word in ("VERIFIED", "MISMATCH", "MOVING", "MIGRATING"):
        assert word in text
        assert word in {state.value for state in ReplicaState}


def test_the_page_on_the_comparison_knows_every_rule_and_every_kind() -> None:
    """And each test that it names exists."""
    page = (DOCS / "comparison.md").read_text()
    rules = re.findall(r'id="(X-[A-Z]+-\d+)"', (ROOT / "migrate" / "diff" / "expected.py").read_text())

    assert rules
    assert set(re.findall(r"^\| (X-[A-Z]+-\d+) ", page, re.MULTILINE)) == set(rules)
    kinds = ("partition", "topic", "topic-config", "broker-config", "client-quota", "scram", "acl")
    assert all(f"`{kind}`" in page for kind in (*kinds, "delegation-token", "producer-ids", "broker", "feature"))
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "observe").glob("test_*.py"))
    assert all(f"def {name}(" in tests for name in re.findall(r"`(test_\w+)`", page))
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:tests|migrate)/[\w/.]+)`", page))


def test_the_page_on_verdicts_names_every_blocking_check_that_no_stage_waits_for() -> None:
    """And no other: READY WITH WARNINGS may be said where one of them was not made."""
    page = (DOCS / "first-assessment.md").read_text(encoding="utf-8")
    begin = "Some blocking checks do not hold back a stage"
    paragraph = next(part for part in page.split("\n\n") if part.startswith(begin))
    assert set(re.findall(r"B-[A-Z]+-\d+", paragraph)) == {code for code, entry in CHECKS.items() if entry.proof}
