"""File systems in memory, laid over a folder: how tests make a disk read-only or full."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final


class MountRefused(OSError):
    """Mounting needs root, and in a container the right to mount."""


MOUNT_SECONDS: Final = 30.0


def mount_memory(folder: Path, *, size_bytes: int) -> None:
    """Lay a tmpfs of that size over the folder; MountRefused without root, or in a container without the right."""
    _mount("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "kraft-migrate-lab", str(folder))


def remount_read_only(folder: Path, *, read_only: bool = True) -> None:
    """Make the file system that is mounted there read-only, or writable again; MountRefused as above."""
    _mount("mount", "-o", f"remount,{'ro' if read_only else 'rw'}", str(folder))


def unmount(folder: Path) -> None:
    """Take what is mounted there away, at once even where files of it are open; MountRefused as above."""
    _mount("umount", "--lazy", str(folder))


def is_mounted(folder: Path) -> bool:
    """Is a file system mounted there?"""
    return os.path.ismount(folder)


def _mount(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=MOUNT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MountRefused(f"{argv[0]} did not run on {argv[-1]}: {error}") from error
    if done.returncode:
        raise MountRefused(f"{argv[0]} refused {argv[-1]}: {(done.stderr + done.stdout).strip()}")
