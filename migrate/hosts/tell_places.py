# ruff: noqa: UP006, UP007, UP031, UP035, PTH208
"""Resolve paths and list their names, as JSON on stdout.  Changes nothing; opens no file.

    python3 - PATH... < tell_places.py

One file, Python 3.6 or newer, importing only what Debian's python3-minimal has (no json).
"""

import os
import re
import sys
from typing import Any, Dict, List, Union

MOST = 200  # names of one folder: one is enough to refuse it


def told(path: str) -> Dict[str, Union[str, List[str]]]:
    """{"real": the path with links resolved, "names": the names in it, [] where it cannot be listed}."""
    try:
        names = sorted(os.listdir(path))[:MOST]
    except OSError:
        names = []
    return {"real": os.path.realpath(path), "names": names}


def as_json(value: Any) -> str:
    """Texts, lists and objects as json.dumps writes them."""
    if isinstance(value, dict):
        return "{" + ", ".join(as_json(key) + ": " + as_json(value[key]) for key in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_json(entry) for entry in value) + "]"
    return '"' + re.sub(r"[^ !#-\[\]-~]", _escape, value) + '"'


def _escape(found: Any) -> str:
    units = found.group(0).encode("utf-16-be", "surrogatepass")
    return "".join("\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))


if __name__ == "__main__":
    sys.stdout.write(as_json({path: told(path) for path in sys.argv[1:]}))
