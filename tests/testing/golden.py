"""Golden files: what is kept to the byte.  UPDATE_GOLDEN=1 writes them anew; then read the change."""

from __future__ import annotations

import difflib
import os
from pathlib import Path


def same_as_kept(path: Path, found: bytes) -> None:
    """Assert that the content is the golden file's, else show the difference."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found)
    kept = path.read_bytes()
    before, after = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (kept, found))
    shown = "".join(difflib.unified_diff(before, after, "kept", "found"))
    assert found == kept, f"{path.name} changed; UPDATE_GOLDEN=1 writes it anew\n{shown}"
