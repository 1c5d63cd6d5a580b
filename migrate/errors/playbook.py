"""Errors of playbooks and inventories."""

from __future__ import annotations

from migrate.errors.base import InputError, MigrateError


class DocumentNotTrusted(InputError):
    """A file that decides what is done, or what is run, could have been written by another user."""

    id = "E-PLAY-05"
    hint = "look at the file, give it to your account, and take the write right from everybody else"


class DocumentUnreadable(InputError):
    """A YAML file cannot be read at all: missing, too large, or no UTF-8."""

    id = "E-PLAY-01"
    hint = "give the path of a readable UTF-8 file of at most 256 KiB"


class YamlRefused(InputError):
    """The file is no YAML, or uses what strict YAML forbids: aliases, tags, duplicate keys, several documents."""

    id = "E-PLAY-02"
    hint = "write the value out at the place named above; `kraft-migrate playbook lint FILE` checks the file again"


class DocumentInvalid(InputError):
    """The YAML is sound and its content is wrong: an unknown or missing key, a wrong type, ids that collide.

    `problems` holds all of them, the first one is the error's own text.
    """

    id = "E-PLAY-03"
    hint = "mend the place named above; `kraft-migrate playbook lint FILE` shows all of them at once"

    def __init__(
        self, what: str, *, where: str = "", why: str = "", next_step: str = "", problems: tuple[MigrateError, ...] = ()
    ) -> None:
        super().__init__(what, where=where, why=why, next_step=next_step)
        self.problems = problems or (self,)


class NotSupportedYet(DocumentInvalid):
    """A key or value that the format reserves and this release does not act on: refused, never ignored."""

    id = "E-PLAY-04"
    hint = "take it out; what it promises would not happen"
