"""What a migration changed in a node's file, for the templates that write it: a patch, and variables (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.hosts.properties import diff, parse, plain_value
from migrate.model.secrets import without_digits

HIDDEN_WORDS: Final = "# values that are not shown: each is in the file on the host; keep it in your vault"


@dataclass(frozen=True, slots=True)
class Handover:
    """A node's file from before the migration (b"" where there was none) and as it is now."""

    node: str  # such as broker-1
    host: str
    path: str
    before: bytes
    after: bytes

    def patch(self) -> str:
        """The unified diff with secrets hidden, "" where nothing changed."""
        lines = diff(self.before, self.after, self.path, ("before", "after"))
        return "".join(f"{without_digits(line)}\n" for line in lines)

    def variables(self) -> str:
        """YAML for Ansible: keys that were added or changed, with their values, and keys that are gone."""
        return "".join(f"{line}\n" for line in self._variables())

    def _variables(self) -> Iterator[str]:
        before, after = parse(self.before, self.path), parse(self.after, self.path)
        changed = {key: after[key] for key in sorted(after) if before.get(key) != after[key]}
        shown = {key: plain for key, value in changed.items() if (plain := plain_value(key, value)) is not None}
        yield f"# {self.node} on {self.host}: what changed in its file"
        yield f"kraft_migrate_config: {_text(self.path)}"
        yield "kraft_migrate_set:" + ("" if shown else " {}")
        for key, value in shown.items():
            yield f"  {_text(key)}: {'!unsafe ' if '{{' in value or '{%' in value else ''}{_text(value)}"
        yield f"kraft_migrate_removed: {_texts(sorted(before.keys() - after.keys()))}"
        yield HIDDEN_WORDS
        yield f"kraft_migrate_hidden: {_texts(sorted(changed.keys() - shown.keys()))}"


def _text(text: str) -> str:
    """A double-quoted YAML scalar: JSON's spelling is one."""
    return json.dumps(text, ensure_ascii=True)


def _texts(texts: list[str]) -> str:
    return json.dumps(texts, ensure_ascii=True)
