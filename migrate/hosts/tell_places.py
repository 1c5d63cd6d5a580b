# ruff: noqa: UP006, UP007, UP035, PTH208
"""Tell where paths lead to and what lies there, as JSON on stdout.  Changes nothing; opens no file.

    python3 - PATH... < tell_places.py

One file, standard library only, Python 3.6 or newer: it runs on a node's host from stdin, and nothing is left there.
"""

import json
import os
import sys
from typing import Dict, List, Union

MOST = 200  # names of one folder: one is enough to refuse it


def told(path: str) -> Dict[str, Union[str, List[str]]]:
    """{"real": where it leads to, links resolved, "names": what lies in it, [] where it cannot be listed}."""
    try:
        names = sorted(os.listdir(path))[:MOST]
    except OSError:
        names = []
    return {"real": os.path.realpath(path), "names": names}


if __name__ == "__main__":
    sys.stdout.write(json.dumps({path: told(path) for path in sys.argv[1:]}))
