"""The page on the rollback names every reason that there is, with its weight, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from migrate.cli.rollback_demo import TURNS
from migrate.model.rollback_readiness import GAP_SECONDS, RollbackWord
from migrate.zookeeper.backup import NEVER

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "rollback.md").read_text(encoding="utf-8")
RULES = Path(__file__).parents[2] / "migrate" / "checks" / "rollback" / "readiness.py"
CODE = RULES.read_text(encoding="utf-8")
WEIGHTS = {
    "bar": r"\bbar\(\s*\"([a-z-]+)\"",
    "work": r"\bwork\(\s*\"([a-z-]+)\"",
    "note": r"Weight\.NOTE,\s*\"([a-z-]+)\"",
}


def test_every_reason_stands_on_the_page_under_its_weight() -> None:
    """As the code spells them."""
    rows = re.findall(r"^\| (`.+?`) \| (bar|work|note)", PAGE, flags=re.MULTILINE)
    told: dict[str, set[str]] = {}
    for names, weight in rows:
        told.setdefault(weight, set()).update(re.findall(r"`([a-z-]+)`", names))
    assert told == {weight: set(re.findall(pattern, CODE)) for weight, pattern in WEIGHTS.items()}


def test_words_defaults_and_turns_are_those_of_the_code() -> None:
    """Nothing on the page is of another version."""
    assert all(f"| {word} |" in PAGE for word in RollbackWord)
    assert f"Without one it is {GAP_SECONDS:.0f} s, plus one second for each 100 MB" in PAGE
    assert all(f"`{name}`" in PAGE for name in TURNS)


def test_the_page_on_backups_names_what_is_never_put_back() -> None:
    """Each znode of the closed list."""
    page = (DOCS / "rollback.md").read_text(encoding="utf-8")
    assert [path for path in NEVER if f"`{path}`" not in page] == []
