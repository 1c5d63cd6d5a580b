"""The user that Kafka, and the one that ZooKeeper, makes of a Kerberos principal (pure).

Source: `KerberosName`, `KerberosShortNamer` and `KerberosRule` of Kafka's clients, for its rules (principal.to.local);
`SaslServerCallbackHandler` of ZooKeeper.
"""

from __future__ import annotations

import re
from typing import Final

from migrate.model.kafka_values import elements
from migrate.model.outcome import Unknown
from migrate.model.patterns import LINE_ENDS, Pattern, compiled_as_java

NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
RULE: Final = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:\[(?P<parts>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<old>[^/]*)/(?P<new>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
PLAIN: Final = re.compile(r"[^/@]*")


def with_realm(principal: str, realm: str | Unknown) -> str | Unknown:
    """The principal with its realm; `realm` is the default one, of a principal that names none."""
    return principal if "@" in principal else realm if isinstance(realm, Unknown) else f"{principal}@{realm}"


def in_zookeeper(principal: str) -> dict[tuple[bool, bool], str]:
    """ZooKeeper's name for a principal with its realm, by whether it leaves its host, and its realm, in it.

    These are kerberos.removeHostFromPrincipal and kerberos.removeRealmFromPrincipal, which only its servers know.
    Rules of zookeeper.security.auth_to_local are not read: with them none of the four need be the name.
    """
    whole, _, realm = principal.rpartition("@")
    first = whole.partition("/")[0]
    names = ((host, keeps, whole if host else first) for host in (False, True) for keeps in (False, True))
    return {(host, keeps): f"{name}@{realm}" if keeps else name for host, keeps, name in names}


def short_name(principal: str, rules: str, realm: str) -> str | None:
    """The name by the first rule that is for the principal; None where no rule is, or what it makes is no plain name.

    Raises ValueError: the rules, or the principal, are not read as Kafka reads them.
    """
    found = NAME.fullmatch(principal)
    if found is None or not LINE_ENDS.isdisjoint(principal):
        raise ValueError(principal)
    parts = [found[3], found[1], *([found[2]] if found[2] is not None else [])]
    read = [RULE.fullmatch(text) for text in elements(rules) or ("DEFAULT",)]
    if None in read:
        raise ValueError(rules)
    for rule in filter(None, read):
        name = _applied(rule, parts, realm)
        if name is not None:
            if not PLAIN.fullmatch(name):
                return None
            return name.lower() if rule["case"] == "L" else name.upper() if rule["case"] == "U" else name
    return None


def _applied(rule: re.Match[str], parts: list[str], realm: str) -> str | None:
    if rule["default"]:
        return parts[1] if parts[0] == realm else None
    if int(rule["parts"]) != len(parts) - 1:
        return None
    base = re.sub(r"\$(\d*)", lambda number: parts[int(number[1])], _in_bounds(rule["format"], len(parts)))
    if rule["match"] is not None and not compiled_as_java(rule["match"]).fullmatch(base):
        return None
    if rule["old"] is None:
        return base
    return _replaced(compiled_as_java(rule["old"]), rule["new"], base, everywhere=rule["all"] is not None)


def _in_bounds(text: str, count: int) -> str:
    if any(not number or int(number) >= count for number in re.findall(r"\$(\d*)", text)):
        raise ValueError(text)
    return text


def _replaced(pattern: Pattern, new: str, base: str, *, everywhere: bool) -> str:
    """As Matcher.replaceAll and replaceFirst; a replacement with `$` or a backslash is not read here."""
    if "$" in new or "\\" in new:
        raise ValueError(new)
    name, at = "", 0
    for found in pattern.finditer(base):
        name, at = f"{name}{base[at : found.begin]}{new}", found.end
        if not everywhere:
            break
    return name + base[at:]
