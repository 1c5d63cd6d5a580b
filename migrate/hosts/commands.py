"""The closed table of the host program's verbs, and the quoting of their words: nothing else is run on a host.

The program checks each word again: `migrate/hosts/host_program.py`.  SSH passes one string to the remote user's shell,
so each word of a command is quoted once, here only: nothing of an inventory becomes shell text.  Words that no path,
unit or host has (control characters, text that is not UTF-8) are refused, not quoted.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.errors import WordRefused
from migrate.hosts.host_setup import PROGRAM
from migrate.model import limits
from migrate.model.ids import NodeId
from migrate.model.inventory import UNIT

# a destination of ssh(1): a name of the operator's own configuration, or user@host
DESTINATION: Final = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+)"
)
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
LONGEST: Final = 100_000  # bytes of one command; Linux takes 131,072 in one word


def quote(words: Sequence[str]) -> str:
    """The one string that a POSIX shell splits into exactly these words (pure).

    Raises:
        WordRefused: no words, a control character, text that is not UTF-8, or more than any command of ours needs.
    """
    if not words or not words[0]:
        raise WordRefused("a command without a program")
    for word in words:
        check_word(word)
    text = shlex.join(words)
    if len(text.encode()) > LONGEST:
        raise WordRefused(f"a command of {len(text.encode())} bytes", where=words[0])
    return text


def check_word(word: str) -> str:
    """Return the word if a command may contain it (pure); raises WordRefused."""
    if CONTROL.search(word):
        raise WordRefused("a word with control characters is no part of a command", where=ascii(word)[:200])
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise WordRefused("a word that is not UTF-8 is no part of a command", where=ascii(word)[:200]) from error
    return word


def path(text: str) -> str:
    """Return an absolute path of a host (pure): the slash keeps it from being an option.  Raises WordRefused."""
    if not text.startswith("/"):
        raise WordRefused("a path on a host must be absolute", where=ascii(text)[:200])
    return check_word(text)


def unit(name: str) -> str:
    """Return a systemd unit's name (pure).  Raises WordRefused."""
    if not UNIT.fullmatch(name):
        raise WordRefused(
            "this is no name of a systemd service",
            where=ascii(name)[:200],
            next_step="write it as systemctl shows it, such as kafka.service or kafka@1.service",
        )
    return name


def destination(name: str) -> str:
    """Return a destination for ssh (pure): never an option, never a command.  Raises WordRefused."""
    if not DESTINATION.fullmatch(name):
        raise WordRefused("this is no host that ssh can be given", where=ascii(name)[:200])
    return name


Words = tuple[str, ...]
READ_LIMIT: Final = limits.most("configuration")  # bytes of one file, as for files of this host

# exit codes of the program
CHANGED: Final = 3  # tar: some files changed while they were read
HELD_BY_ANOTHER: Final = 75
NOT_RIGHT: Final = 78


@dataclass(frozen=True, slots=True)
class HostAccess:
    """How the host program is reached: its path, and whether sudo runs it."""

    program: str = PROGRAM
    sudo: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HostAccess:
        """As the inventory's executor says."""
        return cls(options.get("host_program", PROGRAM), options.get("sudo", "yes") == "yes")

    def words(self, command: Words) -> Words:
        """The command as it is run."""
        return (*(("sudo", "-n", "--") if self.sudo else ()), self.program, *command)


# -- the program itself ------------------------------------------------------------------------------------------------
def about() -> Words:
    """Its release and its configuration."""
    return ("about",)


def allowed() -> Words:
    """Which of the commands on stdin it would refuse, and why; nothing is done."""
    return ("allowed",)


# -- files -------------------------------------------------------------------------------------------------------------
def status(node: NodeId, file: str) -> Words:
    """Kind, size, mode, owner and change time of a path, also of a link itself."""
    return ("status", _id(node), path(file))


def read(node: NodeId, file: str) -> Words:
    """The bytes of a regular file, at most READ_LIMIT + 1."""
    return ("read", _id(node), path(file))


def write(node: NodeId, file: str, content: bytes) -> Words:
    """Replace a file with the content on stdin; the hash proves that all of it arrived."""
    return ("write", _id(node), path(file), hashlib.sha256(content).hexdigest())


def rename(node: NodeId, old: str, new: str) -> Words:
    """Rename it; nothing happens if the target exists."""
    return ("rename", _id(node), path(old), path(new))


def remove(node: NodeId, file: str) -> Words:
    """Remove a copy; never a file that a node uses."""
    return ("remove", _id(node), path(file))


def make_directory(node: NodeId, folder: str) -> Words:
    """Create a metadata directory and its parents."""
    return ("make-directory", _id(node), path(folder))


def names(node: NodeId, folder: str) -> Words:
    """The names in a folder, each ended by a zero byte."""
    return ("names", _id(node), path(folder))


def archive(node: NodeId) -> Words:
    """A controller's metadata log and meta.properties as one tar stream."""
    return ("archive", _id(node))


# -- locks -------------------------------------------------------------------------------------------------------------
def hold_lock(node: NodeId, file: str) -> Words:
    """Lock a file until the command's input ends; each line sent is written into it and echoed."""
    return ("lock", _id(node), path(file))


def try_lock(node: NodeId, file: str) -> Words:
    """Could it be locked?  It is released at once."""
    return ("try-lock", _id(node), path(file))


# -- services ----------------------------------------------------------------------------------------------------------
def unit_state(name: str) -> Words:
    """A unit's properties."""
    return ("unit-show", unit(name))


def unit_start(name: str) -> Words:
    """Start it without waiting; the caller observes the result."""
    return ("unit-start", unit(name))


def unit_stop(name: str) -> Words:
    """Stop it without waiting; the caller waits."""
    return ("unit-stop", unit(name))


def unit_is_enabled(name: str) -> Words:
    """Whether it is enabled, in one word."""
    return ("unit-is-enabled", unit(name))


def unit_enable(name: str) -> Words:
    """Start it at each boot; running processes are not affected."""
    return ("unit-enable", unit(name))


def unit_disable(name: str) -> Words:
    """Do not start it at boot; running processes are not affected."""
    return ("unit-disable", unit(name))


def pulled_in_at_boot() -> Words:
    """The units that default.target pulls in, one a line, targets followed."""
    return ("boot-units",)


def unit_log(name: str, lines: int) -> Words:
    """The end of a unit's journal."""
    return ("unit-log", unit(name), str(int(lines)))


def process_words(name: str, pid: int) -> Words:
    """The command line of a unit's main process, its words ended by zero bytes."""
    return ("process", unit(name), str(int(pid)))


def clock() -> Words:
    """Seconds since 1970 with nine digits behind the point, and seconds since the boot."""
    return ("clock",)


def sockets(table: str) -> Words:
    """The sockets of a host, as the kernel lists them; `table` is tcp or tcp6."""
    return ("sockets", table)


def facts(node: NodeId) -> Words:
    """What the unit's user may read and write, checked as that user; JSON."""
    return ("facts", _id(node))


# -- Kafka -------------------------------------------------------------------------------------------------------------
def storage_format(node: NodeId, cluster_id: str, release: str, *, ignore_formatted: bool) -> Words:
    """kafka-storage format with a node's file, as the unit's user."""
    return (
        "format",
        _id(node),
        check_word(cluster_id),
        release,
        *(("--ignore-formatted",) if ignore_formatted else ()),
    )


def collector(node: NodeId, directories: tuple[str, ...]) -> Words:
    """The collector as the unit's user: health by a write and fsync of six bytes in each directory."""
    return ("collect", _id(node), *map(path, directories))


def tell_places(node: NodeId, paths: tuple[str, ...]) -> Words:
    """Resolve paths and list their names, as the unit's user."""
    return ("places", _id(node), *map(path, paths))


def _id(node: NodeId) -> str:
    return str(int(node))
