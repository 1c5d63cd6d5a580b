"""File systems in memory laid over a folder: how a lab makes a disk that is read-only or full.  Needs root."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from migrate.errors import MountRefused

SECONDS: Final = 30.0


def mount_memory(folder: Path, *, size_bytes: int) -> None:
    """Lay a tmpfs of that size over the folder.

    Raises:
        MountRefused: not root, or the kernel says no (a container without the right).
    """
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "kraft-migrate-lab", str(folder))


def remount_read_only(folder: Path, *, read_only: bool = True) -> None:
    """Make the file system that is mounted there read-only, or writable again; MountRefused as above."""
    _run("mount", "-o", f"remount,{'ro' if read_only else 'rw'}", str(folder))


def unmount(folder: Path) -> None:
    """Take what is mounted there away, at once even where files of it are open; MountRefused as above."""
    _run("umount", "--lazy", str(folder))


def is_mounted(folder: Path) -> bool:
    """Does a file system begin there?"""
    return os.path.ismount(folder)


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MountRefused(f"{argv[0]} did not run", where=argv[-1], why=str(error)) from error
    if done.returncode:
        raise MountRefused(f"{argv[0]} refused", where=argv[-1], why=(done.stderr + done.stdout).strip())
