"""What the tests rely on, they set: Ctrl-C reaches what they start, however the run itself was started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASKED = """
import signal, subprocess, sys
import tests.conftest
child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout, end="")
"""


def test_a_run_that_was_started_with_ctrl_c_ignored_has_it_again() -> None:
    """As under nohup; and so has what a test starts."""
    ignored = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c"]
    for program, wanted in ((ASKED.replace("import tests.conftest", ""), "False"), (ASKED, "True")):
        done = subprocess.run([*ignored, program], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [wanted, wanted]
