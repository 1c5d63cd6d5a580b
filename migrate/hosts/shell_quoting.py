"""Words for a remote shell: SSH hands one string to the user's shell there, so each word of a command is quoted once.

Nothing of an inventory ever becomes shell text: a command is a tuple of words, and this is the only place that joins
them.  What no honest path, unit or host has (control characters, text that is not UTF-8) is refused, not quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from migrate.errors import WordRefused
from migrate.model.host_names import UNIT

# a destination of ssh(1): a name of the operator's own configuration, or user@host
DESTINATION: Final = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+)"
)
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
LONGEST: Final = 100_000  # bytes of one command; Linux takes 131,072 in one word


def quoted(words: Sequence[str]) -> str:
    """The one string that a POSIX shell splits into exactly these words (pure).

    Raises:
        WordRefused: no words, a control character, text that is not UTF-8, or more than any command of ours needs.
    """
    if not words or not words[0]:
        raise WordRefused("a command without a program")
    for word in words:
        checked(word)
    text = shlex.join(words)
    if len(text.encode()) > LONGEST:
        raise WordRefused(f"a command of {len(text.encode())} bytes", where=words[0])
    return text


def checked(word: str) -> str:
    """The word, where it may stand in a command (pure); raises WordRefused."""
    if CONTROL.search(word):
        raise WordRefused("a word with control characters is no part of a command", where=ascii(word)[:200])
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise WordRefused("a word that is not UTF-8 is no part of a command", where=ascii(word)[:200]) from error
    return word


def path(text: str) -> str:
    """An absolute path of a host (pure): with the slash in front it can be no option.  Raises WordRefused."""
    if not text.startswith("/"):
        raise WordRefused("a path on a host must be absolute", where=ascii(text)[:200])
    return checked(text)


def unit(name: str) -> str:
    """A systemd unit's name (pure).  Raises WordRefused."""
    if not UNIT.fullmatch(name):
        raise WordRefused(
            "this is no name of a systemd service",
            where=ascii(name)[:200],
            next_step="write it as systemctl shows it, such as kafka.service or kafka@1.service",
        )
    return name


def destination(name: str) -> str:
    """What ssh connects to (pure): never an option, never a command.  Raises WordRefused."""
    if not DESTINATION.fullmatch(name):
        raise WordRefused("this is no host that ssh can be given", where=ascii(name)[:200])
    return name
