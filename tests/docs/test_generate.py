"""Generated pages are what the code says, and say it of every code, event and key."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.generate import COMMAND, pages
from migrate import checks
from migrate.checks import stuck
from migrate.checks.pages import error_docs

DOCS = Path(__file__).parents[2] / "docs"
OWN_JOURNALS = ("rescue", "restore_znodes")  # acts outside a plan
ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$")
BARE = re.compile(r"^(text|number.*|duration|list of (text|number.*)|names with .*)$")
OBVIOUS = re.compile(
    r"\.(username|type|path|file|env|command|timeout|kind|name|field|inventory|playbook|zookeeper|bundle|cluster_id)"
    r"(\[\])?$"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_pages_are_fresh(name: str) -> None:
    """Code and page say the same."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], f"docs/{name} is stale: run `{COMMAND}`"


@pytest.mark.slow
def test_the_program_writes_every_page_beside_itself(tmp_path: Path) -> None:
    """The command that a stale page names."""
    for name in ("generate.py", "key-meanings.toml", "automation.md", "glossary.md", "index.md"):
        shutil.copy(DOCS / name, tmp_path)
    subprocess.run([sys.executable, tmp_path / "generate.py"], check=True, cwd=tmp_path)
    assert {path.name for path in tmp_path.glob("*.md")} == set(pages())


@pytest.mark.slow
def test_the_pages_name_every_code_once_as_a_heading() -> None:
    """Each code has one heading."""
    headings = [line.split()[1].rstrip(":") for line in pages()["findings.md"].splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(checks.CODES)
    waits = [line.split()[1].rstrip(":") for line in pages()["stuck.md"].splitlines() if line.startswith("### ")]
    assert waits == list(stuck.CODES)
    rows = [line.split("`")[1] for line in pages()["errors.md"].splitlines() if line.startswith("| `")]
    assert rows == sorted(error_docs())


def test_every_event_that_a_run_writes_has_its_row() -> None:
    """Whoever reads the lines knows all names."""
    files = [path for path in (DOCS.parent / "migrate" / "run").glob("*.py") if path.stem not in OWN_JOURNALS]
    source = "".join(path.read_text() for path in files)
    written = set(re.findall(r'(?:_write|append)\(\s*(?:[\w.]+(?:\(\))?, )?"([a-z-]+)"', source))
    heads = re.findall(r"^\| (`[a-z-]+`(?: / `[a-z-]+`)?) \|", pages()["automation.md"], re.MULTILINE)
    rows = set(re.findall(r"[a-z-]+", " ".join(heads)))
    assert {"session", "stage", "intend", "waiting", "conclude", "end"} <= written & rows
    assert written <= rows, written - rows


def rows() -> list[tuple[str, str, str, str]]:
    """Key, value, default, meaning."""
    found = [ROW.match(line.replace("\\|", "/")) for line in pages()["playbook-keys.md"].splitlines()]
    return [(match[1], match[2], match[3], match[4]) for match in found if match]


def test_a_bare_value_is_explained() -> None:
    """`text` alone sends its reader into the code."""
    silent = [key for key, value, _, said in rows() if BARE.match(value) and not said and not OBVIOUS.search(key)]
    assert silent == []


def test_no_meaning_is_of_a_key_that_is_gone() -> None:
    """Each of them is used."""
    keys = [key for key, *_ in rows()]
    meanings = tomllib.loads((DOCS / "key-meanings.toml").read_text(encoding="utf-8"))
    used = {max((end for end in meanings if f".{key}".endswith(f".{end}")), key=len, default="") for key in keys}
    assert set(meanings) <= used


def test_the_page_has_no_word_of_the_code() -> None:
    """A description of a section within a list or a map belongs to no sentence of that row."""
    text = pages()["playbook-keys.md"]
    assert "STAGE_KEYS" not in text
    assert "list of sections" in text
    assert "names with sections" in text
