"""Znodes of a backup in lines (pure): JSON as `key = value`, secrets as keyed digests, differences as - and +."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from migrate.hosts.collect_disks import is_sensitive, redacted_value
from migrate.model import strict_json
from migrate.model.secrets import Digester
from migrate.report.wording import clip, plural, printable
from migrate.zookeeper.backup import Acl, Standing, ZnodeDifference

LONGEST: Final = 200
CONFIG: Final = "config."  # of a znode below /config, where its keys are Kafka's
PERMISSIONS: Final = ((1, "r"), (2, "w"), (4, "c"), (8, "d"), (16, "a"))
SYMBOLS: Final = {
    Standing.MISSING: "+",
    Standing.DIFFERS: "~",
    Standing.LIVE_ONLY: "live",
    Standing.NEVER: "never",
    Standing.DENIED: "?",
    Standing.SAME: "=",
}


def content(data: bytes | None, digester: Digester) -> tuple[str, ...]:
    """The lines of a znode's data; none for null or empty data.  Equal secrets have equal digests within a command."""
    if not data:
        return ()
    try:
        text = data.decode()
        found = strict_json.loads(text)
    except UnicodeDecodeError:
        return (f"{plural(len(data), 'byte')} that are no text",)
    except strict_json.NotStrictJson:
        return (clip(printable(text), LONGEST),)
    if not isinstance(found, dict):
        return (clip(printable(text), LONGEST),)
    return tuple(sorted(_flat("", found, digester)))


def _flat(prefix: str, found: Any, digester: Digester) -> Iterator[str]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value, digester)
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        if prefix == CONFIG and not name.startswith("SCRAM-"):
            shown = redacted_value(name, text, digester.digest)
        else:
            shown = digester.digest(text) if is_sensitive(name) or name.startswith("SCRAM-") else text
        yield printable(f"{prefix}{name} = {clip(shown, LONGEST)}")


def acl_text(acl: Acl) -> str:
    """`sasl:kafka rwcda, world:anyone r`."""
    if not acl:
        return "unknown"
    entries = sorted(
        f"{scheme}:{identity.partition(':')[0] if scheme == 'digest' else identity} "
        f"{''.join(letter for bit, letter in PERMISSIONS if bits & bit) or '-'}"
        for bits, scheme, identity in acl
    )
    return printable(", ".join(entries))


def difference(entry: ZnodeDifference, digester: Digester) -> Iterator[str]:
    """One znode's lines: its symbol and path, why it is left alone, what would be taken away (-) and put there (+)."""
    why = f" ({entry.why})" if entry.why else ""
    version = "" if entry.live is None else f" version {entry.live.version}"
    yield printable(f"{SYMBOLS[entry.standing]:<5} {entry.path}{version}{why}")
    if entry.standing in (Standing.SAME, Standing.LIVE_ONLY, Standing.DENIED):
        return
    kept = content(None if entry.kept is None else entry.kept.data, digester)
    live = content(None if entry.live is None else entry.live.data, digester)
    yield from (f"      - {line}" for line in live if line not in kept)
    yield from (f"      + {line}" for line in kept if line not in live)
    if entry.standing is Standing.MISSING:
        yield f"      ACL {acl_text(entry.acl)}"
    elif entry.acl_differs:
        yield f"      ACL {acl_text(entry.live_acl)}, in the backup {acl_text(entry.acl)}: it is left as it is"
