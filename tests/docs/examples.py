"""Shell examples of the pages that are run: what stands behind `<!-- run -->` must do what the page shows.

    <!-- run -->  or  <!-- run: exit 3 -->
    ```console
    $ kraft-migrate explain B-ZKN-01
    B-ZKN-01: /migration remembers a copy that this quorum has not made
    ...
    ```

Lines below a command must stand in its answer, in this order; `...` leaves any number out.  The folder has what the
pages speak of: playbook.yaml and inventory.yaml of a cluster, and cluster.tar.gz, the bundle of one in ZooKeeper mode.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate.model.stage import Stage
from migrate.model.world import World
from tests.cli.commands import Ended, kraft_migrate, playbook_in
from tests.steps.looks import whole
from tests.testing.kept import sources_of

BLOCK = re.compile(r"^<!-- run(?:: exit (\d+))? -->\n```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- run\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """One command of a page, with what the page shows of its answer; `code` is how the block's last one ends."""

    page: str
    command: str
    shown: tuple[str, ...]
    code: int

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"


def examples(page: Path) -> Iterator[Example]:
    """Those of a page, in its order."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        parts = re.split(r"^\$ ", found[2], flags=re.MULTILINE)[1:]
        for index, part in enumerate(parts):
            command, *lines = part.rstrip("\n").split("\n")
            last = index == len(parts) - 1
            yield Example(page.name, command, tuple(lines), int(found[1] or 0) if last else 0)


def cluster_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages' examples need, in that folder."""
    playbook = playbook_in(folder)
    world = whole(Stage.ASSESS)

    def look(observer: object) -> World:
        sources = observer.sources  # type: ignore[attr-defined] # the command's own observer
        return replace(world, inventory=sources.inventory, playbook=sources.playbook)

    with monkeypatch.context() as here:
        here.setattr("migrate.observe.bundled.look_for_bundle", look)
        here.setattr("migrate.observe.sources.Sources", sources_of(world))
        made = kraft_migrate("bundle", "create", folder / "cluster.tar.gz", playbook)
        assert (made.code, made.err) == (0, "")


def run(example: Example) -> Ended:
    """Carry it out in the present folder; a `> FILE` at its end is done as a shell does."""
    words, _, file = example.command.partition(" > ")
    program, *rest = shlex.split(words)
    assert program == "kraft-migrate", example.command
    ended = kraft_migrate(*rest)
    if file:
        Path(file).write_text(ended.out, encoding="utf-8")
    return ended


def missing(shown: tuple[str, ...], said: str) -> str:
    """The first line that the page shows and the answer has not in its place; "" where there is none.

    Columns are as wide as what stands in them: how many blanks there are does not count.
    """
    lines = iter(" ".join(line.split()) for line in said.splitlines())
    for wanted in shown:
        if wanted.strip() == "..." or not wanted.strip():
            continue
        if not any(line == " ".join(wanted.split()) for line in lines):
            return wanted
    return ""
