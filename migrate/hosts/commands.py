"""The closed table of commands that are run on a host: what `sudo` must allow is made of it, and nothing else is run.

GNU coreutils, util-linux, systemd and OpenSSH's server are what a host must have; Python 3.6 for the look at its disks.
Temporary names are the same each time, so that a list of rights can name them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from migrate.hosts.remote_words import path, unit
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP

Words = tuple[str, ...]
NEW_SUFFIX: Final = ".kraft-migrate-new"
READ_LIMIT_MIB: Final = 8  # as for files of this host
UNIT_PROPERTIES: Final = (
    "LoadState",
    "ActiveState",
    "SubState",
    "MainPID",
    "ExecMainStartTimestampMonotonic",
    "ExecMainStatus",
    "Restart",
    "RestartPreventExitStatus",
    "TimeoutStopUSec",
    "SendSIGKILL",
    "User",
    "FragmentPath",
    "DropInPaths",
    "EnvironmentFiles",
    "WantedBy",
    "RequiredBy",
    "NeedDaemonReload",
)


# -- files -------------------------------------------------------------------------------------------------------------
def status(file: str) -> Words:
    """Kind, size, mode, owner and change time of what is at that path, a link itself too."""
    return ("stat", "--printf", r"%F\n%s\n%a\n%u:%g\n%.9Z\n", "--", path(file))


def context(file: str) -> Words:
    """The SELinux context; it fails where there is none."""
    return ("stat", "--printf", "%C", "--", path(file))


def read(file: str) -> Words:
    """The bytes of a file; a link at the end of the path is refused by the kernel (O_NOFOLLOW)."""
    return ("dd", f"if={path(file)}", "iflag=nofollow,nonblock", "bs=1M", f"count={READ_LIMIT_MIB + 1}", "status=none")


def new_name(file: str) -> str:
    """Where a file's new content stands before it takes the place of the old."""
    folder, name = os.path.split(path(file))
    return f"{folder.rstrip('/')}/.{name}{NEW_SUFFIX}"


def put_new(file: str) -> Words:
    """The new content from stdin, in a new file of mode 0600: what stood at its name is unlinked, not followed."""
    return ("install", "-m", "600", "-T", "--", "/dev/stdin", new_name(file))


def like_old(file: str) -> tuple[Words, ...]:
    """Owner and mode of the old file for the new one."""
    return (
        own_like(new_name(file), file),
        ("chmod", f"--reference={path(file)}", "--", new_name(file)),
    )


def context_like_old(file: str) -> Words:
    """The SELinux context of the old file for the new one, where the old has one."""
    return ("chcon", f"--reference={path(file)}", "--", new_name(file))


def sync(place: str) -> Words:
    """Make one file or folder durable."""
    return ("sync", "--", path(place))


def move(old: str, new: str) -> Words:
    """rename(2), the target never a folder to move into; what is there is replaced."""
    return ("mv", "-T", "--", path(old), path(new))


def move_where_nothing_is(old: str, new: str) -> Words:
    """rename(2), and nothing where something is there already."""
    return ("mv", "-T", "-n", "--", path(old), path(new))


def remove(file: str) -> Words:
    """Only for a new content that did not take its place."""
    return ("rm", "-f", "--", new_name(file))


def make_folder(folder: str) -> Words:
    """A folder and its parents, 0750."""
    return ("mkdir", "-p", "-m", "750", "--", path(folder))


def own_like(place: str, other: str) -> Words:
    """The owner of another file or folder: the broker must be able to read, or to write into it."""
    return ("chown", f"--reference={path(other)}", "--", path(place))


def names(folder: str) -> Words:
    """The names in a folder, each ended by a zero byte."""
    return ("find", path(folder), "-mindepth", "1", "-maxdepth", "1", "-printf", r"%f\0")


def archive(folder: str, members: tuple[str, ...]) -> Words:
    """Some members of a folder as one tar stream; links are stored as links."""
    return ("tar", "-C", path(folder), "-cf", "-", "--", *members)


# -- locks -------------------------------------------------------------------------------------------------------------
HELD_BY_ANOTHER: Final = 75  # flock's exit code, chosen by us: none that flock or tee end with themselves


def hold_lock(file: str) -> Words:
    """Lock a file and hold it until the command's input ends; what is sent is written into it, and comes back."""
    return ("flock", "-n", "-E", str(HELD_BY_ANOTHER), path(file), "tee", path(file))


def try_lock(file: str) -> Words:
    """Could it be locked?  It is given back at once."""
    return ("flock", "-n", "-E", str(HELD_BY_ANOTHER), path(file), "true")


# -- services ----------------------------------------------------------------------------------------------------------
def unit_state(name: str) -> Words:
    """What systemd says of a unit."""
    return ("systemctl", "show", "--no-pager", "-p", ",".join(UNIT_PROPERTIES), "--", unit(name))


def unit_start(name: str) -> Words:
    """Begin to start; what it becomes is observed."""
    return ("systemctl", "start", "--no-block", "--", unit(name))


def unit_stop(name: str) -> Words:
    """Begin to stop; the wait is ours."""
    return ("systemctl", "stop", "--no-block", "--", unit(name))


def unit_stop_to_the_end(name: str) -> Words:
    """Stop, and return when it has; for a person, who looks at the host next."""
    return ("systemctl", "stop", "--", unit(name))


def unit_is_enabled(name: str) -> Words:
    """One word, whatever the exit code: disabled units end with 1."""
    return ("systemctl", "is-enabled", "--", unit(name))


def pulled_in_at_boot() -> Words:
    """The units that default.target pulls in, one a line, targets followed."""
    return ("systemctl", "list-dependencies", "--plain", "--no-pager", "--", "default.target")


def unit_enable(name: str) -> Words:
    """Start it at each boot; what runs now is left as it is."""
    return ("systemctl", "enable", "--", unit(name))


def unit_disable(name: str) -> Words:
    """Start it at no boot; what runs now is left as it is."""
    return ("systemctl", "disable", "--", unit(name))


def unit_log(name: str, lines: int) -> Words:
    """The end of a unit's journal: LOG_LINES of it, or LOG_LINES_DEEP where more are wanted."""
    asked = LOG_LINES if lines <= LOG_LINES else LOG_LINES_DEEP
    return ("journalctl", "-u", unit(name), "-n", str(asked), "-o", "cat", "--no-pager")


def process_words(pid: int) -> Words:
    """The command line of a process, its words ended by zero bytes."""
    return ("cat", f"/proc/{int(pid)}/cmdline")


def uptime() -> Words:
    """Seconds since the host's boot, which is what systemd's monotonic times count from."""
    return ("cat", "/proc/uptime")


def sockets(table: str) -> Words:
    """The sockets of a host, as the kernel lists them; `table` is /proc/net/tcp or tcp6."""
    return ("cat", path(table))


def now() -> Words:
    """Seconds since 1970, with nine digits behind the point."""
    return ("date", "+%s.%N")


def storage_format(kafka_home: str, config: str, cluster_id: str, release: str, *, ignore_formatted: bool) -> Words:
    """kafka-storage format with a node's file; the id in one word with its option, for it may begin with a dash."""
    tool = f"{path(kafka_home).rstrip('/')}/bin/kafka-storage.sh"
    also = ("--ignore-formatted",) if ignore_formatted else ()
    return (tool, "format", f"--cluster-id={cluster_id}", "-c", path(config), "--release-version", release, *also)


def collector(config: str | None, directories: tuple[str, ...], node: int) -> Words:
    """The collector, its text on stdin: health by a write and fsync of six bytes in each directory."""
    given = ("--properties", path(config)) if config is not None else ()
    return ("python3", "-", "--probe", "--node", str(int(node)), *given, *map(path, directories))


def tell_places(paths: tuple[str, ...]) -> Words:
    """Where paths lead to and what lies there, the script on stdin."""
    return ("python3", "-", *map(path, paths))


# -- rights ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Privilege:
    """Who a command is run as: nobody else (""), root ("root") or Kafka's user, by `sudo -n`."""

    user: str = ""

    def words(self, command: Words) -> Words:
        """The command as it is run."""
        if not self.user:
            return command
        return ("sudo", "-n", *(() if self.user == "root" else ("-u", self.user)), "--", *command)

    def question(self, command: Words) -> Words:
        """Would sudo run it without a password?  Runs nothing."""
        return ("sudo", "-n", *(() if self.user == "root" else ("-u", self.user)), "-l", "--", *command)
