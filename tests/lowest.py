"""The fast tests with the oldest versions that setup.py allows: `python -m tests lowest`.

They are installed into an environment of their own, which needs a network and a Python for which they were built.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "jsonschema")
FOLDERS = ("cli", "diff", "hosts", "java", "kafka", "kraft", "lab", "model", "playbook", "report", "run", "zookeeper")


def declared() -> dict[str, Any]:
    """The arguments of setup() in setup.py."""
    with patch("setuptools.setup") as called:
        runpy.run_path(str(ROOT / "setup.py"))
    return dict(called.call_args.kwargs)


def oldest() -> list[str]:
    """Each requirement of every command and of the extras for users, as its lower bound alone: `pyarrow==18`."""
    found = declared()
    return sorted(
        {re.sub(r">=([\d.]+).*", r"==\1", one) for one in found["install_requires"] + found["extras_require"]["all"]}
    )


def run(marked: str) -> int:
    """Install and test; the exit code of what fails first."""
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-lowest-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        install = [python, "-m", "pip", "install", "--quiet", *oldest(), *TOOLS, f"{ROOT}[all]"]
        tests = [python, "-m", "pytest", "-m", marked, "-n", "2", *(f"tests/{name}" for name in FOLDERS)]
        for command in (install, tests):
            if code := subprocess.run(command, check=False, cwd=ROOT).returncode:
                return code
    return 0
