"""The documentation as pages: built without a warning, fetching nothing, its examples carried out."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import queue
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import pytest

from migrate import __version__
from tests.cli.commands import kraft_migrate
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
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = ["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(folder)]
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
def test_the_pages_are_built_without_a_warning(site: Path) -> None:
    """Each of docs/ has its place in the navigation of mkdocs.yml, and every link and anchor leads somewhere."""
    assert {path.with_suffix(".html").name for path in PAGES} <= {path.name for path in site.glob("*.html")}
    assert (site / "search" / "search_index.json").exists()


@pytest.mark.slow
def test_nothing_is_fetched_from_the_network(site: Path) -> None:
    """Neither by a tag nor by a style: they are read behind firewalls."""
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text(encoding="utf-8"))
        assert [address for address in parser.found if re.match(r"(https?:)?//", address)] == [], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", text) == [], style


def inside_paragraphs(page: str) -> list[str]:
    """What stands as text in a built page and was written as a list, a code block or a table."""
    text = re.sub(r"<pre.*?</pre>", "<pre></pre>", page, flags=re.DOTALL)
    paragraphs = re.findall(r"<p>(.*?)</p>", text, re.DOTALL)
    marks = re.compile(r"\n\s*(?:[-*]|\d+\.) |^\||```|<pre>", re.MULTILINE)
    found = [paragraph for paragraph in paragraphs if marks.search(paragraph)]
    return found + [
        code for code in re.findall(r"<code>(.*?)</code>", text, re.DOTALL) if re.search(r"\\[|<>_*`]", code)
    ]


def test_no_block_is_shown_as_text(site: Path) -> None:
    """No list, fence or table inside a paragraph, and no backslash of an escape in code."""
    found = {path.name: inside_paragraphs(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert {name: texts for name, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "broken",
    ["<p>Blocks.\n- <b>Why</b></p>", "<p>```text</p>", "<p>a\n| b | c |</p>", r"<td><code>a\|b</code></td>"],
)
def test_a_block_that_is_shown_as_text_is_found(broken: str) -> None:
    """Or the test above would hold nothing."""
    assert inside_paragraphs(broken)


def test_each_page_says_version_and_date(site: Path) -> None:
    """Whoever prints a page knows of which release it is."""
    for path in PAGES:
        page = (site / path.with_suffix(".html").name).read_text(encoding="utf-8")
        assert f"kraft-migrate {__version__}, Apache-2.0" in page, path
        assert re.search(r'title="Last update">.*?\d{4}-\d\d-\d\d', page, re.DOTALL), path


MEASURE = """<body></body><script>
const frame = document.body.appendChild(document.createElement("iframe"));
const found = [];
(async () => {
  for (const page of PAGES) {
    await new Promise(loaded => { frame.onload = loaded; frame.src = page; });
    const style = frame.contentDocument.createElement("style");
    style.textContent = "* { transition: none !important; animation: none !important }";
    frame.contentDocument.head.append(style);
    for (const width of [1280, 400]) {
      frame.style.width = width + "px";
      const root = frame.contentDocument.documentElement;
      if (root.scrollWidth > root.clientWidth) found.push([page, width, root.scrollWidth]);
    }
  }
  await fetch("measured", {method: "POST", body: JSON.stringify({pages: PAGES.length, wide: found})});
})();
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The built site, without a line per request; what a page measured is posted to it."""

    measured: ClassVar[queue.Queue[bytes]] = queue.Queue()

    def do_POST(self) -> None:
        """Keep what was measured."""
        self.measured.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.slow
def test_no_page_is_wider_than_a_screen(site: Path, tmp_path: Path) -> None:
    """At 1280 and at 400 pixels, measured by a browser where there is one: wide tables scroll in their own box."""
    assert "overflow-x: auto" in (site / "site.css").read_text(encoding="utf-8")
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    if browser is None:
        pytest.skip("no Chromium on this host")
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    (site / "measure.htm").write_text(MEASURE.replace("PAGES", json.dumps(pages)), encoding="utf-8")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        address = f"http://127.0.0.1:{server.server_port}/measure.htm"
        with subprocess.Popen(
            [browser, *options, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            found = None
            while found is None:
                assert run.poll() is None, "the browser ended before it measured"
                with suppress(queue.Empty):
                    found = Quiet.measured.get(timeout=0.5)
            run.kill()
        server.shutdown()
    assert json.loads(found) == {"pages": len(pages), "wide": []}


SEARCHED = (
    "prerequisites",
    "requirements",
    "supported versions",
    "limitations",
    "not supported",
    "dry run",
    "preflight",
    "troubleshooting",
    "FAQ",
    "maintenance window",
    "cutover",
    "downtime",
    "crashed",
    "Ansible",
    "Puppet",
    "Docker",
    "Kubernetes",
    "Strimzi",
    "Confluent",
    "air-gapped",
    "Prometheus",
    "monitoring",
    "CI",
    "tickets",
    "notifications",
)


@pytest.mark.slow
@pytest.mark.parametrize("words", SEARCHED)
def test_what_people_search_for_leads_somewhere(words: str, site: Path) -> None:
    """To a page for operators, by the site's own search."""
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    pattern = re.compile(rf"\b{re.escape(words)}\b", re.IGNORECASE)
    found = {entry["location"].partition("#")[0] for entry in entries if pattern.search(entry["title"] + entry["text"])}
    assert found & {"support.html", "install.html", "automation.html", "night.html", "index.html"}, found


@pytest.mark.slow
def test_the_programs_of_the_page_on_integration_run(folder: Path) -> None:
    """Each reads what the command beside it prints."""
    page = (ROOT / "docs" / "automation.md").read_text(encoding="utf-8")
    (metrics,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    answer = kraft_migrate("assess", "--from-bundle", folder / "cluster.tar.gz", "-o", "json").out
    assert _ran(metrics, answer)[0] == 'kraft_migrate_findings{cluster="lab",severity="blocker"} 0'


def _ran(program: str, given: str) -> list[str]:
    ended = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


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


@pytest.mark.slow
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
