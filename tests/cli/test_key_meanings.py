"""docs/playbook-keys.md says of every key what it means, and of none that is not there."""

from __future__ import annotations

import re

from migrate.cli.key_meanings import MEANINGS, meaning
from migrate.cli.playbook_page import playbook_page

ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$")
BARE = re.compile(r"^(text|number.*|duration|list of (text|number.*)|names with .*)$")
OBVIOUS = re.compile(
    r"\.(username|type|path|file|env|command|timeout|kind|name|field|inventory|playbook|zookeeper|bundle|cluster_id)"
    r"(\[\])?$"
)


def rows() -> list[tuple[str, str, str, str]]:
    """Key, value, default, meaning."""
    found = [ROW.match(line.replace("\\|", "/")) for line in playbook_page("x")]
    return [(match[1], match[2], match[3], match[4]) for match in found if match]


def test_a_bare_value_is_explained() -> None:
    """`text` alone sends its reader into the code."""
    silent = [key for key, value, _, said in rows() if BARE.match(value) and not said and not OBVIOUS.search(key)]
    assert silent == []


def test_no_meaning_is_of_a_key_that_is_gone() -> None:
    """Each of them is used."""
    keys = [key for key, *_ in rows()]
    said = {meaning(key) for key in keys}
    assert [end for end, text in MEANINGS.items() if text not in said] == []


def test_the_page_has_no_word_of_the_code() -> None:
    """A description of a section within a list or a map belongs to no sentence of that row."""
    text = "\n".join(playbook_page("x"))
    assert "STAGE_KEYS" not in text
    assert "list of sections" in text
    assert "names with sections" in text
