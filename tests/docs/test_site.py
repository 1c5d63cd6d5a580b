"""The documentation as pages: built without a warning, fetching nothing, its examples carried out."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.examples import MARK, Example, cluster_in, examples, missing, run

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = [example for page in PAGES for example in examples(page)]
SOURCES = [(tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio")]
FETCHES = {*SOURCES, ("link", "href"), ("object", "data")}


class Fetched(HTMLParser):
    """What a browser would fetch to show the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Addresses in the tags that fetch."""
        named = dict(attrs)
        if tag == "link" and named.get("rel") == "canonical":
            return
        self.found += [value or "" for name, value in attrs if (tag, name) in FETCHES]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    folder = tmp_path_factory.mktemp("site")
    words = ["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(folder)]
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_pages_are_built_without_a_warning(site: Path) -> None:
    """Each of docs/ has its place in the navigation of mkdocs.yml, and every link and anchor leads somewhere."""
    assert {path.with_suffix(".html").name for path in PAGES} <= {path.name for path in site.glob("*.html")}
    assert (site / "search" / "search_index.json").exists()


def test_nothing_is_fetched_from_the_network(site: Path) -> None:
    """Neither by a tag nor by a style: they are read behind firewalls."""
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text(encoding="utf-8"))
        assert [address for address in parser.found if re.match(r"(https?:)?//", address)] == [], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", text) == [], style


def test_every_mark_of_an_example_is_one() -> None:
    """A block that is not found is not run."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^<!-- run(?:: exit \d+)? -->\n```console\n\$ ", text, re.MULTILINE)
        assert len(MARK.findall(text)) == len(blocks), page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the examples are run, one after the other, as a reader does."""
    found = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        cluster_in(found, patch)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_does_what_the_page_shows(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code, and each line that the page shows, in this order."""
    monkeypatch.chdir(folder)
    ended = run(example)
    assert ended.code == example.code, ended.err
    said = ended.out + ended.err
    assert missing(example.shown, said) == "", said


def test_there_are_examples_of_the_first_hour() -> None:
    """Installing, assessing, writing a playbook: what a new reader tries."""
    assert {"install.md", "first-assessment.md", "playbooks.md"} <= {example.page for example in EXAMPLES}
    assert len(EXAMPLES) >= 9
