"""Version and date of each page; mkdocs calls these functions by their names (mkdocs.yml)."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"\s*```")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_config(config: Any) -> Any:
    """Write the version into the footer of every page."""
    source = (ROOT / "migrate" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)[0]
    config["copyright"] = f"kraft-migrate {version}, Apache-2.0"
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Give the page the day of its last change; write its blocks as Python-Markdown reads them."""
    page.meta["revision_date"] = _changed().get(f"docs/{page.file.src_uri}", datetime.now(UTC).date().isoformat())
    if page.file.src_uri.startswith(("runs/", "adr/")):
        page.meta["search"] = {"boost": 0.2}  # records of runs and decisions come behind the pages for operators
    return apart(markdown)


def apart(markdown: str) -> str:
    """Set fences and lists apart by an empty line: forges need none, Python-Markdown does, or they become text."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        before = lines[-1] if lines else ""
        starts = ITEM.match(line) and before and not before.startswith((" ", "#")) and not ITEM.match(before)
        if not fence and before.strip() and (mark or starts):
            lines.append("")
        lines.append(line)
        if mark and fence:
            lines.append("")
        if mark:
            fence = "" if fence else mark[0]
    return "\n".join(lines)


@cache
def _changed() -> dict[str, str]:
    """Return path -> day of the last commit that changed it; nothing outside a clone."""
    command = ["git", "log", "--format=%cs", "--name-only", "--", "docs"]
    try:
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = {}
    day = ""
    for line in filter(None, told.splitlines()):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", line):
            day = line
        else:
            found.setdefault(line, day)
    return found
