"""The playbooks that come with the tool: package data of the wheel, `playbooks/` in a source tree."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from migrate.errors import DocumentUnreadable

PACKAGE: Final = Path(__file__).parents[1]
FOLDERS: Final = (PACKAGE / "playbooks", PACKAGE.parent / "playbooks")  # setup.py maps the second onto the first


def shipped(name: str) -> Path:
    """The path of a shipped file, such as `lab-demo.yaml`; DocumentUnreadable if the installation lacks it."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise DocumentUnreadable(
        f"the installation has no playbook {name}", where=str(FOLDERS[0]), next_step="install the package again"
    )
