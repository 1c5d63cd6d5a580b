"""The commands, one file each."""

import sys

LOWEST = (3, 11)

if sys.version_info < LOWEST:
    # nothing of ours can be imported here, not even the error (PythonTooOld): earlier Pythons end with a traceback
    sys.stderr.write(
        "E-SYS-02: Python %d.%d.%d runs kraft-migrate\n"  # noqa: UP031 - any Python reads it
        "  where  %s\n"
        "  next   install kraft-migrate into a virtual environment of Python 3.11 or later; nothing was done\n"
        % (*sys.version_info[:3], sys.executable)
    )
    sys.exit(1)
