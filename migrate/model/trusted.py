"""Files of this host: may one decide what is done, or be run; and where those that can be made again are kept."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from migrate.errors import SystemRefused


def distrust(status: os.stat_result) -> str:
    """Why such a file or folder is not to be believed; "" where it is fine.

    It belongs to us or to root, and others may not write it.  Its group may where that is the owner's own and has
    nobody else in it, as many systems make files (umask 002).
    """
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to {_name(status.st_uid)}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IWOTH and not (stat.S_ISDIR(status.st_mode) and mode & stat.S_ISVTX):
        return f"its mode is {mode:04o}: everybody may write it"
    if mode & stat.S_IWGRP and not _own_group(status):
        return f"its mode is {mode:04o}: others of its group may write it"
    return ""


def distrust_at(path: Path, status: os.stat_result | None = None) -> str:
    """The same of the file at a path and of its folder, in which others could put another one in its place.

    `status` is that of the file where it is open already: what is read is then what is judged.
    """
    folder = path.absolute().parent
    why = distrust(folder.stat())
    return distrust(status or path.stat()) or (f"its folder {folder}: {why}" if why else "")


def distrust_of(*paths: Path) -> str:
    """The same of files, each named; OSError where one cannot be looked at."""
    return next((f"{path}: {why}" for path in paths if (why := distrust(path.stat()))), "")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _own_group(status: os.stat_result) -> bool:
    if status.st_gid == 0:
        return True
    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and not {*group.gr_mem} - {owner.pw_name}


def cache_directory() -> Path:
    """XDG_CACHE_HOME/kraft-migrate, or ~/.cache/kraft-migrate; not made here; SystemRefused without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):  # the XDG rule: relative ones are ignored
        return Path(base) / "kraft-migrate"
    try:
        return Path.home() / ".cache" / "kraft-migrate"
    except RuntimeError as error:
        raise SystemRefused(
            "this account has no home directory", next_step="set HOME, or XDG_CACHE_HOME to a folder of yours"
        ) from error
