"""SEC: as whom a node is known where a listener takes the name from its certificate (pure).

Source: `DefaultKafkaPrincipalBuilder`, `SslPrincipalMapper`: the called listener's ssl.principal.mapping.rules decide.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.registry import Blind
from migrate.model.outcome import Unknown
from migrate.model.patterns import Pattern, compiled

RULES: Final = "ssl.principal.mapping.rules"
CLIENT_AUTH: Final = "ssl.client.auth"
LOCATION: Final = "ssl.keystore.location"
CHAIN: Final = "ssl.keystore.certificate.chain"
ONE_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<made>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
LONGEST_SUBJECT: Final = 4096  # characters
Rule = tuple[Pattern, tuple[str | int, ...], str]
Subjects = Mapping[str, str | Unknown]


def of_listener(values: Mapping[str, str], listener: str, key: str, default: str = "") -> str:
    """A listener's own value of the key, else the node's."""
    return values.get(f"listener.name.{listener.lower()}.{key}", values.get(key, default)).strip()


def certificates_name(
    values: Mapping[str, str], subjects: Subjects, called: Mapping[str, str], listener: str
) -> str | Blind:
    """As whom a node with these values calls that listener of a node with the values `called`: User:NAME."""
    if of_listener(called, listener, CLIENT_AUTH, "none").lower() == "none":
        return "User:ANONYMOUS"
    path = of_listener(values, listener, LOCATION)
    if not path:
        inline = of_listener(values, listener, CHAIN)
        return Blind("its principal", "its certificate stands in the file itself" if inline else "it names no keystore")
    found = subjects.get(path, Unknown(f"{path} was not looked at"))
    return Blind("its principal", found.reason) if isinstance(found, Unknown) else known_as(found, called, listener)


def known_as(subject: str, called: Mapping[str, str], listener: str) -> str | Blind:
    """What the called listener's rules make of a certificate's subject."""
    try:
        name = _mapped(subject, of_listener(called, listener, RULES, "DEFAULT"))
    except ValueError:
        return Blind("its principal", f"{RULES} of listener {listener} cannot be read")
    return (
        Blind("its principal", f"no rule of {RULES} of listener {listener} is for {subject}") if name is None else name
    )


@functools.lru_cache(maxsize=4096)
def _mapped(subject: str, rules: str) -> str | None:
    """User:NAME by the first rule that is for the subject, None where none is; ValueError as `parsed`."""
    if len(subject) > LONGEST_SUBJECT:
        raise ValueError(len(subject))
    for rule in list(parsed(rules)):
        if rule is None:
            return f"User:{subject}"
        pattern, made, case = rule
        if pattern.fullmatch(subject):
            name, at = "", 0
            for found in pattern.finditer(subject):
                parts = (part if isinstance(part, str) else found.text(part) for part in made)
                name, at = f"{name}{subject[at : found.begin]}{''.join(parts)}", found.end
            name += subject[at:]
            return "User:" + (name.lower() if case == "L" else name.upper() if case == "U" else name)
    return None


def parsed(text: str) -> Iterator[Rule | None]:
    """The rules in their order, None for DEFAULT; ValueError where Kafka's text is not understood."""
    at = 0
    while at < len(text):
        match = ONE_RULE.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(at)
        at = match.end()
        if match["default"]:
            yield None
        else:
            pattern = compiled(match["pattern"])
            yield pattern, tuple(_replacement(match["made"], pattern.groups)), match["case"]


def _replacement(text: str, groups: int) -> Iterator[str | int]:
    """Java's replacement in parts: a backslash takes the next letter as it stands, `$1` is a group, as an int here."""
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            yield next(letters, "")
        elif letter == "$":
            digit = next(letters, "")
            yield int(digit) if digit.isascii() and digit.isdigit() and int(digit) <= groups else f"${digit}"
        else:
            yield letter
