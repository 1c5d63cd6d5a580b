"""SEC: as whom a node is known where a listener takes the name from its certificate (pure).

Source: `DefaultKafkaPrincipalBuilder`, `SslPrincipalMapper`: the called listener's ssl.principal.mapping.rules decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.registry import Blind
from migrate.model.outcome import Unknown

RULES: Final = "ssl.principal.mapping.rules"
CLIENT_AUTH: Final = "ssl.client.auth"
LOCATION: Final = "ssl.keystore.location"
CHAIN: Final = "ssl.keystore.certificate.chain"
ONE_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<made>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
Rule = tuple[re.Pattern[str], str, str]
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
        rules = list(parsed(of_listener(called, listener, RULES, "DEFAULT")))
    except (ValueError, re.error):
        return Blind("its principal", f"{RULES} of listener {listener} cannot be read")
    for rule in rules:
        if rule is None:
            return f"User:{subject}"
        pattern, made, case = rule
        if pattern.fullmatch(subject):
            name = pattern.sub(made, subject)
            return "User:" + (name.lower() if case == "L" else name.upper() if case == "U" else name)
    return Blind("its principal", f"no rule of {RULES} of listener {listener} is for {subject}")


def parsed(text: str) -> Iterator[Rule | None]:
    """The rules in their order, None for DEFAULT; ValueError or re.error where Kafka's text is not understood."""
    at = 0
    while at < len(text):
        match = ONE_RULE.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(at)
        at = match.end()
        if match["default"]:
            yield None
        else:
            pattern = re.compile(match["pattern"])
            yield pattern, _python(match["made"], pattern.groups), match["case"]


def _python(replacement: str, groups: int) -> str:
    """Java's replacement (a backslash takes the next letter as it stands, `$1` is a group) as Python spells it."""
    made, letters = [], iter(replacement)
    for letter in letters:
        if letter == "\\":
            made.append(next(letters, "").replace("\\", "\\\\"))
        elif letter == "$":
            digit = next(letters, "")
            is_group = digit.isdigit() and int(digit) <= groups
            made.append(f"\\g<{digit}>" if is_group else "$" + digit.replace("\\", "\\\\"))
        else:
            made.append(letter)
    return "".join(made)
