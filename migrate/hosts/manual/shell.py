"""Shell commands for people (pure): GNU coreutils, systemd and Kafka's own tool."""

from __future__ import annotations

import os
from typing import Final

from migrate.hosts.commands import Words
from migrate.hosts.shell_quoting import path, unit

NEW_SUFFIX: Final = ".kraft-migrate-new"


def new_name(file: str) -> str:
    """Where a file's new content is before it replaces the old."""
    folder, name = os.path.split(path(file))
    return f"{folder.rstrip('/')}/.{name}{NEW_SUFFIX}"


def like_old(file: str) -> tuple[Words, ...]:
    """Owner and mode of the old file for the new one."""
    return (
        own_like(new_name(file), file),
        ("chmod", f"--reference={path(file)}", "--", new_name(file)),
    )


def sync(place: str) -> Words:
    """Make one file or folder durable."""
    return ("sync", "--", path(place))


def move(old: str, new: str) -> Words:
    """rename(2), the target never a folder to move into; what is there is replaced."""
    return ("mv", "-T", "--", path(old), path(new))


def move_where_nothing_is(old: str, new: str) -> Words:
    """rename(2), and nothing where something is there already."""
    return ("mv", "-T", "-n", "--", path(old), path(new))


def make_folder(folder: str) -> Words:
    """A folder and its parents, 0750."""
    return ("mkdir", "-p", "-m", "750", "--", path(folder))


def own_like(place: str, other: str) -> Words:
    """The owner of another file or folder: the broker must be able to read, or to write into it."""
    return ("chown", f"--reference={path(other)}", "--", path(place))


def archive(folder: str, members: tuple[str, ...]) -> Words:
    """Some members of a folder as one tar stream; links are stored as links."""
    return ("tar", "-C", path(folder), "-cf", "-", "--", *members)


def unit_start(name: str) -> Words:
    """Begin to start; what it becomes is observed."""
    return ("systemctl", "start", "--no-block", "--", unit(name))


def unit_stop(name: str) -> Words:
    """Stop, and return when it has: the person looks at the host next."""
    return ("systemctl", "stop", "--", unit(name))


def unit_enable(name: str) -> Words:
    """Start it at each boot; what runs now is left as it is."""
    return ("systemctl", "enable", "--", unit(name))


def unit_disable(name: str) -> Words:
    """Start it at no boot; what runs now is left as it is."""
    return ("systemctl", "disable", "--", unit(name))


def storage_format(tool: str, config: str, cluster_id: str, release: str, *, ignore_formatted: bool) -> Words:
    """kafka-storage format with a node's file; the id in one word with its option, for it may begin with a dash."""
    also = ("--ignore-formatted",) if ignore_formatted else ()
    return (tool, "format", f"--cluster-id={cluster_id}", "-c", path(config), "--release-version", release, *also)
