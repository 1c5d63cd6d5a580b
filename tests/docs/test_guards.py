"""The tables of guards and effects are what the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from migrate.run.effects import EFFECTS
from migrate.run.guards import GUARDS
from tests.docs.test_docs import functions
from tests.run.test_mutations import SCENARIOS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()


def section(name: str) -> str:
    """A part of the page, by its title."""
    return PAGE.split(f"\n## {name}", 1)[1].split("\n## ", 1)[0]


def test_every_guard_has_its_row_and_its_mutation_test() -> None:
    """By name; the test exists, and none of the guards is left out."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| .* \| `(test_\w+)` \|$", section("Guards"), flags=re.MULTILINE)
    tree = ast.parse((ROOT / "tests/run/test_mutations.py").read_text())
    tests = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    named = dict(rows)
    assert len(named) == len(rows)
    assert set(GUARDS) <= set(named)
    assert {scenario.guard for scenario in SCENARIOS} <= set(named)
    for guard, test in rows:
        assert test in tests, guard
        assert guard in {scenario.guard for scenario in SCENARIOS} or f"`{guard}`" in tests[test], guard


def test_every_test_that_the_page_names_exists() -> None:
    """In all its tables and sentences; a bare name of a mutation test is held above."""
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE))
    assert len(named) > 60
    for path, test in sorted(named):
        assert test in functions(path), (path, test)


def test_every_effect_is_printed() -> None:
    """In the order of the code."""
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| [^|]+ \|$", section("Effects"), flags=re.MULTILINE)
    assert tuple(rows) == EFFECTS
