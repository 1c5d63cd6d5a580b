"""The closed table of the host program's verbs, and the quoting of their words: nothing else is run on a host.

The program checks each word again: `migrate/hosts/host_program.py`.  SSH passes one string to the remote user's shell,
so each word of a command is quoted once, here only: nothing of an inventory becomes shell text.  Words that no path,
unit or host has (control characters, text that is not UTF-8) are refused, not quoted.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.errors import WordRefused
from migrate.hosts.host_setup import PROGRAM
from migrate.model import limits
from migrate.model.ids import NodeId
from migrate.model.kafka_values import IPV6
from migrate.model.written import UNIT

# a destination of ssh(1): a name of the operator's own configuration, or user@host
DESTINATION: Final = re.compile(rf"([A-Za-z0-9_][A-Za-z0-9._-]*@)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|{IPV6})")
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
        return cls(options.get("host_program", PROGRAM), options.get("sudo", "yes") == "yes")

    def words(self, command: Words) -> Words:
        return (*(("sudo", "-n", "--") if self.sudo else ()), self.program, *command)


ABOUT: Final = ("about",)  # its release, its configuration, and which nodes' own commands it refuses
LOOKS: Final = ("looks",)  # verbs that change nothing, asked one after another on its stdin
CLOCK: Final = ("clock",)  # seconds since 1970 with nine digits behind the point, and seconds since the boot
PULLED_IN_AT_BOOT: Final = ("boot-units",)  # the units that default.target pulls in, one a line, targets followed


def _of_node(verb: str) -> Callable[[NodeId], Words]:
    return lambda node: (verb, _id(node))


def _of_path(verb: str) -> Callable[[NodeId, str], Words]:
    return lambda node, place: (verb, _id(node), path(place))


def _of_paths(verb: str) -> Callable[[NodeId, Sequence[str]], Words]:
    return lambda node, places: (verb, _id(node), *map(path, places))


def _of_unit(verb: str) -> Callable[[str], Words]:
    return lambda name: (verb, unit(name))


def _id(node: NodeId) -> str:
    return str(int(node))


target: Final = _of_node("target")  # what its file leads to, where that is a link which root's script found
status: Final = _of_path("status")  # kind, size, mode, owner and change time, also of a link itself
read: Final = _of_path("read")  # a regular file, at most READ_LIMIT + 1 bytes
remove: Final = _of_path("remove")  # a copy; never a file that a node uses
make_directory: Final = _of_path("make-directory")  # a metadata directory and its parents
names: Final = _of_path("names")  # in a folder, each ended by a zero byte
hold_lock: Final = _of_path("lock")  # until the command's input ends; each line sent is written into it and echoed
try_lock: Final = _of_path("try-lock")  # could it be locked?  It is released at once
archive: Final = _of_node("archive")  # a controller's metadata log and meta.properties as one tar stream
facts: Final = _of_node("facts")  # what the unit's user may read and write, checked as that user; JSON
collector: Final = _of_paths("collect")  # as the unit's user; health by a write and fsync in each directory
resolve_paths: Final = _of_paths("places")  # where paths lead to, and the names in them, as the unit's user
unit_state: Final = _of_unit("unit-show")
unit_start: Final = _of_unit("unit-start")  # without waiting; the caller observes the result
unit_stop: Final = _of_unit("unit-stop")  # without waiting; the caller waits
unit_is_enabled: Final = _of_unit("unit-is-enabled")  # in one word
service_look: Final = _of_node("service-look")  # processes that are the node, or may be, as /proc shows them; JSON
service_start: Final = _of_node("service-start")  # the operator's own command, from the host's configuration
service_stop: Final = _of_node("service-stop")
service_status: Final = _of_node("service-status")  # whose exit code says whether the node runs


def service_process(node: NodeId, pid: int) -> Words:
    """The command line of a node's process, its words ended by zero bytes."""
    return ("service-process", _id(node), str(int(pid)))


def write(node: NodeId, file: str, content: bytes) -> Words:
    """Replace a file with the content on stdin; the hash proves that all of it arrived."""
    return ("write", _id(node), path(file), hashlib.sha256(content).hexdigest())


def keep(node: NodeId, copies: Mapping[str, tuple[str, bytes]]) -> Words:
    """Copy files on their host, path -> (copy, content); nothing is put over another content."""
    words = ((path(file), path(copy), hashlib.sha256(content).hexdigest()) for file, (copy, content) in copies.items())
    return ("keep", _id(node), *(word for entry in words for word in entry))


def rename(node: NodeId, old: str, new: str) -> Words:
    """Rename it; nothing happens if the target exists."""
    return ("rename", _id(node), path(old), path(new))


def unit_log(name: str, lines: int) -> Words:
    """The end of a unit's journal."""
    return ("unit-log", unit(name), str(int(lines)))


def process_words(name: str, pid: int) -> Words:
    """The command line of a unit's main process, its words ended by zero bytes."""
    return ("process", unit(name), str(int(pid)))


def sockets(table: str) -> Words:
    """The sockets of a host, as the kernel lists them; `table` is tcp or tcp6."""
    return ("sockets", table)


def storage_format(node: NodeId, cluster_id: str, release: str, *, ignore_formatted: bool, voters: str = "") -> Words:
    """kafka-storage format with a node's file, as the unit's user."""
    also: Words = ("--ignore-formatted",) if ignore_formatted else ()
    also += ("--initial-controllers", check_word(voters)) if voters else ()
    return ("format", _id(node), check_word(cluster_id), release, *also)
